"""What a diagnostic says about a create, without keeping its words: a provider's message may quote a secret (rule 10).

Only a fixed vocabulary leaves this module. It reads the machine-made part of the text, such as the AWS SDK's
`operation error IAM: CreateRole, https response error StatusCode: 403, ... api error AccessDenied`.
"""

from __future__ import annotations

import re

from tfguard.model.failure import Failure, FailureKind

# A typed error has its code where an untyped one says `api error CODE`; S3 puts a second id before it.
_AWS = re.compile(
    r"operation error (?P<service>[\w ]{1,40}): (?P<operation>[A-Z]\w{1,60}),"
    r"(?: exceeded maximum number of attempts, (?P<attempts>\d{1,4}),)?"
    r" https response error StatusCode: (?P<status>\d{3}),"
    r"(?: RequestID: [\w-]*,)?(?: HostID: [\w+/=-]*,)?(?: (?:api error )?(?P<code>[A-Za-z][\w.]{1,60}):)?",
)
_AWS_NO_REPLY = re.compile(r"operation error (?P<service>[\w ]{1,40}): (?P<operation>[A-Z]\w{1,60}),")
_EXISTS = re.compile(r"already ?exist|AlreadyOwned|(?<!Not)Exists(?:Exception|Fault)?\b|Duplicate", re.IGNORECASE)
_EXISTS_IN_WORDS = re.compile(r"already ?exists?\b|AlreadyOwned|\.Duplicate\b|EntityAlreadyExists", re.IGNORECASE)
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
_KNOWN = (
    (
        FailureKind.PLUGIN_CRASH,
        re.compile(r"Plugin did not respond|plugin crashed|Request cancelled"),
        "the provider plugin died",
    ),
    (
        FailureKind.CANCELLED,
        re.compile(r"context canceled|execution halted|operation (?:was )?canceled"),
        "the run was interrupted",
    ),
    (
        FailureKind.WAITING,
        re.compile(r"timeout while waiting|waiting for|couldn't find resource|unexpected state"),
        "an error while waiting",
    ),
    (
        FailureKind.VANISHED,
        re.compile(r"Root object was present, but now absent"),
        "the object vanished while it was read back",
    ),
)


def classify(summary: str, detail: str = "") -> Failure:
    """The failure behind an error diagnostic."""
    words = f"{summary}\n{detail}"
    # An interrupt cancels calls in flight: whatever else the text says, their fate is not known.
    for kind, pattern, safe in _KNOWN[:2]:
        if pattern.search(words):
            return Failure(kind, safe)
    if aws := _AWS.search(words):
        return _aws(aws)
    if aws := _AWS_NO_REPLY.search(words):
        return Failure(FailureKind.NO_REPLY, f"{aws['service']} {aws['operation']}: no usable reply", aws["operation"])
    if _EXISTS_IN_WORDS.search(words):
        return Failure(FailureKind.ALREADY_EXISTS, "an object of that name exists already")
    for kind, pattern, safe in _KNOWN[2:]:
        if pattern.search(words):
            return Failure(kind, safe)
    return Failure(
        FailureKind.OTHER, "the engine reported an error; its words are in the run's output, not in the record"
    )


def _aws(match: re.Match[str]) -> Failure:
    operation, status, code = match["operation"], int(match["status"]), match["code"] or ""
    said = f"{match['service']} {operation}: HTTP {status} {code}".rstrip()
    return Failure(_aws_kind(operation, status, code, int(match["attempts"] or 1) > 1), said, operation, status)


def _aws_kind(operation: str, status: int, code: str, retried: bool) -> FailureKind:
    if code in _EXISTS_ON_CREATE and operation.startswith("Create"):
        return FailureKind.ALREADY_EXISTS
    if _EXISTS.search(code):
        return FailureKind.ALREADY_EXISTS
    # Without a code it is not the service that answered, and the attempts before the last had other answers.
    sure = bool(code) and not retried and not _UNSURE.search(code)
    return FailureKind.REFUSED if sure and status in _REFUSALS else FailureKind.NO_REPLY
