"""Whether somebody wants a request to stop: a signal to this process, or `blueprint cancel` from elsewhere."""

from __future__ import annotations

from datetime import timedelta
from threading import Lock

from tfguard.errors import InterruptedRunError, TfguardError
from tfguard.flows.blueprints.context import BlueprintContext
from tfguard.flows.blueprints.requests import Journal
from tfguard.model.blueprint_request import RequestEvent, RequestState

_LOOK_EVERY = timedelta(seconds=1)
_CAN_BE_CANCELLED = (RequestState.PROVISIONING, RequestState.REPAIRING)


class Stopping:
    """Looks for the wish to stop, writes it down once, and passes an interrupt on to what runs only when that is asked
    for twice: a call that is interrupted may leave an object whose id nobody was told (rule 7)."""

    def __init__(self, context: BlueprintContext, journal: Journal) -> None:
        self._context = context
        self._journal = journal
        self._looked = context.clock.now() - _LOOK_EVERY
        self._wanted = False
        self._interrupted = False
        self._lock = Lock()

    @property
    def wanted(self) -> bool:
        """Whether nothing new may be begun. Asks the record at most once a second."""
        with self._lock:
            self._look()
            return self._wanted

    def _look(self) -> None:
        intents = self._context.intents()
        reason, interrupt = ("interrupted by a signal", intents > 1) if intents else ("", False)
        now = self._context.clock.now()
        if now - self._looked >= _LOOK_EVERY or now < self._looked:
            self._looked = now
            if (wish := self._wish()) is not None:
                reason, interrupt = reason or wish[0], interrupt or wish[1]
        if reason and not self._wanted:
            self._wanted = True
            more = f"; a second {'Ctrl-C' if intents else 'one, with --interrupt,'} is passed on to what runs"
            waited = "cancelled: no new step is begun; what runs is waited for"
            self._context.console.warn(f"{waited}{'' if interrupt else more}")
            if self._journal.request.state in _CAN_BE_CANCELLED:
                self._journal.write(lambda at, by: RequestEvent(at, by, reason, state=RequestState.CANCEL_PENDING))
        if interrupt and not self._interrupted:
            self._interrupted = True
            self._context.console.warn("passing one interrupt on to the calls that run")
            self._context.stacks.interrupt()
            self._context.commands.interrupt()

    def _wish(self) -> tuple[str, bool] | None:
        try:
            wish = self._context.requests.cancel_wish(self._journal.request.id)
        except TfguardError as error:
            self._context.console.warn(f"{error.what}; whether somebody wants to cancel is not known")
            return None
        return (f"cancelled by {wish.actor}: {wish.reason}", wish.interrupt) if wish else None


def refuse_interrupted(context: BlueprintContext) -> None:
    """Raise `InterruptedRunError` when the user has asked this process to stop."""
    if context.intents():
        raise InterruptedRunError("interrupted; nothing was changed", "run the command again")
