"""Tainted objects as findings: the state says what is tainted, the operations how it came to be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from scene import AWS, END, START, role, step

from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.engine import EngineInfo
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict, tainted_id
from tfguard.model.operation import Actor, Intent, Operation, OperationStatus, Outcome, Result, Stack, Step
from tfguard.model.secrets import Withholding
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.reconcile.findings import findings_of, summary_of
from tfguard.reconcile.marks import observe
from tfguard.reconcile.tainted import tainted_findings

ROLE, OTHER = "aws_iam_role.app", "aws_vpc.main"
ID = tainted_id("lineage", ROLE)
HELD = StateInstance(ROLE, "aws_iam_role", AWS, "aws", {"name": "app"}, tainted=True)
STATE = StateSnapshot("lineage", 4, (HELD, StateInstance(OTHER, "aws_vpc", AWS)))
MARK = Evidence(EvidenceKind.TAINTED, "the state holds app, tainted")
SEEN = observe(role(), in_state=True, confidence=Confidence.CERTAIN)
LEFT = replace(step(ROLE), outcome=Outcome.TAINTED, evidence=(MARK,), observed=(SEEN,), error="local-exec: failed")


def operation(*steps: Step, id_: str = "01A", at: timedelta = timedelta()) -> Operation:
    """An operation that ended with these steps; `at` is how much later than others it began."""
    intent = Intent(
        id_,
        "apply",
        (),
        Stack("local", "terraform.tfstate", "default", "."),
        EngineInfo("terraform", "1.11.4"),
        Actor("me", "host"),
        START + at,
        "lineage",
        3,
        steps,
    )
    return Operation(intent, Result(id_, OperationStatus.ERROR, END + at, steps, exit_code=1))


def untainted(at: timedelta = timedelta()) -> Disposition:
    """A person's decision to keep the role."""
    return Disposition(ID, DispositionKind.UNTAINT, END + at, "me@host", "it is fine", "01B")


def found(
    *operations: Operation, state: StateSnapshot | None = STATE, ledger: tuple[Disposition, ...] = ()
) -> tuple[Finding, ...]:
    """The findings."""
    return tainted_findings(operations, state, ledger, Withholding())


def test_what_the_state_marks_is_told_with_how_it_came_to_be() -> None:
    (one,) = found(operation(LEFT))
    assert (one.id, one.verdict, one.confidence, one.address) == (ID, Verdict.TAINTED, Confidence.CERTAIN, ROLE)
    assert one.object is not None
    assert (one.object.key, one.operation_id) == (role().key, "01A")
    assert [item.detail for item in one.evidence] == [
        "the state holds app, tainted",
        "local-exec: failed",
        "left so by operation 01A (apply)",
    ]


def test_a_tainted_object_can_be_kept_and_is_nothing_that_waits_for_a_decision() -> None:
    (one,) = found(operation(LEFT))
    assert (one.actions, one.needs_action) == (("retain",), False)
    (unlisted,) = found(operation(replace(LEFT, observed=())))
    assert (unlisted.object, unlisted.actions) == (None, ("retain",))
    assert summary_of([one]) == {"tainted": 1}


def test_what_the_state_does_not_mark_is_not_tainted_whatever_an_operation_left() -> None:
    assert found(operation(LEFT), state=replace(STATE, instances=(replace(HELD, tainted=False),))) == ()
    assert found(operation(LEFT), state=replace(STATE, instances=(replace(HELD, deposed="0a1b2c3d"),))) == ()


def test_what_no_operation_left_tainted_is_told_all_the_same() -> None:
    for operations in (
        (),
        (operation(LEFT), operation(replace(LEFT, outcome=Outcome.RECORDED, evidence=()), id_="01B")),
    ):
        (one,) = found(*operations)
        assert (one.id, one.operation_id) == (ID, None)
        assert "none of the operations that were read tells why" in one.evidence[-1].detail


def test_an_object_that_was_seen_before_it_was_replaced_is_not_the_one_that_is_tainted_now() -> None:
    older = replace(LEFT, outcome=Outcome.RECORDED, evidence=())
    assert found(operation(older))[0].object is not None
    renamed = replace(STATE, instances=(replace(HELD, identity={"name": "other"}),))
    assert found(operation(older), state=renamed)[0].object is None


def test_the_newest_step_of_an_address_tells_where_the_state_cannot_be_read() -> None:
    (one,) = found(operation(LEFT), state=None)
    assert (one.id, one.confidence) == (ID, Confidence.LIKELY)
    later = operation(replace(LEFT, outcome=Outcome.RECORDED, evidence=()), id_="01B")
    assert found(operation(LEFT), later, state=None) == ()


def test_what_was_kept_is_settled_until_it_is_tainted_again() -> None:
    clean = replace(STATE, instances=(replace(HELD, tainted=False),))
    for state in (clean, None):
        (one,) = found(operation(LEFT), state=state, ledger=(untainted(),))
        assert (one.disposition, one.actions) == (untainted(), ())
    untaint = operation(replace(LEFT, outcome=Outcome.RECORDED, evidence=()), id_="01B", at=timedelta(hours=1))
    for state in (clean, None):
        (one,) = found(operation(LEFT), untaint, state=state, ledger=(untainted(),))
        assert one.disposition == untainted(), "the recorded untaint is the newest that tells of the address"
    (again,) = found(operation(LEFT), ledger=(untainted(),))
    assert again.disposition is None
    assert "tainted again since" in again.evidence[-1].detail
    (later,) = found(operation(LEFT, at=timedelta(days=1)), ledger=(untainted(),))
    assert "tainted again" not in later.evidence[-1].detail


def test_a_second_object_for_the_address_hides_no_mark() -> None:
    twice = replace(LEFT, outcome=Outcome.DUPLICATED, evidence=(MARK, Evidence(EvidenceKind.SEVERAL_CANDIDATES, "two")))
    assert [one.verdict for one in found(operation(twice))] == [Verdict.TAINTED]


def test_a_decision_about_a_stray_is_none_about_what_is_tainted_and_the_other_way_round() -> None:
    assert role().finding_id != ID != tainted_id("another lineage", ROLE)
    assert findings_of([operation(LEFT)], [untainted()], END) == ()


def test_an_address_of_which_a_key_is_marked_is_told_masked() -> None:
    held = replace(HELD, address='aws_iam_role.app["hunter2-secret"]')
    hidden = Withholding(frozenset({"hunter2-secret"}))
    (one,) = tainted_findings([], replace(STATE, instances=(held,)), (), hidden)
    assert one.address == hidden.address(held.address)
    assert "hunter2" not in str(one)
