"""Which types a user's patterns mean (`--type`, `scan.aws.types`, `tfguard catalog`)."""

from __future__ import annotations

from collections.abc import Sequence

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.errors import UsageError


def types_matching(catalog: Catalog, patterns: Sequence[str], cloud: str | None = None) -> list[ResourceType]:
    """The types that any of the patterns means, other names of a type included, in the catalogue's order.

    Only those of `cloud`, where one is named. Raises `UsageError` for a pattern that means none: the user looks for
    something that nobody would look at.
    """
    chosen: set[str] = set()
    for pattern in patterns:
        matched = {entry.type for entry in catalog.matching(pattern) if cloud in (None, entry.cloud)}
        if not matched:
            raise _no_match(pattern, "matches no type of the catalogue")
        chosen |= matched
    return [entry for entry in catalog if entry.type in chosen]


def listable_types(catalog: Catalog, patterns: Sequence[str], cloud: str | None = None) -> list[ResourceType]:
    """The same, without the types that cannot be listed by themselves. `UsageError` also for a pattern that means
    those alone."""
    for pattern in patterns:
        if all(entry.list is None for entry in types_matching(catalog, [pattern], cloud)):
            raise _no_match(pattern, "matches no type that can be listed")
    return [entry for entry in types_matching(catalog, patterns, cloud) if entry.list is not None]


def _no_match(pattern: str, what: str) -> UsageError:
    shown = "".join(char if char.isprintable() else " " for char in pattern) or '""'
    return UsageError(f"the pattern {shown} {what}", "see `tfguard catalog list` for the types")
