"""The record of one stack: head, operations, journal and ledger, on top of a store that only moves bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from tfguard.errors import (
    ConflictError,
    CorruptRecordError,
    NewerRecordError,
    OpenOperationError,
    OperationAliveError,
    RecordError,
)
from tfguard.flows.archive import Archive, operation_of
from tfguard.flows.audit import TRAIL, Audit
from tfguard.model.disposition import Disposition
from tfguard.model.lease import Lease, Liveness, ProcessIdentity
from tfguard.model.operation import AppliedPlan, Head, Intent, JournalEntry, Operation, OperationStatus, Outcome, Result
from tfguard.model.transition import Transition
from tfguard.ports import Blob, Clock, Console, Host, RecordStore
from tfguard.schemas.document import Lines
from tfguard.schemas.records import (
    decode_applied_plan,
    decode_dispositions,
    decode_head,
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

HEAD = "head.json"
LEDGER = "dispositions.jsonl"
_OF_AN_OPERATION = ("intent.json", "events.jsonl", "outcome.json")
HEARTBEAT = timedelta(seconds=10)
LEASE_LASTS = timedelta(seconds=60)
_ATTEMPTS = 5


class Records:
    """Reads and writes a stack's record. Every write is durable when the method returns."""

    def __init__(self, store: RecordStore, clock: Clock, host: Host) -> None:
        self._store = store
        self._clock = clock
        self._host = host
        self._audit = Audit(store, clock, host)
        self._archive = Archive(store)
        self._held: Lease | None = None

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
        return self._head()[0]

    def _head(self) -> tuple[Head, str | None]:
        head, blob = self._head_as_written()
        return head, blob.version if blob else None

    def _head_as_written(self, *, begins: bool = False) -> tuple[Head, Blob | None]:
        """The head and its bytes. A run that `begins` has an intent of its own there already."""
        blob = self._store.read(HEAD)
        if blob is None and not begins and (lost := self._unsettled_on_record()):
            # Whoever begins claims the head first, so that it is there by now unless it was lost.
            blob = self._store.read(HEAD)
            if blob is None:
                raise CorruptRecordError(
                    f"the record {self.location}/{HEAD} is missing, and operation {lost} is not settled",
                    "run `tfguard recover`, which makes a new one of the operations that are there",
                )
        return decode_head(blob.data, f"{self.location}/{HEAD}") if blob else Head(), blob

    def _unsettled_on_record(self) -> str | None:
        """An operation that has begun and was not settled, told without the head."""
        parts = [name.split("/") for name in self._store.names("operations")]
        begun = {part[1] for part in parts if len(part) > 2 and part[2].startswith(_OF_AN_OPERATION)}
        return next((operation_id for operation_id in sorted(begun) if not self._is_settled(operation_id)), None)

    def _is_settled(self, operation_id: str) -> bool:
        try:
            result = self._outcome(operation_id)
        except CorruptRecordError:
            return False
        return result is not None and not result.open

    def claim(self, operation_id: str, run_directory: str | None) -> None:
        """Take the stack's lease for an operation that has no intent yet: no other run starts from here on.

        Raises `OperationAliveError` when somebody else holds it, `RecordError` when it cannot be written. Nothing is
        open by a claim: a holder that dies before `begin` leaves nothing behind.
        """
        for _ in range(_ATTEMPTS):
            head, blob = self._head_as_written()
            if head.lease is None or head.lease.operation_id != operation_id:
                self._refuse_live(head, blob)
            lease = self._lease(operation_id, run_directory)
            try:
                self._write_head(replace(head, lease=lease), blob.version if blob else None)
            except ConflictError:
                continue
            self._held = lease
            return
        raise _too_many_starts()

    def release(self, operation_id: str) -> None:
        """Give up the lease if it is this operation's; a head that tells nothing else is removed."""
        if not self._holds(operation_id):
            return
        self._held = None
        for _ in range(_ATTEMPTS):
            head, blob = self._head_as_written()
            if blob is None or head.lease is None or head.lease.operation_id != operation_id:
                return
            try:
                if head.current is None and not head.open_operations:
                    self._store.remove(HEAD, blob.data)
                else:
                    self._write_head(replace(head, lease=None), blob.version)
                return
            except ConflictError:
                continue

    def _holds(self, operation_id: str) -> bool:
        return self._held is not None and self._held.operation_id == operation_id

    def _write_head(self, head: Head, version: str | None) -> Head:
        written = replace(head, revision=head.revision + 1)
        self._store.replace(HEAD, encode_head(written), version)
        return written

    def begin(self, intent: Intent, accepted: Collection[str]) -> None:
        """Make the intent durable, then name it in the head: from here on the operation is `running` and open.

        `accepted` are the open operations that this run goes on beside. The lease is renewed, or taken where it was not
        claimed. Raises `OperationAliveError` when somebody else holds it (also one who took it from a holder that was
        paused for longer than it lasts), `OpenOperationError` when an operation was left open meanwhile, `RecordError`
        when nothing can be written; the engine must not be started then.
        """
        self._store.create(_document(intent.operation_id, "intent.json"), encode_intent(intent))
        try:
            self._open(intent, accepted)
        except (OperationAliveError, OpenOperationError, CorruptRecordError, NewerRecordError) as error:
            self._never_started(intent, error.what)
            raise

    def _open(self, intent: Intent, accepted: Collection[str]) -> None:
        for _ in range(_ATTEMPTS):
            head, blob = self._head_as_written(begins=True)
            if head.lease is None or head.lease.operation_id != intent.operation_id:
                self._refuse_live(head, blob)
            if late := [i for i in head.open_operations if i not in accepted and i != intent.operation_id]:
                raise OpenOperationError(f"operation {late[-1]} was left open meanwhile", "run `tfguard status`")
            lease = self._lease(intent.operation_id, intent.run_directory)
            others = tuple(i for i in head.open_operations if i != intent.operation_id)
            opened = replace(
                head, current=intent.operation_id, open_operations=(*others, intent.operation_id), lease=lease
            )
            try:
                self._write_head(opened, blob.version if blob else None)
            except ConflictError:
                continue
            self._held = lease
            return
        raise _too_many_starts()

    def _never_started(self, intent: Intent, why: str) -> None:
        steps = tuple(replace(step, outcome=Outcome.ABSENT) for step in intent.steps)
        now = self._clock.now()
        result = Result(intent.operation_id, OperationStatus.CANCELLED, now, steps, error=why)
        self._store.create(_document(intent.operation_id, "outcome.json"), encode_outcome(result))
        self._audit.outcome(result, None, self.dispositions)

    def refuse_if_alive(self) -> None:
        """Raise `OperationAliveError` when another operation on this stack is running."""
        self._refuse_live(*self._head_as_written())

    def _refuse_live(self, head: Head, blob: Blob | None) -> None:
        lease = head.lease
        if lease is None:
            return
        living = self._liveness(lease, blob)
        if living is Liveness.GONE:
            return
        process = lease.engine or lease.wrapper if living is Liveness.ENGINE_ALONE else lease.wrapper
        who = "its engine still runs, without its tfguard" if living is Liveness.ENGINE_ALONE else "it is running"
        job = f", CI job {lease.ci_job}" if lease.ci_job else ""
        raise OperationAliveError(
            f"operation {lease.operation_id} by {lease.user} on {lease.host}{job}: {who} (pid {process.pid})",
            "wait for it to end, then run the command again; never start a second run on top of it",
        )

    def _liveness(self, lease: Lease, blob: Blob | None) -> Liveness:
        """Whether a lease's holder lives. Two hosts' clocks are not compared where the store has one of its own: it
        dates the head, and tells how long ago that was."""

        def now() -> datetime:
            told = self._store.now()
            return self._clock.now() if told is None or blob is None else lease.heartbeat + (told - blob.written_at)

        return self._host.liveness(lease, now)

    def _lease(self, operation_id: str, run_directory: str | None) -> Lease:
        now = self._clock.now()
        return self._host.lease(operation_id, run_directory, now, now + LEASE_LASTS)

    def renew(self, operation_id: str, engine: ProcessIdentity | None = None) -> bool:
        """Say that the holder lives, and which engine process it runs; False when somebody else has the lease by now.

        A lease that somebody gave up, who took this holder for dead, is taken again. Nothing is done for an operation
        whose lease is not held here.
        """
        for _ in range(_ATTEMPTS):
            if not self._holds(operation_id):
                return True
            head, version = self._head()
            lease = head.lease or self._held
            if lease is None or lease.operation_id != operation_id:
                return False
            now = self._clock.now()
            lease = replace(lease, heartbeat=now, expires_at=now + LEASE_LASTS, engine=engine or lease.engine)
            try:
                self._write_head(replace(head, lease=lease), version)
                return True
            except ConflictError:
                continue
        return False

    def journal(self, operation_id: str, entries: Sequence[JournalEntry]) -> None:
        """Add what happened to an operation's journal."""
        self._store.append(_document(operation_id, "events.jsonl"), encode_journal(entries))

    def finish(self, result: Result, basis: Result | None) -> None:
        """Write an operation's outcome and release its lease; a settled one leaves the open list.

        `basis` and what is raised: as for `write_outcome`.
        """
        self.write_outcome(result, basis)
        self._update_head(result)

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
        self._audit.outcome(result, held, self.dispositions)

    def _update_head(self, result: Result) -> None:
        if self._holds(result.operation_id):
            self._held = None
        for _ in range(_ATTEMPTS):
            head, version = self._head()
            others = tuple(i for i in head.open_operations if i != result.operation_id)
            ours = head.lease is not None and head.lease.operation_id == result.operation_id
            updated = replace(
                head,
                open_operations=tuple(sorted({*others, result.operation_id})) if result.open else others,
                lease=None if ours else head.lease,
            )
            try:
                self._write_head(updated, version)
                return
            except ConflictError:
                continue
        raise RecordError(
            f"the head of the record {self.location} keeps changing under this run", "run `tfguard recover` afterwards"
        )

    def operation(self, operation_id: str) -> Operation:
        """One operation, from the archive where it was packed away; what lies in the record itself comes first.

        Raises `CorruptRecordError` when its intent is missing or damaged.
        """
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
        return Operation(intent, result, journal.items, journal.cut)

    def _archived(self, operation_id: str) -> Mapping[str, bytes] | None:
        """The documents of an operation that was packed away. An open one never is, and is not looked for there."""
        try:
            if operation_id in self.head().open_operations:
                return None
        except CorruptRecordError:
            pass  # the damage is told elsewhere; the archive itself tells what was packed
        return self._archive.contents(operation_id)

    def transitions(self, operation_id: str) -> tuple[Transition, ...]:
        """What was told of an operation, oldest first. Raises `CorruptRecordError` when that is damaged."""
        found = self._audit.trail(operation_id)
        if not found.items and (kept := self._archived(operation_id)):
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
        head, blob = self._head_as_written()
        running = head.lease is not None and self._liveness(head.lease, blob) is not Liveness.GONE
        return head.lease.operation_id if head.lease and running else None

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

    def decide(self, dispositions: Sequence[Disposition]) -> None:
        """Add decisions to the ledger."""
        if dispositions:
            self._store.append(LEDGER, b"".join(encode_disposition(d) for d in dispositions))

    def dispositions(self) -> tuple[Disposition, ...]:
        """Every decision in the ledger, oldest first."""
        return decode_dispositions(self._store.read_journal(LEDGER), f"{self.location}/{LEDGER}").items

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
            self._head()
        except CorruptRecordError:
            return True
        return False

    def reopen(self, operation_id: str) -> Head:
        """Put an operation whose outcome is gone back among the open ones; the head as it is then."""
        self._audit.outcome_lost(operation_id)
        head, version = self._head()
        opened = tuple(sorted({*head.open_operations, operation_id}))
        updated = replace(head, open_operations=opened)
        return self._write_head(updated, version)

    def rebuild_head(self, console: Console) -> bool:
        """Move a damaged head aside and make a new one from the operations that are there; False when it was sound."""
        try:
            self._head()
            return False
        except CorruptRecordError as error:
            console.warn(error.what)
        if self._store.read(HEAD) is not None:
            kept = self._store.move_aside(HEAD)
            console.warn(f"the damaged head was kept as {kept}")
        ids = self.operation_ids()
        opened = tuple(i for i in ids if self._unsettled(i, console))
        head = Head(revision=1, current=ids[-1] if ids else None, open_operations=opened)
        self._store.replace(HEAD, encode_head(head), None)
        return True

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


def _too_many_starts() -> OperationAliveError:
    return OperationAliveError("other runs on this stack keep starting", "let them finish, then run the command again")


def _plan(digest: str) -> str:
    return f"plans/{digest}.json"


def _rescued(operation_id: str, name: str) -> str:
    return _document(operation_id, f"rescued/{name}")


def _document(operation_id: str, name: str) -> str:
    return f"operations/{operation_id}/{name}"
