"""Lists in the background, before and after a run, and what a record keeps of those before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from tfguard.catalog.catalog import Catalog
from tfguard.flows.providers import provider_for
from tfguard.model.cloud import cloud_of_type
from tfguard.model.config import Config
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject, Detail, Gap, Listing, Scope
from tfguard.model.operation import BaselineEntry, Step
from tfguard.model.plan import ProviderConfig
from tfguard.ports import Clock, Console, Inventory
from tfguard.reconcile.look import ListingKey, listings_for

_AT_ONCE = 8
_LISTENS_EVERY = 0.1
_GUESSED = (
    "its service does not know it by what the inventory calls it, which proves nothing: that was not checked against "
    "the service's documentation"
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is needed to look: the inventory, the catalogue, and the user's settings."""

    inventory: Inventory
    catalog: Catalog
    config: Config
    clock: Clock
    console: Console


def listed_detail(found: CloudObject, provider: ProviderConfig, inventory: Inventory, catalog: Catalog) -> Detail:
    """What its own service says of an object that is listed. Of one whose listed names may be wrong it is no word of
    absence that the service does not know them."""
    answer, kind = inventory.detail(found, provider), catalog.get(found.type)
    if not answer.gone or kind is None or not kind.has_guessed_names:
        return answer
    return Detail(found, Gap(f"{Scope(found.cloud, found.account, found.region)} {found.type}", _GUESSED))


class Looking:
    """Lists in the background, so that a question to the user and the lists take their time together.

    `ask` lists in the inventory's place.
    """

    def __init__(
        self,
        around: Surroundings,
        keys: Mapping[ListingKey, ProviderConfig],
        ask: Callable[[str, ProviderConfig, str | None], Listing] | None = None,
    ) -> None:
        self._clock = around.clock
        self._pool = ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="tfguard-list")
        self._futures: dict[ListingKey, Future[Listing]] = {
            key: self._pool.submit(ask or around.inventory.list, key[0], provider, key[2] or None)
            for key, provider in keys.items()
        }

    def cancel(self) -> None:
        """Nobody wants the answer any more; what has not started does not start."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def result(self, seconds: float | None = None) -> Mapping[ListingKey, Listing]:
        """The listings; one that is not there after `seconds`, or when the user interrupts meanwhile, is a gap."""
        asked = time.monotonic()
        # A look that begins after an interrupt is there to settle it, and goes to its end.
        settles = self._clock.interrupted
        why = f"the list took longer than {seconds} s"
        waiting = set(self._futures.values())
        while waiting and (seconds is None or time.monotonic() - asked < seconds):
            if self._clock.interrupted and not settles:
                why = "the look was interrupted"
                break
            waiting = wait(waiting, timeout=_LISTENS_EVERY).not_done
        self.cancel()
        return {key: _answer(key, future, why) for key, future in self._futures.items()}


def _answer(key: ListingKey, future: Future[Listing], why_not: str) -> Listing:
    scope = _unasked(key)
    if not future.done() or future.cancelled():
        return Listing(key[0], scope, (), Gap(f"{key[1]} {key[0]}", why_not))
    if defect := future.exception():
        # A list that breaks is an incomplete look like any other (rule 12), and no reason to lose the outcome.
        return Listing(key[0], scope, (), Gap(f"{key[1]} {key[0]}", f"the list failed: {type(defect).__name__}"))
    return future.result()


def _unasked(key: ListingKey) -> Scope:
    """Where a list was to look that nobody has an answer of: the own place of a resource is all that is known."""
    kind, provider_key, place = key
    cloud = cloud_of_type(kind)
    if cloud is not None and cloud.place_is_account:
        return Scope("", place or None, UNKNOWN_REGION, provider_key)
    return Scope("", None, place, provider_key)


def keys_of(
    steps: Iterable[Step], providers: Mapping[str, ProviderConfig], around: Surroundings
) -> Mapping[ListingKey, ProviderConfig]:
    """The listings that tell of the objects of these steps, each with the provider configuration that it asks."""
    return {
        key: provider_for(step, providers, around.config)
        for step in steps
        for key in listings_for(step, around.catalog)
        if around.inventory.covers(key[0])
    }


def baseline_keys(
    steps: Iterable[Step], providers: Mapping[str, ProviderConfig], around: Surroundings
) -> Mapping[ListingKey, ProviderConfig]:
    """The listings to take before a run: one for each type and place in which something is to be created."""
    return keys_of([step for step in steps if step.action.creates], providers, around)


def places_without_lists(keys: Mapping[ListingKey, ProviderConfig], around: Surroundings) -> tuple[BaselineEntry, ...]:
    """For `--baseline=off`: where the run works, so that no later look from elsewhere is taken for an answer."""
    places = {key: around.inventory.place(key[0], provider, key[2] or None) for key, provider in keys.items()}
    return tuple(
        BaselineEntry(
            type=key[0],
            cloud=place.cloud if place else "",
            account=place.account if place else None,
            region=place.region if place else UNKNOWN_REGION,
            complete=False,
            provider_key=key[1],
            asked_region=key[2],
            reason="--baseline=off",
        )
        for key, place in places.items()
    )


def _why_incomplete(listing: Listing) -> str | None:
    if listing.gap is not None:
        return listing.gap.reason
    return None if listing.exhaustive else f"no list has every {listing.type} there is"


def baseline_entries(listings: Mapping[ListingKey, Listing]) -> tuple[BaselineEntry, ...]:
    """What a record keeps of the look before the run: which objects were there, by finding id alone."""
    return tuple(
        BaselineEntry(
            type=key[0],
            cloud=listing.scope.cloud,
            account=listing.scope.account,
            region=listing.scope.region,
            complete=listing.complete,
            provider_key=key[1],
            asked_region=key[2],
            object_ids=tuple(sorted(found.finding_id for found in listing.objects)),
            reason=_why_incomplete(listing),
        )
        for key, listing in listings.items()
    )
