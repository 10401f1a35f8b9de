"""Signals that reach tfguard, and the one interrupt that the engine gets for each intent (rules 7 and 8)."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable
from types import FrameType, TracebackType

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

# One Ctrl-C can reach tfguard twice: from the terminal, and forwarded by a wrapper around it.
_SAME_INTENT_SECONDS = 1.0


class InterruptPolicy:
    """Decides which signals the engine hears of. Pure: the time is handed in, in seconds.

    The first signal of any kind becomes one interrupt. After it only another SIGINT, a person pressing Ctrl-C again,
    is a second intent; a SIGTERM or SIGHUP that follows is the same pipeline losing patience, and a second interrupt
    would make the engine drop the calls in flight (docs/facts/terraform.md, section 2).
    """

    def __init__(self) -> None:
        self._last: float | None = None

    def forwards(self, signum: int, at: float) -> bool:
        """Whether this signal is passed on to the engine as an interrupt."""
        if self._last is None:
            self._last = at
            return True
        if signum == signal.SIGINT and at - self._last >= _SAME_INTENT_SECONDS:
            self._last = at
            return True
        return False


class SignalGate:
    """While open, signals to tfguard wait here to be looked at instead of ending it. Use from the main thread."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, float]] = deque()
        self._before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        self.seen: list[int] = []

    def __enter__(self) -> SignalGate:
        for signum in HANDLED:
            self._before[signum] = signal.signal(signum, self._arrived)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler if handler is not None else signal.SIG_DFL)

    def _arrived(self, signum: int, _frame: FrameType | None) -> None:
        self._waiting.append((signum, time.monotonic()))
        self.seen.append(signum)

    @property
    def interrupted(self) -> bool:
        """Whether any signal has come since the gate was opened."""
        return bool(self.seen)

    def take(self) -> tuple[int, float] | None:
        """The next signal that nobody has looked at, with its time in seconds of the monotonic clock."""
        return self._waiting.popleft() if self._waiting else None
