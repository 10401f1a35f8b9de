"""What the output of a plan has that an apply does not print there: its warnings, and a failure that shows nothing.

Without a question an apply prints the plan's warnings with its own, after its last step, sorted and folded as one
batch; those of check blocks it leaves out, for the apply checks again. Of a plan that failed before it came to any
change it prints nothing but the errors. Both were seen by running both forms of Terraform 1.11.4 side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from tfguard.engine.diagnostics import Diagnostic, Severity, SourceRange, diagnostic_of, of_check_block
from tfguard.engine.events import parse_line
from tfguard.model.event import EngineEvent, EventKind

_COLOUR: Final = r"(?:\x1b\[[0-9;]*m)*"
# The first words of what is shown when the planning is done; what comes before are steps, and questions.
_FIRST_WORDS: Final = (
    "Terraform used ",
    "OpenTofu used ",
    "No changes.",
    "Note: Objects have changed",
    "Changes to Outputs:",
    "Planning failed.",
)
_BEGIN: Final = re.compile(f"^{_COLOUR}(?:{'|'.join(map(re.escape, _FIRST_WORDS))})", re.MULTILINE)
_NOTHING: Final = re.compile(rf"{_COLOUR}(?:\n{_COLOUR})?Planning failed\.[^\n]*\n{_COLOUR}\n{_COLOUR}")

_PLAIN_WARNING: Final = re.compile(r"^\nWarning: ", re.MULTILINE)
_FRAMED_WARNING: Final = re.compile(r"\x1b\[33m╷\x1b\[0m\x1b\[0m\n")
_FRAME_END: Final = "\x1b[33m╵\x1b[0m\x1b[0m\n"
_FRAME: Final = "\x1b[33m│\x1b[0m \x1b[0m"
_TITLE: Final = "Warning: "
_NOTE: Final = re.compile(r"(?:\A|(?<=\n)\n)\(and (one|\d{1,9}) more similar warnings? elsewhere\)\n\Z")
_PLACE: Final = re.compile(r"(?:  with .*\n)?  on (.+) line (\d{1,9})(?:, in (.*))?:\n")


@dataclass(slots=True)
class PlanWarnings:
    """What a plan has warned of: the summaries of all, and the warnings that the user has not been shown yet."""

    said: frozenset[str] = frozenset()
    waiting: tuple[Diagnostic, ...] = ()

    def hold(self, warnings: Iterable[Diagnostic]) -> None:
        """Take the warnings of a plan; nobody has been shown them."""
        self.waiting = tuple(warnings)
        self.said = frozenset(item.summary for item in self.waiting)

    def without_question(self) -> tuple[Diagnostic, ...]:
        """The waiting ones that an apply prints when it has not asked: all but those of check blocks."""
        return tuple(item for item in self.waiting if not item.checks)


class PlanView:
    """Passes the human output of a plan on until the plan is shown, and keeps that part for `finish` and `failed`.

    The engine writes it at one go when the planning is done, so nobody waits for it.
    """

    def __init__(self, color: bool) -> None:
        self._color = color
        self._pending = ""
        self._kept: list[str] = []
        self.begun = False

    def feed(self, chunk: str) -> str:
        """The part of the output so far that belongs to the planning itself."""
        if self.begun:
            self._kept.append(chunk)
            return ""
        text = self._pending + chunk
        found = _BEGIN.search(text)
        self.begun = found is not None
        start = _after_blank_line(text, found.start()) if found else len(text) - _possible_begin(text)
        self._pending = text[start:]
        return text[:start]

    def finish(self) -> tuple[str, list[Diagnostic]]:
        """The rest of the output of a plan that worked, and the warnings that stood at its end."""
        text = self._rest()
        found = (_FRAMED_WARNING if self._color else _PLAIN_WARNING).search(text)
        if found is None or not self.begun:
            return text, []
        view, tail = text[: found.start()], text[found.start() :]
        warnings = _framed_warnings(tail) if self._color else _plain_warnings(tail)
        return (view, warnings) if warnings else (text, [])

    def failed(self, planned_anything: Callable[[], bool]) -> str:
        """The rest of the output of a plan that failed, as an apply shows it."""
        text = self._rest()
        found = _NOTHING.match(text)
        return text if found is None or planned_anything() else text[found.end() :]

    def _rest(self) -> str:
        text = self._pending + "".join(self._kept)
        self._pending, self._kept = "", []
        return text


def _after_blank_line(text: str, start: int) -> int:
    """Where a blank line before `start` begins, else `start`: the line belongs to what follows it."""
    lines = text[:start].split("\n")
    blank = len(lines) >= 2 and re.fullmatch(_COLOUR, lines[-2]) is not None
    return start - len(lines[-2]) - 1 if blank else start


def _possible_begin(text: str) -> int:
    """How many characters at the end of `text` may turn out to be the beginning of the view."""
    line = text[text.rfind("\n") + 1 :]
    bare = re.sub(r"\x1b(?:\[[0-9;]*)?\Z", "", re.sub(r"\x1b\[[0-9;]*m", "", line))
    if not any(words.startswith(bare) for words in _FIRST_WORDS):
        return 0
    return len(text) - _after_blank_line(text, len(text) - len(line))


def _plain_warnings(text: str) -> list[Diagnostic]:
    starts = [found.start() for found in _PLAIN_WARNING.finditer(text)]
    blocks = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    return [_warning(block.removeprefix("\n")) for block in blocks]


def _framed_warnings(text: str) -> list[Diagnostic]:
    """Each warning out of its frame; none when anything but framed warnings stands there."""
    *blocks, rest = text.split(_FRAME_END)
    found: list[Diagnostic] = []
    for block in blocks:
        top, *lines = block.splitlines(keepends=True) or [""]
        if not _FRAMED_WARNING.fullmatch(top) or not all(line.startswith(_FRAME) for line in lines):
            return []
        found.append(_warning("".join(line.removeprefix(_FRAME) for line in lines)))
    return [] if rest else found


def _warning(block: str) -> Diagnostic:
    """A warning from its text: title and summary, a blank line, and the rest."""
    title, _, below = block.partition("\n")
    summary = re.sub(r"\x1b\[[0-9;]*m", "", title).removeprefix(_TITLE)
    drawn, similar = below.removeprefix("\n").removeprefix("\x1b[0m"), 0
    if note := _NOTE.search(drawn):
        drawn, similar = drawn[: note.start()], 1 if note[1] == "one" else int(note[1])
    place = _PLACE.match(drawn)
    return Diagnostic(
        severity=Severity.WARNING,
        summary=summary,
        source=SourceRange(place[1], int(place[2]), 0) if place else None,
        checks=of_check_block(summary, place[3] or "" if place else ""),
        similar=similar,
        drawn=drawn,
    )


class PlanStream:
    """The same for the `-json` stream of a plan, whole lines at a time.

    A warning that is held back has its line as `drawn`.
    """

    def __init__(self) -> None:
        self._begun = b""
        self._held: list[tuple[EngineEvent, bytes]] = []

    def feed(self, chunk: bytes) -> bytes:
        """The part of the output so far that comes before the plan's summary and before any error."""
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        shown = b""
        for line in lines:
            event = parse_line(line)
            if self._held or event.kind is EventKind.CHANGE_SUMMARY or event.severity == "error":
                self._held.append((event, line + b"\n"))
            else:
                shown += line + b"\n"
        return shown

    def finish(self) -> tuple[bytes, list[Diagnostic]]:
        """The rest of the output of a plan that worked, and the warnings in it."""
        shown, warnings = b"", []
        for event, line in self._held:
            if event.kind is EventKind.DIAGNOSTIC:
                warnings.append(_carrying(diagnostic_of(event), line))
            else:
                shown += line
        return shown + self._begun, warnings

    def failed(self, planned_anything: Callable[[], bool]) -> bytes:
        """The rest of the output of a plan that failed, as an apply shows it."""
        summary = any(event.kind is EventKind.CHANGE_SUMMARY for event, _ in self._held)
        shows = not summary or planned_anything()
        lines = (line for event, line in self._held if shows or event.kind is not EventKind.CHANGE_SUMMARY)
        return b"".join(lines) + self._begun


def _carrying(warning: Diagnostic, line: bytes) -> Diagnostic:
    return Diagnostic(warning.severity, warning.summary, checks=warning.checks, drawn=line.decode("utf-8", "replace"))
