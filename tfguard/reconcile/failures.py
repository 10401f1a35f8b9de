"""What a diagnostic says about a create, without keeping its words: a provider's message may quote a secret (rule 10).

Only a fixed vocabulary leaves this module. It reads the machine-made part of the text, such as the AWS SDK's
`operation error IAM: CreateRole, https response error StatusCode: 403, ... api error AccessDenied`.
"""

from __future__ import annotations

import re

from tfguard.model.failure import Failure, FailureKind

_AWS = re.compile(
    r"operation error (?P<service>[\w ]{1,40}): (?P<operation>\w{1,60}),.*?StatusCode: (?P<status>\d{3})"
    r"(?:.*?api error (?P<code>[\w.]{1,60}):)?",
    re.DOTALL,
)
_AWS_TYPED = re.compile(
    r"operation error (?P<service>[\w ]{1,40}): (?P<operation>\w{1,60}),.*?StatusCode: (?P<status>\d{3}),"
    r".*?RequestID: [^,]*, (?P<code>[A-Z]\w{1,60}):",
    re.DOTALL,
)
_AWS_NO_REPLY = re.compile(r"operation error (?P<service>[\w ]{1,40}): (?P<operation>\w{1,60}),")
_EXISTS = re.compile(
    r"already ?exist|AlreadyOwned|\.Duplicate\b|Duplicate(?:Zone|Request)|EntityAlreadyExists", re.IGNORECASE
)
_KNOWN = (
    (
        FailureKind.PLUGIN_CRASH,
        re.compile(r"Plugin did not respond|plugin crashed|Request cancelled"),
        "the provider plugin died",
    ),
    (
        FailureKind.CANCELLED,
        re.compile(r"context canceled|execution halted|operation was canceled"),
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
    if aws := _AWS_TYPED.search(words) or _AWS.search(words):
        return _aws(aws)
    if aws := _AWS_NO_REPLY.search(words):
        return Failure(FailureKind.NO_REPLY, f"{aws['service']} {aws['operation']}: no usable reply", aws["operation"])
    if _EXISTS.search(words):
        return Failure(FailureKind.ALREADY_EXISTS, "an object of that name exists already")
    for kind, pattern, safe in _KNOWN[2:]:
        if pattern.search(words):
            return Failure(kind, safe)
    return Failure(
        FailureKind.OTHER, "the engine reported an error; its words are in the run's output, not in the record"
    )


def _aws(match: re.Match[str]) -> Failure:
    status, code = int(match["status"]), match["code"] or ""
    said = f"{match['service']} {match['operation']}: HTTP {status} {code}".rstrip()
    if code and _EXISTS.search(code):
        return Failure(FailureKind.ALREADY_EXISTS, said, match["operation"], status)
    if status in (400, 401, 403, 404, 409, 422) and not re.search(
        r"Throttl|TooManyRequests|SlowDown|RequestLimit", code
    ):
        return Failure(FailureKind.REFUSED, said, match["operation"], status)
    return Failure(FailureKind.NO_REPLY, said, match["operation"], status)
