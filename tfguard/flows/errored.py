"""The `errored.tfstate` of an engine that could not save its state: found, kept, told apart from an old one."""

from __future__ import annotations

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
    kept = operation.result.errored_state if operation.result else None
    if found is None and kept is not None and not kept.pushed:
        return kept
    if found is None:
        return None
    if state.lineage and found.lineage != state.lineage:
        context.console.warn(f"{found.path} belongs to another state (lineage {found.lineage}); it is left alone")
        return None
    if state.lineage and found.serial <= state.serial:
        return None
    return replace(found, rescued=_rescue(context, operation.id, Path(found.path)))


def _rescue(context: StackContext, operation_id: str, path: Path) -> str | None:
    """Keep a copy beside the record, since pipelines throw working folders away (case B21); tells where."""
    try:
        return context.records.rescue(operation_id, FILE, path.read_bytes())
    except (OSError, TfguardError) as error:
        context.console.warn(f"{path} could not be copied to the record: {error}")
        return None


def push(context: StackContext, errored: ErroredState) -> bool:
    """Push the errored state; the engine itself refuses another lineage or a lower serial. Whether it worked.

    Raises `InputError` when neither the file nor the rescued copy is there.
    """
    path = Path(errored.path)
    if not path.exists():
        raise InputError(
            f"{path} is not there any more",
            f"copy {errored.rescued or 'it'} to {path}, then run `tfguard recover` again",
        )
    return context.engine.push_state(path).exit_code == 0
