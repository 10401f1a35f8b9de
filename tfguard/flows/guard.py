"""A guarded apply or destroy: baseline, intent, the engine's run, stock-taking, outcome (docs/design.md)."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.errors import ExitCode, InputError, InterruptedRunError
from tfguard.flows.approvals import plan_file_claimed
from tfguard.flows.context import StackContext
from tfguard.flows.credentials import warn_of_expiry
from tfguard.flows.dependants import Dependants
from tfguard.flows.direct_look import asking_for_planned
from tfguard.flows.kept_steps import planned_steps
from tfguard.flows.leftovers import leftovers, providers_to_ask, steps_to_look_for
from tfguard.flows.looking import Looking, baseline_entries, baseline_keys, places_without_lists
from tfguard.flows.open_operations import settle_open_operations
from tfguard.flows.providers import recorded_providers
from tfguard.flows.retain import kept_for
from tfguard.flows.run_folder import close_run_folder, open_run_folder
from tfguard.flows.run_journal import RunJournal
from tfguard.flows.stocktaking import Ran, take_stock
from tfguard.flows.upkeep import Upkeep, holding
from tfguard.flows.withholding import of_plan, withheld_intent
from tfguard.model.config import OnGap
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import (
    Approved,
    BaselineEntry,
    Intent,
    Operation,
    Step,
)
from tfguard.model.plan import Action, Plan
from tfguard.model.request import Approval, ChangeRequest
from tfguard.model.secrets import WITHHELD_WORD, Withholding
from tfguard.model.state import StateSnapshot

_BASELINE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """tfguard's own options of `apply` and `destroy`; `reason` is needed to ignore a gap."""

    on_gap: OnGap = OnGap.RECONCILE
    reason: str | None = None
    baseline: bool = True
    fail_on_gap: bool = False
    verify: bool = True
    adopts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardedRun:
    """How a guarded command ended: the exit code to hand on, and the operation where one was recorded."""

    exit_code: int
    operation: Operation | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is ready to be applied: the plan and its file, the state before, and the folder of this run.

    `looked_for` are steps that the plan does not have, and that are looked up with the others at the end.
    """

    operation_id: str
    request: ChangeRequest
    plan: Plan
    plan_file: Path
    run_directory: Path
    before: StateSnapshot
    accepted: tuple[str, ...]
    looked_for: tuple[Step, ...] = ()


def guard(
    context: StackContext, request: ChangeRequest, argv: Sequence[str], options: GuardOptions, folder: Path
) -> GuardedRun:
    """Run `apply` or `destroy` under guard. `argv` is what may be recorded of the command line; run
    folders lie in `folder`.

    Raises `OpenOperationError`, `OperationAliveError`, `RecordError` or `InputError` before anything is changed;
    afterwards it returns, with the engine's own exit code.
    """
    operation_id = new_operation_id(context.clock.now())
    with holding(context, operation_id, folder / operation_id, request.lock_timeout) as upkeep:
        return _guard(context, request, argv, options, folder, operation_id, upkeep)


def _guard(
    context: StackContext,
    request: ChangeRequest,
    argv: Sequence[str],
    options: GuardOptions,
    folder: Path,
    operation_id: str,
    upkeep: Upkeep,
) -> GuardedRun:
    context.engine.discard_import_blocks()
    left = leftovers(context, options.on_gap, request.variables)
    accepted = settle_open_operations(context, options.on_gap, options.reason, request.variables, left)
    directory = open_run_folder(folder, operation_id, context.host, accepted)
    try:
        before = context.state_before()
        plan_file = directory / "plan"
        if request.plan_file:
            _copy_once(Path(context.stack.directory) / request.plan_file, plan_file)
        else:
            planned = context.engine.plan(request, plan_file, directory)
            if planned.exit_code != 0:
                return GuardedRun(planned.exit_code)
        plan = context.engine.show_plan(plan_file)
        # An apply has steps of its own for these addresses, and the next one finds what it left beside it again.
        beside = left if request.destroy else ()
        plan = replace(plan, providers={**providers_to_ask(beside), **plan.providers})
        looked_for = steps_to_look_for(context, beside)
        prepared = Prepared(operation_id, request, plan, plan_file, directory, before, accepted, looked_for)
        return apply_prepared(context, prepared, argv, options, upkeep)
    finally:
        close_run_folder(directory, operation_id, context.records)


def _copy_once(given: Path, plan_file: Path) -> None:
    """What is shown, recorded and applied is one and the same file, whatever becomes of the given one meanwhile."""
    try:
        plan_file.touch(0o600)
        shutil.copyfile(given, plan_file)
    except OSError as error:
        raise InputError(f"the plan file {given} cannot be read: {error.strerror}", "plan again") from error


def apply_prepared(
    context: StackContext, prepared: Prepared, argv: Sequence[str], options: GuardOptions, upkeep: Upkeep
) -> GuardedRun:
    """Take the baseline, get the engine's approval, write the intent, apply, take stock.

    `upkeep` is that of the lease that the caller holds. Raises as `guard` does; nothing has changed then.
    """
    hidden = of_plan(prepared.plan, prepared.before, prepared.run_directory.parent)
    looked_for = tuple(replace(step, address=hidden.address(step.address)) for step in prepared.looked_for)
    steps = (*planned_steps(prepared.plan, prepared.before, hidden), *looked_for)
    keys = baseline_keys(steps, prepared.plan.providers, context.around)
    looking = Looking(context.around, keys if options.baseline else {}, asking_for_planned(steps, context.around))
    warn_of_expiry(context, prepared.plan)
    if prepared.request.destroy or _only_deletes(prepared.plan):
        # Before the question, so that whoever answers it knows.
        Dependants(context, steps, prepared.plan.providers, prepared.before, hidden).tell(_BASELINE_SECONDS)
    for line in kept_for(context, steps):
        context.console.warn(line)
    approval = context.engine.ask(prepared.request, prepared.plan)
    if not approval.given:
        looking.cancel()
        if approval is Approval.INTERRUPTED:
            raise InterruptedRunError("interrupted at the question; nothing was changed", "run the command again")
        return GuardedRun(1)
    approved = Approved(approval.value, context.host.actor().name, context.clock.now())
    listed = looking.result(_BASELINE_SECONDS)
    baseline = baseline_entries(listed) if options.baseline else places_without_lists(keys, context.around)
    if context.clock.interrupted:
        raise InterruptedRunError(
            "interrupted before the engine was started; nothing was changed", "run the command again"
        )
    _warn_of_gaps(context, baseline, hidden)
    intent = _intent(context, prepared, argv, steps, baseline, approved, options)
    plan_file_given = prepared.request.plan_file is not None and not options.adopts
    kept = withheld_intent(intent, hidden)
    with plan_file_claimed(context, kept, plan_file_given) as notes:
        context.records.begin(kept, prepared.accepted)
    journal = RunJournal(upkeep, context.clock, context.console, hidden)
    ended = context.engine.apply(
        prepared.request, prepared.plan_file, prepared.run_directory, intent.user_agent or "", journal, prepared.plan
    )
    journal.flush()
    ran = Ran(
        intent=intent,
        journal=journal,
        ended=ended,
        hidden=hidden,
        providers=prepared.plan.providers,
        arguments=prepared.request.variables,
        look=options.verify,
        notes=notes,
    )
    operation = take_stock(context, ran)
    gap = ended.exit.exit_code == 0 and operation.open and options.fail_on_gap
    return GuardedRun(ExitCode.GAP if gap else ended.exit.exit_code, operation)


def _only_deletes(plan: Plan) -> bool:
    """Whether a plan tears a stack down, as one of a plan file can; `-destroy` need not be said again."""
    return bool(plan.changing) and all(change.action is Action.DELETE for change in plan.changing)


def _warn_of_gaps(context: StackContext, baseline: Sequence[BaselineEntry], hidden: Withholding) -> None:
    for entry in baseline:
        if not entry.complete and entry.reason != "--baseline=off":
            why = hidden.text(entry.reason or "", WITHHELD_WORD)
            context.console.warn(f"no baseline of {entry.type} ({why}): what this run makes is harder to prove")


def _intent(
    context: StackContext,
    prepared: Prepared,
    argv: Sequence[str],
    steps: tuple[Step, ...],
    baseline: tuple[BaselineEntry, ...],
    approved: Approved,
    options: GuardOptions,
) -> Intent:
    request = prepared.request
    return Intent(
        operation_id=prepared.operation_id,
        command=request.command,
        argv=tuple(argv),
        stack=context.stack,
        engine=context.engine.info,
        actor=context.host.actor(),
        started_at=context.clock.now(),
        lineage=prepared.before.lineage,
        serial_before=prepared.before.serial,
        steps=steps,
        baseline=baseline,
        providers=recorded_providers(prepared.plan),
        outputs_before=prepared.before.outputs,
        targets=request.targets,
        var_files=request.var_files,
        plan_digest=hashlib.sha256(prepared.plan_file.read_bytes()).hexdigest(),
        approval=approved,
        user_agent=f"tfguard/{prepared.operation_id}",
        run_directory=str(prepared.run_directory),
        boot_id=context.host.boot(),
        state_out=state_out_of(context, request.state_out),
        on_gap_reason=options.reason,
        adopts=options.adopts,
    )


def state_out_of(context: StackContext, flag: str | None) -> str | None:
    """Where `-state-out` sends a state; only the local backend obeys it."""
    if flag is None or context.stack.backend != "local":
        return None
    return str(Path(context.stack.directory) / flag)
