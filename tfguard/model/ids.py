"""Operation ids: they sort by time, and two made in the same millisecond differ."""

from __future__ import annotations

import secrets
from datetime import datetime

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_operation_id(now: datetime) -> str:
    """A ULID: 48 bits of milliseconds and 80 random bits in Crockford's base 32, 26 characters."""
    value = (int(now.timestamp() * 1000) << 80) | secrets.randbits(80)
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))
