"""Cancel a request, from the terminal where it runs or from another: nothing new is begun, what runs is waited for, and
what was made is on record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tfguard.errors import UsageError
from tfguard.flows.blueprints.context import BlueprintContext
from tfguard.flows.blueprints.patience import Patience
from tfguard.flows.blueprints.requests import Journal
from tfguard.flows.blueprints.settling import come_to_rest, settle
from tfguard.flows.blueprints.take_away import keep
from tfguard.model.blueprint_request import Request, RequestState
from tfguard.model.config import format_duration

_POLL_SECONDS = 0.5
_S = RequestState
_CAN_BE_KEPT = (_S.PARTIAL_FAILURE, _S.SETTLED, _S.RETAINED_FOR_REVIEW)


@dataclass(frozen=True, slots=True)
class CancelOptions:
    """`interrupt`: what runs gets one interrupt. `wait`: stay until nothing runs. `retain`: keep what was made, for
    this long, for `owner` (None: it is left as it is, `Settled`)."""

    reason: str
    interrupt: bool = False
    wait: bool = True
    retain: timedelta | None = None
    owner: str = ""


def cancel(context: BlueprintContext, options: CancelOptions) -> Request:
    """Cancel the current request; how it stands then.

    Raises `UsageError` where there is none or it is over, `OperationAliveError` when another tfguard takes it over.
    """
    request = context.requests.current()
    if request is None or request.terminal:
        raise UsageError(
            f"{context.file} has no request that could be cancelled",
            f"see `tfguard blueprint status {context.file_word}`",
        )
    _check_retention(context, options)
    if context.requests.live():
        context.requests.wish_to_cancel(request.id, options.reason, interrupt=options.interrupt)
        context.console.say("asked the tfguard that works on it to stop; what runs there is waited for")
        if not options.wait or not _until_it_has_stopped(context):
            return context.requests.read(request.id)
    with context.requests.holding():
        try:
            return _at_rest(context, Journal(context.requests, context.requests.read(request.id)), options)
        finally:
            context.requests.forget_cancel(request.id)


def _at_rest(context: BlueprintContext, journal: Journal, options: CancelOptions) -> Request:
    """Cancel a request that nobody works on; it is left as it is while something of it still runs, and the user does
    not wait for that."""
    request = journal.request
    if request.state is _S.READY:
        raise UsageError(
            f"request {request.id} is Ready: nothing of it runs",
            f"`tfguard blueprint destroy {context.file_word}` takes it away",
        )
    if request.terminal:
        raise UsageError(f"request {request.id} is over by now", f"see `tfguard blueprint status {context.file_word}`")
    kept_as_it_is = options.retain is not None and request.state in _CAN_BE_KEPT
    at_rest = come_to_rest(context, journal) is not None if kept_as_it_is else settle(context, journal, options.reason)
    if not at_rest:
        return journal.request
    if options.retain is not None:
        keep(context, journal, options.retain, options.owner, options.reason)
    return journal.request


def _check_retention(context: BlueprintContext, options: CancelOptions) -> None:
    longest = context.config.retention.max
    if options.retain is None:
        return
    if not timedelta(0) < options.retain <= longest:
        raise UsageError(
            f"{format_duration(options.retain)} is nothing, or more than retention.max: {format_duration(longest)}",
            "keep it for less, and again later",
        )
    if not options.owner:
        raise UsageError("nobody would own what is kept", "give --owner TEAM, or set `owner:` in the blueprint")


def _until_it_has_stopped(context: BlueprintContext) -> bool:
    waiting = Patience(context, "the tfguard that works on it still runs")
    while context.requests.live():
        waiting.tell()
        if not context.clock.sleep(_POLL_SECONDS):
            return False
    return True
