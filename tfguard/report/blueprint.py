"""A blueprint's request as text: how it stands, its steps as a tree, what they made, and what can be done next."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from tfguard.model.blueprint_request import RequestState
from tfguard.model.blueprint_view import BlueprintView, ListedRequest, ObjectView, PlanOutline, ProbeView, StepView
from tfguard.model.durations import in_words
from tfguard.model.naming import first_of
from tfguard.model.operation import StepStatus
from tfguard.model.printable import all_printable
from tfguard.report.paint import Paint

_STYLES: Mapping[StepStatus, tuple[str, ...]] = {
    StepStatus.ERROR: ("red", "bold"),
    StepStatus.RUNNING: ("yellow", "bold"),
    StepStatus.RETAINED: ("yellow",),
    StepStatus.PENDING: ("dim",),
    StepStatus.OK: ("green",),
    StepStatus.DESTROYED: ("dim",),
    StepStatus.ABSENT: ("dim",),
}
_GOOD = (RequestState.READY, RequestState.CLEANED)
_DECIDED = {"destroy": "destroyed", "retain": "retained", "import": "adopted"}
_WIDTH = max(len(status.value) for status in StepStatus)
_DEEPEST = 10
"""A longer chain is not indented any further, or its lines leave the screen."""

_MANY = 40
"""From so many steps on, only those that somebody has to look at show their objects and their reasons."""

_FEW = 5

_NAMED = 10
"""So many objects that a plan takes away are named."""


def blueprint_text(view: BlueprintView, paint: Paint) -> str:
    """The whole request for a person: the commands that lead on come last, where they are seen."""
    view = all_printable(view)
    lines = [_headline(view, paint)]
    lines += [paint(f"  {note}", "yellow") for note in view.notes]
    if view.transitions:
        last = view.transitions[-1]
        lines.append(f"  {_stamp(last.at)} by {last.actor}: {last.why}")
    if view.owner or view.cost_owner:
        lines.append(f"  owner {view.owner or 'not named'}, cost owner {view.cost_owner or 'not named'}")
    lines.append(f"  steps: {counted(view.steps)}")
    lines.append("")
    many = len(view.steps) > _MANY
    statuses = {step.id: step.status for step in view.steps}
    for step, level in tree(view.steps):
        lines += _step_lines(step, level, waits(step, statuses), view.now, paint, many=many)
    if view.probes:
        lines.append("")
        lines += [_probe_line(probe, view.now, paint) for probe in view.probes]
    if many and (errors := [step for step in view.steps if step.status is StepStatus.ERROR]):
        lines.append("")
        lines += [paint(f"  error: {step.id}: {step.why}", "red") for step in errors[:_FEW]]
        lines += [f"  and {len(errors) - _FEW} more"] if len(errors) > _FEW else []
    if view.next_actions:
        lines.append("")
        longest = max(len(action.command) for action in view.next_actions)
        lines += [
            f"  {paint(f'next: {action.command}', 'bold')}{' ' * (longest - len(action.command))}  ({action.why})"
            for action in view.next_actions
        ]
    return "\n".join(lines) + "\n"


def requests_text(listed: Sequence[ListedRequest]) -> str:
    """The requests of a blueprint, a line each."""
    return "".join(f"{_listed(all_printable(one))}\n" for one in listed)


def _listed(one: ListedRequest) -> str:
    archived = ", archived" if one.archived else ""
    if one.state is None or one.created_at is None:
        return f"{one.request_id}  cannot be read{archived}: {one.trouble}"
    ended = f", ended {_stamp(one.ended_at)}" if one.ended_at else ""
    owner = f", owner {one.owner}" if one.owner else ""
    word = one.state.value
    if one.state is RequestState.READY and not one.ready_now:
        word += ", but not now"
    return f"{one.request_id}  {word}, begun {_stamp(one.created_at)} by {one.actor}{ended}{owner}{archived}"


def headline(view: BlueprintView) -> str:
    """How it stands, in one line without the blueprint's name."""
    if view.state is None:
        return "not asked for yet"
    word = view.state.value
    if view.since is not None:
        word += f" for {in_words(view.now - view.since)}"
    if view.state is RequestState.READY and not view.ready_now:
        word += f", but {_but(view)}"
    return f"{word}{', overdue' if view.overdue else ''}{', at work' if view.live else ''}"


def _but(view: BlueprintView) -> str:
    """Why a request that became Ready is not now."""
    told: list[str] = []
    if many := len(view.failing_probes):
        told.append(f"{many} probe{'s' if many > 1 else ''} failed when last asked")
    taken = {step.id for step in view.steps if step.status in (StepStatus.DESTROYED, StepStatus.ABSENT)}
    if names := [name for name in view.changed_steps if name in taken]:
        told.append(f"{first_of(names, _FEW)} {'was' if len(names) == 1 else 'were'} taken away by `destroy --step`")
    if names := [name for name in view.changed_steps if name not in taken]:
        told.append(f"{first_of(names, _FEW)} {'is not as it was' if len(names) == 1 else 'are not as they were'}")
    return " and ".join(told) or "not every probe was asked"


def counted(steps: Sequence[StepView]) -> str:
    """How many steps have which status, those that need somebody first."""
    counts = Counter(step.status for step in steps)
    return ", ".join(f"{counts[status]} {status.value}" for status in _STYLES if counts[status]) or "none"


def tree(steps: Sequence[StepView]) -> Iterator[tuple[StepView, int]]:
    """Each step once, with its level: below that of its needs which comes last, since it is the one it waits for
    longest. A graph is no tree, so the others are named in the line."""
    by_name = {step.id: step for step in steps}
    place = {step.id: number for number, step in enumerate(steps)}
    children: dict[str | None, list[StepView]] = defaultdict(list)
    for step in steps:
        known = [need for need in step.needs if need in by_name]
        above = max(known, key=lambda need: (by_name[need].depth, place[need]), default=None)
        children[above].append(step)
    waiting = [(step, 0) for step in reversed(children[None])]
    while waiting:
        step, level = waiting.pop()
        yield step, level
        waiting += [(child, level + 1) for child in reversed(children[step.id])]


def waits(step: StepView, statuses: Mapping[str, StepStatus]) -> str:
    """What a pending step waits for, and what that hangs on, with the `statuses` of all steps; empty for any other."""
    if not step.blocked_by:
        return ""
    told = f"behind {first_of([_named(name, statuses) for name in step.blocked_by], _FEW)}"
    further = [name for name in step.held_up_by if name not in step.blocked_by]
    culprits = [_named(name, statuses) for name in further if statuses.get(name) is not StepStatus.PENDING]
    return f"{told}, held up by {first_of(culprits, _FEW)}" if culprits else told


def plan_text(plan: PlanOutline) -> str:
    """What the engine would do in a stack: how much, and the objects that go by their addresses."""
    if plan.untold:
        return f"plan: {plan.untold}"
    text = f"plan: {plan.add} to add, {plan.change} to change, {plan.destroy} to destroy"
    deleted, replaced = plan.deleted[:_NAMED], plan.replaced[: max(0, _NAMED - len(plan.deleted))]
    words = (("deletes", deleted), ("replaces", replaced))
    told = [f"{word} {', '.join(addresses)}" for word, addresses in words if addresses]
    more = len(plan.deleted) + len(plan.replaced) - len(deleted) - len(replaced)
    text += f": {'; '.join(told)}{f' and {more} more' if more else ''}" if told else ""
    now = f" (by the outputs that {', '.join(plan.by_outputs_of)} gives now, before it is applied)"
    return f"{text}{now if plan.by_outputs_of else ''}"


def failed_before(step: StepView) -> str:
    """Why the work of a step failed, where its record has said something else since."""
    return f"it had failed: {step.failure}" if step.failure and step.failure not in step.why else ""


def object_text(found: ObjectView) -> str:
    """An object: what it is, what was wanted, what exists since when, who pays, and what is decided about it."""
    wanted = ", ".join(f"{name} {value}" for name, value in found.desired.items())
    parts = [f"{found.type} {found.observed_id}" if found.observed_id else found.address]
    if wanted and wanted.split(" ", 1)[-1] != found.observed_id:
        parts.append(f"wanted {wanted}")
    parts += [f"created {_stamp(found.created_at)}"] if found.created_at else []
    parts += [f"cost owner {found.cost_owner}"] if found.cost_owner else []
    parts += ["holds data"] if found.stateful else []
    if found.disposition == "retain" and found.until is not None:
        parts.append(f"retained until {_day(found.until)}{f' for {found.owner}' if found.owner else ''}")
    elif found.disposition:
        parts.append(_DECIDED.get(found.disposition, found.disposition))
    return ", ".join(parts)


def _headline(view: BlueprintView, paint: Paint) -> str:
    style = "green" if view.ready_now or view.state in _GOOD[1:] else "red" if view.state else "dim"
    if view.live:
        style = "yellow"
    request = f" (request {view.request_id})" if view.request_id else ""
    return f"{paint(view.blueprint, 'bold')}{request}: {paint(headline(view), 'bold', style)}"


def _step_lines(step: StepView, level: int, behind: str, now: datetime, paint: Paint, *, many: bool) -> Iterator[str]:
    deeper = f"[{level}] " if level > _DEEPEST else ""
    status = paint(step.status.value.ljust(_WIDTH), *_STYLES[step.status])
    indent = "  " * min(level, _DEEPEST)
    kind = step.kind.value if step.kind else "not in the blueprint any more"
    yield ", ".join([f"  {status}  {indent}{deeper}{paint(step.id, 'bold')} ({kind})", *_facts(step, behind, now)])
    loud = step.status in (StepStatus.ERROR, StepStatus.RETAINED) or step.interrupted or step.asks
    takes = step.plan is not None and step.plan.destroy
    if many and not (loud or takes):
        return
    undone = failed_before(step) and step.status in (StepStatus.DESTROYED, StepStatus.ABSENT)
    below = f"  {' ' * _WIDTH}  {indent}  "
    if (loud or undone) and step.why:
        yield f"{below}{paint(step.why, *(('red',) if step.status is StepStatus.ERROR else ()))}"
    if earlier := failed_before(step):
        yield f"{below}{earlier}"
    if step.decision and step.reason not in (step.why, f"waits for {', '.join(step.blocked_by)}"):
        yield f"{below}{step.decision.value}: {step.reason}"
    if step.plan is not None:
        yield f"{below}{plan_text(step.plan)}"
    if step.asks:
        yield f"{below}{paint('you', 'bold')}: {step.asks}"
    for found in step.objects[:_FEW]:
        yield f"{below}{object_text(found)}"
    if len(step.objects) > _FEW:
        yield f"{below}and {len(step.objects) - _FEW} more objects"


def _facts(step: StepView, behind: str, now: datetime) -> Iterator[str]:
    if step.interrupted:
        yield "begun, and its end is not known"
    if step.since is not None:
        yield f"since {_stamp(step.since)} ({in_words(now - step.since)})"
    if step.until is not None:
        left = f"for {in_words(step.until - now)} more" if not step.overdue else "which has passed"
        yield f"until {_day(step.until)} ({left}){f' for {step.owner}' if step.owner else ''}"
    if step.attempts > 1:
        yield f"attempt {step.attempts}"
    if behind:
        yield behind
    elif step.needs:
        yield f"needs {first_of(step.needs, _FEW)}"
    if step.owned_by:
        yield f"owned by {step.owned_by}"
    if step.objects:
        yield f"{len(step.objects)} object{'s' if len(step.objects) > 1 else ''}"


def _probe_line(probe: ProbeView, now: datetime, paint: Paint) -> str:
    status = paint(probe.status.value.ljust(_WIDTH), *_STYLES[probe.status])
    asked = f", asked {in_words(now - probe.at)} ago" if probe.at else ""
    return f"  {status}  probe {paint(probe.name, 'bold')} ({probe.kind.value}){asked}: {probe.detail}"


def _named(name: str, statuses: Mapping[str, StepStatus]) -> str:
    """A step, with its status where that says more than that it waits, too."""
    status = statuses.get(name, StepStatus.PENDING)
    return name if status is StepStatus.PENDING else f"{name} ({status.value})"


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%SZ}"


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d}"
