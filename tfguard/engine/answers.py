"""A line that a person types, or that is piped in, as the answer to a question."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Callable
from types import TracebackType

from tfguard.engine.interrupts import SignalGate

# An answer that is piped in comes at once; a pipe that nobody writes to must not hang a pipeline (case B67).
_PIPED_ANSWER_SECONDS = 5.0
_QUESTION = re.compile(rb"Enter a value:(?:\x1b\[[0-9;]*m)* (?:\x1b\[[0-9;]*m)*\Z")
_LONGEST_QUESTION = 100
# Whoever asks reads; only on a very busy machine not at once.
_HEARD_SECONDS = 10.0


def read_answer(gate: SignalGate) -> str | None:
    """The answer without what is blank at its end, as the engine reads one; None when there is no whole line, or a
    signal came first.

    A terminal is waited for as long as it takes, a pipe for a few seconds.
    """
    descriptor = sys.stdin.fileno()
    deadline = None if os.isatty(descriptor) else time.monotonic() + _PIPED_ANSWER_SECONDS
    line = b""
    while not gate.interrupted and (deadline is None or time.monotonic() < deadline):
        if not select.select([descriptor], [], [], 0.1)[0]:
            continue
        try:
            byte = os.read(descriptor, 1)
        except OSError:  # the terminal is gone
            return None
        if byte == b"":
            return None
        if byte == b"\n":
            return line.decode("utf-8", "replace").rstrip()
        line += byte
    return None


class PipedAnswers:
    """Hands the engine a line of what is piped into tfguard for each question that it asks, and else nothing.

    Open while the engine runs, which reads `descriptor`. It meets the end of its input where no answer comes.

    `given` are the answers to an engine that asked before, which are given again first; new ones are added.
    """

    def __init__(self, gate: SignalGate, given: list[str]) -> None:
        self._gate = gate
        self._given = given
        self._asked = 0
        self._quiet_since: float | None = None
        self.unheard = False
        """Whether the engine was found to have stopped listening."""
        self.descriptor, self._own = os.pipe()
        self._open = True
        self._end = b""

    def __enter__(self) -> PipedAnswers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        os.close(self.descriptor)

    def answering(self, show: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """Show what the engine writes, and then answer it if it is a question."""

        def take(chunk: bytes) -> None:
            show(chunk)
            self._answer(chunk)

        return take

    def goes_unheard(self) -> bool:
        """Whether the engine has asked, and reads neither the answer nor the end of its input: terraform can stop
        listening between two questions (it asks the second before it has done with the first), and then waits for ever.
        """
        if self._quiet_since is None or time.monotonic() - self._quiet_since < _HEARD_SECONDS:
            return False
        self._quiet_since = None
        (left,) = struct.unpack("i", fcntl.ioctl(self.descriptor, termios.FIONREAD, b"\0" * 4))
        self.unheard = left > 0 or not self._open
        return self.unheard

    def _answer(self, chunk: bytes) -> None:
        """A question is the last line so far, and has no line end."""
        self._end = (self._end + chunk)[-_LONGEST_QUESTION:]
        self._quiet_since = None
        if not _QUESTION.search(self._end):
            return
        self._end = b""
        if self._open:
            self._give()
        self._quiet_since = time.monotonic()

    def _give(self) -> None:
        """The next answer; where none comes, the end."""
        if self._asked == len(self._given) and (answer := read_answer(self._gate)) is not None:
            self._given.append(answer)
        if self._asked == len(self._given):
            self._close()
            return
        os.write(self._own, self._given[self._asked].encode() + b"\n")
        self._asked += 1

    def _close(self) -> None:
        if self._open:
            self._open = False
            os.close(self._own)
