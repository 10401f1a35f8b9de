"""What the user sees of an apply as it runs: the engine's own JSON stream, or each event as a person would read it."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Sequence
from typing import Protocol

from tfguard.engine.documents import mapping
from tfguard.engine.events import parse_line
from tfguard.engine.render import NO_TERMINAL_WIDTH, RenderedText, Renderer
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.request import ChangeRequest

_TARGETED = "Applied changes may be incomplete"


class Streams(Protocol):
    """The user's stdout and stderr; a reader that has gone away is no reason to stop."""

    def out(self, text: str) -> None:
        """Write to stdout and flush."""
        ...

    def err(self, text: str) -> None:
        """Write to stderr and flush."""
        ...


class JsonPrinter:
    """With `-json` the user gets the engine's own stream, line by line as it comes.

    With `continued` the plan's stream went before: the version and the planned changes, with which the stream of an
    apply begins, were in it and are left out. Under `destroying` the stream ends as that of `destroy` does, and not as
    that of the `apply` of a destroy plan, which says it in other words and tells the outputs.
    """

    def __init__(self, streams: Streams, continued: bool, destroying: bool) -> None:
        self._streams = streams
        self._decoder = utf8()
        self._beginning = continued
        self._destroying = destroying
        self._begun = b""

    def show(self, chunk: bytes, events: Sequence[EngineEvent]) -> None:  # noqa: ARG002 (as the other printer)
        """Pass a chunk's whole lines on; an empty chunk is the end of the stream."""
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        shown = b"".join(self._shown(line) for line in lines)
        if not chunk:
            shown, self._begun = shown + self._begun, b""
        self._streams.out(self._decoder.decode(shown))

    def _shown(self, line: bytes) -> bytes:
        event = parse_line(line) if self._beginning or self._destroying else None
        if event is None:
            return line + b"\n"
        if self._beginning and event.kind in (EventKind.VERSION, EventKind.PLANNED_CHANGE, EventKind.RESOURCE_DRIFT):
            return b""
        self._beginning = False
        if self._destroying and event.kind is EventKind.OUTPUTS:
            return b""
        if self._destroying and event.kind is EventKind.CHANGE_SUMMARY:
            line = _as_destroy_summary(line, event)
        return line + b"\n"


def _as_destroy_summary(line: bytes, event: EngineEvent) -> bytes:
    removed = mapping(event.raw.get("changes")).get("remove")
    line = line.replace(event.message.encode(), f"Destroy complete! Resources: {removed} destroyed.".encode(), 1)
    return line.replace(b'"operation":"apply"', b'"operation":"destroy"', 1)


class HumanPrinter:
    """Without it, each event becomes what the engine would have printed for a person."""

    def __init__(self, streams: Streams, request: ChangeRequest, imports: Sequence[tuple[str, str]]) -> None:
        self._streams = streams
        # An adoption has its target from tfguard, so the engine's warning about targets tells the user nothing.
        self._adopts = request.command == "import"
        self._renderer = Renderer(
            color=request.color,
            width=_columns(sys.stdout.fileno()),
            error_width=_columns(sys.stderr.fileno()),
            command="destroy" if request.command == "destroy" else "apply",
            compact_warnings=request.compact_warnings,
            imports=imports,
        )

    def show(self, chunk: bytes, events: Sequence[EngineEvent]) -> None:
        """Print events; an empty chunk is the end of the stream."""
        for event in events:
            if not (self._adopts and event.summary == _TARGETED):
                self._print(self._renderer.render(event))
        if not chunk:
            self._print(self._renderer.finish())

    def _print(self, text: RenderedText) -> None:
        if text.stdout:
            self._streams.out(text.stdout)
        if text.stderr:
            self._streams.err(text.stderr)


def _columns(descriptor: int) -> int:
    try:
        return os.get_terminal_size(descriptor).columns
    except OSError:
        return NO_TERMINAL_WIDTH


def utf8() -> codecs.IncrementalDecoder:
    """A decoder for a stream that comes in pieces; bytes that are no UTF-8 become U+FFFD."""
    return codecs.getincrementaldecoder("utf-8")("replace")
