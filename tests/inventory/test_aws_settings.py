"""Whom a provider block asks, and what is said when that is not known."""

from __future__ import annotations

import pytest

from tfguard.inventory import aws_settings as settings_of
from tfguard.model.plan import ProviderConfig


def config(*unresolved: str, key: str = "aws.eu", **settings: str) -> ProviderConfig:
    """A provider block; `__` in a setting's name stands for a dot."""
    return ProviderConfig(key, "x", {k.replace("__", "."): v for k, v in settings.items()}, frozenset(unresolved))


def whom(provider: ProviderConfig) -> str | None:
    return settings_of.whom_is_unknown(provider, ("logs", "cloudwatchlogs", "sts"))


def test_known_settings_leave_nothing_open() -> None:
    assert whom(config(region="eu-west-1", profile="prod", assume_role__role_arn="arn:aws:iam::1:role/x")) is None


@pytest.mark.parametrize(
    ("unresolved", "line"),
    [
        ("profile", "providers: {aws.eu: {profile: ...}}"),
        ("assume_role.role_arn", "providers: {aws.eu: {assume_role: {role_arn: ...}}}"),
        ("endpoints.cloudwatchlogs", "providers: {aws.eu: {endpoints: {cloudwatchlogs: ...}}}"),
        ("endpoints.sts", "providers: {aws.eu: {endpoints: {sts: ...}}}"),
    ],
)
def test_unresolved_setting_names_the_line_to_add(unresolved: str, line: str) -> None:
    reason = whom(config(unresolved))
    assert reason is not None
    assert reason.startswith(f"{unresolved} of aws.eu is not in the plan")
    assert reason.endswith(line)


@pytest.mark.parametrize("credential", ["access_key", "secret_key", "token"])
def test_advice_never_asks_for_a_credential_in_a_file(credential: str) -> None:
    reason = whom(config(credential))
    assert reason is not None
    assert reason.endswith("providers: {aws.eu: {profile: ...}}")


def test_key_that_yaml_would_misread_is_quoted() -> None:
    reason = settings_of.region_is_unknown(config("region", key="module.net:aws"))
    assert reason is not None
    assert 'providers: {"module.net:aws": {region: ...}}' in reason


@pytest.mark.parametrize("unresolved", ["default_tags.tags", "endpoints.sqs", "max_retries", "region"])
def test_setting_that_does_not_decide_whom_is_no_hindrance(unresolved: str) -> None:
    assert whom(config(unresolved)) is None


def test_setting_that_was_supplied_counts_as_known() -> None:
    assert whom(config("profile", profile="prod")) is None
    assert settings_of.region_is_unknown(config("region", region="eu-west-1")) is None


def test_what_is_not_supported_is_said() -> None:
    assert "not supported" in (whom(config(assume_role_with_web_identity__role_arn="x")) or "")
    assert "not supported" in (whom(config(shared_config_files__0="a", shared_config_files__1="b")) or "")
    assert whom(config(shared_config_files__0="a")) is None


def test_service_may_go_by_another_name_in_endpoints() -> None:
    names = ("logs", "cloudwatchlogs")
    assert (
        settings_of.endpoint({"endpoints.cloudwatchlogs": "http://a", "endpoint_url": "http://b"}, names) == "http://a"
    )
    assert settings_of.endpoint({"endpoints.sqs": "http://a", "endpoint_url": "http://b"}, names) == "http://b"
    assert settings_of.endpoint({"endpoints.sqs": "http://a"}, names) is None


def test_account_that_the_block_does_not_allow_is_wrong() -> None:
    assert settings_of.account_is_wrong({}, "1") is None
    assert settings_of.account_is_wrong({"allowed_account_ids.0": "1", "allowed_account_ids.1": "2"}, "2") is None
    assert "account 3" in (settings_of.account_is_wrong({"allowed_account_ids.0": "1"}, "3") or "")
    assert "account 3" in (settings_of.account_is_wrong({"forbidden_account_ids.0": "3"}, "3") or "")
    # A scan has no provider block: the account can be one of scan.aws.accounts.
    told = settings_of.account_is_wrong({"allowed_account_ids.0": "1"}, "3")
    assert told == "the credentials are those of account 3, and 1 is wanted"


def test_settings_that_change_no_client_share_one() -> None:
    one = {"region": "a", "default_tags.tags": "x"}
    assert settings_of.sharing_key(one) == settings_of.sharing_key({"region": "a"})
    assert settings_of.sharing_key(one) != settings_of.sharing_key({"region": "a", "profile": "p"})
