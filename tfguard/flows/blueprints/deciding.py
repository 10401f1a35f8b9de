"""What would be done about each step now: the same decisions that `apply` and `resume` go by, and nothing is done."""

from __future__ import annotations

from collections.abc import Mapping

from tfguard.errors import TfguardError
from tfguard.flows.blueprints.context import BlueprintContext, values_of
from tfguard.model.blueprint import StepKind
from tfguard.model.blueprint_decision import Decision, DecisionKind, Told
from tfguard.model.blueprint_request import Request
from tfguard.reconcile.blueprint_steps import decide_command, decide_probe, decide_stack, waiting, waits_for

_WORK = (DecisionKind.RUN, DecisionKind.ADOPT, DecisionKind.UNDO)


def decisions(
    context: BlueprintContext, request: Request, told: Mapping[str, Told] | None = None
) -> Mapping[str, Decision]:
    """The way on with each step, with what a person has `told` of it. Records and states are read; no provider, no
    check and no probe is asked."""
    found: dict[str, Decision] = {}
    for name in context.blueprint.order():
        decision, step = _decision(context, request, name, (told or {}).get(name)), context.blueprint.steps[name]
        worked = [n for n in step.needs if context.blueprint.steps[n].probe is None and found[n].kind in _WORK]
        if decision.kind is DecisionKind.SKIP and worked and (step.kind is StepKind.STACK or step.idempotent):
            decision = Decision(DecisionKind.RUN, f"it builds on {', '.join(worked)}, which is done before it")
        found[name] = decision
    return {name: found[name] for name in context.blueprint.steps}


def _decision(context: BlueprintContext, request: Request, name: str, told: Told | None) -> Decision:
    if behind := waits_for(context.blueprint, request, name):
        return waiting(behind)
    return decision_about(context, request, name, told)


def decision_about(context: BlueprintContext, request: Request, name: str, told: Told | None = None) -> Decision:
    """The way on with one step, were all done that it needs."""
    step, record = context.blueprint.steps[name], request.step(name)
    if step.kind is StepKind.PROBE:
        return decide_probe(record)
    if step.kind is StepKind.RUN:
        if context.commands.still_runs(name):
            return Decision(DecisionKind.WAIT, "its command still runs")
        return decide_command(step, record, request, None, told).about(name)
    try:
        place = values_of(context, request).place(name)
    except TfguardError as error:
        return Decision(DecisionKind.INSPECT, error.what, asks=error.advice)
    return decide_stack(step, record, context.stacks.look(place), request, told).about(name)
