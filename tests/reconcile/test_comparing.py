"""What a repair did to the state: told from the states alone, or handed on to be looked up."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from scene import (
    AFTER,
    AWS,
    CATALOG,
    END,
    IN_GRACE,
    LONG_AGO,
    concluded,
    findings,
    held,
    kinds,
    listing,
    look,
    queue,
    role,
)

from tfguard.model.disposition import DispositionKind
from tfguard.model.engine import EngineInfo
from tfguard.model.evidence import EvidenceKind
from tfguard.model.operation import Actor, Intent, JournalEntry, Operation, Outcome, Stack, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.request import Effect
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.reconcile.repairs import ENDED, STARTED, Compared, compare, exit_code_in, is_repair, removals, repair_steps

APP, JOBS = held("aws_iam_role.app", role()), held('module.q["a"].aws_sqs_queue.jobs[0]', queue("jobs"))
OLD = held("aws_iam_role.app", role("old"), deposed="0a1b2c3d")
BARE = StateInstance("terraform_data.x", "terraform_data", "terraform.io/builtin/terraform")


def state(*instances: StateInstance) -> StateSnapshot:
    return StateSnapshot("l", 3, instances)


def intent(command: str, *moved: str, adopts: tuple[str, ...] = (), moved_to: str | None = None) -> Intent:
    return Intent(
        operation_id="01A",
        command=command,
        argv=(),
        stack=Stack("local", "/s/terraform.tfstate", "default", "/s"),
        engine=EngineInfo("terraform", "1.11.4"),
        actor=Actor("me", "here"),
        started_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
        lineage="l",
        serial_before=2,
        steps=(),
        moved=moved,
        moved_to=moved_to,
        adopts=adopts,
    )


def compared(
    command: str, *operands: str, before: StateSnapshot, after: StateSnapshot, other: StateSnapshot
) -> Compared:
    made = intent(command, *(operands if command == "state mv" else ()))
    effect = {"refresh": Effect.READS, "state rm": Effect.TAKES_OUT, "state mv": Effect.MOVES, "taint": Effect.MARKS}
    effect["state push"] = Effect.OVERWRITES
    steps = repair_steps(effect[command], operands, before)
    return compare(made, steps, after, after, (other,), CATALOG)


@pytest.mark.parametrize(
    ("effect", "operands", "expected"),
    [
        (Effect.READS, (), {("aws_iam_role.app", None), ("aws_iam_role.app", "0a1b2c3d"), (JOBS.address, None)}),
        (
            Effect.OVERWRITES,
            ("-",),
            {("aws_iam_role.app", None), ("aws_iam_role.app", "0a1b2c3d"), (JOBS.address, None)},
        ),
        (Effect.TAKES_OUT, ("aws_iam_role.app",), {("aws_iam_role.app", None), ("aws_iam_role.app", "0a1b2c3d")}),
        (Effect.TAKES_OUT, ('module.q["a"]',), {(JOBS.address, None)}),
        (Effect.TAKES_OUT, ("module.q",), {(JOBS.address, None)}),
        (Effect.TAKES_OUT, ('module.q["a"].aws_sqs_queue.jobs',), {(JOBS.address, None)}),
        (Effect.TAKES_OUT, ("aws_iam_role.ap", "module.q2", "aws_iam_role"), set()),
        (
            Effect.MOVES,
            ("aws_iam_role.app", JOBS.address),
            {("aws_iam_role.app", None), ("aws_iam_role.app", "0a1b2c3d")},
        ),
        (Effect.MARKS, ("aws_iam_role.app",), {("aws_iam_role.app", None)}),
        (Effect.PUTS_IN, ("aws_vpc.new", "vpc-1"), {("aws_vpc.new", None)}),
        (Effect.REBINDS, ("a", "b"), set()),
        (Effect.UNLOCKS, ("1234",), set()),
    ],
)
def test_a_step_is_written_down_for_each_object_that_a_repair_may_touch(
    effect: Effect, operands: tuple[str, ...], expected: set[tuple[str, str | None]]
) -> None:
    steps = repair_steps(effect, operands, state(APP, OLD, JOBS))
    assert {(step.address, step.deposed) for step in steps} == expected
    assert all(step.type in ("aws_iam_role", "aws_sqs_queue", "aws_vpc") for step in steps)


def test_a_copy_of_a_marked_value_is_no_part_of_a_step() -> None:
    (step,) = repair_steps(
        Effect.TAKES_OUT, ("aws_iam_role.app",), replace(state(APP), secrets=frozenset({"role/app"}))
    )
    assert (step.before, step.withheld) == ({"name": "app"}, ("arn",))


def test_what_stayed_where_it_was_needs_no_step() -> None:
    found = compared("refresh", before=state(APP, JOBS, BARE), after=state(APP, JOBS, BARE), other=state())
    assert found == Compared((), ())


def test_what_left_the_state_is_looked_up() -> None:
    found = compared("refresh", before=state(APP, OLD, BARE), after=state(APP), other=state())
    assert [(step.address, step.deposed, step.action) for step in found.lost] == [
        ("aws_iam_role.app", "0a1b2c3d", Action.NOOP),
        ("terraform_data.x", None, Action.NOOP),
    ]
    assert found.told == ()


def test_an_address_with_another_object_has_lost_the_first() -> None:
    other = held("aws_iam_role.app", role("another"))
    (lost,) = compared("state push", before=state(APP), after=state(other), other=state()).lost
    assert lost.before["name"] == "app"
    assert compared("refresh", before=state(APP), after=state(other), other=state()) == Compared((), ())


@pytest.mark.parametrize(
    ("instance", "after"),
    [
        (APP, held("aws_iam_role.new", role())),
        (BARE, replace(BARE, address="aws_iam_role.new", type="terraform_data")),
    ],
)
def test_what_was_moved_is_recorded_at_its_new_place(instance: StateInstance, after: StateInstance) -> None:
    found = compared(
        "state mv", instance.address, "aws_iam_role.new", before=state(instance), after=state(after), other=state()
    )
    assert [(step.outcome, step.status) for step in found.told] == [(Outcome.RECORDED, StepStatus.OK)]
    assert found.lost == ()


def test_what_moves_to_another_state_is_looked_for_there_and_not_beside_it() -> None:
    moved = intent("state mv", "aws_iam_role.app", "aws_iam_role.b", moved_to="split.tfstate")
    steps = repair_steps(Effect.MOVES, moved.moved, state(APP))
    namesake = held("aws_iam_role.b", role("another"))
    found = compare(moved, steps, state(namesake), state(held("aws_iam_role.b", role())), (), CATALOG)
    assert found.told[0].evidence[0].detail == "split.tfstate holds app at aws_iam_role.b"
    assert compare(moved, steps, state(namesake), state(), (), CATALOG).lost == steps


def test_what_another_known_state_has_is_not_lost() -> None:
    found = compared("state rm", "aws_iam_role.app", before=state(APP), after=state(), other=state(APP))
    (told,) = found.told
    assert "another known state holds" in told.evidence[0].detail


def test_a_removal_that_did_not_happen_leaves_the_object_recorded() -> None:
    found = compared("state rm", "aws_iam_role.app", before=state(APP), after=state(APP), other=state())
    assert [step.outcome for step in found.told] == [Outcome.RECORDED]


def test_a_mark_shows_in_the_state_or_was_not_made() -> None:
    marked = compared(
        "taint", "aws_iam_role.app", before=state(APP), after=state(replace(APP, tainted=True)), other=state()
    )
    assert [step.outcome for step in marked.told] == [Outcome.TAINTED]
    missing = compared("taint", "aws_iam_role.nope", before=state(APP), after=state(APP), other=state())
    assert [(step.outcome, step.status, step.open) for step in missing.told] == [(None, StepStatus.ERROR, False)]


def test_an_adoption_is_no_repair() -> None:
    assert is_repair(intent("import")) and is_repair(intent("state rm"))
    assert not is_repair(intent("import", adopts=("o-1",)))
    assert not is_repair(intent("apply"))


DROPPED = Step(
    "aws_iam_role.app", "aws_iam_role", AWS, Action.NOOP, StepStatus.OK, before=APP.identity, provider_key="aws"
)


def test_what_was_dropped_and_is_listed_is_an_orphan_once_the_list_had_time() -> None:
    old = role(created=LONG_AGO)
    assert concluded(DROPPED, look(listing("aws_iam_role", old), now=END)).outcome is Outcome.UNKNOWN
    found = concluded(DROPPED, look(listing("aws_iam_role", old), now=AFTER))
    assert (found.outcome, found.open, findings(found)) == (Outcome.ORPHANED, True, {"app"})


def test_what_a_pushed_state_forgot_and_is_listed_is_an_orphan_at_once() -> None:
    pushed = replace(DROPPED, status=StepStatus.PENDING)
    assert concluded(pushed, look(listing("aws_iam_role", role()), now=END)).outcome is Outcome.ORPHANED


@pytest.mark.parametrize(
    ("step", "after"),
    [
        (DROPPED, held("aws_iam_role.app", role("another"))),
        (replace(DROPPED, deposed="0a1b2c3d"), held("aws_iam_role.app", role("another"))),
        (replace(DROPPED, action=Action.FORGET), held("aws_iam_role.app", role("another"))),
    ],
)
def test_another_object_at_the_address_does_not_hide_the_one_that_was_lost(step: Step, after: StateInstance) -> None:
    seen = look(listing("aws_iam_role", role(created=LONG_AGO), role("another")), holds=[after], now=AFTER)
    found = concluded(step, seen)
    assert (found.outcome, findings(found)) == (Outcome.ORPHANED, {"app"})


def test_what_a_pushed_state_forgot_and_is_not_listed_may_only_be_late() -> None:
    pushed = replace(DROPPED, status=StepStatus.PENDING)
    assert concluded(pushed, look(listing("aws_iam_role"), now=IN_GRACE)).outcome is Outcome.UNKNOWN
    assert concluded(pushed, look(listing("aws_iam_role"), now=AFTER)).outcome is Outcome.ABSENT


def test_a_type_that_could_be_listed_and_was_not_is_never_absent() -> None:
    assert concluded(DROPPED, look()).outcome is Outcome.UNKNOWN


def test_the_exit_code_of_a_repair_is_in_its_journal() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    assert exit_code_in([JournalEntry(at, STARTED, detail="state rm")]) is None
    assert exit_code_in([JournalEntry(at, STARTED), JournalEntry(at, ENDED, detail="exit code 17")]) == 17


def test_what_was_dropped_and_is_not_listed_is_absent_unless_the_look_was_incomplete_or_elsewhere() -> None:
    gone = concluded(DROPPED, look(listing("aws_iam_role")))
    assert (gone.outcome, gone.status) == (Outcome.ABSENT, StepStatus.ABSENT)
    assert concluded(DROPPED, look(listing("aws_iam_role", gap="AccessDenied"))).outcome is Outcome.UNKNOWN
    assert concluded(DROPPED, look(listing("aws_iam_role", account="999999999999"))).outcome is Outcome.UNKNOWN


def test_of_a_type_that_nobody_can_list_the_engines_own_read_counts_and_a_push_does_not() -> None:
    unlisted = replace(DROPPED, type="aws_nothing", before={})
    read = concluded(unlisted, look())
    assert (read.outcome, kinds(read)) == (Outcome.ABSENT, {EvidenceKind.ENGINE_EVENT})
    assert "did not find it" in read.evidence[0].detail
    assert concluded(replace(unlisted, status=StepStatus.PENDING), look()).outcome is Outcome.UNKNOWN


def test_the_ledger_gets_an_entry_for_each_live_object_that_was_taken_out_and_no_second_one() -> None:
    taken = concluded(replace(DROPPED, action=Action.FORGET), look(listing("aws_iam_role", role())))
    operation = Operation(intent("state rm"), None)
    (entry,) = removals(operation, [taken, DROPPED], {})
    assert (entry.kind, entry.finding_id) == (DispositionKind.RETAIN, taken.observed[0].finding_id)
    assert entry.reason == "removed from state by me@here at 2026-03-01T12:00:00Z (state rm)"
    assert removals(operation, [taken], {entry.finding_id: entry}) == []
