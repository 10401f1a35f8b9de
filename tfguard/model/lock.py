"""The engine's own lock on a state."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class StateLock:
    """A lock that some engine has taken. Only the id is always known.

    `process` is the process of this machine that holds it now; `process_known` tells that None there means that none
    does, and not that nobody can tell.
    """

    id: str
    operation: str | None = None
    who: str | None = None
    created: datetime | None = None
    process: int | None = None
    process_known: bool = False
