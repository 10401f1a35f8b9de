"""A YAML file that a person wrote -> a dataclass. Every mistake is a `ConfigError` that tells file, line and key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

import yaml

from tfguard.errors import ConfigError
from tfguard.schemas.codec import ShapeError, Where, load, place

T = TypeVar("T")

_LARGEST = 256 << 10
"""The parser takes seconds for a megabyte, and each command reads the file."""

_MAX_DEPTH = 20
_MAX_NODES = 100_000
"""With aliases, YAML of a few lines can mean a tree without an end."""

_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Authored(Generic[T]):
    """What a file says, and where it says it."""

    value: T
    file: str
    advice: str
    lines: dict[Where, int]

    def refuse(self, where: Where, reason: str, advice: str = "") -> NoReturn:
        """Raise the `ConfigError` about what stands at `where`, or about the nearest thing around it in the file; with
        `advice`, else the one for any mistake in such a file."""
        at = where
        while at and at not in self.lines:
            at = at[:-1]
        _refuse(self.file, self.lines.get(at, 1), place(where), reason, advice or self.advice)


def read_text(path: Path, advice: str) -> str:
    """The text of a file. Raises `ConfigError` for one that is not UTF-8, and `OSError` for one that is not there."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        _refuse(str(path), 1, "", "is not UTF-8 text", advice)


def parse_authored(kind: type[T], text: str, file: str, advice: str, *, typed: bool = False) -> Authored[T]:
    """The `kind` that `text` says; an empty one says nothing. Raises `ConfigError`, which names `file`.

    Every scalar is text: an account id keeps its zeros. In a `typed` file `true`, `false` and whole numbers in their
    plain form are what they look like.
    """
    if len(text) > _LARGEST:
        _refuse(file, 1, "", f"is larger than {_LARGEST >> 10} KiB, which no such file is", advice)
    root = _compose(text, file, advice)
    tree = _PlainTree(file, advice, typed)
    raw = None if root is None else tree.plain(root, ())
    try:
        value = load(kind, {} if raw is None else raw, authored=True)
    except ShapeError as error:
        Authored(None, file, advice, tree.lines).refuse(error.where, error.reason)
    return Authored(value, file, advice, tree.lines)


class _PlainTree:
    """A YAML tree as plain values, with the line of each."""

    def __init__(self, file: str, advice: str, typed: bool) -> None:
        self._file = file
        self._advice = advice
        self._typed = typed
        self.lines: dict[Where, int] = {}

    def plain(self, node: yaml.Node, where: Where) -> object:
        """The value of `node`, which stands at `where`; its line is kept. An alias is read as what it stands for."""
        self.lines.setdefault(where, _line(node))
        if len(where) > _MAX_DEPTH or len(self.lines) > _MAX_NODES:
            self._refuse(node, where, "is nested too deeply or too large")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item, (*where, number)) for number, item in enumerate(node.value)]
        return self._scalar(node)

    def _scalar(self, node: yaml.Node) -> object:
        text = str(node.value)
        if node.tag == "tag:yaml.org,2002:null":
            return None
        if self._typed and node.tag == "tag:yaml.org,2002:bool" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if self._typed and node.tag == "tag:yaml.org,2002:int" and _WHOLE.fullmatch(text):
            return int(text)
        return text

    def _mapping(self, node: yaml.MappingNode, where: Where) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, where, "a key must be text")
            inner = (*where, str(key.value))
            if key.value in values:
                self._refuse(key, inner, f"is given twice, first in line {self.lines[inner]}")
            self.lines[inner] = _line(key)
            values[key.value] = self.plain(value, inner)
        return values

    def _refuse(self, node: yaml.Node, where: Where, reason: str) -> NoReturn:
        _refuse(self._file, _line(node), place(where), reason, self._advice)


def _compose(text: str, file: str, advice: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        _refuse(file, mark.line + 1 if mark else 1, "", f"is not YAML: {error.problem or error.context}", advice)
    except yaml.reader.ReaderError as error:
        _refuse(file, text.count("\n", 0, error.position) + 1, "", "has a character that YAML does not allow", advice)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):  # it trusts the numbers of an escape
        _refuse(file, 1, "", "is not YAML, or is nested too deeply", advice)


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _refuse(file: str, line: int, key: str, reason: str, advice: str) -> NoReturn:
    what = f"{file}:{line}: {key}: {reason}" if key else f"{file}:{line}: {reason}"
    raise ConfigError("".join(char if char.isprintable() else " " for char in what), advice)
