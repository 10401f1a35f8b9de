"""The private folder of a run: it holds the plan file and the engine's raw stream, both with secrets in them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tfguard.errors import InputError, TfguardError
from tfguard.flows.records import Records
from tfguard.model.lease import ProcessIdentity
from tfguard.ports import Host

_HOLDER = "holder"
_BEING_MADE_SECONDS = 60


def open_run_folder(parent: Path, operation_id: str, host: Host, keep: Collection[str]) -> Path:
    """Make the folder of a new run, readable by its owner alone, and sweep away what killed runs left behind.

    `keep` are the ids of open operations, whose streams are still needed. Raises `InputError` when `parent` cannot be
    written.
    """
    directory = parent / operation_id
    try:
        sweep_run_folders(parent, host, keep)
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, parents=True)
        me = host.process()
        (directory / _HOLDER).write_text(f"{me.pid} {me.start_time}")
    except OSError as error:
        raise InputError(
            f"{parent} cannot be written: {error.strerror}", "make the working folder writable, or set TF_DATA_DIR"
        ) from error
    return directory.absolute()


def close_run_folder(directory: Path, operation_id: str, records: Records) -> None:
    """Remove a run's folder, unless the record has the run's beginning and not its end: then it is all the evidence."""
    try:
        needed = records.awaits_outcome(operation_id)
    except TfguardError:
        needed = True
    if not needed:
        discard_run_folder(directory, operation_id)


def discard_run_folder(directory: Path, operation_id: str) -> None:
    """Remove a run's folder once everything in it has been read.

    A folder of another name than the operation's is left alone: a damaged record could name any.
    """
    if directory.name == operation_id:
        shutil.rmtree(directory, ignore_errors=True)
        # The folders above were made for it: the stack's, tfguard's, and the engine's own where it had none.
        with suppress(OSError):
            for above in list(directory.parents)[:3]:
                above.rmdir()


def sweep_run_folders(parent: Path, host: Host, keep: Collection[str]) -> None:
    """Remove what killed runs left behind, but for those that still run here and those to `keep`, by operation id."""
    for directory in list(parent.iterdir()) if parent.is_dir() else ():
        if directory.is_dir() and directory.name not in keep and not in_use(directory, host):
            discard_run_folder(directory, directory.name)


def in_use(directory: Path, host: Host) -> bool:
    """Whether a run's folder belongs to a tfguard or an engine that still runs here."""
    try:
        pid, start_time = (directory / _HOLDER).read_text().split()
        return host.runs(ProcessIdentity(int(pid), int(start_time))) or host.engine_writes_to(directory)
    except FileNotFoundError:
        # Killed before it wrote the file, or about to write it; or the whole folder is gone.
        return directory.is_dir() and time.time() - directory.stat().st_mtime < _BEING_MADE_SECONDS
    except (OSError, ValueError):
        return True
