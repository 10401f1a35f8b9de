"""Dataclass <-> JSON by type hints: the one place where documents become types and types become documents.

Known forms: dataclasses, `X | None`, `tuple[X, ...]`, `Mapping[str, X]`, Enum (by value), datetime (RFC 3339 UTC),
date, timedelta (`14d`), str, int, float, bool, `object` for whatever JSON holds. Anything else in a hint is a mistake
in the program: `TypeError`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import TypeVar, cast, get_args, get_origin, get_type_hints

from tfguard.model.config import format_duration, parse_duration

T = TypeVar("T")
Where = tuple[str | int, ...]


class ShapeError(ValueError):
    """A document is not what its type says: `reason` at the place `where` (field names and list positions)."""

    def __init__(self, where: Where, reason: str) -> None:
        self.where = where
        self.reason = reason
        super().__init__(f"{place(where)}: {reason}" if where else reason)


def place(where: Where) -> str:
    """`where` as a person writes it: `steps[3].action`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in where).removeprefix(".")


def dump(value: object, *, keep_none: bool = False) -> object:
    """`value` in JSON's own types. A field that is None is left out, unless `keep_none`."""
    match value:
        case Enum():
            return value.value
        case datetime():
            return format_time(value)
        case date():
            return value.isoformat()
        case timedelta():
            return format_duration(value)
        case tuple() | list():
            return [dump(item, keep_none=keep_none) for item in value]
        case Mapping():
            return {str(key): dump(item, keep_none=keep_none) for key, item in value.items()}
        case None | str() | bool() | int() | float():
            return value
    if is_dataclass(value):
        pairs = ((f.name, dump(getattr(value, f.name), keep_none=keep_none)) for f in fields(value))
        return {name: item for name, item in pairs if keep_none or item is not None}
    raise TypeError(f"no JSON form for {type(value).__name__}")


def load(kind: type[T], raw: object, *, authored: bool = False) -> T:
    """`raw` (what a JSON parser gave) as a `kind`; `ShapeError` when it is none.

    Unknown fields are passed over, for a later version may have added them. A document that a person wrote is
    `authored`: there an unknown field is a mistake, and null means that nothing was said.
    """
    return cast(T, _load(kind, raw, (), authored))


def format_time(value: datetime) -> str:
    """RFC 3339 in UTC with `Z`. A time without a zone counts as UTC: a record must not be lost for want of a zone."""
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return aware.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _load(hint: object, raw: object, where: Where, authored: bool) -> object:
    origin = get_origin(hint)
    if origin is UnionType:
        return None if raw is None else _load(not_none(hint), raw, where, authored)
    if origin is tuple:
        return tuple(_load(get_args(hint)[0], item, (*where, n), authored) for n, item in enumerate(_list(raw, where)))
    if origin is Mapping:
        item_hint = get_args(hint)[1]
        return {key: _load(item_hint, item, (*where, key), authored) for key, item in _object(raw, where).items()}
    if isinstance(hint, type):
        return _load_class(hint, raw, where, authored)
    raise TypeError(f"no JSON form for {hint!r}")


def _load_class(kind: type, raw: object, where: Where, authored: bool) -> object:
    if kind is object:
        return raw
    if is_dataclass(kind):
        return _load_dataclass(kind, _object(raw, where), where, authored)
    if issubclass(kind, Enum):
        return _load_enum(kind, raw, where)
    return _load_scalar(kind, raw, where)


def _load_dataclass(kind: type, raw: Mapping[str, object], where: Where, authored: bool) -> object:
    hints = hints_of(kind)
    if authored:
        _refuse_unknown(raw, list(hints), where)
        raw = {key: item for key, item in raw.items() if item is not None}
    values: dict[str, object] = {}
    for entry in fields(kind):
        if entry.name in raw:
            values[entry.name] = _load(hints[entry.name], raw[entry.name], (*where, entry.name), authored)
        elif NoneType in get_args(hints[entry.name]):
            values[entry.name] = None
        elif not has_default(entry):
            raise ShapeError((*where, entry.name), "is missing")
    try:
        return kind(**values)
    except ValueError as error:
        raise ShapeError(where, str(error)) from None


def _load_enum(kind: type[Enum], raw: object, where: Where) -> Enum:
    by_value = {str(member.value): member for member in kind}
    if isinstance(raw, str) and raw in by_value:
        return by_value[raw]
    raise ShapeError(where, f"must be one of {', '.join(by_value)}")


def _load_scalar(kind: type, raw: object, where: Where) -> object:
    if kind is datetime:
        return _load_time(_text(raw, where), where)
    if kind is date:
        return _load_date(_text(raw, where), where)
    if kind is timedelta:
        return _load_duration(_text(raw, where), where)
    if kind is str:
        return _text(raw, where)
    if kind is bool or kind is int:
        if type(raw) is kind:
            return raw
        raise ShapeError(where, "must be true or false" if kind is bool else "must be a whole number")
    if kind is float:
        return _load_float(raw, where)
    raise TypeError(f"no JSON form for {kind.__name__}")


def _load_time(text: str, where: Where) -> datetime:
    try:
        value = datetime.fromisoformat(text)
        if value.tzinfo is not None:
            return value.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ShapeError(where, "must be an RFC 3339 time with a zone")


def _load_date(text: str, where: Where) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ShapeError(where, "must be a day such as 2027-01-31") from None


def _load_duration(text: str, where: Where) -> timedelta:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ShapeError(where, str(error)) from None


def _load_float(raw: object, where: Where) -> float:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        try:
            value = float(raw)
        except OverflowError:
            value = math.inf
        if math.isfinite(value):
            return value
    raise ShapeError(where, "must be a number")


def _text(raw: object, where: Where) -> str:
    if isinstance(raw, str):
        return raw
    raise ShapeError(where, "must be text")


def _list(raw: object, where: Where) -> list[object]:
    if isinstance(raw, list):
        return raw
    raise ShapeError(where, "must be a list")


def _object(raw: object, where: Where) -> dict[str, object]:
    if isinstance(raw, dict):
        return raw
    raise ShapeError(where, "must be a mapping")


def _refuse_unknown(raw: Mapping[str, object], known: list[str], where: Where) -> None:
    for key in raw:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise ShapeError((*where, key), f"unknown key; {hint}")


def not_none(hint: object) -> object:
    """`X` of a hint `X | None`."""
    arms = [arm for arm in get_args(hint) if arm is not NoneType]
    if len(arms) != 1:
        raise TypeError(f"no JSON form for {hint!r}")
    return arms[0]


def has_default(entry: Field[object]) -> bool:
    """Whether a document may leave this field out."""
    return entry.default is not MISSING or entry.default_factory is not MISSING


@cache
def hints_of(kind: type) -> dict[str, object]:
    """The hint of every field of a dataclass."""
    return dict(get_type_hints(kind))
