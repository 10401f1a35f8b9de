"""What every store does alike: which names it takes, and what it says when it loses a race."""

from __future__ import annotations

from tfguard.errors import ConflictError, RecordError

OWN_PREFIX = ".tfguard-"
"""What the files that a store makes for itself (locks, temporary files) begin with; no record's name may."""


def check_name(name: str) -> str:
    """`name`, if every part of it names something inside the store; `RecordError` else (a damaged record names it)."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or part.startswith(OWN_PREFIX) for part in parts) or not name.isprintable():
        raise RecordError(
            f"{name!r} is no name for a record: it leads out of the record's folder or is reserved",
            "inspect head.json next to the state; it may have been edited by hand",
        )
    return name


def aside_name(name: str, number: int) -> str:
    """The name under which a document that cannot be trusted is kept."""
    return f"{name}.unreadable-{number}"


def conflict(place: str) -> ConflictError:
    """Somebody else wrote the document at `place` (a path or URL) first."""
    return ConflictError(
        f"the record {place} was written by another run in the meantime",
        "run `tfguard status` to see which operation is current, then try again",
    )
