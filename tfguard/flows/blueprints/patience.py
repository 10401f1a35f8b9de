"""Tell the user now and then that something is still waited for: the same on a terminal and in a pipeline's log."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tfguard.flows.blueprints.context import BlueprintContext
from tfguard.model.durations import in_words

_FIRST, _THEN = timedelta(seconds=30), timedelta(minutes=3)


@dataclass(slots=True)
class Patience:
    """What is waited for, in words, such as `a: operation X still runs`, since this was made."""

    context: BlueprintContext
    what: str
    _since: datetime = field(init=False)
    _next: timedelta = _FIRST

    def __post_init__(self) -> None:
        self._since = self.context.clock.now()

    def tell(self) -> None:
        """A line, when it is time for one: half a minute after the first wait, then each three minutes."""
        waited = self.context.clock.now() - self._since
        if waited >= self._next:
            self._next = waited + _THEN
            self.context.console.say(f"{self.what}, {in_words(waited)} by now")
