"""What others named, as it is shown: on one line, and without what would steer a terminal or turn the reading."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TypeVar, cast

_SHOWN_AS = "\ufffd"
_STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")

T = TypeVar("T")


def steers(char: str) -> bool:
    """Whether a character is not seen itself, but changes what is: controls, line breaks, the reading direction."""
    return unicodedata.category(char) in _STEERING


def printable(text: str) -> str:
    """`text` on one line, without what would steer a terminal or turn it around: names in it are others'."""
    return text if text.isprintable() else "".join(_SHOWN_AS if steers(char) else char for char in text)


def all_printable(value: T) -> T:
    """`value` with every text in it printable, at any depth of tuples, lists, mappings and dataclasses.

    For what is about to be shown, and painted: afterwards nobody can tell the paint from what others wrote.
    """
    return cast(T, _shown(value))


def _shown(value: object) -> object:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_shown(key): _shown(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if isinstance(value, list):
        return list(map(_shown, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _shown(getattr(value, one.name)) for one in fields(value) if one.init})
    return value
