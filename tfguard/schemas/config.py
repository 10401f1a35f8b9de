"""`tfguard.yaml` -> `Config`. Every mistake is a `ConfigError` that begins with file, line and key."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import yaml

from tfguard.errors import ConfigError
from tfguard.model.config import Config
from tfguard.schemas.codec import ShapeError, Where, load, place
from tfguard.schemas.config_file import CONFIG_NAME, unreadable

_ADVICE = 'correct this line; README, "Configuration" lists every key'
_LARGEST = 256 << 10
"""The parser takes seconds for a megabyte, and each command reads the file."""

_MAX_DEPTH = 20
_MAX_NODES = 100_000
"""With aliases, YAML of a few lines can mean a tree without an end."""


def load_config(path: Path) -> Config:
    """The configuration in the file `path`; raises `ConfigError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError:
        _refuse(str(path), 1, "", "is not UTF-8 text")
    return parse_config(text, str(path))


def parse_config(text: str, file: str = CONFIG_NAME) -> Config:
    """The configuration in `text`; empty is all defaults. Raises `ConfigError`, which names `file`."""
    if len(text) > _LARGEST:
        _refuse(file, 1, "", f"is larger than {_LARGEST >> 10} KiB, which no configuration is")
    root = _compose(text, file)
    tree = _PlainTree(file)
    raw = None if root is None else tree.plain(root, ())
    try:
        return load(Config, {} if raw is None else raw, authored=True)
    except ShapeError as error:
        _refuse(file, tree.line(error.where), place(error.where), error.reason)


class _PlainTree:
    """A YAML tree as plain values (every scalar is text: an account id keeps its zeros), with the line of each."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: dict[Where, int] = {}

    def plain(self, node: yaml.Node, where: Where) -> object:
        """The value of `node`, which stands at `where`; its line is kept. An alias is read as what it stands for."""
        self._lines.setdefault(where, _line(node))
        if len(where) > _MAX_DEPTH or len(self._lines) > _MAX_NODES:
            _refuse(self._file, _line(node), place(where), "is nested too deeply or too large")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, where)
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item, (*where, number)) for number, item in enumerate(node.value)]
        return None if node.tag == "tag:yaml.org,2002:null" else str(node.value)

    def line(self, where: Where) -> int:
        """The line of `where`, or of the nearest thing around it that is in the file."""
        while where and where not in self._lines:
            where = where[:-1]
        return self._lines.get(where, 1)

    def _mapping(self, node: yaml.MappingNode, where: Where) -> dict[str, object]:
        values: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                _refuse(self._file, _line(key), place(where), "a key must be text")
            inner = (*where, str(key.value))
            if key.value in values:
                _refuse(self._file, _line(key), place(inner), f"is given twice, first in line {self._lines[inner]}")
            self._lines[inner] = _line(key)
            values[key.value] = self.plain(value, inner)
        return values


def _compose(text: str, file: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        _refuse(file, mark.line + 1 if mark else 1, "", f"is not YAML: {error.problem or error.context}")
    except yaml.reader.ReaderError as error:
        _refuse(file, text.count("\n", 0, error.position) + 1, "", "has a character that YAML does not allow")
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):  # it trusts the numbers of an escape
        _refuse(file, 1, "", "is not YAML, or is nested too deeply")


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _refuse(file: str, line: int, key: str, reason: str) -> NoReturn:
    what = f"{file}:{line}: {key}: {reason}" if key else f"{file}:{line}: {reason}"
    raise ConfigError("".join(char if char.isprintable() else " " for char in what), _ADVICE)
