"""Why a step failed, in a fixed vocabulary that can hold no secret."""

from __future__ import annotations

import re
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


CREATES = "create"
"""The operation of a failure that tells that the call which makes the object failed, and not what it is called."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure's kind, one safe line, and the provider's API operation and HTTP status where they are known."""

    kind: FailureKind
    detail: str
    operation: str | None = None
    http_status: int | None = None


# Codes of a service that refuses a delete since something else uses the object, or lies in it: as a word of its own
# before a colon, for a name may spell anything.
_BLOCKS = re.compile(
    r"(?:^|[\s,])(?:[\w.]*(?:NotEmpty|InUse|AssociatedItem)[\w.]*|DependencyViolation|DeleteConflict\w*|"
    r"\w+Contains\w+Exception|Existing\w+Connections|"
    r"Invalid(?:DB|Cache|Cluster)\w*(?:SubnetGroup|ParameterGroup|Cluster)State\w*):"
    r"|googleapi: Error 4\d\d: .*, (?:resourceInUseByAnotherResource|resourceInUse|containerNotEmpty)\b"
    r"|Error trying to delete bucket \S+ (?:containing objects )?without `force_destroy`"
)


_WANTS_SNAPSHOT = re.compile(r"final_?snapshot_?identifier is required", re.IGNORECASE)


def wants_final_snapshot(text: str) -> bool:
    """Whether an error says that a database is not deleted before somebody has named its last snapshot."""
    return _WANTS_SNAPSHOT.search(text) is not None


def blocks_deletion(text: str) -> bool:
    """Whether an error says that something else, which has to go first, hangs on the object or lies in it."""
    return _BLOCKS.search(text) is not None
