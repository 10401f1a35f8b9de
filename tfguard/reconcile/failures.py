"""What a diagnostic says about a create, without keeping its words: a provider's message may quote a secret (rule 10).

Only a fixed vocabulary leaves this module. It reads the machine-made part of the text, which each cloud's libraries
write in a form of their own (`failures_aws`, `failures_google`).
"""

from __future__ import annotations

import re

from tfguard.model.failure import Failure, FailureKind
from tfguard.reconcile import failures_aws, failures_google

_GRAMMARS = (failures_aws.failure_in, failures_google.failure_in)
"""What the errors of each cloud say, where they have a form of their own."""

_EXISTS_IN_WORDS = re.compile(r"already ?exists?\b|AlreadyOwned|\.Duplicate\b|EntityAlreadyExists", re.IGNORECASE)
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
    for failure_in in _GRAMMARS:
        if (failure := failure_in(words)) is not None:
            return failure
    if _EXISTS_IN_WORDS.search(words):
        return Failure(FailureKind.ALREADY_EXISTS, "an object of that name exists already")
    for kind, pattern, safe in _KNOWN[2:]:
        if pattern.search(words):
            return Failure(kind, safe)
    return Failure(
        FailureKind.OTHER, "the engine reported an error; its words are in the run's output, not in the record"
    )
