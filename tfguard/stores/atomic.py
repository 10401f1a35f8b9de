"""The only atomic write: what a reader finds is the old content or the new one, also after a crash or a power cut.

Every function raises `OSError` as it comes, and has reached the medium when it returns: the file is fsynced, and the
folder too, since without that a renamed file can be gone after a power cut (fsync(2), NOTES).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from tfguard.stores.common import OWN_PREFIX

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make `folder` and the folders above it that are missing, 0700, each durable in the one above it."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(FOLDER_MODE)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    sync_folder(folder.parent)


def write(path: Path, data: bytes) -> None:
    """Make `data` the whole content of `path`, replacing what is there."""
    with _temporary(path, data) as temporary:
        temporary.replace(path)
        sync_folder(path.parent)


def create_exclusive(path: Path, data: bytes) -> None:
    """Make a new file `path` with `data` in it; `FileExistsError` when the name is taken."""
    with _temporary(path, data) as temporary:
        move_exclusive(temporary, path)


def move_exclusive(source: Path, target: Path) -> None:
    """Rename `source` to `target`, which lies in the same folder; `FileExistsError` when that name is taken.

    A link cannot overwrite, a rename can. Where the file system has no links (or for a folder), the name is looked at
    first, which is safe against those alone that hold the same lock.
    """
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        source.rename(target)
    else:
        source.unlink()
    sync_folder(target.parent)


def append(path: Path, data: bytes) -> None:
    """Add `data`, whole lines, to the end of `path`; all of it or, as far as the disk allows, nothing.

    After a line that a dead writer left unfinished a new one is begun, so that only the unfinished one is lost.
    """
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, FILE_MODE)
    try:
        size = os.fstat(descriptor).st_size
        unfinished = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        try:
            _write_all(descriptor, b"\n" + data if unfinished else data)
            os.fsync(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)
    if is_new:
        sync_folder(path.parent)


@contextlib.contextmanager
def _temporary(path: Path, data: bytes) -> Iterator[Path]:
    """A durable file next to `path` that holds `data`, and is removed if it still lies there at the end."""
    temporary = path.with_name(f"{OWN_PREFIX}{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        try:
            _write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
