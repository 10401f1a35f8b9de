"""Read a stack's record: its current operation, all of them, and its findings."""

from __future__ import annotations

from tfguard.flows.records import Records
from tfguard.model.finding import Finding
from tfguard.model.inventory import Coverage
from tfguard.model.operation import Operation
from tfguard.reconcile.findings import coverage_of, findings_of


def current_operation(records: Records) -> Operation | None:
    """The newest operation that is not settled, else the newest one, else None."""
    head = records.head()
    chosen = head.open_operations[-1] if head.open_operations else head.current
    return records.operation(chosen) if chosen else None


def operations(records: Records, limit: int) -> tuple[Operation, ...]:
    """The newest `limit` operations, newest first."""
    return tuple(records.operation(operation_id) for operation_id in records.operation_ids()[::-1][:limit])


def findings(records: Records) -> tuple[tuple[Finding, ...], Coverage]:
    """The findings of every operation that is open, and of the newest one; and how far their looks reached."""
    head = records.head()
    wanted = sorted({*head.open_operations, *((head.current,) if head.current else ())})
    found = [records.operation(operation_id) for operation_id in wanted]
    return findings_of(found, records.dispositions()), coverage_of(found)
