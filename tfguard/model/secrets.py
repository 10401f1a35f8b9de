"""Telling whether a text carries a value that was marked as sensitive (rule 10)."""

from __future__ import annotations

from collections.abc import Collection

# A marked value this short (true, 0, "-") would match everywhere and says nothing about anybody's secret.
_SHORTEST_SECRET = 4


def is_secret(value: str, secrets: Collection[str]) -> bool:
    """Whether `value` is a marked value or carries one inside it, as an interpolated name would."""
    return any(secret in value for secret in secrets if len(secret) >= _SHORTEST_SECRET) or value in secrets
