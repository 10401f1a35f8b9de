"""A scan's findings as a person and as other programs read them."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage, Gap
from tfguard.model.scan import ScanResult
from tfguard.model.since import Changes
from tfguard.reconcile.since import changes_since
from tfguard.report.metrics import prometheus_text, scan_samples
from tfguard.report.paint import Paint
from tfguard.report.scan import PLAIN_SCAN_FORMATS, in_order, scan_import_blocks, scan_text
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
        "gap: aws 123456789012 eu-west-1: aws_sns_topic, aws_sns_topic_subscription: AccessDenied on ListTopics",
        "gap: state s3://b/k: it is cut or not JSON",
    ]
    assert scan_text(result(), (), None, PLAIN).splitlines()[-1] == "coverage: complete (3 states, 61 types)"


def test_every_format_shows_every_finding_and_what_is_left_out() -> None:
    one, other = finding(stray("a")), finding(stray("b"), Verdict.ORPHANED, address="aws_sqs_queue.b")
    whole = result(one, other, unused_rules=("scan.ignore[0]: old",), expired_rules=("scan.ignore[1]: older",))
    shown = in_order(whole.findings, ())
    for name, write in PLAIN_SCAN_FORMATS.items():
        text = write(whole, shown, None, PLAIN)
        assert "a" in text
        assert other.id in text or name == "import-blocks"
    text = scan_text(whole, shown, None, PLAIN)
    assert "2 left out: catalogue: default VPC" in text
    assert "unused: scan.ignore[0]: old" in text
    assert "expired, and not used any more: scan.ignore[1]: older" in text
    rows = list(csv.DictReader(io.StringIO(PLAIN_SCAN_FORMATS["csv"](whole, shown, None, PLAIN))))
    assert [row["verdict"] for row in rows] == ["orphaned", "unmanaged"]


def test_import_blocks_propose_an_address_that_nothing_else_has() -> None:
    twins = [finding(stray("my.app", "aws_vpc"), id="o-1"), finding(stray("my/app", "aws_vpc"), id="o-2")]
    known = finding(stray("x", "aws_vpc"), Verdict.ORPHANED, address="aws_vpc.my_app", id="o-3")
    text = scan_import_blocks(result(), [known, *twins], None, PLAIN)
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


def test_where_nobody_looked_nothing_is_gone_and_it_is_kept() -> None:
    first = result(finding(stray("a")))
    kept = read_kept(kept_document(first, changes_since(None, first)), "f")
    denied = result(gaps=(Gap("aws 123456789012 eu-west-1 aws_sqs_queue", "AccessDenied"),), at=NOW + timedelta(days=1))
    changes = changes_since(kept, denied)
    assert (changes.gone, [one.id for one in changes.unseen]) == ((), [stray("a").finding_id])
    again = read_kept(kept_document(denied, changes), "f")
    assert [(one.id, one.first_seen) for one in again.findings] == [(stray("a").finding_id, NOW)]


def test_the_document_tells_what_a_scan_is_asked_for() -> None:
    whole = result(finding(stray("a")))
    document = scan_document(whole, whole.findings, Changes(None, new=("o-1",)))
    assert document["schema"] == "tfguard.findings/v1"
    told = json.loads(json.dumps(document))
    assert told["scan"]["started_at"] == "2026-03-01T11:58:30Z"
    assert told["since"]["new"] == ["o-1"]
    assert "since" not in scan_document(whole, whole.findings)


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
