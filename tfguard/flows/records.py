"""The record of one stack: head, operations, journal and ledger, on top of a store that only moves bytes."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from tfguard.errors import ConflictError, CorruptRecordError, RecordError, TfguardError
from tfguard.flows.archive import Archive, operation_of
from tfguard.flows.audit import TRAIL, Audit
from tfguard.flows.heads import HEAD, Heads
from tfguard.model.disposition import Disposition, DispositionKind, LedgerDamage
from tfguard.model.lease import ProcessIdentity
from tfguard.model.operation import (
    AppliedPlan,
    Head,
    Intent,
    JournalEntry,
    Operation,
    OperationStatus,
    Outcome,
    Result,
    StepStatus,
)
from tfguard.model.transition import Transition
from tfguard.ports import Blob, Clock, Console, Host, RecordStore
from tfguard.schemas.document import Lines
from tfguard.schemas.records import (
    decode_applied_plan,
    decode_dispositions,
    decode_intent,
    decode_journal,
    decode_outcome,
    decode_transitions,
    encode_applied_plan,
    encode_disposition,
    encode_head,
    encode_intent,
    encode_journal,
    encode_outcome,
)

LEDGER = "dispositions.jsonl"
_READ_ATTEMPTS = 5
_OF_AN_OPERATION = ("intent.json", "events.jsonl", "outcome.json")


class Records:
    """Reads and writes a stack's record. Every write is durable when the method returns.

    `warn` is told what failed and stops nothing.
    """

    def __init__(
        self, store: RecordStore, clock: Clock, host: Host, warn: Callable[[str], None] = lambda _text: None
    ) -> None:
        self._warn = warn
        self._store = store
        self._clock = clock
        self._host = host
        self._audit = Audit(store, clock, host)
        self._archive = Archive(store)
        self._heads = Heads(store, clock, host, self._recorded)

    @property
    def location(self) -> str:
        """Where the record lies."""
        return self._store.location

    @property
    def store(self) -> RecordStore:
        """What the record lies in, for those who pack it away."""
        return self._store

    @property
    def archive(self) -> Archive:
        """The operations that were packed away; `operation` reads through it."""
        return self._archive

    def check_writable(self) -> None:
        """Raise `RecordError` when it can be told already that nothing could be written."""
        self._store.check_writable()

    def head(self) -> Head:
        """The head, or a fresh one for a stack without a record.

        Raises `CorruptRecordError` for a damaged one (which counts as live) and `NewerRecordError` for a newer one.
        """
        return self._heads.read()[0]

    def _recorded(self) -> str | None:
        """An operation that is in the record, told without the head."""
        parts = [name.split("/") for name in self._store.names("operations")]
        begun = {part[1] for part in parts if len(part) > 2 and part[2].startswith(_OF_AN_OPERATION)}
        return max(begun, default=None)

    def without_outcome(self) -> tuple[str, ...]:
        """The ids of the operations whose intent is there and no outcome, oldest first; the head is not asked."""
        names = set(self._store.names("operations"))
        ids = sorted({name.split("/")[1] for name in names if name.count("/") > 1})
        return tuple(
            name for name in ids
            if _document(name, "intent.json") in names and _document(name, "outcome.json") not in names
        )  # fmt: skip

    def head_is_fresh(self) -> bool:
        """Whether the head, which need not be readable, was written so lately that its writer may live."""
        return self._heads.is_fresh()

    def claim(self, operation_id: str, run_directory: str | None) -> None:
        """Take the stack's lease for an operation that has no intent yet; raises as `Heads.claim` does."""
        self._heads.claim(operation_id, run_directory)

    def release(self, operation_id: str) -> None:
        """Give up the lease if it is this operation's; a run that came to nothing leaves the record as it was."""
        self._heads.release(operation_id)

    def begin(self, intent: Intent, accepted: Collection[str]) -> None:
        """Make the intent durable, then name it in the head: from here on the operation is `running` and open.

        `accepted` are the open operations that this run goes on beside. The lease is renewed, or taken where it was not
        claimed. Raises `OperationAliveError` when somebody else holds it (also one who took it from a holder that was
        paused for longer than it lasts), `OpenOperationError` when an operation was left open meanwhile, `RecordError`
        when nothing can be written; the engine must not be started then.
        """
        self._heads.begins()
        self._store.create(_document(intent.operation_id, "intent.json"), encode_intent(intent))
        try:
            self._heads.open(intent, accepted)
        except TfguardError as error:
            with contextlib.suppress(RecordError):
                self._never_started(intent, error.what)
            raise

    def _never_started(self, intent: Intent, why: str) -> None:
        began = [step for step in intent.steps if step.status is StepStatus.PENDING]  # not what is only looked for
        steps = tuple(replace(step, outcome=Outcome.ABSENT) for step in began)
        now = self._clock.now()
        result = Result(intent.operation_id, OperationStatus.CANCELLED, now, steps, error=why)
        self._store.create(_document(intent.operation_id, "outcome.json"), encode_outcome(result))
        self._audit.outcome(result, None, self.dispositions)

    def refuse_if_alive(self) -> None:
        """Raise `OperationAliveError` when another operation on this stack is running."""
        self._heads.refuse_live(*self._heads.read())

    def renew(self, operation_id: str, engine: ProcessIdentity | None = None) -> bool:
        """Say that the lease's holder lives; False when somebody else has it by now. See `Heads.renew`."""
        return self._heads.renew(operation_id, engine)

    def journal(self, operation_id: str, entries: Sequence[JournalEntry]) -> None:
        """Add what happened to an operation's journal."""
        self._store.append(_document(operation_id, "events.jsonl"), encode_journal(entries))

    def finish(self, result: Result, basis: Result | None) -> None:
        """Write an operation's outcome and release its lease; a settled one leaves the open list.

        `basis` and what is raised: as for `write_outcome`.
        """
        self.write_outcome(result, basis)
        self._heads.close(result)

    def write_outcome(self, result: Result, basis: Result | None) -> None:
        """Write an operation's outcome, and keep its lease.

        `basis` is the outcome that this one was concluded from, None for the first. Raises `ConflictError` when the
        record holds another one by now: somebody else has looked at the operation meanwhile.
        """
        name = _document(result.operation_id, "outcome.json")
        before = self._store.read(name)
        held = decode_outcome(before.data, f"{self.location}/{name}") if before else None
        if held != basis:
            raise ConflictError(
                f"operation {result.operation_id} was looked at by another tfguard meanwhile",
                "run the command again; what the other one wrote stands",
            )
        self._store.replace(name, encode_outcome(result), before.version if before else None)
        try:
            self._audit.outcome(result, held, self.dispositions)
        except TfguardError as error:
            # The outcome stands, and the next one makes the trail good.
            self._warn(f"{error.what}; who changed what in operation {result.operation_id} is told by the next look")

    def operation(self, operation_id: str) -> Operation:
        """One operation, from the archive where it was packed away; what lies in the record itself comes first.

        Raises `CorruptRecordError` when its intent is missing or damaged, `RecordError` when it does not stand still.
        """
        for _ in range(_READ_ATTEMPTS):
            if (found := self._operation(operation_id)) is not None:
                return found
        raise RecordError(
            f"the record of operation {operation_id} at {self.location} kept changing while it was read",
            "let the other run end that archives or recovers this stack, then run the command again",
        )

    def _operation(self, operation_id: str) -> Operation | None:
        """As `operation`; None when somebody else settled it anew, or packed it away, while it was read."""
        name = _document(operation_id, "intent.json")
        blob, result = self._store.read(name), self._outcome(operation_id)
        if blob is None:
            kept = self._archive.contents(operation_id)
        else:
            kept = self._archived(operation_id) if result is None else None
        if kept is not None:
            packed = operation_of(kept, f"{self.location}/archive: {operation_id}")
            return replace(packed, result=result or packed.result)
        if blob is None:
            raise CorruptRecordError(
                f"the record {self.location}/{name} is missing",
                "restore it, or settle the operation with `tfguard recover`",
            )
        intent = decode_intent(blob.data, f"{self.location}/{name}")
        if intent.operation_id != operation_id:
            raise _of_another(f"{self.location}/{name}", intent.operation_id)
        journal = self._journal(operation_id)
        # Whoever packs it away removes the outcome first: while that is there, the journal was whole.
        if result is not None and self._outcome(operation_id) != result:
            return None
        return Operation(intent, result, journal.items, journal.cut)

    def _archived(self, operation_id: str) -> Mapping[str, bytes] | None:
        """The documents of an operation that was packed away. An open one never is, and is not looked for there."""
        outcome = _document(operation_id, "outcome.json")  # which is removed first
        try:
            if operation_id in self.head().open_operations:
                return None
        except CorruptRecordError:
            pass  # the damage is told elsewhere; the archive itself tells what was packed
        return self._archive.contents(operation_id, vanished=self._store.read(outcome) is None)

    def transitions(self, operation_id: str) -> tuple[Transition, ...]:
        """What was told of an operation, oldest first. Raises `CorruptRecordError` when that is damaged."""
        found = self._audit.trail(operation_id)
        removed = self._store.read(_document(operation_id, "outcome.json")) is None
        if (removed or not found.items) and (kept := self._archived(operation_id)):
            found = decode_transitions(kept.get(TRAIL, b""), f"{self.location}/archive: {operation_id}/{TRAIL}")
        return found.items

    def duration(self, operation_id: str, commands: Collection[str]) -> timedelta | None:
        """How long an operation took, from its intent to its outcome.

        None for another command than these, and for one whose engine did not run to an end. Two documents are read, and
        not the journal. Raises what `operation` raises.
        """
        name = _document(operation_id, "intent.json")
        blob, result = self._store.read(name), self._outcome(operation_id)
        if blob is None or result is None or result.exit_code is None:
            return None
        intent = decode_intent(blob.data, f"{self.location}/{name}")
        return result.ended_at - intent.started_at if intent.command in commands else None

    def _outcome(self, operation_id: str) -> Result | None:
        name = _document(operation_id, "outcome.json")
        blob = self._store.read(name)
        result = decode_outcome(blob.data, f"{self.location}/{name}") if blob else None
        if result is not None and result.operation_id != operation_id:
            raise _of_another(f"{self.location}/{name}", result.operation_id)
        return result

    def _journal(self, operation_id: str) -> Lines[JournalEntry]:
        name = _document(operation_id, "events.jsonl")
        return decode_journal(self._store.read_journal(name), f"{self.location}/{name}")

    def awaits_outcome(self, operation_id: str) -> bool:
        """Whether an operation has begun and has no outcome yet."""
        begun = self._store.read(_document(operation_id, "intent.json"))
        return begun is not None and self._store.read(_document(operation_id, "outcome.json")) is None

    def live_operation(self) -> str | None:
        """The id of the operation that is running now, if one is."""
        return self._heads.live()

    def operation_ids(self) -> tuple[str, ...]:
        """The id of every operation that was not packed away, oldest first (ids sort by time)."""
        parts = [name.split("/") for name in self._store.names("operations")]
        return tuple(sorted({part[1] for part in parts if len(part) > 2}))

    def open_operations(self) -> tuple[Operation, ...]:
        """The operations that are not settled, oldest first."""
        return tuple(self.operation(operation_id) for operation_id in self.head().open_operations)

    def rescue(self, operation_id: str, name: str, data: bytes) -> str:
        """Keep a file that the engine left behind; tells where. A second rescue of the same bytes changes nothing."""
        target = _rescued(operation_id, name)
        before = self._store.read(target)
        if before is None or before.data != data:
            self._store.replace(target, data, before.version if before else None)
        return f"{self.location}/{target}"

    def rescued(self, operation_id: str, name: str) -> bytes | None:
        """A file that was rescued, or None."""
        blob = self._store.read(_rescued(operation_id, name))
        if blob is None and (kept := self._archived(operation_id)):
            return kept.get(f"rescued/{name}")
        return blob.data if blob else None

    def now(self) -> datetime:
        """The time by the clock that decisions are dated with."""
        return self._clock.now()

    def decide(self, dispositions: Sequence[Disposition]) -> None:
        """Add decisions to the ledger."""
        if dispositions:
            self._store.append(LEDGER, b"".join(encode_disposition(d) for d in dispositions))

    def dispositions(self) -> tuple[Disposition, ...]:
        """Every decision in the ledger, oldest first. A line that is cut is not among them: `ledger_damage` tells."""
        return self._ledger().items

    def _ledger(self) -> Lines[Disposition]:
        return decode_dispositions(self._store.read_journal(LEDGER), self._ledger_name)

    @property
    def _ledger_name(self) -> str:
        return f"{self.location}/{LEDGER}"

    def ledger_damage(self) -> LedgerDamage | None:
        """The lines of the ledger that nobody can read, as a power cut leaves them; None where it is whole."""
        ledger = self._ledger()
        if not ledger.cut:
            return None
        # What tfguard itself notes of a deletion is no word of a person about what is kept.
        since = (entry for entry in ledger.items[ledger.whole_from :] if entry.kind is not DispositionKind.DESTROY)
        return LedgerDamage(self._ledger_name, ledger.cut, frozenset(entry.finding_id for entry in since))

    def warn_of_ledger(self, console: Console) -> None:
        """Say that the ledger has lines that nobody can read, where it has."""
        if damage := self.ledger_damage():
            console.warn(f"{damage.what}; look at it there: `orphans destroy` asks for a decision about each object")

    def claim_plan(self, digest: str, applied: AppliedPlan) -> AppliedPlan | None:
        """Keep who applies the plan file with this digest; who did so before, where one is kept already, else None.

        Raises `CorruptRecordError` or `NewerRecordError` when one is kept that cannot be read.
        """
        name = _plan(digest)
        try:
            self._store.create(name, encode_applied_plan(applied))
            return None
        except ConflictError:
            blob = self._store.read(name)
            if blob is None:
                raise
        return decode_applied_plan(blob.data, f"{self.location}/{name}")

    def give_plan_back(self, digest: str, applied: AppliedPlan) -> None:
        """Take a claim back whose operation did not begin; somebody else's stays."""
        self._store.remove(_plan(digest), encode_applied_plan(applied))

    def head_is_damaged(self) -> bool:
        """Whether the head cannot be read; a newer one raises `NewerRecordError`."""
        try:
            self._heads.read()
        except CorruptRecordError:
            return True
        return False

    def reopen(self, operation_id: str) -> Head:
        """Put an operation back among the open ones; the head as it is then."""
        return self._heads.reopen(operation_id)

    def outcome_lost(self, operation_id: str) -> None:
        """Tell the audit trail that an operation's outcome was damaged."""
        self._audit.outcome_lost(operation_id)

    def rebuild_head(self, console: Console) -> bool:
        """Keep a damaged head under another name and make a new one from the operations that are there.

        False when it was sound. Raises `ConflictError` when somebody else has written one meanwhile.
        """
        try:
            self._heads.read()
            return False
        except CorruptRecordError as error:
            console.warn(error.what)
        blob = self._store.read(HEAD)
        if blob is not None:
            console.warn(f"the damaged head was kept as {self._kept_aside(blob)}")
        ids = self.operation_ids()
        opened = tuple(i for i in ids if self._unsettled(i, console))
        head = Head(revision=1, current=ids[-1] if ids else None, open_operations=opened)
        self._store.replace(HEAD, encode_head(head), blob.version if blob else None)
        return True

    def _kept_aside(self, blob: Blob) -> str:
        """The name of a copy: the head itself is replaced by its version, so that nobody else's can be moved away."""
        for number in itertools.count(1):
            name = f"{HEAD}.unreadable-{number}"
            with contextlib.suppress(ConflictError):
                self._store.create(name, blob.data)
                return name
        raise AssertionError("itertools.count ended")

    def set_damage_aside(self, operation_id: str, console: Console) -> bool:
        """Move what is damaged of an operation's record and of the ledger aside, so that it can be settled anew.

        What they told has to be looked up or decided again. A damaged intent stays where it is: nothing stands for it.
        True when the outcome was among them.
        """
        lost_outcome = False
        documents: tuple[tuple[str, Callable[[], object]], ...] = (
            (_document(operation_id, "outcome.json"), lambda: self._outcome(operation_id)),
            (_document(operation_id, "events.jsonl"), lambda: self._journal(operation_id)),
            (_document(operation_id, TRAIL), lambda: self._audit.trail(operation_id)),
            (LEDGER, self.dispositions),
        )
        for name, read in documents:
            try:
                read()
            except CorruptRecordError as error:
                kept = self._store.move_aside(name)
                console.warn(f"{error.what}; it was kept as {self.location}/{kept}")
                lost_outcome = lost_outcome or name.endswith("outcome.json")
        return lost_outcome

    def _unsettled(self, operation_id: str, console: Console) -> bool:
        try:
            return self.operation(operation_id).open
        except CorruptRecordError as error:
            console.warn(error.what)
            return True


def _of_another(place: str, operation_id: str) -> CorruptRecordError:
    return CorruptRecordError(
        f"the record {place} is that of operation {operation_id}",
        "keep it for inspection; run `tfguard recover`, which looks at the provider instead of trusting it",
    )


def _plan(digest: str) -> str:
    return f"plans/{digest}.json"


def _rescued(operation_id: str, name: str) -> str:
    return _document(operation_id, f"rescued/{name}")


def _document(operation_id: str, name: str) -> str:
    return f"operations/{operation_id}/{name}"
