"""The journal that is kept while the engine runs: written in batches, tried again, and never in the engine's way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from test_records import NOW, FixedClock, Heard, OneHost, intent

from tfguard.errors import RecordError
from tfguard.flows.heads import HEAD, HEARTBEAT
from tfguard.flows.records import Records
from tfguard.flows.run_journal import RunJournal
from tfguard.flows.upkeep import BATCH, Upkeep
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.lease import ProcessIdentity
from tfguard.model.operation import JournalEntry
from tfguard.model.secrets import Withholding
from tfguard.stores.local import LocalStore

ENGINE = ProcessIdentity(7, 8)


class FullDisk(LocalStore):
    """A store whose disk is full while a test says so: `full` are the names that cannot be written then."""

    full: Sequence[str] = ()

    def append(self, name: str, data: bytes) -> None:
        """Add lines, where there is space."""
        self._need_space(name)
        super().append(name, data)

    def replace(self, name: str, data: bytes, expected: str | None) -> None:
        """Write a document, where there is space."""
        self._need_space(name)
        super().replace(name, data, expected)

    def _need_space(self, name: str) -> None:
        if name.rpartition("/")[2] in self.full:
            raise RecordError(f"{name} cannot be written: no space left", "free space")


class Scene:
    """A run that has begun, with its clock, its disk and what was said."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.heard, self.store = FixedClock(), Heard(), FullDisk(folder)
        self.records = Records(self.store, self.clock, OneHost())  # type: ignore[arg-type]
        self.records.begin(intent(), ())
        self.upkeep = Upkeep("01A", self.records, self.clock, self.heard)  # type: ignore[arg-type]
        self.journal = RunJournal(self.upkeep, self.clock, self.heard, Withholding())  # type: ignore[arg-type]

    def hear(self, address: str, kind: EventKind = EventKind.APPLY_START) -> None:
        """The engine says something."""
        self.journal.event(EngineEvent(kind, address=address, action="create"))

    def tick(self, passed: timedelta = BATCH) -> None:
        """Time passes, and the journal gets its turn."""
        self.clock.time += passed
        self.upkeep.tick()

    @property
    def written(self) -> list[tuple[str, str | None]]:
        """What the journal on disk tells."""
        return [(entry.kind, entry.address) for entry in self.records.operation("01A").journal]

    @property
    def beat(self) -> timedelta:
        """How long after its beginning the run was last said to live."""
        lease = self.records.head().lease
        assert lease is not None
        return lease.heartbeat - NOW


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "record")


def test_a_write_that_failed_is_made_up_for_in_order_and_once(scene: Scene) -> None:
    scene.store.full = ("events.jsonl",)
    scene.hear("a.one")
    scene.tick()
    scene.hear("a.one", EventKind.APPLY_COMPLETE)
    scene.tick()
    assert scene.written == []
    scene.store.full = ()
    scene.hear("a.two")
    scene.tick()
    everything = [("apply_start", "a.one"), ("apply_complete", "a.one"), ("apply_start", "a.two")]
    assert scene.written == everything
    scene.tick()
    scene.journal.flush()
    assert scene.written == everything


def test_what_could_not_be_written_to_the_end_is_written_by_the_last_flush(scene: Scene) -> None:
    scene.store.full = ("events.jsonl",)
    scene.hear("a.one")
    scene.journal.interrupted("SIGINT", True)
    scene.tick()
    scene.store.full = ()
    scene.journal.flush()
    assert [kind for kind, _ in scene.written] == ["apply_start", "signal"]


def test_a_journal_that_cannot_be_written_does_not_stop_the_heartbeat(scene: Scene) -> None:
    scene.journal.started(ENGINE)
    scene.store.full = ("events.jsonl",)
    scene.hear("a.one")
    scene.tick()
    assert scene.beat == BATCH, "the engine is noted a moment after it was started"
    scene.tick(HEARTBEAT)
    first = scene.beat
    scene.tick(HEARTBEAT)
    assert (first, scene.beat) == (HEARTBEAT + BATCH, 2 * HEARTBEAT + BATCH)


def test_a_heartbeat_that_failed_is_followed_by_the_next_one(scene: Scene) -> None:
    scene.store.full = (HEAD,)
    scene.journal.started(ENGINE)
    scene.tick(HEARTBEAT)
    assert scene.beat == timedelta(0)
    scene.store.full = ()
    scene.tick(HEARTBEAT)
    assert scene.beat == 2 * HEARTBEAT


def test_a_full_disk_is_complained_about_once_however_often_it_is_tried(scene: Scene) -> None:
    scene.store.full = ("events.jsonl", HEAD)
    scene.journal.started(ENGINE)
    for number in range(5):
        scene.hear(f"a.b{number}")
        scene.tick(HEARTBEAT)
    (line,) = scene.heard.lines
    assert "no space left" in line
    assert "the engine goes on" in line


def test_what_was_heard_counts_also_while_it_cannot_be_written(scene: Scene) -> None:
    scene.store.full = ("events.jsonl",)
    scene.hear("a.one")
    scene.tick()
    assert scene.journal.progress.open_creates == {"a.one"}


class SlowStore(LocalStore):
    """A store in which every write takes its time; `appends` are the times at which journals were written to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.appends: list[float] = []

    def append(self, name: str, data: bytes) -> None:
        """Add lines, slowly."""
        self.appends.append(time.monotonic())
        time.sleep(0.3)
        super().append(name, data)


def test_a_slow_store_holds_nobody_up_and_is_asked_once_a_second_at_most(tmp_path: Path) -> None:
    clock, store = WallClock(), SlowStore(tmp_path / "record")
    records = Records(store, clock, OneHost())  # type: ignore[arg-type]
    records.begin(intent(), ())
    slowest = 0.0
    with Upkeep("01A", records, clock, Heard()) as upkeep:  # type: ignore[arg-type]
        journal = RunJournal(upkeep, clock, Heard(), Withholding())  # type: ignore[arg-type]
        for number in range(60):
            begun = time.monotonic()
            journal.event(EngineEvent(EventKind.APPLY_START, address=f"a.b{number}", action="create"))
            slowest = max(slowest, time.monotonic() - begun)
            time.sleep(0.05)
        written = len(records.operation("01A").journal)
        journal.flush()
    assert len(records.operation("01A").journal) == 60
    assert written > 0, "it is written while the run goes on"
    assert slowest < 0.3, "no event waits for a write"
    assert all(after - before >= 0.9 for before, after in pairwise(store.appends[:-1]))


class WallClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The time."""
        return datetime.now(UTC)


def test_the_heartbeat_goes_on_while_a_run_waits(tmp_path: Path) -> None:
    clock = FixedClock()
    records = Records(LocalStore(tmp_path / "record"), clock, OneHost())  # type: ignore[arg-type]
    records.begin(intent(), ())
    with Upkeep("01A", records, clock, Heard()):  # type: ignore[arg-type]
        clock.time += HEARTBEAT
        eventually(lambda: records.head().lease.heartbeat == NOW + HEARTBEAT)  # type: ignore[union-attr]


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


class HangingJournal(LocalStore):
    """A store in which a write to a journal hangs until a test lets it go."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.go = threading.Event()

    def append(self, name: str, data: bytes) -> None:
        """Add lines, when it may."""
        self.go.wait(60)
        super().append(name, data)


def test_a_journal_that_hangs_does_not_cost_the_lease(tmp_path: Path) -> None:
    clock, store = FixedClock(), HangingJournal(tmp_path / "record")
    records = Records(store, clock, OneHost())  # type: ignore[arg-type]
    records.begin(intent(), ())
    with Upkeep("01A", records, clock, Heard()) as upkeep:  # type: ignore[arg-type]
        upkeep.add([JournalEntry(NOW, "apply_start")])
        for beat in (1, 2, 3):
            clock.time += HEARTBEAT
            eventually(lambda due=NOW + beat * HEARTBEAT: records.head().lease.heartbeat == due)  # type: ignore
        assert records.operation("01A").journal == ()
        store.go.set()
        upkeep.flush()
    assert len(records.operation("01A").journal) == 1


@pytest.mark.parametrize("defect", [OSError(5, "I/O error"), KeyError("ETag"), RecursionError()])
def test_a_store_that_breaks_in_an_unforeseen_way_is_complained_about_and_tried_again(
    scene: Scene, defect: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise defect

    scene.journal.started(ENGINE)
    scene.hear("a.one")
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "append", broken)
        patch.setattr(LocalStore, "replace", broken)
        scene.tick()
        scene.journal.flush()
        scene.tick(HEARTBEAT)
    (line,) = scene.heard.lines
    assert type(defect).__name__ in line
    scene.tick()
    assert [kind for kind, _ in scene.written] == ["apply_start"]
