"""One stack with everything that a flow needs around it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfguard.errors import (
    ConfigError,
    CorruptRecordError,
    EmptyStateError,
    InputError,
    NoStateError,
    OperationAliveError,
    RecordError,
)
from tfguard.flows.looking import Surroundings
from tfguard.flows.records import Records
from tfguard.flows.run_folder import discard_run_folder, open_run_folder
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import Operation, Stack
from tfguard.model.plan import Plan
from tfguard.model.state import EMPTY_STATE, StateSnapshot
from tfguard.ports import Clock, CloudActions, Console, Credentials, Engine, Host, StateSource

STATE_UNREAD = "the state could not be read"
"""What the record says of it; the reason is the engine's text, which only the user gets (rule 10)."""


@dataclass(frozen=True, slots=True)
class StackContext:
    """A stack, its engine, its record, and what is around them.

    `known_places` gives all that is named of other stacks' states, remote ones too, for what has to look into each;
    `known_files` those of them that are on this machine, which cost nothing. `runs` takes the private folders of runs.
    `scanned_places` are the states that a scan looked into before it told of its findings.
    """

    stack: Stack
    engine: Engine
    records: Records
    around: Surroundings
    host: Host
    known_files: Callable[[], Sequence[StateSource]] = tuple
    credentials: Credentials | None = None
    known_places: Callable[[], Sequence[StateSource]] = tuple
    actions: CloudActions | None = None
    runs: Path | None = None
    scanned_places: Callable[[], Sequence[StateSource]] = tuple

    @property
    def clock(self) -> Clock:
        """Time."""
        return self.around.clock

    @property
    def console(self) -> Console:
        """tfguard's words to the user."""
        return self.around.console

    def state_before(self) -> StateSnapshot:
        """The state that a new operation starts from.

        Raises `OperationAliveError` where it is empty and somebody holds it: an engine that makes its first state.
        """
        try:
            return self.engine.pull_state()
        except EmptyStateError:
            lock = self.engine.lock()
            if lock is not None and not (lock.process_known and lock.process is None):
                who = f" by {lock.who}" if lock.who else ""
                raise OperationAliveError(
                    f"the state {self.stack.location} is locked{who}, and empty: an engine is about to write it",
                    "wait for it to end, then run the command again; do not remove the file",
                ) from None
            if _had_no_state(self.last_operation()):
                return EMPTY_STATE
            raise

    def read_state(self, operation: Operation | None) -> StateSnapshot:
        """The state now, where this operation wrote it.

        A state file of 0 bytes is an error, but for one: when the operation started without a state, the engine
        died before its first write (docs/facts/terraform.md, finding on SIGKILL), and there still is none.
        """
        elsewhere = operation.intent.state_out if operation else None
        try:
            # An engine that failed early has not written it.
            if elsewhere and Path(elsewhere).exists():
                return self.engine.read_state_file(Path(elsewhere))
            return self.engine.pull_state()
        except EmptyStateError:
            if _had_no_state(operation):
                return EMPTY_STATE
            raise

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A private folder for as long as this is open: of a killed tfguard the next run of the stack removes it.

        It may hold plans and states, with secrets in them. Only where none can be made beside the stack it is one of
        the system's temporary ones.
        """
        name = new_operation_id(self.clock.now())
        try:
            folder = self.runs and open_run_folder(self.runs, name, self.host, self.records.head().open_operations)
        except (InputError, RecordError):
            folder = None
        if folder is None:
            with tempfile.TemporaryDirectory(prefix="tfguard-") as temporary:
                yield Path(temporary)
            return
        try:
            yield folder
        finally:
            discard_run_folder(folder, name)

    def plan_now(self, arguments: Sequence[str] = ()) -> Plan | str:
        """What a plan says now, made without showing it, a lock or a refresh; else why there is none."""
        with self.scratch() as folder:
            plan_file = folder / "plan"
            failed = self.engine.quiet_plan(("-refresh=false", *arguments), plan_file)
            return self.engine.show_plan(plan_file) if failed is None else failed

    def other_states(self) -> tuple[StateSnapshot, ...]:
        """The other stacks' states that are known; one that cannot be read is said aloud and left out."""
        found: list[StateSnapshot] = []
        try:
            sources = self.known_files()
        except ConfigError as error:
            self._warn_unread(error.what)
            return ()
        for source in sources:
            try:
                for known in source.read():
                    if known.snapshot is None:
                        self._warn_unread(known.failure)
                    elif known.location != self.stack.location:
                        found.append(known.snapshot)
            except NoStateError:
                continue  # a pattern for what does not exist yet
            except InputError as error:
                self._warn_unread(error.what)
        return tuple(found)

    def _warn_unread(self, why: str) -> None:
        self.console.warn(f"{why}; what it holds may be named as a stray object here")

    def last_operation(self) -> Operation | None:
        """The stack's newest operation; None also for one whose record is damaged, which the open list speaks for."""
        current = self.records.head().current
        try:
            return self.records.operation(current) if current else None
        except CorruptRecordError:
            return None


def _had_no_state(operation: Operation | None) -> bool:
    if operation is None or operation.intent.state_unread:
        return False
    return not operation.intent.lineage and not (operation.result and operation.result.lineage)
