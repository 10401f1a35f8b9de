"""After the engine has ended, whatever it said: write the outcome, look, and write what the look gave (rule 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.errors import ConflictError, InputError, TfguardError
from tfguard.flows.context import STATE_UNREAD, StackContext
from tfguard.flows.errored import unpushed_errored_state
from tfguard.flows.kept_steps import without_secrets
from tfguard.flows.removals import note_removals
from tfguard.flows.run_journal import RunJournal
from tfguard.flows.settle import with_earlier
from tfguard.flows.verify import Run, Verdict, verify
from tfguard.flows.withholding import also_hiding, remember_copies, withheld_intent
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.operation import Intent, Operation, OperationStatus, Outcome, Result, Step
from tfguard.model.plan import Action, ProviderConfig
from tfguard.model.secrets import Withholding
from tfguard.model.state import StateSnapshot
from tfguard.ports import ApplyExit
from tfguard.reconcile.marks import recorded
from tfguard.reconcile.transitions import NOT_LOOKED_UP

# A shell reports its child's death as 128 + N, so an exit code can tell of a signal too (case B06).
_DEADLY_SIGNALS = frozenset({2, 6, 9, 11, 13, 15})


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that has ended: what was meant, what was heard, how it ended.

    `hidden` is what may not be written, also of `intent`; `providers` are the plan's, `arguments` the engine's `-var`
    and `-var-file`, `look` is false for `--no-verify`; `notes` are for the outcome.
    """

    intent: Intent
    journal: RunJournal
    ended: ApplyExit
    hidden: Withholding
    providers: Mapping[str, ProviderConfig]
    arguments: tuple[str, ...]
    look: bool
    notes: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[Step, ...]:
        """The steps with what the engine told of them."""
        return self.journal.progress.apply_to(self.intent.steps, self.ended.exit.exit_code == 0)


def take_stock(context: StackContext, ran: Ran) -> Operation:
    """The operation with its outcome, as far as it could be concluded and recorded.

    Never raises: the engine's exit code must get through.
    """
    result = _first_result(context, ran)
    intent = withheld_intent(ran.intent, ran.hidden)
    operation = Operation(intent, result)
    try:
        # How the engine ended is known to nobody else: it must not get lost while tfguard looks.
        result = first_written(context, result)
        operation = Operation(intent, result)
        return _concluded(context, ran, operation, result)
    except TfguardError as error:
        context.console.warn(f"{error.what}; the operation stays open: {error.advice}")
    except Exception as error:  # noqa: BLE001 (a defect in looking must not take the engine's exit code away)
        context.console.warn(f"the look failed ({type(error).__name__}: {error}); the operation stays open")
    return operation


def first_written(context: StackContext, result: Result) -> Result:
    """The result as it was written, also where somebody took this run for dead and wrote one first.

    That one was concluded while the engine could still make objects, so the operation is open again until all is looked
    up once more. What it had seen stays known; what was decided on its word does not count any more, and is noted.
    """
    try:
        context.records.write_outcome(result, None)
        return result
    except ConflictError as error:
        standing = context.records.operation(result.operation_id).result
        if standing is None:
            raise
        context.console.warn(f"{error.what}, which took this run for dead; everything is looked up again")
    decided = [f"{step.address} was {step.disposition}" for step in standing.steps if step.disposition]
    early = "; ".join(["it was taken for dead and settled while it still ran; that was looked up again", *decided])
    steps = with_earlier(standing.steps, result.steps)
    reopened = replace(
        result,
        steps=tuple(replace(step, disposition=None) for step in steps),
        errored_state=standing.errored_state,
        gaps=tuple(dict.fromkeys((*result.gaps, *standing.gaps))),
        notes=(*result.notes, *standing.notes, early),
    )
    context.records.reopen(result.operation_id)  # first, so that an open outcome never stands off the list
    context.records.write_outcome(reopened, standing)
    return reopened


def _first_result(context: StackContext, ran: Ran) -> Result:
    failure = ran.journal.progress.first_failure
    return Result(
        operation_id=ran.intent.operation_id,
        status=status_of(ran.ended),
        ended_at=context.clock.now(),
        steps=without_secrets(all_unknown(ran.told, NOT_LOOKED_UP), ran.hidden),
        exit_code=ran.ended.exit.exit_code,
        signal=ran.ended.exit.signal,
        error=failure.detail if failure else None,
        notes=ran.notes,
        stream=ran.ended.health,
    )


def _concluded(context: StackContext, ran: Ran, operation: Operation, result: Result) -> Operation:
    try:
        after = context.read_state(operation)
    except InputError as error:
        context.console.warn(error.what)
        steps = all_unknown(ran.told, "the state cannot be read, so nothing can be told from it")
        steps = without_secrets(steps, ran.hidden)
        return _finished(context, operation, replace(result, steps=steps, gaps=(STATE_UNREAD,)))
    if ran.intent.run_directory:
        remember_copies(after, also_hiding(ran.hidden, after), Path(ran.intent.run_directory).parent)
    errored = unpushed_errored_state(context, operation, after)
    result = replace(result, errored_state=errored, lineage=after.lineage, serial_after=after.serial)
    if not ran.look:
        gaps = ("nothing was looked up (--no-verify)",)
        steps = _by_state_alone(ran.told, after.readdressed(ran.hidden.address))
        steps = without_secrets(steps, also_hiding(ran.hidden, after))
        return _finished(context, operation, replace(result, steps=steps, gaps=gaps))
    run = _run(context, ran, result, operation)
    looked = _with(result, verify(run, context.around, patient=False))
    note_removals(context, operation, looked.steps)
    exited = ran.ended.exit
    if looked.open and not exited.interrupted and exited.signal is None:
        # Kept while waiting: a pipeline that loses patience must find what is known so far.
        context.records.write_outcome(looked, operation.result)
        operation = replace(operation, result=looked)
        looked = _with(looked, verify(run, context.around, patient=True))
    return _finished(context, operation, looked)


def _finished(context: StackContext, operation: Operation, result: Result) -> Operation:
    context.records.finish(result, operation.result)
    return replace(operation, result=result)


def _with(result: Result, verdict: Verdict) -> Result:
    return replace(result, steps=with_earlier(result.steps, verdict.steps), gaps=verdict.gaps)


def all_unknown(steps: tuple[Step, ...], why: str) -> tuple[Step, ...]:
    """The steps before anybody has looked, with the reason why nothing is known of them."""
    evidence = (Evidence(EvidenceKind.GAP, why),)
    return tuple(replace(step, outcome=Outcome.UNKNOWN, evidence=evidence) for step in steps)


def _by_state_alone(steps: tuple[Step, ...], after: StateSnapshot) -> tuple[Step, ...]:
    """What is in state is recorded; the rest was not looked for, and is unknown."""
    unlooked = all_unknown(steps, "not looked up (--no-verify)")
    held = {step.address: after.at(step.address) for step in steps if step.action is not Action.NOOP}
    return tuple(recorded(step, found) if (found := held.get(step.address)) else step for step in unlooked)


def _run(context: StackContext, ran: Ran, result: Result, operation: Operation) -> Run:
    errored, progress = result.errored_state, ran.journal.progress
    return Run(
        steps=ran.told,
        baseline=ran.intent.baseline,
        providers=ran.providers,
        failures=progress.failures,
        open_creates=progress.open_creates,
        started_at=ran.intent.started_at,
        quiet_since=result.ended_at,
        stream_whole=result.stream.whole,
        read_state=lambda: context.read_state(operation),
        errored=context.engine.read_state_file(Path(errored.path)) if errored else None,
        hidden=ran.hidden,
        marks_gone=False,
        read_known=context.other_states,
        probe=lambda step, import_id: context.engine.probe_import(step.address, import_id, ran.arguments),
    )


def status_of(ended: ApplyExit) -> OperationStatus:
    """What a run's end makes of its operation."""
    if ended.exit.exit_code == 0:
        return OperationStatus.OK
    if ended.exit.signal in _DEADLY_SIGNALS:
        return OperationStatus.INTERRUPTED
    return OperationStatus.CANCELLED if ended.exit.interrupted else OperationStatus.ERROR
