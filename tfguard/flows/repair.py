"""The commands by which people repair things: recorded before, followed, and the state compared with what it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.errors import CorruptRecordError, InputError, InterruptedRunError, TfguardError
from tfguard.flows.context import STATE_UNREAD, StackContext
from tfguard.flows.guard import GuardedRun, state_out_of
from tfguard.flows.history import findings
from tfguard.flows.kept_steps import without_secrets
from tfguard.flows.known_states import known_states
from tfguard.flows.run_folder import close_run_folder, open_run_folder
from tfguard.flows.run_journal import RunJournal
from tfguard.flows.settle import Settling, settle
from tfguard.flows.stocktaking import all_unknown, first_written, status_of
from tfguard.flows.upkeep import Upkeep, holding
from tfguard.flows.withholding import of_state, withheld_intent
from tfguard.model.address import is_address, normal_address, resource_type
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.finding import Finding
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import Intent, Operation, Outcome, RecordedProvider, Result, Step
from tfguard.model.request import Effect, RepairRequest
from tfguard.model.secrets import WITHHELD_WORD, Withholding, has_key
from tfguard.model.state import EMPTY_STATE, StateSnapshot, fingerprint_of
from tfguard.ports import ApplyExit
from tfguard.reconcile.repairs import ENDED, STARTED, left_besides, repair_steps, told_by_exit
from tfguard.reconcile.transitions import NOT_COMPARED


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
    operation_id = new_operation_id(context.clock.now())
    with holding(context, operation_id, folder / operation_id, request.lock_timeout) as upkeep:
        return repair_held(context, request, argv, folder, operation_id, upkeep)


def repair_held(
    context: StackContext,
    request: RepairRequest,
    argv: Sequence[str],
    folder: Path,
    operation_id: str,
    upkeep: Upkeep,
) -> GuardedRun:
    """`repair` for whoever holds the stack's lease already, for the operation of this id."""
    context.engine.discard_import_blocks()
    opened = context.records.head().open_operations
    if opened:
        context.console.warn(f"operation {opened[-1]} is not settled: `tfguard status`")
    try:
        context.records.dispositions()
    except CorruptRecordError as error:
        # A newer one stops the command, which nobody here could settle afterwards; `recover` mends a damaged one.
        context.console.warn(error.what)
    directory = open_run_folder(folder, operation_id, context.host, opened)
    try:
        before = _state_before(context)
        if request.effect is Effect.PUTS_IN:
            _warn_of_other_owners(context, request, before)
        named = (*request.operands, *request.targets)
        hidden = of_state(before.state, named, context.last_operation(), folder)
        before = replace(before, state=before.state.readdressed(hidden.address) if before.state else None)
        intent = _intent(context, request, argv, operation_id, directory, before, hidden)
        if context.clock.interrupted:
            raise InterruptedRunError("interrupted; nothing was changed", "run the command again")
        context.records.begin(intent, opened)
        journal = RunJournal(upkeep, context.clock, context.console, hidden)
        journal.note(STARTED, request.command)
        ended = context.engine.repair(request, directory, intent.user_agent or "", journal)
        journal.note(ENDED, f"exit code {ended.exit.exit_code}")
        operation = _concluded(context, request, intent, ended, before, hidden)
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


def _warn_of_other_owners(context: StackContext, request: RepairRequest, before: _Before) -> None:
    """Say which known states have an object of that type and id already: the engine looks at the address alone, and two
    addresses for one object fight over it (case B59)."""
    address, import_id = normal_address(request.operands[0]), request.operands[1]
    kind = resource_type(address)
    wanted = fingerprint_of(kind, import_id)
    try:
        for where, state in known_states(context, before.state or EMPTY_STATE):
            for held in state.instances:
                if held.type != kind or (held.address == address and where == context.stack.location):
                    continue
                if held.fingerprint == wanted or import_id in held.identity.values():
                    at = Withholding(state.secrets).address(held.address)
                    context.console.warn(
                        f"the state {where} has an object of that type and id already, at {at}; in two places it will "
                        "be changed, and deleted, by both"
                    )
    except InputError as error:
        context.console.warn(f"{error.what}; {error.advice}")


def _intent(
    context: StackContext,
    request: RepairRequest,
    argv: Sequence[str],
    operation_id: str,
    directory: Path,
    before: _Before,
    hidden: Withholding,
) -> Intent:
    state, moves = before.state, request.effect is Effect.MOVES
    operands = [hidden.address(word) if has_key(word) else word for word in request.operands]
    steps = repair_steps(request.effect, operands, state) if state else ()
    intent = Intent(
        operation_id=operation_id,
        command=request.command,
        argv=_without_doubtful_words(context, request, argv),
        stack=context.stack,
        engine=context.engine.info,
        actor=context.host.actor(),
        started_at=context.clock.now(),
        lineage=state.lineage if state else "",
        serial_before=state.serial if state else 0,
        steps=steps,
        providers=_known_providers(context),
        outputs_before=state.outputs if state else (),
        targets=request.targets,
        var_files=request.var_files,
        user_agent=f"tfguard/{operation_id}",
        run_directory=str(directory),
        boot_id=context.host.boot(),
        state_out=None if moves else state_out_of(context, request.state_out),
        moved=request.operands[:2] if moves else (),
        moved_to=state_out_of(context, request.state_out) if moves else None,
        state_unread=state is None,
    )
    if state is None:
        # Nobody can tell what is marked; without steps no address is needed either.
        kept = {word for word in request.operands if is_address(word) and not has_key(word)}
        doubtful = set(request.operands) - kept
        argv = tuple(WITHHELD_WORD if word in doubtful or has_key(word) else word for word in intent.argv)
        intent = replace(intent, argv=argv, targets=(), moved=())
    return withheld_intent(intent, hidden)


def _known_providers(context: StackContext) -> tuple[RecordedProvider, ...]:
    """The provider settings of the last operation that had a plan to take them from."""
    last = context.last_operation()
    return last.intent.providers if last else ()


def _without_doubtful_words(context: StackContext, request: RepairRequest, argv: Sequence[str]) -> tuple[str, ...]:
    """The command line without words that could be secrets.

    That is an import id, since a random_password is imported by its value, and whatever stands where no word belongs.
    """
    hidden = {word for word in request.operands if "=" in word} if request.effect is not Effect.READS else set()
    if request.effect is Effect.READS:
        hidden = set(request.operands)
    elif request.effect is Effect.PUTS_IN and not _is_listed(context, request.operands[0]):
        hidden |= set(request.operands[1:])
    return tuple("<removed>" if word in hidden else word for word in argv)


def _is_listed(context: StackContext, address: str) -> bool:
    return context.around.catalog.get(resource_type(normal_address(address))) is not None


def _concluded(
    context: StackContext,
    request: RepairRequest,
    intent: Intent,
    ended: ApplyExit,
    before: _Before,
    hidden: Withholding,
) -> Operation:
    """The operation with its outcome, as far as it could be concluded. Never raises: the exit code must get through."""
    steps = (*intent.steps, *without_secrets(_left_besides(context, request, intent, before, hidden), hidden))
    result = Result(
        operation_id=intent.operation_id,
        status=status_of(ended),
        ended_at=context.clock.now(),
        steps=all_unknown(told_by_exit(request.effect, steps, ended.exit.exit_code), NOT_COMPARED),
        exit_code=ended.exit.exit_code,
        signal=ended.exit.signal,
        gaps=(before.gap,) if before.gap else (),
        stream=ended.health,
    )
    operation = Operation(intent, result)
    try:
        operation = replace(operation, result=first_written(context, result))
        operation = _settled(context, operation, Settling(not ended.exit.interrupted, request.variables))
        if request.effect is Effect.PUTS_IN:
            _note_import(context, request, operation)
    except TfguardError as error:
        context.console.warn(f"{error.what}; the operation stays open: {error.advice}")
    except Exception as error:  # noqa: BLE001 (a defect in looking must not take the engine's exit code away)
        context.console.warn(f"the look failed ({type(error).__name__}: {error}); the operation stays open")
    return operation


def _left_besides(
    context: StackContext, request: RepairRequest, intent: Intent, before: _Before, hidden: Withholding
) -> tuple[Step, ...]:
    """Steps for what left the state and was not foreseen; none where the state cannot be read, which is said later."""
    if before.state is None:
        return ()
    try:
        after = context.read_state(Operation(intent, None)).readdressed(hidden.address)
    except TfguardError:
        return ()
    return left_besides(request.effect, intent.steps, before.state, after)


def _settled(context: StackContext, operation: Operation, how: Settling) -> Operation:
    """The operation after the look; with a state that cannot be read it is written down as far as it is known."""
    try:
        return settle(context, operation, how)
    except InputError as error:
        context.console.warn(error.what)
        if operation.result is None:
            raise
        result = replace(operation.result, gaps=(*operation.result.gaps, STATE_UNREAD))
        context.records.finish(result, operation.result)
        return replace(operation, result=result)


def _note_import(context: StackContext, request: RepairRequest, operation: Operation) -> None:
    """A finding that was imported by hand is settled like one that was adopted, if it is certain which one it was."""
    step = next(iter(operation.steps), None)
    if step is None or step.outcome not in (Outcome.RECORDED, Outcome.TAINTED):
        return
    wanted = (step.type, request.operands[1])
    found = [one for one in findings(context.records)[0] if one.object and one.id not in _adopted(context)]
    found = [one for one in found if one.object and (one.object.type, one.object.import_id) == wanted]
    chosen = [one for one in found if step.address in one.addresses] or found
    if len(chosen) == 1:
        context.records.decide([_imported(context, chosen[0], step.address, operation)])


def _adopted(context: StackContext) -> set[str]:
    ledger = {entry.finding_id: entry.kind for entry in context.records.dispositions()}
    return {finding_id for finding_id, kind in ledger.items() if kind is DispositionKind.IMPORT}


def _imported(context: StackContext, finding: Finding, address: str, operation: Operation) -> Disposition:
    actor = context.host.actor()
    return Disposition(
        finding_id=finding.id,
        kind=DispositionKind.IMPORT,
        at=context.clock.now(),
        actor=actor.signature,
        reason="imported with the engine's own command",
        operation_id=operation.id,
        address=address,
        import_id=finding.object.import_id if finding.object else None,
    )
