"""What GitHub Actions shows: nothing is left out unsaid, nothing in a name means anything, commands can be copied."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_report_findings import EVIL, GAPS, SETTLED, finding
from test_report_operation import ERRORED, OBSERVED, ORPHANED, operation, step

from tfguard.model.finding import Verdict, tainted_id
from tfguard.model.inventory import Coverage
from tfguard.model.operation import OperationStatus, Outcome
from tfguard.report.github import (
    Annotation,
    finding_annotations,
    findings_summary,
    operation_annotations,
    operation_summary,
    workflow_commands,
)

NEXT = ("tfguard import --orphan o-3fa9c1d2",)
STEERING = "\x1b[2J\r\n::error::owned\u202e"


def summary(*steps: object, actions: tuple[str, ...] = NEXT, **result: object) -> str:
    """The summary of an operation with these steps."""
    return operation_summary(operation(*steps, **result), OperationStatus.ERROR, actions)  # type: ignore[arg-type]


def cells(text: str) -> list[list[str]]:
    """The table rows of a summary as a reader sees them, without the head."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[unescape(cell.strip()) for cell in row.strip("|").split("|")] for row in rows[2:]]


def test_the_summary_has_the_operation_its_steps_the_evidence_and_the_command_to_copy() -> None:
    text = summary(step("a.fine", Outcome.RECORDED), ORPHANED)
    assert text.startswith("### tfguard: apply, error, open\n")
    seen = unescape(text)
    for part in (
        "Operation 01A of me on host, state /stack/terraform.tfstate (workspace dev), exit code 1.",
        "1 orphaned, 1 recorded",
        "- a.orphan: desired-identity: evidence of a.orphan",
        "```sh\ntfguard import --orphan o-3fa9c1d2\n```",
    ):
        assert part in seen
    first, second = cells(text)
    assert first[:4] == ["a.orphan", "create", "error: IAM CreateRole: no usable reply", "orphaned"]
    assert first[4].startswith("o-3fa9c1d2: import-app (aws 123456789012 global")
    assert second[0] == "a.fine"


def test_a_state_that_was_not_saved_is_said_before_everything_else() -> None:
    text = unescape(summary(ORPHANED, errored_state=ERRORED))
    assert text.index("**The state was not saved: it is in /stack/errored.tfstate.**") < text.index("| step |")


def test_what_was_incomplete_is_in_the_summary() -> None:
    assert "- not complete: aws_vpc: AccessDenied" in unescape(summary(ORPHANED, gaps=("aws_vpc: AccessDenied",)))


def test_a_large_apply_is_cut_after_its_worst_steps_and_says_so() -> None:
    many = [step(f"a.fine[{number}]", Outcome.RECORDED) for number in range(400)]
    text = summary(*many, ORPHANED)
    assert cells(text)[0][0] == "a.orphan"
    assert len(cells(text)) == 50
    assert "351 more are not shown here." in text
    assert len(text) < 100_000


@given(st.text(max_size=80))
def test_a_name_can_neither_leave_its_cell_nor_mean_anything(name: str) -> None:
    text = summary(step(name, Outcome.RECORDED), actions=())
    (row,) = cells(text)
    assert len(row) == 5
    shown = next(line for line in text.splitlines() if line.startswith("| ") and " create " in line)
    assert re.fullmatch(r"[\w\s|;&#-]*", shown)
    assert "_" not in shown


def test_an_evil_name_is_shown_as_it_is() -> None:
    text = summary(step(f"a.b[{EVIL}]", Outcome.RECORDED), actions=())
    assert cells(text)[0][0] == f"a.b[{' '.join(EVIL.split())}]"
    assert "<b>" not in text


def test_a_command_with_backticks_stays_inside_its_fence_and_is_never_cut() -> None:
    command = f"tfguard import 'a.b[\"````\"]' {'x' * 2000} ID"
    text = summary(ORPHANED, actions=(command,))
    assert f"`````sh\n{command}\n`````" in text


def test_the_findings_summary_names_each_finding_its_evidence_and_how_to_adopt_it() -> None:
    text = findings_summary([finding(), SETTLED], GAPS, "tfguard -chdir=live")
    assert text.startswith("### tfguard: findings that need a decision: 1\n")
    seen = unescape(text)
    for part in (
        "coverage: incomplete: aws 1 eu-west-1 aws_vpc: AccessDenied",
        "- o-3fa9c1d2: desired-identity: name = app",
        "```sh\ntfguard -chdir=live import --orphan o-3fa9c1d2\n```",
    ):
        assert part in seen
    row = next(line for line in text.splitlines() if line.startswith("| o-"))
    name, verdict, confidence, _, found = (unescape(cell.strip()) for cell in row.strip("|").split("|"))
    assert (name, verdict, confidence) == ("o-3fa9c1d2", "orphaned", "certain")
    assert found.startswith("aws_iam_role app (aws 123456789012 global, created")


def test_a_duplicate_has_no_command_but_the_two_ways_out() -> None:
    text = unescape(findings_summary([finding(verdict=Verdict.DUPLICATED)], Coverage(), "tfguard"))
    assert "import --orphan" not in text
    assert "tfguard recover --not-ours ID --reason TEXT" in text


@pytest.mark.parametrize(
    ("outcome", "level"), [(Outcome.ORPHANED, "error"), (Outcome.DUPLICATED, "error"), (Outcome.UNKNOWN, "warning")]
)
def test_each_stray_object_gets_one_annotation_as_loud_as_it_is_sure(outcome: Outcome, level: str) -> None:
    held = replace(OBSERVED, in_state=True, finding_id=None)
    stray = replace(step("a.b", outcome), observed=(held, OBSERVED))
    given_steps = operation(stray, step("a.fine", Outcome.RECORDED))
    (line,) = workflow_commands(operation_annotations(given_steps))
    assert line.startswith(f"::{level} title=tfguard%3A {outcome.value}%3A a.b::o-3fa9c1d2: import-app")


def test_a_step_of_which_nothing_is_known_gets_a_warning_and_a_settled_one_none() -> None:
    unknown = step("a.b", Outcome.UNKNOWN)
    lines = workflow_commands(operation_annotations(operation(unknown, replace(ORPHANED, disposition="retain"))))
    assert [line.partition("::nothing")[0] for line in lines] == ["::warning title=tfguard%3A unknown%3A a.b"]


def test_findings_that_wait_are_annotated_and_decided_ones_are_not() -> None:
    lines = workflow_commands(finding_annotations([finding(), SETTLED, finding(verdict=Verdict.UNKNOWN)]))
    assert [line.split(" ", 1)[0] for line in lines] == ["::error", "::warning"]


def test_a_finding_for_no_address_is_told_by_its_type() -> None:
    (line,) = workflow_commands(finding_annotations([finding(address=None, addresses=())]))
    assert "title=tfguard%3A orphaned%3A aws_iam_role::" in line
    assert "one of" not in findings_summary([finding(address=None, addresses=())], Coverage(), "tfguard")


def test_nothing_in_a_text_can_end_an_annotation_or_begin_another_command() -> None:
    annotation = Annotation("error", f"100%, a: {STEERING}", f"50% {STEERING}{'x' * 9000}", "o-1")
    (line,) = workflow_commands([annotation])
    assert line.startswith("::error title=tfguard%3A 100%25%2C a%3A [2J %3A%3Aerror%3A%3Aowned::50%25 [2J ::error")
    assert line.isprintable()
    assert len(line) < 1000


def test_of_each_level_no_more_annotations_are_made_than_are_shown_and_the_last_counts_the_rest() -> None:
    errors = [Annotation("error", f"e{number}", "x", f"o-{number}") for number in range(25)]
    warnings = [Annotation("warning", f"w{number}", "x", f"w-{number}") for number in range(10)]
    lines = workflow_commands([*errors, *warnings])
    assert sum(line.startswith("::error") for line in lines) == 10
    assert sum(line.startswith("::warning") for line in lines) == 10
    assert "16 more are not shown here" in lines[9]


def test_a_tainted_object_is_a_warning_beside_what_needs_a_decision() -> None:
    one = finding(verdict=Verdict.TAINTED)
    text = unescape(findings_summary([one], Coverage(), "tfguard -chdir=live"))
    assert text.startswith("### tfguard: findings that need a decision: 0\n")
    assert "In the state, and tainted: 1." in text
    assert "```sh\ntfguard -chdir=live orphans retain o-3fa9c1d2 --reason TEXT\n```" in text
    (told,) = finding_annotations([one])
    assert (told.level, told.about, "the next apply will destroy it" in told.message) == ("warning", one.id, True)
    (left,) = operation_annotations(operation(step("a.tainted", Outcome.TAINTED)))
    assert (left.level, left.title, left.about) == ("warning", "tainted: a.tainted", tainted_id("lineage", "a.tainted"))
