"""The steps as the engine told of them, and what of its events may be kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scene import START, step

from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.failure import Failure, FailureKind
from tfguard.model.operation import JournalEntry, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.secrets import Withholding
from tfguard.reconcile.progress import Progress, journal_entry

ADDRESS = "aws_vpc.main"
CANARY = "hunter2-canary"
Told = tuple[str, str | None]
BEGIN, DONE, FAILED, END = "apply_start", "apply_complete", "apply_errored", "change_summary"


def progress(*told: Told, address: str = ADDRESS) -> Progress:
    """What a journal of these (event, action) pairs tells, a second apart."""
    folded = Progress()
    folded.add(
        JournalEntry(START + timedelta(seconds=number), kind, address, action)
        for number, (kind, action) in enumerate(told)
    )
    return folded


def status(planned: Step, *told: Told, success: bool = False) -> StepStatus:
    """The status of a step after these events."""
    return progress(*told).apply_to([planned], success)[0].status


def planned(action: Action) -> Step:
    """A step that nothing was told of yet."""
    return step(ADDRESS, action, StepStatus.PENDING)


DELETED: Sequence[Told] = [(BEGIN, "delete"), (DONE, "delete")]
CREATED: Sequence[Told] = [(BEGIN, "create"), (DONE, "create")]


@pytest.mark.parametrize(
    ("action", "told", "expected"),
    [
        (Action.CREATE, [], StepStatus.PENDING),
        (Action.CREATE, CREATED[:1], StepStatus.RUNNING),
        (Action.CREATE, CREATED, StepStatus.OK),
        (Action.CREATE, [*CREATED[:1], (FAILED, "create")], StepStatus.ERROR),
        (Action.DELETE, DELETED, StepStatus.OK),
        (Action.UPDATE, [(BEGIN, "update"), (DONE, "update")], StepStatus.OK),
        (Action.REPLACE, DELETED[:1], StepStatus.RUNNING),
        (Action.REPLACE, DELETED, StepStatus.RUNNING),
        (Action.REPLACE, [*DELETED, *CREATED[:1]], StepStatus.RUNNING),
        (Action.REPLACE, [*DELETED, *CREATED], StepStatus.OK),
        (Action.REPLACE, [*CREATED, *DELETED], StepStatus.OK),  # create_before_destroy
        (Action.REPLACE, [*CREATED, *DELETED[:1]], StepStatus.RUNNING),
        (Action.REPLACE, [*CREATED, *DELETED[:1], (FAILED, "delete")], StepStatus.ERROR),
    ],
)
def test_a_step_stands_where_its_events_leave_it(action: Action, told: Sequence[Told], expected: StepStatus) -> None:
    assert status(planned(action), *told) is expected


def test_a_success_closes_what_has_no_event_of_its_own_and_nothing_that_began() -> None:
    assert status(planned(Action.NOOP), success=True) is StepStatus.OK
    assert status(planned(Action.CREATE), *CREATED[:1], success=True) is StepStatus.RUNNING


@pytest.mark.parametrize(
    ("told", "is_open"),
    [
        ([], False),
        (CREATED[:1], True),
        (CREATED, False),
        ([*CREATED[:1], (FAILED, "create")], True),
        (DELETED, False),
        ([*DELETED[:1], (FAILED, "delete")], False),
        ([*DELETED, *CREATED[:1]], True),
        ([*CREATED, *DELETED[:1], (FAILED, "delete")], False),
    ],
)
def test_a_create_is_open_from_its_start_to_its_good_end(told: Sequence[Told], is_open: bool) -> None:
    assert (ADDRESS in progress(*told).open_creates) is is_open


def test_events_of_one_address_say_nothing_about_another() -> None:
    assert progress(*CREATED, address="aws_vpc.other").apply_to([planned(Action.CREATE)], False)[0].status is (
        StepStatus.PENDING
    )


def test_the_id_of_a_create_is_kept_and_that_of_a_delete_is_not() -> None:
    folded = Progress()
    folded.add(
        [
            JournalEntry(START, DONE, ADDRESS, "create", "vpc-new"),
            JournalEntry(START, DONE, ADDRESS, "delete", "vpc-old"),
        ]
    )
    assert folded.apply_to([planned(Action.REPLACE)], False)[0].reported_id == "vpc-new"


REFUSED = Failure(FailureKind.REFUSED, "EC2 CreateVpc: HTTP 403 UnauthorizedOperation", "CreateVpc", 403)
LOST = Failure(FailureKind.NO_REPLY, "EC2 CreateVpc: no usable reply", "CreateVpc")


@pytest.mark.parametrize("order", [[REFUSED, LOST], [LOST, REFUSED], [LOST, REFUSED, REFUSED]])
def test_a_refusal_beside_a_lost_reply_does_not_hide_it(order: list[Failure]) -> None:
    folded = Progress()
    folded.add(JournalEntry(START, "diagnostic", ADDRESS, failure=failure) for failure in order)
    assert folded.failures[ADDRESS] == LOST
    told = folded.apply_to([planned(Action.CREATE)], False)[0]
    assert (told.status, told.error) == (StepStatus.ERROR, LOST.detail)
    assert folded.first_failure == order[0]


def test_a_failure_without_an_address_is_the_runs_and_no_steps() -> None:
    folded = Progress()
    folded.add([JournalEntry(START, "diagnostic", None, failure=REFUSED)])
    assert (folded.failures, folded.first_failure) == ({}, REFUSED)
    assert folded.apply_to([planned(Action.CREATE)], False)[0].status is StepStatus.PENDING


def test_the_end_and_the_last_activity_are_known() -> None:
    folded = progress(*CREATED, (END, None))
    assert (folded.finished, folded.last_at) == (True, START + timedelta(seconds=2))
    folded.add([JournalEntry(START, BEGIN, ADDRESS, "create")])  # the engine's times are not monotonic
    assert folded.last_at == START + timedelta(seconds=2)
    assert (Progress().finished, Progress().last_at) == (False, None)


def event(kind: EventKind, **fields: object) -> EngineEvent:
    """An event of one address."""
    return EngineEvent(kind, kind.value, address=ADDRESS, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("secrets", "kept"),
    [
        (frozenset(), "id-of-it"),
        (frozenset(["other-secret"]), "id-of-it"),
        (frozenset(["id-of-it"]), None),
        (frozenset(["of-it"]), None),
        (None, None),
    ],
)
def test_an_id_is_kept_only_when_it_is_known_to_carry_no_secret(
    secrets: frozenset[str] | None, kept: str | None
) -> None:
    done = event(EventKind.APPLY_COMPLETE, action="create", id_key="id", id_value="id-of-it")
    entry = journal_entry(done, START, Withholding(secrets or frozenset()), ids=secrets is not None)
    assert entry == JournalEntry(START, "apply_complete", ADDRESS, "create", kept)


@pytest.mark.parametrize("kind", [kind for kind in EventKind if kind.value not in (BEGIN, DONE, FAILED, END)])
def test_an_event_that_changes_no_step_leaves_no_line(kind: EventKind) -> None:
    told = event(kind, message=CANARY, text=CANARY, severity="warning", summary=CANARY, raw={"x": CANARY})
    assert journal_entry(told, START, Withholding()) is None


@given(
    st.sampled_from([kind for kind in EventKind]),
    st.text(max_size=20),
    st.text(max_size=20),
    st.sampled_from(["error", "warning", None]),
)
def test_no_text_of_the_engine_reaches_a_journal(
    kind: EventKind, before: str, after: str, severity: str | None
) -> None:
    text = before + CANARY + after
    told = event(
        kind,
        message=text,
        text=text,
        summary=text,
        severity=severity,
        raw={"diagnostic": {"detail": text, "summary": text, "snippet": {"code": text}}, "@message": text},
    )
    assert CANARY not in repr(journal_entry(told, START, Withholding()))


def test_a_diagnostic_without_a_detail_is_read_by_its_summary() -> None:
    for raw in ({}, {"diagnostic": "text"}, {"diagnostic": {"detail": 3}}):
        told = event(EventKind.DIAGNOSTIC, severity="error", summary="context canceled", raw=raw)
        entry = journal_entry(told, START, Withholding())
        assert entry is not None
        assert entry.failure is not None
        assert entry.failure.kind is FailureKind.CANCELLED
