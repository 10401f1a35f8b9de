"""What was seen at the providers while nothing was called."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock


@dataclass(slots=True)
class Seen:
    """The steps whose objects were all seen at their providers since anything was last called. What was looked up while
    a call ran may have been seen before that call changed it, and does not count. Safe for several threads."""

    _names: set[str] = field(default_factory=set)
    _turn: int = 0
    _lock: Lock = field(default_factory=Lock)

    @property
    def names(self) -> Collection[str]:
        """The steps."""
        with self._lock:
            return frozenset(self._names)

    @property
    def turn(self) -> int:
        """What a look is begun with: `add` takes it to tell whether anything was called since."""
        with self._lock:
            return self._turn

    def add(self, name: str, turn: int) -> None:
        """A step was seen by a look that was begun at this turn."""
        with self._lock:
            if turn == self._turn:
                self._names.add(name)

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Something is called that may change what was seen."""
        self._forget()
        try:
            yield
        finally:
            self._forget()

    def _forget(self) -> None:
        with self._lock:
            self._turn += 1
            self._names.clear()
