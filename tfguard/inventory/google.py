"""What exists at Google Cloud, as a port. The client libraries are slow to import, so that they wait for the first
listing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from threading import Lock, Thread
from typing import TYPE_CHECKING

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.inventory import google_settings as settings_of
from tfguard.inventory.google_settings import CLOUD
from tfguard.model.inventory import CloudObject, Detail, Gap, Listing, Scope
from tfguard.model.plan import ProviderConfig

if TYPE_CHECKING:
    from tfguard.inventory.google_access import GoogleAccesses
    from tfguard.inventory.google_listing import GoogleLister

NO_LIBRARY = "Google's libraries are not installed: `pip install google-cloud-asset google-cloud-resource-manager`"
_GLOBAL = "global"


class LazyLister:
    """What makes the calls, made when it is first called for. Safe to use from several threads."""

    def __init__(self, catalog: Catalog, accesses: GoogleAccesses | None = None) -> None:
        self._catalog = catalog
        self._accesses = accesses
        self._lock = Lock()
        self._made: GoogleLister | None = None

    def __call__(self) -> GoogleLister:
        """The lister. Raises `ImportError` where Google's libraries are not installed."""
        with self._lock:
            if self._made is None:
                from tfguard.inventory.google_listing import GoogleLister

                self._made = GoogleLister(self._catalog, self._accesses)
            return self._made


class GoogleInventory:
    """Lists the Google types of a catalogue. Implements `ports.Inventory`; safe to use from several threads.

    A `place` is a project's id, or `organizations/N`, `folders/N` for what lies right there. Without one the provider
    configuration's own project is meant, or the whole organization or folder that a scan's configuration names.
    `accesses` may be shared with others; without them it makes its own.
    """

    def __init__(self, catalog: Catalog, accesses: GoogleAccesses | None = None) -> None:
        self._catalog = catalog
        self._lister = LazyLister(catalog, accesses)

    def warm_up(self) -> None:
        """Load the libraries in the background: it takes longer than a list, and the engine plans meanwhile."""
        Thread(target=self._load_quietly, daemon=True, name="tfguard-google").start()

    def _load_quietly(self) -> None:
        with suppress(ImportError):
            self._lister()
            from tfguard.inventory.google_access import load_clients

            load_clients()

    def covers(self, resource_type: str) -> bool:
        """Whether objects of the type can be listed at all."""
        entry = self._entry(resource_type)
        return entry is not None and entry.list is not None

    def list(self, resource_type: str, provider: ProviderConfig, place: str | None = None, /) -> Listing:
        """Every object of the type that the provider configuration can see; whatever is in the way becomes a gap.

        Of one that reaches several projects all of them are in it, each object with its own account.
        """
        listings = list(self.list_many([resource_type], provider, place))
        return listings[0] if len(listings) == 1 else _joined(resource_type, listings, self._nowhere(provider, place))

    def list_many(
        self, resource_types: Iterable[str], provider: ProviderConfig, place: str | None = None, /
    ) -> Iterator[Listing]:
        """The listing of each type and account, in no order. A type that others are listed by is asked for once."""
        listable: dict[str, ResourceType] = {}
        for name in resource_types:
            entry = self._entry(name)
            if entry is None or entry.list is None:
                yield self._nothing(name, provider, place, "no call lists this type")
            elif reason := self._unknown(entry, provider, place):
                yield self._nothing(name, provider, place, reason, asked=False)
            else:
                listable[name] = entry
        if not listable:
            return
        try:
            lister = self._lister()
        except ImportError:
            yield from (self._nothing(name, provider, place, NO_LIBRARY, asked=False) for name in listable)
            return
        yield from lister.list_many(listable.values(), provider, place)

    def place(self, resource_type: str, provider: ProviderConfig, place: str | None = None, /) -> Scope | None:
        """Where a listing would look, without listing; None where that cannot be told."""
        entry = self._entry(resource_type)
        if entry is None or self._unknown(entry, provider, place):
            return None
        try:
            return self._lister().place(provider, place)
        except ImportError:
            return None

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:
        """The object with creation time and tags as its own service tells them, and whether that has it at all."""
        entry = self._entry(found.type)
        if entry is None or entry.get is None:
            return Detail(found)
        if reason := settings_of.whom_is_unknown(provider, settings_of.endpoint_names(entry.service)):
            return Detail(found, self._nothing(found.type, provider, found.account, reason).gap)
        try:
            lister = self._lister()
        except ImportError:
            return Detail(found, self._nothing(found.type, provider, found.account, NO_LIBRARY).gap)
        return lister.detail(entry, found, provider)

    def _entry(self, resource_type: str) -> ResourceType | None:
        entry = self._catalog.get(resource_type)
        return entry if entry is not None and entry.cloud == CLOUD else None

    def _unknown(self, entry: ResourceType, provider: ProviderConfig, place: str | None) -> str | None:
        """Why it is not known whom to ask, or where."""
        names = (*settings_of.LISTING, *settings_of.endpoint_names(entry.service))
        whom = settings_of.whom_is_unknown(provider, names)
        return whom or (None if place else settings_of.project_is_unknown(provider, os.environ))

    def _nowhere(self, provider: ProviderConfig, place: str | None) -> Scope:
        reach = settings_of.reach_of(provider.settings, os.environ, place)
        return Scope(CLOUD, reach.account if reach else None, _GLOBAL, provider.key)

    def _nothing(
        self, resource_type: str, provider: ProviderConfig, place: str | None, reason: str, *, asked: bool = True
    ) -> Listing:
        scope = self._nowhere(provider, place)
        return Listing(resource_type, scope, gap=Gap(f"{scope} {resource_type}", reason), asked=asked)


def _joined(resource_type: str, listings: list[Listing], scope: Scope) -> Listing:
    """Several listings of a type as one: what is missing in any of them is missing in it."""
    reasons = dict.fromkeys(f"{one.scope.account}: {one.gap.reason}" for one in listings if one.gap)
    gap = Gap(f"{scope} {resource_type}", "; ".join(reasons)) if reasons else None
    first = Listing(resource_type, scope, gap=gap, exhaustive=all(one.exhaustive for one in listings))
    return replace(
        first,
        objects=tuple(found for one in listings for found in one.objects),
        soft_deleted=tuple(found for one in listings for found in one.soft_deleted),
        asked=any(one.asked for one in listings),
    )
