"""One change of what is known of an operation: who wrote it down, when, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Transition:
    """One line of an operation's `transitions.jsonl`.

    `what` is the operation's id or a step's address. `before` and `after` tell how it stood: of an operation its status
    and whether it is settled, of a step its outcome and, in brackets, what was decided about it. `before` is None where
    nothing was known.
    """

    at: datetime
    by: str
    what: str
    before: str | None
    after: str
    why: str
