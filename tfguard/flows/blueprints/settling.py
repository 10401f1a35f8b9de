"""Bring a cancelled request to rest: nothing of it runs any more, and what it has made is on record."""

from __future__ import annotations

from collections.abc import Sequence

from tfguard.errors import RecordError, TfguardError
from tfguard.flows.blueprints.context import BlueprintContext, Values, values_of
from tfguard.flows.blueprints.patience import Patience
from tfguard.flows.blueprints.requests import Journal
from tfguard.flows.blueprints.steps import StepRunner
from tfguard.flows.blueprints.stopping import Stopping
from tfguard.model.blueprint import StepKind
from tfguard.model.blueprint_request import RequestEvent, RequestState
from tfguard.model.naming import first_of
from tfguard.model.operation import StepStatus

_S = RequestState
_AT_REST = (_S.SETTLED, _S.RETAINED_FOR_REVIEW)
_UNFINISHED = (StepStatus.RUNNING, StepStatus.ERROR)
_WAIT_SECONDS = 1.0
_NAMED = 10


def settle(context: BlueprintContext, journal: Journal, reason: str) -> bool:
    """Cancel a request whose own work has ended, and wait for what others have left running; whether it is at rest.

    It is not when the user does not want to wait any longer: it stays `CancelPending` then. Raises `RecordError`.
    """
    if journal.request.state not in (*_AT_REST, _S.CANCEL_PENDING):
        journal.write(lambda at, by: RequestEvent(at, by, reason, state=_S.CANCEL_PENDING))
    unseen = come_to_rest(context, journal)
    if unseen is None:
        return False
    if journal.request.state is _S.CANCEL_PENDING:
        why = "nothing runs any more, and what was made is on record"
        if unseen:
            named = first_of(unseen, _NAMED)
            why = f"whether {named} still runs, and what it made, could not be looked up; nothing else runs any more"
        context.console.say(f"{_S.SETTLED.value}: {why}")
        journal.write(lambda at, by: RequestEvent(at, by, why, state=_S.SETTLED))
    return True


def come_to_rest(context: BlueprintContext, journal: Journal) -> Sequence[str] | None:
    """Wait until nothing of a request runs, and write down what became of each step that was not brought to an end;
    the steps that could not be looked at, None when the user does not want to wait any longer. Raises `RecordError`."""
    values, heard, unseen = values_of(context, journal.request), context.intents(), list[str]()
    for name in context.blueprint.steps:
        record, waiting = journal.request.step(name), None
        if record.status not in _UNFINISHED:
            continue
        while what := _running(context, values, name, begun=record.began_at is not None):
            if waiting is None:
                context.console.say(f"{name}: waits for {what}, which still runs")
                waiting = Patience(context, f"{name}: {what} still runs")
            waiting.tell()
            if not context.clock.sleep(_WAIT_SECONDS) or context.intents() > heard:
                context.console.warn(f"{name}: {what} still runs; ask again when it has ended")
                return None
        unseen += [name] if what is None else []
    _take_stock(context, journal, values)
    return unseen


def _running(context: BlueprintContext, values: Values, name: str, *, begun: bool) -> str | None:
    """What of a step runs that an earlier tfguard has started; empty where nothing does, as where nothing of it was
    begun, None where it cannot be told."""
    try:
        if context.blueprint.steps[name].kind is StepKind.STACK:
            look = context.stacks.look(values.place(name))
            if not look.failure:
                return f"operation {look.operation_id} on its stack" if look.alive else ""
            why = look.failure
        else:
            return "its command" if context.commands.still_runs(name) else ""
    except RecordError:
        raise
    except TfguardError as error:
        why = error.what
    if not begun:
        return ""
    # What the engine says may hold a secret, and goes to the user alone (rule 10).
    context.console.warn(f"{name}: {why}; whether anything of it runs is not known")
    return None


def _take_stock(context: BlueprintContext, journal: Journal, values: Values) -> None:
    """Write down what each step has now that was not brought to an end."""
    runner = StepRunner(context, journal, values, Stopping(context, journal))
    for name in context.blueprint.steps:
        if journal.request.step(name).status is StepStatus.RUNNING:
            runner.take_stock(name)
