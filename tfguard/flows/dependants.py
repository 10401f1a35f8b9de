"""What hangs on the networks and clusters that a destroy takes away, and is nobody's: named before anything happens."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tfguard.catalog.types import ResourceType
from tfguard.errors import TfguardError
from tfguard.flows.context import StackContext
from tfguard.flows.known_states import known_states
from tfguard.flows.looking import Looking
from tfguard.flows.parallel import as_they_come
from tfguard.flows.providers import provider_for
from tfguard.model.finding import Verdict
from tfguard.model.inventory import CloudObject, Gap, Listing
from tfguard.model.operation import Step
from tfguard.model.plan import Action, ProviderConfig
from tfguard.model.secrets import Withholding
from tfguard.model.state import StateSnapshot
from tfguard.reconcile.disposal import dependant_types, goes_along, hangs_on, left_by
from tfguard.reconcile.look import ListingKey, listing_key
from tfguard.reconcile.matching import same_object
from tfguard.reconcile.state_index import StateIndex
from tfguard.reconcile.verdicts import Makers

_SHOWN = 12
_MOST_DETAILS = 100


class _TookTooLongError(Exception):
    """The time is over, or the user has had enough."""


@dataclass(frozen=True, slots=True)
class _Container:
    """An object that is to be deleted, and in which others may have been made."""

    step: Step
    kind: ResourceType


class Dependants:
    """Lists what hangs on the containers among `steps`, in the background from here on; it names, and blocks nothing.

    `providers` are the plan's, `before` is the stack's state, `hidden` what may not be shown.
    """

    def __init__(
        self,
        context: StackContext,
        steps: Sequence[Step],
        providers: Mapping[str, ProviderConfig],
        before: StateSnapshot,
        hidden: Withholding,
    ) -> None:
        self._context, self._around, self._before, self._hidden = context, context.around, before, hidden
        self._containers = list(self._among(steps))
        keys = {
            (wanted, one.step.provider_key, one.step.own_place or ""): provider_for(
                one.step, providers, self._around.config
            )
            for one in self._containers
            for wanted in (one.kind.type, *dependant_types(self._around.catalog, one.kind), *one.kind.leaves)
            if self._around.inventory.covers(wanted)
        }
        self._leaves = {left for one in self._containers for left in one.kind.leaves}
        self._looking = Looking(self._around, keys, self._list)

    def _among(self, steps: Iterable[Step]) -> Iterator[_Container]:
        for step in steps:
            kind = self._around.catalog.get(step.type)
            if step.action is Action.DELETE and kind is not None and kind.container and kind.list is not None:
                yield _Container(step, kind)

    def _list(self, resource_type: str, provider: ProviderConfig, region: str | None) -> Listing:
        """The list, with the tags of what only they tell to be a cluster's."""
        listing = self._around.inventory.list(resource_type, provider, region)
        kind = self._around.catalog.get(resource_type)
        if resource_type not in self._leaves or kind is None or kind.tags is not None:
            return listing
        asked, unasked = listing.objects[:_MOST_DETAILS], listing.objects[_MOST_DETAILS:]
        details = [self._around.inventory.detail(found, provider) for found in asked]
        gap = listing.gap or next((detail.gap for detail in details if detail.gap), None)
        if unasked:
            gap = gap or Gap(f"{listing.scope} {resource_type}", f"the tags of {len(unasked)} were not asked for")
        return replace(listing, objects=(*(detail.found for detail in details), *unasked), gap=gap)

    def tell(self, seconds: float) -> None:
        """Name what was found within this time, and where the look was incomplete."""
        if not self._containers:
            return
        end = time.monotonic() + seconds
        listings = self._looking.result(seconds)
        index = StateIndex(self._around.catalog)
        index.add("", "", self._before)
        for number, other in enumerate(self._context.other_states()):
            index.add(f"{number}", "", other)
        makers = Makers(self._around.catalog, index)
        for listing in listings.values():
            makers.note(listing)
        hanging = {
            one.step.address: [found for found in self._hanging(one, listings) if self._is_stray(found, index, makers)]
            for one in self._containers
        }
        unread = self._take_other_states(index, end) if any(hanging.values()) else ""
        for one in self._containers:
            self._name(one, [found for found in hanging[one.step.address] if not index.may_be_known(found)])
        gaps = {f"{listing.gap.scope}: {listing.gap.reason}" for listing in listings.values() if listing.gap}
        for gap in [*sorted(gaps)[:_SHOWN], *([unread] if unread else [])]:
            told = self._hidden.text(gap, "a place whose name is withheld")
            self._context.console.say(f"what hangs on this stack's objects was not all looked at: {told}")

    def _hanging(self, one: _Container, listings: Mapping[ListingKey, Listing]) -> Iterator[CloudObject]:
        catalog, (_, key, region) = self._around.catalog, listing_key(one.step)
        here = [listing for (_, at, where), listing in listings.items() if (at, where) == (key, region)]
        own = listings.get(listing_key(one.step))
        parent = (
            next((found for found in own.objects if same_object(one.kind, one.step.before, found)), None)
            if own
            else None
        )
        if parent is None:
            return
        for listing in here:
            for found in listing.objects:
                if found.key != parent.key and (hangs_on(catalog, found, parent) or left_by(catalog, found, parent)):
                    yield found

    def _is_stray(self, found: CloudObject, index: StateIndex, makers: Makers) -> bool:
        if found.ignored_because is not None or index.may_be_known(found):
            return False
        ruling = makers.ruling(goes_along(self._around.catalog, found), certain=True)
        return ruling is None or ruling.verdict is not Verdict.IGNORED

    def _take_other_states(self, index: StateIndex, end: float) -> str:
        """Take in the other stacks' states, also those that are not on this machine; why that was not possible."""

        def go_on() -> None:
            if self._context.clock.interrupted or time.monotonic() >= end:
                raise _TookTooLongError

        try:
            for where, state in as_they_come(known_states(self._context, self._before), go_on):
                index.add(where, "", state)
        except _TookTooLongError:
            return "the other stacks' states: reading them took too long"
        except TfguardError as error:
            return f"the other stacks' states: {error.what}"
        return ""

    def _name(self, one: _Container, strays: Sequence[CloudObject]) -> None:
        if not strays:
            return
        console = self._context.console
        console.warn(
            f"on {one.step.address} hang {len(strays)} that no state has; they may keep it from being deleted:"
        )
        for found in sorted(strays, key=lambda one: (one.type, one.import_id))[:_SHOWN]:
            name = f" ({found.name})" if found.name and found.name != found.import_id else ""
            told = self._hidden.text(f"{found.type} {found.import_id}{name}", "one whose name is withheld")
            console.warn(f"  {told}")
        if len(strays) > _SHOWN:
            console.warn(f"  and {len(strays) - _SHOWN} more")
