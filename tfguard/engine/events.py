"""From the bytes of `apply -json` to `EngineEvent`s, without ever failing on what the engine wrote.

Rules of the stream (measured on Terraform 1.11.4; OpenTofu has the same form with other module and version keys): one
JSON object a line; plain lines may stand in between (a plugin, a wrapper script); the last line of a killed engine may
be cut anywhere, also inside a UTF-8 sequence; types are added in every second release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from tfguard.engine.documents import without_lone_surrogates
from tfguard.model.event import EMPTY, EngineEvent, EventKind

_NOT_FROM_ENGINE: Final = (EventKind.UNKNOWN, EventKind.PLAIN, EventKind.CUT)
_KINDS: Final[Mapping[str, EventKind]] = {
    **{kind.value: kind for kind in EventKind if kind not in _NOT_FROM_ENGINE},
    # OpenTofu 1.11 has these two where Terraform 1.10 has ephemeral_op_*.
    "ephemeral_action_started": EventKind.EPHEMERAL_START,
    "ephemeral_action_complete": EventKind.EPHEMERAL_COMPLETE,
}
# Where the payload of a message stands; a planned change names its resource under `change`, all others under `hook`.
_PAYLOAD: Final[Mapping[EventKind, str]] = {
    EventKind.PLANNED_CHANGE: "change",
    EventKind.RESOURCE_DRIFT: "change",
    EventKind.DIAGNOSTIC: "diagnostic",
}


def parse_line(line: bytes) -> EngineEvent:
    """The event of one complete line, with or without its line end; what is not a JSON object becomes PLAIN."""
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    raw = _json_object(text)
    return EngineEvent(EventKind.PLAIN, text=text) if raw is None else _event(raw)


@dataclass(slots=True)
class StreamCounts:
    """How many lines were read, and how many of them were none that this version knows."""

    events: int = 0
    unknown: int = 0
    plain: int = 0
    cut: int = 0


class StreamReader:
    """Cuts a growing byte stream into lines and lines into events; feed it whatever the file has grown by."""

    def __init__(self) -> None:
        self.counts = StreamCounts()
        self._tail: list[bytes] = []

    def feed(self, chunk: bytes) -> list[EngineEvent]:
        """The events that are complete with this chunk; a started line waits for the next one."""
        head, newline, rest = chunk.partition(b"\n")
        self._tail.append(head)
        if not newline:
            return []
        lines = [b"".join(self._tail), *rest.split(b"\n")]
        self._tail = [lines.pop()]
        return [self._count(parse_line(line)) for line in lines]

    def finish(self) -> list[EngineEvent]:
        """The event of a last line without a line end: CUT, unless it is a whole JSON object after all."""
        tail, self._tail = b"".join(self._tail), []
        if not tail:
            return []
        event = parse_line(tail)
        if event.kind is EventKind.PLAIN:
            event = EngineEvent(EventKind.CUT, text=event.text)
        return [self._count(event)]

    def _count(self, event: EngineEvent) -> EngineEvent:
        self.counts.events += 1
        match event.kind:
            case EventKind.UNKNOWN:
                self.counts.unknown += 1
            case EventKind.PLAIN:
                self.counts.plain += 1
                # An event that something else wrote into; which one is not known, so that silence proves nothing.
                self.counts.cut += '"@level"' in event.text
            case EventKind.CUT:
                self.counts.cut += 1
            case _:
                pass
        return event


def mapping(value: object) -> Mapping[str, object]:
    """The value if it is a JSON object, else an empty one: a wrong type in the stream counts as absent."""
    return value if isinstance(value, dict) else EMPTY


def string(value: object) -> str | None:
    """The value if it is a JSON string, else None."""
    return value if isinstance(value, str) else None


def _exact(text: str) -> Decimal:
    """A number with every digit it came with; one whose plain form would fill the memory is refused."""
    try:
        value = Decimal(text)
    except InvalidOperation as err:
        raise ValueError(text) from err
    if abs(value.adjusted()) > _MAX_EXPONENT:
        raise ValueError(text)
    return value


def _exact_integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _MAX_INT_DIGITS else _exact(text)


def _refuse_constant(name: str) -> object:
    raise ValueError(name)


_MAX_EXPONENT: Final = 100_000
_MAX_INT_DIGITS: Final = 1_000  # Python refuses to read an int of more than 4,300
# An output is shown with all its digits, so none may be lost here; NaN and Infinity are not JSON.
_DECODER: Final = json.JSONDecoder(parse_float=_exact, parse_int=_exact_integer, parse_constant=_refuse_constant)


def _json_object(text: str) -> Mapping[str, object] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value: object = _DECODER.decode(text)
        if "\\ud" in text or "\\uD" in text:
            value = without_lone_surrogates(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _event(raw: Mapping[str, object]) -> EngineEvent:
    type_ = string(raw.get("type")) or ""
    kind = _KINDS.get(type_, EventKind.UNKNOWN)
    payload = mapping(raw.get(_PAYLOAD.get(kind, "hook")))
    resource = mapping(payload.get("resource"))
    return EngineEvent(
        kind=kind,
        type=type_,
        timestamp=string(raw.get("@timestamp")),
        message=string(raw.get("@message")) or "",
        address=string(resource.get("addr")) or string(payload.get("address")),
        resource_type=string(resource.get("resource_type")),
        action=string(payload.get("action")),
        id_key=string(payload.get("id_key")),
        id_value=string(payload.get("id_value")),
        severity=string(payload.get("severity")),
        summary=string(payload.get("summary")),
        raw=raw,
    )
