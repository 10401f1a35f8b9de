"""What the operations of many stacks tell a scan, as far as their records can be read; the rest is a gap, and said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from tfguard.errors import RecordError
from tfguard.flows.history import newest_first
from tfguard.flows.parallel import Parallel
from tfguard.flows.records import Records
from tfguard.model.disposition import Disposition
from tfguard.model.ids import time_of
from tfguard.model.inventory import CloudObject, Gap
from tfguard.model.operation import Head, Operation
from tfguard.model.operation import Stack as OperationStack
from tfguard.ports import Clock, Host, RecordStore
from tfguard.reconcile.explaining import Explainer, Stack

NEWEST = 50
"""So many of a stack's operations are read at first, and all that are open."""

MOST = 1_000
"""So many are read where an object is left that an older one may have made."""

_LONGEST_RUN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """Where the operations on a state are recorded."""

    location: str
    workspace: str
    store: RecordStore


@dataclass(frozen=True, slots=True)
class StackRecord:
    """What a stack's record holds. `gaps` are what could not be read of it; `head` is None where that was the head.

    `ids` are the operations that were read, and `read_to` the oldest of those that were read in a row from the newest
    on; None where there are no older ones.
    """

    stack: Stack
    head: Head | None
    ledger: tuple[Disposition, ...]
    gaps: tuple[Gap, ...]
    ids: frozenset[str] = frozenset()
    read_to: str | None = None

    @property
    def may_go_on(self) -> bool:
        """Whether an operation can write to the record while it is not looked at, without being named anew."""
        return self.head is None or self.head.lease is not None or bool(self.head.open_operations)

    def without_operations(self) -> StackRecord:
        """The same without the operations themselves, which take much memory."""
        return replace(self, stack=replace(self.stack, operations=()))

    def reaches(self, moment: datetime | None) -> bool:
        """Whether all operations were read that can have made or lost what was made at that moment (None: ever)."""
        return self.read_to is None or (moment is not None and _is_before(self.read_to, moment))


class StackRecords:
    """Reads the records of stacks."""

    def __init__(self, clock: Clock, host: Host) -> None:
        self._clock = clock
        self._host = host

    def read(self, place: RecordPlace) -> StackRecord:
        """The open operations of a stack, its newest ones, and its ledger. Never raises for a damaged record."""
        return self._read(place, lambda ids: islice(ids, NEWEST))

    def read_older(self, place: RecordPlace, moment: datetime | None) -> StackRecord:
        """The same with older operations, back to those of which none can have to do with what was made at `moment`
        (None: all of them); but `MOST` at most."""
        return self._read(place, lambda ids: islice(_back_to(ids, moment), MOST))

    def _read(self, place: RecordPlace, chosen: Callable[[Iterator[str]], Iterator[str]]) -> StackRecord:
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
        ids, read_to = _ids(records, chosen, lost)
        operations = _operations(records, ids.union(head.open_operations if head else ()), lost)
        ledger: tuple[Disposition, ...] = ()
        try:
            ledger = records.dispositions()
            if damage := records.ledger_damage():
                lost(damage.what)
        except RecordError as error:
            lost(error.what)
        stack = Stack(place.location, place.workspace, operations, live)
        return StackRecord(stack, head, ledger, tuple(gaps.values()), frozenset(one.id for one in operations), read_to)

    def read_again(self, place: RecordPlace, before: StackRecord) -> StackRecord:
        """The record as it is now; what was read before where nothing can have been added."""
        if not before.may_go_on:
            try:
                if Records(place.store, self._clock, self._host).head() == before.head:
                    return before
            except RecordError:
                pass  # told when it is read anew
        return self.read(place)


class ScannedRecords:
    """What the stacks' records tell a scan. What their operations explain goes into `explainer`."""

    def __init__(self, clock: Clock, host: Host, explainer: Explainer, parallel: Parallel) -> None:
        self._clock = clock
        self._reader = StackRecords(clock, host)
        self._explainer = explainer
        self._parallel = parallel
        self._known: dict[str, StackRecord] = {}
        self._places: dict[str, RecordPlace] = {}
        self.notes: dict[str, None] = {}
        self.stacks: dict[str, OperationStack] = {}
        """The stack of each operation that was read, by the operation's id."""

    @property
    def ledgers(self) -> tuple[Sequence[Disposition], ...]:
        """Every decision on record, by the ledgers that have them."""
        return tuple(record.ledger for record in self._known.values())

    @property
    def operations(self) -> frozenset[str]:
        """The ids of the operations that were read."""
        return frozenset(name for record in self._known.values() for name in record.ids)

    @property
    def damaged(self) -> tuple[str, ...]:
        """The records of which something could not be read."""
        return tuple(name for name, record in self._known.items() if record.gaps)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What could not be read of them."""
        return tuple(gap for record in self._known.values() for gap in record.gaps)

    def cut(self, found: CloudObject) -> tuple[str, ...]:
        """The records of which operations were not read that can have to do with an object."""
        return tuple(name for name, record in self._known.items() if not record.reaches(found.created_at))

    def read(self, places: Sequence[RecordPlace]) -> None:
        """Read those of these records that were not read yet."""
        new = [place for place in places if place.store.location not in self._known]
        self._places.update((place.store.location, place) for place in new)
        self._take("records", self._reader.read, new)

    def read_again(self) -> None:
        """Read again what can have changed."""
        known = self._known
        self._take(
            "records again",
            lambda place: self._reader.read_again(place, known[place.store.location]),
            list(self._places.values()),
        )

    def read_older(self, left: Sequence[CloudObject]) -> None:
        """Read the operations that can explain what is left, where they are older than those that were read."""
        if not left:
            return
        made = [found.created_at for found in left]
        oldest = None if None in made else min(moment for moment in made if moment is not None)
        short = [place for name, place in self._places.items() if not self._known[name].reaches(oldest)]
        self._take("older records", lambda place: self._reader.read_older(place, oldest), short)
        for name in sorted(place.store.location for place in short):
            record = self._known[name]
            if not record.reaches(oldest):
                self.notes[f"{name}: no operation older than {record.read_to} was read"] = None

    def _take(self, phase: str, read: Callable[[RecordPlace], StackRecord], places: Sequence[RecordPlace]) -> None:
        for place, record in zip(places, self._parallel.results(phase, read, places), strict=True):
            name = place.store.location
            if record is not self._known.get(name):
                self._explainer.take(record.stack, self._clock.now())
                self.stacks.update((one.id, one.intent.stack) for one in record.stack.operations)
                self._known[name] = record.without_operations()


def _ids(
    records: Records, chosen: Callable[[Iterator[str]], Iterator[str]], lost: Callable[[str], None]
) -> tuple[frozenset[str], str | None]:
    """The chosen ones of all operations, newest first, and the last of them unless there is no older one."""
    found: list[str] = []
    try:
        every = newest_first(records, None, lambda _, error: lost(error.what))
        found.extend(chosen(every))
        older = next(every, None) is not None
    except RecordError as error:
        lost(error.what)
        older = False
    return frozenset(found), found[-1] if found and older else None


def _back_to(ids: Iterator[str], moment: datetime | None) -> Iterator[str]:
    for operation_id in ids:
        yield operation_id
        if moment is not None and _is_before(operation_id, moment):
            return


def _is_before(operation_id: str, moment: datetime) -> bool:
    """Whether an operation had ended at a moment, and each older one too: a stack has no two at once."""
    try:
        return time_of(operation_id) < moment - _LONGEST_RUN
    except ValueError:
        return False


def _operations(records: Records, ids: frozenset[str], lost: Callable[[str], None]) -> tuple[Operation, ...]:
    found: list[Operation] = []
    for operation_id in sorted(ids):
        try:
            found.append(records.operation(operation_id))
        except RecordError as error:
            lost(error.what)
    return tuple(found)
