"""`head.json`: what is current and what is open on a stack, and who holds its lease. It changes by compare-and-swap
alone, and by whoever is first."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta

from tfguard.errors import ConflictError, CorruptRecordError, OpenOperationError, OperationAliveError
from tfguard.model.lease import Lease, Liveness, ProcessIdentity
from tfguard.model.operation import Head, Intent, Result
from tfguard.ports import Blob, Clock, Host, RecordStore
from tfguard.schemas.records import decode_head, encode_head

HEAD = "head.json"
HEARTBEAT = timedelta(seconds=10)
LEASE_LASTS = timedelta(seconds=60)
_ATTEMPTS = 10
_ADVICE = "run `tfguard recover`, which makes a new one of the operations that are there"


class Heads:
    """Reads and changes the head of one stack's record, and holds its lease for one operation at a time.

    `recorded` names an operation that is in the record, told without the head; None when there is none. `events` tells
    at each write how many events what is current has. `advice` says what to do about a head that is lost or damaged
    (empty: what is told of a stack's).
    """

    def __init__(
        self,
        store: RecordStore,
        clock: Clock,
        host: Host,
        recorded: Callable[[], str | None],
        events: Callable[[Head], int | None] = lambda head: head.events,
        advice: str = "",
    ) -> None:
        self._store = store
        self._clock = clock
        self._host = host
        self._recorded = recorded
        self._events = events
        self._advice = advice
        self._held: Lease | None = None
        self._begun = False
        self._named = False

    def read(self, *, begins: bool = False) -> tuple[Head, Blob | None]:
        """The head and its bytes; a fresh one and None for a stack without a record.

        A run that `begins` has an intent of its own there already. Raises `CorruptRecordError` for a head that is
        damaged, or missing beside an operation, and `NewerRecordError` for a newer one.
        """
        blob = self._store.read(HEAD)
        if blob is None and not begins and (lost := self._recorded()):
            # Whoever begins claims the head first, so that it is there by now unless it was lost.
            blob = self._store.read(HEAD)
            if blob is None:
                raise CorruptRecordError(
                    f"the record {self._place} is missing, and operation {lost} is recorded beside it",
                    self._advice or _ADVICE,
                )
        try:
            return decode_head(blob.data, self._place) if blob else Head(), blob
        except CorruptRecordError as error:
            raise CorruptRecordError(error.what, self._advice or error.advice) from None

    def change(self, how: Callable[[Head, Blob | None], Head | None], *, begins: bool = False) -> Head:
        """Replace the head by what `how` makes of it, again whenever somebody else was first; None leaves it.

        The head as it is then. Raises what `read` and `how` raise, `OperationAliveError` when others do not stop
        changing it, and `RecordError` when it cannot be written.
        """
        for _ in range(_ATTEMPTS):
            head, blob = self.read(begins=begins)
            changed = how(head, blob)
            if changed is None:
                return head
            told = (changed.current, changed.open_operations) != (head.current, head.open_operations)
            # A lease that is taken and given back leaves the record as it was, to the byte.
            written = replace(changed, revision=head.revision + told, events=self._events(changed))
            with contextlib.suppress(ConflictError):
                self._store.replace(HEAD, encode_head(written), blob.version if blob else None)
                return written
        raise OperationAliveError(
            f"the record {self._place} keeps changing: other runs on this stack are at work",
            "let them finish, then run the command again",
        )

    def claim(self, operation_id: str, run_directory: str | None) -> None:
        """Take the lease for an operation that has no intent yet: no other run starts from here on.

        Raises `OperationAliveError` when somebody else holds it, `RecordError` when it cannot be written. Nothing is
        open by a claim: a holder that dies before `open` leaves nothing behind.
        """
        lease: Lease | None = None

        def how(head: Head, blob: Blob | None) -> Head:
            nonlocal lease
            if not _is_of(head.lease, operation_id):
                self.refuse_live(head, blob)
            lease = self._lease(operation_id, run_directory)
            return replace(head, lease=lease)

        self.change(how)
        self._held = lease

    def open(self, intent: Intent, accepted: Collection[str]) -> None:
        """Name an operation as current and open, with its lease renewed, or taken where it was not claimed.

        Raises `OperationAliveError` when somebody else holds it, and `OpenOperationError` when another operation than
        the `accepted` ones is open.
        """
        operation_id = intent.operation_id
        lease: Lease | None = None

        def how(head: Head, blob: Blob | None) -> Head:
            nonlocal lease
            if not _is_of(head.lease, operation_id):
                self.refuse_live(head, blob)
                self._refuse_what_was_lost(operation_id)
            others = tuple(name for name in head.open_operations if name != operation_id)
            if late := [name for name in others if name not in accepted]:
                raise OpenOperationError(f"operation {late[-1]} was left open meanwhile", "run `tfguard status`")
            lease = self._lease(operation_id, intent.run_directory)
            return replace(head, current=operation_id, open_operations=(*others, operation_id), lease=lease)

        self.change(how, begins=True)
        self._held, self._named = lease, True

    def _refuse_what_was_lost(self, operation_id: str) -> None:
        """What was planned under a lease that somebody else has had since may be about another state."""
        if self._holds(operation_id):
            raise OperationAliveError(
                "this run was stopped for so long that another one has had its lease; nothing was changed",
                "run the command again",
            )

    def begins(self) -> None:
        """Note that something of the run that holds the lease is in the record from now on."""
        self._begun = True

    def renew(self, operation_id: str, engine: ProcessIdentity | None) -> bool:
        """Say that the holder lives, and which engine process it runs; False when somebody else has the lease by now.

        Once an operation has begun, a lease that somebody gave up, who took this holder for dead, is taken again, and
        the operation is open again. Nothing is done for an operation whose lease is not held here.
        """
        held = self._held
        if held is None or not _is_of(held, operation_id):
            return True
        lost = False

        def how(head: Head, _blob: Blob | None) -> Head | None:
            nonlocal lost
            lease = head.lease or (held if self._named else None)
            lost = lease is None or not _is_of(lease, operation_id)
            if lease is None or lost or not self._holds(operation_id):
                return None
            now = self._clock.now()
            engine_now = engine or lease.engine
            renewed = replace(lease, heartbeat=now, expires_at=now + LEASE_LASTS, engine=engine_now)
            opened = {*head.open_operations, operation_id} if self._named else set(head.open_operations)
            return replace(head, lease=renewed, open_operations=tuple(sorted(opened)))

        self.change(how)
        return not lost or not self._holds(operation_id)

    def close(self, result: Result) -> None:
        """Give up an operation's lease, and take it off the open ones if its result is settled."""
        if self._holds(result.operation_id):
            self._held = None

        def how(head: Head, _blob: Blob | None) -> Head:
            others = {name for name in head.open_operations if name != result.operation_id}
            return replace(
                head,
                open_operations=tuple(sorted(others | {result.operation_id} if result.open else others)),
                lease=None if _is_of(head.lease, result.operation_id) else head.lease,
            )

        self.change(how)

    def reopen(self, operation_id: str) -> Head:
        """Put an operation back among the open ones; the head as it is then."""
        return self.change(
            lambda head, _: replace(head, open_operations=tuple(sorted({*head.open_operations, operation_id})))
        )

    def release(self, operation_id: str) -> None:
        """Give up the lease if it is this operation's. A head that tells nothing, of a run that began nothing, goes."""
        if not self._holds(operation_id):
            return
        self._held = None
        if not self._begun and self._removed(operation_id):
            return
        self.change(lambda head, _: replace(head, lease=None) if _is_of(head.lease, operation_id) else None)

    def _removed(self, operation_id: str) -> bool:
        head, blob = self.read()
        if blob is None or head.current or head.open_operations or not _is_of(head.lease, operation_id):
            return False
        if self._recorded():
            return False
        with contextlib.suppress(ConflictError):
            self._store.remove(HEAD, blob.data)
            return True
        return False

    def refuse_live(self, head: Head, blob: Blob | None) -> None:
        """Raise `OperationAliveError` when the holder of the head's lease lives."""
        lease = head.lease
        living = self._liveness(lease, blob) if lease else Liveness.GONE
        if lease is None or living is Liveness.GONE:
            return
        process = lease.engine or lease.wrapper if living is Liveness.ENGINE_ALONE else lease.wrapper
        who = "its engine still runs, without its tfguard" if living is Liveness.ENGINE_ALONE else "it is running"
        job = f", CI job {lease.ci_job}" if lease.ci_job else ""
        raise OperationAliveError(
            f"operation {lease.operation_id} by {lease.user} on {lease.host}{job}: {who} (pid {process.pid})",
            "wait for it to end, then run the command again; never start a second run on top of it",
        )

    def is_fresh(self) -> bool:
        """Whether the head, which need not be readable, was written so lately that its writer may live."""
        blob, told = self._store.read(HEAD), self._store.now()
        return blob is not None and told is not None and told - blob.written_at < LEASE_LASTS

    def live(self) -> str | None:
        """The id of the operation whose holder lives now, if one does."""
        head, blob = self.read()
        if head.lease is None or self._liveness(head.lease, blob) is Liveness.GONE:
            return None
        return head.lease.operation_id

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

    def _holds(self, operation_id: str) -> bool:
        return _is_of(self._held, operation_id)

    @property
    def _place(self) -> str:
        return f"{self._store.location}/{HEAD}"


def _is_of(lease: Lease | None, operation_id: str) -> bool:
    return lease is not None and lease.operation_id == operation_id
