"""Settle operations that were left open: read what the run left, look it up, close what is proved (rule 6)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from tfguard.flows.context import StackContext
from tfguard.flows.errored import read_errored_state, unpushed_errored_state
from tfguard.flows.run_folder import discard_run_folder
from tfguard.flows.verify import Run, provider_from_record, verify
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.operation import ErroredState, JournalEntry, Operation, OperationStatus, Result, Step, StreamHealth
from tfguard.model.plan import ProviderConfig
from tfguard.ports import ImportProbe
from tfguard.reconcile.progress import Progress, journal_entry


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
    story = _story(context, operation)
    result = operation.result or _ended_alone(context, operation, story)
    errored = unpushed_errored_state(context, operation, context.read_state(operation))
    run = _run(context, operation, result, story, how, errored)
    verdict = verify(run, context.around, how.patient)
    settled = replace(
        result,
        steps=_decided(_keep(operation.steps, verdict.steps), context),
        gaps=verdict.gaps,
        lineage=verdict.state.lineage or result.lineage,
        serial_after=verdict.state.serial if verdict.state.lineage else result.serial_after,
        errored_state=errored or (replace(result.errored_state, pushed=True) if result.errored_state else None),
    )
    context.records.finish(settled)
    if operation.intent.run_directory and operation.result is None:
        discard_run_folder(Path(operation.intent.run_directory), operation.id)
    return replace(operation, result=settled, journal=story.journal)


def _story(context: StackContext, operation: Operation) -> _Story:
    """The journal, completed from the engine's own stream where it still lies on this machine."""
    directory = operation.intent.run_directory
    left = context.engine.leftover_events(Path(directory)) if directory and operation.result is None else None
    if left is None:
        health = operation.result.stream if operation.result else StreamHealth(cut=operation.journal_cut)
        journal = operation.journal
    else:
        events, health = left
        times = [(event, _time(event.timestamp) or operation.intent.started_at) for event in events]
        entries = [journal_entry(event, at, None) for event, at in times]
        ids = {(entry.kind, entry.address): entry.id for entry in operation.journal if entry.id}
        journal = tuple(replace(entry, id=ids.get((entry.kind, entry.address))) for entry in entries if entry)
    progress = Progress()
    progress.add(journal)
    return _Story(journal, health, progress)


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found if found and found.tzinfo else None


def _ended_alone(context: StackContext, operation: Operation, story: _Story) -> Result:
    """The result of a run whose tfguard was ended before it could write one."""
    progress = story.progress
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


def _run(
    context: StackContext,
    operation: Operation,
    result: Result,
    story: _Story,
    how: Settling,
    errored: ErroredState | None,
) -> Run:
    return Run(
        steps=tuple(replace(step, outcome=None, observed=(), evidence=()) for step in result.steps),
        baseline=operation.intent.baseline,
        providers=_providers(context, operation, how),
        failures=story.progress.failures,
        open_creates=story.progress.open_creates,
        started_at=operation.intent.started_at,
        quiet_since=max(result.ended_at, story.progress.last_at or result.ended_at),
        stream_whole=story.health.whole,
        read_state=lambda: context.read_state(operation),
        errored=read_errored_state(context, operation.id, errored) if errored else None,
        probe=lambda step, import_id: _probe(context, step, import_id, how),
    )


def _probe(context: StackContext, step: Step, import_id: str, how: Settling) -> ImportProbe:
    return context.engine.probe_import(step.address, import_id, how.arguments)


def _providers(context: StackContext, operation: Operation, how: Settling) -> Mapping[str, ProviderConfig]:
    """The provider configurations of the run; one that could not be kept whole is read from the configuration again."""
    used = {step.provider_key for step in operation.steps}
    recorded = {provider.key: provider_from_record(provider) for provider in operation.intent.providers}
    if not any(provider.partial and provider.key in used for provider in operation.intent.providers):
        return recorded
    with tempfile.TemporaryDirectory(prefix="tfguard-") as folder:
        plan_file = Path(folder) / "plan"
        arguments = (*how.arguments, *(f"-var-file={name}" for name in operation.intent.var_files))
        failed = context.engine.quiet_plan(("-refresh=false", *arguments), plan_file)
        if failed is not None:
            context.console.warn(f"the provider's credentials in the configuration cannot be read again: {failed}")
            return recorded
        return {**recorded, **context.engine.show_plan(plan_file).providers}


def _keep(before: Sequence[Step], after: Sequence[Step]) -> tuple[Step, ...]:
    """What was observed once stays known, also when it is no longer seen (rule 2: later writes add)."""
    old = {(step.address, step.action): step for step in before}
    return tuple(_kept(old.get((step.address, step.action)), step) for step in after)


def _kept(old: Step | None, new: Step) -> Step:
    if old is None:
        return new
    decided = {seen.finding_id for seen in old.observed}
    if all(seen.finding_id in decided for seen in new.observed if seen.finding_id):
        new = replace(new, disposition=old.disposition)  # a decision is about what was seen then, and nothing else
    gone = [seen.import_id for seen in old.observed if seen.import_id not in {now.import_id for now in new.observed}]
    if not gone:
        return new
    return replace(new, evidence=(*new.evidence, Evidence(EvidenceKind.OPERATION, f"seen earlier: {', '.join(gone)}")))


def _decided(steps: Sequence[Step], context: StackContext) -> tuple[Step, ...]:
    """The steps whose stray objects have all been decided about, marked with the decision."""
    ledger = {entry.finding_id: entry.kind.value for entry in context.records.dispositions()}
    return tuple(_with_disposition(step, ledger) for step in steps)


def _with_disposition(step: Step, ledger: Mapping[str, str]) -> Step:
    strays = [seen.finding_id for seen in step.observed if seen.finding_id]
    if strays and all(stray in ledger for stray in strays):
        return replace(step, disposition=ledger[strays[0]])
    return step
