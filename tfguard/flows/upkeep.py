"""Keeps a run's lease alive and its journal up to date, beside the run: a slow store holds up neither the engine nor
what the user sees of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from tfguard.errors import BusyStoreError, InterruptedRunError, OperationAliveError, TfguardError
from tfguard.flows.context import StackContext
from tfguard.flows.heads import HEARTBEAT
from tfguard.model.durations import in_words
from tfguard.model.lease import ProcessIdentity
from tfguard.model.operation import JournalEntry
from tfguard.ports import Clock, Console

BATCH = timedelta(seconds=1)
"""The least time between two writes to the journal. What was heard is in the store after this and one write's time."""

_LOOK_EVERY = 0.1
_BUSY_PATIENCE = timedelta(minutes=2)
"""How long a store that is busy is tried before anything has begun; later on the engine's run waits for no store."""

_TRY_AGAIN = 1.0


class Kept(Protocol):
    """The record whose lease is kept."""

    def renew(self, operation_id: str, engine: ProcessIdentity | None = None) -> bool:
        """Say that the lease's holder lives; False when somebody else has it by now."""
        ...

    def journal(self, operation_id: str, entries: Sequence[JournalEntry]) -> None:
        """Add what happened to the journal."""
        ...


class Upkeep:
    """Writes what gathers in batches, and renews the lease. In a `with` block two threads do so, for a write to the
    journal that hangs must not cost the lease; `tick` is one look of each.

    A record that cannot be written is said aloud once and stops nothing: the engine's calls are in flight.
    """

    def __init__(self, operation_id: str, records: Kept, clock: Clock, console: Console) -> None:
        self._operation_id = operation_id
        self._records = records
        self._clock = clock
        self._console = console
        self._waiting: list[JournalEntry] = []
        self._engine: ProcessIdentity | None = None
        self._engine_noted: ProcessIdentity | None = None
        self._written = self._renewed = clock.now()
        self._said: set[str] = set()
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(look,), name=f"tfguard {name}", daemon=True)
            for name, look in (("journal", self._write_if_due), ("lease", self._renew_if_due))
        ]

    def __enter__(self) -> Upkeep:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def add(self, entries: Sequence[JournalEntry]) -> None:
        """Take these into the journal with the next write."""
        self._waiting.extend(entries)

    def engine_runs(self, process: ProcessIdentity) -> None:
        """Note which process the engine is, so that the next run can tell whether it still lives.

        Not at once: until then the engine is known by the folder that it writes to.
        """
        self._renewed = self._clock.now()
        self._engine = process

    def flush(self) -> None:
        """Write what has gathered now, after a write that is under way."""
        with self._writing:
            self._write()

    def tick(self) -> None:
        """Write and renew what is due."""
        self._write_if_due()
        self._renew_if_due()

    def _run(self, look: Callable[[], None]) -> None:
        while not self._ended.wait(_LOOK_EVERY):
            look()

    def _write_if_due(self) -> None:
        with self._writing:
            if self._waiting and _apart(self._clock.now(), self._written, BATCH):
                self._write()

    def _write(self) -> None:
        self._written = self._clock.now()
        batch = list(self._waiting)
        if batch and self._guarded(lambda: self._records.journal(self._operation_id, batch)):
            del self._waiting[: len(batch)]

    def _renew_if_due(self) -> None:
        due = HEARTBEAT if self._engine is self._engine_noted else BATCH
        if _apart(self._clock.now(), self._renewed, due):
            self._renewed = self._clock.now()
            self._guarded(self._renew)

    def _renew(self) -> None:
        engine = self._engine
        if self._records.renew(self._operation_id, engine):
            self._engine_noted = engine
        elif engine is not None:
            self._say_once(
                "another run has taken this operation's lease; the engine goes on, and so does this look at it"
            )

    def _guarded(self, write: Callable[[], None]) -> bool:
        """Whether the write went through; one that does not is tried again when it is next due."""
        try:
            write()
        except Exception as error:  # noqa: BLE001 (a defect here must neither end the thread nor hide the exit code)
            what = error.what if isinstance(error, TfguardError) else f"{type(error).__name__}: {error}"
            if self._engine is not None:
                self._say_once(f"{what}; the engine goes on, and its steps will be looked up afterwards", "write")
            return False
        return True

    def _say_once(self, text: str, key: str = "") -> None:
        if (key or text) not in self._said:
            self._said.add(key or text)
            self._console.warn(text)


@contextmanager
def holding(
    context: StackContext, operation_id: str, run_directory: Path | None, patience: timedelta = timedelta(0)
) -> Iterator[Upkeep]:
    """Hold the stack's lease from before the plan to after the outcome: of two runs one alone starts its engine.

    `patience` is how long another run is waited for (`-lock-timeout`). Raises `OperationAliveError` when it is still
    there then, `RecordError` when nothing can be written.
    """
    _claim(context, operation_id, run_directory, patience)
    try:
        with Upkeep(operation_id, context.records, context.clock, context.console) as upkeep:
            yield upkeep
    finally:
        try:
            context.records.release(operation_id)
        except TfguardError as error:
            context.console.warn(f"{error.what}; the lease of this run ends by itself within a minute")


def _claim(context: StackContext, operation_id: str, run_directory: Path | None, patience: timedelta) -> None:
    began = context.clock.now()
    told: set[type[TfguardError]] = set()
    while True:
        try:
            context.records.claim(operation_id, str(run_directory.absolute()) if run_directory else None)
            return
        except (BusyStoreError, OperationAliveError) as error:
            busy = isinstance(error, BusyStoreError)
            longest = _BUSY_PATIENCE if busy else patience
            if context.clock.now() >= began + longest:
                raise
            if type(error) not in told:
                told.add(type(error))
                goes_on = "trying again" if busy else "waiting for it"
                option = "" if busy else " (-lock-timeout)"
                context.console.say(f"{error.what}; {goes_on}, up to {in_words(longest)}{option}")
        if not context.clock.sleep(_TRY_AGAIN):
            raise InterruptedRunError("interrupted while waiting; nothing was changed", "run the command again")


def _apart(now: datetime, then: datetime, least: timedelta) -> bool:
    """Whether that much time lies between; a clock that was set back counts too."""
    return abs(now - then) >= least
