"""The AWS SDK's error texts, as the AWS provider prints them:
`operation error IAM: CreateRole, https response error StatusCode: 403, ... api error AccessDenied`."""

from __future__ import annotations

import re

from tfguard.model.failure import Failure, FailureKind

# A typed error has its code where an untyped one says `api error CODE`; S3 puts a second id before it.
_ANSWERED = re.compile(
    r"operation error (?P<service>[\w ]{1,40}): (?P<operation>[A-Z]\w{1,60}),"
    r"(?: exceeded maximum number of attempts, (?P<attempts>\d{1,4}),)?"
    r" https response error StatusCode: (?P<status>\d{3}),"
    r"(?: RequestID: [\w-]*,)?(?: HostID: [\w+/=-]*,)?(?: (?:api error )?(?P<code>[A-Za-z][\w.]{1,60}):)?",
)
_NO_REPLY = re.compile(r"operation error (?P<service>[\w ]{1,40}): (?P<operation>[A-Z]\w{1,60}),")
_EXISTS = re.compile(r"already ?exist|AlreadyOwned|(?<!Not)Exists(?:Exception|Fault)?\b|Duplicate", re.IGNORECASE)
# "Exists" from a create of these services, and "busy" from any other call.
_EXISTS_ON_CREATE = frozenset({"ResourceConflictException", "ResourceInUseException", "ResourceInUse"})
# A reply that this attempt was not accepted, and none about an earlier one: another call on the same object is under
# way, perhaps our own first one, or its token was used before. The SDK's own list of what it retries is in here.
_UNSURE = re.compile(
    r"Throttl|TooManyRequests|SlowDown|RequestLimit|LimitExceededException|ThroughputExceeded|InProgress|"
    r"BandwidthLimit|PriorRequest|Timeout|Timed?Out|Aborted|Conflict|Concurrent|Idempoten|Pending|Unavailable|"
    r"InternalE|InternalF|InternalS|ServerE|InUse",
    re.IGNORECASE,
)
_REFUSALS = frozenset({400, 401, 403, 404, 409, 422})


def failure_in(words: str) -> Failure | None:
    """The failure that an error of the SDK tells of; None for a text that is none."""
    if match := _ANSWERED.search(words):
        operation, status, code = match["operation"], int(match["status"]), match["code"] or ""
        said = f"{match['service']} {operation}: HTTP {status} {code}".rstrip()
        return Failure(_kind(operation, status, code, int(match["attempts"] or 1) > 1), said, operation, status)
    if match := _NO_REPLY.search(words):
        operation = match["operation"]
        return Failure(FailureKind.NO_REPLY, f"{match['service']} {operation}: no usable reply", operation)
    return None


def _kind(operation: str, status: int, code: str, retried: bool) -> FailureKind:
    if code in _EXISTS_ON_CREATE and operation.startswith("Create"):
        return FailureKind.ALREADY_EXISTS
    if _EXISTS.search(code):
        return FailureKind.ALREADY_EXISTS
    # Without a code it is not the service that answered, and the attempts before the last had other answers.
    sure = bool(code) and not retried and not _UNSURE.search(code)
    return FailureKind.REFUSED if sure and status in _REFUSALS else FailureKind.NO_REPLY
