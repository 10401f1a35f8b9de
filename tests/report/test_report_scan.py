"""A scan's findings as a person and as other programs read them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tfguard.cli.scan_formats import SCAN_FORMATS
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage, Gap
from tfguard.model.operation import Stack
from tfguard.model.scan import ScanPlace, ScanResult
from tfguard.model.since import Changes
from tfguard.reconcile.since import changes_since
from tfguard.report.metrics import prometheus_text, scan_samples
from tfguard.report.paint import Paint
from tfguard.report.scan import in_order, scan_import_blocks, scan_text
from tfguard.schemas.scan import kept_document, read_kept, scan_document

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAIN = Paint()


def stray(name: str, kind: str = "aws_sqs_queue", *, stateful: bool = False) -> CloudObject:
    return CloudObject("aws", "123456789012", "eu-west-1", kind, name, name, name=name, stateful=stateful)


def finding(found: CloudObject | None, verdict: Verdict = Verdict.UNMANAGED, **more: Any) -> Finding:
    evidence = (Evidence(EvidenceKind.UNEXPLAINED, "nobody knows it"),)
    return Finding(
        id=more.pop("id", found.finding_id if found else "o-0"),
        verdict=verdict,
        confidence=more.pop("confidence", Confidence.CERTAIN),
        address=more.pop("address", None),
        operation_id=None,
        object=found,
        evidence=evidence,
    )


def result(*findings: Finding, gaps: tuple[Gap, ...] = (), at: datetime = NOW, **more: Any) -> ScanResult:
    kinds = {one.object.type for one in findings if one.object} | {"aws_sqs_queue"}
    complete = {("aws", "123456789012", "eu-west-1", kind) for kind in kinds} - {
        ("aws", *gap.scope.split()[1:]) for gap in gaps
    }
    return ScanResult(
        findings=findings,
        coverage=Coverage(3, 61, gaps),
        summary={"managed": 7, "ignored": 2},
        rules={"catalogue: default VPC": 2},
        started_at=at - timedelta(seconds=90),
        ended_at=at,
        complete_listings=frozenset(complete),
        **more,
    )


def test_orphans_come_first_then_the_surest_then_what_costs_most() -> None:
    findings = [
        finding(stray("c", "aws_iam_role")),
        finding(stray("b", "aws_instance")),
        finding(stray("a", "aws_s3_bucket", stateful=True)),
        finding(stray("d", "aws_iam_role"), Verdict.ORPHANED, confidence=Confidence.POSSIBLE),
        finding(stray("e", "aws_iam_role"), Verdict.ORPHANED),
        finding(None, Verdict.MISSING, address="aws_vpc.a"),
    ]
    names = [one.object.name if one.object else None for one in in_order(findings, {"aws_instance"})]
    assert names == ["e", "d", "a", "b", "c", None]


def test_the_last_line_tells_how_far_it_reached_and_gaps_stand_before_it() -> None:
    gaps = (
        Gap("aws 123456789012 eu-west-1 aws_sns_topic", "AccessDenied on ListTopics"),
        Gap("aws 123456789012 eu-west-1 aws_sns_topic_subscription", "AccessDenied on ListTopics"),
        Gap("state s3://b/k", "it is cut or not JSON"),
    )
    lines = scan_text(result(gaps=gaps), (), None, PLAIN).splitlines()
    assert lines[-1] == "coverage: incomplete, 3 gaps (3 states, 61 types)"
    assert lines[-3:-1] == [
        "2 gaps: aws 123456789012 eu-west-1: aws_sns_topic, aws_sns_topic_subscription: AccessDenied on ListTopics",
        "gap: state s3://b/k: it is cut or not JSON",
    ]
    assert scan_text(result(), (), None, PLAIN).splitlines()[-1] == "coverage: complete (3 states, 61 types)"


def test_a_name_with_a_line_break_in_it_tells_of_no_other_coverage_and_is_no_configuration() -> None:
    forged = "a\ncoverage: complete (3 states, 61 types)\nresource {}"
    whole = result(finding(stray(forged)), gaps=(Gap(f"export {forged}", forged),))
    lines = scan_text(whole, whole.findings, None, PLAIN).splitlines()
    assert [line for line in lines if line.startswith("coverage")] == [lines[-1]]
    assert lines[-1].startswith("coverage: incomplete, 1 gap")
    blocks = scan_import_blocks(whole, whole.findings).splitlines()
    assert not [line for line in blocks if line.startswith(("resource", "coverage"))]


def test_every_format_shows_every_finding_and_what_is_left_out() -> None:
    one, other = finding(stray("a")), finding(stray("b"), Verdict.ORPHANED, address="aws_sqs_queue.b")
    whole = result(one, other, unused_rules=("scan.ignore[0]: old",), expired_rules=("scan.ignore[1]: older",))
    shown = in_order(whole.findings, ())
    for name, form in SCAN_FORMATS.items():
        text = form.write(whole, shown, None, PLAIN)
        assert text.endswith("\n")
        assert form.tells_coverage is ("coverage" in text)
        assert "a" in text
        assert other.id in text or name == "import-blocks"
    text = scan_text(whole, shown, None, PLAIN)
    assert "2 left out: catalogue: default VPC" in text
    assert "unused: scan.ignore[0]: old" in text
    assert "expired, and not used any more: scan.ignore[1]: older" in text
    rows = list(csv.DictReader(io.StringIO(SCAN_FORMATS["csv"].write(whole, shown, None, PLAIN))))
    assert [row["verdict"] for row in rows] == ["orphaned", "unmanaged"]


def test_import_blocks_propose_an_address_that_nothing_else_has() -> None:
    twins = [finding(stray("my.app", "aws_vpc"), id="o-1"), finding(stray("my/app", "aws_vpc"), id="o-2")]
    known = finding(stray("x", "aws_vpc"), Verdict.ORPHANED, address="aws_vpc.my_app", id="o-3")
    text = scan_import_blocks(result(), [known, *twins])
    targets = [line.split("= ")[1] for line in text.splitlines() if line.strip().startswith("to ")]
    assert targets == ["aws_vpc.my_app", "aws_vpc.my_app_2", "aws_vpc.my_app_3"]
    assert all(line.startswith("#") for line in text.splitlines()[-1:])


def test_what_is_new_gone_and_still_there_is_told() -> None:
    first = result(finding(stray("a")), finding(stray("b")))
    kept = read_kept(kept_document(first, changes_since(None, first)), "f")
    second = result(finding(stray("b")), finding(stray("c")), at=NOW + timedelta(days=1))
    changes = changes_since(kept, second)
    assert changes.new == (stray("c").finding_id,)
    assert changes.still == (stray("b").finding_id,)
    assert [one.id for one in changes.gone] == [stray("a").finding_id]
    assert changes.first_seen == {stray("b").finding_id: NOW, stray("c").finding_id: NOW + timedelta(days=1)}
    text = scan_text(second, second.findings, changes, PLAIN)
    assert "since 2026-03-01T12:00:00Z: 1 new, 1 gone, 1 still there" in text
    assert f"gone: {stray('a').finding_id}" in text


def test_what_is_kept_says_why_as_the_scan_did() -> None:
    one = result(finding(stray("a")))
    (kept,) = read_kept(kept_document(one, changes_since(None, one)), "f").findings
    assert kept.evidence == one.findings[0].evidence != ()


def test_where_nobody_looked_nothing_is_gone_and_it_is_kept() -> None:
    first = result(finding(stray("a")))
    kept = read_kept(kept_document(first, changes_since(None, first)), "f")
    denied = result(gaps=(Gap("aws 123456789012 eu-west-1 aws_sqs_queue", "AccessDenied"),), at=NOW + timedelta(days=1))
    changes = changes_since(kept, denied)
    assert (changes.gone, [one.id for one in changes.unseen]) == ((), [stray("a").finding_id])
    again = read_kept(kept_document(denied, changes), "f")
    assert [(one.id, one.first_seen) for one in again.findings] == [(stray("a").finding_id, NOW)]


def test_what_nobody_looks_at_any_more_is_kept_for_a_while_and_then_told_once_and_dropped() -> None:
    first = result(finding(stray("a")), finding(stray("b")))
    kept = read_kept(kept_document(first, changes_since(None, first)), "f")
    elsewhere = {"gaps": (), "at": NOW + timedelta(days=20)}
    unlooked = replace(result(**elsewhere), complete_listings=frozenset())
    changes = changes_since(kept, unlooked)
    assert (len(changes.unseen), changes.dropped) == (2, ())
    kept = read_kept(kept_document(unlooked, changes), "f")
    # One is told of again: its time begins anew.
    again = replace(result(finding(stray("b")), at=NOW + timedelta(days=29)), complete_listings=frozenset())
    kept = read_kept(kept_document(again, changes_since(kept, again)), "f")
    late = replace(result(at=NOW + timedelta(days=31)), complete_listings=frozenset())
    changes = changes_since(kept, late)
    assert [one.id for one in changes.unseen] == [stray("b").finding_id]
    assert [one.id for one in changes.dropped] == [stray("a").finding_id]
    assert f"not looked at for 30 days, and not kept: {stray('a').finding_id}" in scan_text(late, (), changes, PLAIN)
    told = scan_document(late, (), changes)["since"]
    assert isinstance(told, dict) and [one["id"] for one in told["dropped"]] == [stray("a").finding_id]
    kept = read_kept(kept_document(late, changes), "f")
    assert [(one.id, one.first_seen) for one in kept.findings] == [(stray("b").finding_id, NOW)]


@pytest.mark.parametrize(
    ("listed", "complete", "gone"),
    [
        ({"aws_vpc"}, True, True),
        ({"aws_vpc"}, False, False),
        ({"aws_sqs_queue"}, True, False),  # nobody looked at VPCs
        (set(), True, False),  # an export: it proves no absence
    ],
)
def test_what_was_missing_is_gone_only_where_its_type_was_looked_for(
    listed: set[str], complete: bool, gone: bool
) -> None:
    first = result(finding(None, Verdict.MISSING, address='module.a["x"].aws_default_vpc.main'))
    kept = read_kept(kept_document(first, changes_since(None, first)), "f")
    second = replace(
        result(gaps=() if complete else (Gap("state a", "cut"),), at=NOW + timedelta(days=1)),
        complete_listings=frozenset(("aws", "123456789012", "eu-west-1", kind) for kind in listed),
    )
    changes = changes_since(kept, second, {"aws_default_vpc": "aws_vpc"}.__getitem__)
    assert (len(changes.gone), len(changes.unseen)) == ((1, 0) if gone else (0, 1))


def test_the_document_tells_what_a_scan_is_asked_for() -> None:
    whole = result(finding(stray("a")))
    document = scan_document(whole, whole.findings, Changes(None, new=("o-1",)))
    assert document["schema"] == "tfguard.findings/v1"
    told = json.loads(json.dumps(document))
    assert told["scan"]["started_at"] == "2026-03-01T11:58:30Z"
    assert told["since"]["new"] == ["o-1"]
    assert "since" not in scan_document(whole, whole.findings)


def test_metrics_count_and_date_only_what_waits_for_a_decision() -> None:
    old = result(finding(stray("kept"), Verdict.RETAINED), finding(stray("rule"), Verdict.IGNORED))
    kept = read_kept(kept_document(old, changes_since(None, old)), "f")
    text = prometheus_text(scan_samples(kept, NOW + timedelta(days=20)))
    assert "tfguard_findings{" not in text
    assert "tfguard_oldest_finding_age_seconds 0\n" in text
    waiting = (Verdict.ORPHANED, Verdict.DUPLICATED, Verdict.UNMANAGED, Verdict.UNKNOWN, Verdict.MISSING)
    for verdict in Verdict:
        one = result(finding(stray("a"), verdict))
        kept = read_kept(kept_document(one, changes_since(None, one)), "f")
        text = prometheus_text(scan_samples(kept, NOW))
        assert (f'tfguard_findings{{verdict="{verdict.value}"' in text) is (verdict in waiting)


def test_metrics_count_findings_by_verdict_type_and_account() -> None:
    whole = result(
        finding(stray("a")), finding(stray("b")), finding(stray('"\\\n', "x"), Verdict.ORPHANED), gaps=(Gap("s", "r"),)
    )
    kept = read_kept(kept_document(whole, changes_since(None, whole)), "f")
    text = prometheus_text(scan_samples(kept, NOW + timedelta(hours=1)))
    assert 'tfguard_findings{verdict="unmanaged",type="aws_sqs_queue",account="123456789012"} 2\n' in text
    assert "tfguard_gaps 1\n" in text
    assert "tfguard_complete 0\n" in text
    assert "tfguard_oldest_finding_age_seconds 3600\n" in text
    assert "tfguard_scan_duration_seconds 90\n" in text
    assert 'tfguard_objects{verdict="managed"} 7\n' in text
    helped = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP")]
    assert len(helped) == len(set(helped))


def many_gaps() -> tuple[Gap, ...]:
    """Ten types that are refused in each of five places, and one other."""
    places = [f"aws 12345678901{number} eu-west-1" for number in range(5)]
    refused = [Gap(f"{place} aws_kind_{letter}", "AccessDenied") for place in places for letter in "abcdefghij"]
    return (*refused, Gap("state s3://b/k", "it is cut or not JSON"))


def test_gaps_with_one_reason_are_one_line_that_names_a_few_and_the_json_has_all() -> None:
    whole = result(gaps=many_gaps())
    lines = [line for line in scan_text(whole, (), None, PLAIN).splitlines() if "gap" in line]
    assert lines == [
        "50 gaps: aws 123456789010 eu-west-1: aws_kind_a, aws_kind_b, aws_kind_c, aws_kind_d, aws_kind_e, "
        "aws_kind_f and 4 more; aws 123456789011 eu-west-1: aws_kind_a, aws_kind_b, aws_kind_c, aws_kind_d, "
        "aws_kind_e, aws_kind_f and 4 more; aws 123456789012 eu-west-1: aws_kind_a, aws_kind_b, aws_kind_c, "
        "aws_kind_d, aws_kind_e, aws_kind_f and 4 more; and 2 more places: AccessDenied",
        "gap: state s3://b/k: it is cut or not JSON",
        "coverage: incomplete, 51 gaps (3 states, 61 types)",
    ]
    coverage = scan_document(whole, ())["coverage"]
    assert isinstance(coverage, dict) and len(coverage["gaps"]) == 51


def test_many_reasons_are_folded_and_counted() -> None:
    gaps = tuple(Gap(f"aws 123456789012 eu-west-1 aws_t{number}", f"AccessDenied on {number}") for number in range(50))
    lines = scan_text(result(gaps=gaps), (), None, PLAIN).splitlines()
    assert len([line for line in lines if line.startswith("gap: ")]) == 20
    assert lines[-2:] == [
        "and 30 more gaps: see --format json",
        "coverage: incomplete, 50 gaps (3 states, 61 types)",
    ]


def test_the_accounts_and_regions_that_were_looked_at_are_named() -> None:
    looked = (
        ScanPlace("aws", "123456789012", ("eu-west-1", "global")),
        ScanPlace("aws", "210987654321", ("eu-west-1", "global")),
        ScanPlace("aws", None, ("us-east-1",)),
    )
    whole = result(places=looked)
    line = "looked at: aws 123456789012, 210987654321 in eu-west-1, global; aws unknown-account in us-east-1"
    assert line in scan_text(whole, (), None, PLAIN).splitlines()
    assert "looked at: nothing" in scan_text(result(), (), None, PLAIN).splitlines()
    document = json.loads(json.dumps(scan_document(whole, ())))
    assert document["scan"]["places"][1] == {
        "cloud": "aws", "account": "210987654321", "regions": ["eu-west-1", "global"],
    }  # fmt: skip
    assert document["scan"]["places"][2]["account"] is None


@pytest.mark.parametrize(
    ("name", "tags", "shown"),
    [("web", {}, "web"), (None, {"Name": "web"}, "web"), ("i-1", {"Name": "web"}, "web"), ("i-1", {}, "")],
)
def test_what_people_call_an_object_is_shown_beside_its_id(name: str | None, tags: dict[str, str], shown: str) -> None:
    whole = result(finding(replace(stray("i-1", "aws_instance"), name=name, tags=tags)))
    text = scan_text(whole, whole.findings, None, PLAIN)
    assert ("aws_instance i-1 (web)" in text) is bool(shown)
    (row,) = csv.DictReader(io.StringIO(SCAN_FORMATS["csv"].write(whole, whole.findings, None, PLAIN)))
    assert row["name"] == shown
    assert (" web |" in SCAN_FORMATS["markdown"].write(whole, whole.findings, None, PLAIN)) is bool(shown)


def test_what_many_findings_have_for_evidence_is_said_once() -> None:
    special = replace(finding(stray("c")), evidence=(Evidence(EvidenceKind.GAP, "of its own"),))
    whole = result(finding(stray("a")), finding(stray("b")), special)
    lines = scan_text(whole, whole.findings, None, PLAIN).splitlines()
    assert [line.strip() for line in lines if "nobody knows it" in line] == [
        "evidence, of those without their own: unexplained: nobody knows it"
    ]
    assert "    evidence: gap: of its own" in lines
    alone = result(finding(stray("a")))
    assert "    evidence: unexplained: nobody knows it" in scan_text(alone, alone.findings, None, PLAIN).splitlines()


def test_the_counts_are_in_the_same_order_each_time() -> None:
    counts = [("managed", 7), ("unmanaged", 1), ("ignored", 2)]
    rules = [("catalogue: b", 1), ("catalogue: a", 1)]
    texts = {
        scan_text(replace(result(), summary=dict(some), rules=dict(named)), (), None, PLAIN)
        for some in (counts, counts[::-1])
        for named in (rules, rules[::-1])
    }
    assert len(texts) == 1
    assert "objects: 1 unmanaged, 2 ignored, 7 managed\n" in texts.pop()


@pytest.mark.parametrize(
    ("verdict", "folded"),
    [(Verdict.FOREIGN, True), (Verdict.IGNORED, True), (Verdict.SOFT_DELETED, True), (Verdict.UNMANAGED, False)],
)
def test_a_long_group_of_what_is_left_out_is_folded_and_nothing_else(verdict: Verdict, folded: bool) -> None:
    many = [finding(stray(f"s{number:03}"), verdict) for number in range(300)]
    lines = scan_text(result(), many, None, PLAIN).splitlines()
    assert len([line for line in lines if "aws_sqs_queue s" in line]) == (20 if folded else 300)
    assert ("  and 280 more: see --format json" in lines) is folded
    assert lines[0].startswith(f"{verdict.value} (300)")


def test_each_group_tells_once_what_can_be_done_next() -> None:
    orphans = [
        replace(finding(stray(name), Verdict.ORPHANED), operation_id=operation)
        for name, operation in (("a", "op-1"), ("b", "op-1"), ("c", "op-2"), ("d", "op-3"))
    ]
    twin = finding(stray("e"), Verdict.DUPLICATED)
    others = [finding(stray("f")), finding(stray("g")), finding(None, Verdict.MISSING, address="a.b")]
    stacks = {
        "op-1": Stack("local", "/net/terraform.tfstate", "default", "/net"),
        "op-2": Stack("s3", "s3://b/k", "prod", "/my apps/b"),
    }
    whole = result(*orphans, twin, *others, stacks=stacks)
    lines = scan_text(whole, in_order(whole.findings, ()), None, PLAIN).splitlines()
    each = "import --orphan ID | orphans retain ID | orphans destroy ID"
    scanned = f"tfguard {each}, with --findings FILE (what `scan --state-file FILE` kept)"
    assert [line.strip() for line in lines if line.strip().startswith("next")] == [
        f"next, for those of op-1: tfguard -chdir=/net recover, then tfguard -chdir=/net {each}",
        "next, for those of op-2: TF_WORKSPACE=prod tfguard -chdir='/my apps/b' recover, then TF_WORKSPACE=prod "
        f"tfguard -chdir='/my apps/b' {each}",
        f"next: {scanned}",
        f"next: {scanned}",
        f"next: {scanned}",
    ]
    assert lines[-1].startswith("coverage:")
