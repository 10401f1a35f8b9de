"""What every store does alike: which names it takes, how long it waits, and what it says when something fails."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from tfguard.errors import ConflictError, RecordError


@dataclass(frozen=True, slots=True)
class Held:
    """What a place is used for, in its errors: what one thing in it is called, and what else than making the place
    could help."""

    noun: str
    instead: str

    def doing(self, verb: str, url: str) -> str:
        """What could not be done, of the thing at `url`, or of all below it."""
        several = f"{self.noun}s below" if verb == "list" and self is not RECORDS else self.noun
        return f"cannot {verb} the {several} {url}"


OWN_PREFIX = ".tfguard-"
"""What the files that a store makes for itself (locks, temporary files) begin with; no record's name may."""

CALL_SECONDS = 40.0
"""The longest that one call of a remote store may take that gets no answer, with all its further tries.

A lease lasts 60 s and is renewed every 10 s: a request that hangs must leave time for another renewal, or others take
an operation for dead whose run is alive. `CONNECT_SECONDS`, `READ_SECONDS` and `ATTEMPTS` are chosen to add up to less,
with up to 4 s for the pauses between tries.
"""

CONNECT_SECONDS = 4
READ_SECONDS = 8
"""Between two bytes of an answer."""

ATTEMPTS = 3

UNFORESEEN = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What a client library lets through beside its own errors: it takes it for granted that its service answers and not
some proxy's page, and that files with credentials are still there when they are to be read again."""


RECORDS = Held("record", ", or name another place with `records:` in tfguard.yaml")
STATES = Held("state", ", or correct its name")


def may_pass(status: object) -> bool:
    """Whether an HTTP status says that the same request may succeed later: the service is busy, slow or failing."""
    return isinstance(status, int) and (
        status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
        or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    )


def told(error: BaseException) -> str:
    """Kind and first line of an error."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


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
