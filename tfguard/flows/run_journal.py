"""Takes in what happens while the engine runs, for the journal and for what is concluded afterwards."""

from __future__ import annotations

from tfguard.flows.upkeep import Upkeep
from tfguard.model.event import EngineEvent
from tfguard.model.lease import ProcessIdentity
from tfguard.model.operation import JournalEntry
from tfguard.model.secrets import Withholding
from tfguard.ports import Clock, Console
from tfguard.reconcile.progress import SIGNAL, Progress, journal_entry


class RunJournal:
    """Stands behind `ports.RunWatcher`. `hidden` is what may not get into the journal."""

    def __init__(self, upkeep: Upkeep, clock: Clock, console: Console, hidden: Withholding) -> None:
        self._upkeep = upkeep
        self._clock = clock
        self._console = console
        self._hidden = hidden
        self._interrupted = False
        self.progress = Progress()

    def started(self, process: ProcessIdentity) -> None:
        """The engine runs now, as this process."""
        self._upkeep.engine_runs(process)

    def event(self, event: EngineEvent) -> None:
        """Take in one event."""
        entry = journal_entry(event, self._clock.now(), self._hidden)
        if entry is None:
            return
        self.progress.add([entry])
        self._upkeep.add([entry])

    def note(self, kind: str, detail: str) -> None:
        """Note something that no event tells, and write it at once."""
        self._upkeep.add([JournalEntry(self._clock.now(), kind, detail=detail)])
        self.flush()

    def interrupted(self, signal_name: str, forwarded: bool) -> None:
        """Note a signal, and tell the user that tfguard waits for the calls in flight."""
        self._upkeep.add([JournalEntry(self._clock.now(), SIGNAL, action=signal_name)])
        if forwarded and not self._interrupted:
            self._interrupted = True
            self._console.say(f"{signal_name}: the engine was interrupted once; waiting until its calls have settled")
        elif forwarded:
            self._console.say(f"{signal_name}: the engine was interrupted again; it leaves its calls to themselves")
        else:
            self._console.say(f"{signal_name}: the engine is settling already and is not interrupted again")

    def flush(self) -> None:
        """Write what has gathered."""
        self._upkeep.flush()
