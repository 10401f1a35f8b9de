"""What became of the findings of an earlier scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tfguard.model.evidence import Confidence, Evidence
from tfguard.model.finding import Verdict
from tfguard.model.inventory import CloudObject, Coverage
from tfguard.model.scan import ScanScope

KEPT_DAYS = 30
"""For how long a finding is kept where nobody looks: perhaps its region is not scanned any more."""


@dataclass(frozen=True, slots=True)
class KeptFinding:
    """A finding as an earlier scan kept it; `first_seen` and `last_seen` are when a scan told of it."""

    id: str
    verdict: Verdict
    confidence: Confidence
    address: str | None = None
    operation_id: str | None = None
    object: CloudObject | None = None
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptTimes:
    """When an earlier scan began and ended."""

    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class KeptScan:
    """What `scan --state-file` kept of the last scan, and of those before it that looked elsewhere.

    `scope` is what all of them were to look at. Where the last did not look at all of that, it is a gap of `coverage`.
    """

    scan: KeptTimes
    coverage: Coverage
    findings: tuple[KeptFinding, ...]
    summary: Mapping[str, int] = field(default_factory=dict)
    scope: ScanScope = field(default_factory=ScanScope)


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different since an earlier scan, which ended `at`: ids of findings of now, and findings that were.

    `gone` are no findings any more: adopted, deleted, explained or ignored. `unseen` are not told any more either, but
    where they were nobody has looked, or not to the end; `dropped` are those of which that is true for so long that
    they are not kept. `first_seen` says it of each finding of now. `scope` is what both scans were to look at, and
    `coverage` how far that was done by the last one: never further than by that of the two with the wider scope.
    """

    at: datetime | None
    new: tuple[str, ...] = ()
    still: tuple[str, ...] = ()
    gone: tuple[KeptFinding, ...] = ()
    unseen: tuple[KeptFinding, ...] = ()
    dropped: tuple[KeptFinding, ...] = ()
    first_seen: Mapping[str, datetime] = field(default_factory=dict)
    scope: ScanScope = field(default_factory=ScanScope)
    coverage: Coverage = field(default_factory=Coverage)
