"""What `history` and `archive` print as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfguard.model.transition import Transition
from tfguard.schemas.codec import dump
from tfguard.schemas.document import with_schema
from tfguard.schemas.json_schema import Shape
from tfguard.schemas.operation import SHAPE as OPERATION

HISTORY = "tfguard.history/v1"
ARCHIVED = "tfguard.archived/v1"
ARCHIVE_CHECK = "tfguard.archive-check/v1"

_FLAWS: Shape = {"where": str, "what": str}

HISTORY_SHAPE: Shape = {
    "operations": [{"schema": str, **OPERATION, "transitions?": [Transition]}],
    "next": str | None,
}
ARCHIVED_SHAPE: Shape = {
    "archived": [str],
    "left": [{"operation_id": str, "reason": str}],
    "flaws": [_FLAWS],
    "head": str | None,
    "record": str,
}
ARCHIVE_CHECK_SHAPE: Shape = {
    "whole": bool,
    "entries": int,
    "months": [{"month": str, "entries": int, "anchored": int, "last": str}],
    "flaws": [_FLAWS],
    "head": str | None,
    "record": str,
}


def history_document(
    operations: Sequence[Mapping[str, object]], trails: Mapping[str, Sequence[Transition]], following: str | None
) -> Mapping[str, object]:
    """Operations' documents, with the audit trails that are known by operation id; `following` is what the next page
    comes before."""
    bodies = [_with_trail(body, trails.get(str(body["operation_id"]))) for body in operations]
    return with_schema(HISTORY, {"operations": bodies, "next": following})


def _with_trail(body: Mapping[str, object], trail: Sequence[Transition] | None) -> Mapping[str, object]:
    if trail is None:
        return body
    return {**body, "transitions": [dump(change, keep_none=True) for change in trail]}
