"""Look at one stray object: through which provider configuration, and whether it is still there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from tfguard.flows.context import StackContext
from tfguard.flows.looking import Surroundings, listed_detail
from tfguard.flows.providers import provider_for
from tfguard.flows.settle import providers_of
from tfguard.flows.stray_findings import OwnOperations
from tfguard.model.cloud import cloud_named, own_place_of
from tfguard.model.finding import Finding
from tfguard.model.inventory import CloudObject, Detail, Listing
from tfguard.model.operation import Operation, Step
from tfguard.model.plan import Action, ProviderConfig
from tfguard.model.secrets import WITHHELD_WORD
from tfguard.reconcile.disposal import Refusal
from tfguard.reconcile.wanted import lists_lag, told_in_full

ProviderOf = Callable[[CloudObject], ProviderConfig | None]
"""Whom to ask about an object that no operation of this stack tells of."""


@dataclass(frozen=True, slots=True)
class Waits(Refusal):
    """The object is deleted, and only waits for its end; `found` is how it is listed."""

    found: CloudObject = field(kw_only=True)


_PAUSE = 2.0
_IMPORT_AGAIN = "`tfguard orphans import` with this finding restores and imports it"
_NOT_TOLD = Refusal(
    "it is not listed, which proves nothing: what lists it lags behind, and its own service cannot be asked for it",
    "look at it at the provider",
)
NOBODY_TO_ASK = Refusal(
    "whom to ask about it is not known: no operation of this stack tells, and no account is configured",
    "run it in the stack that made it, or add its account or project to `scan:` in tfguard.yaml",
)


def provider_of(
    context: StackContext,
    own: OwnOperations,
    finding: Finding,
    found: CloudObject,
    arguments: Sequence[str],
    elsewhere: ProviderOf,
) -> ProviderConfig | None:
    """The provider configuration of the run that the finding comes from, else what `elsewhere` says of its account.

    `arguments` are the engine's `-var` and `-var-file`, where the provider has to be read from the configuration.
    """
    if not own.of(finding):
        return elsewhere(found)
    operation = context.records.operation(finding.operation_id or "")
    made = _step_of(operation, finding, found)
    if made is None:
        return elsewhere(found)
    key, source = made.provider_key, made.provider
    step = Step(finding.address or "", found.type, source, Action.DELETE, provider_key=key)
    providers = providers_of(context, operation, [step], arguments)
    return provider_for(step, providers, context.around.config)


def _step_of(operation: Operation, finding: Finding, found: CloudObject) -> Step | None:
    """The step that tells through which provider configuration the object was seen, or was to be made."""
    seen = (step for step in operation.steps if finding.provider_key and step.provider_key == finding.provider_key)
    meant = (step for step in operation.steps if step.type == found.type and step.address == finding.address)
    return next(seen, None) or next(meant, None)


def waiting_in(listing: Listing, before: CloudObject) -> CloudObject | None:
    """The object as it is among those of a listing that are deleted and wait for their end; None where it is not."""
    same = (one for one in listing.soft_deleted if one.key in (before.key, replace(before, account=one.account).key))
    return next(same, None)


def end_of(waiting: CloudObject) -> str:
    """When a deleted object that waits for its end is gone, as the end of a sentence."""
    if waiting.gone_after is None:
        return "gone after its waiting time, of which the end is not told"
    return f"gone after {waiting.gone_after:%Y-%m-%d %H:%M}Z"


def object_now(around: Surroundings, before: CloudObject, provider: ProviderConfig) -> CloudObject | Refusal | None:
    """The object as a list tells it now, with its details; None where it was looked for completely and is not there.

    Else why that cannot be told; `Waits` where it is deleted and could still be restored.
    """
    if not around.inventory.covers(before.type):
        return Refusal(f"it cannot be looked at: {before.type} cannot be listed", "look at it at the provider")
    if before.import_id.startswith(WITHHELD_WORD):
        return Refusal("it cannot be looked for: what names it is withheld", "look for it at the provider")
    listing = around.inventory.list(before.type, provider, own_place_of(before))
    asked = listing.scope.account
    if before.account is not None and asked not in (None, before.account):
        what = f"it is in the account {before.account}, and the list tells of {asked}"
        return Refusal(what, "run it with the credentials of the object's account")
    kind = around.catalog.get(before.type)
    confirms = kind is not None and kind.get is not None  # what lists it is an index that lags
    for one in listing.objects:
        if one.key in (before.key, replace(before, account=one.account).key):
            return _confirmed(listed_detail(one, provider, around.inventory, around.catalog), confirms)
    if deleted := waiting_in(listing, before):
        told = around.inventory.detail(deleted, provider)
        if told.gone:
            return None
        waiting = told.found
        return Waits(f"it is deleted, and {end_of(waiting)}", f"wait, or bring it back: {_IMPORT_AGAIN}", found=waiting)
    if listing.gap is not None:
        whose = f" by the credentials of its account, {before.account}" if before.account else ""
        return Refusal(f"it cannot be looked at: {listing.gap.reason}", f"let it be listed{whose}")
    if before.account is not None and asked is None:
        what = "it is not listed, and which account the list tells of is not known"
        cloud = cloud_named(before.cloud)
        return Refusal(what, cloud.tell_it if cloud else "let the provider tell it")
    if kind is not None and ((confirms and before.identity) or lists_lag(kind, around.catalog)):
        whole = told_in_full(kind, before) if confirms else None
        return _confirmed(around.inventory.detail(whole, provider), confirms) if whole else _NOT_TOLD
    if not listing.exhaustive:
        return Refusal(f"it is not listed, and no list has every {before.type} there is", "look at it at the provider")
    return None


def _confirmed(answer: Detail, confirms: bool) -> CloudObject | Refusal | None:
    """The object as its own service tells it; None where that has it no more."""
    if answer.gone:
        return None
    if confirms and answer.gap is not None:
        what = f"whether it is still there cannot be asked: {answer.gap.reason}"
        return Refusal(what, "let it be read: its own service has the last word")
    return answer.found


def seen_at(context: StackContext, own: OwnOperations, finding: Finding) -> datetime | None:
    """When the object of a finding was there already: at the end of its operation, else when a scan told of it first,
    or when the operation began. None where nothing tells.
    """
    if not own.of(finding):
        return finding.first_seen
    operation = context.records.operation(finding.operation_id or "")
    # Of a run that nobody saw ending nothing tells more than when it began.
    return operation.result.ended_at if operation.result else finding.first_seen or operation.intent.started_at


def surely_now(
    context: StackContext, own: OwnOperations, finding: Finding, before: CloudObject, provider: ProviderConfig
) -> CloudObject | Refusal | None:
    """`object_now`, but None only where the object is surely gone: lists leave out for a while what is new.

    It is looked for again until the consistency grace since its creation is over; where that is not told, since it was
    seen, or since this look began.
    """
    around = context.around
    began = around.clock.now()
    # A provider's clock may be ahead of this one.
    born = min(before.created_at or seen_at(context, own, finding) or began, began)
    end = born + around.config.consistency_grace
    while True:
        now = object_now(around, before, provider)
        if now is not None or around.clock.now() >= end:
            return now
        if not around.clock.sleep(_PAUSE):
            return Refusal("interrupted while it was looked for; whether it is gone is not known", "look again")
