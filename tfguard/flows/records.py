"""The record of one stack: head, operations, journal and ledger, on top of a store that only moves bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import timedelta

from tfguard.errors import (
    ConflictError,
    CorruptRecordError,
    NewerRecordError,
    OpenOperationError,
    OperationAliveError,
    RecordError,
)
from tfguard.model.disposition import Disposition
from tfguard.model.lease import Lease, Liveness, ProcessIdentity
from tfguard.model.operation import Head, Intent, JournalEntry, Operation, OperationStatus, Outcome, Result
from tfguard.ports import Clock, Console, Host, RecordStore
from tfguard.schemas.document import Lines
from tfguard.schemas.records import (
    decode_dispositions,
    decode_head,
    decode_intent,
    decode_journal,
    decode_outcome,
    encode_disposition,
    encode_head,
    encode_intent,
    encode_journal,
    encode_outcome,
)

HEAD = "head.json"
LEDGER = "dispositions.jsonl"
HEARTBEAT = timedelta(seconds=10)
LEASE_LASTS = timedelta(seconds=60)
_ATTEMPTS = 5


class Records:
    """Reads and writes a stack's record. Every write is durable when the method returns."""

    def __init__(self, store: RecordStore, clock: Clock, host: Host) -> None:
        self._store = store
        self._clock = clock
        self._host = host

    @property
    def location(self) -> str:
        """Where the record lies."""
        return self._store.location

    def check_writable(self) -> None:
        """Raise `RecordError` when it can be told already that nothing could be written."""
        self._store.check_writable()

    def head(self) -> Head:
        """The head, or a fresh one for a stack without a record.

        Raises `CorruptRecordError` for a damaged one (which counts as live) and `NewerRecordError` for a newer one.
        """
        return self._head()[0]

    def _head(self) -> tuple[Head, str | None]:
        blob = self._store.read(HEAD)
        return (decode_head(blob.data, f"{self.location}/{HEAD}"), blob.version) if blob else (Head(), None)

    def begin(self, intent: Intent, accepted: Collection[str]) -> None:
        """Make the intent durable, then take the lease: from here on the operation is `running` and open.

        `accepted` are the open operations that this run goes on beside. Raises `OperationAliveError` when somebody else
        holds the lease, `OpenOperationError` when an operation was left open meanwhile, `RecordError` when nothing can
        be written; the engine must not be started then.
        """
        self._store.create(_document(intent.operation_id, "intent.json"), encode_intent(intent))
        try:
            self._take_lease(intent, accepted)
        except (OperationAliveError, OpenOperationError, CorruptRecordError, NewerRecordError) as error:
            self._never_started(intent, error.what)
            raise

    def _take_lease(self, intent: Intent, accepted: Collection[str]) -> None:
        for _ in range(_ATTEMPTS):
            head, version = self._head()
            self._refuse_live(head)
            if late := [i for i in head.open_operations if i not in accepted]:
                raise OpenOperationError(f"operation {late[-1]} was left open meanwhile", "run `tfguard status`")
            taken = replace(
                head,
                revision=head.revision + 1,
                current=intent.operation_id,
                open_operations=(*head.open_operations, intent.operation_id),
                lease=self._lease(intent),
            )
            try:
                self._store.replace(HEAD, encode_head(taken), version)
                return
            except ConflictError:
                continue
        raise OperationAliveError(
            "other runs on this stack keep starting", "let them finish, then run the command again"
        )

    def _never_started(self, intent: Intent, why: str) -> None:
        steps = tuple(replace(step, outcome=Outcome.ABSENT) for step in intent.steps)
        now = self._clock.now()
        result = Result(intent.operation_id, OperationStatus.CANCELLED, now, steps, error=why)
        self._store.create(_document(intent.operation_id, "outcome.json"), encode_outcome(result))

    def refuse_if_alive(self) -> None:
        """Raise `OperationAliveError` when another operation on this stack is running."""
        self._refuse_live(self.head())

    def _refuse_live(self, head: Head) -> None:
        lease = head.lease
        if lease is None:
            return
        living = self._host.liveness(lease, self._clock.now())
        if living is Liveness.GONE:
            return
        process = lease.engine or lease.wrapper if living is Liveness.ENGINE_ALONE else lease.wrapper
        who = "its engine still runs, without its tfguard" if living is Liveness.ENGINE_ALONE else "it is running"
        job = f", CI job {lease.ci_job}" if lease.ci_job else ""
        raise OperationAliveError(
            f"operation {lease.operation_id} by {lease.user} on {lease.host}{job}: {who} (pid {process.pid})",
            "wait for it to end, then run the command again; never start a second run on top of it",
        )

    def _lease(self, intent: Intent) -> Lease:
        now = self._clock.now()
        return self._host.lease(intent, now, now + LEASE_LASTS)

    def renew(self, operation_id: str, engine: ProcessIdentity | None = None) -> bool:
        """Say that the holder lives, and which engine process it runs; False when the lease is somebody else's."""
        for _ in range(_ATTEMPTS):
            head, version = self._head()
            if head.lease is None or head.lease.operation_id != operation_id:
                return False
            now = self._clock.now()
            lease = replace(head.lease, heartbeat=now, expires_at=now + LEASE_LASTS, engine=engine or head.lease.engine)
            try:
                self._store.replace(HEAD, encode_head(replace(head, revision=head.revision + 1, lease=lease)), version)
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

    def _update_head(self, result: Result) -> None:
        for _ in range(_ATTEMPTS):
            head, version = self._head()
            others = tuple(i for i in head.open_operations if i != result.operation_id)
            ours = head.lease is not None and head.lease.operation_id == result.operation_id
            updated = replace(
                head,
                revision=head.revision + 1,
                open_operations=tuple(sorted({*others, result.operation_id})) if result.open else others,
                lease=None if ours else head.lease,
            )
            try:
                self._store.replace(HEAD, encode_head(updated), version)
                return
            except ConflictError:
                continue
        raise RecordError(
            f"the head of the record {self.location} keeps changing under this run", "run `tfguard recover` afterwards"
        )

    def operation(self, operation_id: str) -> Operation:
        """One operation. Raises `CorruptRecordError` when its intent is missing or damaged."""
        name = _document(operation_id, "intent.json")
        blob = self._store.read(name)
        if blob is None:
            raise CorruptRecordError(
                f"the record {self.location}/{name} is missing",
                "restore it, or settle the operation with `tfguard recover`",
            )
        intent = decode_intent(blob.data, f"{self.location}/{name}")
        journal = self._journal(operation_id)
        return Operation(intent, self._outcome(operation_id), journal.items, journal.cut)

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
        return decode_outcome(blob.data, f"{self.location}/{name}") if blob else None

    def _journal(self, operation_id: str) -> Lines[JournalEntry]:
        name = _document(operation_id, "events.jsonl")
        return decode_journal(self._store.read_journal(name), f"{self.location}/{name}")

    def awaits_outcome(self, operation_id: str) -> bool:
        """Whether an operation has begun and has no outcome yet."""
        begun = self._store.read(_document(operation_id, "intent.json"))
        return begun is not None and self._store.read(_document(operation_id, "outcome.json")) is None

    def live_operation(self) -> str | None:
        """The id of the operation that is running now, if one is."""
        lease = self.head().lease
        running = lease is not None and self._host.liveness(lease, self._clock.now()) is not Liveness.GONE
        return lease.operation_id if lease and running else None

    def operation_ids(self) -> tuple[str, ...]:
        """Every operation's id, oldest first (ids sort by time)."""
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
        return blob.data if blob else None

    def decide(self, dispositions: Sequence[Disposition]) -> None:
        """Add decisions to the ledger."""
        if dispositions:
            self._store.append(LEDGER, b"".join(encode_disposition(d) for d in dispositions))

    def dispositions(self) -> tuple[Disposition, ...]:
        """Every decision in the ledger, oldest first."""
        return decode_dispositions(self._store.read_journal(LEDGER), f"{self.location}/{LEDGER}").items

    def head_is_damaged(self) -> bool:
        """Whether the head cannot be read; a newer one raises `NewerRecordError`."""
        try:
            self._head()
        except CorruptRecordError:
            return True
        return False

    def reopen(self, operation_id: str) -> Head:
        """Put an operation whose outcome is gone back among the open ones; the head as it is then."""
        head, version = self._head()
        opened = tuple(sorted({*head.open_operations, operation_id}))
        updated = replace(head, revision=head.revision + 1, open_operations=opened)
        self._store.replace(HEAD, encode_head(updated), version)
        return updated

    def rebuild_head(self, console: Console) -> bool:
        """Move a damaged head aside and make a new one from the operations that are there; False when it was sound."""
        try:
            self._head()
            return False
        except CorruptRecordError as error:
            console.warn(error.what)
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


def _rescued(operation_id: str, name: str) -> str:
    return _document(operation_id, f"rescued/{name}")


def _document(operation_id: str, name: str) -> str:
    return f"operations/{operation_id}/{name}"
