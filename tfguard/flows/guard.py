"""A guarded apply or destroy: baseline, intent, the engine's run, stock-taking, outcome (docs/design.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.errors import InputError, InterruptedRunError, OpenOperationError, TfguardError
from tfguard.flows.context import StackContext
from tfguard.flows.errored import unpushed_errored_state
from tfguard.flows.run_folder import discard_run_folder, open_run_folder
from tfguard.flows.run_journal import RunJournal
from tfguard.flows.settle import Settling, settle
from tfguard.flows.verify import (
    Looking,
    Run,
    Verdict,
    baseline_entries,
    baseline_keys,
    planned_steps,
    recorded_providers,
    verify,
)
from tfguard.model.config import OnGap
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import (
    BaselineEntry,
    Intent,
    Operation,
    OperationStatus,
    Outcome,
    Result,
    Step,
)
from tfguard.model.plan import Plan
from tfguard.model.request import Approval, ChangeRequest
from tfguard.model.state import StateSnapshot
from tfguard.ports import ApplyExit

_BASELINE_SECONDS = 60.0
_EXIT_GAP = 14
_DEADLY_SIGNALS = frozenset({2, 6, 9, 11, 13, 15})


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
    """What is ready to be applied: the plan and its file, the state before, and the folder of this run."""

    operation_id: str
    request: ChangeRequest
    plan: Plan
    plan_file: Path
    run_directory: Path
    before: StateSnapshot
    accepted: tuple[str, ...]


def guard(
    context: StackContext, request: ChangeRequest, argv: Sequence[str], options: GuardOptions, folder: Path
) -> GuardedRun:
    """Run `apply` or `destroy` under guard. `argv` is what may be recorded of the command line; run
    folders lie in `folder`.

    Raises `OpenOperationError`, `OperationAliveError`, `RecordError` or `InputError` before anything is changed;
    afterwards it returns, with the engine's own exit code.
    """
    context.records.refuse_if_alive()
    accepted = open_operations_allow(context, request, options)
    operation_id = new_operation_id(context.clock.now())
    directory = open_run_folder(folder, operation_id, context.host, context.records.head().open_operations)
    try:
        before = context.state_before()
        plan_file = Path(context.stack.directory) / request.plan_file if request.plan_file else directory / "plan"
        if not request.plan_file:
            planned = context.engine.plan(request, plan_file, directory)
            if planned.exit_code != 0:
                return GuardedRun(planned.exit_code)
        plan = context.engine.show_plan(plan_file)
        prepared = Prepared(operation_id, request, plan, plan_file, directory, before, accepted)
        return apply_prepared(context, prepared, argv, options)
    finally:
        discard_run_folder(directory, operation_id)


def open_operations_allow(context: StackContext, request: ChangeRequest, options: GuardOptions) -> tuple[str, ...]:
    """Settle what an earlier run left open; the ids of open operations that this run goes on beside.

    Raises `OpenOperationError` when something stays open and the user did not say to ignore it (--on-gap).
    """
    opened = context.records.head().open_operations
    if not opened:
        return ()
    if options.on_gap is OnGap.IGNORE:
        context.console.warn(f"operation {opened[-1]} stays open and is ignored: {options.reason}")
        return opened
    if options.on_gap is OnGap.RECONCILE:
        how = Settling(arguments=request.variables)
        remaining = [op for op in context.records.open_operations() if settle(context, op, how).open]
        if not remaining:
            return ()
        opened = tuple(op.id for op in remaining)
    lines = [line for opened_id in opened for line in what_lives(context.records.operation(opened_id))]
    raise OpenOperationError(
        f"operation {opened[-1]} is not settled" + "".join(f"\n  {line}" for line in lines),
        "run `tfguard status` for the evidence, and the command it names; "
        "or go on beside it with --on-gap=ignore --reason TEXT",
    )


def what_lives(operation: Operation) -> list[str]:
    """A line for everything that keeps an operation open."""
    lines = [_line(step) for step in operation.steps if step.open or step.outcome is None]
    errored = operation.result.errored_state if operation.result else None
    if errored is not None and not errored.pushed:
        lines.append(f"{errored.path} has not been pushed: `tfguard recover`")
    return lines


def _line(step: Step) -> str:
    strays = [seen for seen in step.observed if not seen.in_state]
    names = ", ".join(f"{seen.import_id} ({seen.finding_id})" if seen.finding_id else seen.import_id for seen in strays)
    outcome = step.outcome.value if step.outcome else "not looked up"
    why = step.evidence[0].detail if step.evidence else ""
    return f"{step.address} is {outcome}: {names or why}"


def apply_prepared(context: StackContext, prepared: Prepared, argv: Sequence[str], options: GuardOptions) -> GuardedRun:
    """Take the baseline, get the engine's approval, write the intent, apply, take stock.

    Raises as `guard` does; nothing has changed then.
    """
    steps = planned_steps(prepared.plan, prepared.before)
    keys = baseline_keys(steps, prepared.plan.providers, context.around) if options.baseline else {}
    looking = Looking(context.around, keys)
    approval = context.engine.ask(prepared.request, prepared.plan)
    if not approval.given:
        looking.cancel()
        if approval is Approval.INTERRUPTED:
            raise InterruptedRunError("interrupted at the question; nothing was changed", "run the command again")
        return GuardedRun(1)
    baseline = baseline_entries(looking.result(_BASELINE_SECONDS))
    if context.clock.interrupted:
        raise InterruptedRunError(
            "interrupted before the engine was started; nothing was changed", "run the command again"
        )
    _warn_of_gaps(context, baseline)
    intent = _intent(context, prepared, argv, steps, baseline, approval, options)
    context.records.begin(intent, prepared.accepted)
    journal = RunJournal(intent.operation_id, context.records, context.clock, context.console, prepared.plan.secrets)
    imports = tuple((change.address, change.importing) for change in prepared.plan.changes if change.importing)
    ended = context.engine.apply(
        prepared.request, prepared.plan_file, prepared.run_directory, intent.user_agent or "", journal, imports
    )
    journal.flush()
    return _take_stock(context, prepared, intent, journal, ended, options)


def _warn_of_gaps(context: StackContext, baseline: Sequence[BaselineEntry]) -> None:
    for entry in baseline:
        if not entry.complete:
            context.console.warn(
                f"no baseline of {entry.type} ({entry.reason}): what this run makes is harder to prove"
            )


def _intent(
    context: StackContext,
    prepared: Prepared,
    argv: Sequence[str],
    steps: tuple[Step, ...],
    baseline: tuple[BaselineEntry, ...],
    approval: Approval,
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
        approval=approval.value,
        user_agent=f"tfguard/{prepared.operation_id}",
        run_directory=str(prepared.run_directory),
        state_out=_state_out(context, request),
        on_gap_reason=options.reason,
        adopts=options.adopts,
    )


def _state_out(context: StackContext, request: ChangeRequest) -> str | None:
    """Where `-state-out` sends the new state; only the local backend obeys it."""
    if request.state_out is None or context.stack.backend != "local":
        return None
    return str(Path(context.stack.directory) / request.state_out)


def _take_stock(
    context: StackContext,
    prepared: Prepared,
    intent: Intent,
    journal: RunJournal,
    ended: ApplyExit,
    options: GuardOptions,
) -> GuardedRun:
    """Whatever the engine said: write an outcome, then look, then write what the look gave. Never raises."""
    operation = Operation(intent, None)
    try:
        operation = _concluded(context, prepared, intent, journal, ended, options)
    except TfguardError as error:
        context.console.warn(f"{error.what}; the operation stays open: {error.advice}")
        return GuardedRun(ended.exit.exit_code, operation)
    gap = operation.open
    exit_code = ended.exit.exit_code
    return GuardedRun(_EXIT_GAP if gap and exit_code == 0 and options.fail_on_gap else exit_code, operation)


def _concluded(
    context: StackContext,
    prepared: Prepared,
    intent: Intent,
    journal: RunJournal,
    ended: ApplyExit,
    options: GuardOptions,
) -> Operation:
    told = journal.progress.apply_to(intent.steps, ended.exit.exit_code == 0)
    result = Result(
        operation_id=intent.operation_id,
        status=_status(ended),
        ended_at=context.clock.now(),
        steps=tuple(replace(step, outcome=Outcome.UNKNOWN) for step in told),
        exit_code=ended.exit.exit_code,
        signal=ended.exit.signal,
        error=journal.progress.first_failure.detail if journal.progress.first_failure else None,
        stream=ended.health,
    )
    operation = Operation(intent, result)
    try:
        after = context.read_state(operation)
    except InputError as error:
        context.console.warn(error.what)
        unread = Evidence(EvidenceKind.GAP, "the state cannot be read, so nothing can be told from it")
        blind = tuple(replace(step, outcome=Outcome.UNKNOWN, evidence=(unread,)) for step in told)
        result = replace(result, steps=blind, gaps=(error.what,))
        context.records.finish(result)
        return replace(operation, result=result)
    errored = unpushed_errored_state(context, operation, after)
    result = replace(result, errored_state=errored, lineage=after.lineage, serial_after=after.serial)
    if not options.verify:
        return _unverified(context, operation, result, told, after)
    patient = not ended.exit.interrupted and ended.exit.signal is None
    run = _run(context, prepared, intent, journal, told, result, operation)
    verdict = verify(run, context.around, patient=False)
    result = _with(result, verdict)
    context.records.finish(result)
    if patient and result.open:
        result = _with(result, verify(run, context.around, patient=True))
        context.records.finish(result)
    return replace(operation, result=result)


def _with(result: Result, verdict: Verdict) -> Result:
    return replace(result, steps=verdict.steps, gaps=verdict.gaps)


def _unverified(
    context: StackContext, operation: Operation, result: Result, told: tuple[Step, ...], after: StateSnapshot
) -> Operation:
    """`--no-verify`: what is in state is recorded; the rest was not looked for, and is unknown."""
    unlooked = Evidence(EvidenceKind.GAP, "not looked up (--no-verify)")
    steps = tuple(
        replace(step, outcome=Outcome.RECORDED, evidence=(Evidence(EvidenceKind.IN_STATE, "in state"),))
        if after.at(step.address)
        else replace(step, outcome=Outcome.UNKNOWN, evidence=(unlooked,))
        for step in told
    )
    result = replace(result, steps=steps, gaps=("nothing was looked up (--no-verify)",))
    context.records.finish(result)
    return replace(operation, result=result)


def _run(
    context: StackContext,
    prepared: Prepared,
    intent: Intent,
    journal: RunJournal,
    told: tuple[Step, ...],
    result: Result,
    operation: Operation,
) -> Run:
    errored = result.errored_state
    return Run(
        steps=told,
        baseline=intent.baseline,
        providers=prepared.plan.providers,
        failures=journal.progress.failures,
        open_creates=journal.progress.open_creates,
        started_at=intent.started_at,
        quiet_since=result.ended_at,
        stream_whole=result.stream.whole,
        read_state=lambda: context.read_state(operation),
        errored=context.engine.read_state_file(Path(errored.path)) if errored else None,
        secrets=prepared.plan.secrets,
        probe=lambda step, import_id: context.engine.probe_import(step.address, import_id, prepared.request.variables),
    )


def _status(ended: ApplyExit) -> OperationStatus:
    if ended.exit.exit_code == 0:
        return OperationStatus.OK
    if ended.exit.signal in _DEADLY_SIGNALS:
        return OperationStatus.INTERRUPTED
    return OperationStatus.CANCELLED if ended.exit.interrupted else OperationStatus.ERROR
