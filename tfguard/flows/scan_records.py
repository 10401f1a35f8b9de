"""What the operations of many stacks tell a scan, as far as their records can be read; the rest is a gap, and said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from tfguard.errors import RecordError
from tfguard.flows.history import newest_first
from tfguard.flows.records import Records
from tfguard.model.disposition import Disposition
from tfguard.model.inventory import Gap
from tfguard.model.operation import Head, Operation
from tfguard.ports import Clock, Host, RecordStore
from tfguard.reconcile.explaining import Stack

NEWEST = 50
"""So many of a stack's operations are read, and all that are open."""


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where the operations on a state are recorded."""

    location: str
    workspace: str
    store: RecordStore


@dataclass(frozen=True, slots=True)
class StackRecord:
    """What a stack's record holds. `gaps` are what could not be read of it; `head` is None where that was the head."""

    stack: Stack
    head: Head | None
    ledger: tuple[Disposition, ...]
    gaps: tuple[Gap, ...]

    @property
    def may_go_on(self) -> bool:
        """Whether an operation can write to the record while it is not looked at, without being named anew."""
        return self.head is None or self.head.lease is not None or bool(self.head.open_operations)


class StackRecords:
    """Reads the records of stacks."""

    def __init__(self, clock: Clock, host: Host) -> None:
        self._clock = clock
        self._host = host

    def read(self, place: RecordPlace) -> StackRecord:
        """The open operations of a stack, its newest ones, and its ledger. Never raises for a damaged record."""
        gaps: dict[str, Gap] = {}

        def lost(what: str) -> None:
            gaps.setdefault(what, Gap(f"record {place.store.location}", what))

        records = Records(place.store, self._clock, self._host)
        head, live = None, None
        try:
            head = records.head()
            live = records.live_operation() if head.lease else None
        except RecordError as error:
            lost(error.what)
        operations = _operations(records, head, lost)
        ledger: tuple[Disposition, ...] = ()
        try:
            ledger = records.dispositions()
        except RecordError as error:
            lost(error.what)
        stack = Stack(place.location, place.workspace, operations, live)
        return StackRecord(stack, head, ledger, tuple(gaps.values()))

    def read_again(self, place: RecordPlace, before: StackRecord) -> StackRecord:
        """The record as it is now; what was read before where nothing can have been added."""
        if not before.may_go_on:
            try:
                if Records(place.store, self._clock, self._host).head() == before.head:
                    return before
            except RecordError:
                pass  # told when it is read anew
        return self.read(place)


def _operations(records: Records, head: Head | None, lost: Callable[[str], None]) -> tuple[Operation, ...]:
    ids = set(head.open_operations) if head else set()
    try:
        ids |= set(islice(newest_first(records, None, lambda _, error: lost(error.what)), NEWEST))
    except RecordError as error:
        lost(error.what)
    found: list[Operation] = []
    for operation_id in sorted(ids):
        try:
            found.append(records.operation(operation_id))
        except RecordError as error:
            lost(error.what)
    return tuple(found)
