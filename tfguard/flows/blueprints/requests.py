"""The requests of one blueprint, as the record store keeps them: one at a time, held by one tfguard at a time.

head.json                        the request that is current, how many events it has at least, and the lease
requests/<id>/request.json       written once, before
requests/<id>/events.jsonl       each change of a state or a status; the request is their sum
requests/<id>/cancel.json        somebody's wish that it stops
requests/<id>/blueprint-<digest>.yaml   the blueprint's text, as it was applied
archive/<id>.json                a request that is over, with all of these
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Lock

from tfguard.errors import ConflictError, CorruptRecordError, OperationAliveError, RecordError, TfguardError
from tfguard.flows.heads import LEASE_LASTS, Heads
from tfguard.flows.upkeep import Upkeep
from tfguard.model.blueprint_request import Request, RequestEvent, RequestIntent, fold
from tfguard.model.blueprint_view import ListedRequest
from tfguard.model.ids import new_operation_id
from tfguard.model.lease import ProcessIdentity
from tfguard.model.operation import Head, JournalEntry
from tfguard.ports import Clock, Console, Host, RecordStore
from tfguard.schemas.blueprint_records import (
    CANCEL,
    DAMAGED,
    PACKED,
    REQUEST,
    CancelWish,
    PackedRequest,
    decode_events,
    encode_events,
)

_DIGEST = 12


class Requests:
    """Reads and writes the requests of one blueprint.

    `file` is the blueprint's, for advice. Every method raises `RecordError` when the place cannot be read or written,
    `CorruptRecordError` for a document that is not what tfguard wrote.
    """

    def __init__(self, store: RecordStore, clock: Clock, host: Host, console: Console, file: str = "FILE") -> None:
        self._store = store
        self._file = file
        self._clock = clock
        self._host = host
        self._console = console
        self._heads = Heads(store, clock, host, self._newest, self._counted, DAMAGED)
        self._written: tuple[str | None, int] = (None, 0)
        self._writing = Lock()
        self._run: str | None = None
        self._renewed = clock.now()
        self._lost = False

    @property
    def location(self) -> str:
        """Where the requests are recorded."""
        return self._store.location

    @property
    def clock(self) -> Clock:
        """The time that events are dated with."""
        return self._clock

    @property
    def actor(self) -> str:
        """Who writes."""
        return self._host.actor().signature

    def check_writable(self) -> None:
        """Raise `RecordError` when it can be told that a write would fail."""
        self._store.check_writable()

    def ids(self) -> Sequence[str]:
        """The id of every request that was not packed away, oldest first."""
        parts = [name.split("/") for name in self._store.names("requests")]
        return tuple(sorted({part[1] for part in parts if part[2:] == ["request.json"]}))

    def listed(self) -> Sequence[ListedRequest]:
        """Every request, the newest first, those that were packed away included."""
        open_ids, packed = self.ids(), self.packed_ids()
        # One that is being packed away is both.
        return tuple(self._listed(one, one not in open_ids) for one in sorted({*open_ids, *packed}, reverse=True))

    def _listed(self, request_id: str, archived: bool) -> ListedRequest:
        try:
            request = self.read(request_id)
        except RecordError as error:
            return ListedRequest(request_id, archived=archived, trouble=error.what)
        intent = request.intent
        return ListedRequest(
            request_id=request_id,
            state=request.state,
            owner=intent.owner,
            cost_owner=intent.cost_owner,
            actor=intent.actor,
            created_at=intent.created_at,
            ended_at=request.since if request.terminal else None,
            archived=archived,
        )

    def current(self) -> Request | None:
        """The blueprint's newest request; None when there never was one."""
        named = self._heads.read()[0].current
        newest = named or self._newest()
        request = self.read(newest) if newest else None
        if named is None or request is None or not request.terminal:
            return request
        # Who dies while a request is made leaves it unnamed: it is gone on with.
        return next((one for one in map(self._readable, reversed(self.ids())) if one and not one.terminal), request)

    def _readable(self, request_id: str) -> Request | None:
        try:
            return self.read(request_id)
        except CorruptRecordError:
            return None  # a list of all tells that

    def read(self, request_id: str) -> Request:
        """One request, from the archive where it was packed away."""
        # Before the journal: what is counted there was in the journal before.
        head = self._heads.read()[0]
        counted = (head.events or 0) if head.current == request_id else 0
        intent, journal = self._store.read(_of(request_id, "request.json")), self._events(request_id)
        where = f"{self.location}/{_of(request_id, 'request.json')}"
        request = _folded(intent.data, journal, where) if intent is not None else None
        if request is None or (request.events < counted and self._store.read(_packed_name(request_id)) is not None):
            packed = self._packed(request_id)
            texts = {name: text.encode() for name, text in packed.documents.items()}
            request = _folded(texts.get("request.json", b""), texts.get("events.jsonl", b""), where)
        if request.events < counted:
            journal_of = where.replace("request.json", "events.jsonl")
            raise CorruptRecordError(
                f"{journal_of} has {request.events} events, and at least {counted} were written", DAMAGED
            )
        return request

    def create(self, intent: RequestIntent, text: str) -> Request:
        """Make a request durable: what was asked for, of which blueprint, and that it is the current one now.

        Its lease must be held. Raises `ConflictError` when it is there already.
        """
        self.keep_blueprint(intent.request_id, text)
        self._heads.begins()
        self._store.create(_of(intent.request_id, "request.json"), REQUEST.encode(intent))
        self._heads.change(lambda head, _: replace(head, current=intent.request_id, events=0))
        return fold(intent, ())

    @staticmethod
    def digest(text: str) -> str:
        """What tells one text of the blueprint from another."""
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]

    def keep_blueprint(self, request_id: str, text: str) -> str:
        """Keep the blueprint's text as it is applied; its digest."""
        digest = self.digest(text)
        with contextlib.suppress(ConflictError):
            self._store.create(_of(request_id, f"blueprint-{digest}.yaml"), text.encode())
        return digest

    def kept_text(self, request: Request) -> str | None:
        """The blueprint's text that a request was last worked on by; None where it is not kept as it was any more."""
        name = f"blueprint-{request.blueprint_digest}.yaml"
        if (blob := self._store.read(_of(request.id, name))) is not None:
            text = blob.data.decode(errors="replace")
        elif self._store.read(f"archive/{request.id}.json") is not None:
            text = self._packed(request.id).documents.get(name, "")
        else:
            return None
        return text if self.digest(text) == request.blueprint_digest else None

    def append(self, request_id: str, *events: RequestEvent) -> None:
        """Add to a request's journal; it is durable when this returns.

        Raises `RecordError` also when this process was stopped for so long that another tfguard works on it by now.
        """
        with self._writing:
            if self._run is not None and abs(self._clock.now() - self._renewed) > LEASE_LASTS:
                self.renew(self._run)
            if self._lost:
                raise RecordError(
                    f"another tfguard works on request {request_id} by now: this one was stopped for too long",
                    "see `tfguard blueprint status`; nothing more is begun here",
                )
            self._store.append(_of(request_id, "events.jsonl"), encode_events(events))
            known, count = self._written
            self._written = (
                request_id,
                max([event.number or 0 for event in events] + [count if known == request_id else 0]),
            )
            if self._run is not None and any(event.state for event in events):
                # Else the next sign of life counts it: the event itself is there.
                with contextlib.suppress(TfguardError):
                    self._heads.change(lambda head, _: _naming(head, request_id))

    def live(self) -> bool:
        """Whether a tfguard is at work on the blueprint now."""
        return self._heads.live() is not None

    def new_id(self) -> str:
        """An id for a request that begins now."""
        return new_operation_id(self._clock.now())

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Hold the blueprint's lease: of two tfguards one alone goes on, whatever request they mean.

        Raises `OperationAliveError` when another is at work, `RecordError` when nothing can be written.
        """
        run = self.new_id()
        try:
            self._heads.claim(run, None)
        except OperationAliveError as error:
            advice = (
                f"wait for it to end, or stop it: `tfguard blueprint cancel {self._file}`; then run the command again"
            )
            raise OperationAliveError(error.what, advice) from None
        self._run, self._renewed = run, self._clock.now()
        try:
            with Upkeep(run, self, self._clock, self._console):
                yield
        finally:
            self._run, self._lost = None, False
            try:
                self._heads.release(run)
            except TfguardError as error:
                self._console.warn(f"{error.what}; the lease of this run ends by itself within a minute")

    def renew(self, operation_id: str, engine: ProcessIdentity | None = None) -> bool:
        """Say that the holder lives; False when somebody else has the lease by now."""
        if self._heads.renew(operation_id, engine):
            self._renewed = self._clock.now()
        else:
            self._lost = True
        return not self._lost

    def journal(self, operation_id: str, entries: Sequence[JournalEntry]) -> None:
        """Nothing: a request's events are written one by one, each before what it announces."""

    def wish_to_cancel(self, request_id: str, reason: str, *, interrupt: bool) -> None:
        """Let whoever is at work on a request know that it should stop. A second wish can only add the interrupt.

        Nothing where nobody holds the lease any more.
        """
        name, lease = _of(request_id, "cancel.json"), self._heads.read()[0].lease
        if lease is None:
            return
        wish = CancelWish(self._clock.now(), self.actor, reason, interrupt, lease.operation_id)
        before = self._store.read(name)
        old = CANCEL.decode(before.data, f"{self.location}/{name}") if before else None
        if old is None or old.run != wish.run or (interrupt and not old.interrupt):
            with contextlib.suppress(ConflictError):
                self._store.replace(name, CANCEL.encode(wish), before.version if before else None)

    def cancel_wish(self, request_id: str) -> CancelWish | None:
        """Somebody's wish that this run stops; one for an earlier run is none."""
        name = _of(request_id, "cancel.json")
        blob = self._store.read(name)
        wish = CANCEL.decode(blob.data, f"{self.location}/{name}") if blob else None
        return wish if wish is not None and wish.run == self._run else None

    def forget_cancel(self, request_id: str) -> None:
        """Take the wish away: it was followed, or came too late. Nothing where another tfguard has the lease by now: it
        may be meant."""
        name = _of(request_id, "cancel.json")
        if self._lost:
            return
        if (blob := self._store.read(name)) is not None:
            self._store.remove(name, blob.data)

    def pack(self, request_id: str) -> None:
        """Put a request that is over into one document of the archive, with all its evidence.

        Nothing is removed before it is there. Raises `ConflictError` when something changes it at the same time.
        """
        names = [name for name in self._store.names(_of(request_id, "")[:-1]) if name]
        held: dict[str, bytes] = {}
        for name in names:
            blob = self._store.read(name)
            held[name] = blob.data if blob else self._store.read_journal(name)
        short = {name.removeprefix(_of(request_id, "")): data.decode(errors="replace") for name, data in held.items()}
        packed = PACKED.encode(PackedRequest(request_id, self._clock.now(), short))
        with contextlib.suppress(ConflictError):
            self._store.create(_packed_name(request_id), packed)
        # What says that the request exists goes last.
        for name in sorted(held, key=lambda one: one.endswith("request.json")):
            self._store.remove(name, held[name])

    def packed_ids(self) -> Sequence[str]:
        """The ids of the requests that were packed away, oldest first."""
        names = self._store.names("archive")
        return tuple(sorted(name.removeprefix("archive/").removesuffix(".json") for name in names))

    def _packed(self, request_id: str) -> PackedRequest:
        name = _packed_name(request_id)
        blob = self._store.read(name)
        if blob is None:
            raise CorruptRecordError(
                f"the record {self.location}/{_of(request_id, 'request.json')} is missing",
                "restore it; until then nothing is known of this request",
            )
        return PACKED.decode(blob.data, f"{self.location}/{name}")

    def _counted(self, head: Head) -> int | None:
        """How many events the current request has at least, by the head and by what was written here."""
        known, count = self._written
        return max(head.events or 0, count) if known is not None and known == head.current else head.events

    def _events(self, request_id: str) -> bytes:
        return self._store.read_journal(_of(request_id, "events.jsonl"))

    def _newest(self) -> str | None:
        ids = self.ids() or self.packed_ids()
        return ids[-1] if ids else None


class Journal:
    """Writes the events of one request, and knows how it stands after each. Safe for several threads."""

    def __init__(self, requests: Requests, request: Request) -> None:
        self._requests = requests
        self._request = request
        self._lock = Lock()

    @property
    def request(self) -> Request:
        """How the request stands now."""
        with self._lock:
            return self._request

    def write(self, make: Callable[[datetime, str], RequestEvent]) -> Request:
        """Write what `make` gives for this moment and this actor; how the request stands then.

        Raises `RecordError` when it cannot be written: what the event announces must not be done then.
        """
        return self.write_all(lambda at, by: (make(at, by),))

    def write_all(self, make: Callable[[datetime, str], Sequence[RequestEvent]]) -> Request:
        """Write several events of one moment by one call, as `write` does: nobody who dies in between leaves half."""
        with self._lock:
            events = make(self._requests.clock.now(), self._requests.actor)
            after = self._request
            numbered = [replace(event, number=after.events + n) for n, event in enumerate(events, start=1)]
            for event in numbered:
                after = after.after(event)
            self._append(numbered)
            self._request = after
            return after

    def _append(self, events: Sequence[RequestEvent]) -> None:
        self._requests.append(self._request.id, *events)

    def take_over(self, seen: Observations) -> bool:
        """Write what somebody has seen who did not hold the request: all of it, and nothing where anything was written
        meanwhile, or somebody is at work, whose word is newer. Whether it is written. Raises `RecordError`."""
        with self._lock:
            if not seen.events:
                return True
            try:
                with self._requests.holding():
                    now = self._requests.read(self._request.id)
                    if unmoved := (now.events, now.since) == (self._request.events, self._request.since):
                        self._append(seen.events)
                        now = seen.request
            except OperationAliveError:
                return False
            self._request = now
            return unmoved


class Observations(Journal):
    """Keeps the events of somebody who only looks, until `Journal.take_over` writes them."""

    def __init__(self, requests: Requests, request: Request) -> None:
        super().__init__(requests, request)
        self.events: list[RequestEvent] = []

    def _append(self, events: Sequence[RequestEvent]) -> None:
        self.events += events


def absolute(file: Path) -> str:
    """The blueprint's file as the record names it."""
    return str(file.absolute())


def _folded(intent: bytes, events: bytes, where: str) -> Request:
    lines = decode_events(events, where.replace("request.json", "events.jsonl"))
    try:
        return fold(REQUEST.decode(intent, where), lines.items, lines.cut)
    except ValueError as error:
        raise CorruptRecordError(f"{where}: {error}", DAMAGED) from None


def _naming(head: Head, request_id: str) -> Head:
    """The head that names a request: its tfguard may have died before that."""
    return head if head.current == request_id else replace(head, current=request_id, events=0)


def _packed_name(request_id: str) -> str:
    return f"archive/{request_id}.json"


def _of(request_id: str, name: str) -> str:
    return f"requests/{request_id}/{name}"
