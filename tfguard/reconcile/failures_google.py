"""The error texts of Google's client libraries, as the google provider prints them:
`Error creating Network: googleapi: Error 409: The resource '...' already exists, alreadyExists`."""

from __future__ import annotations

import re

from tfguard.model.failure import CREATES, Failure, FailureKind

# `googleapi: Error 403: WORDS, reason`; what is no answer of the service is `googleapi: got HTTP response code 502`.
_ANSWERED = re.compile(r"googleapi: (?P<form>Error|got HTTP response code) (?P<status>\d{3})\b")
# Every provider speaks gRPC with its engine: only right behind a create's own words is it a service's answer, and a
# transport that ended is none.
_GRPC = re.compile(
    r"[\s\"']*error creating [\w ]{1,60}[.:] rpc error: code = (?P<code>[A-Z][A-Za-z]{1,30}) desc = "
    r"(?!transport is|error reading from|grpc: |connection )",
    re.IGNORECASE,
)
_WAITED = re.compile(r"[\s\"']*Error waiting to create\b")
# Only what begins so is about the call that makes the object. A read, a wait or a poll comes after an accepted one.
_OF_THE_CREATE = re.compile(r"[\s\"']*error creating\b", re.IGNORECASE)
_AFTER_IT = re.compile(r"\b(?:waiting (?:for|to)|while waiting|reading|retrieving|polling|operation)\b", re.IGNORECASE)
_EXISTS = re.compile(r"already ?exists\b|already own|\bdatabase exists\b", re.IGNORECASE)

# What a reason may be called in a record: any other last word of a text may be somebody's secret.
_REFUSALS = frozenset(
    {
        "accessDenied",
        "accessNotConfigured",
        "badRequest",
        "billingDisabled",
        "forbidden",
        "insufficientPermissions",
        "invalid",
        "invalidArgument",
        "invalidParameter",
        "notFound",
        "parseError",
        "required",
    }
)
_EXISTING = frozenset({"alreadyExists", "duplicate"})
# The provider sends a create again by itself where the first reply was lost, and does not tell it: what a second try
# meets because of the first one (a quota that is used up now, a name that is busy) says nothing of the first.
_UNSURE = frozenset(
    {
        "aborted",
        "backendError",
        "conditionNotMet",
        "conflict",
        "failedPrecondition",
        "internalError",
        "limitExceeded",
        "operationInProgress",
        "quotaExceeded",
        "rateLimitExceeded",
        "resourceExhausted",
        "resourceInUseByAnotherResource",
        "resourceNotReady",
        "unavailable",
        "userRateLimitExceeded",
    }
)
_REASON = re.compile(rf"\b({'|'.join(sorted(_REFUSALS | _EXISTING | _UNSURE))})\b")
_REFUSING = frozenset({400, 403, 404})
_LOST = re.compile(
    r"unexpected EOF|: EOF\b|connection reset by peer|broken pipe|i/o timeout|TLS handshake timeout|no such host"
    r"|Client\.Timeout exceeded|timeout awaiting response headers|connection refused|oauth2: cannot fetch token"
    r"|oauth2: \"|server closed idle connection|context deadline exceeded"
)
_ABOUT_GOOGLE = re.compile(r"googleapi|\.googleapis\.com|oauth2: ")


def failure_in(words: str) -> Failure | None:
    """The failure that an error of Google's libraries tells of; None for a text that is none, and for one about what
    came after the create."""
    if match := _ANSWERED.search(words):
        before, after = words[: match.start()], words[match.end() :]
        if _AFTER_IT.search(before):
            return None
        return _answered(int(match["status"]), match["form"] == "Error", before, after)
    if match := _GRPC.match(words):
        kind = FailureKind.ALREADY_EXISTS if match["code"] == "AlreadyExists" else FailureKind.NO_REPLY
        return Failure(kind, f"Google Cloud: {'an object of that name exists' if _is_there(kind) else 'refused'}")
    if _ABOUT_GOOGLE.search(words) and _LOST.search(words) and not _AFTER_IT.search(words):
        return Failure(FailureKind.NO_REPLY, "Google Cloud: no usable reply")
    return Failure(FailureKind.WAITING, "an error while waiting") if _WAITED.match(words) else None


def _is_there(kind: FailureKind) -> bool:
    return kind is FailureKind.ALREADY_EXISTS


def _answered(status: int, by_the_service: bool, before: str, after: str) -> Failure:
    reasons = _REASON.findall(after)
    reason = reasons[-1] if reasons else ""
    said = f"Google Cloud: HTTP {status} {reason}".rstrip()
    # Cloud SQL answers for its databases, and says 400.
    if status in (400, 409) and (reason in _EXISTING or _EXISTS.search(after)):
        return Failure(FailureKind.ALREADY_EXISTS, said, CREATES, status)
    sure = by_the_service and reason in _REFUSALS and not _UNSURE.intersection(reasons)
    if sure and status in _REFUSING and _OF_THE_CREATE.match(before):
        return Failure(FailureKind.REFUSED, said, CREATES, status)
    return Failure(FailureKind.NO_REPLY, said, None, status)
