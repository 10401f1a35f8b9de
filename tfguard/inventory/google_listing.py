"""What exists at Google Cloud: whom to ask, and what an object's own service says of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any
from urllib.parse import quote

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.google_credentials import listed
from tfguard.inventory import google_settings as settings_of
from tfguard.inventory.google_access import (
    CALL_ERRORS,
    GoogleAccess,
    GoogleAccesses,
    is_not_found,
    is_of_credentials,
    refusal,
    require_clients,
)
from tfguard.inventory.google_gathering import Entries, Gathered, gap_of, scope_in
from tfguard.inventory.google_hierarchy import ENDING, PROJECT_ASSET, Hierarchy
from tfguard.inventory.google_round import Round
from tfguard.inventory.google_settings import Level, Reach
from tfguard.inventory.items import fill, holds, look_up, placeholders, to_time, with_tags
from tfguard.model.inventory import CloudObject, Detail, Listing, Scope
from tfguard.model.plan import ProviderConfig


class GoogleLister:
    """Makes the calls for `GoogleInventory`, which has checked that the settings say whom to ask and where.

    Raises `ImportError` where a library is missing.
    """

    def __init__(self, catalog: Catalog, accesses: GoogleAccesses | None = None) -> None:
        require_clients()
        self._catalog = catalog
        self._entries = Entries(catalog)
        self._accesses = accesses or GoogleAccesses()
        self._lock = Lock()
        self._hierarchies: dict[GoogleAccess, Hierarchy] = {}

    def list_many(
        self, entries: Iterable[ResourceType], provider: ProviderConfig, place: str | None
    ) -> Iterator[Listing]:
        """The listing of each type and account; what others are listed by is asked for once."""
        reach = settings_of.reach_of(provider.settings, os.environ, place)
        if reach is None:
            return
        access, hierarchy = self._access(provider, reach)
        patterns = () if place else tuple(listed(provider.settings, settings_of.PROJECTS))
        for_scan = settings_of.is_of_scan(provider.settings, place)
        asking = Round(
            self._catalog, self._entries, access, hierarchy, reach, patterns, provider.key, for_scan=for_scan
        )
        for listing in asking.listings(entries):
            if listing.gap is None or listing.objects or not is_of_credentials(listing.gap.reason):
                yield listing
            else:  # what else was tried in vain with the same credentials says nothing more
                told = next(one for one in re.split(r"; | \(", listing.gap.reason) if is_of_credentials(one))
                yield replace(listing, gap=replace(listing.gap, reason=told.rpartition(": ")[2]), asked=False)

    def place(self, provider: ProviderConfig, place: str | None) -> Scope | None:
        """Where `list_many` would look; None where that cannot be told."""
        reach = settings_of.reach_of(provider.settings, os.environ, place)
        if reach is None:
            return None
        account = reach.account
        if reach.level is Level.PROJECT and reach.name.isdecimal():
            account = self._access(provider, reach)[1].project(reach.name).id
        return scope_in(account, provider.key)

    def detail(self, entry: ResourceType, found: CloudObject, provider: ProviderConfig) -> Detail:
        """The object as its own service tells it. That it is gone is an answer; a refusal is a gap."""
        if entry.get is None:
            return Detail(found)
        scope = scope_in(found.account, provider.key)
        operation = f"Get{entry.asset.type.rpartition('/')[2] if entry.asset else 'Object'}"
        access = self.access_for(found, provider)
        try:
            url = filled_url(entry.get.url, found)
        except KeyError as error:  # the template names what this object does not have
            return Detail(found, gap_of(entry.type, scope, f"no {error.args[0]} for {operation}"))
        try:
            names = settings_of.endpoint_names(entry.service)
            answer = access.json("GET", access.address(url, names), operation)
        except CALL_ERRORS as error:
            if is_not_found(error):
                return Detail(found, gone=True)
            return Detail(found, gap_of(entry.type, scope, refusal(error, operation)))
        if entry.get.project:
            number = found.account or ""
            if number and not number.isdecimal():
                number = self.number_of(number, provider)
            told = str(look_up(entry.get.project, answer) or "")
            if not number or not told:
                return Detail(found, gap_of(entry.type, scope, "whose it is now, and in which project, is not told"))
            if told != number:  # somebody else has the name now
                return Detail(found, gone=True)
        # What was listed as waiting for its end is just that, and not gone.
        if entry.get.gone and not found.soft_deleted and holds(entry.get.gone, answer):
            return Detail(found, gone=True)
        return Detail(with_answer(entry, found, answer))

    def number_of(self, project: str, provider: ProviderConfig) -> str:
        """The number of a project; empty where it is not told."""
        return self._access(provider, Reach(Level.PROJECT, project))[1].project(project).number

    def access_for(self, found: CloudObject, provider: ProviderConfig) -> GoogleAccess:
        """What reaches an object's own service, as the provider configuration's identity."""
        return self._accesses.of(provider.settings, found.account if found.account and "/" not in found.account else "")

    def _access(self, provider: ProviderConfig, reach: Reach) -> tuple[GoogleAccess, Hierarchy]:
        access = self._accesses.of(provider.settings, reach.name if reach.level is Level.PROJECT else "")
        with self._lock:
            if access not in self._hierarchies:
                self._hierarchies[access] = Hierarchy(access, self._left_out)
            return access, self._hierarchies[access]

    def _left_out(self, item: Mapping[str, Any]) -> str | None:
        """Why what lies in a project is nobody's loss."""
        if item.get("state") == ENDING:
            return "it lies in a project that waits for its deletion"
        for entry in self._entries.called(PROJECT_ASSET):
            gathered = Gathered(entry, self._entries, scope_in(None, ""))
            gathered.add(item)
            for found in gathered.listing().objects:
                if found.ignored_because:
                    return f"it lies in a project that is left out: {found.ignored_because}"
        return None


def filled_url(template: str, found: CloudObject) -> str:
    """The address of a call about an object. Raises `KeyError` for a name that it does not have."""
    return str(fill(template, {name: quote(value, safe="/:@") for name, value in placeholders(found, "").items()}))


def with_answer(entry: ResourceType, found: CloudObject, answer: Mapping[str, Any]) -> CloudObject:
    """The object with what its own service's answer adds."""
    call = entry.get
    if call is None:
        return found
    if call.created and "created" not in entry.unverified:
        found = replace(found, created_at=to_time(look_up(call.created, answer)) or found.created_at)
    because = next((rule.reason for rule in call.ignore if holds(rule.when, answer)), None)
    found = replace(found, ignored_because=found.ignored_because or because)
    return with_tags(entry, found, look_up(call.tags, answer)) if call.tags else found
