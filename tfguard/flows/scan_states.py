"""The two readings of the states that a scan subtracts: before its lists, and after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfguard.errors import InputError
from tfguard.flows.parallel import as_they_come
from tfguard.flows.scan_records import RecordPlace
from tfguard.model.inventory import Gap
from tfguard.model.scan import Progress
from tfguard.ports import KnownState, StateSource
from tfguard.reconcile.state_index import StateIndex


class ScannedStates:
    """What the states claim goes into `index`. `go_on` raises when the user has had enough."""

    def __init__(
        self,
        sources: Sequence[StateSource],
        index: StateIndex,
        go_on: Callable[[], None],
        tell: Callable[[Progress], None],
    ) -> None:
        self._sources = sources
        self._index = index
        self._go_on = go_on
        self._tell = tell
        self._read: set[tuple[str, str]] = set()
        self._places: dict[str, RecordPlace] = {}
        self.unread: dict[str, str] = {}
        """The states that could not be read, and why."""
        self.notes: dict[str, None] = {}

    def __len__(self) -> int:
        """How many states were read."""
        return len(self._read)

    @property
    def record_places(self) -> tuple[RecordPlace, ...]:
        """Where the operations on the states are recorded, as far as that can be told."""
        return tuple(self._places.values())

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The states that could not be read."""
        return tuple(Gap(f"state {name}", reason) for name, reason in self.unread.items())

    def read(self) -> None:
        """Read every state. Raises `InputError` for a pattern that matches nothing or cannot be listed."""
        done = 0
        for source in self._sources:
            done = self._from(source, "states", done)

    def read_again(self) -> None:
        """Read every state anew; a pattern that cannot be listed any more is a state that could not be read."""
        self._index.begin_reading()
        done = 0
        for source in self._sources:
            try:
                done = self._from(source, "states again", done)
            except InputError as error:
                self.unread[source.pattern] = error.what

    def _from(self, source: StateSource, phase: str, done: int) -> int:
        for known in as_they_come(source.read(), self._go_on):
            self._take(known)
            done += 1
            self._tell(Progress(phase, done))
        return done

    def _take(self, known: KnownState) -> None:
        name = known.location if known.workspace in ("", "default") else f"{known.location} ({known.workspace})"
        if known.snapshot is None:
            self.unread[name] = known.failure or "it cannot be read"
        else:
            self.unread.pop(name, None)  # the second reading is as good as the first
            self._index.add(known.location, known.workspace, known.snapshot)
            self._read.add((known.location, known.workspace))
        if known.records is None:
            self.notes[f"{name}: where its operations are recorded cannot be told"] = None
        else:
            place = RecordPlace(known.location, known.workspace, known.records)
            self._places.setdefault(known.records.location, place)
