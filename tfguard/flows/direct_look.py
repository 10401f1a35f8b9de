"""Ask an object's own service for what no list has: where what lists it is an index, not to be listed is not enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tfguard.flows.looking import Surroundings
from tfguard.model.evidence import EvidenceKind
from tfguard.model.failure import FailureKind
from tfguard.model.inventory import Detail, Listing
from tfguard.model.operation import Step
from tfguard.model.plan import ProviderConfig
from tfguard.reconcile.look import ListingKey, Look, listing_key
from tfguard.reconcile.outcomes import conclude
from tfguard.reconcile.wanted import wanted_object

# Then somebody else may have it, who tells nobody of it.
_MET_ANOTHER = (FailureKind.ALREADY_EXISTS, FailureKind.REFUSED)


def with_direct_answers(
    look: Look, keys: Mapping[ListingKey, ProviderConfig], steps: Sequence[Step], around: Surroundings
) -> Look:
    """The look with the objects that their own services have and no list has yet; with a gap where one does not say."""
    listings = dict(look.listings)
    for step in conclude(steps, look, around.catalog):
        kind, key = around.catalog.get(step.type), listing_key(step)
        listing = listings.get(key)
        missed = any(evidence.kind is EvidenceKind.NOT_LISTED for evidence in step.evidence)
        if kind is None or listing is None or not (missed and step.action.creates and listing.complete):
            continue
        wanted = wanted_object(kind, step, listing.scope)
        if wanted is None or any(one.key == wanted.key for one in (*listing.objects, *listing.soft_deleted)):
            continue
        failure = look.failures.get(step.address)
        answer = around.inventory.detail(wanted, keys[key])
        if answer.gap is None or failure is None or failure.kind not in _MET_ANOTHER:
            listings[key] = _with(listing, answer)
    return replace(look, listings=listings)


def _with(listing: Listing, answer: Detail) -> Listing:
    if answer.gap is not None:
        return replace(listing, gap=answer.gap)
    return listing if answer.gone else replace(listing, objects=(*listing.objects, answer.found))
