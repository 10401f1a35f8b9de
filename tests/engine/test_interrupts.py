"""One intent, one interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.engine.interrupts import Arrival, InterruptPolicy, Origin, Sender, SignalGate
from tfguard.engine.signals import HANDLED, signals_let_through

INT, TERM, HUP, QUIT = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT
UNKNOWN, KEY = Sender(Origin.UNKNOWN), Sender(Origin.TERMINAL)
WRAPPER, OUTER = Sender(Origin.WRAPPER, 10), Sender(Origin.WRAPPER, 9)
KILL, OTHER_KILL, CONTAINER = Sender(Origin.OUTSIDE, 70), Sender(Origin.OUTSIDE, 71), Sender(Origin.OUTSIDE, 0)


def forwarded(*arrivals: tuple[int, float, Sender]) -> list[bool]:
    """Which of these signals the engine hears of."""
    policy = InterruptPolicy()
    return [policy.forwards(Arrival(signum, at, sender)) for signum, at, sender in arrivals]


@pytest.mark.parametrize("sender", [UNKNOWN, KEY, WRAPPER, KILL, CONTAINER])
@pytest.mark.parametrize("signum", HANDLED)
def test_the_first_signal_is_an_intent_whatever_it_is_and_whoever_sends_it(signum: int, sender: Sender) -> None:
    assert forwarded((signum, 0, sender)) == [True]


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
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
def test_where_nobody_tells_the_sender_time_tells_a_second_intent(
    arrivals: Sequence[tuple[int, float]], expected: list[bool]
) -> None:
    assert forwarded(*((signum, at, UNKNOWN) for signum, at in arrivals)) == expected


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        # Keys: each is one intent, however fast they are pressed.
        ([(INT, 0, KEY), (INT, 0.02, KEY)], [True, True]),
        ([(INT, 0, KEY), (INT, 0.1, KEY), (INT, 0.2, KEY)], [True, True, True]),
        # A wrapper hands on what the terminal has told tfguard too: soon, late, or before it.
        ([(INT, 0, KEY), (INT, 0.05, WRAPPER)], [True, False]),
        ([(INT, 0, KEY), (INT, 45, WRAPPER)], [True, False]),
        ([(INT, 0, WRAPPER), (INT, 0.01, KEY)], [True, False]),
        ([(INT, 0, KEY), (INT, 0.05, WRAPPER), (INT, 0.06, OUTER)], [True, False, False]),
        ([(INT, 0, KEY), (INT, 0.1, KEY), (INT, 0.3, WRAPPER), (INT, 0.6, WRAPPER)], [True, True, False, False]),
        ([(INT, 0, KEY), (INT, 0.05, WRAPPER), (INT, 9, KEY), (INT, 9.05, WRAPPER)], [True, False, True, False]),
        ([(INT, 0, KEY), (TERM, 0.05, WRAPPER)], [True, False]),
        # A wrapper alone, as in a container without a terminal: it hands every key on, and nobody else does.
        ([(INT, 0, WRAPPER), (INT, 0.3, WRAPPER)], [True, True]),
        ([(INT, 0, CONTAINER), (INT, 0.3, CONTAINER)], [True, True]),
        # timeout(1) ends its child, and then the child's whole group.
        ([(INT, 0, WRAPPER), (INT, 0.0004, WRAPPER)], [True, False]),
        ([(INT, 0, KILL), (INT, 0.0004, KILL)], [True, False]),
        # A supervisor ends the whole group; the wrapper hands it on when it pleases.
        ([(INT, 0, KILL), (INT, 20, WRAPPER)], [True, False]),
        ([(TERM, 0, KILL), (INT, 20, WRAPPER)], [True, False]),
        # `kill -INT`, twice, from a shell that is none of tfguard's.
        ([(INT, 0, KILL), (INT, 8, OTHER_KILL)], [True, True]),
        ([(INT, 0, KILL), (INT, 8, KILL)], [True, True]),
        ([(INT, 0, KEY), (INT, 8, KILL)], [True, True]),
        ([(INT, 0, KILL), (INT, 0.5, OTHER_KILL)], [True, False]),
        # A job that is ended, and then a person who presses Ctrl-C.
        ([(TERM, 0, KILL), (INT, 30, KEY)], [True, True]),
        ([(TERM, 0, WRAPPER), (INT, 30, WRAPPER)], [True, True]),
        # A pipeline that loses its patience.
        ([(INT, 0, WRAPPER), (TERM, 7.5, WRAPPER), (TERM, 10, WRAPPER)], [True, False, False]),
        ([(TERM, 0, CONTAINER), (TERM, 10, CONTAINER), (HUP, 11, KEY), (QUIT, 12, KILL)], [True, False, False, False]),
    ],
)
def test_only_who_says_more_than_was_said_means_a_second_intent(
    arrivals: Sequence[tuple[int, float, Sender]], expected: list[bool]
) -> None:
    assert forwarded(*arrivals) == expected


SENDERS = st.sampled_from([UNKNOWN, KEY, WRAPPER, OUTER, KILL, OTHER_KILL, CONTAINER])


@given(st.lists(st.tuples(st.sampled_from(HANDLED), st.floats(0, 3), SENDERS), min_size=1, max_size=12))
def test_however_signals_come_there_are_no_more_interrupts_than_anybody_can_have_meant(
    gaps: list[tuple[int, float, Sender]],
) -> None:
    at, arrivals = 0.0, []
    for signum, gap, sender in gaps:
        at += gap
        arrivals.append((signum, at, sender))
    passed = [arrival for arrival, yes in zip(arrivals, forwarded(*arrivals), strict=True) if yes]
    assert passed[0] == arrivals[0]
    assert all(signum == INT for signum, _, _ in passed[1:])
    keys = sum(signum == INT and sender == KEY for signum, _, sender in arrivals)
    from_others = sum(sender != KEY for _, _, sender in arrivals)
    assert len(passed) <= keys + from_others + 1


@given(st.lists(st.floats(0, 3), min_size=1, max_size=6), st.lists(st.floats(0, 60), max_size=2))
def test_a_wrapper_that_hands_every_key_on_adds_nothing(gaps: list[float], delays: list[float]) -> None:
    keys = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    relayed = [
        (INT, at + delay, Sender(Origin.WRAPPER, pid)) for pid, delay in enumerate(delays, start=5) for at in keys
    ]
    arrivals = sorted([*((INT, at, KEY) for at in keys), *relayed], key=lambda arrival: arrival[1])
    assert sum(forwarded(*arrivals)) == len(keys)


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds: a signal is taken in by another thread."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def test_signals_that_come_before_the_engine_end_nothing_and_reach_it_as_one() -> None:
    sent: list[bool] = []
    with SignalGate() as gate:
        assert (gate.take(), gate.interrupted) == (None, False)
        for number, signum in enumerate((TERM, INT, HUP), start=1):
            os.kill(os.getpid(), signum)
            eventually(lambda number=number: len(gate.seen) == number)
        assert gate.interrupted
        assert gate.seen == [TERM, INT, HUP]
        assert gate.take() is None
        with gate.forwarding(lambda: sent.append(True) or True):
            assert [gate.take() for _ in range(4)] == [(TERM, True), (INT, False), (HUP, False), None]
    assert sent == [True]


def test_an_interrupt_is_passed_on_while_tfguard_is_busy_with_something_else() -> None:
    sent: list[float] = []
    with SignalGate() as gate, gate.forwarding(lambda: sent.append(time.monotonic()) or True):
        os.kill(os.getpid(), INT)
        eventually(lambda: bool(sent))  # nobody has asked the gate for anything
        assert gate.take() == (INT, True)


def test_an_engine_that_has_ended_is_sent_nothing_and_told_so() -> None:
    with SignalGate() as gate, gate.forwarding(lambda: False):
        os.kill(os.getpid(), INT)
        eventually(lambda: gate.interrupted)
        eventually(lambda: gate.take() == (INT, False))


def test_each_engine_has_intents_of_its_own() -> None:
    sent: list[str] = []
    with SignalGate() as gate:
        for name in ("plan", "push"):
            seen = len(gate.seen)
            with gate.forwarding(lambda name=name: sent.append(name) or True):
                os.kill(os.getpid(), TERM)
                eventually(lambda seen=seen: len(gate.seen) > seen)
    assert sent == ["plan", "push"]


def test_a_process_that_is_started_has_nothing_blocked() -> None:
    script = "import signal; print(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    with SignalGate(), signals_let_through():
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


def test_what_comes_while_a_process_is_started_is_not_lost() -> None:
    with SignalGate() as gate:
        with signals_let_through():
            os.kill(os.getpid(), TERM)
        eventually(lambda: gate.seen == [TERM])


def test_a_closed_gate_leaves_everything_as_it_was() -> None:
    before = {signum: signal.getsignal(signum) for signum in HANDLED}
    with SignalGate():
        assert all(signal.getsignal(signum) != before[signum] for signum in HANDLED)
    assert {signum: signal.getsignal(signum) for signum in HANDLED} == before
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & set(HANDLED)


def test_a_hang_up_that_was_ignored_stays_ignored() -> None:
    before = signal.signal(HUP, signal.SIG_IGN)
    try:
        with SignalGate() as gate:
            os.kill(os.getpid(), HUP)
            os.kill(os.getpid(), INT)
            eventually(lambda: gate.interrupted)
            assert gate.seen == [INT]
        assert signal.getsignal(HUP) is signal.SIG_IGN
    finally:
        signal.signal(HUP, before)


def test_where_the_system_tells_no_senders_the_handlers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfguard.engine.interrupts._TELLS_SENDERS", False)
    sent: list[bool] = []
    with SignalGate() as gate, gate.forwarding(lambda: sent.append(True) or True):
        os.kill(os.getpid(), INT)
        os.kill(os.getpid(), INT)
        eventually(lambda: len(gate.seen) == 2)
        assert [gate.take(), gate.take()] == [(INT, True), (INT, False)]
    assert sent == [True]


def test_an_engine_that_tfguard_has_stopped_hears_nothing_of_the_first_intent_that_follows() -> None:
    policy = InterruptPolicy()
    policy.stopped = True
    assert [policy.forwards(Arrival(INT, at, KEY)) for at in (5, 9)] == [False, True]


def test_the_gate_stops_an_engine_once_and_none_that_has_an_interrupt_already() -> None:
    sent: list[str] = []

    def interrupt() -> bool:
        sent.append("interrupt")
        return True

    with SignalGate() as gate:
        gate.stop_engine()  # nothing runs
        with gate.forwarding(interrupt):
            gate.stop_engine()
            gate.stop_engine()
        assert (sent, gate.interrupted, gate.take()) == (["interrupt"], False, None)
        with gate.forwarding(interrupt):
            os.kill(os.getpid(), INT)
            eventually(lambda: gate.interrupted)
            gate.stop_engine()
        assert sent == ["interrupt", "interrupt"]
