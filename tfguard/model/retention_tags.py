"""The tags by which a retention travels with the object that is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from tfguard.model.disposition import Disposition, DispositionKind

UNTIL = "tfguard:retain-until"
OWNER = "tfguard:retain-owner"

_NOT_IN_A_TAG = re.compile(r"[^\w\s.:/=+\-@]")
_LONGEST = 256


def retention_tags(until: datetime, owner: str) -> Mapping[str, str]:
    """The tags for what is kept until a date; what a tag's value may not hold is replaced by `-`."""
    return {UNTIL: _written(until), OWNER: _NOT_IN_A_TAG.sub("-", owner)[:_LONGEST]}


def are_own(tags: Mapping[str, str], finding_id: str, ledger: Iterable[Disposition]) -> bool:
    """Whether a retention of the finding in this ledger has the date of these tags: any other is somebody else's."""
    dates = (entry.until for entry in ledger if (entry.finding_id, entry.kind) == (finding_id, DispositionKind.RETAIN))
    return any(until is not None and tags.get(UNTIL) == _written(until) for until in dates)


def is_kept_by(tags: Mapping[str, str], now: datetime) -> bool:
    """Whether these tags say that the object is kept still; a date that cannot be read has not passed."""
    until = tags.get(UNTIL)
    if until is None:
        return False
    try:
        date = datetime.fromisoformat(until)
    except ValueError:
        return True
    return now < (date if date.tzinfo else date.replace(tzinfo=UTC))


def told_by(tags: Mapping[str, str]) -> str | None:
    """What these tags say of a retention, in one line; None where they say nothing.

    Anybody can write a tag, so that it settles nothing: it is shown to whoever decides. What it says is kept is not
    deleted, though.
    """
    until = tags.get(UNTIL)
    if until is None:
        return None
    owner = tags.get(OWNER) or "nobody that it names"
    shown = " ".join(f"a tag says that it is kept until {until} by {owner}".split())
    return "".join(char for char in shown if char.isprintable())


def _written(until: datetime) -> str:
    return f"{until:%Y-%m-%dT%H:%M:%SZ}"
