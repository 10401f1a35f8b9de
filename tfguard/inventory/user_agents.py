"""What a user agent in an audit log tells of who called. A client chooses it: evidence, and no proof. Pure."""

from __future__ import annotations

import re

_OURS = re.compile(r"(?:^|\s)tfguard/([0-9A-HJKMNP-TV-Z]{26})(?:\s|$)")
_ENGINE = re.compile(r"\b(Terraform|OpenTofu)/([0-9][\w.+-]*)")


def operation_in(agent: str) -> str | None:
    """The operation of tfguard's own that a call was part of."""
    found = _OURS.search(agent)
    return found[1] if found else None


def engine_in(agent: str) -> str | None:
    """The engine and its version."""
    found = _ENGINE.search(agent)
    return f"{found[1]} {found[2]}" if found else None
