"""Bring back what is deleted and only waits for its end, so that it can be adopted; each step is in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tfguard.catalog.permissions import api_name
from tfguard.errors import InputError, TfguardError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.retain import decided_object
from tfguard.flows.stray_findings import OwnOperations
from tfguard.flows.stray_look import ProviderOf, Waits, end_of, object_now, provider_of, waiting_in
from tfguard.model.action import ActionAnswer
from tfguard.model.cloud import own_place_of
from tfguard.model.disposition import DestroyStage, Disposition, DispositionKind
from tfguard.model.finding import Finding
from tfguard.model.inventory import CloudObject, Listing
from tfguard.model.plan import ProviderConfig

_PAUSE = 2.0


class Restorer:
    """Looks which findings' objects wait for their end, and restores them.

    `arguments` are the engine's `-var` and `-var-file`; `elsewhere` tells whom to ask about what no operation here
    tells of.
    """

    def __init__(self, context: StackContext, arguments: Sequence[str], elsewhere: ProviderOf) -> None:
        self._context = context
        self._arguments = arguments
        self._elsewhere = elsewhere
        self._own = OwnOperations(context.records)
        self._listings: dict[tuple[str, str, str | None], Listing] = {}
        self.restored: dict[str, tuple[str, ...]] = {}
        """The calls that went through, by the ids of the findings."""

    def waiting(self, finding: Finding) -> CloudObject | None:
        """The object of a finding as it is listed, if it is deleted and waits for its end; None else, and where that
        cannot be told."""
        found = finding.object
        kind = self._context.around.catalog.get(found.type) if found else None
        if found is None or kind is None or not kind.restore:
            return None
        provider = self._provider(finding, found)
        if provider is None:
            return None
        inventory, place = self._context.around.inventory, own_place_of(found)
        asked = (found.type, provider.key, place)
        if asked not in self._listings:
            self._listings[asked] = inventory.list(found.type, provider, place)
        one = waiting_in(self._listings[asked], found)
        answer = inventory.detail(one, provider) if one else None
        return answer.found if answer is not None and not answer.gone else None

    def calls(self, found: CloudObject) -> tuple[str, ...]:
        """What would be called, as the provider names it."""
        kind = self._context.around.catalog.get(found.type)
        return tuple(api_name(call.operation) for call in kind.restore) if kind else ()

    def restore(self, finding: Finding, waiting: CloudObject) -> None:
        """Restore one, and wait until the provider lists it as in use. Raises `InputError` with what went through."""
        provider = self._provider(finding, waiting)
        assert provider is not None and self._context.actions is not None
        self._note(finding, waiting, DestroyStage.REQUESTED, f"to be adopted: {', '.join(self.calls(waiting))}")
        answer = self._context.actions.restore(waiting, provider)
        if answer.done:
            self.restored[finding.id] = answer.done
        if answer.refused:
            self._note(finding, waiting, DestroyStage.STOPPED, _said(answer, answer.cause))
            raise _error(finding, answer)
        self._note(finding, waiting, None, f"restored: {', '.join(answer.done)}")
        self._wait_until_in_use(finding, waiting, provider)

    def _provider(self, finding: Finding, found: CloudObject) -> ProviderConfig | None:
        return provider_of(self._context, self._own, finding, found, self._arguments, self._elsewhere)

    def _wait_until_in_use(self, finding: Finding, waiting: CloudObject, provider: ProviderConfig) -> None:
        around = self._context.around
        end = around.clock.now() + max(around.config.consistency_grace, timedelta(seconds=_PAUSE))
        while isinstance(object_now(around, waiting, provider), Waits):
            if around.clock.now() >= end or not around.clock.sleep(_PAUSE):
                raise InputError(
                    f"{finding.id} was restored, and is listed as deleted still",
                    "run the command again in a moment: it goes on with the import",
                )

    def _note(self, finding: Finding, waiting: CloudObject, stage: DestroyStage | None, reason: str) -> None:
        """Write it down with the finding's own names: what was looked up or typed may tell what a record withholds."""
        found = finding.object or waiting
        self._context.records.decide(
            [
                Disposition(
                    finding_id=finding.id,
                    kind=DispositionKind.RESTORE,
                    at=self._context.clock.now(),
                    actor=self._context.host.actor().signature,
                    reason=reason,
                    operation_id=self._own.of(finding),
                    address=finding.address,
                    import_id=found.import_id,
                    until=waiting.gone_after if stage else None,
                    stage=stage,
                    object=decided_object(found),
                )
            ]
        )


def not_restored(finding: Finding, waiting: CloudObject) -> UsageError:
    """That nobody wants it restored, and so has to wait."""
    return UsageError(
        f"{finding.id} is deleted, and {end_of(waiting)}; it was not restored",
        "wait till then; or approve that it is restored (without a terminal: --yes)",
    )


def _said(answer: ActionAnswer, why: str) -> str:
    through = f"; {', '.join(answer.done)} went through" if answer.done else ""
    unknown = "; whether that call went through is not known" if answer.unanswered else ""
    return f"{why}{unknown}{through}"


def _error(finding: Finding, answer: ActionAnswer) -> TfguardError:
    how = "was restored in part" if answer.done else "could not be restored"
    return InputError(
        f"{finding.id} {how}: {_said(answer, answer.refused)}", "mend what is said there, then run the command again"
    )
