"""`tfguard.findings/v1`: what `scan` and `orphans list` found, and how far they could look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from tfguard.model.disposition import Disposition
from tfguard.model.evidence import Confidence, Evidence
from tfguard.model.finding import Verdict
from tfguard.model.inventory import CloudObject, Coverage, Gap
from tfguard.model.scan import ScanPlace, ScanScope
from tfguard.model.since import KeptFinding
from tfguard.schemas.codec import dump
from tfguard.schemas.document import with_schema
from tfguard.schemas.json_schema import Shape

SCHEMA = "tfguard.findings/v1"

SHAPE: Shape = {
    "coverage": {"complete": bool, "states_read": int, "types_listed": int, "gaps": [Gap]},
    "summary": Mapping[str, int],
    "findings": [
        {
            "id": str,
            "verdict": Verdict,
            "confidence": Confidence,
            "address": str | None,
            "operation_id": str | None,
            "object": CloudObject | None,
            "evidence": [Evidence],
            "disposition": Disposition | None,
            "actions": [str],
            "first_seen?": datetime,
        }
    ],
    "scan?": {
        "started_at": datetime,
        "ended_at": datetime,
        "rules": Mapping[str, int],
        "unused_rules": [str],
        "expired_rules": [str],
        "notes": [str],
        "places?": [ScanPlace],
    },
    "scope?": ScanScope,
    "since?": {
        "at": datetime | None,
        "new": [str],
        "still": [str],
        "gone": [KeptFinding],
        "unseen": [KeptFinding],
        "dropped": [KeptFinding],
    },
    "sum?": str,
}
"""What the document holds; `scan`, `since` and `sum` only where a scan wrote it."""


class FindingView(Protocol):
    """What the document tells of one finding; `object` is None for one that is only recorded (`missing`)."""

    @property
    def id(self) -> str: ...
    @property
    def verdict(self) -> StrEnum: ...
    @property
    def confidence(self) -> Confidence: ...
    @property
    def address(self) -> str | None: ...
    @property
    def operation_id(self) -> str | None: ...
    @property
    def object(self) -> CloudObject | None: ...
    @property
    def evidence(self) -> Sequence[Evidence]: ...
    @property
    def disposition(self) -> Disposition | None: ...
    @property
    def actions(self) -> Sequence[str]: ...


def findings_document(
    findings: Sequence[FindingView], coverage: Coverage, summary: Mapping[str, int]
) -> Mapping[str, object]:
    """The document for `findings`; `summary` counts objects by verdict, also those that are no finding (`managed`)."""
    body = {
        "coverage": {
            "complete": coverage.complete,
            "states_read": coverage.states_read,
            "types_listed": coverage.types_listed,
            "gaps": dump(coverage.gaps),
        },
        "summary": dict(summary),
        "findings": [finding_body(finding) for finding in findings],
    }
    return with_schema(SCHEMA, body)


def finding_body(finding: FindingView) -> Mapping[str, object]:
    """One entry of the document's `findings`; what is not known is null."""
    return {
        "id": finding.id,
        "verdict": finding.verdict.value,
        "confidence": finding.confidence.value,
        "address": finding.address,
        "operation_id": finding.operation_id,
        "object": dump(finding.object, keep_none=True),
        "evidence": dump(tuple(finding.evidence)),
        "disposition": dump(finding.disposition, keep_none=True),
        "actions": list(finding.actions),
    }
