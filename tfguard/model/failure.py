"""Why a step failed, in a fixed vocabulary that can hold no secret."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """The kinds of failure that lead to different conclusions about existence (rule 3)."""

    REFUSED = "refused"
    ALREADY_EXISTS = "already-exists"
    NO_REPLY = "no-reply"
    WAITING = "waiting"
    VANISHED = "vanished"
    PLUGIN_CRASH = "plugin-crash"
    CANCELLED = "cancelled"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure's kind, one safe line, and the provider's API operation and HTTP status where they are known."""

    kind: FailureKind
    detail: str
    operation: str | None = None
    http_status: int | None = None
