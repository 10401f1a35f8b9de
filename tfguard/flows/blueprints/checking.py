"""Look whether a request is still as it was made: at its objects, and whether its probes pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfguard.errors import ConfigError
from tfguard.flows.blueprints.asking import ask_probes
from tfguard.flows.blueprints.context import BlueprintContext, stack_steps, values_of
from tfguard.flows.blueprints.graph import work_through
from tfguard.flows.blueprints.kept import by_kept
from tfguard.flows.blueprints.requests import Journal, Observations
from tfguard.flows.blueprints.steps import StepRunner
from tfguard.flows.blueprints.stopping import Stopping
from tfguard.model.blueprint import BlueprintStep
from tfguard.model.blueprint_request import Request, RequestState, StepRecord
from tfguard.model.operation import StepStatus
from tfguard.reconcile.blueprint_steps import work_of

_LOOKED_AT = (RequestState.READY, RequestState.PARTIAL_FAILURE, RequestState.RETAINED_FOR_REVIEW)


def check_again(context: BlueprintContext, journal: Journal, stop: Callable[[], bool]) -> Sequence[str]:
    """Ask each probe once, and look the objects of a request up that nobody works on, by the blueprint that it keeps;
    what has failed, or was not looked at, by name. Nothing is begun after a `stop`. What was seen is written down,
    unless the request has changed meanwhile. Raises `RecordError`.
    """
    seen, context = Observations(context.requests, journal.request), _as_made(context, journal)
    failed = [*_not_as_they_were(context, seen, stop)]
    if stop():
        failed += [probe.name for probe in context.blueprint.ready.probes]
    else:
        failed += ask_probes(context, seen, values_of(context, seen.request), stop, once=True)
    if not journal.take_over(seen):
        context.console.warn("somebody has worked on the request meanwhile: what was seen is not written down")
    return failed


def _not_as_they_were(context: BlueprintContext, journal: Journal, stop: Callable[[], bool]) -> Sequence[str]:
    request = journal.request
    if request.state not in _LOOKED_AT or context.requests.live():
        return ()
    blueprint = context.blueprint
    if not blueprint.ready.inventory:
        return ()
    runner = StepRunner(context, journal, values_of(context, request), Stopping(context, journal))
    names = [name for name in stack_steps(blueprint) if _was_done(request.step(name))]
    # What the blueprint or an input asks for otherwise was not made yet, and is not missing.
    known = [name for name in names if _is_as_made(blueprint.steps[name], request.step(name), request)]
    for name in (others := [name for name in names if name not in known]):
        runner.say(name, "was not looked at: its part of the blueprint, or an input in it, is not what it was made by")
    as_it_was = work_through(
        dict.fromkeys(known, ()),
        lambda name: not runner.look_again(name),
        at_once=blueprint.parallel,
        may_start=lambda: not stop(),
    )
    return [*(name for name in known if name not in as_it_was), *others]


def _as_made(context: BlueprintContext, journal: Journal) -> BlueprintContext:
    """The surroundings with the blueprint that the request was last worked on by, where that is kept."""
    if context.requests.digest(context.text) == journal.request.blueprint_digest:
        return context
    try:
        return by_kept(context, journal.request)
    except ConfigError as error:
        context.console.warn(error.what)
        return context


def _was_done(record: StepRecord) -> bool:
    """Whether a step has all that it is to have, but for what was missing when it was last looked at; or is kept."""
    vanished = record.status is StepStatus.ERROR and bool(record.missing) and record.at_its_end and not record.undoing
    return record.status in (StepStatus.OK, StepStatus.RETAINED) or vanished


def _is_as_made(step: BlueprintStep, record: StepRecord, request: Request) -> bool:
    """Whether a step was made by what the blueprint and the inputs say; what is kept may never have come to its end."""
    never_done = record.status is StepStatus.RETAINED and record.work is None
    return never_done or record.work == work_of(step, request)
