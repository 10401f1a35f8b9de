"""`tfguard.retained/v1`: what is kept on purpose, with dates and owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from tfguard.model.disposition import Disposition
from tfguard.schemas.codec import dump
from tfguard.schemas.document import with_schema
from tfguard.schemas.json_schema import Shape

SCHEMA = "tfguard.retained/v1"

SHAPE: Shape = {"retained": [{"decision": Disposition, "overdue": bool}]}
"""What the document holds, the soonest date first."""


def retained_document(entries: Sequence[Disposition], now: datetime) -> Mapping[str, object]:
    """The document for these decisions; `overdue` tells whether the date has passed."""
    body = [{"decision": dump(entry, keep_none=True), "overdue": entry.overdue(now)} for entry in entries]
    return with_schema(SCHEMA, {"retained": body})
