"""One contract for every place where records can lie."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from fixtures.record_servers import MakeStore
from tfguard.errors import ConflictError, RecordError
from tfguard.ports import RecordStore
from tfguard.stores.local import LocalStore

STORES = ["local", "s3", "gcs", "azblob", "postgres"]
"""Each has a fixture `<name>_place` in fixtures/record_servers.py."""


@pytest.fixture(params=STORES)
def make_store(request: pytest.FixtureRequest) -> MakeStore:
    """Opens the same empty place once more, as another process would."""
    place: MakeStore = request.getfixturevalue(f"{request.param}_place")
    return place


@pytest.fixture
def store(make_store: MakeStore) -> RecordStore:
    return make_store()


def test_a_document_that_is_missing_is_none(store: RecordStore) -> None:
    assert store.read("head.json") is None
    assert store.read("operations/1/intent.json") is None
    assert store.read_journal("operations/1/events.jsonl") == b""
    assert list(store.names("")) == []
    assert list(store.names("operations")) == []


def test_what_was_created_is_read_back_byte_for_byte(store: RecordStore, make_store: MakeStore) -> None:
    data = bytes(range(256)) * 300
    store.create("operations/1/intent.json", data)
    blob = make_store().read("operations/1/intent.json")
    assert blob is not None
    assert blob.data == data


def test_an_empty_document_is_not_a_missing_one(store: RecordStore) -> None:
    store.create("head.json", b"")
    blob = store.read("head.json")
    assert blob is not None
    assert blob.data == b""


def test_creating_twice_conflicts_and_keeps_the_first(store: RecordStore, make_store: MakeStore) -> None:
    store.create("head.json", b"first")
    with pytest.raises(ConflictError):
        make_store().create("head.json", b"second")
    with pytest.raises(ConflictError):
        make_store().replace("head.json", b"second", None)
    assert _read(store, "head.json") == b"first"


def test_creating_the_same_content_twice_conflicts_too(store: RecordStore, make_store: MakeStore) -> None:
    store.create("head.json", b"same")
    with pytest.raises(ConflictError):
        make_store().create("head.json", b"same")


def test_replacing_with_the_current_version_succeeds(store: RecordStore) -> None:
    store.replace("head.json", b"1", None)
    for content in (b"2", b"3"):
        blob = store.read("head.json")
        assert blob is not None
        store.replace("head.json", content, blob.version)
    assert _read(store, "head.json") == b"3"


def test_replacing_a_stale_version_conflicts_and_changes_nothing(store: RecordStore, make_store: MakeStore) -> None:
    store.create("head.json", b"1")
    stale = store.read("head.json")
    assert stale is not None
    make_store().replace("head.json", b"2", stale.version)
    with pytest.raises(ConflictError):
        store.replace("head.json", b"3", stale.version)
    assert _read(store, "head.json") == b"2"


def test_replacing_what_is_gone_conflicts(store: RecordStore) -> None:
    store.create("head.json", b"1")
    blob = store.read("head.json")
    assert blob is not None
    store.move_aside("head.json")
    with pytest.raises(ConflictError):
        store.replace("head.json", b"2", blob.version)
    assert store.read("head.json") is None


def test_of_writers_that_race_to_create_exactly_one_wins(make_store: MakeStore) -> None:
    for round_number in range(3):
        name = f"operations/{round_number}/intent.json"
        won = _race(lambda n, name=name: make_store().create(name, b"by %d" % n))  # type: ignore[misc]
        assert len(won) == 1
        assert _read(make_store(), name) == b"by %d" % won[0]


def test_of_writers_that_race_to_replace_exactly_one_wins(make_store: MakeStore) -> None:
    make_store().create("head.json", b"start")
    for _ in range(3):
        before = make_store().read("head.json")
        assert before is not None
        version = before.version
        won = _race(lambda n, v=version: make_store().replace("head.json", v.encode() + b" by %d" % n, v))  # type: ignore[misc]
        assert len(won) == 1
        assert _read(make_store(), "head.json") == version.encode() + b" by %d" % won[0]


def test_a_journal_keeps_its_order_across_writers(make_store: MakeStore) -> None:
    lines = [b'{"n":%d}\n' % n for n in range(25)]
    first, second = make_store(), make_store()
    for line in lines[:12]:
        first.append("operations/1/events.jsonl", line)
    for line in lines[12:14]:
        second.append("operations/1/events.jsonl", line)
    for line in lines[14:]:
        first.append("operations/1/events.jsonl", line)
    assert make_store().read_journal("operations/1/events.jsonl") == b"".join(lines)


def test_appending_nothing_writes_nothing(store: RecordStore) -> None:
    store.append("events.jsonl", b"")
    assert list(store.names("")) == []


def test_writers_that_append_at_once_lose_no_line(make_store: MakeStore) -> None:
    def write(n: int) -> None:
        store = make_store()
        for k in range(4):
            store.append("dispositions.jsonl", b"%d-%d\n" % (n, k))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    lines = make_store().read_journal("dispositions.jsonl").split()
    assert sorted(lines) == sorted(b"%d-%d" % (n, k) for n in range(4) for k in range(4))
    for n in range(4):
        assert [line for line in lines if line.startswith(b"%d-" % n)] == [b"%d-%d" % (n, k) for k in range(4)]


def test_names_are_sorted_and_tell_documents_and_journals_alike(store: RecordStore) -> None:
    store.create("head.json", b"{}")
    store.create("operations/2/intent.json", b"{}")
    store.create("operations/1/intent.json", b"{}")
    store.create("operations/1/rescued/.terraform.tfstate.lock.info", b"{}")
    store.create("operations-old/1.json", b"{}")
    for n in range(3):
        store.append("operations/1/events.jsonl", b"%d\n" % n)
    below = [
        "operations/1/events.jsonl",
        "operations/1/intent.json",
        "operations/1/rescued/.terraform.tfstate.lock.info",
        "operations/2/intent.json",
    ]
    assert list(store.names("operations")) == below
    assert list(store.names("operations/2")) == ["operations/2/intent.json"]
    assert list(store.names("")) == sorted(["head.json", "operations-old/1.json", *below])
    assert list(store.names("head.json")) == []


def test_moving_aside_keeps_every_version_under_a_name_of_its_own(store: RecordStore) -> None:
    for n in (1, 2, 3):
        store.create("head.json", b"bad %d" % n)
        assert store.move_aside("head.json") == f"head.json.unreadable-{n}"
        assert store.read("head.json") is None
    assert [_read(store, f"head.json.unreadable-{n}") for n in (1, 2, 3)] == [b"bad 1", b"bad 2", b"bad 3"]


def test_a_journal_that_was_moved_aside_is_whole_and_a_new_one_begins(store: RecordStore) -> None:
    for n in range(3):
        store.append("events.jsonl", b"%d\n" % n)
    aside = store.move_aside("events.jsonl")
    store.append("events.jsonl", b"new\n")
    assert store.read_journal(aside) == b"0\n1\n2\n"
    assert store.read_journal("events.jsonl") == b"new\n"


def test_moving_aside_what_is_gone_conflicts(store: RecordStore) -> None:
    with pytest.raises(ConflictError):
        store.move_aside("head.json")


@pytest.mark.parametrize("name", ["../head.json", "/etc/passwd", "a/../../b", "a//b", ".", "a/", "", "a\0b", "a\nb"])
def test_a_name_that_leads_out_of_the_store_is_refused(store: RecordStore, name: str) -> None:
    for use in (store.read, store.read_journal, store.move_aside):
        with pytest.raises(RecordError):
            use(name)
    for write in (store.create, store.append):
        with pytest.raises(RecordError):
            write(name, b"x")
    with pytest.raises(RecordError):
        store.replace(name, b"x", None)


def test_the_stores_own_names_cannot_be_taken(store: RecordStore) -> None:
    with pytest.raises(RecordError):
        store.create(".tfguard-lock", b"x")


def test_the_location_names_the_place_and_no_credential(store: RecordStore) -> None:
    assert store.location.endswith("terraform.tfstate.tfguard")
    assert "testing" not in store.location


def test_local_files_and_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "records"
    store = LocalStore(folder)
    store.create("operations/1/intent.json", b"{}")
    store.append("operations/1/events.jsonl", b"{}\n")
    store.replace("head.json", b"{}", None)
    for path in (tmp_path / "deep", folder, *folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_of_processes_that_race_for_a_local_head_exactly_one_wins(tmp_path: Path) -> None:
    LocalStore(tmp_path).create("head.json", b"start")
    blob = LocalStore(tmp_path).read("head.json")
    assert blob is not None
    script = (
        "import sys, pathlib\n"
        "from tfguard.errors import ConflictError\n"
        "from tfguard.stores.local import LocalStore\n"
        "store = LocalStore(pathlib.Path(sys.argv[1]))\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "try: store.replace('head.json', sys.argv[3].encode(), sys.argv[2]); print('won')\n"
        "except ConflictError: print('lost')\n"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path), blob.version, f"by {n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate(timeout=60)[0].strip() for racer in racers]
    assert sorted(answers) == ["lost", "lost", "lost", "won"]
    assert _read(LocalStore(tmp_path), "head.json") == b"by %d" % answers.index("won")


def _read(store: RecordStore, name: str) -> bytes:
    blob = store.read(name)
    assert blob is not None
    return blob.data


def _race(write: Callable[[int], None], racers: int = 4) -> list[int]:
    """Let all write at once; those that did not get a `ConflictError`."""
    start = threading.Barrier(racers)

    def run(n: int) -> int | None:
        start.wait()
        try:
            write(n)
        except ConflictError:
            return None
        return n

    with ThreadPoolExecutor(racers) as pool:
        return [n for n in pool.map(run, range(racers)) if n is not None]


def test_what_is_removed_is_gone_and_nothing_else(store: RecordStore) -> None:
    store.create("a/head.json", b"1")
    store.append("a/events.jsonl", b"1\n")
    store.append("a/events.jsonl", b"2\n")
    store.create("a/other", b"3")
    store.remove("a/head.json", b"1")
    store.remove("a/events.jsonl", b"1\n2\n")
    store.remove("a/nothing", b"")
    assert store.read("a/head.json") is None
    assert store.read_journal("a/events.jsonl") == b""
    assert list(store.names("a")) == ["a/other"]
    store.create("a/head.json", b"2")
    store.append("a/events.jsonl", b"4\n")
    assert store.read_journal("a/events.jsonl") == b"4\n"


@pytest.mark.parametrize("content", [b"", b"1\n", b"1\n2\n3\n"])
def test_what_holds_something_else_is_not_removed(store: RecordStore, content: bytes) -> None:
    store.create("head.json", b"1\n2\n")
    store.append("events.jsonl", b"1\n")
    store.append("events.jsonl", b"2\n")
    for name in ("head.json", "events.jsonl"):
        with pytest.raises(ConflictError):
            store.remove(name, content)
    blob = store.read("head.json")
    assert blob is not None
    assert (blob.data, store.read_journal("events.jsonl")) == (b"1\n2\n", b"1\n2\n")


def test_the_clock_is_the_one_that_dates_the_documents(store: RecordStore) -> None:
    store.create("head.json", b"1")
    first = store.read("head.json")
    assert first is not None
    time.sleep(1.1)  # some stores date to the second
    store.replace("head.json", b"2", first.version)
    second, now = store.read("head.json"), store.now()
    assert second is not None and now is not None
    assert first.written_at < second.written_at <= now < second.written_at + timedelta(minutes=1)
    assert now.utcoffset() == timedelta(0)
