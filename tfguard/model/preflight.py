"""What is looked at before the first step of a request, and what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class CheckName(StrEnum):
    """The checks, in the order in which they are made."""

    ENGINE = "engine"
    STACKS = "stacks"
    DATA = "data"
    RECORDS = "records"
    CREDENTIALS = "credentials"
    PERMISSIONS = "permissions"
    QUOTAS = "quotas"


class CheckStatus(StrEnum):
    """How a check ended. What is `unknown` could not be looked at: it neither passes nor stops a request."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing that a check has looked at: how that ended, what was seen, and what to do where it failed.

    Of one that was skipped `detail` is the reason.
    """

    name: CheckName
    status: CheckStatus
    detail: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit on how many objects an account may have in one region, or at all, as the cloud's own list of limits names
    it. `only` says which objects of a type it counts: attribute -> value."""

    service: str
    code: str
    only: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from every other limit."""
        return (self.service, self.code)


@dataclass(frozen=True, slots=True)
class Limit:
    """How many there may be; without a `value`, `reason` says why that is not known."""

    value: int | None = None
    reason: str = ""
