"""What the engine told about each step, folded out of its events or out of a journal of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.failure import Failure, FailureKind
from tfguard.model.operation import JournalEntry, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.secrets import Withholding
from tfguard.reconcile.failures import classify

SIGNAL = "signal"
"""The kind of a journal entry for a signal that tfguard got; every other kind is the engine's own word."""

_KEPT = (EventKind.APPLY_START, EventKind.APPLY_COMPLETE, EventKind.APPLY_ERRORED, EventKind.CHANGE_SUMMARY)


def journal_entry(event: EngineEvent, at: datetime, hidden: Withholding, *, ids: bool = True) -> JournalEntry | None:
    """What a record keeps of an event; None for an event that changes nothing about a step.

    `hidden` is what may not be written: an id or a word that carries a marked value is left out, and an address is
    masked as in the steps. Without `ids` the marked values are not known, and then no id is kept at all, nor a word of
    the provider's.
    """
    address = hidden.address(event.address) if event.address else event.address
    if event.kind in _KEPT:
        identity = event.id_value
        if not ids or event.address in hidden.silent or (identity and hidden.tells(identity)):
            identity = None
        action = hidden.text(event.action, "") if event.action else event.action
        return JournalEntry(at, event.kind.value, address, action, identity)
    if event.kind is EventKind.DIAGNOSTIC and event.severity == "error":
        detail = event.raw.get("diagnostic")
        words = detail.get("detail") if isinstance(detail, Mapping) else None
        failure = classify(event.summary or "", words if isinstance(words, str) else "")
        if not ids and failure.operation:
            said = f"HTTP {failure.http_status}" if failure.http_status else "no usable reply"
            failure = replace(failure, detail=f"a call to the provider: {said}")
        elif hidden.tells(failure.detail) or (failure.operation and hidden.tells(failure.operation)):
            failure = Failure(failure.kind, "its words may not be kept", http_status=failure.http_status)
        return JournalEntry(at, event.kind.value, address, failure=failure)
    return None


@dataclass(slots=True)
class Progress:
    """The steps' state as the journal tells it so far."""

    started: dict[str, set[str]] = field(default_factory=dict)
    ended: dict[str, set[str]] = field(default_factory=dict)
    errored: set[str] = field(default_factory=set)
    ids: dict[str, str] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    first_failure: Failure | None = None
    finished: bool = False
    last_at: datetime | None = None

    def add(self, entries: Iterable[JournalEntry]) -> None:
        """Take in more of the journal."""
        for entry in entries:
            self._add(entry)

    def _add(self, entry: JournalEntry) -> None:
        self.last_at = max(self.last_at, entry.at) if self.last_at else entry.at
        address, action = entry.address or "", entry.action or ""
        if entry.kind == EventKind.APPLY_START.value:
            self.started.setdefault(address, set()).add(action)
        elif entry.kind == EventKind.APPLY_COMPLETE.value:
            self.ended.setdefault(address, set()).add(action)
            if entry.id and action != "delete":
                self.ids[address] = entry.id
        elif entry.kind == EventKind.APPLY_ERRORED.value:
            self.errored.add(address)
        elif entry.kind == EventKind.CHANGE_SUMMARY.value:
            self.finished = True
        elif entry.failure is not None:
            self.first_failure = self.first_failure or entry.failure
            known = self.failures.get(address)
            # Of several, the one that proves least stays: a refusal beside a lost reply does not prove absence.
            if address and (known is None or known.kind is FailureKind.REFUSED):
                self.failures[address] = entry.failure

    @property
    def open_creates(self) -> frozenset[str]:
        """The addresses of which a create began and was not reported to have ended well."""
        begun = {address for address, actions in self.started.items() if "create" in actions}
        return frozenset(address for address in begun if "create" not in self.ended.get(address, ()))

    def apply_to(self, steps: Sequence[Step], whole_success: bool) -> tuple[Step, ...]:
        """The steps with what the engine told of them.

        `whole_success` says that the engine ended with 0: then steps without an event of their own (a pure import, a
        forgotten object) were done too.
        """
        return tuple(self._apply(step, whole_success) for step in steps)

    def _apply(self, step: Step, whole_success: bool) -> Step:
        if step.status is not StepStatus.PENDING:
            return step  # none of the engine's: it is only looked up
        started, ended = self.started.get(step.address, set()), self.ended.get(step.address, set())
        wanted = {"create", "delete"} if step.action is Action.REPLACE else {step.action.value}
        failure = self.failures.get(step.address)
        step = replace(step, reported_id=self.ids.get(step.address), error=failure.detail if failure else None)
        if step.address in self.errored or failure:
            return replace(step, status=StepStatus.ERROR)
        if wanted <= ended:
            return replace(step, status=StepStatus.OK)
        if started:
            return replace(step, status=StepStatus.RUNNING)
        return replace(step, status=StepStatus.OK if whole_success else StepStatus.PENDING)
