"""The documents of a blueprint's request. Every `decode_*` raises `NewerRecordError` or `CorruptRecordError` and
nothing else, whatever the bytes are; `where` names the document in those errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tfguard.model.blueprint_request import RequestEvent, RequestIntent
from tfguard.schemas.document import Document, Lines, decode_lines


@dataclass(frozen=True, slots=True)
class CancelWish:
    """Somebody wants a request to stop: no new step is begun. With `interrupt`, running calls get one interrupt.

    `run` is the tfguard that is meant, by the id of its lease: one that comes later was not asked to stop.
    """

    at: datetime
    actor: str
    reason: str
    interrupt: bool = False
    run: str = ""


@dataclass(frozen=True, slots=True)
class PackedRequest:
    """A request that is over: each of its documents, by name, as text."""

    request_id: str
    packed_at: datetime
    documents: Mapping[str, str]


DAMAGED = (
    "restore it from a copy; or move the whole record aside, with its head.json, and begin anew: each stack's own "
    "record tells what it has"
)
"""What to do about a damaged document of a request: no command of a stack mends it."""

REQUEST = Document("tfguard.blueprint-request", 1, RequestIntent, advice=DAMAGED)
EVENT = Document("tfguard.blueprint-event", 1, RequestEvent, short=True, advice=DAMAGED)
CANCEL = Document("tfguard.blueprint-cancel", 1, CancelWish, advice=DAMAGED)
PACKED = Document("tfguard.blueprint-archive", 1, PackedRequest, advice=DAMAGED)

BLUEPRINT_DOCUMENTS: tuple[Document[Any], ...] = (REQUEST, EVENT, CANCEL, PACKED)
"""Each has a schema below docs/schemas."""


def encode_events(events: Iterable[RequestEvent]) -> bytes:
    """Whole lines of a request's `events.jsonl`."""
    return b"".join(map(EVENT.encode_line, events))


def decode_events(data: bytes, where: str = "events.jsonl") -> Lines[RequestEvent]:
    """The events of a request, oldest first, and how many lines were cut."""
    return decode_lines(EVENT, data, where)
