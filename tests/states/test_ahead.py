"""Several states are read at a time, in their order, and not all of them before one is taken."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tfguard.ports import KnownState
from tfguard.states.ahead import AT_ONCE, read_ahead

LONG = 60.0


def one(number: int) -> KnownState:
    """A state."""
    return KnownState(f"s3://state/{number}", "default", None)


def test_states_come_in_their_order_and_several_are_read_at_a_time() -> None:
    together = threading.Barrier(AT_ONCE)

    def read(number: int) -> Callable[[], KnownState]:
        def of_it() -> KnownState:
            together.wait(LONG)  # each waits for the others
            return one(number)

        return of_it

    found = list(read_ahead(read(number) for number in range(2 * AT_ONCE)))
    assert found == [one(number) for number in range(2 * AT_ONCE)]


def test_no_more_are_begun_than_are_held_till_somebody_takes_one() -> None:
    begun: list[int] = []

    def read(number: int) -> Callable[[], KnownState]:
        begun.append(number)
        return lambda: one(number)

    states = read_ahead(read(number) for number in range(100))
    assert begun == []
    next(states)
    assert len(begun) == AT_ONCE
    next(states)
    assert len(begun) == AT_ONCE + 1
    states.close()  # type: ignore[attr-defined]
    assert len(begun) == AT_ONCE + 1


def test_an_error_comes_when_it_is_its_turn() -> None:
    def fails() -> KnownState:
        raise OSError("gone")

    states = read_ahead([lambda: one(0), fails, lambda: one(2)])
    assert next(states) == one(0)
    with pytest.raises(OSError, match="gone"):
        next(states)
