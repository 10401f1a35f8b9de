"""The `errored.tfstate` of an engine that could not save its state: found, kept, told apart from an old one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tfguard.errors import InputError, TfguardError
from tfguard.flows.context import StackContext
from tfguard.model.operation import ErroredState, Operation
from tfguard.model.state import StateInstance, StateSnapshot

FILE = "errored.tfstate"


def unpushed_errored_state(context: StackContext, operation: Operation, state: StateSnapshot) -> ErroredState | None:
    """The errored state that holds more than the state does, or None.

    One that only the record still has counts as one that lies in the folder.
    """
    kept = operation.result.errored_state if operation.result else None
    found = context.engine.errored_state()
    if found is not None and _is_foreign(found, kept, state):
        context.console.warn(f"{found.path} belongs to another state (lineage {found.lineage}); it is left alone")
        found = None
    errored = found or kept
    if errored is None or (errored.pushed and found is None) or _is_saved(context, operation.id, errored, state):
        return None
    return replace(found, rescued=_rescue(context, operation.id, Path(found.path))) if found else errored


def _is_foreign(found: ErroredState, kept: ErroredState | None, state: StateSnapshot) -> bool:
    known = {state.lineage, kept.lineage if kept else ""}
    return bool(state.lineage) and found.lineage not in known


def _is_saved(context: StackContext, operation_id: str, errored: ErroredState, state: StateSnapshot) -> bool:
    """Whether the state holds what the errored state does.

    After a push the state's serial is higher (docs/facts/terraform.md, section 3). A state that was empty before a push
    gets a lineage and serials of its own; then the objects themselves tell.
    """
    if errored.lineage == state.lineage:
        return errored.serial <= state.serial
    lost = read_errored_state(context, operation_id, errored) if state.lineage else None
    return lost is not None and {_key(held) for held in lost.instances} <= {_key(held) for held in state.instances}


def _key(held: StateInstance) -> tuple[object, ...]:
    return (held.address, held.deposed, *sorted(held.identity.items()))


def read_errored_state(context: StackContext, operation_id: str, errored: ErroredState) -> StateSnapshot | None:
    """What is in the errored state, or in its rescued copy where that folder is gone; None when neither is there."""
    with _at_hand(context, operation_id, errored) as path:
        return context.engine.read_state_file(path) if path else None


@contextmanager
def _at_hand(context: StackContext, operation_id: str, errored: ErroredState) -> Iterator[Path | None]:
    """Where the errored state lies while this is open; its rescued copy lies in a private folder for so long."""
    if Path(errored.path).exists():
        yield Path(errored.path)
        return
    rescued = context.records.rescued(operation_id, FILE)
    with context.scratch() as folder:
        if rescued is not None:
            (folder / FILE).write_bytes(rescued)
        yield folder / FILE if rescued is not None else None


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
    with _at_hand(context, operation_id, errored) as path:
        if path is None:
            raise InputError(
                f"{errored.path} is not there any more, and no copy of it is in the record",
                "find it, copy it back to that place, then run `tfguard recover` again",
            )
        return context.engine.push_state(path).exit_code == 0
