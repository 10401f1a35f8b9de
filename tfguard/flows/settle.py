"""Settle operations that were left open: read what the run left, look it up, close what is proved (rule 6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from tfguard.errors import InputError, OperationAliveError
from tfguard.flows.context import STATE_UNREAD, StackContext
from tfguard.flows.errored import read_errored_state, unpushed_errored_state
from tfguard.flows.kept_steps import without_secrets
from tfguard.flows.providers import provider_from_record
from tfguard.flows.removals import note_removals
from tfguard.flows.run_folder import discard_run_folder
from tfguard.flows.verify import Run, Verdict, verify
from tfguard.flows.withholding import also_hiding, of_record
from tfguard.model.cloud import cloud_of_source
from tfguard.model.disposition import Disposition
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.operation import (
    ErroredState,
    JournalEntry,
    Operation,
    OperationStatus,
    Outcome,
    Result,
    Step,
    StreamHealth,
)
from tfguard.model.plan import ProviderConfig
from tfguard.model.request import REPAIRS
from tfguard.model.secrets import Withholding, is_withheld
from tfguard.model.state import EMPTY_STATE, StateSnapshot
from tfguard.reconcile.advice import next_actions, what_lives
from tfguard.reconcile.findings import decisions_since, holding
from tfguard.reconcile.look import listings_for
from tfguard.reconcile.progress import SIGNAL, Progress, journal_entry
from tfguard.reconcile.repairs import Compared, compare, exit_code_in, is_repair, told_by_exit


@dataclass(frozen=True, slots=True)
class Settling:
    """How to settle: `arguments` are the engine's `-var` and `-var-file`, needed where its own read is asked for.

    With `patient` the consistency grace is waited out where waiting can still settle something.
    """

    patient: bool = True
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Story:
    """What is known of how a run went: its journal, and how well that or the engine's own stream could be read."""

    journal: tuple[JournalEntry, ...]
    health: StreamHealth
    progress: Progress


def settle(context: StackContext, operation: Operation, how: Settling) -> Operation:
    """The operation with its steps concluded anew, as the record holds it afterwards. Deletes nothing.

    Raises `InputError` when the state cannot be read: then nothing is concluded and the record stays as it was.
    """
    hidden, masks_known = of_record(operation)
    _refuse_if_locked_elsewhere(context, operation)
    story = _story(context, operation, hidden)
    result = operation.result or _ended_alone(context, operation, story)
    state = context.read_state(operation)
    errored = unpushed_errored_state(context, operation, state)
    told, asked = _compared(context, operation, result.steps, state, hidden, masks_known)
    if asked or not is_repair(operation.intent):
        run = _run(context, operation, asked, result, story, how, errored)
        run = replace(run, hidden=hidden, masks_known=masks_known)
        verdict = verify(run, context.around, how.patient)
    else:
        verdict = Verdict((), _lasting_gaps(result), state)
    note_removals(context, operation, verdict.steps)
    settled = replace(
        result,
        steps=_decided(with_earlier(operation.steps, (*told, *verdict.steps)), operation, context),
        gaps=verdict.gaps,
        lineage=verdict.state.lineage or result.lineage,
        serial_after=verdict.state.serial if verdict.state.lineage else result.serial_after,
        errored_state=errored or (replace(result.errored_state, pushed=True) if result.errored_state else None),
    )
    context.records.finish(settled, operation.result)
    if operation.intent.run_directory and not _is_of_elsewhere(context, operation):
        discard_run_folder(Path(operation.intent.run_directory), operation.id)
    return replace(operation, result=settled, journal=story.journal)


def settle_those_that_saw(context: StackContext, ids: Collection[str], arguments: Sequence[str] = ()) -> None:
    """Settle every open operation that saw one of the objects with these finding ids, and say how it stands then."""
    for operation in context.records.open_operations():
        if any(seen.finding_id in ids for step in operation.steps for seen in step.observed):
            settled = settle(context, operation, Settling(patient=False, arguments=tuple(arguments)))
            if not settled.open:
                context.console.say(f"operation {operation.id} is settled")
                continue
            context.console.say(f"operation {operation.id} is still open:")
            for line in what_lives(settled):
                context.console.say(f"  {line}")
            for action in next_actions(settled):
                context.console.say(f"  next: {action}")


def _refuse_if_locked_elsewhere(context: StackContext, operation: Operation) -> None:
    """Raise `OperationAliveError` for a run on another host of which nobody knows the end, while the state is locked.

    Its lease has ended, but that tells of its tfguard: the engine outlives it (rule 8), and only its lock can be seen
    from here. Where the state is not locked, or the backend has no lock, nothing is seen, and the lease has to do.
    """
    if operation.result is not None or not _is_of_elsewhere(context, operation):
        return
    lock = context.engine.lock()
    if lock is not None and not (lock.process_known and lock.process is None):
        who = f" by {lock.who}" if lock.who else ""
        raise OperationAliveError(
            f"operation {operation.id} ran on {operation.intent.actor.host}, and the state is locked{who}: "
            "its engine may still be at work",
            f"wait for it to end; if you know that it has, run `tfguard force-unlock {lock.id}`, then this again",
        )


def _is_of_elsewhere(context: StackContext, operation: Operation) -> bool:
    return operation.intent.boot_id != context.host.boot()


def _story(context: StackContext, operation: Operation, hidden: Withholding) -> _Story:
    """The journal, completed from the engine's own stream where it still lies on this machine."""
    directory = operation.intent.run_directory
    left = context.engine.leftover_events(Path(directory)) if directory and operation.result is None else None
    if left is None:
        health = operation.result.stream if operation.result else StreamHealth(cut=operation.journal_cut)
        journal = operation.journal
    else:
        events, health = left
        times = [(event, _time(event.timestamp) or operation.intent.started_at) for event in events]
        entries = [journal_entry(event, at, hidden, ids=False) for event, at in times]
        journal, missing = _merged([entry for entry in entries if entry], operation.journal)
        if missing or operation.intent.boot_id != context.host.boot():
            # What was not yet on the disk when the machine went down is in neither.
            health = replace(health, whole=False)
    progress = Progress()
    progress.add(journal)
    return _Story(journal, health, progress)


def _merged(
    stream: Sequence[JournalEntry], journal: Sequence[JournalEntry]
) -> tuple[tuple[JournalEntry, ...], Sequence[JournalEntry]]:
    """The stream with the journal's ids and words, and with what only the journal has; and that part alone.

    The journal is on the disk when it has been written, the stream is not: after a power cut it can be the shorter one.
    """
    ids = {_about(entry): entry.id for entry in journal if entry.id}
    failures = {(_about(entry), entry.failure.kind): entry.failure for entry in journal if entry.failure}
    heard = {_about(entry) for entry in stream}
    missing = [entry for entry in journal if entry.kind != SIGNAL and _about(entry) not in heard]
    whole = [
        replace(
            entry,
            id=ids.get(_about(entry)),
            failure=failures.get((_about(entry), entry.failure.kind), entry.failure) if entry.failure else None,
        )
        for entry in stream
    ]
    return (*whole, *missing), missing


def _about(entry: JournalEntry) -> tuple[str, str | None, str | None]:
    return entry.kind, entry.address, entry.action


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found if found and found.tzinfo else None


def _ended_alone(context: StackContext, operation: Operation, story: _Story) -> Result:
    """The result of a run whose tfguard was ended before it could write one."""
    progress = story.progress
    if is_repair(operation.intent) and (code := exit_code_in(story.journal)) is not None:
        return _repaired_alone(operation, story, code)
    started = bool(story.journal) or story.health.whole
    if progress.finished:
        status, said = OperationStatus.OK, "its tfguard was ended; the engine went on alone and finished its work"
    elif not started:
        status, said = OperationStatus.INTERRUPTED, "it was ended before the engine reported anything"
    else:
        status, said = OperationStatus.INTERRUPTED, "it was ended before its work was finished"
    if progress.first_failure is not None and story.health.whole:
        status = OperationStatus.ERROR
    context.console.say(f"operation {operation.id}: {said}")
    return Result(
        operation_id=operation.id,
        status=status,
        ended_at=progress.last_at or operation.intent.started_at,
        steps=progress.apply_to(operation.steps, progress.finished),
        error=progress.first_failure.detail if progress.first_failure else None,
        notes=(said,),
        stream=story.health,
    )


def _repaired_alone(operation: Operation, story: _Story, exit_code: int) -> Result:
    """The result of a repair whose end is on record: its tfguard was ended while it looked."""
    effect = REPAIRS[operation.intent.command]
    return Result(
        operation_id=operation.id,
        status=OperationStatus.OK if exit_code == 0 else OperationStatus.ERROR,
        ended_at=story.journal[-1].at,
        steps=told_by_exit(effect, operation.steps, exit_code),
        exit_code=exit_code,
        notes=("its tfguard was ended while it looked",),
        stream=story.health,
    )


def _compared(
    context: StackContext,
    operation: Operation,
    steps: Sequence[Step],
    state: StateSnapshot,
    hidden: Withholding,
    masks_known: bool,
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The steps that the states conclude, and those to look up. An apply's own steps all have to be looked up."""
    if not is_repair(operation.intent):
        return (), tuple(steps)
    masked = [] if masks_known else [step for step in steps if is_withheld(step.address)]
    steps = [step for step in steps if step not in masked]
    moved_to, gap = operation.intent.moved_to, None
    destination = state
    if moved_to:
        try:
            destination = context.engine.read_state_file(Path(moved_to))
        except InputError:
            destination, gap = EMPTY_STATE, Evidence(EvidenceKind.GAP, STATE_UNREAD)
    here, there, *others = (
        known.readdressed(hidden.address) for known in (state, destination, *context.other_states())
    )
    compared = compare(operation.intent, steps, here, there, (*others, there), context.around.catalog)
    if gap is not None:
        unknown = (replace(step, outcome=Outcome.UNKNOWN, evidence=(gap,)) for step in compared.lost)
        compared = Compared((*compared.told, *unknown), ())
    told = without_secrets(compared.told, also_hiding(hidden, state, destination), marks_gone=True)
    return told, (*compared.lost, *masked)


def _lasting_gaps(result: Result) -> tuple[str, ...]:
    """What no later look can make good: a state that could not be read before the command changed it."""
    return () if result.steps else result.gaps


def _run(
    context: StackContext,
    operation: Operation,
    steps: Sequence[Step],
    result: Result,
    story: _Story,
    how: Settling,
    errored: ErroredState | None,
) -> Run:
    return Run(
        steps=tuple(replace(step, outcome=None, observed=(), evidence=()) for step in steps),
        baseline=operation.intent.baseline,
        providers=providers_of(context, operation, steps, _arguments(operation, how)),
        failures=story.progress.failures,
        open_creates=story.progress.open_creates,
        started_at=operation.intent.started_at,
        quiet_since=max(result.ended_at, story.progress.last_at or result.ended_at),
        stream_whole=story.health.whole,
        read_state=lambda: context.read_state(operation),
        read_known=context.other_states,
        errored=read_errored_state(context, operation.id, errored) if errored else None,
        probe=lambda step, import_id: context.engine.probe_import(step.address, import_id, _arguments(operation, how)),
    )


def _arguments(operation: Operation, how: Settling) -> tuple[str, ...]:
    """The engine's variables: the run's own -var-file, then what the user gives now; values of -var are not kept."""
    return (*(f"-var-file={name}" for name in operation.intent.var_files), *how.arguments)


def providers_of(
    context: StackContext, operation: Operation, steps: Sequence[Step], arguments: Sequence[str]
) -> Mapping[str, ProviderConfig]:
    """The provider configurations that a run's `steps` used, by their keys.

    Where the record has none, or not all of one, the configuration is read, with the engine's `arguments` for it.

    A repair has no plan to take them from, and may be the first command that is recorded for a stack. Where even the
    configuration tells nothing, nobody knows the region, and a list there is a gap.
    """
    used = {step.provider_key: step.provider for step in steps if listings_for(step, context.around.catalog)}
    recorded = {provider.key: provider_from_record(provider) for provider in operation.intent.providers}
    partial = {provider.key for provider in operation.intent.providers if provider.partial}
    unrecorded = is_repair(operation.intent) and not recorded
    if not used or not (used.keys() & partial or unrecorded):
        return recorded
    plan = context.plan_now(arguments)
    if isinstance(plan, str):
        context.console.warn(f"the provider's settings in the configuration cannot be read: {plan}")
        nowhere = {key: _nowhere(key, source) for key, source in used.items()}
        return {**nowhere, **recorded} if unrecorded else recorded
    return {**recorded, **plan.providers}


def _nowhere(key: str, source: str) -> ProviderConfig:
    cloud = cloud_of_source(source)
    return ProviderConfig(key, source, {}, frozenset({cloud.own_place if cloud else "region"}))


def with_earlier(before: Sequence[Step], after: Sequence[Step]) -> tuple[Step, ...]:
    """The steps `after` a look: what was observed `before` stays known, also when it is no longer seen (rule 2)."""
    old = {(step.address, step.action, step.deposed): step for step in before}
    return tuple(_kept(old.get((step.address, step.action, step.deposed)), step) for step in after)


def _kept(old: Step | None, new: Step) -> Step:
    if old is None:
        return new
    decided = {seen.finding_id for seen in old.observed}
    if new.disposition is None and all(seen.finding_id in decided for seen in new.observed if seen.finding_id):
        new = replace(new, disposition=old.disposition)  # a decision is about what was seen then, and nothing else
    gone = [seen.import_id for seen in old.observed if seen.import_id not in {now.import_id for now in new.observed}]
    if not gone:
        return new
    return replace(new, evidence=(*new.evidence, Evidence(EvidenceKind.OPERATION, f"seen earlier: {', '.join(gone)}")))


def _decided(steps: Sequence[Step], operation: Operation, context: StackContext) -> tuple[Step, ...]:
    """The steps whose stray objects have all been decided about, marked with the decision."""
    decided = holding(decisions_since(operation, context.records.dispositions()), context.clock.now())
    return tuple(_with_disposition(step, decided) for step in steps)


def _with_disposition(step: Step, decided: Mapping[str, Disposition]) -> Step:
    strays = [seen.finding_id for seen in step.observed if seen.finding_id]
    if strays and all(stray in decided for stray in strays):
        return replace(step, disposition=decided[strays[0]].kind.value)
    return step
