"""What changed from one outcome of an operation to the next, for its audit trail. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tfguard.model.disposition import Disposition
from tfguard.model.naming import first_of
from tfguard.model.operation import Intent, Operation, OperationStatus, Outcome, Result, Step
from tfguard.model.transition import Transition

NOT_LOOKED_UP = "not looked up yet"
NOT_COMPARED = "not compared yet"
"""Why nothing is known of the steps of an outcome that is written before anybody has looked."""

_RUNNING = OperationStatus.RUNNING.value
_LOOKS_TO_COME = (NOT_LOOKED_UP, NOT_COMPARED)
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes an outcome, and when."""

    by: str
    at: datetime


def transitions(
    result: Result,
    basis: Result | None,
    told: Mapping[str, str],
    ledger: Sequence[Disposition],
    writer: Writer,
) -> tuple[Transition, ...]:
    """What `result` changes: the operation, and the steps.

    `basis` is the outcome before it, `told` what the audit trail says last of each operation and step; it comes first,
    so that what could not be written once is made good by the next outcome. A step that comes out as it was planned,
    and of which nothing else was ever told, has no line.
    """
    if basis is not None and result.operation_id not in told:
        missed = transitions(basis, None, told, ledger, writer)
        told = {**told, **last_told(missed)}
        return (*missed, *transitions(result, basis, told, ledger, writer))
    known = {**_standing_before(basis), **told}
    steps = {} if basis is None else dict(_by_name(basis.steps))
    changes = [*_of_operation(result, known.get(result.operation_id, _RUNNING), writer)]
    for what, step in _by_name(result.steps):
        before, after = known.get(what), _standing(step)
        if after is None or after == before or (before is None and (_is_to_come(step) or _is_as_planned(step))):
            continue
        changes.append(Transition(writer.at, writer.by, what, before, after, _why(step, steps.get(what), ledger)))
    return tuple(changes)


def lost_outcome(operation_id: str, told: Mapping[str, str], writer: Writer) -> tuple[Transition, ...]:
    """What it changes that a settled operation's outcome cannot be read any more."""
    before = told.get(operation_id)
    if before is None or not before.endswith(_settled(False)):
        return ()
    why = "its outcome could not be read any more, and was moved aside"
    return (Transition(writer.at, writer.by, operation_id, before, f"{_RUNNING}{_settled(True)}", why),)


def begun(intent: Intent) -> Transition:
    """The beginning of an operation, which its intent tells."""
    beside = f", beside what was open: {intent.on_gap_reason}" if intent.on_gap_reason else ""
    return Transition(
        intent.started_at, intent.actor.signature, intent.operation_id, None, _RUNNING, f"{intent.command}{beside}"
    )


def audit_trail(operation: Operation, told: Sequence[Transition]) -> tuple[Transition, ...]:
    """Everything that changed of an operation, from its beginning on."""
    return (begun(operation.intent), *told)


def last_told(told: Sequence[Transition]) -> Mapping[str, str]:
    """What an audit trail says last of each operation and step."""
    return {transition.what: transition.after for transition in told}


def _standing_before(basis: Result | None) -> Mapping[str, str]:
    if basis is None:
        return {}
    steps = {what: _standing(step) for what, step in _by_name(basis.steps) if not _is_to_come(step)}
    known = {what: standing for what, standing in steps.items() if standing is not None}
    return {basis.operation_id: _operation_standing(basis), **known}


def _of_operation(result: Result, before: str, writer: Writer) -> Iterator[Transition]:
    after = _operation_standing(result)
    if after != before:
        why = _why_ended(result) if before.startswith(_RUNNING) else _why_so(result)
        yield Transition(writer.at, writer.by, result.operation_id, before, after, why)


def _operation_standing(result: Result) -> str:
    return f"{result.status.value}{_settled(result.open)}"


def _settled(is_open: bool) -> str:
    return ", open" if is_open else ", settled"


def _standing(step: Step) -> str | None:
    if step.outcome is None:
        return None
    return f"{step.outcome.value} ({step.disposition})" if step.disposition else step.outcome.value


def _is_to_come(step: Step) -> bool:
    """Whether nobody has looked at the step yet, so that its outcome says nothing."""
    only = [item.detail for item in step.evidence]
    return step.disposition is None and step.outcome is Outcome.UNKNOWN and len(only) == 1 and only[0] in _LOOKS_TO_COME


def _is_as_planned(step: Step) -> bool:
    wanted = Outcome.ABSENT if step.action.deletes and not step.action.creates else Outcome.RECORDED
    return step.disposition is None and step.outcome is wanted


def _by_name(steps: Sequence[Step]) -> Iterator[tuple[str, Step]]:
    """The steps by what tells them apart: the address, with the action where several have the same one."""
    often = Counter((step.address, step.deposed) for step in steps)
    for step in steps:
        name = f"{step.address} (deposed object {step.deposed})" if step.deposed else step.address
        yield (f"{name} ({step.action.value})" if often[step.address, step.deposed] > 1 else name), step


def _why(step: Step, before: Step | None, ledger: Sequence[Disposition]) -> str:
    """What led to it: a decision with who made it, else the evidence that is new, else all of it."""
    if step.disposition and (before is None or before.disposition != step.disposition):
        seen = {found.finding_id for found in step.observed}
        decided = [line for line in ledger if line.finding_id in seen and line.kind.value == step.disposition]
        if decided:
            return f"{decided[-1].kind.value} by {decided[-1].actor}: {decided[-1].reason}"
    known = before.evidence if before else ()
    new = [item.detail for item in step.evidence if item not in known] or [item.detail for item in step.evidence]
    return "; ".join(new) or step.error or ""


def _why_ended(result: Result) -> str:
    code = f"exit code {result.exit_code}" if result.exit_code is not None else ""
    signal = f"signal {result.signal}" if result.signal is not None else ""
    return "; ".join(filter(None, (code, signal, result.error, *result.notes)))


def _why_so(result: Result) -> str:
    if not result.open:
        return "nothing is open any more"
    unpushed = result.errored_state is not None and not result.errored_state.pushed
    steps = [step.address for step in result.steps if step.open]
    return "; ".join(
        filter(None, (f"open: {first_of(steps, _NAMED)}" if steps else "", "a state was not saved" if unpushed else ""))
    )
