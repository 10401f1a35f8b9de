"""Keeps an operation's journal and lease up to date while the engine runs; never in the engine's way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tfguard.errors import TfguardError
from tfguard.flows.records import HEARTBEAT, Records
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.lease import ProcessIdentity
from tfguard.model.operation import JournalEntry
from tfguard.ports import Clock, Console
from tfguard.reconcile.progress import SIGNAL, Progress, journal_entry

_BATCH_EVERY = timedelta(seconds=1)


class RunJournal:
    """Stands behind `ports.RunWatcher`: writes in small batches, and once at the start of each create.

    A record that cannot be written is said aloud once and stops nothing: the engine's calls are in flight.
    """

    def __init__(
        self, operation_id: str, records: Records, clock: Clock, console: Console, secrets: frozenset[str]
    ) -> None:
        self._operation_id = operation_id
        self._records = records
        self._clock = clock
        self._console = console
        self._secrets = secrets
        self._waiting: list[JournalEntry] = []
        self._written = clock.now()
        self._renewed = clock.now()
        self._complained = False
        self._interrupted = False
        self.progress = Progress()

    def started(self, process: ProcessIdentity) -> None:
        """Note which process the engine is, so that the next run can tell whether it still lives."""
        self._guarded(lambda: self._hold(process))

    def event(self, event: EngineEvent) -> None:
        """Take in one event."""
        entry = journal_entry(event, self._clock.now(), self._secrets)
        if entry is None:
            return
        self.progress.add([entry])
        self._waiting.append(entry)

    def note(self, kind: str, detail: str) -> None:
        """Note something that no event tells, and write it at once."""
        self._waiting.append(JournalEntry(self._clock.now(), kind, detail=detail))
        self.flush()

    def tick(self) -> None:
        """Write what has gathered, and renew the lease, when it is time."""
        now = self._clock.now()
        if self._waiting and (now - self._written >= _BATCH_EVERY or self._has_first_start()):
            self.flush()
        if now - self._renewed >= HEARTBEAT:
            self._renewed = now
            self._guarded(lambda: self._hold(None))

    def interrupted(self, signal_name: str, forwarded: bool) -> None:
        """Note a signal, and tell the user that tfguard waits for the calls in flight."""
        self._waiting.append(JournalEntry(self._clock.now(), SIGNAL, action=signal_name))
        if forwarded and not self._interrupted:
            self._interrupted = True
            self._console.say(f"{signal_name}: the engine was interrupted once; waiting until its calls have settled")
        elif forwarded:
            self._console.say(f"{signal_name}: the engine was interrupted again; it leaves its calls to themselves")
        else:
            self._console.say(f"{signal_name}: the engine is settling already and is not interrupted again")

    def flush(self) -> None:
        """Write what has gathered."""
        self._written = self._clock.now()
        if self._waiting and self._guarded(lambda: self._records.journal(self._operation_id, self._waiting)):
            self._waiting = []

    def _has_first_start(self) -> bool:
        """Whether a start waits that is the first for a while: its create may be in flight when the machine dies."""
        quiet = self._clock.now() - self._written >= timedelta(milliseconds=250)
        return quiet and any(entry.kind == EventKind.APPLY_START.value for entry in self._waiting)

    def _hold(self, process: ProcessIdentity | None) -> None:
        if not self._records.renew(self._operation_id, process):
            self._console.warn(
                "another run has taken this operation's lease; the engine goes on, and so does this look at it"
            )

    def _guarded(self, write: Callable[[], None]) -> bool:
        """Whether the write went through; one that does not is tried again at the next tick, and said aloud once."""
        try:
            write()
        except TfguardError as error:
            if not self._complained:
                self._console.warn(f"{error.what}; the engine goes on, and its steps will be looked up afterwards")
            self._complained = True
            return False
        return True
