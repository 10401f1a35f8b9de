"""Whoever reads while another process archives reads every operation as it was, from the record or the archive."""

from __future__ import annotations

import gzip
import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from packed import Heard, MovedClock, Told, filled, records_in, run, told

from tfguard.errors import RecordError
from tfguard.flows.archiving import archive_closed
from tfguard.flows.history import page
from tfguard.ports import Blob, RecordStore
from tfguard.stores.local import LocalStore
from tfguard.stores.objects import MissingError, ObjectStore, TakenError

DAY = timedelta(days=1)
NOTHING = timedelta(0)
ALL = 1000

Change = tuple[str, bytes | None]


class Objects:
    """A bucket in memory that notes every change, and can make changes of another process at each of its calls."""

    def __init__(self, held: dict[str, bytes] | None = None) -> None:
        self.held = dict(held or {})
        self.changes: list[Change] = []
        self.calls = 0
        self.before_a_call: Callable[[int], None] = lambda _: None
        self._lock = threading.RLock()

    def url(self, key: str) -> str:
        return f"memory://{key}"

    def get(self, key: str) -> Blob:
        with self._call():
            if key not in self.held:
                raise MissingError
            return Blob(self.held[key], self.held[key].hex(), datetime(2025, 1, 1, tzinfo=UTC))

    def put(self, key: str, data: bytes, expected: str | None, token: str) -> None:  # noqa: ARG002 (the port's signature)
        with self._call():
            if (self.held[key].hex() if key in self.held else None) != expected:
                raise TakenError
            self._change(key, data)

    def token(self, key: str) -> str | None:  # noqa: ARG002 (the port's signature)
        return None

    def delete(self, key: str, version: str) -> None:
        with self._call():
            if key not in self.held:
                raise MissingError
            if self.held[key].hex() != version:
                raise TakenError
            self._change(key, None)

    def keys(self, key_prefix: str) -> list[str]:
        with self._call():
            return [key for key in self.held if key.startswith(key_prefix)]

    def now(self) -> datetime:
        return datetime(2025, 1, 1, tzinfo=UTC)

    def apply(self, change: Change) -> None:
        """Make a change that another bucket has noted."""
        key, data = change
        if data is None:
            self.held.pop(key, None)
        else:
            self.held[key] = data

    def _change(self, key: str, data: bytes | None) -> None:
        self.changes.append((key, data))
        self.apply((key, data))

    def _call(self) -> threading.RLock:
        with self._lock:
            self.before_a_call(self.calls)
            self.calls += 1
        return self._lock


def store_in(bucket: Objects) -> RecordStore:
    """A store in a bucket, as another process would open it."""
    return ObjectStore(bucket, "records")


def archived_beside(held: dict[str, bytes], changes: Sequence[Change], first: int, at_once: int) -> Objects:
    """A bucket in which an archive run goes on `at_once` changes further at each call, from the call `first` on."""
    bucket = Objects(held)
    waiting = iter(changes)

    def go_on(call: int) -> None:
        if call >= first:
            for change in itertools.islice(waiting, at_once):
                bucket.apply(change)

    bucket.before_a_call = go_on
    return bucket


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def filled_bucket(clock: MovedClock) -> tuple[dict[str, bytes], list[Change], list[str], list[Told]]:
    """What a bucket holds, what an archive run changes in it, the operations, and what is told of them."""
    bucket = Objects()
    ids = filled(store_in(bucket), clock, 3)
    before = told(records_in(store_in(bucket)), ids)
    held = dict(bucket.held)
    bucket.changes.clear()
    assert archive_closed(records_in(store_in(bucket), clock), clock, NOTHING).packed == ids[:2]
    assert len(bucket.changes) > 10
    return held, bucket.changes, ids, before


@pytest.mark.parametrize("at_once", [1, 2, 5, ALL])
def test_an_operation_is_told_as_before_at_whatever_moment_it_is_packed(
    filled_bucket: tuple[dict[str, bytes], list[Change], list[str], list[Told]], at_once: int
) -> None:
    held, changes, ids, before = filled_bucket
    for number, operation_id in enumerate(ids):
        for first in itertools.count():
            bucket = archived_beside(held, changes, first, at_once)
            assert told(records_in(store_in(bucket)), [operation_id]) == before[number : number + 1], (number, first)
            if bucket.calls < first:
                assert first > 5
                break


@pytest.mark.parametrize("at_once", [1, 2, 5, ALL])
def test_the_history_tells_every_operation_once_at_whatever_moment_they_are_packed(
    filled_bucket: tuple[dict[str, bytes], list[Change], list[str], list[Told]], at_once: int
) -> None:
    held, changes, _, before = filled_bucket
    for first in itertools.count():
        bucket = archived_beside(held, changes, first, at_once)
        heard = Heard()
        shown = page(records_in(store_in(bucket)), None, None, heard)
        assert list(shown.operations) == [one.operation for one in before][::-1], first
        assert heard.lines == []
        if bucket.calls < first:
            assert first > 10
            break


def test_an_operation_that_is_packed_after_its_month_was_read_is_found_in_it(tmp_path: Any, clock: MovedClock) -> None:
    store = LocalStore(tmp_path)
    ids = filled(store, clock, 4, apart=DAY)
    before = told(records_in(store), ids)
    archive_closed(records_in(store, clock), clock, 3 * DAY)
    reading = records_in(store)
    assert told(reading, ids[:1]) == before[:1]
    archive_closed(records_in(store, clock), clock, NOTHING)
    assert told(reading, ids) == before


def test_an_operation_whose_outcome_was_removed_after_its_month_was_read_is_not_open(
    tmp_path: Any, clock: MovedClock
) -> None:
    store = LocalStore(tmp_path)
    ids = filled(store, clock, 4, apart=DAY)
    archive_closed(records_in(store, clock), clock, 3 * DAY)
    reading = records_in(store)
    reading.operation(ids[0])
    intent = store.read(f"operations/{ids[2]}/intent.json")
    assert intent is not None
    archive_closed(records_in(store, clock), clock, NOTHING)
    store.create(f"operations/{ids[2]}/intent.json", intent.data)  # as it is before the last step of the removal
    assert not reading.operation(ids[2]).open


def test_an_operation_that_never_stands_still_is_an_error_and_not_a_guess(tmp_path: Any, clock: MovedClock) -> None:
    inner = LocalStore(tmp_path)
    ids = filled(inner, clock, 2)
    texts = itertools.count()

    class Restless:
        """A store in which another process settles the operation anew whenever its journal is read."""

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def read_journal(self, name: str) -> bytes:
            outcome = f"operations/{ids[0]}/outcome.json"
            blob = inner.read(outcome)
            assert blob is not None
            records = records_in(inner, clock)
            held = records.operation(ids[0]).result
            assert held is not None
            records.write_outcome(replace(held, notes=(str(next(texts)),)), held)
            return inner.read_journal(name)

    with pytest.raises(RecordError, match=f"{ids[0]} at .* kept changing while it was read"):
        records_in(Restless()).operation(ids[0])  # type: ignore[arg-type]


def test_a_journal_whose_parts_vanish_again_and_again_is_an_error_and_not_a_guess() -> None:
    bucket = Objects({f"records/events.jsonl/part-{number:09}": b"{}\n" for number in range(1, 100)})

    def move_on(call: int) -> None:
        bucket.held.pop(min(bucket.held))
        bucket.held[f"records/events.jsonl/part-{100 + call:09}"] = b"{}\n"

    bucket.before_a_call = move_on
    with pytest.raises(RecordError, match=r"events\.jsonl kept changing while it was read"):
        store_in(bucket).read_journal("events.jsonl")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_that_begins_and_ends_while_what_is_due_is_looked_up_stays(
    tmp_path: Any, clock: MovedClock, moment: str
) -> None:
    inner = LocalStore(tmp_path)
    ids = filled(inner, clock, 2)

    class Busy:
        """A store in which another run begins and ends around the first listing of the operations."""

        begun: str | None = None

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def names(self, prefix: str) -> Sequence[str]:
            found = inner.names(prefix)
            if prefix == "operations" and self.begun is None:
                self.begun = run(records_in(inner, clock), clock)
                return inner.names(prefix) if moment == "before" else found
            return found

    busy = Busy()
    done = archive_closed(records_in(busy, clock), clock, NOTHING)  # type: ignore[arg-type]
    assert busy.begun is not None
    assert records_in(inner).head().current == busy.begun
    assert busy.begun in records_in(inner).operation_ids()
    assert busy.begun not in done.packed
    assert set(done.packed) == set(ids)


def test_an_operation_that_is_opened_again_while_it_is_packed_stays_as_it_is(tmp_path: Any, clock: MovedClock) -> None:
    inner = LocalStore(tmp_path)
    ids = filled(inner, clock, 3)
    documents = [name for name in inner.names("operations") if ids[0] in name]

    class Reopening:
        """A store in which another process opens an operation again once the archive vouches for it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def replace(self, name: str, data: bytes, expected: str | None) -> None:
            inner.replace(name, data, expected)
            if name == "archive/chain.json" and ids[0] not in records_in(inner).head().open_operations:
                records_in(inner, clock).reopen(ids[0])

    done = archive_closed(records_in(Reopening(), clock), clock, NOTHING)  # type: ignore[arg-type]
    assert done.packed == ids[1:2]
    assert [(left.operation_id, left.why) for left in done.left] == [
        (ids[0], "it was opened again while it was packed")
    ]
    assert set(documents) <= set(inner.names("operations"))
    assert records_in(inner).operation(ids[0]).result is not None


NEWER = b'{"schema": "tfguard.outcome/v9"}\n'


def test_a_newer_operation_is_said_aloud_and_does_not_hide_the_others(tmp_path: Any, clock: MovedClock) -> None:
    store = LocalStore(tmp_path)
    ids = filled(store, clock, 3)
    blob = store.read(f"operations/{ids[1]}/outcome.json")
    assert blob is not None
    store.replace(f"operations/{ids[1]}/outcome.json", NEWER, blob.version)
    heard = Heard()
    shown = page(records_in(store), None, None, heard)
    assert [operation.id for operation in shown.operations] == [ids[2], ids[0]]
    assert shown.newer
    assert len(heard.lines) == 1
    assert f"{ids[1]}/outcome.json was written by a newer tfguard" in heard.lines[0]
    assert not page(records_in(store), 1, None, heard).newer


def test_a_newer_chain_is_said_aloud_and_does_not_hide_the_operations(tmp_path: Any, clock: MovedClock) -> None:
    store = LocalStore(tmp_path)
    ids = filled(store, clock, 3)
    archive_closed(records_in(store, clock), clock, NOTHING)
    blob = store.read("archive/chain.json")
    assert blob is not None
    store.replace("archive/chain.json", blob.data.replace(b"/v1", b"/v9"), blob.version)
    heard = Heard()
    shown = page(records_in(store), None, None, heard)
    assert [operation.id for operation in shown.operations] == ids[::-1]
    assert shown.newer
    assert "archive/chain.json was written by a newer tfguard" in heard.lines[0]


def test_a_month_is_not_read_again_for_every_operation_that_is_not_in_it(tmp_path: Any, clock: MovedClock) -> None:
    inner = LocalStore(tmp_path)
    ids = filled(inner, clock, 6, apart=DAY)
    archive_closed(records_in(inner, clock), clock, 5 * DAY)
    for operation_id in ids[2:]:
        trail = f"operations/{operation_id}/transitions.jsonl"
        inner.remove(trail, inner.read_journal(trail))  # as an early version left it
    asked: list[str] = []

    class Noting:
        """A store that notes which documents are read."""

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        def read(self, name: str) -> Blob | None:
            asked.append(name)
            return inner.read(name)

    records = records_in(Noting())  # type: ignore[arg-type]
    for operation_id in ids:
        records.transitions(operation_id)
    assert asked.count("archive/2025-01.jsonl.gz") == 1


def test_the_history_says_when_a_month_has_lost_some_of_its_entries(tmp_path: Any, clock: MovedClock) -> None:
    store = LocalStore(tmp_path)
    ids = filled(store, clock, 3, apart=DAY)
    assert archive_closed(records_in(store, clock), clock, NOTHING).packed == ids[:2]
    (name,) = [name for name in store.names("archive") if name.endswith(".gz")]
    blob = store.read(name)
    assert blob is not None
    first, _ = gzip.decompress(blob.data).splitlines(keepends=True)
    store.replace(name, gzip.compress(first), blob.version)

    heard = Heard()
    shown = page(records_in(store), None, None, heard)
    assert [operation.id for operation in shown.operations] == [ids[2], ids[0]]
    assert [line.partition(" holds ")[2] for line in heard.lines] == ["1 of the 2 entries that were packed"]
