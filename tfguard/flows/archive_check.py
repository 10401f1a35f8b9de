"""Whether the archive is as it was written: each entry against its hash, its neighbours, and the chain's anchors."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tfguard.errors import CorruptRecordError
from tfguard.flows.archive import CHAIN, FOLDER, Archive, Month, month_in, object_name
from tfguard.model.archive import AnchoredMonth, ArchiveChain, ArchiveEntry
from tfguard.model.ids import month_of
from tfguard.ports import RecordStore
from tfguard.schemas.archive import NO_HASH


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something in the archive that is not as it was written: where, and what is wrong."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class CheckedMonth:
    """A month that was checked. `anchored` counts the entries that the chain vouches for; a run that died may have
    written more."""

    month: str
    entries: int
    anchored: int
    last: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check of the whole archive found. `head` is the hash that the newest month ends with."""

    months: tuple[CheckedMonth, ...]
    flaws: tuple[Flaw, ...]
    head: str


def check_archive(store: RecordStore, expected: Collection[str]) -> Checked:
    """Check every entry. `expected` are hashes that were kept elsewhere, and must be in the chain.

    Raises `NewerRecordError` for what only a newer tfguard can check.
    """
    archive = Archive(store)
    names = store.names(FOLDER)
    chain, flaws = _chain(archive, names)
    months = {month for name in names if (month := month_in(name))} | {anchored.month for anchored in chain.months}
    checked: list[CheckedMonth] = []
    hashes: set[str] = set()
    for month in sorted(months):
        anchored = chain.month(month)
        found, wrong = check_month(archive, month, anchored, hashes)
        flaws += wrong
        hashes |= set(found)
        last = found[-1] if found else NO_HASH
        checked.append(CheckedMonth(month, len(found), anchored.entries if anchored else 0, last))
    flaws += [Flaw(wanted, "no entry of the archive has this hash") for wanted in expected if wanted not in hashes]
    return Checked(tuple(checked), tuple(flaws), checked[-1].last if checked else NO_HASH)


def _chain(archive: Archive, names: Sequence[str]) -> tuple[ArchiveChain, list[Flaw]]:
    strange = [name for name in names if month_in(name) is None and name != CHAIN]
    flaws = [Flaw(archive.place(name), "it is no part of the archive") for name in strange]
    try:
        chain, _ = archive.chain()
    except CorruptRecordError as error:
        return ArchiveChain(), [*flaws, Flaw(archive.place(CHAIN), error.what)]
    often = [anchored.month for anchored in chain.months]
    if often != sorted(set(often)):
        flaws.append(Flaw(archive.place(CHAIN), "its months are not in order, or one is there twice"))
    return chain, flaws


def check_month(
    archive: Archive, month: str, anchored: AnchoredMonth | None, earlier: Collection[str] | None
) -> tuple[tuple[str, ...], list[Flaw]]:
    """The hashes of a month's entries, and what is wrong with it.

    `earlier` are the hashes of all earlier months, which its first entry may link to; None where they are not known.
    Raises `NewerRecordError`.
    """
    where = archive.place(object_name(month))
    try:
        found = archive.load(month)
    except CorruptRecordError as error:
        return (), [Flaw(where, error.what)]
    if found.version is None:
        return (), [Flaw(where, "it is missing")]
    return check_loaded(archive, found, anchored, earlier)


def check_loaded(
    archive: Archive, month: Month, anchored: AnchoredMonth | None, earlier: Collection[str] | None
) -> tuple[tuple[str, ...], list[Flaw]]:
    """As `check_month`, for an object that was read already."""
    where = archive.place(object_name(month.name))
    hashes: list[str] = []
    flaws: list[Flaw] = []
    for place in range(len(month.lines)):
        try:
            entry = archive.entry(month, place)
        except CorruptRecordError as error:
            flaws.append(Flaw(f"{where} entry {place + 1}", error.what))
            hashes.append(NO_HASH)
            continue
        before = hashes[-1] if hashes else None
        named = f"{where} entry {place + 1} ({entry.operation_id})"
        flaws += [Flaw(named, what) for what in _links(entry, place, before, earlier, month.name)]
        hashes.append(entry.hash)
    if anchored is not None and not flaws:
        flaws += [Flaw(where, what) for what in _against_anchor(month.data, hashes, month.newest, anchored)]
    return tuple(hashes), flaws


def _links(
    entry: ArchiveEntry, place: int, before: str | None, earlier: Collection[str] | None, month: str
) -> Iterator[str]:
    if entry.number != place + 1:
        yield f"it is numbered {entry.number}: entries before it were dropped, added or moved"
    if before is not None and before != NO_HASH and entry.previous != before:
        yield "it does not link to the entry before it"
    if before is None and earlier is not None and entry.previous != NO_HASH and entry.previous not in earlier:
        yield "it links to no entry of an earlier month"
    if not _belongs(entry.operation_id, month):
        yield "it is of another month"


def _belongs(operation_id: str, month: str) -> bool:
    try:
        return month_of(operation_id) == month
    except ValueError:
        return False


def _against_anchor(data: bytes, hashes: Sequence[str], newest: str, anchored: AnchoredMonth) -> Iterator[str]:
    """What the chain vouches for that is not there. More than that may be there: a run has died before it said so."""
    if len(hashes) < anchored.entries:
        yield f"it has {len(hashes)} entries, and had {anchored.entries} when the chain was written"
    elif anchored.entries < 1 or hashes[anchored.entries - 1] != anchored.last:
        yield f"its entry {anchored.entries} is not the one that the chain was written for"
    elif len(data) < anchored.size or hashlib.sha256(data[: anchored.size]).hexdigest() != anchored.digest:
        yield "its bytes were changed, though its entries are whole"
    elif len(data) > anchored.size and len(hashes) == anchored.entries:
        yield "something was added to it that is no entry"
    elif len(data) == anchored.size and newest != anchored.newest:
        yield f"its newest operation is {newest}, and not {anchored.newest} as the chain says"
