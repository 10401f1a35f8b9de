"""An operation as text: for `status`, for the summary after a run, and as a line of `history`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tfguard.model.disposition import Disposition
from tfguard.model.operation import Actor, ObservedObject, Operation, OperationStatus, Outcome, Step
from tfguard.model.printable import all_printable, printable
from tfguard.model.transition import Transition
from tfguard.report.paint import Paint

_LOUD = {
    Outcome.ORPHANED: ("red", "bold"),
    Outcome.DUPLICATED: ("red", "bold"),
    Outcome.UNKNOWN: ("yellow", "bold"),
    Outcome.TAINTED: ("yellow",),
    Outcome.RECORDED: ("green",),
    Outcome.ABSENT: ("dim",),
}
SETTLE_DUPLICATE = (
    "delete the one that is not needed at the provider, then run `tfguard recover`; "
    "or, if it is not this stack's, `tfguard recover --not-ours ID --reason TEXT`"
)
_DATA = {True: "; it HOLDS DATA", False: "", None: "; whether it holds data is not known"}
_MEANING = {
    Outcome.ORPHANED: "exists, and the state does not know it",
    Outcome.DUPLICATED: "exists more than once for one address",
    Outcome.UNKNOWN: "could not be told",
    Outcome.TAINTED: "in state, marked for replacement",
    Outcome.RECORDED: "in state",
    Outcome.ABSENT: "not there",
}


def status_text(operation: Operation, status: OperationStatus, next_actions: Sequence[str], paint: Paint) -> str:
    """The whole operation for a person, worst first, with the evidence and the next commands."""
    operation, next_actions = _shown(operation), [printable(action) for action in next_actions]
    intent, result = operation.intent, operation.result
    how = "open" if operation.open else "settled"
    lines = [
        f"operation {operation.id}: {intent.command} by {intent.actor.user}@{intent.actor.host}, {status.value}, "
        + paint(how, "bold", "red" if operation.open else "green"),
        f"  state    {intent.stack.location} (workspace {intent.stack.workspace})",
        f"  started  {intent.started_at:%Y-%m-%d %H:%M:%SZ}"
        + (f", ended {result.ended_at:%H:%M:%SZ}" if result else ""),
    ]
    if intent.actor.ci_system:
        lines.append(f"  ci       {_ci(intent.actor)}")
    if result and result.exit_code is not None:
        lines.append(f"  engine   {intent.engine.name} {intent.engine.version}, exit code {result.exit_code}")
    if result and result.error:
        lines.append(f"  failure  {result.error}")
    lines += [line for step in worst_first(operation.steps) for line in step_lines(step, paint)]
    if result and result.errored_state and not result.errored_state.pushed:
        lines.append(paint(f"  {result.errored_state.path} holds a state that was not saved", "red", "bold"))
    lines += [paint(f"  not complete: {gap}", "yellow") for gap in (result.gaps if result else ())]
    lines += [paint(f"  next: {action}", "bold") for action in next_actions]
    return "\n".join(lines) + "\n"


def _shown(operation: Operation) -> Operation:
    """What is told of an operation, printable; without what is not told, which can be long."""
    return all_printable(replace(operation, intent=replace(operation.intent, baseline=(), providers=()), journal=()))


def _ci(actor: Actor) -> str:
    told = (actor.ci_url or actor.ci_job, actor.ci_commit and f"commit {actor.ci_commit}")
    who = f"{actor.ci_system}, started by {actor.ci_actor}" if actor.ci_actor else actor.ci_system
    return ", ".join(part for part in (who, *told) if part)


def summary_lines(operation: Operation, next_actions: Sequence[str], paint: Paint) -> Iterator[str]:
    """What to say after a run: nothing when all is in state, else each thing that is not, and what to do."""
    operation, next_actions = _shown(operation), [printable(action) for action in next_actions]
    marked = Outcome.TAINTED if operation.intent.command != "taint" else None  # which is what the user asked for
    loud = [step for step in worst_first(operation.steps) if step.open or (marked and step.outcome is marked)]
    for step in loud:
        yield from (line.removeprefix("  ") for line in step_lines(step, paint))
    result = operation.result
    if result and result.signal:
        yield paint(f"the engine was ended by signal {result.signal}; what it had begun was looked up", "yellow")
    health = result.stream if result else None
    if health and (health.plain or health.cut):
        yield f"the event stream had {health.plain} plain and {health.cut} cut lines; outcomes rest on state and lists"
    for gap in result.gaps if result else ():
        yield paint(f"not complete: {gap}", "yellow")
    for action in next_actions:
        yield paint(f"next: {action}", "bold")
    # The last and loudest line, since the engine's own notice drowns among other errors (case B18).
    if result and result.errored_state and not result.errored_state.pushed:
        where = f"; a copy is at {result.errored_state.rescued}" if result.errored_state.rescued else ""
        yield paint(f"THE STATE WAS NOT SAVED: it is in {result.errored_state.path}{where}", "red", "bold")


def worst_first(steps: Sequence[Step]) -> list[Step]:
    """The steps, those that need somebody's attention before the others."""
    order = list(_LOUD)
    return sorted(steps, key=lambda step: order.index(step.outcome) if step.outcome else -1)


def step_lines(step: Step, paint: Paint) -> Iterator[str]:
    """A step: address and outcome, its objects, and why."""
    outcome = step.outcome
    no_outcome = "not done" if step.evidence else "not looked up yet"
    word = paint(outcome.value, *_LOUD[outcome]) if outcome else no_outcome
    decided = f", {step.disposition}" if step.disposition else ""
    meaning = f" ({_MEANING[outcome]})" if outcome else ""
    which = f" (deposed object {step.deposed})" if step.deposed else ""
    yield f"  {step.address}{which}: {word}{meaning}{decided}"
    if outcome is Outcome.RECORDED and not step.error:
        return
    if step.error:
        yield f"      engine: {step.status.value}, {step.error}"
    for seen in step.observed:
        yield f"      {object_line(seen)}"
    for evidence in step.evidence:
        yield f"      evidence: {evidence.kind.value}: {evidence.detail}"
    if outcome is Outcome.DUPLICATED and step.open:
        yield f"      to settle: {SETTLE_DUPLICATE}"
    if step.tainted:
        stateful = next((seen.stateful for seen in step.observed if seen.in_state), None)
        yield f"      {paint(what_the_next_apply_does(stateful), 'bold')}"


def what_the_next_apply_does(stateful: bool | None) -> str:
    """What becomes of a tainted object; `stateful` tells whether its kind holds data, None where nobody knows."""
    return f"the next apply will destroy it and create it anew, unless it is kept{_DATA[stateful]}"


def object_line(seen: ObservedObject) -> str:
    """An object: its import id, where it is, since when, how sure, and the finding's id."""
    where = " ".join(part for part in (seen.cloud, seen.account or "", seen.region) if part)
    since = f", created {seen.created_at:%Y-%m-%d %H:%M:%SZ}" if seen.created_at else ""
    if seen.in_state:
        return f"the state holds {seen.import_id} ({where}{since})"
    name = f"{seen.finding_id}: " if seen.finding_id else "older object "
    return f"{name}{seen.import_id} ({where}{since}), {seen.confidence.value}"


def deletion_line(entry: Disposition) -> str:
    """A deletion in the ledger: of what, how far it is, since when, and by whom."""
    what = f"{entry.object.type} {entry.import_id}" if entry.object else entry.import_id or "an object"
    stage = entry.stage.value if entry.stage else "unknown"
    since = f"since {entry.at:%Y-%m-%d %H:%M:%SZ} by {entry.actor}"
    return printable(f"the deletion of {what} ({entry.finding_id}) is {stage} {since}")


def history_line(operation: Operation, status: OperationStatus) -> str:
    """One line of `history`."""
    intent = operation.intent
    how = "open" if operation.open else "settled"
    return printable(
        f"{operation.id}  {intent.started_at:%Y-%m-%d %H:%M:%SZ}  {intent.command:<22} {status.value:<12} {how:<8} "
        f"{intent.actor.user}@{intent.actor.host}"
    )


def transition_lines(transitions: Iterable[Transition]) -> Iterator[str]:
    """What changed of an operation, below its line of `history`: when, who, what, and why."""
    for change in transitions:
        before = f"{change.before} -> " if change.before else ""
        why = f": {change.why}" if change.why else ""
        yield printable(f"    {change.at:%Y-%m-%d %H:%M:%SZ}  {change.by}  {change.what}  {before}{change.after}{why}")
