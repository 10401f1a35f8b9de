"""Which clouds a scan asks, and whom there: what tfguard.yaml and the command line say of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.cli.scan_google import google_notes
from tfguard.cli.scan_places import lists_left_out, scan_shards, scanned_provider
from tfguard.errors import UsageError
from tfguard.model.config import AwsScan, Config, GoogleScan, IgnoreRule, ScanConfig
from tfguard.model.inventory import CloudObject

CATALOG = load_catalog()
HERE: Mapping[str, Mapping[str, str]] = {"aws": {"region": "eu-west-1"}}
BOTH = Config(providers=HERE, scan=ScanConfig(aws=AwsScan(), google=GoogleScan(projects=("app-prod", "app-test"))))
TOPIC, QUEUE = "google_pubsub_topic", "aws_sqs_queue"


def keys(config: Config, types: Sequence[str] = (), accounts: Sequence[str] = ()) -> set[str]:
    """The provider configurations that a scan asks."""
    return {shard.provider.key for shard in scan_shards(config, CATALOG, (), types, accounts)}


def found(account: str | None) -> CloudObject:
    return CloudObject("google", account, "global", TOPIC, "t", "t")


@pytest.mark.parametrize(
    ("config", "types", "accounts", "expected"),
    [
        (Config(providers=HERE), (), (), {"aws"}),
        (Config(providers={**HERE, "google": {"project": "p"}}), (), (), {"aws", "google"}),
        (Config(providers=HERE), ("google_pubsub_*",), (), {"google"}),
        (Config(providers=HERE), (QUEUE, TOPIC), (), {"aws", "google"}),
        (Config(), (), ("app-prod",), {"google.app-prod"}),
        (Config(scan=ScanConfig(google=GoogleScan())), (), (), {"google"}),
        (BOTH, (), (), {"aws", "google.app-prod", "google.app-test"}),
        (BOTH, (TOPIC,), (), {"google.app-prod", "google.app-test"}),
        (BOTH, (), ("app-test",), {"google.app-test"}),
        (BOTH, (QUEUE,), (), {"aws"}),
        (Config(scan=ScanConfig(google=GoogleScan("123"))), (), (), {"google.organizations/123"}),
        (Config(scan=ScanConfig(google=GoogleScan("123"))), (), ("app",), {"google.app"}),
        (Config(scan=ScanConfig(google=GoogleScan(folders=("4",)))), (), (), {"google.folders/4"}),
    ],
)  # fmt: skip
def test_the_clouds_are_those_of_the_file_as_far_as_the_command_line_goes(
    config: Config, types: Sequence[str], accounts: Sequence[str], expected: set[str]
) -> None:
    assert keys(config, types, accounts) == expected


@pytest.mark.parametrize(
    ("config", "regions", "types", "accounts", "why"),
    [
        (BOTH, (), ("google_nothing",), (), "matches no type of the catalogue"),
        (Config(providers=HERE, scan=ScanConfig(aws=AwsScan())), (), (TOPIC,), (), "no type of AWS, which is scanned"),
        (BOTH, (), (), ("other",), "scan.google.projects leaves the project other out"),
        (BOTH, (), (), ("111111111111",), "scan.aws.accounts has no account 111111111111"),
        (BOTH, ("eu-west-1",), (TOPIC,), (), "none of the scanned clouds is asked by region"),
    ],
)
def test_what_nobody_would_look_at_is_refused(
    config: Config, regions: Sequence[str], types: Sequence[str], accounts: Sequence[str], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        scan_shards(config, CATALOG, regions, types, accounts)


def test_an_organization_is_asked_for_all_its_projects_and_a_project_for_itself_alone() -> None:
    base = {"project": "own", "compute_custom_endpoint": "http://x"}
    narrowed = Config(providers={"google": base}, scan=ScanConfig(google=GoogleScan("123", ("app-*",))))
    (wide,) = scan_shards(narrowed, CATALOG, (), (TOPIC,), ())
    assert wide.wide and wide.account is None and wide.region is None
    assert wide.provider.settings == {
        "compute_custom_endpoint": "http://x",
        "organization": "123",
        "projects.0": "app-*",
    }
    (one,) = scan_shards(narrowed, CATALOG, (), (TOPIC,), ("app-prod",))
    assert not one.wide and one.account == "app-prod"
    assert one.provider.settings == {**base, "project": "app-prod", "only_project": "true"}


def test_an_object_of_a_scan_is_asked_for_as_the_scan_does() -> None:
    asked = scanned_provider(BOTH)
    one = asked(found("app-test"))
    assert one is not None and one.settings["project"] == "app-test"
    assert asked(found("other")) is None and asked(found(None)) is None
    above = asked(found("organizations/1"))
    assert above is not None and "project" not in above.settings
    assert asked(CloudObject("azure", "x", "global", "azurerm_subnet", "t", "t")) is None


def test_rules_may_be_about_another_cloud_that_the_command_line_left_out() -> None:
    config = Config(
        providers=HERE, scan=ScanConfig(BOTH.scan.stacks, BOTH.scan.aws, BOTH.scan.google, (IgnoreRule("*", "r"),))
    )
    options: tuple[Sequence[str], Sequence[str], Sequence[str]] = ((), (TOPIC,), ())
    left = lists_left_out(config, CATALOG, scan_shards(config, CATALOG, *options), options, exported=False)
    assert ("google", "app-prod", "global", "google_compute_network") in left
    assert any(cloud == "aws" and kind == QUEUE for cloud, _, _, kind in left)
    assert not any(kind == TOPIC for *_, kind in left)


def test_a_cloud_that_nobody_named_is_neither_asked_nor_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    config = Config(providers={"google": {"project": "p"}}, scan=ScanConfig(ignore=(IgnoreRule("*", "r"),)))
    options: tuple[Sequence[str], Sequence[str], Sequence[str]] = ((), (TOPIC,), ())
    left = lists_left_out(config, CATALOG, scan_shards(config, CATALOG, *options), options, exported=False)
    assert {cloud for cloud, *_ in left} == {"google"}
    for nobody_named in (config, Config()):
        with pytest.raises(UsageError) as refused:
            scan_shards(nobody_named, CATALOG, (), (), ())
        assert "scan: {google: {}}" in refused.value.advice


@pytest.mark.parametrize(
    ("scanned", "noted"),
    [
        (GoogleScan(projects=("app-*",)), True),
        (GoogleScan(projects=("app-prod",)), False),
        (GoogleScan("123", projects=("app-*",)), False),
        (GoogleScan(folders=("4",), projects=("app-*",)), False),
        (GoogleScan("123"), False),
    ],
)
def test_that_patterns_alone_mean_what_is_visible_is_noted(scanned: GoogleScan, noted: bool) -> None:
    notes = google_notes(scan_shards(Config(scan=ScanConfig(google=scanned)), CATALOG, (), (), ()))
    assert bool(notes) is noted
