"""Turns what Google's search and lists answer into the listings of types, item by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.inventory.google_hierarchy import FOLDER_ASSET, PROJECT_ASSET, Container
from tfguard.inventory.google_settings import CLOUD
from tfguard.inventory.items import as_parent, holds, to_object
from tfguard.model.inventory import CloudObject, Gap, Listing, Scope

GLOBAL = "global"
_NO_PARTITION = ""


class Entries:
    """The types of the catalogue that are assets, by what the search calls them."""

    def __init__(self, catalog: Catalog) -> None:
        self._by_asset: dict[str, list[ResourceType]] = {}
        for entry in catalog:
            if entry.cloud == CLOUD and entry.asset is not None:
                self._by_asset.setdefault(entry.asset.type, []).append(entry)

    def called(self, asset_type: str) -> Sequence[ResourceType]:
        """The types that the search calls so."""
        return self._by_asset.get(asset_type, ())

    def parts(self, entry: ResourceType, name: str) -> Mapping[str, str] | None:
        """What a name of the type tells; None for a name of another form."""
        return entry.asset.parts(name) if entry.asset else None

    def are_others(self, entry: ResourceType, name: str) -> bool:
        """Whether a name is that of another type, which the search calls alike."""
        if entry.asset is not None and entry.asset.is_other(name):
            return True
        alike = self._by_asset.get(entry.asset.type, ()) if entry.asset else ()
        return any(other.asset is not None and other.asset.parts(name) is not None for other in alike)


class Gathered:
    """The objects of one type in one account, as they come. What has no id, or no name that is known, is a gap."""

    def __init__(self, entry: ResourceType, entries: Entries, scope: Scope) -> None:
        self.entry = entry
        self.scope = scope
        self._entries = entries
        self._objects: list[CloudObject] = []
        self._soft_deleted: list[CloudObject] = []
        self._items = 0
        self._nameless = 0
        self._strange = 0

    def add(self, result: Mapping[str, Any], project: Container | None = None, account: str | None = None) -> None:
        """One result of a search, in this project; `account` is its own where that is not the whole listing's."""
        name = str(result.get("name", ""))
        parts = self._entries.parts(self.entry, name)
        item = {**result, "at": _with_id(parts or {}, project)}
        if project is not None and not project.doubt:
            item["projectId"] = project.id
        if self.entry.only and not holds(self.entry.only, item):
            return
        if parts is None:
            self._items += 1
            self._strange += not self._entries.are_others(self.entry, name)
            return
        because = project.because if project is not None and not _is_container(self.entry) else None
        self._keep(item, {}, account, because)

    def add_listed(
        self,
        result: object,
        project: Container | None,
        parent: CloudObject | None = None,
        account: str | None = None,
    ) -> None:
        """One item of a service's own list: below another object, or right in a project, organization or folder."""
        more = {"projectId": project.id} if project is not None and not project.doubt else {}
        item = {**result, **more} if isinstance(result, dict) else result
        if not self.entry.only or holds(self.entry.only, item):
            self._keep(item, as_parent(parent) if parent else {}, account, project.because if project else None)

    def listing(self, failures: Sequence[str] = (), *, exhaustive: bool = True, asked: bool = True) -> Listing:
        """What was gathered, and why it is not all."""
        told = list(failures)
        if self._nameless:
            told.append(f"{self._nameless} of {self._items} objects came without an id")
        if self._strange:
            told.append(f"{self._strange} of {self._items} objects have names of a form that is not known")
        return Listing(
            self.entry.type,
            self.scope,
            tuple(self._objects),
            gap_of(self.entry.type, self.scope, "; ".join(dict.fromkeys(told))),
            tuple(self._soft_deleted),
            exhaustive,
            asked,
        )

    def _keep(self, item: object, parent: Mapping[str, str], account: str | None, because: str | None) -> None:
        self._items += 1
        if self.entry.gone and holds(self.entry.gone, item):
            waits = bool(self.entry.soft_deleted) and holds(self.entry.soft_deleted or "", item)
            if not waits:
                return
        scope = replace(self.scope, account=account) if account else self.scope
        found = to_object(self.entry, item, scope, _NO_PARTITION, parent)
        if found is None:
            self._nameless += 1
            return
        if because and not found.ignored_because:
            found = replace(found, ignored_because=because)
        (self._soft_deleted if found.soft_deleted else self._objects).append(found)


def gap_of(resource_type: str, scope: Scope, reason: str) -> Gap | None:
    """The gap of a listing; none without a reason."""
    return Gap(f"{scope} {resource_type}", reason) if reason else None


def scope_in(account: str | None, provider_key: str) -> Scope:
    """Where objects of this cloud are: every search answers for all locations."""
    return Scope(CLOUD, account, GLOBAL, provider_key)


def _with_id(parts: Mapping[str, str], project: Container | None) -> Mapping[str, str]:
    """The parts of a name, with the project's id where the name has its number."""
    named = parts.get("project")
    if named is None or project is None or project.doubt or not named.isdecimal():
        return parts
    return {**parts, "project": project.id}


def _is_container(entry: ResourceType) -> bool:
    return entry.asset is not None and entry.asset.type in (PROJECT_ASSET, FOLDER_ASSET)
