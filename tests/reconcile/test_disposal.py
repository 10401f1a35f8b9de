"""What may be deleted, in which order, and what hangs on it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.retention_tags import OWNER, UNTIL
from tfguard.reconcile.disposal import (
    DestroyRules,
    changed_since,
    dependant_types,
    hangs_on,
    in_order,
    refusal,
)

NOW = datetime(2025, 3, 1, tzinfo=UTC)
ACCOUNT = "123456789012"
STRAY = (Verdict.ORPHANED, Verdict.DUPLICATED, Verdict.UNMANAGED)
RULES = DestroyRules(stateful=False, grace=timedelta(minutes=2))
QUEUE = CloudObject(
    "aws", ACCOUNT, "eu-west-1", "aws_sqs_queue", "https://q", "https://q", name="jobs", tags={"a": "b"}
)


def finding(verdict: Verdict = Verdict.ORPHANED, found: CloudObject = QUEUE, **changes: Any) -> Finding:
    return replace(Finding(found.finding_id, verdict, Confidence.CERTAIN, None, None, found), **changes)


def made(type_: str, id_: str, **identity: str) -> CloudObject:
    return CloudObject("aws", ACCOUNT, "eu-west-1", type_, id_, id_, identity={"id": id_, **identity})


VPC = made("aws_vpc", "vpc-1")
SUBNET = made("aws_subnet", "subnet-1", vpc_id="vpc-1")
GROUP = made("aws_security_group", "sg-1", vpc_id="vpc-1")


@pytest.mark.parametrize("verdict", STRAY)
def test_what_is_known_to_be_stray_may_go(verdict: Verdict) -> None:
    assert refusal(finding(verdict), QUEUE, RULES, NOW) is None


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict not in STRAY])
def test_nothing_else_may(verdict: Verdict) -> None:
    told = refusal(finding(verdict), QUEUE, RULES, NOW)
    assert told is not None
    assert verdict.value in told.what


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"account": None}, "the account of"),
        ({"owner": "999999999999"}, "belongs to the account 999999999999"),
        ({"stateful": True}, "holds data"),
        ({"created_at": NOW - timedelta(seconds=119)}, "less than the consistency grace"),
    ],
)
def test_what_speaks_against_a_deletion_is_named(changes: dict[str, Any], said: str) -> None:
    told = refusal(finding(), replace(QUEUE, **changes), RULES, NOW)
    assert told is not None
    assert said in told.what


def test_what_holds_data_goes_where_that_was_said_and_what_is_old_enough_goes() -> None:
    old = replace(QUEUE, stateful=True, created_at=NOW - timedelta(seconds=120))
    assert refusal(finding(), old, replace(RULES, stateful=True), NOW) is None


def test_an_account_that_is_not_configured_is_refused() -> None:
    assert refusal(finding(), QUEUE, replace(RULES, accounts={"aws": (ACCOUNT,), "google": ("app-*",)}), NOW) is None
    told = refusal(finding(), QUEUE, replace(RULES, accounts={"aws": ("999999999999",)}), NOW)
    assert told is not None
    assert "not a configured one" in told.what


def test_what_is_kept_is_not_deleted_until_it_is_released() -> None:
    kept = Disposition("o-1", DispositionKind.RETAIN, NOW, "me", "the audit", "01J", until=NOW + timedelta(days=1))
    told = refusal(finding(disposition=kept), QUEUE, RULES, NOW)
    assert told is not None
    assert told.advice == f"end the retention first: `tfguard orphans release {QUEUE.finding_id} --reason TEXT`"
    gone = refusal(finding(disposition=replace(kept, kind=DispositionKind.IMPORT)), QUEUE, RULES, NOW)
    assert gone is not None
    assert "retention" not in gone.advice


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ()),
        ({"created_at": NOW}, ("creation time",)),
        ({"tags": {"a": "c"}}, ("tags",)),
        ({"arn": "arn:other", "name": "other"}, ("ARN", "name")),
    ],
)
def test_what_has_changed_since_it_was_found_is_told(changes: dict[str, Any], said: tuple[str, ...]) -> None:
    then = replace(QUEUE, created_at=NOW - timedelta(days=1), arn="arn:q")
    assert changed_since(finding(found=then), replace(then, **changes)) == said


def test_what_one_side_does_not_tell_is_no_change() -> None:
    assert changed_since(finding(found=QUEUE), replace(QUEUE, created_at=NOW, arn="arn:q", tags={})) == ()


def test_an_id_that_only_repeats_the_import_id_as_the_ledger_has_it_is_no_change() -> None:
    told = replace(QUEUE, type="aws_db_instance", id="db", import_id="db", tags={})
    listed = replace(told, id="db-ABC", identity={"identifier": "db"})
    assert changed_since(finding(found=told), listed) == ()
    assert changed_since(finding(found=replace(told, id="db-OLD")), listed) == ("id",)
    assert changed_since(finding(found=replace(listed, id="db")), listed) == ("id",)


@pytest.mark.parametrize(("then", "now"), [({}, {"keep": "yes"}), ({"keep": "yes"}, {}), ({"a": "b"}, {"c": "d"})])
def test_a_tag_that_was_put_on_or_taken_away_is_a_change_where_a_list_told_of_it(
    then: dict[str, str], now: dict[str, str]
) -> None:
    listed = replace(QUEUE, identity={"url": "https://q"}, tags=then)
    assert changed_since(finding(found=listed), replace(listed, tags=now)) == ("tags",)
    assert changed_since(finding(found=listed), replace(listed, tags=then | {UNTIL: "x"})) == ()


@pytest.mark.parametrize(
    ("until", "kept"),
    [
        ("2025-03-01T00:00:01Z", True),
        ("2025-02-28T23:59:59Z", False),
        ("2025-03-02", True),
        ("2025-02-28", False),
        ("for ever", True),
    ],
)
def test_what_a_tag_says_is_kept_does_not_go_before_its_date_unless_the_ledger_released_it(
    until: str, kept: bool
) -> None:
    tagged = replace(QUEUE, tags={UNTIL: until, OWNER: "audit"})
    told = refusal(finding(), tagged, RULES, NOW)
    assert (told is not None and "by audit" in told.what) == kept
    assert refusal(finding(), tagged, RULES, NOW, released=True) is None


def test_a_vpc_has_dependants_of_many_types() -> None:
    catalog = load_catalog()
    vpc, role = catalog.get("aws_vpc"), catalog.get("aws_iam_role")
    assert vpc is not None
    assert role is not None
    assert {"aws_subnet", "aws_security_group", "aws_network_interface"} <= set(dependant_types(catalog, vpc))
    assert {"aws_iam_role_policy", "aws_iam_role_policy_attachment"} <= set(dependant_types(catalog, role))


def test_what_hangs_on_another_comes_first_whatever_the_order() -> None:
    catalog = load_catalog()
    assert hangs_on(catalog, SUBNET, VPC)
    assert not hangs_on(catalog, VPC, SUBNET)
    assert not hangs_on(catalog, replace(SUBNET, identity={"vpc_id": "vpc-2"}), VPC)
    assert not hangs_on(catalog, replace(SUBNET, account="999999999999"), VPC)
    for given in permutations([VPC, SUBNET, GROUP]):
        ordered = list(in_order(catalog, given))
        assert sorted(one.id for one in ordered) == sorted(one.id for one in given)
        assert ordered[-1] == VPC


def test_a_circle_is_left_as_it_is_given() -> None:
    catalog = load_catalog()
    one = made("aws_vpc", "vpc-1", subnet_id="subnet-1")
    assert list(in_order(catalog, [one, SUBNET])) in ([one, SUBNET], [SUBNET, one])
