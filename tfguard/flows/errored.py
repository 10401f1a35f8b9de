"""The `errored.tfstate` of an engine that could not save its state: found, kept, told apart from an old one."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from tfguard.errors import InputError, TfguardError
from tfguard.flows.context import StackContext
from tfguard.model.operation import ErroredState, Operation
from tfguard.model.state import StateSnapshot

FILE = "errored.tfstate"


def unpushed_errored_state(context: StackContext, operation: Operation, state: StateSnapshot) -> ErroredState | None:
    """The errored state that holds more than the state does, or None.

    One of the same lineage with a higher serial was never pushed; after a push the state's serial is higher
    (docs/facts/terraform.md, section 3). One that only the record still has counts too.
    """
    found = context.engine.errored_state()
    if found is not None and state.lineage and found.lineage != state.lineage:
        context.console.warn(f"{found.path} belongs to another state (lineage {found.lineage}); it is left alone")
        found = None
    errored = found or (operation.result.errored_state if operation.result else None)
    if errored is None or (errored.lineage == state.lineage and errored.serial <= state.serial):
        return None
    if found is None:
        return None if errored.pushed else errored
    return replace(found, rescued=_rescue(context, operation.id, Path(found.path)))


def _rescue(context: StackContext, operation_id: str, path: Path) -> str | None:
    """Keep a copy beside the record, since pipelines throw working folders away (case B21); tells where."""
    try:
        return context.records.rescue(operation_id, FILE, path.read_bytes())
    except (OSError, TfguardError) as error:
        context.console.warn(f"{path} could not be copied to the record: {error}")
        return None


def push(context: StackContext, operation_id: str, errored: ErroredState) -> bool:
    """Push the errored state; the engine itself refuses another lineage or a lower serial. Whether it worked.

    Where the folder that it lay in is gone, the rescued copy is pushed. Raises `InputError` when there is none either.
    """
    path = Path(errored.path)
    if path.exists():
        return context.engine.push_state(path).exit_code == 0
    rescued = context.records.rescued(operation_id, FILE)
    if rescued is None:
        raise InputError(
            f"{path} is not there any more, and no copy of it is in the record",
            f"find it, copy it to {path}, then run `tfguard recover` again",
        )
    with tempfile.TemporaryDirectory(prefix="tfguard-") as folder:
        copy = Path(folder) / FILE
        copy.write_bytes(rescued)
        return context.engine.push_state(copy).exit_code == 0
