"""Signals that reach tfguard, and the one interrupt that the engine gets for each intent (rules 7 and 8)."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from threading import RLock, Thread
from types import FrameType, TracebackType
from typing import ClassVar

from tfguard.engine.signals import HANDLED

# One Ctrl-C can reach tfguard twice, from the terminal and forwarded by a wrapper; where counting the senders does not
# tell, two within this time are one.
_SAME_INTENT_SECONDS = 1.0
# A process that ends its child and then the child's whole group (timeout(1) does) sends twice and means it once.
_SAME_SENDING_SECONDS = 0.2

_FROM_KERNEL = 0x80  # SI_KERNEL, which the signal module does not name
_TELLS_SENDERS = hasattr(signal, "sigwaitinfo")


class Origin(Enum):
    """Where a signal comes from: the terminal, a process that tfguard runs under, any other process, or not known."""

    TERMINAL = "terminal"
    WRAPPER = "wrapper"
    OUTSIDE = "outside"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sent a signal; `pid` is 0 for none, and for a process outside the container."""

    origin: Origin
    pid: int = 0


@dataclass(frozen=True, slots=True)
class Arrival:
    """A signal, when it came (in seconds of the monotonic clock), and from whom."""

    signum: int
    at: float
    sender: Sender


class InterruptPolicy:
    """Decides which signals the engine hears of. Pure.

    The first signal of any kind becomes one interrupt. After it only another SIGINT, a person pressing Ctrl-C again,
    is a second intent; a SIGTERM or SIGHUP that follows is the same pipeline losing patience, and a second interrupt
    would make the engine drop the calls in flight (docs/facts/terraform.md, section 2).

    A sender that has sent more often than there were intents means a new one, however soon. One that has not may be
    handing on what the terminal or a supervisor has told tfguard already: a wrapper may do so at any later time, a
    terminal never does, and a process that has nothing to do with tfguard hardly.
    """

    def __init__(self) -> None:
        self.stopped = False
        """Whether tfguard has interrupted the engine by itself; the first intent has nothing to add to that."""
        self._intents = 0
        self._last_intent = 0.0
        self._sent: dict[Sender, tuple[int, float]] = {}

    def forwards(self, arrival: Arrival) -> bool:
        """Whether this signal is passed on to the engine as an interrupt."""
        if self._intents and arrival.signum != signal.SIGINT:
            return False
        times = self._times_sent(arrival)
        if self._intents and not self._is_new(arrival, times):
            return False
        self._intents += 1
        self._last_intent = arrival.at
        return self._intents > 1 or not self.stopped

    def _times_sent(self, arrival: Arrival) -> int:
        times, last = self._sent.get(arrival.sender, (0, float("-inf")))
        from_a_process = arrival.sender.origin is not Origin.TERMINAL
        if not (from_a_process and arrival.at - last < _SAME_SENDING_SECONDS):
            times += 1
        self._sent[arrival.sender] = (times, arrival.at)
        return times

    def _is_new(self, arrival: Arrival, times: int) -> bool:
        known = arrival.sender.origin is not Origin.UNKNOWN
        relays = arrival.sender.origin is Origin.WRAPPER
        much_later = arrival.at - self._last_intent >= _SAME_INTENT_SECONDS
        return (known and times > self._intents) or (much_later and not relays)


class SignalGate:
    """While open, signals to tfguard wait here to be looked at instead of ending it. Use from the main thread.

    A thread of its own takes them in, so that the engine hears of an interrupt also while tfguard waits for a slow
    reader or a far record. Where the system does not tell who sent a signal, the handlers take them in.
    """

    leaves: ClassVar[signal.Handlers | None] = None
    """What a gate leaves behind, None for what it found: nothing may change the engine's exit code once it is known."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self._not_judged: deque[Arrival] = deque()
        self._judged: deque[tuple[int, bool]] = deque()
        self._policy = InterruptPolicy()
        self._interrupt: Callable[[], bool] | None = None
        self._lock = RLock()  # a handler may run inside its own thread's critical section
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
        self._taker: Thread | None = None
        self._closing = False

    def __enter__(self) -> SignalGate:
        for signum in HANDLED:
            # `nohup` says that a closing terminal is no reason to stop; the engine would obey that too.
            if signum != signal.SIGHUP or signal.getsignal(signum) != signal.SIG_IGN:
                self._before[signum] = signal.signal(signum, self._handle)
        if _TELLS_SENDERS:
            signal.pthread_sigmask(signal.SIG_BLOCK, self._before)
            self._taker = Thread(target=self._take_in, name="tfguard-signals", daemon=True)
            self._taker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.leaves is not None:
            for signum in self._before:
                signal.signal(signum, self.leaves)
        if self._taker is not None and self._taker.ident is not None:
            self._closing = True
            signal.pthread_kill(self._taker.ident, signal.SIGINT)
            self._taker.join()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._before)
        for signum, found in self._before.items():
            handler = found if self.leaves is None else self.leaves
            signal.signal(signum, handler if handler is not None else signal.SIG_DFL)

    def _take_in(self) -> None:
        while True:
            told = signal.sigwaitinfo(self._before)
            if self._closing and told.si_pid == os.getpid():
                return
            self._arrived(told.si_signo, _sender(told))

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        self._arrived(signum, Sender(Origin.UNKNOWN))

    def _arrived(self, signum: int, sender: Sender) -> None:
        with self._lock:
            self.seen.append(signum)
            self._not_judged.append(Arrival(signum, time.monotonic(), sender))
            self._pass_on()

    def _pass_on(self) -> None:
        while self._interrupt is not None and self._not_judged:
            arrival = self._not_judged.popleft()
            forwarded = self._policy.forwards(arrival) and self._interrupt()
            self._judged.append((arrival.signum, forwarded))

    @property
    def interrupted(self) -> bool:
        """Whether any signal has come since the gate was opened."""
        return bool(self.seen)

    @contextmanager
    def forwarding(self, interrupt: Callable[[], bool]) -> Iterator[None]:
        """While open, an engine runs: each intent is passed on at once by `interrupt`, which tells whether it could be.

        A signal that came before, and that no engine heard of, is passed on too.
        """
        with self._lock:
            self._policy, self._interrupt = InterruptPolicy(), interrupt
            self._pass_on()
        try:
            yield
        finally:
            with self._lock:
                self._interrupt = None

    def stop_engine(self) -> None:
        """Interrupt the engine that runs once, without a signal; nothing where an interrupt was passed on before."""
        with self._lock:
            if self._interrupt is not None and not self.seen and not self._policy.stopped:
                self._policy.stopped = True
                self._interrupt()

    def take(self) -> tuple[int, bool] | None:
        """The next signal that came while an engine ran, and whether the engine was sent an interrupt for it."""
        return self._judged.popleft() if self._judged else None


def _sender(told: signal.struct_siginfo) -> Sender:
    if told.si_code == _FROM_KERNEL:
        return Sender(Origin.TERMINAL)
    return Sender(Origin.WRAPPER if told.si_pid in _ancestors() else Origin.OUTSIDE, told.si_pid)


def _ancestors() -> Iterator[int]:
    """The processes that tfguard runs under, from its parent upwards, as far as they can be seen."""
    pid = os.getppid()
    while pid > 0:
        yield pid
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            return
