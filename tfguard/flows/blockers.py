"""What hangs on an object that is to be deleted: listed, told with whose it is, and waited for within a bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from tfguard.catalog.catalog import Catalog
from tfguard.flows.looking import Surroundings
from tfguard.model.cloud import own_place_of
from tfguard.model.inventory import CloudObject, Gap
from tfguard.model.naming import first_of
from tfguard.model.plan import ProviderConfig
from tfguard.ports import Clock
from tfguard.reconcile.disposal import dependant_types, hangs_on
from tfguard.reconcile.wanted import lists_lag

_MOST_NAMED = 5
_MOST_TAGS = 4


def hanging_on(
    around: Surroundings, found: CloudObject, provider: ProviderConfig
) -> tuple[Sequence[CloudObject], Sequence[Gap]]:
    """What hangs on an object now, without what was made with it and goes with it; and where nobody could look."""
    kind = around.catalog.get(found.type)
    if kind is None:
        return (), ()
    hanging: list[CloudObject] = []
    gaps: list[Gap] = []
    for listing in around.inventory.list_many(dependant_types(around.catalog, kind), provider, own_place_of(found)):
        hanging += [
            one
            for one in listing.objects
            if hangs_on(around.catalog, one, found) and not (one.ignored_because and one.type in kind.owns)
        ]
        gaps += [listing.gap] if listing.gap else []
    return hanging, gaps


def told_of_none(catalog: Catalog, found: CloudObject) -> str:
    """What may be said of an object on which nothing was found to hang."""
    kind = catalog.get(found.type)
    if kind is None or not lists_lag(kind, catalog):
        return "nothing that can be listed hangs on it"
    return "nothing that is listed hangs on it; the list lags behind, so that what is new may do so all the same"


def told(one: CloudObject) -> str:
    """An object with all that tells whose it is: its name or description, who asked for it, its tags, its account."""
    asked = one.identity.get("requester_id")
    tags = [f"{name}={value}" for name, value in sorted(one.tags.items()) if name != "Name"]
    says = (
        one.name if one.name != one.import_id else None,
        one.ignored_because,
        f"asked for by {asked}" if asked else None,
        f"tags {', '.join(tags[:_MOST_TAGS])}" if tags else None,
        f"of the account {one.owner}" if one.owner and one.owner != one.account else None,
    )
    more = "; ".join(text for text in says if text)
    return f"{one.type} {one.import_id}{f' ({more})' if more else ''}"


def told_of(hanging: Sequence[CloudObject]) -> str:
    """The first of them, each as `told` has it."""
    return _first(hanging, told)


def ids_of(hanging: Sequence[CloudObject]) -> str:
    """The first of them by type and id alone: that can be kept in a record, where tags and descriptions cannot."""
    return _first(hanging, lambda one: f"{one.type} {one.import_id}")


def _first(hanging: Sequence[CloudObject], text: Callable[[CloudObject], str]) -> str:
    return first_of([text(one) for one in hanging], _MOST_NAMED)


class Patience:
    """The bound within which a provider may try again what something blocks. One that waits for an accepted deletion
    to come to its end is let be: then nothing hangs on the object, or it is not listed any more."""

    def __init__(self, clock: Clock, wait: timedelta, blocked: Callable[[], bool]) -> None:
        self._clock, self._wait, self._blocked = clock, wait, blocked
        self._ends: datetime | None = None
        self.over = False

    def begins(self) -> None:
        """The engine has begun to delete."""
        self._ends = self._clock.now() + self._wait

    def is_over(self) -> bool:
        """Whether the time has passed, and something is in the way. Looked at once in each such time."""
        if self._ends is None or self._clock.now() < self._ends:
            return self.over
        self.begins()
        self.over = self._blocked()
        return self.over
