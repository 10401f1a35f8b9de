"""The commands by which people repair things: recorded before, followed, and the state compared with what it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.errors import InputError, InterruptedRunError, TfguardError
from tfguard.flows.context import StackContext
from tfguard.flows.guard import GuardedRun
from tfguard.flows.history import findings
from tfguard.flows.run_folder import close_run_folder, open_run_folder
from tfguard.flows.run_journal import RunJournal
from tfguard.flows.settle import Settling, settle
from tfguard.flows.stocktaking import all_unknown, status_of
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.finding import Finding
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import Intent, Operation, RecordedProvider, Result, Step, StepStatus
from tfguard.model.request import Effect, RepairRequest
from tfguard.model.state import StateSnapshot
from tfguard.ports import ApplyExit
from tfguard.reconcile.repairs import repair_steps

STARTED = "command_start"
ENDED = "command_end"
"""The kinds of the two journal entries that a command without an event stream has."""


@dataclass(frozen=True, slots=True)
class _Before:
    """The state before, or why it could not be read: then nobody can tell afterwards what left it."""

    state: StateSnapshot | None
    gap: str | None = None


def repair(context: StackContext, request: RepairRequest, argv: Sequence[str], folder: Path) -> GuardedRun:
    """Run one of `REPAIRS`. `argv` is what may be recorded of the command line, run folders lie in `folder`.

    An open operation is named and stops nothing: this is how people settle one. Raises `OperationAliveError` or
    `RecordError` before the engine is started; afterwards it returns, with the engine's own exit code.
    """
    context.records.refuse_if_alive()
    context.records.check_writable()
    context.engine.discard_import_blocks()
    opened = context.records.head().open_operations
    if opened:
        context.console.warn(f"operation {opened[-1]} is not settled: `tfguard status`")
    operation_id = new_operation_id(context.clock.now())
    directory = open_run_folder(folder, operation_id, context.host, opened)
    try:
        before = _state_before(context)
        intent = _intent(context, request, argv, operation_id, directory, before)
        if context.clock.interrupted:
            raise InterruptedRunError("interrupted; nothing was changed", "run the command again")
        context.records.begin(intent, opened)
        journal = RunJournal(operation_id, context.records, context.clock, context.console, frozenset())
        journal.note(STARTED, request.command)
        ended = context.engine.repair(request, directory, intent.user_agent or "", journal)
        journal.note(ENDED, f"exit code {ended.exit.exit_code}")
        operation = _concluded(context, request, intent, ended, before)
        return GuardedRun(ended.exit.exit_code, operation)
    finally:
        close_run_folder(directory, operation_id, context.records)


def _state_before(context: StackContext) -> _Before:
    try:
        return _Before(context.state_before())
    except InputError as error:
        # A state that cannot be read may be just what the command is to repair.
        context.console.warn(f"{error.what}; what this command takes out of it will not be seen")
        return _Before(None, f"{context.stack.location}: it could not be read before the command ran")


def _intent(
    context: StackContext,
    request: RepairRequest,
    argv: Sequence[str],
    operation_id: str,
    directory: Path,
    before: _Before,
) -> Intent:
    state = before.state
    return Intent(
        operation_id=operation_id,
        command=request.command,
        argv=tuple(argv),
        stack=context.stack,
        engine=context.engine.info,
        actor=context.host.actor(),
        started_at=context.clock.now(),
        lineage=state.lineage if state else "",
        serial_before=state.serial if state else 0,
        steps=repair_steps(request.effect, request.operands, state) if state else (),
        providers=_known_providers(context),
        outputs_before=state.outputs if state else (),
        targets=request.targets,
        var_files=request.var_files,
        user_agent=f"tfguard/{operation_id}",
        run_directory=str(directory),
        boot_id=context.host.boot(),
        state_out=_state_out(context, request),
        operands=request.operands,
    )


def _known_providers(context: StackContext) -> tuple[RecordedProvider, ...]:
    """The provider settings of the last operation that had a plan to take them from."""
    last = context.last_operation()
    return last.intent.providers if last else ()


def _state_out(context: StackContext, request: RepairRequest) -> str | None:
    """Where the changed state goes instead of the stack's own; under `state mv` it is another stack's state."""
    if request.state_out is None or context.stack.backend != "local" or request.effect is Effect.MOVES:
        return None
    return str(Path(context.stack.directory) / request.state_out)


def _concluded(
    context: StackContext, request: RepairRequest, intent: Intent, ended: ApplyExit, before: _Before
) -> Operation:
    """The operation with its outcome, as far as it could be concluded. Never raises: the exit code must get through."""
    result = Result(
        operation_id=intent.operation_id,
        status=status_of(ended),
        ended_at=context.clock.now(),
        steps=all_unknown(_told(request, intent.steps, ended.exit.exit_code), "not compared yet"),
        exit_code=ended.exit.exit_code,
        signal=ended.exit.signal,
        gaps=(before.gap,) if before.gap else (),
        stream=ended.health,
    )
    operation = Operation(intent, result)
    moves_to = request.state_out if request.effect is Effect.MOVES else None
    elsewhere = (Path(context.stack.directory) / moves_to,) if moves_to else ()
    try:
        context.records.write_outcome(result, None)
        settled = settle(context, operation, Settling(not ended.exit.interrupted, request.variables, elsewhere))
        if request.effect is Effect.PUTS_IN and ended.exit.exit_code == 0:
            _note_import(context, request, settled)
        return settled
    except TfguardError as error:
        context.console.warn(f"{error.what}; the operation stays open: {error.advice}")
    except Exception as error:  # noqa: BLE001 (a defect in looking must not take the engine's exit code away)
        context.console.warn(f"the look failed ({type(error).__name__}: {error}); the operation stays open")
    return operation


def _told(request: RepairRequest, steps: tuple[Step, ...], exit_code: int) -> tuple[Step, ...]:
    """What the engine's exit code says about the steps; that a state was pushed says nothing about an object."""
    if request.effect is Effect.OVERWRITES:
        return steps
    status = StepStatus.OK if exit_code == 0 else StepStatus.ERROR
    return tuple(replace(step, status=status) for step in steps)


def _note_import(context: StackContext, request: RepairRequest, operation: Operation) -> None:
    """A finding that was imported by hand is settled like one that was adopted."""
    address, import_id = request.operands[0], request.operands[1]
    kind = operation.steps[0].type if operation.steps else ""
    for finding in findings(context.records)[0]:
        if finding.object and (finding.object.type, finding.object.import_id) == (kind, import_id):
            context.records.decide([_imported(context, finding, address, operation)])


def _imported(context: StackContext, finding: Finding, address: str, operation: Operation) -> Disposition:
    actor = context.host.actor()
    return Disposition(
        finding_id=finding.id,
        kind=DispositionKind.IMPORT,
        at=context.clock.now(),
        actor=f"{actor.user}@{actor.host}",
        reason="imported with the engine's own command",
        operation_id=operation.id,
        address=address,
        import_id=finding.object.import_id if finding.object else None,
    )


def removed_alive(steps: Sequence[Step]) -> list[Step]:
    """The steps whose objects were taken out of the state on purpose, and live."""
    return [step for step in steps if step.disposition and step.observed and step.outcome and not step.open]
