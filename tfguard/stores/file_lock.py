"""The lock on a file: whoever holds it may compare and write in one step."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfguard.errors import RecordError
from tfguard.stores import atomic

LOCK_PATIENCE = 30.0
"""Seconds to wait for a lock. It is held for single writes only: a longer wait means a holder that is stopped."""

_LOCK_PAUSE = 0.01


@contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Hold the file `lock`, which is made if need be and stays: to take it away would let two hold it.

    Raises `RecordError` when another process does not let it go, and `OSError` as it comes.
    """
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, atomic.FILE_MODE)
    try:
        _wait(descriptor, lock)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, lock: Path) -> None:
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise RecordError(
                    f"the lock {lock} was held by another process for {LOCK_PATIENCE:.0f} s",
                    "look for a tfguard that is stopped or hangs on its disk (`fuser` on the lock file names it)",
                ) from None
            time.sleep(_LOCK_PAUSE)
        else:
            return
