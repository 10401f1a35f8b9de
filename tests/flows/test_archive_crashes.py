"""An archive run that dies at any write loses nothing, nor do two at once, and the next one ends what was begun."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from packed import FailingStore, Heard, MovedClock, PowerCutError, Told, filled, records_in, run, told

from tfguard.errors import RecordError
from tfguard.flows.archive_check import check_archive
from tfguard.flows.archiving import archive_closed
from tfguard.flows.history import page
from tfguard.ports import Blob, RecordStore
from tfguard.schemas.records import encode_intent, encode_journal
from tfguard.stores.local import LocalStore

DAY = timedelta(days=1)
NOTHING = timedelta(0)
MOST_WRITES = 60


def assert_nothing_lost(store: RecordStore, ids: Sequence[str], before: Sequence[Told]) -> None:
    """Every operation is told as it was, once, and none is open."""
    assert told(records_in(store), ids) == before
    heard = Heard()
    shown = page(records_in(store), None, None, heard)
    assert ([operation.id for operation in shown.operations], heard.lines) == (list(ids)[::-1], [])
    assert not any(operation.open for operation in shown.operations)
    assert check_archive(store, []).flaws == ()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("error", [RecordError("the disk is full", "free some"), PowerCutError()], ids=["error", "cut"])
def test_dying_at_any_write_loses_nothing_and_the_next_run_ends_it(
    tmp_path: Path, after: bool, error: BaseException
) -> None:
    died = 0
    for number in range(1, MOST_WRITES):
        store, clock = LocalStore(tmp_path / str(number)), MovedClock()
        ids = filled(store, clock, 4)
        before = told(records_in(store), ids)
        failing = FailingStore(store, number, after=after, error=error)
        try:
            archive_closed(records_in(failing, clock), clock, NOTHING)  # type: ignore[arg-type]
        except (RecordError, PowerCutError):
            died += 1
        if not failing.reached:
            break
        assert_nothing_lost(store, ids, before)
        done = archive_closed(records_in(store, clock), clock, NOTHING)
        assert (done.left, done.flaws) == ([], [])
        assert records_in(store).operation_ids() == (ids[3],)
        assert_nothing_lost(store, ids, before)
        assert sum(month.entries for month in check_archive(store, []).months) == 3
    else:
        pytest.fail("more writes than were expected")
    assert died > 10


@pytest.mark.parametrize("number", range(1, 9))
def test_dying_twice_in_a_row_loses_nothing(tmp_path: Path, number: int) -> None:
    store, clock = LocalStore(tmp_path), MovedClock()
    ids = filled(store, clock, 4)
    before = told(records_in(store), ids)
    for again in (number, 2):
        failing = FailingStore(store, again, after=True, error=PowerCutError())
        with pytest.raises(PowerCutError):
            archive_closed(records_in(failing, clock), clock, NOTHING)  # type: ignore[arg-type]
        assert_nothing_lost(store, ids, before)
    archive_closed(records_in(store, clock), clock, NOTHING)
    assert_nothing_lost(store, ids, before)
    assert sum(month.entries for month in check_archive(store, []).months) == 3


def test_a_head_that_is_made_anew_beside_a_removal_that_was_cut_short_opens_nothing(tmp_path: Path) -> None:
    for number in range(4, 12):
        store, clock = LocalStore(tmp_path / str(number)), MovedClock()
        ids = filled(store, clock, 3)
        failing = FailingStore(store, number, after=True, error=PowerCutError())
        with pytest.raises(PowerCutError):
            archive_closed(records_in(failing, clock), clock, NOTHING)  # type: ignore[arg-type]
        blob = store.read("head.json")
        assert blob is not None
        store.replace("head.json", b"{", blob.version)
        records = records_in(store, clock)
        records.rebuild_head(Heard())
        assert (records.head().current, records.head().open_operations) == (ids[2], ())


def test_a_journal_that_lay_in_parts_and_was_removed_in_part_is_known_and_removed(s3_place: Any) -> None:
    clock = MovedClock()
    ids = filled(s3_place(), clock, 2)
    before = told(records_in(s3_place()), ids)
    archive_closed(records_in(s3_place(), clock), clock, NOTHING)
    # As it is when the run dies between two parts: the outcome and the first part are gone.
    events = before[0].operation.journal
    assert len(events) == 2
    s3_place().create(f"operations/{ids[0]}/intent.json", encode_intent(before[0].operation.intent))
    s3_place().append(f"operations/{ids[0]}/events.jsonl", encode_journal(events[1:]))
    assert told(records_in(s3_place()), ids) == before
    done = archive_closed(records_in(s3_place(), clock), clock, NOTHING)
    assert (done.packed, done.left) == (ids[:1], [])
    assert told(records_in(s3_place()), ids) == before
    assert records_in(s3_place()).operation_ids() == (ids[1],)


def test_what_is_not_read_back_as_it_was_written_is_not_removed(tmp_path: Path) -> None:
    store, clock = LocalStore(tmp_path), MovedClock()
    ids = filled(store, clock, 3)

    class Losing:
        """A store that says it wrote, and did not."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def replace(self, name: str, data: bytes, expected: str | None) -> None:
            store.replace(name, data[:-9] if name.endswith(".gz") else data, expected)

    done = archive_closed(records_in(Losing(), clock), clock, NOTHING)  # type: ignore[arg-type]
    assert done.packed == []
    assert done.flaws
    assert records_in(store).operation_ids() == tuple(ids)


class Meeting:
    """A store whose writes to the archive wait until everybody has read it."""

    def __init__(self, inner: RecordStore, meet: threading.Barrier) -> None:
        self._inner = inner
        self._meet = meet
        self._met = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def replace(self, name: str, data: bytes, expected: str | None) -> None:
        if name.endswith(".gz") and not self._met:
            self._met = True
            self._meet.wait(60)
        self._inner.replace(name, data, expected)

    def read(self, name: str) -> Blob | None:
        return self._inner.read(name)


@pytest.mark.parametrize("kind", ["local", "s3"])
def test_two_runs_at_once_lose_nothing_and_write_nothing_twice(request: pytest.FixtureRequest, kind: str) -> None:
    place = request.getfixturevalue(f"{kind}_place")
    clock = MovedClock()
    ids = filled(place(), clock, 3, apart=DAY)
    before = told(records_in(place()), ids)
    meet = threading.Barrier(2)

    def once(_: int) -> list[str]:
        done = archive_closed(records_in(Meeting(place(), meet), clock), clock, NOTHING)  # type: ignore[arg-type]
        assert done.flaws == []
        return [*done.packed, *(left.operation_id for left in done.left)]

    with ThreadPoolExecutor(2) as pool:
        told_of = list(pool.map(once, range(2)))
    assert {name for names in told_of for name in names} == set(ids[:2])
    assert_nothing_lost(place(), ids, before)
    assert records_in(place()).operation_ids() == (ids[2],)
    assert [month.entries for month in check_archive(place(), []).months] == [2]


def test_many_runs_beside_applies_lose_nothing_and_write_nothing_twice(tmp_path: Path) -> None:
    clock = MovedClock()
    store = LocalStore(tmp_path)
    ids = filled(store, clock, 6, apart=DAY)

    def archives(_: int) -> None:
        for _ in range(3):
            archive_closed(records_in(LocalStore(tmp_path), clock), clock, NOTHING)

    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(archives, number) for number in range(3)]
        records = records_in(LocalStore(tmp_path), clock)
        ids += [run(records, clock) for _ in range(5)]
        for one in waiting:
            one.result(120)
    archive_closed(records_in(store, clock), clock, NOTHING)
    ids.sort()
    assert [operation.id for operation in page(records_in(store), None, None, Heard()).operations] == ids[::-1]
    assert check_archive(store, []).flaws == ()
    archive = records_in(store).archive
    lines = [
        archive.entry(month, place).operation_id
        for month in map(archive.load, archive.objects())
        for place in range(len(month.lines))
    ]
    assert {count for count in Counter(lines).values()} == {1}
    assert len(lines) == len(ids) - 1
