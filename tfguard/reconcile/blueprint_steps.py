"""What to do about each step of a blueprint: decided from its record and from the evidence, never from a guess."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tfguard.blueprint_ports import StackLook
from tfguard.model.blueprint import Blueprint, BlueprintStep, StepKind
from tfguard.model.blueprint_decision import Decision, DecisionKind, Told
from tfguard.model.blueprint_request import Activity, BlueprintObject, Request, StepRecord
from tfguard.model.operation import StepStatus

_GONE = (StepStatus.DESTROYED, StepStatus.ABSENT)


def waits_for(blueprint: Blueprint, request: Request, name: str) -> tuple[str, ...]:
    """The needs of a step that are not done yet."""
    return tuple(need for need in blueprint.steps[name].needs if not request.step(need).done)


def decide_stack(record: StepRecord, look: StackLook, request: Request) -> Decision:
    """The way on with a stack whose needs are all done."""
    if look.failure:
        return Decision(DecisionKind.INSPECT, f"its record cannot be read: {look.failure}", asks="mend its record")
    if look.alive:
        return Decision(DecisionKind.WAIT, f"operation {look.operation_id} is running on it")
    if look.open and look.adoptable:
        many = f"{len(look.adoptable)} objects" if len(look.adoptable) > 1 else "an object"
        return Decision(DecisionKind.ADOPT, f"operation {look.operation_id} left {many} that its state does not know")
    if look.open:
        what = f": {look.unsettled[0]}" if look.unsettled else ""
        return Decision(DecisionKind.INSPECT, f"operation {look.operation_id} is not settled{what}")
    if record.undoing:
        return Decision(DecisionKind.UNDO, f"its {_word(record)} was begun, and did not come to its end")
    if record.status in _GONE:
        return Decision(DecisionKind.RUN, f"it was taken away ({record.why}), and is made anew")
    if look.managed == 0 and record.standing:
        return Decision(
            DecisionKind.INSPECT,
            f"its state is empty, and this request has made {len(record.standing)} objects by it",
            asks="restore the state, or destroy the objects and `tfguard blueprint destroy` the request",
        )
    if record.done and not _changed(record, request):
        return Decision(DecisionKind.SKIP, f"done by operation {record.operation_id}, and its state is there")
    if record.done:
        return Decision(DecisionKind.RUN, "the inputs or the blueprint have changed since")
    if record.attempts and look.operation_id:
        return Decision(DecisionKind.RUN, f"operation {look.operation_id} is settled: what it did not make is made now")
    return Decision(DecisionKind.RUN, "it was begun before the engine was started" if record.attempts else "not begun")


def decide_command(
    step: BlueprintStep, record: StepRecord, request: Request, checked: bool | None, told: Told | None
) -> Decision:
    """The way on with a command whose needs are all done.

    `checked` is what its check says of its work: done, not done; None where there is no check, or it was not asked.
    """
    if record.undoing:
        return Decision(DecisionKind.UNDO, "its compensation was begun, and did not come to its end")
    if told is not None:
        kind = DecisionKind.SKIP if told.done else DecisionKind.RUN
        return Decision(kind, f"{'done' if told.done else 'to run again'}, by a person's word: {told.reason}")
    if step.check and checked is None:
        return Decision(DecisionKind.INSPECT, "its check is asked whether it is done")
    if checked:
        return Decision(DecisionKind.SKIP, "its check says that it is done")
    if checked is False:
        return Decision(DecisionKind.RUN, "its check says that it is not done")
    if record.status in _GONE:
        return Decision(DecisionKind.RUN, "it was taken away, and is done anew")
    if record.done and not _changed(record, request):
        return Decision(DecisionKind.SKIP, "it has run to its end")
    if not record.made:
        return Decision(DecisionKind.RUN, "not begun")
    if step.idempotent:
        return Decision(DecisionKind.RUN, "it may be run again (idempotent)")
    what = "has run" if record.done else "was begun, and did not come to a good end"
    return Decision(
        DecisionKind.INSPECT,
        f"it {what}, and nothing tells whether running it again does harm",
        asks="find out, then `resume --done STEP --reason TEXT` or `resume --again STEP --reason TEXT`; "
        "a `check:` or `idempotent: true` in the blueprint decides it for good",
    )


def decide_probe(record: StepRecord) -> Decision:
    """The way on with a probe whose needs are all done: it is asked again, since only the answer of now counts."""
    return Decision(DecisionKind.RUN, "asked again" if record.attempts else "not asked yet")


def waiting(behind: Sequence[str]) -> Decision:
    """The way on with a step whose needs are not all done."""
    return Decision(DecisionKind.WAIT, f"waits for {', '.join(behind)}", tuple(behind))


def stands_behind(blueprint: Blueprint) -> Mapping[str, Collection[str]]:
    """By step: those that have to be gone before it is taken away.

    Whatever needs it goes first; but what it owns goes after it, and what needs that goes before it (rule 16).
    """
    dependants = blueprint.dependants()
    found: dict[str, set[str]] = {}

    def before(name: str) -> set[str]:
        if name not in found:
            found[name] = set()
            for child in dependants[name]:
                found[name] |= before(child) - {name} if blueprint.steps[child].owned_by == name else {child}
        return found[name]

    whole = {name: set(before(name)) for name in reversed(blueprint.order())}
    for name, step in blueprint.steps.items():
        if step.owned_by is not None:
            whole[name] |= {step.owned_by}
    return whole


def holds_data(step: BlueprintStep, record: StepRecord, seen: Iterable[BlueprintObject]) -> bool:
    """Whether a step holds data: as it is said in the blueprint, else as one of its objects is known to, by the
    request's record or by the stack's own."""
    if step.stateful is not None:
        return step.stateful
    return any(found.stateful for found in (*record.standing, *seen))


def undone_by_compensation(blueprint: Blueprint, request: Request) -> Sequence[str]:
    """The steps that a failed request compensates: what was begun and has a compensation."""
    return tuple(
        name
        for name in reversed(blueprint.order())
        for step in (blueprint.steps[name],)
        if step.kind is not StepKind.PROBE and step.compensate is not None and request.step(name).made
    )


def _changed(record: StepRecord, request: Request) -> bool:
    return request.changed_at is not None and record.since is not None and record.since < request.changed_at


def _word(record: StepRecord) -> str:
    return "destroy" if record.activity is Activity.DESTROY else "compensation"
