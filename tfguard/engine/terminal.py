"""A terminal of our own for the engine to write to, as wide as the user's, so that it wraps its text as it would there.

It is nobody's controlling terminal, so it takes no signals along. When tfguard dies, writing to it fails, which the
engine does not mind: only a closed pipe kills it.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from contextlib import suppress
from types import TracebackType
from typing import Final

_ROWS: Final = 24


def columns_of(descriptor: int) -> int | None:
    """The width of the terminal behind a descriptor; None where there is no terminal."""
    try:
        return os.get_terminal_size(descriptor).columns
    except OSError:
        return None


class EngineTerminal:
    """Open while the engine runs: `descriptor` is for the engine, and `read` gives what it has written so far."""

    def __init__(self, columns: int) -> None:
        self._own, self.descriptor = os.openpty()
        os.set_blocking(self._own, False)
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
        settings = termios.tcgetattr(self.descriptor)
        settings[1] &= ~termios.OPOST  # a line end becomes another one at the user's terminal alone
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(self.descriptor, termios.TCSANOW, settings)

    def __enter__(self) -> EngineTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._own)
        os.close(self.descriptor)

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none when the engine has written nothing more."""
        found = b""
        with suppress(OSError):  # nothing there, or nobody who could write
            while len(found) < size and (part := os.read(self._own, size - len(found))):
                found += part  # a terminal hands out a few kilobytes at a time
        return found
