"""Reads when credentials end: the forms in which tools write a time, and the tokens that carry one. Pure.

Everything here is a hint that a person or a tool left: what cannot be read is None, never an error.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from datetime import UTC, datetime

_LONGEST = 64
_LONGEST_TOKEN = 1 << 16
_SECONDS = re.compile(r"\d{9,11}")
_DAY_AND_TIME = re.compile(r"\d[T ]\d")
_GO_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? ?(?:UTC|([+-]\d\d):?(\d\d)(?: [A-Z]{3,5})?)")


def parse_time(text: str) -> datetime | None:
    """A point in time: RFC 3339 with `Z` or an offset, `2026-11-29 18:22:46 UTC`, `... +0000 UTC`, or seconds since
    1970. Without a zone it counts as UTC, as the tools mean it that leave it out."""
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    if match := _GO_TIME.fullmatch(text):
        text = f"{match[1]}{match[2] or '+00'}:{match[3] or '00'}"
    try:
        if _SECONDS.fullmatch(text):
            return datetime.fromtimestamp(int(text), UTC)
        found = datetime.fromisoformat(text) if _DAY_AND_TIME.search(text) else None
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC) if found else None
    except (ValueError, OverflowError, OSError):
        return None


def token_expiry(token: str) -> datetime | None:
    """The `exp` of a JSON web token; its signature is nobody's business here."""
    parts = token.strip().split(".")
    if len(parts) != 3 or len(token) > _LONGEST_TOKEN:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        ends = claims.get("exp") if isinstance(claims, dict) else None
        return datetime.fromtimestamp(ends, UTC) if isinstance(ends, int | float) and ends > 1 else None
    except (ValueError, OverflowError, OSError, RecursionError, binascii.Error):
        return None
