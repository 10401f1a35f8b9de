"""Whatever is changed in an archive is found: a byte, an entry, an object, a link."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packed import MovedClock, filled, records_in, run

from tfguard.errors import NewerRecordError
from tfguard.flows.archive_check import Checked, check_archive
from tfguard.flows.archiving import archive_closed
from tfguard.schemas.archive import pack, seal
from tfguard.stores.local import LocalStore

DAY = timedelta(days=1)
CHAIN = "archive/chain.json"
JANUARY, FEBRUARY = "archive/2025-01.jsonl.gz", "archive/2025-02.jsonl.gz"
Objects = Mapping[str, bytes]


@cache
def archived() -> Objects:
    """The objects of a whole archive: two months, the first of them written in two goes."""
    with TemporaryDirectory() as folder:
        store, clock = LocalStore(Path(folder)), MovedClock()
        filled(store, clock, 5, apart=4 * DAY)
        archive_closed(records_in(store, clock), clock, 14 * DAY)
        archive_closed(records_in(store, clock), clock, timedelta(0))
        return {name: _read(store, name) for name in store.names("archive")}


def _read(store: LocalStore, name: str) -> bytes:
    blob = store.read(name)
    assert blob is not None
    return blob.data


def checked(objects: Objects, expected: Sequence[str] = ()) -> Checked:
    """What a check of these objects finds."""
    with TemporaryDirectory() as folder:
        store = LocalStore(Path(folder))
        for name, data in objects.items():
            store.create(name, data)
        return check_archive(store, expected)


def assert_found(objects: Objects) -> None:
    """A check finds a flaw, or refuses to go by a version that it does not know."""
    try:
        found = checked(objects)
    except NewerRecordError:
        return
    assert found.flaws


def lines_of(objects: Objects, name: str) -> list[bytes]:
    """The lines of an object."""
    return gzip.decompress(objects[name]).splitlines()


def test_a_whole_archive_has_no_flaw() -> None:
    objects = archived()
    assert sorted(objects) == [JANUARY, FEBRUARY, CHAIN]
    found = checked(objects)
    assert found.flaws == ()
    assert [(month.month, month.entries, month.anchored) for month in found.months] == [
        ("2025-01", 3, 3),
        ("2025-02", 1, 1),
    ]
    assert found.head == json.loads(lines_of(objects, FEBRUARY)[-1])["hash"]


PLACES = st.sampled_from([JANUARY, FEBRUARY, CHAIN])


@settings(max_examples=200)
@given(st.data())
def test_any_byte_that_is_flipped_in_any_object_is_found(data: st.DataObject) -> None:
    objects = dict(archived())
    name = data.draw(PLACES)
    position = data.draw(st.integers(0, len(objects[name]) - 1))
    flip = data.draw(st.sampled_from([1 << bit for bit in range(8)]) | st.integers(1, 255))
    changed = bytearray(objects[name])
    changed[position] ^= flip
    assert_found(objects | {name: bytes(changed)})


@settings(max_examples=80)
@given(st.data())
def test_any_object_that_is_cut_short_or_grew_is_found(data: st.DataObject) -> None:
    objects = dict(archived())
    name = data.draw(PLACES)
    whole = objects[name]
    length = data.draw(st.integers(0, len(whole) - 1))
    rest = data.draw(st.sampled_from([b"", b"\0", b"\n", b"x", pack([b"{}"])]) | st.binary(min_size=1, max_size=9))
    assert_found(objects | {name: data.draw(st.sampled_from([whole[:length], whole + (rest or b"\0")]))})


@pytest.mark.parametrize("name", [JANUARY, FEBRUARY, CHAIN])
def test_an_object_that_is_gone_is_found(name: str) -> None:
    found = checked({key: data for key, data in archived().items() if key != name})
    assert any(name in flaw.where for flaw in found.flaws)


def test_an_object_that_does_not_belong_there_is_found() -> None:
    assert checked({**archived(), "archive/2025-01.jsonl.gz.old": b""}).flaws[0].where.endswith(".old")


def _swapped(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


def _forged(lines: list[bytes]) -> list[bytes]:
    """The second entry with another content, and everything behind it sealed anew: each by itself is whole."""
    entries = [json.loads(line) for line in lines]
    documents = {item["name"]: item.get("text", "").encode() for item in entries[1]["documents"]}
    documents["outcome.json"] = documents["outcome.json"].replace(b'"absent"', b'"recorded"')
    forged, previous = [lines[0]], entries[0]["hash"]
    for number, entry in enumerate(entries[1:], start=2):
        content = documents if number == 2 else {item["name"]: item["text"].encode() for item in entry["documents"]}
        line, previous = seal(number, entry["operation_id"], previous, content)
        forged.append(line)
    return forged


REARRANGED: Mapping[str, Callable[[list[bytes]], list[bytes]]] = {
    "the first is dropped": lambda lines: lines[1:],
    "one in the middle is dropped": lambda lines: [lines[0], *lines[2:]],
    "the last is dropped": lambda lines: lines[:-1],
    "two are swapped": _swapped,
    "one is there twice": lambda lines: [*lines, lines[-1]],
    "one is inserted": lambda lines: [lines[0], seal(2, lines[1][54:80].decode(), "", {})[0], *lines[1:]],
    "one is added": lambda lines: [*lines, lines_of(archived(), FEBRUARY)[0]],
    "all are sealed anew": _forged,
}


@pytest.mark.parametrize("change", REARRANGED)
def test_entries_that_are_dropped_moved_or_added_are_found_and_named(change: str) -> None:
    objects = archived()
    lines = REARRANGED[change](lines_of(objects, JANUARY))
    assert lines != lines_of(objects, JANUARY)
    flaws = checked({**objects, JANUARY: pack(lines)}).flaws
    assert flaws
    assert JANUARY in flaws[0].where


@settings(max_examples=50)
@given(st.data())
def test_any_other_order_of_the_entries_is_found(data: st.DataObject) -> None:
    objects = archived()
    lines = [*lines_of(objects, JANUARY), *lines_of(objects, FEBRUARY)]
    chosen = data.draw(st.lists(st.sampled_from(lines), min_size=1, max_size=5))
    if chosen != lines_of(objects, JANUARY):
        assert_found({**objects, JANUARY: pack(chosen)})


@pytest.mark.parametrize("previous", ["0" * 64, "itself"])
def test_a_link_to_nothing_earlier_is_found(previous: str) -> None:
    objects = archived()
    entry = json.loads(lines_of(objects, FEBRUARY)[0])
    contents = {item["name"]: item["text"].encode() for item in entry["documents"] if "text" in item}
    link = entry["hash"] if previous == "itself" else previous
    line, _ = seal(1, entry["operation_id"], link, contents)
    flaws = checked({**objects, FEBRUARY: pack([line])}).flaws
    assert any("links to no entry of an earlier month" in flaw.what for flaw in flaws)


def test_an_entry_that_was_changed_is_named_with_its_place() -> None:
    objects = archived()
    lines = lines_of(objects, JANUARY)
    changed = [lines[0], lines[1].replace(b"aws_iam_role.app", b"aws_iam_role.apq"), *lines[2:]]
    (flaw,) = checked({**objects, JANUARY: pack(changed)}).flaws
    assert flaw.where.endswith("archive/2025-01.jsonl.gz entry 2")
    assert "was changed" in flaw.what


@pytest.mark.parametrize("name", [CHAIN, JANUARY])
def test_what_only_a_newer_tfguard_can_check_is_refused_by_its_name(name: str) -> None:
    if name == CHAIN:
        changed, where = archived()[CHAIN].replace(b"archive-chain/v1", b"archive-chain/v9"), name
    else:
        first, *_ = lines_of(archived(), name)
        body = first.replace(b"tfguard.archive/v1", b"tfguard.archive/v9").partition(b',"hash":')[0]
        changed = pack([body + b',"hash":"%s"}' % hashlib.sha256(body).hexdigest().encode()])
        where = f"{name} entry 1"
    with pytest.raises(NewerRecordError, match=f"{re.escape(where)} was written by a newer tfguard"):
        checked({**archived(), name: changed})


def test_a_hash_that_was_kept_elsewhere_has_to_be_in_the_chain() -> None:
    objects = archived()
    hashes = [json.loads(line)["hash"] for name in (JANUARY, FEBRUARY) for line in lines_of(objects, name)]
    assert checked(objects, hashes).flaws == ()
    (flaw,) = checked(objects, [hashes[0], "f" * 64]).flaws
    assert flaw.where == "f" * 64


def test_an_archive_that_was_made_anew_does_not_have_the_hash_that_was_kept() -> None:
    head = checked(archived()).head
    with TemporaryDirectory() as folder:
        store, clock = LocalStore(Path(folder)), MovedClock()
        filled(store, clock, 5, apart=4 * DAY)
        archive_closed(records_in(store, clock), clock, timedelta(0))
        assert check_archive(store, []).flaws == ()
        assert [flaw.where for flaw in check_archive(store, [head]).flaws] == [head]


def test_what_a_run_that_died_had_written_before_it_wrote_the_chain_is_no_flaw(tmp_path: Path) -> None:
    store, clock = LocalStore(tmp_path), MovedClock()
    records = records_in(store, clock)
    run(records, clock), run(records, clock)
    archive_closed(records, clock, timedelta(0))
    before = store.read(CHAIN)
    assert before is not None
    run(records, clock), run(records, clock)
    archive_closed(records, clock, timedelta(0))
    after = store.read(CHAIN)
    assert after is not None
    store.replace(CHAIN, before.data, after.version)
    found = check_archive(store, [])
    assert found.flaws == ()
    assert [(month.entries, month.anchored) for month in found.months] == [(3, 1)]
    # What the chain vouches for is still held against it.
    lines = gzip.decompress(_read(store, JANUARY)).splitlines()
    blob = store.read(JANUARY)
    assert blob is not None
    store.replace(JANUARY, pack(lines), blob.version)
    assert "its bytes were changed" in check_archive(store, []).flaws[0].what


def test_a_shell_can_check_a_seal(tmp_path: Path) -> None:
    (tmp_path / "month.gz").write_bytes(archived()[JANUARY])
    line = 'zcat month.gz | head -1 | tr -d "\\n" | sed \'s/,"hash":"[0-9a-f]*"}$//\' | sha256sum'
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == json.loads(lines_of(archived(), JANUARY)[0])["hash"]
