"""The lease that a run takes first: how long it tries while the store is busy or another run is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from packed import Heard, MovedClock

from tfguard.errors import BusyStoreError, OperationAliveError, RecordError, TfguardError
from tfguard.flows.upkeep import holding

BUSY = BusyStoreError("the store is busy", "try again")
ALIVE = OperationAliveError("another run is there", "wait")


@dataclass
class FailingRecords:
    """Records whose claim fails with each of these in turn, and then goes through; with the first for ever if
    `always`."""

    errors: list[TfguardError]
    always: bool = False
    claimed: list[str] = field(default_factory=list)

    def claim(self, operation_id: str, run_directory: str | None) -> None:  # noqa: ARG002 (the port's signature)
        if self.errors:
            raise self.errors[0] if self.always else self.errors.pop(0)
        self.claimed.append(operation_id)

    def renew(self, *_: Any) -> bool:
        return True

    def release(self, operation_id: str) -> None:
        self.claimed.remove(operation_id)


def hold(records: FailingRecords, patience: timedelta = timedelta(0)) -> SimpleNamespace:
    """Take and give back the lease; what was raised, waited and said."""
    clock, heard = MovedClock(), Heard()
    context: Any = SimpleNamespace(records=records, clock=clock, console=heard)
    began, raised = clock.now(), None
    try:
        with holding(context, "01A", None, patience):
            assert records.claimed == ["01A"]
    except TfguardError as error:
        raised = error
    return SimpleNamespace(error=raised, waited=clock.now() - began, said=heard.lines)


def test_a_busy_store_is_tried_again_before_anything_begins_and_told_once() -> None:
    held = hold(FailingRecords([BUSY, BUSY, BUSY]))
    assert held.error is None
    assert held.said == ["the store is busy; trying again, up to 2 min"]


def test_a_store_that_stays_busy_is_given_up_with_its_own_error() -> None:
    held = hold(FailingRecords([BUSY], always=True))
    assert held.error is BUSY
    assert timedelta(minutes=2) <= held.waited < timedelta(minutes=3)


@pytest.mark.parametrize("error", [RecordError("the bucket is not there", "make it"), ALIVE])
def test_what_does_not_pass_by_itself_is_told_at_once(error: TfguardError) -> None:
    held = hold(FailingRecords([error]))
    assert held.error is error
    assert (held.waited, held.said) == (timedelta(0), [])


def test_another_run_is_waited_for_as_long_as_asked_also_where_the_store_was_busy_before() -> None:
    held = hold(FailingRecords([BUSY, ALIVE, ALIVE, BUSY, ALIVE]), timedelta(seconds=30))
    assert held.error is None
    assert held.said == [
        "the store is busy; trying again, up to 2 min",
        "another run is there; waiting for it, up to 30 s (-lock-timeout)",
    ]
