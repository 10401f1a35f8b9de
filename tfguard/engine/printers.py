"""What the user sees of an apply as it runs: the engine's own JSON stream, or each event as a person would read it."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tfguard.engine.diagnostics import Diagnostic, compact_text, diagnostic_of, diagnostic_text, repeats_plan
from tfguard.engine.documents import mapping
from tfguard.engine.human import DestroyWords, PlanTrailer
from tfguard.engine.planview import PlanStream, PlanView, PlanWarnings
from tfguard.engine.queries import Answer
from tfguard.engine.refusal import NO_CONFIGURATION
from tfguard.engine.render import NO_TERMINAL_WIDTH, DeposedKey, RenderedText, Renderer
from tfguard.engine.terminal import columns_of
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.plan import Plan
from tfguard.model.request import ChangeRequest

# What an engine says of a plan's command line, and would say otherwise of that of an apply.
_WORDS_OF_PLAN = (" plan -help", "Failed to parse command-line flags", NO_CONFIGURATION)
_BEGINNING = (EventKind.VERSION, EventKind.PLANNED_CHANGE, EventKind.RESOURCE_DRIFT)
_TARGETED = "Applied changes may be incomplete"
# What OpenTofu's -concise leaves out: everything that is told of one object while it is worked on.
_PROGRESS_TYPES = ("apply_", "provision_", "refresh_", "ephemeral_")
# How an error, or the words about a wrong call, begin on stderr; a log line or a question of the engine's does not.
_MARKS_OF_ERRORS = ("╷", "Error: ", "Usage: ")
_LONGEST_ERROR = 1 << 20
PROGRESS = frozenset(kind for kind in EventKind if kind.value.startswith(_PROGRESS_TYPES))


class Streams(Protocol):
    """The user's stdout and stderr; a reader that has gone away is no reason to stop."""

    def out(self, text: str) -> None:
        """Write to stdout and flush."""
        ...

    def err(self, text: str) -> None:
        """Write to stderr and flush."""
        ...


class HumanPlanPrinter:
    """The output of a plan as an apply shows it, without what the engine adds or leaves out for `plan -out`."""

    def __init__(self, streams: Streams, request: ChangeRequest) -> None:
        self._streams = streams
        self._decoders = utf8(), utf8()
        self._trailer = PlanTrailer()
        self._view = PlanView(request.color)
        self._shown = False
        self._held: list[str] = []
        self._held_size = 0

    def show(self, chunk: bytes) -> None:
        """Pass stdout on."""
        text = self._view.feed(self._trailer.feed(self._decoders[0].decode(chunk)))
        if text:
            self._shown = True
            self._let_go()
            self._streams.out(text)

    def complain(self, chunk: bytes) -> None:
        """Pass stderr on, unless it is an error that may have to come after the plan, or in other words."""
        text = self._decoders[1].decode(chunk)
        self._held.append(text)
        self._held_size += len(text)
        may_be_an_error = len(self._held) > 1 or any(mark in text for mark in _MARKS_OF_ERRORS)
        waits = self._view.begun or (may_be_an_error and not self._shown)
        if not waits or self._held_size > _LONGEST_ERROR:
            self._let_go()

    def _let_go(self) -> None:
        self._streams.err(self._complaints)
        self._held, self._held_size = [], 0

    @property
    def _complaints(self) -> str:
        return "".join(self._held)

    def finish(self) -> list[Diagnostic]:
        """The end of a plan that worked: what it has warned of, which is not shown yet."""
        rest = self._view.feed(self._trailer.finish())
        shown, warnings = self._view.finish()
        self._streams.out(rest + shown)
        self._streams.err(self._complaints)
        return warnings

    def failed(self, planned_anything: Callable[[], bool], own_words: Callable[[], Answer | None]) -> None:
        """The end of a plan that failed. `own_words` asks the command itself, where a plan's words are not its own."""
        rest = self._view.feed(self._trailer.finish()) + self._view.failed(planned_anything)
        of_plan = not self._shown and any(words in self._complaints for words in _WORDS_OF_PLAN)
        answer = _instead(self._complaints, own_words) if of_plan else None
        self._streams.out(rest if answer is None else answer.stdout)
        self._streams.err(self._complaints if answer is None else answer.stderr)


def _instead(said: str, own_words: Callable[[], Answer | None]) -> Answer | None:
    """The command's own words, if they are about the same: it was asked where no configuration is."""
    answer = own_words()
    if answer is None:
        return None
    return answer if (NO_CONFIGURATION in said) == (NO_CONFIGURATION in answer.stdout + answer.stderr) else None


class JsonPlanPrinter:
    """The same for the `-json` stream."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._decoders = utf8(), utf8()
        self._stream = PlanStream()

    def show(self, chunk: bytes) -> None:
        """Pass stdout on."""
        self._out(self._stream.feed(chunk))

    def complain(self, chunk: bytes) -> None:
        """Pass stderr on; what the engine has to say of the command stands on stdout."""
        self._streams.err(self._decoders[1].decode(chunk))

    def finish(self) -> list[Diagnostic]:
        """The end of a plan that worked: what it has warned of, which is not shown yet."""
        shown, warnings = self._stream.finish()
        self._out(shown)
        return warnings

    def failed(self, planned_anything: Callable[[], bool], own_words: Callable[[], Answer | None]) -> None:
        """The end of a plan that failed. `own_words` asks the command itself, where a plan's words are not its own."""
        rest = self._stream.failed(planned_anything)
        of_plan = any(words.encode() in rest for words in _WORDS_OF_PLAN)
        answer = _instead(rest.decode("utf-8", "replace"), own_words) if of_plan else None
        # The version, with which every stream begins, was shown before.
        self._out(rest if answer is None else answer.stdout.encode().partition(b"\n")[2])

    def _out(self, data: bytes) -> None:
        self._streams.out(self._decoders[0].decode(data))


class JsonPrinter:
    """With `-json` the user gets the engine's own stream, line by line as it comes.

    With `planned` the plan's stream went before: the version and the planned changes, with which the stream of an apply
    begins, were in it and are left out, as is what the plan has warned of; warnings of the plan that still wait come
    with those of the apply. Under `destroying` the stream ends as that of `destroy` does, and not as that of the
    `apply` of a destroy plan, which says it in other words and tells the outputs.
    """

    def __init__(self, streams: Streams, planned: PlanWarnings | None, destroying: bool) -> None:
        self._streams = streams
        self._decoder = utf8()
        self._planned = planned
        self._beginning = planned is not None
        self._waiting = b"".join(_line(item) for item in planned.without_question()) if planned else b""
        self._destroying = destroying
        self._begun = b""

    def show(self, chunk: bytes, events: Sequence[EngineEvent]) -> None:
        """Pass a chunk's whole lines on, whose events these are; an empty chunk is the end of the stream."""
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        shown = b"".join(self._shown(line + b"\n", event) for line, event in zip(lines, events, strict=False))
        if not chunk:
            shown, self._begun = self._due() + self._begun, b""
        self._streams.out(self._decoder.decode(shown))

    def _shown(self, line: bytes, event: EngineEvent) -> bytes:
        if event.kind is EventKind.DIAGNOSTIC:
            repeated = self._planned is not None and repeats_plan(diagnostic_of(event), self._planned.said)
            return b"" if repeated else self._due() + line
        if self._beginning and event.kind in _BEGINNING:
            return b""
        self._beginning = False
        if self._destroying and event.kind is EventKind.OUTPUTS:
            return b""
        if event.kind is not EventKind.CHANGE_SUMMARY:
            return line
        return self._due() + (_as_destroy_summary(line, event) if self._destroying else line)

    def _due(self) -> bytes:
        waiting, self._waiting = self._waiting, b""
        return waiting


def _line(warning: Diagnostic) -> bytes:
    return (warning.drawn or "").encode()


def _as_destroy_summary(line: bytes, event: EngineEvent) -> bytes:
    removed = mapping(event.raw.get("changes")).get("remove")
    line = line.replace(event.message.encode(), f"Destroy complete! Resources: {removed} destroyed.".encode(), 1)
    return line.replace(b'"operation":"apply"', b'"operation":"destroy"', 1)


class FileStreams:
    """A file that the user named with `-json-into`, in place of a stdout; the plan's stream may be in it already."""

    def __init__(self, path: Path, begins: bool) -> None:
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if begins else 0)
        self._descriptor: int | None = None
        with suppress(OSError):  # an apply whose intent is written must not end here
            self._descriptor = os.open(path, how, 0o600)

    def out(self, text: str) -> None:
        """Add to the file; one that cannot be written stops nothing."""
        data = text.encode("utf-8", "replace")
        with suppress(OSError):
            while data and self._descriptor is not None:
                data = data[os.write(self._descriptor, data) :]

    def err(self, text: str) -> None:
        """Nothing: a file takes the events alone."""


class OwnFormPrinter:
    """The engine's own human form, byte for byte, where its events go to a file.

    Under `destroying` it ends as that of `destroy` does, and not as that of the `apply` of a destroy plan: in other
    words and without the outputs.
    """

    def __init__(self, streams: Streams, destroying: bool) -> None:
        self._streams = streams
        self._decoder = utf8()
        self._words = DestroyWords() if destroying else None

    def show(self, chunk: bytes, events: Sequence[EngineEvent]) -> None:  # noqa: ARG002 (as the other printers)
        """Pass a chunk on; an empty chunk is the end of the output."""
        text = self._decoder.decode(chunk, final=not chunk)
        if self._words is not None:
            text = self._words.feed(text) + ("" if chunk else self._words.finish())
        self._streams.out(text)


class HumanPrinter:
    """Without it, each event becomes what the engine would have printed for a person."""

    def __init__(
        self,
        streams: Streams,
        request: ChangeRequest,
        plan: Plan,
        deposed: DeposedKey,
        planned: PlanWarnings | None,
    ) -> None:
        self._streams = streams
        # An adoption has its target from tfguard, so the engine's warning about targets tells the user nothing.
        self._adopts = request.command == "import"
        self._concise = request.concise
        imports = ((change.address, change.importing) for change in plan.changes if change.importing)
        self._renderer = Renderer(
            color=request.color,
            width=_columns(sys.stdout.fileno()),
            error_width=_columns(sys.stderr.fileno()),
            command="destroy" if request.command == "destroy" else "apply",
            compact_warnings=request.compact_warnings,
            imports=() if request.concise else tuple(imports),
            deposed=deposed,
            state_out=request.state_out,
            said=planned.said if planned else None,
            waiting=planned.without_question() if planned else (),
        )

    def show(self, chunk: bytes, events: Sequence[EngineEvent]) -> None:
        """Print events; an empty chunk is the end of the stream."""
        for event in events:
            if not (self._adopts and event.summary == _TARGETED) and not (self._concise and event.kind in PROGRESS):
                self._print(self._renderer.render(event))
        if not chunk:
            self._print(self._renderer.finish())

    def _print(self, text: RenderedText) -> None:
        if text.stdout:
            self._streams.out(text.stdout)
        if text.stderr:
            self._streams.err(text.stderr)


def warnings_text(warnings: Sequence[Diagnostic], request: ChangeRequest, product: str) -> str:
    """Warnings as the engine shows them on stdout while nothing has gone wrong."""
    if not warnings:
        return ""
    if request.compact_warnings:
        return compact_text(warnings, color=request.color, product=product)
    width = _columns(sys.stdout.fileno())
    return "".join(diagnostic_text(item, color=request.color, width=width) for item in warnings)


def _columns(descriptor: int) -> int:
    found = columns_of(descriptor)
    return NO_TERMINAL_WIDTH if found is None else found


def utf8() -> codecs.IncrementalDecoder:
    """A decoder for a stream that comes in pieces; bytes that are no UTF-8 become U+FFFD."""
    return codecs.getincrementaldecoder("utf-8")("replace")
