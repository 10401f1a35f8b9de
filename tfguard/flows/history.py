"""Read a stack's record: its current operation, all of them, and its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice

from tfguard.errors import CorruptRecordError, NewerRecordError, UsageError
from tfguard.flows.archive import CHAIN, object_name
from tfguard.flows.records import Records
from tfguard.model.archive import AnchoredMonth
from tfguard.model.disposition import DispositionKind, latest
from tfguard.model.finding import Finding
from tfguard.model.ids import month_of
from tfguard.model.inventory import Coverage, Gap
from tfguard.model.operation import Operation
from tfguard.model.plan import Action
from tfguard.ports import Console
from tfguard.reconcile.findings import coverage_of, findings_of
from tfguard.reconcile.repairs import is_repair

# What was kept may be overdue or released by now, and a deletion may not have come to its end.
MAY_COME_BACK = (
    DispositionKind.RETAIN,
    DispositionKind.RELEASE,
    DispositionKind.DESTROY,
    DispositionKind.RESTORE,
)
_FAR_BACK = 50
_LAST = "~"  # sorts behind every id and every month

Unreadable = CorruptRecordError | NewerRecordError


def current_operation(records: Records) -> Operation | None:
    """The newest operation that is not settled, else the newest one, else None."""
    head = records.head()
    chosen = head.open_operations[-1] if head.open_operations else head.current
    return records.operation(chosen) if chosen else None


def find_operation(records: Records, beginning: str) -> Operation:
    """The operation whose id begins so; the archive is asked where the record itself has none.

    Lower case counts as upper case. Raises `UsageError` when there is none, or more than one.
    """
    return records.operation(_find_id(records, beginning))


def _find_id(records: Records, beginning: str) -> str:
    """The only id that begins so. Raises `UsageError`."""
    start = beginning.upper()
    live = [operation_id for operation_id in records.operation_ids() if operation_id.startswith(start)]
    found = live or records.archive.beginning_with(start)
    if len(found) != 1:
        what = "no operation" if not found else f"{len(found)} operations"
        raise UsageError(f"{what} at {records.location} with an id that begins {beginning}", "see `tfguard history`")
    return found[0]


@dataclass(frozen=True, slots=True)
class Page:
    """Some of a stack's operations, newest first, and the id that the next page comes before; None at the end.

    `newer`: something was left out, or may have been, since only a newer tfguard can read it.
    """

    operations: tuple[Operation, ...]
    next: str | None = None
    newer: bool = False


def page(records: Records, limit: int | None, before: str | None, console: Console) -> Page:
    """The newest `limit` operations (None: all), of those older than the one whose id begins with `before`, from the
    archive too.

    One whose record is damaged or newer, and a month of the archive that is, are said aloud and left out. Raises
    `UsageError` when no operation begins with `before`, or more than one.
    """
    if before is not None:
        before = _page_begin(records, before)
    newer = False

    def tell(error: Unreadable) -> None:
        nonlocal newer
        newer = newer or isinstance(error, NewerRecordError)
        console.warn(error.what)

    ids = newest_first(records, before, lambda _, error: tell(error))
    wanted = list(ids if limit is None else islice(ids, limit + 1))
    shown = wanted[:limit]
    found: list[Operation] = []
    for operation_id in shown:
        try:
            found.append(records.operation(operation_id))
        except (CorruptRecordError, NewerRecordError) as error:
            tell(error)
    return Page(tuple(found), shown[-1] if len(wanted) > len(shown) else None, newer)


def _page_begin(records: Records, before: str) -> str:
    """The id that a page comes before. One that stands in full is taken as it is where the archive cannot be asked."""
    try:
        return _find_id(records, before)
    except (CorruptRecordError, NewerRecordError):
        if _month(before.upper()) == _LAST:
            raise
        return before.upper()


def newest_first(records: Records, before: str | None, damaged: Callable[[str, Unreadable], None]) -> Iterator[str]:
    """The ids of all operations, newest first; the archive is read as far as they are taken, month by month.

    `before` leaves out what is not older than it; `damaged` is told the object of a month that cannot be read.
    """
    # The record is listed before the archive: what is packed in between is in both, and never in neither.
    live = [operation_id for operation_id in records.operation_ids() if before is None or operation_id < before]
    for known in _archived_months(records, damaged):
        month, newest = known.month, known.newest
        if before is not None and month > _month(before):
            continue
        while live and (live[-1] > newest or _month(live[-1]) > month):
            before = live.pop()
            yield before
        try:
            packed = records.archive.ids(month)
            if loss := records.archive.loss(known):
                damaged(object_name(month), loss)
        except CorruptRecordError as error:
            damaged(object_name(month), error)
            continue
        # An operation that was told already may have been packed since.
        here = {operation_id for operation_id in packed if before is None or operation_id < before}
        while live and _month(live[-1]) == month:
            here.add(live.pop())
        yield from sorted(here, reverse=True)
    yield from reversed(live)


def last_change(records: Records, newest: Operation) -> Operation | None:
    """The newest operation that was to change something, from this one back; None where there is none, or where it
    cannot be told which it is."""

    def give_up(_: str, error: Unreadable) -> None:
        raise error

    with suppress(CorruptRecordError, NewerRecordError):
        for one in chain([newest], map(records.operation, newest_first(records, newest.id, give_up))):
            if any(step.action is not Action.NOOP for step in one.steps):
                return one
    return None


def _archived_months(records: Records, damaged: Callable[[str, Unreadable], None]) -> Sequence[AnchoredMonth]:
    """The months of the archive, newest first; where the chain cannot be read, with what their objects alone tell."""
    try:
        return tuple(reversed(records.archive.chain()[0].months))
    except (CorruptRecordError, NewerRecordError) as error:
        damaged(CHAIN, error)
        unknown = AnchoredMonth("", entries=0, last="", size=0, digest="", newest=_LAST)
        return [replace(unknown, month=month) for month in records.archive.objects()]


def _month(operation_id: str) -> str:
    """The month of an operation; for what is no id one that comes after all others."""
    try:
        return month_of(operation_id)
    except ValueError:
        return _LAST


def findings(records: Records) -> tuple[tuple[Finding, ...], Coverage]:
    """The stray objects that the record tells of, and how far the looks reached: see `that_tell`."""
    operations, coverage = that_tell(records)
    return findings_of(operations, records.dispositions(), records.now()), coverage


def that_tell(records: Records) -> tuple[tuple[Operation, ...], Coverage]:
    """The operations that findings can come from, oldest first: every one that is open, the newest one, and those whose
    objects were given up on purpose; and how far the looks of all but the last reached."""
    head, ledger = records.head(), records.dispositions()
    current = {*head.open_operations, *((head.current,) if head.current else ())}
    kept = {
        entry.operation_id for entry in latest(ledger).values() if entry.operation_id and entry.kind in MAY_COME_BACK
    }
    looked = [records.operation(operation_id) for operation_id in sorted(current)]
    lost: list[Gap] = []
    if current and all(is_repair(operation.intent) for operation in looked):
        # A repair looks at next to nothing, and must not hide how far the last apply's look went.
        last_apply, lost = _last_apply(records)
        looked = [*last_apply, *looked]
    older, damaged = _readable(records, sorted(kept - current))
    live = records.live_operation() if any(operation.result is None for operation in looked) else None
    nothing = Coverage(gaps=(Gap(records.location, "no operation is recorded there"),))
    coverage = coverage_of(looked, live) if looked else nothing
    found = {operation.id: operation for operation in (*looked, *older)}
    coverage = replace(coverage, gaps=(*coverage.gaps, *damaged, *lost))
    return tuple(found[name] for name in sorted(found)), coverage


def _last_apply(records: Records) -> tuple[list[Operation], list[Gap]]:
    """The newest operation that was no repair, if there is one among the last; and what could not be looked into."""
    gaps: list[Gap] = []
    ids = newest_first(records, None, lambda name, error: gaps.append(Gap(name, error.what)))
    for operation_id in islice(ids, _FAR_BACK):
        found, _ = _readable(records, [operation_id])
        if found and not is_repair(found[0].intent):
            return found, gaps
    return [], gaps


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
