"""Ask an object's own service for what no list has: where what lists it is an index, not to be listed is not enough."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tfguard.catalog.types import ResourceType
from tfguard.flows.looking import Surroundings
from tfguard.model.evidence import EvidenceKind
from tfguard.model.failure import Failure, FailureKind
from tfguard.model.inventory import CloudObject, Detail, Gap, Listing
from tfguard.model.operation import Step, StepStatus
from tfguard.model.plan import ProviderConfig
from tfguard.reconcile.look import ListingKey, Look, listing_key, listings_for
from tfguard.reconcile.outcomes import conclude
from tfguard.reconcile.wanted import left_object, lists_lag, parent_object, wanted_object

_NOT_NAMED = "not listed, and its own service cannot be asked: what is known does not name it in full"
_NOT_ASKED_BEFORE = "its list lags behind what there is, and what the plan tells does not name it in full"


def asking_for_planned(
    steps: Sequence[Step], around: Surroundings
) -> Callable[[str, ProviderConfig, str | None], Listing]:
    """How to list before a run: an index that lags proves no absence, so that each planned name is asked for at its own
    service as well. One that cannot be asked for is a gap."""

    def ask(resource_type: str, provider: ProviderConfig, place: str | None) -> Listing:
        listing, kind = around.inventory.list(resource_type, provider, place), around.catalog.get(resource_type)
        if kind is None or not listing.complete or not lists_lag(kind, around.catalog):
            return listing
        key = (resource_type, provider.key, place or "")
        for step in steps:
            if step.action.creates and listing_key(step) == key:
                listing = _with_planned(kind, step, listing, provider, around)
        return listing

    return ask


def _with_planned(
    kind: ResourceType, step: Step, listing: Listing, provider: ProviderConfig, around: Surroundings
) -> Listing:
    wanted = wanted_object(kind, step, listing.scope)
    if wanted is None:
        return replace(listing, gap=Gap(f"{listing.scope} {kind.type}", _NOT_ASKED_BEFORE))
    if _has(listing, wanted):
        return listing
    return _with(listing, around.inventory.detail(wanted, provider))


def with_direct_answers(
    look: Look, keys: Mapping[ListingKey, ProviderConfig], steps: Sequence[Step], around: Surroundings
) -> Look:
    """The look with the objects that their own services have and no list has yet; with a gap where one does not say.

    Asked for are what was to be made, what left the state though no engine says that it is gone, and the parents of
    which the absence would take such an object along.
    """
    listings = dict(look.listings)
    for before, step in zip(steps, conclude(steps, look, around.catalog), strict=True):
        key = next(iter(listings_for(step, around.catalog)), listing_key(step))
        kind, listing = around.catalog.get(key[0]), listings.get(key)
        missed = any(evidence.kind is EvidenceKind.NOT_LISTED for evidence in step.evidence)
        sure = not step.action.creates and before.status is StepStatus.OK  # the engine has read or deleted it itself
        if kind is None or listing is None or look.listings[key].gap is not None or not missed or sure:
            continue
        if kind.get is None and not lists_lag(kind, around.catalog):
            continue
        asked = _asked_for(kind, step, listing, around)
        if asked is None:
            if key[0] != step.type or not step.action.creates or (look.grace_over and lists_lag(kind, around.catalog)):
                listings[key] = replace(listing, gap=Gap(f"{listing.scope} {kind.type}", _NOT_NAMED))
            continue
        if _has(listing, asked):
            continue
        answer = around.inventory.detail(asked, keys[key])
        if answer.gap is None or not _may_be_anothers(kind, look.failures.get(step.address)):
            listings[key] = _with(listing, answer)
    return replace(look, listings=listings)


def _asked_for(kind: ResourceType, step: Step, listing: Listing, around: Surroundings) -> CloudObject | None:
    own = around.catalog.get(step.type)
    if own is not None and own is not kind:
        return parent_object(kind, own, step, listing.scope)
    return (wanted_object if step.action.creates else left_object)(kind, step, listing.scope)


def _may_be_anothers(kind: ResourceType, failure: Failure | None) -> bool:
    """Whether a create was refused, or met what somebody else may have, who tells nobody of it."""
    if failure is None:
        return False
    met = failure.kind is FailureKind.ALREADY_EXISTS and kind.is_named_worldwide
    return met or failure.kind is FailureKind.REFUSED


def _has(listing: Listing, found: CloudObject) -> bool:
    return any(one.key == found.key for one in (*listing.objects, *listing.soft_deleted))


def _with(listing: Listing, answer: Detail) -> Listing:
    if answer.gap is not None:
        return replace(listing, gap=answer.gap)
    return listing if answer.gone else replace(listing, objects=(*listing.objects, answer.found))
