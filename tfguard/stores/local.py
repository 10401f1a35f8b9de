"""Records in a folder. One lock file guards every change, so that comparing and writing are one step."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tfguard.errors import RecordError
from tfguard.ports import Blob
from tfguard.stores import atomic
from tfguard.stores.common import OWN_PREFIX, aside_name, check_name, conflict, told
from tfguard.stores.file_lock import locked

LOCK_NAME = f"{OWN_PREFIX}lock"
_ADVICE = {
    errno.ENOSPC: "free space on this disk, or point `records:` in tfguard.yaml at another place",
    errno.EDQUOT: "raise the disk quota, or point `records:` in tfguard.yaml at another place",
    errno.EROFS: "make the file system writable, or point `records:` in tfguard.yaml at another place",
    errno.ENOTDIR: "a file stands where a folder should be: move it away, or change `records:` in tfguard.yaml",
    errno.EISDIR: "a folder stands where a file should be: move it away",
    errno.EACCES: "give the user that runs tfguard the right to read and write there",
    errno.EPERM: "give the user that runs tfguard the right to read and write there",
}
_OTHER_ADVICE = "check the disk, or point `records:` in tfguard.yaml at another place"


class LocalStore:
    """A `RecordStore` in `folder`, which is made by the first write. A version is the hash of the content."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._durable = False

    @property
    def location(self) -> str:
        """The folder's path."""
        return str(self._folder)

    def check_writable(self) -> None:
        """Raise `RecordError` when the folder, or the nearest one above it that is there, takes no file."""
        there = next(path for path in (self._folder, *self._folder.parents) if os.path.lexists(path))
        with self._translated("write", there), tempfile.TemporaryFile(dir=there):
            pass

    def read(self, name: str) -> Blob | None:
        """The document, or None when there is none."""
        path = self._path(name)
        with self._translated("read", path):
            try:
                with path.open("rb") as file:
                    written_at = _time(os.fstat(file.fileno()))
                    data = file.read()
            except FileNotFoundError:
                self._check_reachable()
                return None
        return Blob(data, _version(data), written_at)

    def now(self) -> datetime | None:
        """The time by the file system's clock, which on a network drive is the file server's; None where nothing can
        be written."""
        with contextlib.suppress(OSError, OverflowError, ValueError), tempfile.TemporaryFile(dir=self._folder) as file:
            file.write(b"\n")
            file.flush()
            return _time(os.fstat(file.fileno()))
        return None

    def create(self, name: str, data: bytes) -> None:
        """Write a document that must not exist yet; `ConflictError` when it does."""
        with self._changing("write", name) as path:
            self._create(path, data)

    def replace(self, name: str, data: bytes, expected: str | None) -> None:
        """Write a document if it still has the version `expected` (None: must not exist); else `ConflictError`."""
        with self._changing("write", name) as path:
            if expected is None:
                self._create(path, data)
                return
            current = self._content(path)
            if current is None or _version(current) != expected:
                raise conflict(str(path))
            atomic.write(path, data)

    def append(self, name: str, data: bytes) -> None:
        """Add whole lines to a journal."""
        with self._changing("append to", name) as path:
            if data:
                atomic.append(path, data)

    def read_journal(self, name: str) -> bytes:
        """All that was appended under `name`, in order; empty when nothing was."""
        blob = self.read(name)
        return b"" if blob is None else blob.data

    def names(self, prefix: str) -> Sequence[str]:
        """The names of the documents and journals below `prefix` (empty: all), sorted."""
        top = self._path(prefix) if prefix else self._folder
        with self._translated("list", top):
            return sorted(path.relative_to(self._folder).as_posix() for path in self._files(top))

    def remove(self, name: str, content: bytes) -> None:
        """Remove a document or journal that holds just this; `ConflictError` when it holds anything else."""
        with self._changing("remove", name) as path:
            current = self._content(path)
            if current is not None and current != content:
                raise conflict(str(path))
            if current is not None:
                path.unlink()
                atomic.sync_folder(path.parent)
            self._discard_empty(path.parent)

    def move_aside(self, name: str) -> str:
        """Rename a document to `<name>.unreadable-<n>`, and tell that name; `ConflictError` when it is not there."""
        with self._changing("move aside", name) as path:
            for number in itertools.count(1):
                target = aside_name(name, number)
                try:
                    atomic.move_exclusive(path, self._folder / target)
                except FileExistsError:
                    continue
                except FileNotFoundError:
                    raise conflict(str(path)) from None
                return target
        raise AssertionError("itertools.count ended")

    def _discard_empty(self, folder: Path) -> None:
        """Remove a folder in which nothing is left, and those above it: thousands of them would slow every listing."""
        with contextlib.suppress(OSError):
            while folder != self._folder:
                folder.rmdir()
                folder = folder.parent

    def _path(self, name: str) -> Path:
        return self._folder / check_name(name)

    def _create(self, path: Path, data: bytes) -> None:
        try:
            atomic.create_exclusive(path, data)
        except FileExistsError:
            raise conflict(str(path)) from None

    def _content(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            self._check_reachable()
            return None

    def _check_reachable(self) -> None:
        """A link to a place that is not mounted must not pass for "no record"."""
        if self._folder.is_symlink() and not self._folder.exists():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self._folder))

    def _files(self, top: Path) -> Iterator[Path]:
        try:
            entries = sorted(top.iterdir())
        except FileNotFoundError:
            self._check_reachable()
            return
        except NotADirectoryError:
            if top == self._folder:
                raise
            return
        for entry in entries:
            if entry.name.startswith(OWN_PREFIX):
                continue
            if entry.is_dir():
                yield from self._files(entry)
            else:
                yield entry

    @contextlib.contextmanager
    def _changing(self, verb: str, name: str) -> Iterator[Path]:
        """The path of `name`, its folder made and the store locked."""
        path = self._path(name)
        with self._translated(verb, path):
            self._make_durable()
            with locked(self._folder / LOCK_NAME):
                atomic.make_folder(path.parent)
                yield path

    def _make_durable(self) -> None:
        """Once a store, also when another process made the folder and may have died before it was durable."""
        if not self._durable:
            atomic.make_folder(self._folder)
            atomic.sync_folder(self._folder.parent)
            self._durable = True

    @contextlib.contextmanager
    def _translated(self, verb: str, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or type(error).__name__
            advice = _ADVICE.get(error.errno or 0, _OTHER_ADVICE)
            raise RecordError(f"cannot {verb} the record {path}: {reason}", advice) from error
        except (OverflowError, ValueError) as error:
            # A time that no calendar has, on a damaged or foreign file system.
            raise RecordError(f"cannot {verb} the record {path}: {told(error)}", _OTHER_ADVICE) from error


def _time(status: os.stat_result) -> datetime:
    return datetime.fromtimestamp(status.st_mtime, UTC)


def _version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
