"""Operations that were packed away, read as if they still lay in the record: one object a month.

A month follows from an operation's id, so nothing else has to be looked at to find one. What cannot be read is never
taken for "not there".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tfguard.errors import CorruptRecordError
from tfguard.model.archive import AnchoredMonth, ArchiveChain, ArchiveEntry
from tfguard.model.ids import month_of, months_of
from tfguard.model.operation import Operation
from tfguard.ports import RecordStore
from tfguard.schemas.archive import ADVICE, NO_HASH, decode_chain, decode_entry, operation_in, seal_of, unpack
from tfguard.schemas.records import decode_intent, decode_journal, decode_outcome

FOLDER = "archive"
CHAIN = f"{FOLDER}/chain.json"

_MONTH = re.compile(r"archive/(\d{4}-\d{2})\.jsonl\.gz", re.ASCII)


def object_name(month: str) -> str:
    """The name of a month's object in the record."""
    return f"{FOLDER}/{month}.jsonl.gz"


def month_in(name: str) -> str | None:
    """The month of an object; None for a name that is no month's."""
    match = _MONTH.fullmatch(name)
    return match[1] if match else None


def operation_of(contents: Mapping[str, bytes], where: str) -> Operation:
    """The operation in its documents. Raises what `decode_intent` and its like raise."""
    intent = contents.get("intent.json")
    if intent is None:
        raise CorruptRecordError(f"{where}/intent.json is missing", "restore it from a backup")
    outcome, events = contents.get("outcome.json"), contents.get("events.jsonl", b"")
    journal = decode_journal(events, f"{where}/events.jsonl")
    return Operation(
        decode_intent(intent, f"{where}/intent.json"),
        decode_outcome(outcome, f"{where}/outcome.json") if outcome is not None else None,
        journal.items,
        journal.cut,
    )


@dataclass(frozen=True, slots=True)
class Month:
    """A month's object as it was read: its bytes, their version (None: there is no such object), and its lines.

    Of two entries of one operation the later one counts: something was written again after the first.
    """

    name: str
    data: bytes = b""
    version: str | None = None
    lines: tuple[bytes, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)

    @property
    def last(self) -> str:
        """The hash that the last line ends with; empty for a month without one."""
        return (seal_of(self.lines[-1]) or NO_HASH) if self.lines else NO_HASH

    @property
    def newest(self) -> str:
        """The newest of its operations; empty for a month without one."""
        return max(self.places, default="")

    @property
    def anchor(self) -> AnchoredMonth:
        """What the chain is to hold of this object."""
        size, digest = len(self.data), hashlib.sha256(self.data).hexdigest()
        return AnchoredMonth(self.name, len(self.lines), self.last, size, digest, self.newest)


class Archive:
    """Reads a record's archive. What was read of a month is kept, and read again where more may be packed by now."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._months: dict[str, Month] = {}

    def place(self, name: str) -> str:
        """Where a document of the archive lies, for a person."""
        return f"{self._store.location}/{name}"

    def chain(self) -> tuple[ArchiveChain, str | None]:
        """The chain, and the version to replace it with; an empty one and None where nothing was ever packed.

        It tells every month that something was removed for: what is not in it yet still lies in the record. It is begun
        before the first object, so that without it every object is one whose chain was lost: that raises
        `CorruptRecordError`, as a damaged chain does.
        """
        for _ in range(2):
            blob = self._store.read(CHAIN)
            if blob is not None:
                return decode_chain(blob.data, self.place(CHAIN)), blob.version
            if not self._store.names(FOLDER):
                return ArchiveChain(), None
            # It may have been begun just now; or it is not there.
        raise CorruptRecordError(f"{self.place(CHAIN)} is missing, beside what was archived", ADVICE)

    def objects(self) -> tuple[str, ...]:
        """The months that have an object, newest first: for those who cannot go by the chain."""
        months = (month_in(name) for name in self._store.names(FOLDER))
        return tuple(sorted((month for month in months if month), reverse=True))

    def load(self, month: str) -> Month:
        """A month's object as it is now. Raises `CorruptRecordError` when it cannot be unpacked."""
        name = object_name(month)
        blob = self._store.read(name)
        if blob is None:
            return Month(month)
        lines = unpack(blob.data, self.place(name))
        return Month(month, blob.data, blob.version, lines, {operation_in(line): n for n, line in enumerate(lines)})

    def ids(self, month: str) -> Sequence[str]:
        """The operations of a month, in no order. Raises `CorruptRecordError` when they cannot be told."""
        return tuple(self._month(month).places)

    def loss(self, known: AnchoredMonth) -> CorruptRecordError | None:
        """What is wrong with a month that holds fewer entries than the chain counts; None when they are all there."""
        held = len(self._month(known.month).lines)
        if held >= known.entries:
            return None
        where = self.place(object_name(known.month))
        return CorruptRecordError(f"{where} holds {held} of the {known.entries} entries that were packed", ADVICE)

    def beginning_with(self, beginning: str) -> tuple[str, ...]:
        """The operations whose ids begin so. Raises as `ids` does."""
        try:
            first, last = months_of(beginning)
        except ValueError:
            return ()
        months = [known.month for known in self.chain()[0].months if first <= known.month <= last]
        return tuple(found for month in months for found in self.ids(month) if found.startswith(beginning))

    def contents(self, operation_id: str, *, vanished: bool = True) -> Mapping[str, bytes] | None:
        """What an operation's documents held, by their names below its folder; None where it was not packed.

        `vanished` tells that it may have been packed a moment ago: a month that was read before is read again for it.
        Raises `CorruptRecordError` when that cannot be told.
        """
        try:
            name = month_of(operation_id)
        except ValueError:
            return None
        known = self._months.get(name)
        if vanished and known is not None and operation_id not in known.places:
            del self._months[name]
        month = self._month(name)
        place = month.places.get(operation_id)
        return self.entry(month, place).contents if place is not None else None

    def entry(self, month: Month, place: int) -> ArchiveEntry:
        """The entry in a line of a month. Raises `CorruptRecordError` when it was changed."""
        return decode_entry(month.lines[place], f"{self.place(object_name(month.name))} entry {place + 1}")

    def _month(self, month: str) -> Month:
        if month not in self._months:
            found = self.load(month)
            if found.version is None and self.chain()[0].month(month) is not None:
                found = self.load(month)  # it may have been begun just now, and before the chain tells of it
                if found.version is None:
                    raise CorruptRecordError(f"{self.place(object_name(month))} is missing", ADVICE)
            self._months[month] = found
        return self._months[month]
