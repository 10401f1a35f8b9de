"""What is known at one moment: the state, the lists before and after, and how far each can be trusted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tfguard.catalog.catalog import Catalog
from tfguard.model.failure import Failure
from tfguard.model.inventory import UNKNOWN_REGION, Gap, Listing, Scope
from tfguard.model.operation import BaselineEntry, Step, StepStatus
from tfguard.model.secrets import WITHHELD_PLACE
from tfguard.model.state import StateSnapshot
from tfguard.ports import ImportProbe
from tfguard.reconcile.matching import Window

ListingKey = tuple[str, str, str]
"""Type, provider configuration, and the resource's own region or project where it has one: what a list is asked for
with."""


def listings_for(step: Step, catalog: Catalog) -> tuple[ListingKey, ...]:
    """The listings that a conclusion about this step needs: its own type's, or its parent's where that would take a
    call for each parent there is."""
    kind = catalog.get(step.type)
    if kind is None or step.own_place == WITHHELD_PLACE:
        return ()
    if kind.parent and kind.asks_parent:
        return ((kind.parent.type, step.provider_key, step.own_place or ""),)
    return (listing_key(step),) if kind.list is not None else ()


def listing_key(step: Step) -> ListingKey:
    """Which listing answers for a step: its type, provider configuration and own place."""
    return (step.type, step.provider_key, step.own_place or "")


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that is known at one moment.

    `errored` is the state in an `errored.tfstate` that nobody has pushed. `stream_whole` tells whether every event that
    the engine wrote was read; only then does "never started" follow from silence. `quiet_since` is when the engine was
    last seen doing something; the consistency grace counts from it. `open_creates` are the addresses of which the
    engine began a create that it did not report the end of. `elsewhere` are the other states that are known.
    `masks_known` tells whether masked addresses could be told again, in the state and in the events.
    """

    state: StateSnapshot
    listings: Mapping[ListingKey, Listing]
    baseline: Sequence[BaselineEntry]
    started_at: datetime
    quiet_since: datetime
    now: datetime
    grace: timedelta
    stream_whole: bool = True
    errored: StateSnapshot | None = None
    failures: Mapping[str, Failure] = field(default_factory=dict)
    probes: Mapping[str, ImportProbe] = field(default_factory=dict)
    open_creates: frozenset[str] = frozenset()
    elsewhere: tuple[StateSnapshot, ...] = ()
    masks_known: bool = True

    @property
    def grace_over(self) -> bool:
        """Whether "not listed" may by now mean "not there"."""
        return self.now >= self.quiet_since + self.grace

    @property
    def grace_ends(self) -> datetime:
        """The moment from which "not listed" means "not there"."""
        return self.quiet_since + self.grace

    def window(self, key: ListingKey) -> Window:
        """The operation's window for one listing."""
        entries = self._before(key)
        return Window(
            started_at=self.started_at,
            ended_at=self.quiet_since,
            before=frozenset(found for entry in entries for found in entry.object_ids),
            baseline_complete=bool(entries) and all(entry.complete for entry in entries),
            accounts=frozenset(entry.account for entry in entries),
            end_seen=self.stream_whole,
        )

    def listing(self, key: ListingKey) -> Listing | None:
        """The answer of a listing. One that comes from another place than the run worked in says nothing, which is a
        gap: a later look may be made with other credentials."""
        answer = self.listings.get(key)
        moved = self._other_place(key)
        if answer is None or moved is None:
            return answer
        reason = f"the run worked in {moved.cloud} {moved.account or 'unknown-account'} {moved.region}: ask there"
        return replace(answer, objects=(), gap=Gap(f"{answer.scope} {answer.type}", reason))

    def is_from_elsewhere(self, step: Step, catalog: Catalog) -> bool:
        """Whether a step is looked up in another place than the run worked in: then the engine's own read goes there
        too, and says nothing either."""
        return any(self._other_place(key) for key in listings_for(step, catalog))

    def _other_place(self, key: ListingKey) -> BaselineEntry | None:
        """Where the run worked, if the listing comes from another place."""
        answer = self.listings.get(key)
        if answer is None:
            return None
        return next((entry for entry in self._before(key) if _elsewhere(entry, answer.scope)), None)

    def _before(self, key: ListingKey) -> list[BaselineEntry]:
        return [entry for entry in self.baseline if (entry.type, entry.provider_key, entry.asked_region) == key]


def _elsewhere(entry: BaselineEntry, scope: Scope) -> bool:
    """Whether a list came from another account or region than the one before the run; an unknown one is no other."""
    if entry.account and scope.account and entry.account != scope.account:
        return True
    known = UNKNOWN_REGION not in (entry.region, scope.region) and bool(entry.region and scope.region)
    return known and entry.region != scope.region


def why_not_all(listing: Listing) -> str | None:
    """Why an object that is not in a listing may exist all the same; None where it does not."""
    if listing.gap is not None:
        return f"{listing.gap.scope}: {listing.gap.reason}"
    return None if listing.exhaustive else f"{listing.scope}: no list has every {listing.type} there is"


def never_started(step: Step, look: Look) -> bool:
    """Whether the engine is known not to have begun the step; silence tells that only in a whole stream."""
    return step.status is StepStatus.PENDING and look.stream_whole
