"""Read a stack's record: its current operation, all of them, and its findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tfguard.errors import CorruptRecordError, UsageError
from tfguard.flows.records import Records
from tfguard.model.disposition import DispositionKind
from tfguard.model.finding import Finding
from tfguard.model.inventory import Coverage, Gap
from tfguard.model.operation import Operation
from tfguard.ports import Console
from tfguard.reconcile.findings import coverage_of, findings_of
from tfguard.reconcile.repairs import is_repair

_FAR_BACK = 50


def current_operation(records: Records) -> Operation | None:
    """The newest operation that is not settled, else the newest one, else None."""
    head = records.head()
    chosen = head.open_operations[-1] if head.open_operations else head.current
    return records.operation(chosen) if chosen else None


def find_operation(records: Records, beginning: str) -> Operation:
    """The operation whose id begins so. Raises `UsageError` when there is none, or more than one."""
    found = [operation_id for operation_id in records.operation_ids() if operation_id.startswith(beginning)]
    if len(found) != 1:
        what = "no operation" if not found else f"{len(found)} operations"
        raise UsageError(f"{what} at {records.location} with an id that begins {beginning}", "see `tfguard history`")
    return records.operation(found[0])


def operations(records: Records, limit: int, console: Console) -> tuple[Operation, ...]:
    """The newest `limit` operations, newest first; one whose record is damaged is said aloud and left out."""
    found: list[Operation] = []
    for operation_id in records.operation_ids()[::-1][:limit]:
        try:
            found.append(records.operation(operation_id))
        except CorruptRecordError as error:
            console.warn(error.what)
    return tuple(found)


def findings(records: Records) -> tuple[tuple[Finding, ...], Coverage]:
    """The findings of every operation that is open, of the newest one, and of those whose objects were given up on
    purpose; and how far the looks of the former reached."""
    head, ledger = records.head(), records.dispositions()
    current = {*head.open_operations, *((head.current,) if head.current else ())}
    latest = {entry.finding_id: entry for entry in ledger}
    kept = {entry.operation_id for entry in latest.values() if entry.kind is DispositionKind.RETAIN}
    looked = [records.operation(operation_id) for operation_id in sorted(current)]
    if current and all(is_repair(operation.intent) for operation in looked):
        # A repair looks at next to nothing, and must not hide how far the last apply's look went.
        looked = [*_last_apply(records), *looked]
    older, damaged = _readable(records, sorted(kept - current))
    coverage = (
        coverage_of(looked) if looked else Coverage(gaps=(Gap(records.location, "no operation is recorded there"),))
    )
    found = {operation.id: operation for operation in (*looked, *older)}
    return findings_of([found[name] for name in sorted(found)], ledger), replace(
        coverage, gaps=(*coverage.gaps, *damaged)
    )


def _last_apply(records: Records) -> list[Operation]:
    """The newest operation that was no repair, if there is one among the last."""
    for operation_id in records.operation_ids()[::-1][:_FAR_BACK]:
        found, _ = _readable(records, [operation_id])
        if found and not is_repair(found[0].intent):
            return found
    return []


def _readable(records: Records, ids: Sequence[str]) -> tuple[list[Operation], list[Gap]]:
    """These operations, and a gap for each that cannot be read: it must not hide the findings of all the others."""
    found: list[Operation] = []
    gaps: list[Gap] = []
    for operation_id in ids:
        try:
            found.append(records.operation(operation_id))
        except CorruptRecordError as error:
            gaps.append(Gap(f"operation {operation_id}", error.what))
    return found, gaps
