"""What others named is shown on one line, and steers no terminal: one rule for everything that is printed."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tfguard.cli.chooser_table import whole
from tfguard.cli.console import marked
from tfguard.model.address import hcl_meaning, hcl_string, import_block
from tfguard.model.disposition import DecidedObject, DestroyStage, Disposition, DispositionKind
from tfguard.model.engine import EngineInfo
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage, Gap
from tfguard.model.operation import (
    Actor,
    ErroredState,
    Intent,
    ObservedObject,
    Operation,
    OperationStatus,
    Outcome,
    Result,
    Stack,
    Step,
)
from tfguard.model.plan import Action
from tfguard.model.printable import printable
from tfguard.model.scan import ScanPlace, ScanResult
from tfguard.model.since import Changes
from tfguard.model.transition import Transition
from tfguard.report.findings import findings_csv, findings_markdown, findings_text, import_blocks
from tfguard.report.operation import deletion_line, history_line, status_text, summary_lines, transition_lines
from tfguard.report.paint import Paint
from tfguard.report.retained import retained_text
from tfguard.report.scan import scan_import_blocks, scan_markdown, scan_text

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAINT = Paint(on=True)
# Colours, the title, a bell, C1, reading direction, a hidden character, and every kind of line break.
EVIL = "\x1b[8mx\x1b]0;t\x07\x9b2J\u202ey\u2066\u200bz\r\n\x0b\x0c\x85\u2028\u2029tfguard: forged\tq"
FOUND = CloudObject(
    EVIL, EVIL, EVIL, EVIL, EVIL, f"{EVIL}i", arn=EVIL, name=f"{EVIL}n", tags={"Name": EVIL}, created_at=NOW
)
EVIDENCE = (Evidence(EvidenceKind.UNEXPLAINED, EVIL),)
SETTLED = Disposition(
    EVIL,
    DispositionKind.RETAIN,
    NOW,
    EVIL,
    EVIL,
    EVIL,
    EVIL,
    EVIL,
    NOW + timedelta(days=1),
    owner=EVIL,
    cost_owner=EVIL,
    object=DecidedObject(EVIL, EVIL, EVIL, EVIL, EVIL, EVIL),
    stage=DestroyStage.REQUESTED,
)
COVERAGE = Coverage(gaps=(Gap(EVIL, EVIL), Gap(f"{EVIL} aws_vpc", EVIL)))


def finding(verdict: Verdict, **more: object) -> Finding:
    """A finding in which everything is others' words."""
    base = Finding(EVIL, verdict, Confidence.CERTAIN, EVIL, EVIL, FOUND, EVIDENCE, addresses=(EVIL, EVIL))
    return replace(base, **more)  # type: ignore[arg-type]


FINDINGS = (
    finding(Verdict.ORPHANED),
    finding(Verdict.TAINTED),
    finding(Verdict.DUPLICATED),
    finding(Verdict.UNMANAGED, address=None, addresses=()),
    finding(Verdict.UNMANAGED, disposition=SETTLED),
    finding(Verdict.MISSING, object=None),
)
SCANNED = tuple(one for one in FINDINGS if one.verdict is not Verdict.TAINTED)  # which no scan tells of
SEEN = ObservedObject(
    type=EVIL,
    import_id=EVIL,
    id=EVIL,
    cloud=EVIL,
    account=EVIL,
    region=EVIL,
    confidence=Confidence.CERTAIN,
    finding_id=EVIL,
    name=EVIL,
    in_state=False,
    evidence=EVIDENCE,
)
STACK = Stack(EVIL, EVIL, EVIL, EVIL)


def operation() -> Operation:
    """An operation in which everything is others' words."""
    step = Step(
        EVIL,
        "a",
        "p",
        Action.CREATE,
        outcome=Outcome.DUPLICATED,
        observed=(SEEN,),
        evidence=EVIDENCE,
        error=EVIL,
        deposed=EVIL,
    )
    actor = Actor(EVIL, EVIL, EVIL, EVIL, EVIL, EVIL, EVIL)
    intent = Intent(EVIL, EVIL, (), STACK, EngineInfo(EVIL, EVIL), actor, NOW, EVIL, 3, (step,))
    result = Result(
        EVIL,
        OperationStatus.ERROR,
        NOW,
        (step,),
        exit_code=1,
        error=EVIL,
        gaps=(EVIL,),
        errored_state=ErroredState(EVIL, EVIL, "l", 4),
    )
    return Operation(intent, result)


def scan() -> ScanResult:
    """A scan in which everything is others' words."""
    return ScanResult(
        findings=SCANNED,
        coverage=COVERAGE,
        summary={"managed": 7},
        rules={EVIL: 2},
        unused_rules=(EVIL,),
        expired_rules=(EVIL,),
        notes=(EVIL,),
        started_at=NOW,
        ended_at=NOW,
        places=(ScanPlace(EVIL, EVIL, (EVIL,)),),
        stacks={EVIL: STACK},
    )


TEXTS: dict[str, Callable[[], str]] = {
    "findings as text": lambda: findings_text(FINDINGS, COVERAGE, PAINT),
    "findings as csv": lambda: findings_csv(FINDINGS),
    "findings as markdown": lambda: findings_markdown(FINDINGS),
    "findings as import blocks": lambda: import_blocks(FINDINGS[:1]),
    "scan as text": lambda: scan_text(scan(), SCANNED, Changes(NOW), PAINT),
    "scan as markdown": lambda: scan_markdown(scan(), SCANNED),
    "scan as import blocks": lambda: scan_import_blocks(scan(), SCANNED),
    "retained": lambda: retained_text([SETTLED, replace(SETTLED, object=None, until=None)], NOW, PAINT),
    "status": lambda: status_text(operation(), OperationStatus.ERROR, [EVIL], PAINT),
    "summary": lambda: "\n".join(summary_lines(operation(), [EVIL], PAINT)) + "\n",
    "deletion": lambda: deletion_line(SETTLED) + "\n",
    "history": lambda: history_line(operation(), OperationStatus.ERROR) + "\n",
    "transitions": lambda: "\n".join(transition_lines([Transition(NOW, EVIL, EVIL, EVIL, EVIL, EVIL)])) + "\n",
    "said on stderr": lambda: marked(EVIL, EVIL),
    "row of the chooser": lambda: whole(FINDINGS[0]) + "\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_that_others_named_steers_a_terminal_or_begins_a_line(name: str) -> None:
    text = TEXTS[name]()
    # What Paint itself writes; a name could not have these bytes behind it without the others of `EVIL`.
    plain = re.sub(r"\x1b\[(1|2|31|32|33)(;(1|2|31|32|33))*m|\x1b\[0m", "", text)
    steering = {char for char in plain if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")}
    assert not steering
    forged = [line for line in re.split(r"\n", plain) if line.startswith("tfguard: forged")]
    assert not forged
    assert "x" in plain and "z" in plain  # the rest of a name is seen


def test_a_name_cannot_colour_a_line_as_tfguard_does() -> None:
    red = "\x1b[31;1mx\x1b[0m"
    stray = replace(FINDINGS[0], object=replace(FOUND, name=red, tags={}))
    assert "\x1b" not in findings_text([stray], Coverage(), Paint())
    assert "\x1b" not in scan_text(replace(scan(), findings=(stray,)), [stray], None, Paint())
    assert "\x1b" not in marked(red)


def test_a_text_stays_as_it_is_where_nothing_steers() -> None:
    usual = "aws_vpc.a[\"ä|日本\"] \u00a0 e\u0301 'x' \U0001f600"
    assert printable(usual) == usual
    assert printable("a\nb\x1b") == "a\ufffdb\ufffd"


@pytest.mark.parametrize("begin", ["=", "+", "-", "@"])
def test_a_spreadsheet_takes_no_cell_for_a_formula(begin: str) -> None:
    value = f"{begin}HYPERLINK(1)"
    stray = replace(
        FINDINGS[0], id=value, address=value, object=CloudObject(value, value, value, value, value, value, name="n")
    )
    (row,) = csv.DictReader(io.StringIO(findings_csv([stray])))
    assert not [cell for cell in row.values() if cell[:1] in ("=", "+", "-", "@")]
    assert row["import_id"] == f"'{value}"


def test_an_import_block_is_seen_whole_and_still_means_the_very_id() -> None:
    block = import_block('a.b["k\u202e"]', EVIL)
    assert len(block.split("\n")) == 5
    assert all(line.isprintable() for line in block.split("\n"))
    assert hcl_meaning(hcl_string(EVIL)[1:-1]) == EVIL
