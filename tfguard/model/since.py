"""What became of the findings of an earlier scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tfguard.model.evidence import Confidence
from tfguard.model.finding import Verdict
from tfguard.model.inventory import CloudObject, Coverage


@dataclass(frozen=True, slots=True)
class KeptFinding:
    """A finding as an earlier scan kept it; `first_seen` is when a scan first told of it."""

    id: str
    verdict: Verdict
    confidence: Confidence
    address: str | None = None
    operation_id: str | None = None
    object: CloudObject | None = None
    first_seen: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeptTimes:
    """When an earlier scan began and ended."""

    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class KeptScan:
    """What `scan --state-file` kept of the last scan."""

    scan: KeptTimes
    coverage: Coverage
    findings: tuple[KeptFinding, ...]
    summary: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different since an earlier scan, which ended `at`: ids of findings of now, and findings that were.

    `gone` are no findings any more: adopted, deleted, explained or ignored. `unseen` are not told any more either, but
    where they were nobody has looked, or not to the end. `first_seen` says it of each finding of now.
    """

    at: datetime | None
    new: tuple[str, ...] = ()
    still: tuple[str, ...] = ()
    gone: tuple[KeptFinding, ...] = ()
    unseen: tuple[KeptFinding, ...] = ()
    first_seen: Mapping[str, datetime] = field(default_factory=dict)
