"""`tfguard.yaml`: what it may say, and that every mistake is told with file, line and key."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfguard.errors import ConfigError
from tfguard.model.config import (
    AwsAccount,
    AwsScan,
    Config,
    GoogleScan,
    IgnoreRule,
    OnGap,
    Retention,
    ScanConfig,
    format_duration,
    parse_duration,
)
from tfguard.schemas.config import load_config, parse_config
from tfguard.schemas.config_file import find_config

FULL = """\
engine: tofu
records: s3://bucket/prefix
on_gap: block
owner: platform-team
cost_owner: cc-1042
retention: {default: 14d, max: 90d}
consistency_grace: 2m
providers:
  aws.eu: {region: eu-west-1, profile: prod-eu, skip_region_validation: true}
  google:
scan:
  stacks: ["infra/**", "s3://state-bucket/**/terraform.tfstate"]
  aws: {regions: [eu-west-1], accounts: [{id: 012345678901, role: "arn:aws:iam::012345678901:role/scan"}], types: ["*"]}
  google: {organization: "1234", projects: ["app-*"]}
  ignore: [{type: aws_cloudwatch_log_group, name: "/aws/lambda/*", reason: "made by the service"}]
"""


def test_every_key_of_the_interface_is_read() -> None:
    assert parse_config(FULL.replace("  google:\n", "  google: {}\n", 1)) == Config(
        engine="tofu",
        records="s3://bucket/prefix",
        on_gap=OnGap.BLOCK,
        owner="platform-team",
        cost_owner="cc-1042",
        retention=Retention(timedelta(days=14), timedelta(days=90)),
        consistency_grace=timedelta(minutes=2),
        providers={
            "aws.eu": {"region": "eu-west-1", "profile": "prod-eu", "skip_region_validation": "true"},
            "google": {},
        },
        scan=ScanConfig(
            stacks=("infra/**", "s3://state-bucket/**/terraform.tfstate"),
            aws=AwsScan(("eu-west-1",), (AwsAccount("012345678901", "arn:aws:iam::012345678901:role/scan"),), ("*",)),
            google=GoogleScan("1234", ("app-*",)),
            ignore=(IgnoreRule("aws_cloudwatch_log_group", "made by the service", "/aws/lambda/*"),),
        ),
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}", "null", "scan:\nowner:\nretention:\n"])
def test_what_is_not_said_has_its_default(text: str) -> None:
    config = parse_config(text)
    assert config == Config()
    assert config.retention.default == timedelta(days=14)
    assert config.consistency_grace == timedelta(minutes=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("engine: terraform\non_gpa: block\n", "f.yaml:2: on_gpa: unknown key; did you mean on_gap?"),
        ("on_gap: maybe\n", "f.yaml:1: on_gap: must be one of reconcile, block, ignore"),
        ("\n\nconsistency_grace: 2 minutes\n", "f.yaml:3: consistency_grace: is not a duration"),
        ("consistency_grace: 120\n", "f.yaml:1: consistency_grace: is not a duration"),
        ("consistency_grace: 999999999d999999999d\n", "f.yaml:1: consistency_grace: is too long"),
        ("retention:\n  default: 91d\n  max: 90d\n", "f.yaml:1: retention: default is longer than max"),
        ("retention: 14d\n", "f.yaml:1: retention: must be a mapping"),
        ("scan:\n  aws:\n    region: [eu-west-1]\n", "f.yaml:3: scan.aws.region: unknown key; did you mean regions?"),
        ('scan: {google: {projects: [""]}}\n', "f.yaml:1: scan.google: projects: '' is no id of a project"),
        ('scan: {google: {projects: ["1001"]}}\n', "f.yaml:1: scan.google: projects: '1001' is no id of a project"),
        (
            "scan: {google: {projects: [projects/app]}}\n",
            "f.yaml:1: scan.google: projects: 'projects/app' is no id of a project",
        ),
        (
            "scan: {google: {projects: [app-*, ../x]}}\n",
            "f.yaml:1: scan.google: projects: '../x' is no id of a project",
        ),
        ("scan:\n  aws:\n    regions: eu-west-1\n", "f.yaml:3: scan.aws.regions: must be a list"),
        ("scan:\n  aws: {types: []}\n", "f.yaml:2: scan.aws: types is empty, with which a scan finds nothing"),
        ("scan:\n  stacks:\n  - a\n  - [b]\n", "f.yaml:4: scan.stacks[1]: must be text"),
        ("scan:\n  stacks:\n  -\n", "f.yaml:3: scan.stacks[0]: must be text"),
        ("scan: {aws: {accounts: [{id: 12}]}}\n", "f.yaml:1: scan.aws.accounts[0]: id is not an account id"),
        ("scan:\n  ignore:\n  - type: a\n    name: b\n", "f.yaml:3: scan.ignore[0].reason: is missing"),
        ("scan:\n  ignore:\n  - reason: all of it\n", "f.yaml:3: scan.ignore[0].type: is missing"),
        ("scan:\n  ignore:\n  - {type: a, reason: ' '}\n", "f.yaml:3: scan.ignore[0]: reason is empty"),
        (
            "scan:\n  ignore:\n  - {type: a, reason: b, expires: soon}\n",
            "f.yaml:3: scan.ignore[0].expires: must be a day",
        ),
        (
            "scan:\n  ignore:\n  - {type: a, reason: b, younger_than: 5}\n",
            "f.yaml:3: scan.ignore[0].younger_than: is not a",
        ),
        ("providers:\n  aws: {assume_role: {role_arn: x}}\n", "f.yaml:2: providers.aws.assume_role: must be text"),
        ("providers:\n  aws:\n", "f.yaml:2: providers.aws: must be a mapping"),
        ("records: s3\n", "f.yaml:1: records is neither beside-state nor the URL of a store"),
        ("owner: a\nowner: b\n", "f.yaml:2: owner: is given twice, first in line 1"),
        ("? [a]\n: b\n", "f.yaml:1: a key must be text"),
        ("- a\n", "f.yaml:1: must be a mapping"),
        ("just words\n", "f.yaml:1: must be a mapping"),
        ("owner: a\n  b: c\n", "f.yaml:2: is not YAML: mapping values are not allowed here"),
        ("owner: [a\nrecords: b\n", "f.yaml:2: is not YAML"),
        ("owner: a\n---\nowner: b\n", "f.yaml:2: is not YAML: but found another document"),
        ("owner: a\nengine: \x07\n", "f.yaml:2: has a character that YAML does not allow"),
        ("scan:\n  stacks: &a [*a]\n", "f.yaml:2: scan.stacks"),
        ("[" * 5000, "f.yaml:1: is not YAML, or is nested too deeply"),
        ('"a\\e[31m\\n": 1\n', "f.yaml:1: a [31m : unknown key"),
    ],
)
def test_a_mistake_is_told_in_one_line_with_file_line_and_key(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "f.yaml")
    assert caught.value.what.startswith(message)
    assert (caught.value.what + caught.value.advice).isprintable()
    assert caught.value.exit_code == 1


def test_a_few_lines_that_mean_a_billion_values_are_refused_soon() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(ConfigError, match="too large"):
        parse_config("\n".join(lines))


def test_an_alias_is_read_as_what_it_stands_for() -> None:
    config = parse_config("providers:\n  aws: &aws {region: eu-west-1}\n  aws.b: *aws\n")
    assert config.providers["aws.b"] == {"region": "eu-west-1"}


@settings(deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="ab:-[]{}&*#\n ,'\"|>?!%@<", max_size=40))
def test_arbitrary_text_is_a_config_or_a_config_error(text: str) -> None:
    try:
        parse_config(text)
    except ConfigError as error:
        assert error.what.isprintable()


def test_no_provider_setting_is_shown_with_the_config() -> None:
    assert "hunter2" not in repr(parse_config("providers: {aws: {secret_key: hunter2}}"))


def test_the_nearest_file_upwards_is_found(tmp_path: Path) -> None:
    stack = tmp_path / "infra" / "stack"
    stack.mkdir(parents=True)
    (stack / "tfguard.yaml").mkdir()
    (tmp_path / "tfguard.yaml").write_text("owner: far\n")
    assert find_config(stack) == tmp_path / "tfguard.yaml"
    (tmp_path / "infra" / "tfguard.yaml").write_text("owner: near\n")
    found = find_config(stack)
    assert found == tmp_path / "infra" / "tfguard.yaml"
    assert load_config(found).owner == "near"


def test_no_file_is_none(tmp_path: Path) -> None:
    assert find_config(tmp_path / "not" / "there") is None


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "tfguard.yaml")
    (tmp_path / "tfguard.yaml").write_bytes(b"owner: \xff\n")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        load_config(tmp_path / "tfguard.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30s", timedelta(seconds=30)),
        ("2m", timedelta(minutes=2)),
        ("1h", timedelta(hours=1)),
        ("14d", timedelta(days=14)),
        ("1h30m", timedelta(minutes=90)),
        ("0s", timedelta()),
    ],
)
def test_a_duration_is_read_and_written(text: str, value: timedelta) -> None:
    assert parse_duration(text) == value
    assert parse_duration(format_duration(value)) == value


@pytest.mark.parametrize("text", ["", "2", "m", "-2m", "2 m", "1.5h", "2M", "٣m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)
