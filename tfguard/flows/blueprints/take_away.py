"""Take a request's work away, in reverse: what was confirmed gone is gone, what is kept stays, a child goes after its
parent (rules 13, 14 and 16). Also its cancel, which is the first half of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from tfguard.flows.blueprints.context import BlueprintContext, values_of
from tfguard.flows.blueprints.graph import work_through
from tfguard.flows.blueprints.keeping import retention
from tfguard.flows.blueprints.provide import refuse_interrupted, refuse_lost_steps
from tfguard.flows.blueprints.requests import Journal
from tfguard.flows.blueprints.settling import settle
from tfguard.flows.blueprints.steps import StepRunner
from tfguard.flows.blueprints.stopping import Stopping
from tfguard.model.blueprint import StepKind, stands_behind
from tfguard.model.blueprint_request import Request, RequestEvent, RequestState
from tfguard.model.operation import StepStatus

_S = RequestState
_GONE = (StepStatus.DESTROYED, StepStatus.ABSENT)


@dataclass(frozen=True, slots=True)
class TakeAwayOptions:
    """`stateful`: also what holds data; `dispose`: also what is retained; `gone`: the steps of which somebody says that
    nothing is there any more, where no state can tell, and how they know."""

    reason: str
    stateful: bool = False
    dispose: bool = False
    gone: Mapping[str, str] = field(default_factory=dict)


def take_away(
    context: BlueprintContext, options: TakeAwayOptions, approve: Callable[[Request], None]
) -> Request | None:
    """Destroy what the current request has made; how it stands then, None where there is none.

    Raises `OperationAliveError` when another tfguard is at work, `UsageError` where the blueprint does not have a step
    any more that made something, `InterruptedRunError` for a signal before anything is written, and what `approve`
    raises.
    """
    found = context.requests.current()
    if found is None or found.terminal:
        return found
    with context.requests.holding():
        request = context.requests.read(found.id)
        refuse_lost_steps(context, request)
        approve(request)
        refuse_interrupted(context)
        journal = Journal(context.requests, request)
        try:
            if not settle(context, journal, options.reason):
                return journal.request
            return _TakeAway(context, journal, options).run()
        finally:
            context.requests.forget_cancel(request.id)


def keep(context: BlueprintContext, journal: Journal, time: timedelta, owner: str, reason: str) -> Request:
    """Keep all that a settled or partly failed request has made, for a review; what is kept for longer stays so."""
    for name, step in context.blueprint.steps.items():
        if journal.request.step(name).made and step.kind is not StepKind.PROBE:
            until = max(context.clock.now() + time, journal.request.step(name).until or context.clock.now())
            journal.write(retention(name, journal.request.step(name), reason, until, owner))
    if journal.request.state is not _S.RETAINED_FOR_REVIEW:
        journal.write(lambda at, by: RequestEvent(at, by, reason, state=_S.RETAINED_FOR_REVIEW))
    return journal.request


class _TakeAway:
    """One `destroy`."""

    def __init__(self, context: BlueprintContext, journal: Journal, options: TakeAwayOptions) -> None:
        self._context = context
        self._journal = journal
        self._options = options
        self._stopping = Stopping(context, journal)
        values = values_of(context, journal.request)
        self._steps = StepRunner(
            context, journal, values, self._stopping, takes_data=options.stateful, gone=options.gone
        )
        self._behind = stands_behind(context.blueprint)

    def run(self) -> Request:
        """Take away what may go; how the request stands then."""
        blueprint = self._context.blueprint
        gone = work_through(
            self._behind,
            self._one,
            at_once=blueprint.parallel,
            may_start=lambda: not self._stopping.wanted,
        )
        left = [name for name in blueprint.steps if name not in gone]
        request = self._journal.request
        if not left:
            return self._become(_S.CLEANED, self._told_of_the_end())
        for name in left:
            if request.step(name).made and (waits := self._waits(name, gone)):
                self._steps.say(name, f"stays: {waits}")
        kept = [name for name in left if request.step(name).status is StepStatus.RETAINED]
        broken = [name for name in left if request.step(name).status in (StepStatus.ERROR, StepStatus.RUNNING)]
        if kept and not broken and not self._stopping.wanted and request.state is _S.SETTLED:
            return self._become(_S.RETAINED_FOR_REVIEW, f"{', '.join(kept)} is kept; all else that may go is gone")
        return request

    def _told_of_the_end(self) -> str:
        """What is confirmed gone, and what stays behind though it is in nobody's way."""
        request = self._journal.request
        records = {name: request.step(name) for name in self._context.blueprint.steps}
        undone = [name for name, record in records.items() if record.made]
        others = [name for name, record in records.items() if not record.made and record.status not in _GONE]
        unseen = [found.address for record in records.values() for found in record.standing]
        told = [f"nothing is declared that undoes {', '.join(undone)}"] if undone else []
        told += [f"{', '.join(others)} was never begun, and its stack is left as it is"] if others else []
        told += [f"what became of {', '.join(unseen)} was not seen"] if unseen else []
        return "; ".join(["all else is confirmed gone" if told else "everything is confirmed gone", *told])

    def _one(self, name: str) -> bool:
        record = self._journal.request.step(name)
        if record.status is StepStatus.RETAINED and not self._options.dispose:
            until = f" until {record.until:%Y-%m-%d}" if record.until else ""
            self._steps.say(name, f"stays: it is retained{until}; --dispose takes it away, too")
            return False
        return self._steps.take_away(name)

    def _waits(self, name: str, gone: frozenset[str]) -> str:
        behind = [other for other in self._behind[name] if other not in gone]
        return f"{', '.join(sorted(behind))} is not gone" if behind else ""

    def _become(self, state: RequestState, why: str) -> Request:
        self._context.console.say(f"{state.value}: {why}")
        return self._journal.write(lambda at, by: RequestEvent(at, by, why, state=state))


def standing(context: BlueprintContext, request: Request) -> Sequence[str]:
    """The steps whose work is not confirmed gone, the first to go first."""
    return tuple(
        name
        for name in reversed(context.blueprint.order())
        if request.step(name).made and request.step(name).status not in _GONE
    )
