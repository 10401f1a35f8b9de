"""What speaks for a conclusion, and how strongly."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Confidence(StrEnum):
    """How sure tfguard is that an object came from an operation."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class EvidenceKind(StrEnum):
    """The kinds of evidence that an outcome or a finding can rest on (docs/design.md, rule 11 and the ladder)."""

    IN_STATE = "in-state"
    TAINTED = "tainted-in-state"
    DESIRED_IDENTITY = "desired-identity"
    BASELINE_DIFFERENCE = "baseline-difference"
    CREATED_IN_WINDOW = "created-in-window"
    PROVISIONED = "provisioned-label"
    NOT_LISTED = "not-listed"
    ENGINE_READ = "engine-read"
    ENGINE_EVENT = "engine-event"
    ENGINE_REFUSAL = "provider-refused-create"
    NEVER_STARTED = "never-started"
    EXISTED_BEFORE = "existed-before"
    SEVERAL_CANDIDATES = "several-candidates"
    GAP = "gap"
    NOT_LOOKED_FOR = "cannot-be-looked-up"
    OPERATION = "operation"
    ERRORED_STATE = "errored-state"
    REMOVED_FROM_STATE = "removed-from-state"
    UNEXPLAINED = "unexplained"
    RULE = "rule"
    AUDIT_LOG = "audit-log"
    OVERDUE = "retention-ended"
    RELEASED = "released"
    DELETION = "deletion-not-verified"
    SOFT_DELETED = "soft-deleted"
    RESTORED = "restored-not-imported"
    RETENTION_TAG = "retention-tag"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of evidence: its kind, and one line for a person. Never holds a secret."""

    kind: EvidenceKind
    detail: str
