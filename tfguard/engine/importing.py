"""Import blocks in a file of their own, and what a plan with one says about the object."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tfguard.engine.configuration import written_imports
from tfguard.engine.diagnostics import Diagnostic, Severity, diagnostic_of
from tfguard.engine.documents import mapping
from tfguard.engine.process import process_start_time
from tfguard.errors import InputError
from tfguard.model.address import import_block, normal_address
from tfguard.model.engine import EngineInfo
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.importing import ImportTarget, ImportTrouble
from tfguard.ports import ImportProbe

FILE = "tfguard_import.tf"
_HEADER = "# Written by tfguard for one import, and removed by it when that has ended. Safe to delete.\n"
_HOLDER = "# By process "
_NOT_THERE = "Cannot import non-existent remote object"


@contextmanager
def import_blocks(directory: Path, targets: Sequence[ImportTarget], draft: str = "") -> Iterator[Path]:
    """While open, `directory` holds a file with these import blocks and, after them, drafted configuration.

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
            file.write("".join(map(_block, targets)) + draft)
        yield path
    finally:
        path.unlink(missing_ok=True)


def unwritten(directory: Path, targets: Sequence[ImportTarget], engine: EngineInfo | None = None) -> list[ImportTarget]:
    """The targets without those whose block the configuration has: a person wrote it, or an adoption that was killed
    left it there, and the engine takes no second one."""
    written = {(one.address, one.import_id) for one in written_imports(directory, engine, without=FILE)}
    return [target for target in targets if (normal_address(target.address), target.import_id) not in written]


def _block(target: ImportTarget) -> str:
    return import_block(target.address, target.import_id, target.provider)


def block_lines(targets: Sequence[ImportTarget]) -> Sequence[str]:
    """The address that each line of the file is about, from its first one to the end of the import blocks."""
    return ["", "", *(target.address for target in targets for _ in _block(target).splitlines())]


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


def errors_in(events: Sequence[EngineEvent]) -> Sequence[Diagnostic]:
    """The errors that `plan -json` told."""
    told = [diagnostic_of(event) for event in events if event.kind is EventKind.DIAGNOSTIC]
    return [diagnostic for diagnostic in told if diagnostic.severity is Severity.ERROR]


def troubles(errors: Sequence[Diagnostic], addresses: Sequence[str], about: Sequence[str]) -> tuple[ImportTrouble, ...]:
    """The same as troubles with the targets at these addresses; `about` is what `block_lines` gives.

    An error that names no target, and stands in no import block, is about none: it may be about all of them.
    """
    known = frozenset(addresses)
    found = [(_about(error, known, about), error) for error in errors]
    told = (ImportTrouble(one, error.summary, one is None and error.address is None) for one, error in found)
    return tuple(dict.fromkeys(told))


def _about(error: Diagnostic, known: frozenset[str], about: Sequence[str]) -> str | None:
    if error.address in known:
        return error.address
    place = error.source
    if place is not None and place.filename == FILE and 0 < place.line <= len(about) and about[place.line - 1]:
        return about[place.line - 1]
    named = [address for address in known if json.dumps(address, ensure_ascii=False) in error.detail]
    return named[0] if len(named) == 1 else None


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
