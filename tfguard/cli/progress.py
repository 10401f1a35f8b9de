"""How far a long command is, on one line of a terminal; nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tfguard.cli.console import UserStreams

_EVERY_SECONDS = 0.1
_BAR = 24


class ProgressLine:
    """Draws over one line of stderr. A context manager: the line is gone at its end, whatever happened."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._streams = UserStreams()
        self._last = 0.0

    def __enter__(self) -> Callable[[str, int, int | None], None]:
        """What to call with the phase, how much of it is done, and of how much (None: not known)."""
        return self._draw

    def __exit__(self, *_: object) -> None:
        if self._shown and self._last:
            self._streams.err("\r\x1b[K")

    def _draw(self, phase: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if not self._shown or (now - self._last < _EVERY_SECONDS and done != total):
            return
        self._last = now
        filled = _BAR * done // total if total else 0
        bar = f" [{'#' * filled}{'.' * (_BAR - filled)}]" if total else ""
        self._streams.err(f"\r\x1b[Ktfguard: {phase}{bar} {done}{f'/{total}' if total else ''}")
