"""One intent, one interrupt."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.engine.interrupts import HANDLED, InterruptPolicy, SignalGate

INT, TERM, HUP, QUIT = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT


def forwarded(*arrivals: tuple[int, float]) -> list[bool]:
    """Which of these signals the engine hears of."""
    policy = InterruptPolicy()
    return [policy.forwards(signum, at) for signum, at in arrivals]


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ([(INT, 0)], [True]),
        ([(TERM, 0)], [True]),
        ([(HUP, 0)], [True]),
        ([(QUIT, 0)], [True]),
        ([(INT, 0), (INT, 0.01)], [True, False]),  # the terminal's, and a wrapper's for the same key
        ([(INT, 0), (INT, 0.99)], [True, False]),
        ([(INT, 0), (INT, 1.0)], [True, True]),
        ([(INT, 0), (INT, 0.6), (INT, 1.2)], [True, False, True]),
        ([(INT, 0), (TERM, 30)], [True, False]),
        ([(TERM, 0), (TERM, 30), (HUP, 60)], [True, False, False]),
        ([(TERM, 0), (INT, 0.1)], [True, False]),
        ([(TERM, 0), (INT, 30)], [True, True]),
        ([(HUP, 0), (TERM, 5), (INT, 7), (INT, 7.2), (INT, 20)], [True, False, True, False, True]),
    ],
)
def test_only_a_person_who_presses_again_is_a_second_intent(
    arrivals: Sequence[tuple[int, float]], expected: list[bool]
) -> None:
    assert forwarded(*arrivals) == expected


@given(st.lists(st.tuples(st.sampled_from(HANDLED), st.floats(0, 3)), min_size=1, max_size=10))
def test_however_signals_come_the_first_passes_and_later_ones_are_far_apart(gaps: list[tuple[int, float]]) -> None:
    at, arrivals = 0.0, []
    for signum, gap in gaps:
        at += gap
        arrivals.append((signum, at))
    passed = [arrival for arrival, yes in zip(arrivals, forwarded(*arrivals), strict=True) if yes]
    assert passed[0] == arrivals[0]
    assert all(signum == INT for signum, _ in passed[1:])
    assert all(later - earlier >= 1.0 for (_, earlier), (_, later) in pairwise(passed))


def test_signals_wait_at_the_gate_in_their_order_and_end_nothing() -> None:
    with SignalGate() as gate:
        assert (gate.take(), gate.interrupted) == (None, False)
        for signum in (TERM, INT, HUP):
            os.kill(os.getpid(), signum)
        taken = [gate.take() for _ in range(3)]
        assert [one[0] for one in taken if one] == [TERM, INT, HUP]
        times = [one[1] for one in taken if one]
        assert times == sorted(times)
        assert (gate.take(), gate.interrupted, gate.seen) == (None, True, [TERM, INT, HUP])


def test_a_closed_gate_leaves_the_handlers_as_they_were() -> None:
    before = {signum: signal.getsignal(signum) for signum in HANDLED}
    with SignalGate():
        assert all(signal.getsignal(signum) != before[signum] for signum in HANDLED)
    assert {signum: signal.getsignal(signum) for signum in HANDLED} == before


def test_a_hang_up_that_was_ignored_stays_ignored_behind_the_gate() -> None:
    before = signal.signal(HUP, signal.SIG_IGN)
    try:
        with SignalGate():
            pass
        assert signal.getsignal(HUP) is signal.SIG_IGN
    finally:
        signal.signal(HUP, before)
