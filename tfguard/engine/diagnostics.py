"""Diagnostics, drawn the way the engine draws them for a person.

The engine prints the same diagnostics in two forms; its human one sorts them, folds warnings that are alike into one,
draws a frame when it uses colour, and wraps the text. Every rule here was taken from the output of Terraform 1.11.4
for the same configuration in both forms (tests/engine/test_diagnostics.py keeps that comparison).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, assert_never

from tfguard.engine.events import mapping, string
from tfguard.model.event import EngineEvent

RESET: Final = "\x1b[0m"
BOLD: Final = "\x1b[1m"
_UNDERLINE: Final = "\x1b[4m"
_DARK: Final = "\x1b[90m"
_RULE: Final = "├" + "─" * 16
_UNLOCK_FAILED: Final = "Error releasing the state lock"
_CHECK_BLOCK: Final = "Check block assertion "
# What each command of the engine says at its start; the plan has said the second one already.
_OF_A_PLAN_FILE: Final = ("Deprecated flag: -state", "Provider development overrides are in effect")


class Severity(Enum):
    """What the engine calls it; anything that is not a warning is shown as an error."""

    WARNING = "warning"
    ERROR = "error"

    @property
    def title(self) -> str:
        """The word before the summary."""
        match self:
            case Severity.WARNING:
                return "Warning: "
            case Severity.ERROR:
                return "Error: "
            case _ as never:
                assert_never(never)

    @property
    def paint(self) -> str:
        """The escape sequence of its colour."""
        match self:
            case Severity.WARNING:
                return "\x1b[33m"
            case Severity.ERROR:
                return "\x1b[31m"
            case _ as never:
                assert_never(never)


@dataclass(frozen=True, slots=True)
class SourceRange:
    """Where in the configuration; `byte` only orders diagnostics of the same file."""

    filename: str
    line: int
    byte: int


@dataclass(frozen=True, slots=True)
class Snippet:
    """The lines at fault, the part of them to underline (in bytes), and the values that took part.

    `call` is the text behind "while calling" as (function, parameters), where a function's argument is at fault.
    """

    context: str
    code: str
    start_line: int
    highlight: tuple[int, int]
    values: tuple[tuple[str, str], ...]
    call: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One diagnostic; lives in memory only, for its texts may quote values.

    `checks` tells that a check block brought it. `drawn` is set where it was read from the engine's output and not from
    its stream: all that stands below the summary there.
    """

    severity: Severity
    summary: str
    detail: str = ""
    address: str | None = None
    source: SourceRange | None = None
    snippet: Snippet | None = None
    checks: bool = False
    similar: int = 0
    drawn: str | None = None

    @property
    def order(self) -> tuple[bool, bool, int, str, int, int]:
        """Warnings first; without a place first; then by folder depth, file and position. Ties keep their order."""
        if self.source is None:
            return self.severity is Severity.ERROR, False, 0, "", 0, 0
        path, line, byte = self.source.filename, self.source.line, self.source.byte
        return self.severity is Severity.ERROR, True, path.count("/"), path, line, byte


def diagnostic_of(event: EngineEvent) -> Diagnostic:
    """The diagnostic that a DIAGNOSTIC event carries; what is missing in it is empty."""
    raw = mapping(event.raw.get("diagnostic"))
    snippet = _snippet(mapping(raw.get("snippet")))
    summary = event.summary or event.message.removeprefix("Error: ")
    return Diagnostic(
        severity=Severity.WARNING if event.severity == "warning" else Severity.ERROR,
        summary=summary,
        detail=string(raw.get("detail")) or "",
        address=event.address,
        source=_source_range(mapping(raw.get("range"))),
        snippet=snippet,
        checks=of_check_block(summary, snippet.context if snippet else ""),
    )


def of_check_block(summary: str, context: str) -> bool:
    """Whether a diagnostic comes from a check block: `context` names the block of the configuration it points into."""
    return summary.startswith(_CHECK_BLOCK) or context.startswith('check "')


def repeats_plan(diagnostic: Diagnostic, said: Collection[str]) -> bool:
    """Whether an apply of a saved plan says what its plan has said already, under one of the summaries in `said`.

    It reads configuration and variables again, and warns of them again. What it warns of while it works on an object
    is its own, and names the object; so is what a check block says now. It also warns of options that only an apply of
    a plan file should not have.
    """
    if diagnostic.severity is Severity.ERROR or diagnostic.checks:
        return False
    return diagnostic.summary in _OF_A_PLAN_FILE or (diagnostic.address is None and diagnostic.summary in said)


def batches(diagnostics: Sequence[Diagnostic]) -> Iterator[list[Diagnostic]]:
    """The engine's own batches, each printed at once: sorted, alike warnings folded.

    The stream does not mark where one ends. An apply ends with one batch, and an unlock that fails makes a second one.
    """
    pending: list[Diagnostic] = []
    for diagnostic in diagnostics:
        if pending and diagnostic.source is None and diagnostic.summary == _UNLOCK_FAILED:
            yield _folded(sorted(pending, key=lambda item: item.order))
            pending = []
        pending.append(diagnostic)
    if pending:
        yield _folded(sorted(pending, key=lambda item: item.order))


def compact_text(diagnostics: Iterable[Diagnostic], *, color: bool, product: str) -> str:
    """The list that -compact-warnings prints for a batch that has no error in it."""
    title = f"{BOLD}{Severity.WARNING.paint}Warnings:{RESET}\n\n{RESET}" if color else "Warnings:\n\n"
    lines = "".join(map(_compact_line, diagnostics))
    return f"\n{title}{lines}\nTo see the full warning notes, run {product} without -compact-warnings.\n"


def diagnostic_text(diagnostic: Diagnostic, *, color: bool, width: int) -> str:
    """One diagnostic with its frame (colour) or without one (-no-color), wrapped for a terminal of `width` columns."""
    return _framed(diagnostic, width) if color else _plain(diagnostic, width)


def wrapped(line: str, limit: int) -> str:
    """A line broken at blanks so that no part is longer than `limit`; a longer word stays whole.

    The blanks at a break go away, all others stay. A limit of 0 or less breaks nothing, nor does 1.
    """
    if limit < 1 or len(line) <= limit:
        return line
    parts: list[str] = []
    column = 0
    for blanks, word in _WORDS.findall(line):
        # A word that is too long for any line moves to the next one too, unless it stands at the start already.
        used = column + len(blanks)
        if word and limit > 1 and used > 1 and used + len(word) > limit:
            parts += ("\n", word)
            column = len(word)
        elif word or used <= limit:
            parts += (blanks, word)
            column = used + len(word)
    return "".join(parts)


# What Unicode calls white space, but for the no-break space, which joins words.
_BLANK: Final = "\t-\r \x85\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORDS: Final = re.compile(f"([{_BLANK}]*)([^{_BLANK}]*)")


def _integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _source_range(raw: Mapping[str, object]) -> SourceRange | None:
    filename = string(raw.get("filename"))
    if filename is None:
        return None
    start = mapping(raw.get("start"))
    return SourceRange(filename, _integer(start.get("line")), _integer(start.get("byte")))


def _snippet(raw: Mapping[str, object]) -> Snippet | None:
    code = string(raw.get("code"))
    if code is None:
        return None
    values = raw.get("values")
    return Snippet(
        context=string(raw.get("context")) or "",
        code=code,
        start_line=_integer(raw.get("start_line")),
        highlight=(_integer(raw.get("highlight_start_offset")), _integer(raw.get("highlight_end_offset"))),
        values=tuple(map(_value, values)) if isinstance(values, list) else (),
        call=_call(mapping(raw.get("function_call"))),
    )


def _value(raw: object) -> tuple[str, str]:
    return string(mapping(raw).get("traversal")) or "", string(mapping(raw).get("statement")) or ""


def _call(raw: Mapping[str, object]) -> tuple[str, str] | None:
    """A call is shown with its parameters' names; the engine leaves it out where it has no signature."""
    signature = mapping(raw.get("signature"))
    name = string(raw.get("called_as"))
    if not signature or name is None:
        return None
    params = signature.get("params")
    names = [_parameter(param) for param in params] if isinstance(params, list) else []
    variadic = mapping(signature.get("variadic_param"))
    if variadic:
        names.append(_parameter(variadic) + "...")
    return name, ", ".join(names)


def _parameter(raw: object) -> str:
    return string(mapping(raw).get("name")) or ""


def _folded(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Warnings that share a summary become the first of them with a count.

    Never folded: errors, warnings without a place, and those of check blocks.
    """
    result: list[Diagnostic] = []
    first: dict[str, int] = {}
    for item in diagnostics:
        alone = item.severity is Severity.ERROR or item.source is None or item.checks
        if not alone and item.summary in first:
            place = first[item.summary]
            result[place] = replace(result[place], similar=result[place].similar + item.similar + 1)
            continue
        if not alone:
            first[item.summary] = len(result)
        result.append(item)
    return result


def _compact_line(diagnostic: Diagnostic) -> str:
    if diagnostic.source is None:
        return f"- {diagnostic.summary}\n"
    more = f" (and {diagnostic.similar} more)" if diagnostic.similar else ""
    return f"- {diagnostic.summary}\n  on {diagnostic.source.filename} line {diagnostic.source.line}{more}\n"


def _note(diagnostic: Diagnostic) -> str:
    match diagnostic.similar:
        case 0:
            return ""
        case 1:
            return "(and one more similar warning elsewhere)"
        case count:
            return f"(and {count} more similar warnings elsewhere)"


def _below(diagnostic: Diagnostic, limit: int, *, color: bool) -> str:
    """All that stands below the summary, wrapped at `limit`."""
    note = _note(diagnostic)
    if diagnostic.drawn is None:
        detail = "\n\n".join(filter(None, (diagnostic.detail, note)))
        return _place(diagnostic, color=color) + _wrapped(detail, limit)
    # A place ends with a blank line, a detail does not.
    apart = "\n" if note and diagnostic.drawn and not diagnostic.drawn.endswith("\n\n") else ""
    return diagnostic.drawn + apart + _wrapped(note, limit)


def _wrapped(detail: str, limit: int) -> str:
    """The detail, wrapped line by line; a line that starts with a space is preformatted and stays as it is."""
    if not detail:
        return ""
    lines = (line if line.startswith(" ") else wrapped(line, limit) for line in detail.split("\n"))
    return "".join(f"{line}\n" for line in lines)


def _plain(diagnostic: Diagnostic, width: int) -> str:
    head = f"\n{diagnostic.severity.title}{diagnostic.summary}\n\n"
    return head + _below(diagnostic, width - 1, color=False)


def _framed(diagnostic: Diagnostic, width: int) -> str:
    paint = diagnostic.severity.paint
    head = f"{BOLD}{paint}{diagnostic.severity.title}{RESET}{RESET}{BOLD}{diagnostic.summary}{RESET}\n\n{RESET}"
    body = head + _below(diagnostic, width - 3, color=True)
    rule = f"{paint}│{RESET} {RESET}"
    lines = "".join(f"{rule}{_without_return(line)}\n" for line in body.removesuffix("\n").split("\n"))
    return f"{paint}╷{RESET}{RESET}\n{lines}{paint}╵{RESET}{RESET}\n"


def _without_return(line: str) -> str:
    """The frame swallows the carriage return of a CRLF."""
    return line.removesuffix("\r")


def _place(diagnostic: Diagnostic, *, color: bool) -> str:
    """The object's address, the place in the configuration, and the code with what took part in it."""
    address = f"  with {diagnostic.address},\n" if diagnostic.address else ""
    source, snippet = diagnostic.source, diagnostic.snippet
    if source is None:
        return address
    if snippet is None:
        return f"{address}  on {source.filename} line {source.line}:\n  (source code not available)\n\n"
    context = f", in {snippet.context}" if snippet.context else ""
    head = f"{address}  on {source.filename} line {source.line}{context}:\n"
    return f"{head}{_code(snippet, color=color)}{_values(snippet, color=color)}\n"


def _code(snippet: Snippet, *, color: bool) -> str:
    code = snippet.code
    if color:
        encoded = code.encode()
        start, end = snippet.highlight
        before, marked, after = encoded[:start], encoded[start:end], encoded[max(start, end) :]
        code = f"{_text(before)}{_UNDERLINE}{_text(marked)}{RESET}{_text(after)}{RESET}"
    lines = enumerate(code.split("\n"), snippet.start_line)
    return "".join(f"{number:4d}: {line}\n" for number, line in lines)


def _text(part: bytes) -> str:
    return part.decode("utf-8", "replace")


def _values(snippet: Snippet, *, color: bool) -> str:
    """The list below the code: the function that was called, and the values at the time."""
    if not snippet.values and snippet.call is None:
        return ""
    dark, bold, reset = (_DARK, BOLD, RESET) if color else ("", "", "")
    lines = [f"    {dark}{_RULE}{reset}\n{reset}"]
    if snippet.call is not None:
        name, parameters = snippet.call
        lines.append(f"    {dark}│{reset} while calling {bold}{name}{reset}({reset}{parameters})\n")
    lines += [
        f"    {dark}│{reset} {bold}{traversal}{reset} {statement}\n{reset}" for traversal, statement in snippet.values
    ]
    return "".join(lines)
