"""The findings that a person can decide about: those of this stack's operations, and those that a scan kept."""

from __future__ import annotations

from datetime import datetime

from tfguard.flows.history import findings
from tfguard.flows.records import Records
from tfguard.model.disposition import latest
from tfguard.model.finding import Finding
from tfguard.model.inventory import Coverage
from tfguard.model.since import KeptScan
from tfguard.reconcile.findings import lapsed


def decidable(records: Records, kept: KeptScan | None) -> tuple[tuple[Finding, ...], Coverage]:
    """All findings, each with the decision that holds now, and how far the looks reached.

    What a stack's own operations tell of an object says more than a scan's finding of the same id, which it replaces.
    """
    own, coverage = findings(records)
    if kept is None:
        return own, coverage
    told = {finding.id for finding in own}
    last, now = latest(records.dispositions()), records.now()
    scanned = []
    for found in kept.findings:
        if found.id in told:
            continue
        entry = last.get(found.id)
        entry = entry if entry and entry.at >= (found.first_seen or datetime.min.replace(tzinfo=now.tzinfo)) else None
        scanned.append(
            Finding(
                id=found.id,
                verdict=found.verdict,
                confidence=found.confidence,
                address=found.address,
                operation_id=found.operation_id,
                object=found.object,
                evidence=lapsed(entry, now),
                disposition=entry if entry and entry.holds(now) else None,
                addresses=(found.address,) if found.address else (),
            )
        )
    gaps = (*coverage.gaps, *kept.coverage.gaps)
    whole = Coverage(
        coverage.states_read + kept.coverage.states_read, coverage.types_listed + kept.coverage.types_listed, gaps
    )
    return (*own, *scanned), whole


def own_operation(records: Records, finding: Finding) -> str:
    """The operation that a finding comes from, where this record has it; a scan can tell of other stacks' ones."""
    name = finding.operation_id or ""
    return name if name in records.operation_ids() or name in records.archive.beginning_with(name) else ""
