"""Read a stack's record: its current operation, and all of them."""

from __future__ import annotations

from tfguard.flows.records import Records
from tfguard.model.operation import Operation


def current_operation(records: Records) -> Operation | None:
    """The newest operation that is not settled, else the newest one, else None."""
    head = records.head()
    chosen = head.open_operations[-1] if head.open_operations else head.current
    return records.operation(chosen) if chosen else None


def operations(records: Records) -> tuple[Operation, ...]:
    """Every operation, newest first."""
    return tuple(records.operation(operation_id) for operation_id in reversed(records.operation_ids()))
