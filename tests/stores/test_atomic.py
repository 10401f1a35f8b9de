"""What a crash, a full disk or a race leaves behind."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tfguard.stores import atomic

_KILLED_AT = """
    import os, signal, sys
    from pathlib import Path
    from tfguard.stores import atomic
    from tfguard.stores.local import LocalStore

    def die(*arguments, **options):
        os.kill(os.getpid(), signal.SIGKILL)

    folder = Path(sys.argv[1])
    {setup}
    {call}
"""
_REPLACE = "store = LocalStore(folder); store.replace('head.json', b'new' * 100_000, store.read('head.json').version)"
_CREATE = "LocalStore(folder).create('intent.json', b'new' * 100_000)"


@pytest.mark.parametrize("setup", ["Path.replace = die", "os.fsync = die", "os.write = die"])
def test_a_kill_before_the_rename_leaves_the_old_document(tmp_path: Path, setup: str) -> None:
    atomic.write(tmp_path / "head.json", b"old")
    _run_killed(tmp_path, setup, _REPLACE)
    assert (tmp_path / "head.json").read_bytes() == b"old"


def test_a_kill_after_the_rename_leaves_the_new_document(tmp_path: Path) -> None:
    atomic.write(tmp_path / "head.json", b"old")
    _run_killed(tmp_path, "rename = Path.replace; Path.replace = lambda *a: (rename(*a), die())", _REPLACE)
    assert (tmp_path / "head.json").read_bytes() == b"new" * 100_000


def test_a_kill_before_the_link_leaves_no_document(tmp_path: Path) -> None:
    _run_killed(tmp_path, "Path.hardlink_to = die", _CREATE)
    assert not (tmp_path / "intent.json").exists()


def test_a_kill_after_the_link_leaves_the_whole_document_and_a_lock_that_is_free(tmp_path: Path) -> None:
    _run_killed(tmp_path, "Path.unlink = die", _CREATE)
    assert (tmp_path / "intent.json").read_bytes() == b"new" * 100_000
    from tfguard.stores.local import LocalStore

    store = LocalStore(tmp_path)
    store.create("head.json", b"next")
    assert list(store.names("")) == ["head.json", "intent.json"]


def test_writing_leaves_nothing_else_in_the_folder(tmp_path: Path) -> None:
    atomic.write(tmp_path / "a", b"1")
    atomic.write(tmp_path / "a", b"2")
    atomic.create_exclusive(tmp_path / "b", b"3")
    with pytest.raises(FileExistsError):
        atomic.create_exclusive(tmp_path / "b", b"4")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"2", "b": b"3"}


def test_the_file_is_synced_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def record_fsync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def record_replace(source: Path, target: Path) -> Path:
        done.append("rename")
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(Path, "replace", record_replace)
    atomic.write(tmp_path / "a", b"1")
    assert done == ["file", "rename", "folder"]


def test_every_new_folder_is_made_durable_in_the_one_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(atomic, "sync_folder", synced.append)
    atomic.make_folder(tmp_path / "a" / "b" / "c")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]


def test_the_mode_is_0600_whatever_stood_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o666)
    atomic.write(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_hard_links_a_taken_name_is_still_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(target: Path, source: Path) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), str(source), None, str(target))

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    atomic.create_exclusive(tmp_path / "a", b"1")
    with pytest.raises(FileExistsError):
        atomic.create_exclusive(tmp_path / "a", b"2")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"1"]


def test_appending_after_an_unfinished_line_begins_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":')
    atomic.append(path, b'{"n":3}\n')
    assert path.read_bytes() == b'{"n":1}\n{"n":\n{"n":3}\n'


def test_an_append_that_fails_half_way_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    atomic.append(path, b"1\n")
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) < 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:4])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space left"):
        atomic.append(path, b"22\n33\n")
    assert path.read_bytes() == b"1\n"


def _run_killed(folder: Path, setup: str, call: str) -> None:
    script = textwrap.dedent(_KILLED_AT).format(setup=setup, call=call)
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
