"""The tags by which a retention travels with the object that is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

UNTIL = "tfguard:retain-until"
OWNER = "tfguard:retain-owner"

_NOT_IN_A_TAG = re.compile(r"[^\w\s.:/=+\-@]")
_LONGEST = 256


def retention_tags(until: datetime, owner: str) -> Mapping[str, str]:
    """The tags for what is kept until a date; what a tag's value may not hold is replaced by `-`."""
    return {UNTIL: f"{until:%Y-%m-%dT%H:%M:%SZ}", OWNER: _NOT_IN_A_TAG.sub("-", owner)[:_LONGEST]}


def told_by(tags: Mapping[str, str]) -> str | None:
    """What these tags say of a retention, in one line; None where they say nothing.

    Anybody can write a tag, so that it decides nothing: it is shown to whoever decides.
    """
    until = tags.get(UNTIL)
    if until is None:
        return None
    owner = tags.get(OWNER) or "nobody that it names"
    shown = " ".join(f"a tag says that it is kept until {until} by {owner}".split())
    return "".join(char for char in shown if char.isprintable())
