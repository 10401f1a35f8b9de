"""Closed operations in the archive: everything of them is still read, on every kind of store."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from packed import RESCUED, Heard, MovedClock, filled, intent, orphaned, records_in, result, run, told

from fixtures.record_servers import MakeStore
from tfguard.errors import CorruptRecordError, UsageError
from tfguard.flows.archive_check import check_archive
from tfguard.flows.archiving import archive_closed
from tfguard.flows.history import find_operation, findings, page
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import Outcome
from tfguard.ports import RecordStore

DAY = timedelta(days=1)
NOTHING = timedelta(0)


@pytest.fixture(params=["local", "s3"])
def make_store(request: pytest.FixtureRequest) -> MakeStore:
    """Opens the same empty place once more, as another process would."""
    place: MakeStore = request.getfixturevalue(f"{request.param}_place")
    return place


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def store(local_place: MakeStore) -> RecordStore:
    return local_place()


class Counting:
    """A store that notes what it is asked for."""

    def __init__(self, inner: RecordStore) -> None:
        self._inner = inner
        self.asked: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> object:
        method = getattr(self._inner, name)
        if not callable(method):
            return method

        def call(*arguments: object) -> object:
            self.asked.append((name, str(arguments[0]) if arguments else ""))
            return method(*arguments)

        return call


@pytest.mark.parametrize("make_store", ["local", "s3", "gcs", "azblob", "postgres"], indirect=True)
def test_what_is_archived_is_told_as_before(make_store: MakeStore, clock: MovedClock) -> None:
    ids = filled(make_store(), clock, 5)
    before = told(records_in(make_store()), ids)
    done = archive_closed(records_in(make_store(), clock), clock, 30 * DAY)
    assert (done.packed, done.left, done.flaws) == (ids[:3], [], [])
    assert records_in(make_store()).operation_ids() == tuple(ids[3:])
    assert told(records_in(make_store()), ids) == before
    assert before[3].rescued == RESCUED

    done = archive_closed(records_in(make_store(), clock), clock, NOTHING)
    assert done.packed == ids[3:4]
    assert records_in(make_store()).operation_ids() == (ids[4],)
    assert told(records_in(make_store()), ids) == before
    checked = check_archive(make_store(), [done.head])
    assert checked.flaws == ()
    assert [(month.month, month.entries) for month in checked.months] == [("2025-01", 2), ("2025-02", 2)]


def test_nothing_of_what_was_removed_is_left_and_nothing_else_is_touched(
    make_store: MakeStore, clock: MovedClock
) -> None:
    ids = filled(make_store(), clock, 4)
    kept = [name for name in make_store().names("") if ids[3] in name or name == "head.json"]
    archive_closed(records_in(make_store(), clock), clock, NOTHING)
    months = ["archive/2025-01.jsonl.gz", "archive/2025-02.jsonl.gz"]
    assert list(make_store().names("")) == sorted([*kept, "archive/chain.json", *months])


def test_every_byte_of_every_document_is_in_the_archive(store: RecordStore, clock: MovedClock) -> None:
    ids = filled(store, clock, 3)
    documents = {}
    for name in store.names(f"operations/{ids[1]}"):
        blob = store.read(name)
        assert blob is not None
        documents[name.removeprefix(f"operations/{ids[1]}/")] = blob.data
    assert {"intent.json", "outcome.json", "events.jsonl", "rescued/errored.tfstate"} <= documents.keys()
    archive_closed(records_in(store, clock), clock, NOTHING)
    assert records_in(store).archive.contents(ids[1]) == documents


def test_the_archive_is_lines_of_json_in_one_gzip_object_a_month(store: RecordStore, clock: MovedClock) -> None:
    ids = filled(store, clock, 5, apart=DAY)
    archive_closed(records_in(store, clock), clock, 3 * DAY)
    archive_closed(records_in(store, clock), clock, NOTHING)
    blob = store.read("archive/2025-01.jsonl.gz")
    assert blob is not None
    lines = [json.loads(line) for line in gzip.decompress(blob.data).splitlines()]
    assert [line["operation_id"] for line in lines] == ids[:4]
    assert [line["number"] for line in lines] == [1, 2, 3, 4]
    assert [line["previous"] for line in lines] == ["", *(line["hash"] for line in lines[:3])]
    assert {line["schema"] for line in lines} == {"tfguard.archive/v1"}


def test_the_first_entry_of_a_month_links_to_the_month_before_as_it_was_then(
    store: RecordStore, clock: MovedClock
) -> None:
    records = records_in(store, clock)
    late = run(records, clock, Outcome.UNKNOWN)
    first = run(records, clock)
    clock.time += 40 * DAY
    second, last = run(records, clock), run(records, clock)
    archive_closed(records, clock, NOTHING)
    records.finish(result(late, clock.now(), Outcome.ABSENT), records.operation(late).result)
    archive_closed(records, clock, NOTHING)
    archive = records_in(store).archive
    january, march = archive.load("2025-01"), archive.load("2025-03")
    assert list(january.places) == [first, late]
    assert list(march.places) == [second]
    assert archive.entry(march, 0).previous == archive.entry(january, 0).hash
    assert archive.entry(january, 1).previous == archive.entry(january, 0).hash
    assert check_archive(store, [january.last, march.last]).flaws == ()
    assert records.operation_ids() == (last,)


def test_what_is_open_current_held_or_young_stays(store: RecordStore, clock: MovedClock) -> None:
    records = records_in(store, clock)
    opened = run(records, clock, Outcome.ORPHANED, **orphaned())
    clock.time += 40 * DAY
    young, current = run(records, clock), run(records, clock)
    records.claim("01HELD", None)
    clock.time += DAY
    done = archive_closed(records, clock, 30 * DAY)
    assert (done.packed, done.left) == ([], [])
    assert records.operation_ids() == tuple(sorted([opened, young, current]))
    assert list(store.names("archive")) == []
    assert archive_closed(records, clock, NOTHING).packed == [young]


@pytest.mark.parametrize("document", ["intent.json", "outcome.json", "events.jsonl", "transitions.jsonl"])
@pytest.mark.parametrize("damage", [b'{"v": 1}\n', b'{"schema": "tfguard.NAME/v9", "v": 9}\n'])
def test_a_damaged_or_newer_record_stays_and_is_named(
    store: RecordStore, clock: MovedClock, document: str, damage: bytes
) -> None:
    ids = filled(store, clock, 4)
    name = f"operations/{ids[1]}/{document}"
    blob = store.read(name)
    assert blob is not None
    store.replace(name, damage.replace(b"NAME", document.removesuffix(".json").encode()), blob.version)
    done = archive_closed(records_in(store, clock), clock, NOTHING)
    assert done.packed == [ids[0], ids[2]]
    assert [left.operation_id for left in done.left] == [ids[1]]
    assert f"{ids[1]}/{document}" in done.left[0].why
    assert ids[1] in records_in(store).operation_ids()


def test_what_has_no_id_of_ours_stays_and_is_named(store: RecordStore, clock: MovedClock) -> None:
    ids = filled(store, clock, 2)
    store.create("operations/by-hand/intent.json", b"{}")
    done = archive_closed(records_in(store, clock), clock, NOTHING)
    assert done.packed == ids[:1]
    assert [(left.operation_id, "no operation's id" in left.why) for left in done.left] == [("by-hand", True)]


def test_an_operation_that_is_written_again_after_it_was_packed_counts_as_it_is_then(
    store: RecordStore, clock: MovedClock
) -> None:
    ids = filled(store, clock, 2)
    archive_closed(records_in(store, clock), clock, NOTHING)
    before = records_in(store).operation(ids[0])
    assert before.result is not None
    # A run that was taken for dead, and settled, writes what it knows when it ends after all.
    awake = records_in(store, clock)
    late = replace(before.result, notes=("it still ran",))
    awake.write_outcome(late, None)
    assert records_in(store).operation(ids[0]) == replace(before, result=late)
    done = archive_closed(records_in(store, clock), clock, NOTHING)
    assert (done.packed, done.left) == (ids[:1], [])
    assert records_in(store).operation(ids[0]) == replace(before, result=late)
    assert [month.entries for month in check_archive(store, []).months] == [2]


def test_an_operation_that_is_opened_again_after_it_was_packed_is_read_and_settled(
    store: RecordStore, clock: MovedClock
) -> None:
    ids = filled(store, clock, 2)
    archive_closed(records_in(store, clock), clock, NOTHING)
    records_in(store, clock).finish(result(ids[0], clock.now(), Outcome.UNKNOWN), None)
    records = records_in(store, clock)
    (opened,) = records.open_operations()
    assert (opened.id, opened.open, opened.intent.command) == (ids[0], True, "apply")
    assert archive_closed(records, clock, NOTHING).packed == []
    records.finish(result(ids[0], clock.now(), Outcome.ABSENT), opened.result)
    assert archive_closed(records, clock, NOTHING).packed == [ids[0]]
    closed = records_in(store).operation(ids[0])
    assert (closed.open, closed.steps[0].outcome) == (False, Outcome.ABSENT)


def test_a_second_run_finds_nothing_to_do_and_changes_nothing(store: RecordStore, clock: MovedClock) -> None:
    filled(store, clock, 4)
    first = archive_closed(records_in(store, clock), clock, NOTHING)
    names = [name for name in store.names("") if name.startswith("archive")]
    before = [store.read(name) for name in names]
    second = archive_closed(records_in(store, clock), clock, NOTHING)
    assert (second.packed, second.left, second.head) == ([], [], first.head)
    assert [store.read(name) for name in names] == before


def test_history_pages_through_record_and_archive(store: RecordStore, clock: MovedClock) -> None:
    ids = filled(store, clock, 9)
    archive_closed(records_in(store, clock), clock, 35 * DAY)
    heard = Heard()
    seen: list[str] = []
    before: str | None = None
    for _ in range(5):
        shown = page(records_in(store), 2, before, heard)
        seen += [operation.id for operation in shown.operations]
        before = shown.next
    assert (seen, before, heard.lines) == (ids[::-1], None, [])
    whole = page(records_in(store), None, None, heard)
    assert ([operation.id for operation in whole.operations], whole.next) == (ids[::-1], None)
    assert page(records_in(store), 9, None, heard) == whole


def test_an_old_operation_that_stayed_is_in_its_place_in_the_history(store: RecordStore, clock: MovedClock) -> None:
    records = records_in(store, clock)
    ids = [run(records, clock)]
    ids.append(run(records, clock, Outcome.ORPHANED, **orphaned()))
    clock.time += 40 * DAY
    ids += filled(store, clock, 3)
    archive_closed(records_in(store, clock), clock, NOTHING)
    assert [operation.id for operation in page(records_in(store), None, None, Heard()).operations] == sorted(ids)[::-1]
    assert [operation.id for operation in page(records_in(store), 2, sorted(ids)[2], Heard()).operations] == (
        sorted(ids)[1::-1]
    )


def test_a_page_comes_before_an_operation_that_there_is(store: RecordStore, clock: MovedClock) -> None:
    ids = filled(store, clock, 9)
    archive_closed(records_in(store, clock), clock, 35 * DAY)
    for chosen in (ids[-1], ids[1]):
        in_full = page(records_in(store), 2, chosen, Heard())
        assert in_full.operations
        assert page(records_in(store), 2, chosen.lower(), Heard()) == in_full
    for unknown in ("nonsense", "0" * 26, ids[0] + "0"):
        with pytest.raises(UsageError, match=rf"no operation at .* begins {unknown}"):
            page(records_in(store), 2, unknown, Heard())


def test_a_page_before_an_operation_is_shown_where_the_archives_chain_is_damaged(
    store: RecordStore, clock: MovedClock
) -> None:
    ids = filled(store, clock, 9)
    archive_closed(records_in(store, clock), clock, 35 * DAY)
    blob = store.read("archive/chain.json")
    assert blob is not None
    store.replace("archive/chain.json", b"{", blob.version)
    heard = Heard()
    assert [operation.id for operation in page(records_in(store), None, ids[1], heard).operations] == ids[:1]
    assert heard.lines


def test_only_the_months_that_a_page_needs_are_read(store: RecordStore, clock: MovedClock) -> None:
    ids = filled(store, clock, 9)
    archive_closed(records_in(store, clock), clock, 35 * DAY)
    watched = Counting(store)
    page(records_in(watched), 2, None, Heard())  # type: ignore[arg-type]
    assert not [name for call, name in watched.asked if name.endswith(".gz")]
    page(records_in(watched), 4, None, Heard())  # type: ignore[arg-type]
    read = [name for call, name in watched.asked if name.endswith(".gz")]
    assert read == ["archive/2025-03.jsonl.gz"]
    records_in(watched).operation(ids[0])  # type: ignore[arg-type]
    assert [name for call, name in watched.asked if name.endswith(".gz")] == [*read, "archive/2025-01.jsonl.gz"]


def test_what_needs_no_archived_operation_neither_lists_nor_reads_the_archive(
    store: RecordStore, clock: MovedClock
) -> None:
    filled(store, clock, 4)
    archive_closed(records_in(store, clock), clock, NOTHING)
    watched = Counting(store)
    records = records_in(watched, clock)  # type: ignore[arg-type]
    records.operation(records.head().current or "")
    records.live_operation()
    records.open_operations()
    records.operation_ids()
    records.dispositions()
    at = clock.now()
    operation_id = new_operation_id(at)
    records.claim(operation_id, None)
    records.begin(intent(operation_id, at), ())
    assert records.operation(operation_id).open
    first = result(operation_id, at, Outcome.UNKNOWN)
    records.write_outcome(first, None)
    records.finish(result(operation_id, at, Outcome.RECORDED), first)
    assert [asked for asked in watched.asked if asked[1].startswith("archive")] == []


def test_an_archived_operation_is_found_by_how_its_id_begins(store: RecordStore, clock: MovedClock) -> None:
    ids = filled(store, clock, 4)
    archive_closed(records_in(store, clock), clock, NOTHING)
    records = records_in(store)
    assert find_operation(records, ids[0]).id == ids[0]
    assert find_operation(records, ids[1][:12]).id == ids[1]
    assert find_operation(records, ids[3][:2]).id == ids[3]  # what was not packed away comes first
    assert [name[:4] for name in ids] == ["01JJ", "01JJ", "01JK", "01JM"]
    for nothing in ("01JZZZZZ", "il", "8", ids[0] + "0"):
        with pytest.raises(UsageError, match="no operation"):
            find_operation(records, nothing)
    with pytest.raises(UsageError, match="2 operations"):
        find_operation(records, "01JJ")


def test_a_finding_of_an_archived_operation_that_was_kept_on_purpose_is_still_told(
    store: RecordStore, clock: MovedClock
) -> None:
    records = records_in(store, clock)
    at = clock.now()
    kept = run(records, clock, Outcome.ORPHANED, **orphaned(), disposition="retain")
    records.decide([Disposition("o-1", DispositionKind.RETAIN, at, "me@here", "still needed", kept)])
    clock.time += 40 * DAY
    run(records, clock)
    assert archive_closed(records, clock, DAY).packed == [kept]
    found, coverage = findings(records_in(store))
    assert coverage.complete
    assert [(one.id, one.operation_id, one.disposition and one.disposition.reason) for one in found] == [
        ("o-1", kept, "still needed")
    ]


def test_a_month_that_cannot_be_read_is_told_and_never_taken_for_empty(store: RecordStore, clock: MovedClock) -> None:
    records = records_in(store, clock)
    kept = run(records, clock, Outcome.ORPHANED, **orphaned(), disposition="retain")
    records.decide([Disposition("o-1", DispositionKind.RETAIN, clock.now(), "me@here", "still needed", kept)])
    clock.time += 20 * DAY
    rest = filled(store, clock, 3)
    archive_closed(records, clock, NOTHING)
    blob = store.read("archive/2025-01.jsonl.gz")
    assert blob is not None
    store.replace("archive/2025-01.jsonl.gz", blob.data[:-20], blob.version)
    for records in (records_in(store), records_in(store)):
        with pytest.raises(CorruptRecordError, match=r"2025-01\.jsonl\.gz cannot be unpacked"):
            records.operation(kept)
    heard = Heard()
    shown = page(records_in(store), None, None, heard)
    assert [operation.id for operation in shown.operations] == rest[::-1]
    assert "2025-01.jsonl.gz cannot be unpacked" in heard.lines[0]
    found, coverage = findings(records_in(store))
    assert (found, coverage.complete) == ((), False)
    assert "2025-01.jsonl.gz" in coverage.gaps[-1].reason

    store.move_aside("archive/2025-01.jsonl.gz")
    with pytest.raises(CorruptRecordError, match=r"2025-01\.jsonl\.gz is missing"):
        records_in(store).operation(kept)
    heard = Heard()
    page(records_in(store), None, None, heard)
    assert "2025-01.jsonl.gz is missing" in heard.lines[0]


def test_a_damaged_month_is_not_added_to_and_the_others_are(store: RecordStore, clock: MovedClock) -> None:
    records = records_in(store, clock)
    first = run(records, clock)
    clock.time += DAY
    second = run(records, clock)
    archive_closed(records, clock, NOTHING)
    clock.time += 30 * DAY
    third, _ = run(records, clock), run(records, clock)
    blob = store.read("archive/2025-01.jsonl.gz")
    assert blob is not None
    lines = gzip.decompress(blob.data).replace(b"apply", b"imply")
    damaged = gzip.compress(lines, mtime=0)
    store.replace("archive/2025-01.jsonl.gz", damaged, blob.version)
    done = archive_closed(records, clock, NOTHING)
    assert done.packed == [third]
    assert [("2025-01" in flaw.where, "was changed" in flaw.what) for flaw in done.flaws] == [(True, True)]
    after = store.read("archive/2025-01.jsonl.gz")
    assert after is not None and after.data == damaged
    assert second in records.operation_ids() and first not in records.operation_ids()


def test_without_its_chain_an_archive_is_not_added_to(store: RecordStore, clock: MovedClock) -> None:
    filled(store, clock, 5)
    archive_closed(records_in(store, clock), clock, 25 * DAY)
    blob = store.read("archive/chain.json")
    assert blob is not None
    store.remove("archive/chain.json", blob.data)
    done = archive_closed(records_in(store, clock), clock, NOTHING)
    assert done.packed == []
    assert "chain.json is missing" in done.flaws[0].what
    assert store.read("archive/chain.json") is None


def test_an_interrupt_ends_it_between_two_operations(store: RecordStore, clock: MovedClock) -> None:
    ids = filled(store, clock, 4)
    before = told(records_in(store), ids)

    class Interrupting(Counting):
        def __getattr__(self, name: str) -> object:
            clock.interrupted = clock.interrupted or name == "remove"
            return super().__getattr__(name)

    archive_closed(records_in(Interrupting(store), clock), clock, NOTHING)  # type: ignore[arg-type]
    assert len(records_in(store).operation_ids()) == 3
    assert told(records_in(store), ids) == before
    clock.interrupted = False
    assert len(archive_closed(records_in(store, clock), clock, NOTHING).packed) == 2
    assert told(records_in(store), ids) == before


def test_a_head_that_is_made_anew_knows_nothing_of_what_was_packed(store: RecordStore, clock: MovedClock) -> None:
    ids = filled(store, clock, 4)
    archive_closed(records_in(store, clock), clock, NOTHING)
    blob = store.read("head.json")
    assert blob is not None
    store.replace("head.json", b"{", blob.version)
    records = records_in(store, clock)
    records.rebuild_head(Heard())
    assert (records.head().current, records.head().open_operations) == (ids[3], ())
