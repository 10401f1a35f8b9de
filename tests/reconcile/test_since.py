"""What became of earlier findings: what another scope, another look at the same time or an unknown account hides."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage, Gap
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import ScanResult, ScanScope, Shard
from tfguard.model.since import Changes, KeptScan
from tfguard.reconcile.scopes import covers, scope_of, united
from tfguard.reconcile.since import changes_since
from tfguard.report.metrics import prometheus_text, scan_samples
from tfguard.schemas.scan import kept_document, read_kept

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ONE, OTHER = "111111111111", "222222222222"
QUEUE, VPC, ROLE = "aws_sqs_queue", "aws_vpc", "aws_iam_role"
EVERYTHING: dict[str, Any] = {
    "accounts": (ONE, OTHER),
    "regions": ("eu-west-1", "us-east-1"),
    "types": (QUEUE, VPC, ROLE),
    "states": ("/infra", "s3://states/"),
}


def stray(name: str, kind: str = QUEUE, account: str | None = ONE, region: str = "eu-west-1") -> CloudObject:
    return CloudObject("aws", account, region, kind, name, name)


def found(one: CloudObject | None, verdict: Verdict = Verdict.UNMANAGED, address: str | None = None) -> Finding:
    return Finding(one.finding_id if one else "o-lost", verdict, Confidence.CERTAIN, address, None, one)


def scanned(
    *objects: CloudObject | Finding,
    day: int = 0,
    accounts: Collection[str | None] = (ONE,),
    regions: Collection[str] = ("eu-west-1",),
    types: Collection[str] = (QUEUE,),
    states: Collection[str] = ("/infra",),
    denied: Collection[str] = (),
) -> ScanResult:
    """A scan of half an hour on a day; `None` among the accounts are credentials of which nobody knows the account."""
    shards = [
        Shard(
            "aws",
            ProviderConfig("aws", "x/aws", {"allowed_account_ids.0": account} if account else {}),
            region,
            "s",
            (kind,),
        )
        for account in accounts
        for kind in types
        for region in ((None,) if kind == ROLE else regions)
    ]
    complete = {
        ("aws", shard.provider.settings.get("allowed_account_ids.0"), shard.region or "global", kind)
        for shard in shards
        for kind in shard.types
        if kind not in denied and None not in accounts
    }
    end = NOW + timedelta(days=day)
    whys = (*denied, *("GetCallerIdentity" for account in accounts if account is None))
    return ScanResult(
        findings=tuple(one if isinstance(one, Finding) else found(one) for one in objects),
        coverage=Coverage(1, len(types), tuple(Gap(why, "AccessDenied") for why in whys)),
        summary={},
        rules={},
        started_at=end - timedelta(minutes=30),
        ended_at=end,
        complete_listings=frozenset(complete),
        scope=scope_of(shards, tuple(states), complete),
    )


def kept(result: ScanResult, last: KeptScan | None = None) -> KeptScan:
    """What is kept of a scan, over what is kept already."""
    return read_kept(kept_document(result, changes_since(last, result)), "kept.json")


def names(findings: Collection[object]) -> list[str]:
    return sorted(one.object.id for one in findings if one.object)  # type: ignore[attr-defined]


def said_complete(file: KeptScan) -> bool:
    return "tfguard_complete 1\n" in prometheus_text(scan_samples(file, NOW))


NARROWER: list[dict[str, Any]] = [
    {"types": (QUEUE,)},
    {"regions": ("eu-west-1",)},
    {"accounts": (ONE,)},
    {"states": ("/infra",)},
]


@pytest.mark.parametrize("narrower", NARROWER, ids=str)
@pytest.mark.parametrize("denied", [(), (VPC,)], ids=["whole before", "incomplete before"])
def test_a_narrower_scan_never_makes_what_is_kept_look_whole_until_one_of_the_whole_scope_is_complete(
    narrower: dict[str, Any], denied: Collection[str]
) -> None:
    strays = [stray("v", VPC), stray("q"), stray("r", ROLE, OTHER, "global"), stray("far", QUEUE, ONE, "us-east-1")]
    file = kept(scanned(*strays, denied=denied, **EVERYTHING))
    assert said_complete(file) is not bool(denied)
    for day in (1, 2):
        file = kept(scanned(stray("q"), day=day, **{**EVERYTHING, **narrower}), file)
        assert not said_complete(file)
        assert set(denied) <= {gap.scope for gap in file.coverage.gaps}
        assert len([gap for gap in file.coverage.gaps if "did not look at" in gap.reason]) == 1
    file = kept(scanned(stray("q"), day=3, denied=(ROLE,), **EVERYTHING), file)
    assert [gap.scope for gap in file.coverage.gaps] == [ROLE]
    file = kept(scanned(stray("q"), day=4, **EVERYTHING), file)
    assert (said_complete(file), names(file.findings)) == (True, ["q"])


def test_what_lies_outside_of_a_narrower_scan_is_kept_with_its_dates() -> None:
    lost = found(None, Verdict.MISSING, "aws_sqs_queue.a")
    whole = scanned(stray("a"), stray("b"), stray("v", VPC), stray("far", region="us-east-1"), lost, **EVERYTHING)
    file = kept(whole)
    narrow = scanned(stray("b"), day=1)
    changes = changes_since(file, narrow)
    assert (names(changes.gone), names(changes.unseen)) == (["a"], ["far", "v"])
    assert "o-lost" in {one.id for one in changes.unseen}  # nobody says in which region it was
    file = kept(narrow, file)
    assert names(file.findings) == ["b", "far", "v"]
    assert {one.first_seen for one in file.findings} == {NOW}


def test_a_scan_with_other_states_makes_neither_look_whole() -> None:
    file = kept(scanned(day=1, states=("/other",)), kept(scanned()))
    assert not said_complete(file)
    assert not said_complete(kept(scanned(day=2), file))
    assert said_complete(kept(scanned(day=2, states=("/infra", "/other")), file))


def test_a_scan_that_cannot_tell_its_account_has_that_gap_alone_and_forgets_no_account() -> None:
    file = kept(scanned(stray("q")))
    denied = kept(scanned(day=1, accounts=(None,)), file)
    assert [gap.scope for gap in denied.coverage.gaps] == ["GetCallerIdentity"]
    assert said_complete(kept(scanned(day=2), denied))
    assert not said_complete(kept(scanned(day=2, accounts=(OTHER,)), denied))
    # Credentials that nobody asked whose they are (skip_requesting_account_id) may be those of any account.
    unasked = scanned(day=1, accounts=(None,))
    assert not said_complete(kept(replace(unasked, coverage=Coverage(1, 1)), file))


def test_what_is_not_covered_is_named_shortly() -> None:
    file = kept(scanned(**EVERYTHING))
    (gap,) = kept(scanned(**{**EVERYTHING, "types": (QUEUE,)}), file).coverage.gaps
    assert gap.reason.startswith(
        f"the last scan did not look at aws {ONE} eu-west-1 (1 type), aws {ONE} global (1 type)"
    )
    assert "and 3 more" in gap.reason
    (gap,) = kept(scanned(**{**EVERYTHING, "states": ("/infra",)}), file).coverage.gaps
    assert "the states of s3://states/" in gap.reason


def test_a_wider_scan_that_is_complete_is_all_there_is_to_say() -> None:
    file = kept(scanned(stray("q"), denied=(QUEUE,)))
    file = kept(scanned(day=1, **EVERYTHING), file)
    assert said_complete(file)
    assert not said_complete(kept(scanned(day=2), file))


def test_a_scope_is_its_lists_and_survives_its_file() -> None:
    one, other = scanned(**EVERYTHING), scanned(types=("aws_eip",), states=("/other",))
    assert kept(one).scope == one.scope
    both = united(one.scope, other.scope)
    assert covers(both, one.scope) and covers(both, other.scope)
    assert not covers(one.scope, other.scope) and not covers(one.scope, both)
    assert covers(one.scope, ScanScope())


def test_a_scan_that_ended_while_another_went_on_loses_nothing_to_it() -> None:
    """Which of them looked later nobody can tell."""
    before = kept(scanned(stray("old"), day=0))
    quick = scanned(stray("old"), stray("new"), day=1)
    slow = replace(scanned(stray("old"), stray("late"), day=1), ended_at=quick.ended_at + timedelta(minutes=5))
    file = kept(slow, kept(quick, before))
    assert names(file.findings) == ["late", "new", "old"]
    assert names(changes_since(kept(quick, before), slow).gone) == []
    # The next scan that has seen both end says what is true.
    assert names(kept(scanned(stray("old"), day=2), file).findings) == ["old"]


def test_a_copy_without_an_account_is_the_same_object_once_the_account_is_known() -> None:
    file = kept(scanned(stray("q")))
    unproved = scanned(stray("q", account=None), day=1, accounts=(None,))
    changes = changes_since(file, unproved)
    assert (len(changes.still), changes.new, changes.unseen, changes.gone) == (1, (), (), ())
    file = kept(unproved, file)
    assert [(one.object and one.object.account, one.first_seen) for one in file.findings] == [(None, NOW)]
    known = scanned(stray("q"), day=2)
    changes = changes_since(file, known)
    assert (len(changes.still), changes.new, changes.unseen, changes.gone) == (1, (), (), ())
    file = kept(known, file)
    assert [(one.object and one.object.account, one.first_seen) for one in file.findings] == [(ONE, NOW)]


def test_a_copy_without_an_account_beside_the_real_one_is_no_second_finding() -> None:
    copies = kept(scanned(stray("q"), stray("q", account=None)))
    assert names(kept(scanned(stray("q"), day=1), copies).findings) == ["q"]


def test_a_copy_without_an_account_is_gone_once_every_account_was_looked_at() -> None:
    file = kept(scanned(stray("q", account=None), accounts=(None,)))
    assert names(changes_since(file, scanned(day=1)).gone) == ["q"]
    assert names(changes_since(file, scanned(day=1, denied=(QUEUE,))).unseen) == ["q"]
    assert names(changes_since(file, scanned(day=1, accounts=(None,))).unseen) == ["q"]
    both = kept(scanned(stray("q", account=None), accounts=(ONE, OTHER)))
    assert names(changes_since(both, scanned(day=1)).unseen) == ["q"]  # it may be in the other one
    assert names(changes_since(both, scanned(day=1, accounts=(ONE, OTHER))).gone) == ["q"]


def test_of_the_same_name_in_two_accounts_none_is_lost_while_the_account_is_unknown() -> None:
    twins = kept(scanned(stray("q", account=ONE), stray("q", account=OTHER), accounts=(ONE, OTHER)))
    changes: Changes = changes_since(twins, scanned(stray("q", account=None), day=1, accounts=(None,)))
    assert names(changes.unseen) == ["q", "q"]
    one = kept(scanned(stray("q", account=None), accounts=(None,)))
    changes = changes_since(one, scanned(stray("q"), stray("q", account=OTHER), day=1, accounts=(ONE, OTHER)))
    assert (changes.unseen, changes.gone, len(changes.new)) == ((), (), 2)  # whose it was, nobody can say
