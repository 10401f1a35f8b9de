"""Which lock lies on the state: a local one from its own file, any other from what the engine says when it meets it."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from tfguard.engine.documents import mapping, parse_json, text
from tfguard.engine.queries import Answer
from tfguard.errors import InputError
from tfguard.model.lock import StateLock

# Takes the lock, finds nothing at this address, and lets go without having written anything.
PROBE = ("untaint", "-no-color", "-allow-missing", "-lock-timeout=0s", "terraform_data.tfguard_asks_for_the_lock")

_ID = re.compile(r"^[^\w\n]*ID: +(\S+)$", re.MULTILINE)
_OTHERS_ID = re.compile(r"already[\s│]+locked:[\s│]*ID=(\S+)")
_FIELD = re.compile(r"^[^\w\n]*(Operation|Who|Created): +(\S.*)$", re.MULTILINE)
# struct flock as 64-bit Linux has it: type, whence, start, length, pid.
_FLOCK = "hhqqi"


def local_lock(state: Path) -> StateLock | None:
    """The lock on a local state file, and the process that holds it; None when there is none.

    The engine's note outlives a killed engine, the lock itself does not (docs/facts/terraform.md, section 3). Raises
    `InputError` for a note that cannot be read.
    """
    note = state.with_name(f".{state.name}.lock.info")
    try:
        info = mapping(parse_json(note.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError):
        info = {}
    if not (name := text(info.get("ID"))):
        raise InputError(
            f"{note}, the engine's note of a lock, cannot be read or is damaged",
            "delete it once nobody works on this state; with -force the ID goes to the engine all the same",
        )
    process, known = _holder(state)
    return StateLock(
        id=name,
        operation=text(info.get("Operation")) or None,
        who=text(info.get("Who")) or None,
        created=_time(text(info.get("Created"))),
        process=process,
        process_known=known,
    )


def _holder(state: Path) -> tuple[int | None, bool]:
    """The process that has the file locked, 0 for one that cannot be seen from here; and whether that could be told."""
    if not sys.platform.startswith("linux"):
        return None, False
    try:
        descriptor = os.open(state, os.O_RDONLY)
    except FileNotFoundError:
        return None, True
    except OSError:
        return None, False
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    except OSError:
        return None, False
    finally:
        os.close(descriptor)
    return (None if kind == fcntl.F_UNLCK else max(pid, 0)), True


def met_lock(query: Callable[..., Answer]) -> StateLock | None:
    """The lock that the engine meets when it tries to take one; None when it gets it.

    `query` runs the engine and captures what it prints. Raises `InputError` when neither came of it: then nobody knows.
    """
    answer = query(*PROBE)
    if answer.exit_code == 0:
        return None
    if other := _OTHERS_ID.search(answer.stderr):
        # A backend that names the other's id alone (http) prints the note of this very try beside it.
        return StateLock(other[1])
    found = _ID.search(answer.stderr)
    if found is None or "acquiring the state lock" not in answer.stderr:
        raise InputError(
            f"whether the state is locked cannot be told: {answer.reason}",
            "mend that first; with -force the ID goes to the engine all the same",
        )
    fields = {name: value.rstrip() for name, value in _FIELD.findall(answer.stderr)}
    return StateLock(found[1], fields.get("Operation"), fields.get("Who"), _time(fields.get("Created", "")))


def _time(written: str) -> datetime | None:
    """A time as Go writes it: RFC 3339, or `2026-11-29 21:05:38.62956214 +0000 UTC`."""
    match = re.match(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.\d+)? ?(Z|[+-]\d\d:?\d\d)\b", written)
    try:
        return datetime.fromisoformat(f"{match[1]}T{match[2]}{match[3]}") if match else None
    except ValueError:
        return None
