"""The files of `scan --state-file` and `--since`: looked at before anything is listed, and written after it.

What is written is merged with what the file holds by then: another scan may have ended meanwhile.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tfguard.errors import InputError, RecordError, UsageError
from tfguard.model.scan import ScanResult
from tfguard.model.since import Changes, KeptScan
from tfguard.reconcile.since import changes_since
from tfguard.schemas.scan import find_kept, kept_document, load_kept
from tfguard.stores.atomic import write
from tfguard.stores.file_lock import locked

_LAST = "last"
_LOCK_SUFFIX = ".lock"
_ONLY = re.compile(r"(.*) \(workspaces ([^()]+)\)", re.DOTALL)
_ADVICE = "name a file that `tfguard scan --state-file FILE` wrote or may make, and check its folder and permissions"


def earlier_scan(state_file: str | None, since: str | None) -> KeptScan | None:
    """The scan to compare with; None where there is none yet. The file to keep is looked at in any case.

    Raises `UsageError`, and `InputError` for a file that is no kept scan or where none can be kept.
    """
    kept = check(Path(state_file)) if state_file is not None else None
    if since in (None, _LAST):
        if since and state_file is None:
            raise UsageError(
                "--since last needs a file with the last findings", "add --state-file FILE, or name a file"
            )
        return kept
    return load_kept(Path(since or ""))


def check(path: Path) -> KeptScan | None:
    """What is kept in the file so far. Raises `InputError` where that is something else, or nothing can be written."""
    kept = _kept(Path(os.path.realpath(path)))  # before a lock is made beside what is somebody else's
    with _held(path) as real, tempfile.TemporaryFile(dir=real.parent):
        return kept


def keep(path: Path, result: ScanResult, canonical: Callable[[str], str]) -> Changes:
    """Merge a scan into the file, and tell what that has changed there. Raises as `check` does."""
    with _held(path) as real:
        changes = changes_since(_kept(real), result, canonical)
        write(real, kept_document(result, changes))
    return changes


def states_meant(patterns: Sequence[str], base: Path, workspaces: Sequence[str]) -> tuple[str, ...]:
    """The patterns of states, spelled so that from everywhere the same ones mean the same; `base` is where a relative
    one counts from."""
    only = f" (workspaces {', '.join(sorted(workspaces))})" if workspaces else ""
    return tuple(f"{_absolute(pattern, base)}{only}" for pattern in patterns)


def patterns_meant(meant: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What `states_meant` has spelled, as patterns with the workspaces of which alone they tell."""
    for one in meant:
        told = _ONLY.fullmatch(one)
        yield (told[1], tuple(told[2].split(", "))) if told else (one, ())


def _absolute(pattern: str, base: Path) -> str:
    scheme, separator, place = pattern.partition("://")
    if separator and scheme != "file":
        return pattern
    return os.path.normpath(base / (place if separator else pattern))


def _kept(path: Path) -> KeptScan | None:
    with suppress(OSError):  # which the reading tells
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError(f"the findings cannot be kept in {path}: it is no regular file", _ADVICE)
    return find_kept(path)


@contextmanager
def _held(path: Path) -> Iterator[Path]:
    """The file itself, behind any link, while no other scan may write it."""
    real = Path(os.path.realpath(path))
    try:
        with locked(real.with_name(real.name + _LOCK_SUFFIX)):
            yield real
    except RecordError as error:
        raise InputError(f"the findings cannot be kept in {path}: {error.what}", error.advice) from error
    except OSError as error:
        raise InputError(f"the findings cannot be kept in {path}: {error.strerror}", _ADVICE) from error
