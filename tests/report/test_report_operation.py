"""An operation as text: worst first, with the evidence, the import ids and the exact next commands."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tfguard.model.engine import EngineInfo
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
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
    StepStatus,
    StreamHealth,
)
from tfguard.model.plan import Action
from tfguard.report.operation import history_line, status_text, summary_lines
from tfguard.report.paint import Paint

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
PLAIN, COLOUR = Paint(), Paint(on=True)
NEXT = ("tfguard import --orphan o-3fa9c1d2",)
OBSERVED = ObservedObject(
    "aws_iam_role",
    "app",
    "import-app",
    "aws",
    "123456789012",
    "global",
    False,
    Confidence.CERTAIN,
    "o-3fa9c1d2",
    created_at=START,
)


def step(address: str, outcome: Outcome | None, *observed: ObservedObject, error: str | None = None) -> Step:
    """A step that was looked up, or was not (None)."""
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, f"evidence of {address}"),) if outcome else ()
    return Step(
        address,
        "aws_iam_role",
        "aws",
        Action.CREATE,
        StepStatus.ERROR,
        outcome,
        observed=observed,
        evidence=evidence,
        error=error,
    )


def operation(*steps: Step, finished: bool = True, **result: object) -> Operation:
    """An operation with these steps."""
    stack = Stack("local", "/stack/terraform.tfstate", "dev", "/stack")
    engine = EngineInfo("terraform", "1.11.4")
    intent = Intent("01A", "apply", (), stack, engine, Actor("me", "host"), START, "lineage", 3, steps)
    done = Result("01A", OperationStatus.ERROR, START + timedelta(minutes=5), steps, exit_code=1)
    return Operation(intent, replace(done, **result) if finished else None)  # type: ignore[arg-type]


ORPHANED = step("a.orphan", Outcome.ORPHANED, OBSERVED, error="IAM CreateRole: no usable reply")
EVERY = [step(f"a.{outcome.value}", outcome) for outcome in Outcome]
ERRORED = ErroredState("/stack/errored.tfstate", "s3://b/rescued", "lineage", 4)


def status(given: Operation, paint: Paint = PLAIN, actions: tuple[str, ...] = NEXT) -> str:
    """The text of `status`."""
    return status_text(given, OperationStatus.ERROR, actions, paint)


def summary(given: Operation, paint: Paint = PLAIN, actions: tuple[str, ...] = ()) -> list[str]:
    """The lines after a run."""
    return list(summary_lines(given, actions, paint))


@pytest.mark.parametrize("text", [status(operation(ORPHANED)), "\n".join(summary(operation(ORPHANED), actions=NEXT))])
def test_an_orphan_is_told_with_outcome_import_id_evidence_failure_and_next_command(text: str) -> None:
    for part in (
        "a.orphan: orphaned (exists, and the state does not know it)",
        "o-3fa9c1d2: import-app (aws 123456789012 global, created 2026-03-01 12:00:00Z), certain",
        "evidence: desired-identity: evidence of a.orphan",
        "engine: error, IAM CreateRole: no usable reply",
        "next: tfguard import --orphan o-3fa9c1d2",
    ):
        assert part in text


def test_the_status_says_who_ran_what_on_which_state_and_how_it_ended() -> None:
    text = status(operation(ORPHANED, error="IAM CreateRole: no usable reply"))
    for part in (
        "operation 01A: apply by me@host, error, open",
        "/stack/terraform.tfstate (workspace dev)",
        "2026-03-01 12:00:00Z, ended 12:05:00Z",
        "terraform 1.11.4, exit code 1",
        "failure  IAM CreateRole",
    ):
        assert part in text


def test_the_status_names_the_ci_job_its_commit_and_who_started_it_where_there_is_one() -> None:
    given = operation(ORPHANED)
    assert "  ci " not in status(given)
    actor = Actor("runner", "box", "https://ci/1", "c0ffee", "acme/1", "ada", "github")
    in_ci = replace(given, intent=replace(given.intent, actor=actor))
    assert "  ci       github, started by ada, https://ci/1, commit c0ffee\n" in status(in_ci)
    in_ci = replace(given, intent=replace(given.intent, actor=replace(actor, ci_url=None, ci_actor=None)))
    assert "  ci       github, acme/1, commit c0ffee\n" in status(in_ci)


def test_the_worst_step_comes_first() -> None:
    text = status(operation(*EVERY[::-1], step("a.unseen", None)))
    order = ["a.unseen", *(f"a.{word}" for word in ("orphaned", "duplicated", "unknown", "tainted", "recorded"))]
    places = [text.index(address) for address in order]
    assert places == sorted(places)


def test_every_outcome_and_a_step_that_was_not_looked_up_are_named() -> None:
    text = status(operation(*EVERY, step("a.unseen", None)))
    assert all(f"a.{outcome.value}: {outcome.value} (" in text for outcome in Outcome)
    assert "a.unseen: not looked up yet" in text


@pytest.mark.parametrize(
    "render", [status, lambda one, paint: "\n".join(summary(one, paint))], ids=["status", "summary"]
)
def test_colour_is_there_only_where_it_was_asked_for(render: object) -> None:
    given = operation(*EVERY, ORPHANED, errored_state=ERRORED, gaps=("aws: AccessDenied",))
    plain, colour = render(given, PLAIN), render(given, COLOUR)  # type: ignore[operator]
    assert ("\x1b" in plain, "\x1b" in colour) == (False, True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colour) == plain


def test_after_a_run_that_left_everything_in_state_nothing_is_said() -> None:
    assert summary(operation(step("a", Outcome.RECORDED), step("b", Outcome.ABSENT))) == []


@pytest.mark.parametrize(
    "outcome", [outcome for outcome in Outcome if outcome.needs_action or outcome is Outcome.TAINTED]
)
def test_after_a_run_each_thing_that_is_not_right_is_said(outcome: Outcome) -> None:
    assert summary(operation(step("a", outcome), step("b", Outcome.RECORDED)))[0].startswith(f"a: {outcome.value}")


def test_a_step_that_somebody_decided_about_is_not_said_again_after_a_run() -> None:
    decided = replace(ORPHANED, disposition="retain")
    assert summary(operation(decided)) == []
    assert "a.orphan: orphaned (exists, and the state does not know it), retain" in status(operation(decided))


def test_gaps_are_never_left_out() -> None:
    given = operation(step("a", Outcome.RECORDED), gaps=("aws 1 eu-west-1 aws_vpc: AccessDenied",))
    line = "not complete: aws 1 eu-west-1 aws_vpc: AccessDenied"
    assert line in status(given)
    assert summary(given) == [line]


def test_a_state_that_was_not_saved_is_the_last_and_loudest_line() -> None:
    given = operation(ORPHANED, errored_state=ERRORED, gaps=("gap: x",))
    last = summary(given, actions=("tfguard recover",))[-1]
    assert last == "THE STATE WAS NOT SAVED: it is in /stack/errored.tfstate; a copy is at s3://b/rescued"
    assert summary(operation(errored_state=replace(ERRORED, pushed=True))) == []
    assert "/stack/errored.tfstate holds a state that was not saved" in status(given)


def test_a_damaged_event_stream_is_said() -> None:
    (line,) = summary(operation(stream=StreamHealth(events=9, plain=2, cut=1)))
    assert "2 plain and 1 cut" in line


def test_an_object_in_state_and_an_older_one_are_told_from_a_finding() -> None:
    held = replace(OBSERVED, in_state=True, finding_id=None)
    older = replace(OBSERVED, finding_id=None)
    text = status(operation(step("a", Outcome.DUPLICATED, held, older, OBSERVED)))
    assert "the state holds import-app" in text
    assert "older object import-app" in text
    assert "o-3fa9c1d2: import-app" in text


def test_an_operation_without_a_result_is_told_as_open() -> None:
    text = status(operation(step("a", None), finished=False), actions=("tfguard recover",))
    assert "open" in text.splitlines()[0]
    assert "ended" not in text
    assert text.endswith("next: tfguard recover\n")


def test_history_is_one_line_an_operation() -> None:
    line = history_line(operation(ORPHANED), OperationStatus.ERROR)
    assert re.fullmatch(r"01A  2026-03-01 12:00:00Z  apply +error +open +me@host", line)


def test_what_is_left_tainted_is_told_with_what_the_next_apply_does() -> None:
    held = replace(OBSERVED, in_state=True, finding_id=None, stateful=True)
    left = step("a.tainted", Outcome.TAINTED, held, error="local-exec: failed")
    for text in ("\n".join(summary_lines(operation(left), NEXT, PLAIN)), status(operation(left))):
        assert "the next apply will destroy it and create it anew, unless it is kept; it HOLDS DATA" in text
    both = replace(left, outcome=Outcome.DUPLICATED, evidence=(Evidence(EvidenceKind.TAINTED, "tainted"),))
    assert "the next apply will destroy it" in status(operation(both)), "a second object hides no mark"
    asked_for = operation(left)
    asked_for = replace(asked_for, intent=replace(asked_for.intent, command="taint"))
    assert list(summary_lines(asked_for, (), PLAIN)) == []
