"""The audit trail: who changed what is known of an operation, when, and why; and nothing of what went as planned."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.operation import (
    Actor,
    ErroredState,
    ObservedObject,
    OperationStatus,
    Outcome,
    Result,
    Step,
    StepStatus,
)
from tfguard.model.plan import Action
from tfguard.model.transition import Transition
from tfguard.reconcile.transitions import NOT_LOOKED_UP, Writer, last_told, lost_outcome, transitions

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WRITER = Writer("me@here", NOW)
STEP = Step("aws_iam_role.app", "aws_iam_role", "aws", Action.CREATE, StepStatus.OK)
SEEN = ObservedObject("aws_iam_role", "app", "app", "aws", None, "global", False, Confidence.CERTAIN, "o-1")


def evidence(detail: str) -> tuple[Evidence, ...]:
    return (Evidence(EvidenceKind.OPERATION, detail),)


def result(*steps: Step, status: OperationStatus = OperationStatus.OK, **more: object) -> Result:
    return replace(Result("01J", status, NOW, steps, exit_code=0), **more)  # type: ignore[arg-type]


def changes(
    after: Result, before: Result | None = None, told: dict[str, str] | None = None, *ledger: Disposition
) -> list[tuple[str, str | None, str, str]]:
    if told is None:
        told = dict(last_told(transitions(before, None, {}, ledger, WRITER))) if before else {}
    found = transitions(after, before, told, ledger, WRITER)
    assert all((one.by, one.at) == ("me@here", NOW) for one in found)
    return [(one.what, one.before, one.after, one.why) for one in found]


RECORDED = replace(STEP, outcome=Outcome.RECORDED, evidence=evidence("the state holds app"))
ORPHANED = replace(STEP, outcome=Outcome.ORPHANED, observed=(SEEN,), evidence=evidence("listed now"))
NOT_YET = replace(STEP, outcome=Outcome.UNKNOWN, evidence=evidence(NOT_LOOKED_UP))


def test_a_run_that_went_as_planned_has_one_line() -> None:
    deleted = replace(STEP, address="a.b", action=Action.DELETE, outcome=Outcome.ABSENT)
    assert changes(result(RECORDED, deleted)) == [("01J", "running", "ok, settled", "exit code 0")]


def test_what_nobody_has_looked_at_yet_is_no_outcome() -> None:
    first = result(NOT_YET)
    assert changes(first) == [("01J", "running", "ok, open", "exit code 0")]
    assert changes(result(RECORDED), first) == [("01J", "ok, open", "ok, settled", "nothing is open any more")]
    assert changes(result(ORPHANED), first) == [("aws_iam_role.app", None, "orphaned", "listed now")]


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.RECORDED])
def test_what_did_not_go_as_planned_has_a_line(outcome: Outcome) -> None:
    step = replace(STEP, outcome=outcome, evidence=evidence("because"))
    assert (STEP.address, None, outcome.value, "because") in changes(result(step))


def test_each_later_change_has_a_line_with_the_evidence_that_is_new() -> None:
    before = result(
        replace(ORPHANED, address="a.a"), replace(RECORDED, address="b.b"), replace(ORPHANED, address="c.c")
    )
    after = result(
        replace(ORPHANED, address="a.a"),
        replace(ORPHANED, address="b.b", evidence=(*RECORDED.evidence, *evidence("and now listed"))),
        replace(RECORDED, address="c.c"),
    )
    assert changes(after, before) == [
        ("b.b", "recorded", "orphaned", "and now listed"),
        ("c.c", "orphaned", "recorded", "the state holds app"),
    ]
    assert changes(after, after) == []


def test_a_decision_is_told_with_who_made_it_and_why() -> None:
    decided = replace(ORPHANED, disposition="retain")
    ledger = Disposition("o-1", DispositionKind.RETAIN, NOW, "anna@ci", "needed until June", "01J")
    assert changes(result(decided), result(ORPHANED), None, ledger) == [
        ("01J", "ok, open", "ok, settled", "nothing is open any more"),
        ("aws_iam_role.app", "orphaned", "orphaned (retain)", "retain by anna@ci: needed until June"),
    ]
    word = replace(NOT_YET, disposition="confirmed-absent", evidence=evidence("said to be absent by anna@ci"))
    assert changes(result(word), result(NOT_YET))[-1] == (
        "aws_iam_role.app",
        None,
        "unknown (confirmed-absent)",
        "said to be absent by anna@ci",
    )


def test_how_a_run_ended_is_why_it_is_no_longer_running() -> None:
    failed = result(RECORDED, status=OperationStatus.ERROR, exit_code=1, signal=9, error="Denied", notes=("n",))
    assert changes(failed) == [("01J", "running", "error, settled", "exit code 1; signal 9; Denied; n")]
    lost = result(RECORDED, errored_state=ErroredState("/s/errored.tfstate", None, "l", 2))
    assert changes(lost, result(RECORDED)) == [("01J", "ok, settled", "ok, open", "a state was not saved")]


def test_what_could_not_be_written_once_is_told_by_the_next_outcome() -> None:
    assert changes(result(ORPHANED), result(ORPHANED), {"01J": "ok, open"}) == []
    told = {"01J": "ok, settled", STEP.address: "recorded"}
    assert changes(result(ORPHANED), result(ORPHANED), told) == [
        ("01J", "ok, settled", "ok, open", "open: aws_iam_role.app"),
        ("aws_iam_role.app", "recorded", "orphaned", "listed now"),
    ]


def test_an_outcome_of_which_nothing_was_told_is_told_with_the_next_one() -> None:
    assert changes(result(RECORDED), result(ORPHANED), {}) == [
        ("01J", "running", "ok, open", "exit code 0"),
        ("aws_iam_role.app", None, "orphaned", "listed now"),
        ("01J", "ok, open", "ok, settled", "nothing is open any more"),
        ("aws_iam_role.app", "orphaned", "recorded", "the state holds app"),
    ]


def test_steps_with_one_address_are_told_apart() -> None:
    deposed = replace(ORPHANED, deposed="abcd")
    twice = replace(ORPHANED, action=Action.DELETE)
    whats = [what for what, *_ in changes(result(ORPHANED, deposed, twice))]
    assert whats == [
        "01J",
        "aws_iam_role.app (create)",
        "aws_iam_role.app (deposed object abcd)",
        "aws_iam_role.app (delete)",
    ]


def test_many_open_steps_are_not_all_named() -> None:
    steps = [replace(ORPHANED, address=f"a.a[{number}]") for number in range(9)]
    (first, *_) = changes(result(*steps), result(RECORDED))
    assert first[-1] == "open: a.a[0], a.a[1], a.a[2], a.a[3], a.a[4] and 4 more"


def test_an_outcome_that_was_lost_opens_a_settled_operation() -> None:
    (lost,) = lost_outcome("01J", {"01J": "ok, settled"}, WRITER)
    assert (lost.before, lost.after) == ("ok, settled", "running, open")
    assert lost_outcome("01J", {"01J": "ok, open"}, WRITER) == ()
    assert lost_outcome("01J", {}, WRITER) == ()
    told = dict(last_told([Transition(NOW, "me", "01J", None, "ok, settled", ""), lost]))
    assert changes(result(RECORDED), None, told) == [("01J", "running, open", "ok, settled", "exit code 0")]


def test_what_is_done_in_ci_is_signed_with_who_triggered_which_job() -> None:
    assert Actor("runner", "fv-az1").signature == "runner@fv-az1"
    in_ci = Actor("runner", "fv-az1", ci_job="org/repo/77/apply", ci_actor="anna", ci_system="github")
    assert in_ci.signature == "anna (github org/repo/77/apply)"
    assert replace(in_ci, ci_actor=None, ci_job=None).signature == "runner (github)"
