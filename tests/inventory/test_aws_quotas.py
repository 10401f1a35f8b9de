"""What an AWS account may have at most: from moto's Service Quotas, and from answers that a test writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Answers

from tfguard.catalog.loader import load_catalog
from tfguard.inventory.aws_quotas import AwsQuotas
from tfguard.model.inventory import UNKNOWN_REGION, Scope
from tfguard.model.plan import ProviderConfig
from tfguard.model.preflight import Limit, Quota

VPCS = Quota("vpc", "L-F678F1CE")
HERE = Scope("aws", "123456789012", "eu-west-1", "aws")
EVERYWHERE = Scope("aws", "123456789012", "global", "aws")
NONE_OF_ITS_OWN = (400, json.dumps({"__type": "NoSuchResourceException", "message": "none"}))


@pytest.fixture
def quotas() -> AwsQuotas:
    """The quotas under test, without any client yet."""
    return AwsQuotas(load_catalog())


def test_limits_of_the_simulated_account_are_read(quotas: AwsQuotas, aws: ProviderConfig) -> None:
    assert quotas.limit(VPCS, aws, HERE) == Limit(5)
    assert quotas.limit(Quota("vpc", "L-E79EC296"), aws, HERE) == Limit(2500)


def test_a_service_that_the_account_cannot_be_asked_about_is_not_known(quotas: AwsQuotas, aws: ProviderConfig) -> None:
    answer = quotas.limit(Quota("iam", "L-FE177D64"), aws, EVERYWHERE)
    assert answer == Limit(None, "NoSuchResourceException on ListAWSDefaultServiceQuotas")


def test_a_limit_that_was_never_raised_is_the_default_on_whatever_page_it_stands(
    quotas: AwsQuotas, answering: Callable[[Answers], ProviderConfig]
) -> None:
    def answers(operation: str, arguments: dict[str, Any]) -> tuple[int, str]:
        if operation == "GetServiceQuota":
            return NONE_OF_ITS_OWN
        assert (operation, arguments["ServiceCode"]) == ("ListAWSDefaultServiceQuotas", "vpc")
        if "NextToken" not in arguments:
            return 200, json.dumps({"Quotas": [{"QuotaCode": "L-00000000", "Value": 1}], "NextToken": "more"})
        return 200, json.dumps({"Quotas": [{"QuotaCode": VPCS.code, "Value": 7.0}]})

    provider = answering(answers)
    assert quotas.limit(VPCS, provider, HERE) == Limit(7)
    assert quotas.limit(Quota("vpc", "L-FFFFFFFF"), provider, HERE).reason == (
        "Service Quotas has no vpc L-FFFFFFFF here"
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((400, json.dumps({"__type": "AccessDeniedException"})), "AccessDeniedException on GetServiceQuota"),
        ((200, json.dumps({"Quota": {"QuotaCode": VPCS.code, "ErrorReason": {"ErrorCode": "X"}}})), "without a value"),
        ((200, '{"Quota": {"Value": Infinity}}'), "without a value"),
        ((200, json.dumps({})), "UnreadableAnswerError on GetServiceQuota"),
    ],
)
def test_what_is_refused_or_has_no_value_is_not_known(
    quotas: AwsQuotas, answering: Callable[[Answers], ProviderConfig], answer: tuple[int, str], reason: str
) -> None:
    told = quotas.limit(VPCS, answering(lambda *_: answer), HERE)
    assert told.value is None
    assert reason in told.reason


def test_what_exists_once_in_an_account_is_asked_where_the_partition_answers_for_it(
    quotas: AwsQuotas, aws: ProviderConfig
) -> None:
    client = quotas._client(aws, "global")
    assert client.meta.region_name == "us-east-1"
    assert quotas._client(aws, "eu-west-1").meta.region_name == "eu-west-1"


def test_whom_to_ask_has_to_be_known(quotas: AwsQuotas, block: Callable[..., ProviderConfig]) -> None:
    assert "profile of aws is not in the plan" in quotas.limit(VPCS, block(unresolved=("profile",)), HERE).reason
    nowhere = Scope("aws", None, UNKNOWN_REGION, "aws")
    assert "has no region" in quotas.limit(VPCS, block(region=""), nowhere).reason
    assert quotas.limit(VPCS, block(), Scope("azurerm", None, "x")).reason == "no limits of azurerm can be asked for"
