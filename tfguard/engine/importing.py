"""Import blocks in a file of their own, and what a plan with one says about the object."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tfguard.engine.documents import mapping
from tfguard.engine.process import process_start_time
from tfguard.errors import InputError
from tfguard.model.address import import_block
from tfguard.model.event import EngineEvent, EventKind
from tfguard.ports import ImportProbe

FILE = "tfguard_import.tf"
_HEADER = "# Written by tfguard for one import, and removed by it when that has ended. Safe to delete.\n"
_HOLDER = "# By process "
_NOT_THERE = "Cannot import non-existent remote object"


@contextmanager
def import_blocks(directory: Path, pairs: Sequence[tuple[str, str]]) -> Iterator[Path]:
    """While open, `directory` holds a file with these import blocks.

    A file that a killed import left behind is replaced; one of that name that is not tfguard's is never touched.
    Raises `InputError` when the folder cannot be written.
    """
    path = directory / FILE
    discard_leftover(directory)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        advice = f"make the folder writable, or move a {FILE} of your own away"
        raise InputError(f"the import block cannot be written to {path}: {error.strerror}", advice) from error
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(_HEADER + f"{_HOLDER}{os.getpid()} {process_start_time(os.getpid())}\n")
            file.write("\n".join(import_block(address, import_id) for address, import_id in pairs))
        yield path
    finally:
        path.unlink(missing_ok=True)


def discard_leftover(directory: Path) -> None:
    """Remove the file of an import that was killed; one without tfguard's mark, or whose import still runs, stays."""
    path = directory / FILE
    with suppress(OSError):
        content = path.read_text(errors="replace")
        if content.startswith(_HEADER) and not _in_use(content):
            path.unlink()


def _in_use(content: str) -> bool:
    match = re.search(rf"^{_HOLDER}(\d+) (\d+)$", content, re.MULTILINE)
    return match is not None and process_start_time(int(match[1])) == int(match[2])


def read_probe(events: Sequence[EngineEvent], address: str, import_id: str) -> ImportProbe:
    """What the events of `plan -json` with an import block say (docs/facts/terraform.md, section 11).

    Any error but the one that names a missing object says nothing about existence.
    """
    for event in events:
        importing = "importing" in mapping(event.raw.get("change"))
        if event.kind is EventKind.PLANNED_CHANGE and event.address == address and importing:
            return ImportProbe(True, f"the engine itself reads {import_id}", import_id)
    if any(event.kind is EventKind.DIAGNOSTIC and event.summary == _NOT_THERE for event in events):
        return ImportProbe(False, f"the engine itself finds no {import_id}", import_id)
    return ImportProbe(None, f"the engine could not tell whether {import_id} exists", import_id)
