"""What the local store says when its folder cannot be used."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tfguard.errors import RecordError
from tfguard.stores import file_lock, local
from tfguard.stores.local import LOCK_NAME, LocalStore

# Root writes wherever the mode forbids it: the read-only and the full disk are mounted, where that is allowed.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    yield from _mounted(tmp_path / "small", ["-t", "tmpfs", "-o", "size=64k", "tmpfs"])


@pytest.fixture
def read_only_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that holds a record and takes no more."""
    for folder in _mounted(tmp_path / "frozen", ["-t", "tmpfs", "-o", "size=64k", "tmpfs"]):
        LocalStore(folder).create("head.json", b"old")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True, capture_output=True)
        yield folder


def test_a_read_only_disk_is_told_in_one_line_and_still_read(read_only_disk: Path) -> None:
    store = LocalStore(read_only_disk)
    _assert_refused(store, "Read-only file system", "writable", str(read_only_disk))
    assert store.read("head.json") is not None
    assert list(store.names("")) == ["head.json"]


def test_a_file_with_a_time_that_no_calendar_has_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.create("head.json", b"1")
    # Few file systems keep such a time, so the status that they would give is made up.
    monkeypatch.setattr(local.os, "fstat", lambda _: os.stat_result((0o100600, *[0] * 6, *[10**12] * 3)))
    for read in (lambda: store.read("head.json"), lambda: store.read_journal("head.json")):
        with pytest.raises(RecordError, match="ValueError: year") as caught:
            read()
        assert caught.value.advice
    assert store.now() is None


def test_a_full_disk_is_told_in_one_line_and_keeps_the_old_record(small_disk: Path) -> None:
    store = LocalStore(small_disk)
    store.create("head.json", b"old")
    store.append("events.jsonl", b"1\n")
    blob = store.read("head.json")
    assert blob is not None
    version = blob.version
    writes: tuple[Callable[[], None], ...] = (
        lambda: store.replace("head.json", b"x" * 100_000, version),
        lambda: store.create("intent.json", b"x" * 100_000),
        lambda: store.append("events.jsonl", b"x" * 100_000 + b"\n"),
    )
    for write in writes:
        with pytest.raises(RecordError, match="No space left on device") as caught:
            write()
        assert "free space" in caught.value.advice
    assert store.read("head.json") == blob
    assert store.read_journal("events.jsonl") == b"1\n"
    assert list(store.names("")) == ["events.jsonl", "head.json"]
    assert not list(small_disk.glob("*.tmp"))


@pytest.mark.parametrize("below", ["", "records", "deep/records"])
def test_a_file_in_the_place_of_the_folder_is_never_an_empty_record(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    store = LocalStore(tmp_path / "file" / below)
    _assert_refused(store, "Not a directory|File exists", "folder", str(tmp_path / "file"))
    with pytest.raises(RecordError):
        store.read("head.json")
    with pytest.raises(RecordError):
        store.read_journal("events.jsonl")
    with pytest.raises(RecordError):
        store.names("")


def test_a_folder_in_the_place_of_a_document_is_told_and_can_be_moved_aside(tmp_path: Path) -> None:
    (tmp_path / "head.json").mkdir()
    store = LocalStore(tmp_path)
    with pytest.raises(RecordError, match="Is a directory"):
        store.read("head.json")
    assert store.move_aside("head.json") == "head.json.unreadable-1"
    store.create("head.json", b"new")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_the_right_to_write_is_told_in_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    _assert_refused(LocalStore(tmp_path), "Permission denied", "right to read and write", str(tmp_path))
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EDQUOT, errno.EIO, errno.ENOLCK])
def test_every_refusal_of_the_system_is_a_record_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    _assert_refused(LocalStore(tmp_path), os.strerror(number), "", str(tmp_path))


def test_a_link_to_a_folder_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = LocalStore(tmp_path / "link")
    store.create("operations/1/intent.json", b"{}")
    assert list(store.names("operations")) == ["operations/1/intent.json"]
    assert (tmp_path / "real" / "operations" / "1" / "intent.json").read_bytes() == b"{}"


def test_a_link_to_a_folder_that_is_gone_is_never_an_empty_record(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "unmounted")
    store = LocalStore(tmp_path / "link")
    with pytest.raises(RecordError):
        store.read("head.json")
    with pytest.raises(RecordError):
        store.names("")
    with pytest.raises(RecordError):
        store.create("head.json", b"x")


def test_a_lock_that_is_never_released_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lock, "LOCK_PATIENCE", 0.05)
    store = LocalStore(tmp_path)
    store.create("head.json", b"1")
    with (tmp_path / LOCK_NAME).open("rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(RecordError, match="held by another process"):
            store.create("intent.json", b"1")
        assert store.read("head.json") is not None


def test_reading_makes_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "records")
    store.read("head.json")
    store.names("")
    store.read_journal("events.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_the_stores_load_no_cloud_library() -> None:
    script = (
        "import sys, tfguard.stores.urls; tfguard.stores.urls.open_store('s3://b/p'); print('boto' in str(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False\n"


def _assert_refused(store: LocalStore, what: str, advice: str, place: str) -> None:
    for write in (
        lambda: store.create("intent.json", b"x"),
        lambda: store.replace("head.json", b"x", "0" * 64),
        lambda: store.append("events.jsonl", b"x\n"),
        lambda: store.move_aside("head.json"),
    ):
        with pytest.raises(RecordError, match=what) as caught:
            write()
        assert advice in caught.value.advice
        assert place in caught.value.what
        assert "\n" not in caught.value.what + caught.value.advice
        assert caught.value.exit_code == 10


def _mounted(folder: Path, source: list[str]) -> Iterator[Path]:
    folder.mkdir()
    if subprocess.run(["mount", *source, str(folder)], capture_output=True).returncode != 0:
        pytest.skip("no right to mount here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_folder_from_which_everything_was_removed_is_gone_and_no_other(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "record")
    for name in ("operations/1/rescued/a", "operations/1/intent.json", "operations/2/intent.json"):
        store.create(name, b"x")
    store.remove("operations/1/rescued/a", b"x")
    assert sorted(path.name for path in (tmp_path / "record" / "operations" / "1").iterdir()) == ["intent.json"]
    store.remove("operations/1/intent.json", b"x")
    store.remove("operations/3/intent.json", b"x")
    assert [path.name for path in (tmp_path / "record" / "operations").iterdir()] == ["2"]
    store.remove("operations/2/intent.json", b"x")
    assert sorted(path.name for path in (tmp_path / "record").iterdir()) == [".tfguard-lock"]
