"""Pack closed operations away: into the object of their month, read back, anchored in the chain, and then removed.

Dying in between loses nothing: what was packed still lies in the record until it is both read back and anchored, and
what is left of a removal is known by what the archive holds. An operation's outcome is removed first and its intent
last, so that one without an outcome, that is not open, is one whose removal was cut short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from tfguard.errors import ConflictError, CorruptRecordError, NewerRecordError, RecordError
from tfguard.flows.archive import CHAIN, Archive, Month, object_name, operation_of
from tfguard.flows.archive_check import Flaw, check_loaded
from tfguard.flows.audit import TRAIL
from tfguard.flows.records import Records
from tfguard.model.archive import ArchiveChain
from tfguard.model.ids import month_of, time_of
from tfguard.ports import Clock, RecordStore
from tfguard.schemas.archive import ADVICE, encode_chain, pack, seal
from tfguard.schemas.records import decode_transitions

_OPERATIONS = "operations"
_INTENT, _OUTCOME = "intent.json", "outcome.json"
_ATTEMPTS = 10
_AT_ONCE = 500
_READERS = 8

Contents = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Left:
    """An operation that was due and was left where it is, and why."""

    operation_id: str
    why: str


@dataclass(slots=True)
class Archived:
    """What came of it: operations that are in the archive alone by now, those that were left, months that are damaged.

    `head` is the hash that the newest month ends with.
    """

    packed: list[str] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    head: str = ""


class _VanishedError(Exception):
    """Somebody else removes the operation's documents at the moment."""


def archive_closed(records: Records, clock: Clock, older_than: timedelta) -> Archived:
    """Pack the closed operations that began longer ago than `older_than`. The current one always stays.

    An operation whose record is damaged or newer stays, and so do those of a month whose object is damaged. Raises
    `CorruptRecordError` when the head is damaged, `RecordError` when the store refuses.
    """
    done = Archived()
    store = records.store
    due = _due(records, clock, older_than, done)
    for month, waiting in sorted(due.items()):
        for begin in range(0, len(waiting), _AT_ONCE):
            if not clock.interrupted:
                _pack(records, clock, month, waiting[begin : begin + _AT_ONCE], done)
    try:
        done.head = Archive(store).chain()[0].head
    except CorruptRecordError as error:
        done.flaws = done.flaws or [Flaw(store.location, error.what)]
    return done


def _due(
    records: Records, clock: Clock, older_than: timedelta, done: Archived
) -> Mapping[str, list[tuple[str, list[str]]]]:
    """The operations to look at, by month: id and the names of what lies below its folder."""
    names = records.store.names(_OPERATIONS)
    # Only now: the head of before the listing would not spare a run that began and ended in between.
    spared = _spared(records)
    documents: dict[str, list[str]] = defaultdict(list)
    for name in names:
        _, operation_id, *rest = name.split("/", 2)
        if rest and operation_id not in spared:
            documents[operation_id].append(rest[0])
    found: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    for operation_id, names in sorted(documents.items()):
        try:
            if time_of(operation_id) <= clock.now() - older_than:
                found[month_of(operation_id)].append((operation_id, names))
        except ValueError as error:
            done.left.append(Left(operation_id, str(error)))
    return found


def _spared(records: Records) -> Collection[str | None]:
    """What has to stay by now: the operations that are open, the current one, and one that is about to begin."""
    head = records.head()
    return {*head.open_operations, head.current, head.lease.operation_id if head.lease else None}


def _pack(records: Records, clock: Clock, month: str, waiting: Sequence[tuple[str, list[str]]], done: Archived) -> None:
    """Pack operations of one month, and remove what is packed."""
    store = records.store
    with ThreadPoolExecutor(_READERS) as readers:
        read = readers.map(partial(_contents, store), waiting)
        live = {operation_id: found for (operation_id, _), found in zip(waiting, read, strict=True) if found}
    archive = Archive(store)
    try:
        packed, left = _packed(store, archive, month, live)
    except CorruptRecordError as error:
        done.flaws.append(Flaw(archive.place(object_name(month)), error.what))
        return
    done.left += left
    for operation_id in packed:
        if clock.interrupted:
            return
        if operation_id in _spared(records):
            done.left.append(Left(operation_id, "it was opened again while it was packed"))
        elif _removed(store, operation_id, live[operation_id]):
            done.packed.append(operation_id)
        else:
            done.left.append(Left(operation_id, "it was changed while it was packed"))


def _contents(store: RecordStore, waiting: tuple[str, list[str]]) -> Contents | None:
    """What an operation's documents hold; None when somebody else is removing them.

    The outcome is read last: it is removed first, so with it everything else was whole.
    """
    operation_id, names = waiting
    try:
        return {
            name: _read(store, _name(operation_id, name)) for name in sorted(names, key=lambda name: name == _OUTCOME)
        }
    except _VanishedError:
        return None


def _read(store: RecordStore, name: str) -> bytes:
    """A document or a journal: which of them a name is, its ending tells in nearly every case."""
    journal = store.read_journal(name) if ".jsonl" in name else b""
    if journal:
        return journal
    blob = store.read(name)
    found = blob.data if blob else store.read_journal(name)
    if blob is None and not found:
        raise _VanishedError
    return found


def _packed(
    store: RecordStore, archive: Archive, month: str, live: Mapping[str, Contents]
) -> tuple[list[str], list[Left]]:
    """Put what is closed into the month's object and anchor it; what may be removed now, and what was left.

    Whoever loses a race for the object or the chain starts over with what the other one wrote.
    """
    for _ in range(_ATTEMPTS):
        chain, version = archive.chain()
        before = _sound_month(archive, month, chain)
        packed, left, fresh = _sorted_out(archive, before, live)
        try:
            if fresh and version is None:
                store.create(CHAIN, encode_chain(chain))
            after = _written(store, archive, before, fresh, _link(before, chain)) if fresh else before
            _anchor(store, archive, after)
        except ConflictError:
            continue
        return packed, left
    raise RecordError(
        f"the archive {archive.place(object_name(month))} keeps changing under this run", "run `tfguard archive` again"
    )


def _sound_month(archive: Archive, month: str, chain: ArchiveChain) -> Month:
    """A month's object, or an empty one. Raises `CorruptRecordError` for one that must not be added to."""
    anchored = chain.month(month)
    found = archive.load(month)
    if found.version is None:
        if anchored is not None:
            raise CorruptRecordError("it is missing", ADVICE)
        return found
    _, flaws = check_loaded(archive, found, anchored, None)
    if flaws:
        raise CorruptRecordError(f"{flaws[0].where}: {flaws[0].what}", ADVICE)
    return found


def _sorted_out(
    archive: Archive, month: Month, live: Mapping[str, Contents]
) -> tuple[list[str], list[Left], dict[str, Contents]]:
    """What may be removed once the month is written, what is left, and what is to be added to the month."""
    packed: list[str] = []
    left: list[Left] = []
    fresh: dict[str, Contents] = {}
    for operation_id, found in live.items():
        place = month.places.get(operation_id)
        held = archive.entry(month, place).contents if place is not None else {}
        if _is_left_over(found, held):
            packed.append(operation_id)
            continue
        whole = {**held, **found}
        why = _why_not(archive, operation_id, whole) if _OUTCOME in found else "it has no outcome"
        if why is not None:
            left.append(Left(operation_id, why))
            continue
        packed.append(operation_id)
        fresh[operation_id] = whole
    return packed, left, fresh


def _is_left_over(found: Contents, held: Contents) -> bool:
    """Whether all that still lies there is in the archive; of a journal that is removed in parts the end is left."""
    if _OUTCOME in found:
        return all(held.get(name) == data for name, data in found.items())
    return all(name in held and held[name].endswith(data) for name, data in found.items())


def _why_not(archive: Archive, operation_id: str, contents: Contents) -> str | None:
    """Why an operation cannot be packed; None when it can."""
    where = archive.place(_name(operation_id, "")).rstrip("/")
    try:
        operation = operation_of(contents, where)
        decode_transitions(contents.get(TRAIL, b""), f"{where}/{TRAIL}")
    except (CorruptRecordError, NewerRecordError) as error:
        return error.what
    return "it is not settled" if operation.open else None


def _link(month: Month, chain: ArchiveChain) -> str:
    """The hash that the next entry of a month links to."""
    if month.lines:
        return month.last
    earlier = [anchored for anchored in chain.months if anchored.month < month.name]
    return ArchiveChain(tuple(earlier)).head


def _written(store: RecordStore, archive: Archive, before: Month, fresh: Mapping[str, Contents], link: str) -> Month:
    """The month with these entries at its end, as it was read back. Raises `RecordError` when that is not the same."""
    lines: list[bytes] = []
    for operation_id, contents in sorted(fresh.items()):
        line, link = seal(len(before.lines) + len(lines) + 1, operation_id, link, contents)
        lines.append(line)
    data = before.data + pack(lines)
    store.replace(object_name(before.name), data, before.version)
    after = archive.load(before.name)
    kept = {name: archive.entry(after, place).contents for name, place in after.places.items() if name in fresh}
    if not after.data.startswith(data) or kept != fresh:  # another run may have added to it already
        raise RecordError(
            f"{archive.place(object_name(before.name))} is not read back as it was written; nothing was removed",
            "check the store, then run `tfguard archive --verify`",
        )
    return after


def _anchor(store: RecordStore, archive: Archive, month: Month) -> None:
    """Let the chain vouch for all of a month. Raises `ConflictError` when somebody else writes it at the moment."""
    chain, version = archive.chain()
    anchored = chain.month(month.name)
    if len(month.lines) > (anchored.entries if anchored else 0):
        others = [anchored for anchored in chain.months if anchored.month != month.name]
        months = tuple(sorted((*others, month.anchor), key=lambda known: known.month))
        store.replace(CHAIN, encode_chain(ArchiveChain(months)), version)


def _removed(store: RecordStore, operation_id: str, contents: Contents) -> bool:
    """Remove an operation's documents; False when one of them is not what was packed."""
    middle = sorted(name for name in contents if name not in (_OUTCOME, _INTENT))
    for name in (_OUTCOME, *middle, _INTENT):
        if name in contents and not _gone(store, _name(operation_id, name), contents[name]):
            return False
    return True


def _gone(store: RecordStore, name: str, content: bytes) -> bool:
    try:
        store.remove(name, content)
    except ConflictError:
        try:
            _read(store, name)
        except _VanishedError:
            return True  # another run was quicker
        return False
    return True


def _name(operation_id: str, name: str) -> str:
    return f"{_OPERATIONS}/{operation_id}/{name}"
