"""`tfguard recover`: rescue and push an errored state, look every unknown step up, close what the evidence closes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.errors import CorruptRecordError, InputError, OperationAliveError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.errored import push
from tfguard.flows.history import findings
from tfguard.flows.run_folder import in_use
from tfguard.flows.settle import Settling, settle
from tfguard.flows.stray_findings import findings_with
from tfguard.flows.upkeep import holding
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import Operation, Outcome, Step

CONFIRMED_ABSENT = "confirmed-absent"


@dataclass(frozen=True, slots=True)
class RecoverOptions:
    """`yes` approves a push without a terminal; `arguments` are the engine's `-var` and `-var-file`.

    `confirm_absent` are addresses of steps that nobody can look up and of which a person knows that nothing exists;
    `not_ours` are findings that a person knows to belong elsewhere, and keeps; `reason` says how they know.
    """

    yes: bool = False
    arguments: tuple[str, ...] = ()
    confirm_absent: tuple[str, ...] = ()
    not_ours: tuple[str, ...] = ()
    reason: str = ""


def recover(context: StackContext, options: RecoverOptions) -> tuple[Operation, ...]:
    """Settle every open operation as far as it goes; what was open, as it stands now. Deletes nothing.

    Raises `OperationAliveError` while one runs, `CorruptRecordError` when an operation's record cannot be read.
    """
    if (options.confirm_absent or options.not_ours) and not options.reason:
        raise UsageError("a person's word needs a reason", "add --reason TEXT: how do you know it?")
    if context.records.head_is_damaged():
        _refuse_if_any_lives(context)
        context.records.rebuild_head(context.console)
    head = context.records.head()
    if not head.open_operations and not head.current:
        return ()
    with holding(context, new_operation_id(context.clock.now()), None):
        return _recover(context, options)


def _recover(context: StackContext, options: RecoverOptions) -> tuple[Operation, ...]:
    context.engine.discard_import_blocks()
    _keep_what_is_not_ours(context, options)
    unreadable: CorruptRecordError | None = None
    settled: list[Operation] = []
    head = context.records.head()
    for operation_id in context.records.without_outcome():
        if operation_id not in head.open_operations and _has_no_end(context, operation_id):
            context.console.warn(f"operation {operation_id} has no outcome and was on no list; it is settled now")
            head = context.records.reopen(operation_id)
    if head.current and head.current not in head.open_operations:
        lost = context.records.set_damage_aside(head.current, context.console)
        if lost:
            context.records.outcome_lost(head.current)
            head = context.records.reopen(head.current)
        elif head.current:
            context.records.operation(head.current)  # raises what its damage is: nothing stands for an intent
    for operation_id in head.open_operations:
        if context.clock.interrupted:
            break
        context.records.set_damage_aside(operation_id, context.console)
        try:
            settled.append(_recover_one(context, context.records.operation(operation_id), options))
        except CorruptRecordError as error:
            context.console.warn(error.what)
            unreadable = error
    if unreadable is not None:
        raise unreadable
    return tuple(settled)


def _has_no_end(context: StackContext, operation_id: str) -> bool:
    """Whether nothing tells how an operation ended; one that is just being packed away has its end in the archive."""
    try:
        return context.records.operation(operation_id).result is None
    except CorruptRecordError:
        return True


def _keep_what_is_not_ours(context: StackContext, options: RecoverOptions) -> None:
    """Put a person's word that an object belongs elsewhere into the ledger: it is kept, and no finding any more."""
    if not options.not_ours:
        return
    others = findings_with(options.not_ours, findings(context.records)[0])
    actor = context.host.actor()
    context.records.decide(
        [
            Disposition(
                finding_id=finding.id,
                kind=DispositionKind.RETAIN,
                at=context.clock.now(),
                actor=actor.signature,
                reason=f"not ours: {options.reason}",
                operation_id=finding.operation_id or "",
            )
            for finding in others
        ]
    )


def _refuse_if_any_lives(context: StackContext) -> None:
    """Without a sound head there is no lease to ask: the runs' own folders tell whether one still goes on here, and how
    old the damage is whether one may go on elsewhere."""
    for operation_id in context.records.operation_ids():
        try:
            intent = context.records.operation(operation_id).intent
        except CorruptRecordError:
            continue
        if intent.run_directory and in_use(Path(intent.run_directory), context.host):
            raise OperationAliveError(
                f"operation {operation_id} by {intent.actor.user} is running, beside a damaged head",
                "wait for it to end, then run `tfguard recover` again",
            )
    if context.records.head_is_fresh() and any(
        _began_elsewhere(context, name) for name in context.records.without_outcome()
    ):
        raise OperationAliveError(
            "the damaged head was written a moment ago, maybe by a run on another host that goes on",
            "look whether one runs, and run `tfguard recover` again in a minute",
        )


def _began_elsewhere(context: StackContext, operation_id: str) -> bool:
    try:
        return context.records.operation(operation_id).intent.boot_id != context.host.boot()
    except CorruptRecordError:
        return True


def _recover_one(context: StackContext, operation: Operation, options: RecoverOptions) -> Operation:
    how = Settling(arguments=options.arguments)
    operation = settle(context, operation, how)
    errored = operation.result.errored_state if operation.result else None
    if errored is not None and not errored.pushed and not context.clock.interrupted:
        question = f"Push {errored.path} (serial {errored.serial}) to {operation.intent.stack.location}?"
        if not (options.yes or context.console.confirm(question)):
            context.console.say(f"{errored.path} was not pushed; without a terminal, --yes approves")
            return operation
        if not push(context, operation.id, errored):
            context.console.warn("the engine refused to push the state; see its words above")
            return operation
        context.console.say(f"{errored.path} was pushed")
        operation = settle(context, operation, how)
    return _confirmed(context, operation, options) if options.confirm_absent else operation


def _confirmed(context: StackContext, operation: Operation, options: RecoverOptions) -> Operation:
    """Close steps that nobody can look up, on a person's word: who said it, when, and why."""
    if operation.result is None:
        return operation
    actor = context.host.actor()
    said = f"{actor.signature} at {context.clock.now():%Y-%m-%dT%H:%M:%SZ}: {options.reason}"
    for address in options.confirm_absent:
        _refuse_unless_unknown(operation.steps, address)
    steps = tuple(
        _with_word(step, said) if step.address in options.confirm_absent and _is_all_unknown(step) else step
        for step in operation.steps
    )
    result = replace(operation.result, steps=steps)
    context.records.finish(result, operation.result)
    return replace(operation, result=result)


def _refuse_unless_unknown(steps: Sequence[Step], address: str) -> None:
    if not any(step.address == address and _is_all_unknown(step) for step in steps):
        raise InputError(
            f"{address} is no step of which nothing is known: only such a one can be closed on your word",
            "see `tfguard status` for what it is",
        )


def _is_all_unknown(step: Step) -> bool:
    return step.outcome is Outcome.UNKNOWN and not step.observed


def _with_word(step: Step, said: str) -> Step:
    evidence = (*step.evidence, Evidence(EvidenceKind.OPERATION, f"said to be absent by {said}"))
    return replace(step, evidence=evidence, disposition=CONFIRMED_ABSENT)
