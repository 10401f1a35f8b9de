"""The calls that change an object at AWS: made once, in its own account, and told as far as they went."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.inventory.actions import AwsActions
from tfguard.inventory.aws import AwsInventory
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig

Answer = tuple[int, str]
Answering = Callable[[Callable[[str, dict[str, Any]], Answer]], ProviderConfig]

ACCOUNT = "123456789012"
KEY = CloudObject(
    "aws",
    ACCOUNT,
    "eu-west-1",
    "aws_kms_key",
    "k-1",
    "k-1",
    {"key_id": "k-1"},
    arn=f"arn:aws:kms:eu-west-1:{ACCOUNT}:key/k-1",
)


@pytest.fixture
def actions() -> AwsActions:
    """The actions under test."""
    return AwsActions(load_catalog())


class Service:
    """Answers as it is told by operation, and remembers what it was asked."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, operation: str, _: dict[str, Any]) -> Answer:
        self.asked.append(operation)
        return self.answers.get(operation, (200, "{}"))


def error(code: str, status: int = 400) -> Answer:
    """A refusal as services with JSON say it."""
    return status, json.dumps({"__type": code, "message": "no"})


def test_what_is_restored_in_part_is_told_so(actions: AwsActions, answering: Answering) -> None:
    service = Service(CancelKeyDeletion=(200, '{"KeyId": "k-1"}'), EnableKey=error("AccessDeniedException"))
    answer = actions.restore(KEY, answering(service))
    assert service.asked == ["CancelKeyDeletion", "EnableKey"]
    assert answer.done == ("CancelKeyDeletion",)
    assert answer.refused == "AccessDeniedException on EnableKey"
    assert not answer.unanswered


@pytest.mark.parametrize(
    ("reply", "refused", "absent", "unanswered"),
    [
        (error("ThrottlingException"), "ThrottlingException on ScheduleKeyDeletion", False, False),
        (error("InternalFailure", 500), "InternalFailure on ScheduleKeyDeletion", False, False),
        (error("NotFoundException"), "NotFoundException on ScheduleKeyDeletion", True, False),
    ],
)
def test_no_call_is_made_twice(
    actions: AwsActions, answering: Answering, reply: Answer, refused: str, absent: bool, unanswered: bool
) -> None:
    service = Service(ScheduleKeyDeletion=reply)
    answer = actions.delete(KEY, answering(service))
    assert service.asked == ["ScheduleKeyDeletion"]
    assert (answer.refused, answer.absent, answer.unanswered) == (refused, absent, unanswered)


def test_an_answer_that_is_none_of_the_services_leaves_it_open(actions: AwsActions, answering: Answering) -> None:
    answer = actions.restore(KEY, answering(Service(CancelKeyDeletion=(200, "<html>sign in</html>"))))
    assert (answer.done, answer.unanswered) == ((), True)


def test_what_has_to_go_first_blocks(actions: AwsActions, answering: Answering) -> None:
    assert actions.delete(KEY, answering(Service(ScheduleKeyDeletion=error("DependencyViolation")))).blocked
    assert not actions.delete(KEY, answering(Service(ScheduleKeyDeletion=error("AccessDeniedException")))).blocked


def test_nothing_is_touched_in_another_account_than_the_objects(actions: AwsActions, answering: Answering) -> None:
    service = Service()
    answer = actions.delete(replace(KEY, account="999999999999"), answering(service))
    assert answer.refused == f"the credentials are those of account {ACCOUNT} now"
    assert service.asked == []


def test_nothing_is_touched_where_it_is_not_known_whom_to_ask(actions: AwsActions, block: Any) -> None:
    answer = actions.tag(KEY, block(("assume_role.role_arn",)), {"a": "b"})
    assert "assume_role.role_arn of aws is not in the plan" in answer.refused


def test_a_refused_tag_is_found_in_an_answer_that_says_yes(actions: AwsActions, answering: Answering) -> None:
    said = {"FailedResourcesMap": {KEY.arn: {"StatusCode": 400, "ErrorCode": "InvalidParameterException"}}}
    answer = actions.tag(KEY, answering(Service(TagResources=(200, json.dumps(said)))), {"a": "b"})
    assert answer.refused == "InvalidParameterException on TagResources"


def test_what_has_no_arn_or_no_call_is_told_so(actions: AwsActions, aws: ProviderConfig) -> None:
    assert "cannot be tagged" in actions.tag(replace(KEY, arn=None), aws, {"a": "b"}).refused
    assert "cannot be tagged" in actions.untag(replace(KEY, arn=None), aws, ["a"]).refused
    assert (
        actions.restore(replace(KEY, type="aws_sqs_queue"), aws).refused
        == "no call is known that restores aws_sqs_queue"
    )
    assert actions.delete(replace(KEY, type="aws_x"), aws).refused == "no call is known that deletes aws_x"


def test_a_secret_is_deleted_with_its_longest_window_restored_and_tagged(
    actions: AwsActions, inventory: AwsInventory, aws: ProviderConfig, client: Callable[..., Any]
) -> None:
    secrets = client("secretsmanager")
    secrets.create_secret(Name="of-actions")
    listed = inventory.list("aws_secretsmanager_secret", aws).objects
    (found,) = [one for one in listed if one.name == "of-actions"]
    assert actions.tag(found, aws, {"a": "b"}).refused == ""
    assert secrets.describe_secret(SecretId="of-actions")["Tags"] == [{"Key": "a", "Value": "b"}]
    assert actions.untag(found, aws, ["a"]).refused == ""
    assert not secrets.describe_secret(SecretId="of-actions").get("Tags")

    assert actions.delete(found, aws).done == ("DeleteSecret",)
    listed = inventory.list("aws_secretsmanager_secret", aws)
    assert listed.objects == ()
    (waiting,) = listed.soft_deleted
    end = inventory.detail(waiting, aws).found.gone_after
    assert waiting.soft_deleted and end == secrets.describe_secret(SecretId="of-actions")["DeletedDate"]

    assert actions.restore(waiting, aws).done == ("RestoreSecret",)
    assert "DeletedDate" not in secrets.describe_secret(SecretId="of-actions")
    secrets.delete_secret(SecretId="of-actions", ForceDeleteWithoutRecovery=True)
