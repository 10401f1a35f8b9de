"""Look whether a request is still what it was when it became Ready: at its objects, and whether its probes pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tfguard.flows.blueprints.asking import ask_probes
from tfguard.flows.blueprints.context import BlueprintContext, stack_steps, values_of
from tfguard.flows.blueprints.requests import Journal
from tfguard.flows.blueprints.steps import StepRunner
from tfguard.flows.blueprints.stopping import Stopping
from tfguard.model.blueprint_request import RequestState
from tfguard.reconcile.blueprint_steps import work_of


def check_again(context: BlueprintContext, journal: Journal, stop: Callable[[], bool]) -> Sequence[str]:
    """Ask each probe once, and look the objects of a Ready request up; what has failed, by name. Each answer is written
    down. Raises `RecordError`."""
    values = values_of(context, journal.request)
    failed = [*_not_as_they_were(context, journal)]
    return [*failed, *ask_probes(context, journal, values, stop, once=True)]


def _not_as_they_were(context: BlueprintContext, journal: Journal) -> Sequence[str]:
    request, blueprint = journal.request, context.blueprint
    if request.state is not RequestState.READY or not blueprint.ready.inventory or context.requests.live():
        return ()
    runner = StepRunner(context, journal, values_of(context, request), Stopping(context, journal))
    # What the blueprint or an input asks for otherwise by now was not made yet, and is not missing.
    records = {name: request.step(name) for name in stack_steps(blueprint)}
    names = [name for name, record in records.items() if record.work == work_of(blueprint.steps[name], request)]
    with ThreadPoolExecutor(blueprint.parallel) as pool:
        return [name for name, why in zip(names, pool.map(runner.look_again, names), strict=True) if why]
