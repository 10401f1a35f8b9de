"""Operation ids: they sort by time, and two made in the same millisecond differ."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH = 26
_OF_TIME = 10
_LAST_MONTH = "9999-12"


def new_operation_id(now: datetime) -> str:
    """A ULID: 48 bits of milliseconds and 80 random bits in Crockford's base 32, 26 characters."""
    value = (int(now.timestamp() * 1000) << 80) | secrets.randbits(80)
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))


def time_of(operation_id: str) -> datetime:
    """When an operation's id was made. Raises `ValueError` for what is no id."""
    if len(operation_id) != _LENGTH or any(character not in _ALPHABET for character in operation_id):
        raise ValueError(f"{operation_id} is no operation's id")
    milliseconds = 0
    for character in operation_id[:_OF_TIME]:
        milliseconds = milliseconds * 32 + _ALPHABET.index(character)
    try:
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise ValueError(f"{operation_id} is of no time that a calendar has") from None


def month_of(operation_id: str) -> str:
    """The month in which an operation's id was made, as `2026-03`. Raises `ValueError` for what is no id."""
    return f"{time_of(operation_id):%Y-%m}"


def months_of(beginning: str) -> tuple[str, str]:
    """The first and the last month that an id which begins so can be of; `ValueError` when no id begins so."""
    first = month_of(beginning.ljust(_LENGTH, "0"))
    try:
        return first, month_of(beginning.ljust(_LENGTH, "Z"))
    except ValueError:
        return first, _LAST_MONTH
