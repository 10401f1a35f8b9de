"""A line that a person types, or that is piped in, as the answer to a question."""

from __future__ import annotations

import os
import select
import sys
import time

from tfguard.engine.interrupts import SignalGate

# An answer that is piped in comes at once; a pipe that nobody writes to must not hang a pipeline (case B67).
_PIPED_ANSWER_SECONDS = 5.0


def read_answer(gate: SignalGate) -> str | None:
    """The answer without its line end; None when there is no whole line, or when a signal came first.

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
            return line.decode("utf-8", "replace").strip()
        line += byte
    return None
