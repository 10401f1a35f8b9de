"""The audit trail of each operation: every change of how it and its steps stand, with who, when and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfguard.model.disposition import Disposition
from tfguard.model.operation import Result
from tfguard.model.transition import Transition
from tfguard.ports import Clock, Host, RecordStore
from tfguard.reconcile.transitions import Writer, last_told, lost_outcome, transitions
from tfguard.schemas.document import Lines
from tfguard.schemas.records import decode_transitions, encode_transitions

TRAIL = "transitions.jsonl"


def trail_name(operation_id: str) -> str:
    """The name of an operation's audit trail in its record."""
    return f"operations/{operation_id}/{TRAIL}"


class Audit:
    """Writes the trails, each after the outcome that it tells of and before the head: what a crash keeps from the trail
    stays on the list of what is open, and is told by the next look."""

    def __init__(self, store: RecordStore, clock: Clock, host: Host) -> None:
        self._store = store
        self._clock = clock
        self._host = host
        self._told: dict[str, dict[str, str]] = {}

    def outcome(self, result: Result, basis: Result | None, ledger: Callable[[], Sequence[Disposition]]) -> None:
        """Tell what an outcome that was written changed from `basis`. The `ledger` is read where something is decided.

        Raises `RecordError` when it cannot be written, `CorruptRecordError` when the trail is damaged.
        """
        told = self._last(result.operation_id)
        decided = any(step.disposition for step in result.steps)
        self._add(result.operation_id, transitions(result, basis, told, ledger() if decided else (), self._writer()))

    def outcome_lost(self, operation_id: str) -> None:
        """Tell that an operation is open again since its outcome was damaged; nothing when that is known."""
        self._add(operation_id, lost_outcome(operation_id, self._last(operation_id), self._writer()))

    def trail(self, operation_id: str) -> Lines[Transition]:
        """What was told of an operation, oldest first."""
        name = trail_name(operation_id)
        return decode_transitions(self._store.read_journal(name), f"{self._store.location}/{name}")

    def _last(self, operation_id: str) -> dict[str, str]:
        if operation_id not in self._told:
            self._told[operation_id] = dict(last_told(self.trail(operation_id).items))
        return self._told[operation_id]

    def _add(self, operation_id: str, changes: Sequence[Transition]) -> None:
        if changes:
            self._store.append(trail_name(operation_id), encode_transitions(changes))
            self._told.setdefault(operation_id, {}).update(last_told(changes))

    def _writer(self) -> Writer:
        return Writer(self._host.actor().signature, self._clock.now())
