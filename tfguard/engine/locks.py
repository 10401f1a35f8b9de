"""Which lock lies on the state: a local one from its own file, any other from what the engine says when it meets it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from tfguard.engine.documents import mapping, text
from tfguard.engine.queries import Answer
from tfguard.model.lock import StateLock

# Takes the lock, finds nothing at this address, and lets go without having written anything.
PROBE = ("untaint", "-no-color", "-allow-missing", "-lock-timeout=0s", "terraform_data.tfguard_asks_for_the_lock")

_ID = re.compile(r"^\W*ID[=:] *(\S+)$", re.MULTILINE)
_FIELD = re.compile(r"^\W*(Operation|Who|Created): +(\S.*?)\s*$", re.MULTILINE)
# struct flock as 64-bit Linux has it: type, whence, start, length, pid.
_FLOCK = "hhqqi"


def local_lock(state: Path) -> StateLock | None:
    """The lock on a local state file, and the process that holds it; None when there is none.

    The engine's note outlives a killed engine, the lock itself does not (docs/facts/terraform.md, section 3).
    """
    note = state.with_name(f".{state.name}.lock.info")
    try:
        info = mapping(json.loads(note.read_bytes()))
    except (OSError, ValueError):
        return None
    if not (name := text(info.get("ID"))):
        return None
    return StateLock(
        id=name,
        operation=text(info.get("Operation")) or None,
        who=text(info.get("Who")) or None,
        created=_time(text(info.get("Created"))),
        process=_holder(state),
        process_known=True,
    )


def _holder(state: Path) -> int | None:
    """The process that has the file locked; 0 for one that cannot be seen from here."""
    try:
        descriptor = os.open(state, os.O_RDWR)
    except OSError:
        return None
    try:
        asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else max(pid, 0)


def met_lock(query: Callable[..., Answer]) -> StateLock | None:
    """The lock that the engine meets when it tries to take one; None when it gets it, or says something else.

    `query` runs the engine and captures what it prints.
    """
    answer = query(*PROBE)
    if answer.exit_code == 0 or "acquiring the state lock" not in answer.stderr:
        return None
    ids = _ID.findall(answer.stderr)
    if not ids:
        return None
    fields = dict(_FIELD.findall(answer.stderr))
    if len(set(ids)) > 1:
        # A backend that names the other's id alone (http) prints the note of this very try beside it.
        return StateLock(ids[0])
    return StateLock(ids[0], fields.get("Operation"), fields.get("Who"), _time(fields.get("Created", "")))


def _time(written: str) -> datetime | None:
    """A time as Go writes it: RFC 3339, or `2026-11-29 21:05:38.62956214 +0000 UTC`."""
    match = re.match(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)\S*(?: \+0000 UTC)?$", written)
    return datetime.fromisoformat(f"{match[1]}T{match[2]}+00:00") if match else None
