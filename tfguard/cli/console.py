"""tfguard's own words, on stderr; the engine's go through `UserStreams`."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from datetime import UTC, datetime
from typing import TextIO

from tfguard.cli.invocation import colour_wanted
from tfguard.engine.answers import read_answer
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import InterruptedRunError
from tfguard.model.printable import printable
from tfguard.report.paint import Paint

_PATIENCE_SECONDS = 1.0


class UserStreams:
    """The user's stdout and stderr for the engine's output. A reader that has gone away stops nothing (case B10)."""

    def __init__(self) -> None:
        self._gone: set[int] = set()

    def out(self, text: str) -> None:
        """Write to stdout and flush."""
        self._write(sys.stdout, text)

    def err(self, text: str) -> None:
        """Write to stderr and flush."""
        self._write(sys.stderr, text)

    def _write(self, stream: TextIO, text: str) -> None:
        if not text or stream.fileno() in self._gone:
            return
        try:
            stream.flush()
            self._write_all(stream.fileno(), text.encode("utf-8", "replace"))
        except (OSError, ValueError):
            self._gone.add(stream.fileno())
            _detach(stream)

    def _write_all(self, descriptor: int, data: bytes) -> None:
        """Write everything, also to a reader that is slow, or stopped, or did not ask to be waited for."""
        while data:
            if not select.select([], [descriptor], [], _PATIENCE_SECONDS)[1]:
                continue
            with contextlib.suppress(BlockingIOError):
                # As much as a pipe that can be written to takes without waiting.
                data = data[os.write(descriptor, data[: select.PIPE_BUF]) :]


def _detach(stream: TextIO) -> None:
    """Point a dead stream at nothing, so that Python's own flush at the end does not fail either."""
    with contextlib.suppress(OSError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def marked(*lines: str) -> str:
    """tfguard's own words, each line marked as such, without what would steer a terminal: names in it are others'."""
    return "".join(f"tfguard: {printable(line)}\n" for line in lines)


def stderr_paint() -> Paint:
    """Colour for stderr, where it is a terminal."""
    return Paint(colour_wanted(sys.stderr))


class StderrConsole:
    """Each line starts with `tfguard:`, so that nobody takes it for the engine's."""

    def __init__(self, gate: SignalGate) -> None:
        self._gate = gate
        self._streams = UserStreams()
        self._paint = stderr_paint()

    def say(self, text: str) -> None:
        """One line."""
        self._streams.err(marked(text))

    def warn(self, text: str) -> None:
        """One line that should be noticed."""
        self._streams.err(f"tfguard: {self._paint('warning:', 'yellow', 'bold')} {printable(text)}\n")

    def confirm(self, question: str) -> bool:
        """Ask yes or no on a terminal; without one the answer is no."""
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        return self.ask(f"{question} Only 'yes' is taken:") == "yes"

    def ask(self, question: str) -> str | None:
        """The line that is typed or piped in as an answer; None when none comes.

        Raises `InterruptedRunError` when a signal comes instead.
        """
        self._streams.err(f"tfguard: {printable(question)} ")
        answer = read_answer(self._gate)
        if answer is None or not sys.stdin.isatty():
            self._streams.err("\n")
        if self._gate.interrupted:
            raise InterruptedRunError("interrupted at the question, which counts as a no", "run the command again")
        return answer


class SystemClock:
    """The machine's clock; a sleep ends early when a signal comes."""

    def __init__(self, gate: SignalGate) -> None:
        self._gate = gate

    @property
    def interrupted(self) -> bool:
        """Whether a signal has asked to stop."""
        return self._gate.interrupted

    def now(self) -> datetime:
        """The time in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> bool:
        """Wait; False, and early, when the user interrupts."""
        end = time.monotonic() + seconds
        while not self._gate.interrupted and (left := end - time.monotonic()) > 0:
            time.sleep(min(0.1, left))
        return not self._gate.interrupted
