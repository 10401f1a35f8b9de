"""The chooser's table as a value: what a key or a typed line does to it, and what it looks like. No terminal here."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from tfguard.model.cloud import location_of
from tfguard.model.durations import in_words
from tfguard.model.finding import Finding, Verdict
from tfguard.model.printable import printable
from tfguard.report.findings import called
from tfguard.report.paint import Paint


class Act(StrEnum):
    """What the user wants; the first three are the words of `Finding.actions`, and of the commands that do them."""

    IMPORT = "import"
    RETAIN = "retain"
    DESTROY = "destroy"
    SHOW = "show"
    HELP = "help"
    LEAVE = "leave"


DECISIONS = (Act.IMPORT, Act.RETAIN, Act.DESTROY)
"""What changes something, and is asked about before."""

HELP = (
    "up, down, j, k     one finding up or down; page up, page down, home, end further",
    "a number           go to the finding with this number",
    "space              mark the finding, or take the mark away; a: all of them",
    "enter              what is known of the finding, and the evidence",
    "i                  import: adopt into the state",
    "r                  retain: keep until a date",
    "d                  destroy: delete, and verify that it is gone",
    "q, escape, Ctrl-C  leave",
    "",
    "i, r and d act on all that are marked, else on the finding at the mark >. The command that would run",
    "is shown first, and runs only after a 'yes'; then it asks its own questions, as it does without this table.",
)
"""What `?` shows."""

PROMPT_HELP = (
    "a number: what is known of that finding, and the evidence",
    "numbers and a letter, such as `1 3 r`: i import, r retain, d destroy",
    "a letter alone: where there is one finding it is about that, where there are several you are asked which",
    "q: leave",
    "The command that would run is shown first, and runs only after a 'yes'; then it asks its own questions.",
)
"""What `?` shows where lines are typed in the place of keys."""

_KEYS_LINE = "? help  q leave  space mark  i import  r retain  d destroy  enter details  arrows or numbers move"
_LETTERS = {"i": Act.IMPORT, "r": Act.RETAIN, "d": Act.DESTROY, "?": Act.HELP, "q": Act.LEAVE}
_COLUMNS = ("id", "type", "name", "age", "verdict", "data", "region")
_ELASTIC = ("type", "name")
_LEAST = 8
# What a narrow window does without, one after the other; whether it holds data is the last.
_GIVEN_UP = ("region", "age", "verdict", "data")
_AROUND_THE_ROWS = 6
_LEAST_COLUMNS, _LEAST_LINES = 40, _AROUND_THE_ROWS + 2
_LOUD = {"orphaned": "red", "duplicated": "red", "unknown": "yellow"}


@dataclass(frozen=True, slots=True)
class Table:
    """The findings, at least one, where the user is among them, and what is marked.

    `typed` are the digits of a number so far; `said` answers the last key, where it could not be followed.
    """

    findings: tuple[Finding, ...]
    cursor: int = 0
    marked: frozenset[str] = frozenset()
    typed: str = ""
    said: str = ""

    @property
    def current(self) -> Finding:
        """The finding at the cursor."""
        return self.findings[self.cursor]

    @property
    def chosen(self) -> tuple[Finding, ...]:
        """What a decision is about: all that are marked, else the one at the cursor."""
        return tuple(finding for finding in self.findings if finding.id in self.marked) or (self.current,)

    def refreshed(self, findings: Sequence[Finding]) -> Table:
        """The same place among the findings as they are now; what is gone is not marked any more."""
        ids = [finding.id for finding in findings]
        here = ids.index(self.current.id) if self.current.id in ids else min(self.cursor, len(ids) - 1)
        return Table(tuple(findings), here, self.marked & set(ids))

    def press(self, key: str, page: int = 10) -> tuple[Table, Act | None]:
        """What a key does; `page` is how many findings are seen at once.

        Keys are single characters, and `up down home end page-up page-down enter escape`.
        """
        now = replace(self, typed="", said="")
        moves = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -page, "page-down": page}
        if key in moves:
            return now._at(self.cursor + moves[key]), None
        if key in ("home", "g", "end", "G"):
            return now._at(0 if key in ("home", "g") else len(self.findings)), None
        if key.isdecimal() and key.isascii():
            return now._number(self.typed + key, key), None
        if key == " ":
            return replace(now, marked=self.marked ^ {self.current.id})._at(self.cursor + 1), None
        if key == "a":
            every = frozenset(finding.id for finding in self.findings)
            return replace(now, marked=frozenset() if self.marked == every else every), None
        if key == "enter":
            return now, Act.SHOW
        if key in ("escape", "\x04"):
            return now, Act.LEAVE
        if key in _LETTERS:
            return now._wanted(_LETTERS[key])
        return replace(now, said="no such key; ? tells which there are"), None

    def answer(self, line: str) -> tuple[Table, Act | None]:
        """What a typed line does, where keys cannot be used: numbers and a letter, in any order."""
        now = replace(self, typed="", said="", marked=frozenset())
        words = re.findall(r"[0-9]+|[^\s,]", line)
        numbers = [int(word) for word in words if word[0] in "0123456789"]
        letters = [word for word in words if word[0] not in "0123456789"]
        beyond = [number for number in numbers if not 1 <= number <= len(self.findings)]
        if not words:
            return now, None
        if beyond:
            return replace(now, said=f"there is no finding with the number {beyond[0]}"), None
        if len(letters) > 1 or any(letter not in _LETTERS for letter in letters):
            return replace(now, said="type numbers and one letter, such as `1 3 r`; ? tells which there are"), None
        if not letters:
            if len(numbers) > 1:
                return replace(now, said="say what is to be done with them: i, r or d"), None
            return now._at(numbers[0] - 1), Act.SHOW
        act = _LETTERS[letters[0]]
        if act in DECISIONS and not numbers and len(self.findings) > 1:
            return replace(now, said=f"say with which of them, such as `1 {letters[0]}`"), None
        chosen = frozenset(self.findings[number - 1].id for number in numbers)
        return replace(now, marked=chosen)._wanted(act)

    def _at(self, cursor: int) -> Table:
        return replace(self, cursor=max(0, min(cursor, len(self.findings) - 1)))

    def _number(self, typed: str, key: str) -> Table:
        """Follow the digits so far; the last one begins a number where they make none."""
        for digits in (typed, key):
            if 1 <= int(digits) <= len(self.findings):
                return replace(self, typed=digits)._at(int(digits) - 1)
        return replace(self, said=f"there is no finding with the number {typed}")

    def _wanted(self, act: Act) -> tuple[Table, Act | None]:
        """The wish, unless a finding of those that are chosen does not offer it, or they are kept in two ways."""
        if act in DECISIONS:
            for finding in self.chosen:
                if act.value not in finding.actions:
                    offered = " or ".join(finding.actions) or "nothing that can be done here"
                    return replace(self, said=f"{finding.id} is {finding.verdict.value}, which leaves {offered}"), None
        if act is Act.RETAIN and len({finding.verdict is Verdict.TAINTED for finding in self.chosen}) > 1:
            return replace(
                self, said="some of these are tainted, which is kept in another way: one kind at a time"
            ), None
        return self, act


@dataclass(frozen=True, slots=True)
class View:
    """What a table is drawn into, when, and how: `coverage` says how far the looks reached."""

    columns: int
    lines: int
    now: datetime
    coverage: str
    paint: Paint

    @property
    def roomy(self) -> bool:
        """Whether a table can be drawn at all."""
        return self.columns >= _LEAST_COLUMNS and self.lines >= _LEAST_LINES

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        return self.columns, self.lines

    @property
    def rows(self) -> int:
        """How many findings are seen at once."""
        return max(1, self.lines - _AROUND_THE_ROWS)


def table_lines(table: Table, view: View) -> list[str]:
    """The whole screen, no line wider than it; the part of the table that the cursor is in."""
    paint, count = view.paint, len(table.findings)
    cells = [_cells(finding, view.now) for finding in table.findings]
    digits = len(str(count))
    widths = _widths(cells, view.columns - digits - 5)
    head = f"{count} finding{'s' if count > 1 else ''} to decide about"
    head += f", {len(table.marked)} marked" if table.marked else ""
    titles = "  ".join(fitted(name, width) for name, width in zip(_COLUMNS, widths, strict=True) if width)
    lines = [paint(fitted(head, view.columns), "bold"), paint(" " * (digits + 5) + titles, "dim")]
    first = table.cursor // view.rows * view.rows
    for number in range(first, min(first + view.rows, count)):
        finding = table.findings[number]
        current = number == table.cursor
        painted = []
        for name, text, width in zip(_COLUMNS, cells[number], widths, strict=True):
            loud = {"verdict": _LOUD.get(text, ""), "data": "red" if text == "yes" else ""}.get(name, "")
            styles = [style for style in (loud, "bold" if current else "") if style]
            painted += [paint(fitted(text, width), *styles)] if width else []
        begin = f"{'>' if current else ' '}{'*' if finding.id in table.marked else ' '} {number + 1:>{digits}}  "
        lines.append(paint(begin, *(["bold"] if current else [])) + "  ".join(painted))
    below = [
        paint(fitted(table.said, view.columns), "yellow") if table.said else fitted(whole(table.current), view.columns),
        fitted(view.coverage, view.columns),
        paint(fitted(_KEYS_LINE, view.columns), "dim"),
    ]
    return [*lines, "", *below]


def numbered_lines(table: Table, now: datetime) -> list[str]:
    """One line for each finding, with its number, as wide as it is."""
    return [f"{number}: {one_line(finding, now)}" for number, finding in enumerate(table.findings, 1)]


def one_line(finding: Finding, now: datetime) -> str:
    """A finding as it is named before it is decided about."""
    found, (_, kind, name, age, verdict, _, region) = finding.object, _cells(finding, now)
    more = [verdict, f"{age} old" if age else "", region, "HOLDS DATA" if found and found.stateful else ""]
    what = f"{kind} {name}" if found else name
    return f"{finding.id}  {what} ({', '.join(part for part in more if part)})"


def whole(finding: Finding) -> str:
    """What the row at the cursor may have had no room for."""
    found = finding.object
    if found is None:
        return printable(finding.address or finding.id)
    what = f"{found.type} {found.import_id}"
    where = finding.address or (f"one of {', '.join(finding.addresses)}" if finding.addresses else "")
    return printable(f"{what}, for {where}" if where else f"{what}, which no configuration names")


def wrapped(text: str, columns: int) -> list[str]:
    """The lines of a text, those that are too wide over several; what would steer a terminal is not in them."""
    found: list[str] = []
    for line in text.splitlines():
        rest = printable(line)
        while _width(rest) > columns:
            head = _beginning(rest, columns)
            found.append(head)
            rest = rest[len(head) :]
        found.append(rest)
    return found


def fitted(text: str, width: int) -> str:
    """A text as wide as `width`: with blanks behind it, or cut short, which two dots tell."""
    if _width(text) > width:
        text = _beginning(text, max(0, width - 2)) + ".."[:width]
    return text + " " * (width - _width(text))


def _cells(finding: Finding, now: datetime) -> tuple[str, ...]:
    found = finding.object
    if found is None:
        return (finding.id, "", printable(finding.address or ""), "", finding.verdict.value, "", "")
    age = " ".join(in_words(now - found.created_at).split()[:2]) if found.created_at else ""
    name = printable(called(found) or found.import_id)
    data = "yes" if found.stateful else "no"
    return (finding.id, printable(found.type), name, age, finding.verdict.value, data, printable(location_of(found)))


def _widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """How wide each column is, so that all fit; 0 for one that there is no room for."""
    full = {name: max(map(_width, column)) for name, *column in zip(_COLUMNS, *rows, strict=True)}
    wide = {name: max(len(name), width) for name, width in full.items() if width or name in _ELASTIC}
    for name in ("", *_GIVEN_UP):
        wide.pop(name, None)
        fixed = sum(width + 2 for column, width in wide.items() if column not in _ELASTIC)
        left = room - fixed - 2
        if left >= sum(min(wide[column], _LEAST) for column in _ELASTIC):
            break
    kind, own = (wide[column] for column in _ELASTIC)
    if kind + own > left:
        wide["type"] = min(kind, max(left // 2, left - own))
        wide["name"] = max(0, left - wide["type"])
    return [wide.get(column, 0) for column in _COLUMNS]


def _width(text: str) -> int:
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _beginning(text: str, width: int) -> str:
    """As much of a text as fits; at least one character where there is room for any."""
    used = 0
    for index, char in enumerate(text):
        used += _char_width(char)
        if used > width:
            return text[: max(index, min(1, width))]
    return text
