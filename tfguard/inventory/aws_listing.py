"""List and detail calls of AWS. Each service's own list is the source: the tagging API misses objects, and lags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

from tfguard.catalog.loader import Catalog
from tfguard.catalog.types import DetailCall, EachCall, ListCall, ResourceType
from tfguard.inventory import aws_settings as settings_of
from tfguard.inventory.aws_access import (
    CALL_ERRORS,
    AwsAccess,
    AwsAccesses,
    Client,
    UnreadableAnswerError,
    answered,
    is_not_found,
    refusal,
)
from tfguard.inventory.items import fill, holds, look_up, placeholders, to_object, with_detail
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject, Gap, Listing, Scope
from tfguard.model.plan import ProviderConfig

_PARALLEL_CALLS = 8
_MOST_PAGES = 10_000


@dataclass(frozen=True)
class _Place:
    """One client, and what its answers are about. `doubt` is why the account is not known although it should be."""

    client: Client
    scope: Scope
    partition: str
    doubt: str | None = None


class _NoPlaceError(Exception):
    """A place that cannot be asked, and why."""

    def __init__(self, scope: Scope, reason: str) -> None:
        super().__init__(reason)
        self.scope = scope
        self.reason = reason


class AwsLister:
    """Makes the calls for `AwsInventory`, which has checked that the settings say whom to ask."""

    def __init__(self, catalog: Catalog) -> None:
        self._accesses = AwsAccesses(catalog)

    def list(self, entry: ResourceType, provider: ProviderConfig, region: str | None) -> Listing:
        """Every object of the type; all pages, or a gap."""
        try:
            place = self._place(entry, provider, region)
        except _NoPlaceError as problem:
            return _listing(entry, problem.scope, (), problem.reason)
        items, failure = _list_items(entry, place)
        objects, nameless = _objects(entry, items, place)
        failures = "; ".join(dict.fromkeys(reason for reason in (place.doubt, failure, nameless) if reason))
        return _listing(entry, place.scope, objects, failures)

    def place(self, entry: ResourceType, provider: ProviderConfig, region: str | None) -> Scope | None:
        """Where `list` would look; None where that cannot be told."""
        try:
            return self._place(entry, provider, region).scope
        except _NoPlaceError:
            return None

    def detail(
        self, entry: ResourceType, found: CloudObject, provider: ProviderConfig, region: str | None
    ) -> CloudObject:
        """The object with what its detail calls add. A call that is refused adds nothing."""
        try:
            place = self._place(entry, provider, region)
        except _NoPlaceError:
            return found
        if place.scope.account != found.account:
            return found
        for call in entry.details:
            if _adds_something(call, found):
                found = _asked(entry, found, call, place)
        return found

    def _place(self, entry: ResourceType, provider: ProviderConfig, region: str | None) -> _Place:
        scope = Scope(entry.cloud, None, region or provider.settings.get("region") or UNKNOWN_REGION, provider.key)
        try:
            return _find_place(entry, provider, self._accesses.of(provider.settings), region)
        except CALL_ERRORS as error:
            raise _NoPlaceError(scope, refusal(error, f"preparing to ask {entry.service}")) from error


def _find_place(entry: ResourceType, provider: ProviderConfig, access: AwsAccess, region: str | None) -> _Place:
    near = region or access.region() or (settings_of.GLOBAL_REGIONS["aws"] if entry.is_global else None)
    if near is None:
        nowhere = Scope(entry.cloud, None, UNKNOWN_REGION, provider.key)
        raise _NoPlaceError(nowhere, settings_of.no_region(provider.key))
    partition = access.partition(near)
    called = settings_of.GLOBAL_REGIONS.get(partition, near) if entry.is_global else near
    unowned = Scope(entry.cloud, None, "global" if entry.is_global else near, provider.key)
    client = access.client(entry.service, called)
    if not access.asks_for_account():
        return _Place(client, unowned, partition)
    try:
        caller = access.caller(near)
    except CALL_ERRORS as error:
        return _Place(client, unowned, partition, doubt=refusal(error, "GetCallerIdentity"))
    scope = Scope(entry.cloud, caller.account, unowned.region, provider.key)
    wrong = settings_of.account_is_wrong(provider.settings, caller.account)
    if wrong:
        raise _NoPlaceError(scope, wrong)
    return _Place(client, scope, caller.partition)


def _listing(entry: ResourceType, scope: Scope, objects: tuple[CloudObject, ...], failure: str) -> Listing:
    gap = Gap(f"{scope} {entry.type}", failure) if failure else None
    return Listing(entry.type, scope, objects, gap)


def _objects(entry: ResourceType, items: list[object], place: _Place) -> tuple[tuple[CloudObject, ...], str | None]:
    """The objects that the items describe, and why they are not all: what has no id is something all the same."""
    found: list[CloudObject] = []
    nameless = 0
    for item in items:
        if entry.gone and holds(entry.gone, item):
            continue
        one = to_object(entry, item, place.scope, place.partition)
        if one is None:
            nameless += 1
        else:
            found.append(one)
    return tuple(found), f"{nameless} of {len(items)} objects came without an id" if nameless else None


def _list_items(entry: ResourceType, place: _Place) -> tuple[list[object], str | None]:
    """The items of all pages, and why they are not all; what was seen before a page failed is kept."""
    call = entry.list
    if call is None:
        return [], "no call lists this type"
    items: list[object] = []
    failure = None
    try:
        for page in _pages(call, place.client):
            items.extend(_items_in(call, page))
    except CALL_ERRORS as error:
        failure = refusal(error, _api_name(place.client, call.operation))
    if call.each is None:
        return items, failure
    described, unclear = _describe_each(entry, call.each, items, place)
    return described, failure or unclear


def _pages(call: ListCall, client: Client) -> Iterator[object]:
    if not client.can_paginate(call.operation):
        yield getattr(client, call.operation)(**call.arguments)
        return
    size = {"PageSize": call.page_size} if call.page_size else {}
    pages = client.get_paginator(call.operation).paginate(**call.arguments, PaginationConfig=size)
    seen: set[int] = set()
    for number, page in enumerate(pages):
        # The SDK notices a token that comes twice in a row, and none that comes back later.
        content = hash(repr(page) if not isinstance(page, dict) else repr(_without_metadata(page)))
        if content in seen or number >= _MOST_PAGES:
            raise UnreadableAnswerError(f"{call.operation} has pages without an end")
        seen.add(content)
        yield page


def _without_metadata(page: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in page.items() if name != "ResponseMetadata"}


def _items_in(call: ListCall, page: object) -> list[object]:
    """The items of a page. A service may leave the list out when it is empty, but then names its request: without
    either, something else answered (a proxy's sign-in page), and nothing is known about what exists."""
    outermost, *inner = call.result.removesuffix("[]").split("[].")
    found = _at(page, outermost)
    if found is None and holds("ResponseMetadata.RequestId", page):
        return []
    items = _checked(found, call)
    for name in inner:
        items = [item for holder in items for item in _checked(_at(holder, name), call)]
    return items


def _at(holder: object, path: str) -> object:
    for name in path.split("."):
        holder = holder.get(name) if isinstance(holder, dict) else None
    return holder


def _checked(found: object, call: ListCall) -> list[object]:
    """A list, and nothing else: what an expression cannot follow may hold anything."""
    if not isinstance(found, list):
        raise UnreadableAnswerError(call.operation)
    return found


class _Describer:
    """Asks about single items, from several threads, and stops asking when nobody answers."""

    def __init__(self, entry: ResourceType, call: EachCall, place: _Place) -> None:
        self._entry = entry
        self._call = call
        self._place = place
        self._api_name = _api_name(place.client, call.operation)
        self._silent = Event()
        self.failures: list[str] = []

    def __call__(self, item: object) -> object:
        """The item with what its own call tells; as it was when that failed; None when it is gone by now."""
        bare = to_object(self._entry, item, self._place.scope, self._place.partition)
        if bare is None:
            return item  # without an id nobody can ask about it; `_objects` tells that it is there
        if self._silent.is_set():
            return self._failed(item, f"not asked {self._api_name}")
        try:
            answer = _call(self._place, self._call.operation, self._call.arguments, bare)
            return _merged(item, look_up(self._call.result, answer))
        except KeyError as error:  # a template names what this item does not have
            return self._failed(item, f"no {error.args[0]} for {self._api_name}")
        except CALL_ERRORS as error:
            if is_not_found(error):
                return None
            if not answered(error):
                self._silent.set()
            return self._failed(item, refusal(error, self._api_name))

    def _failed(self, item: object, reason: str) -> object:
        self.failures.append(reason)
        return item


def _describe_each(
    entry: ResourceType, call: EachCall, items: list[object], place: _Place
) -> tuple[list[object], str | None]:
    describer = _Describer(entry, call, place)
    with ThreadPoolExecutor(_PARALLEL_CALLS) as pool:
        described = [item for item in pool.map(describer, items) if item is not None]
    failures = describer.failures
    return described, f"{failures[0]} ({len(failures)} of {len(items)} objects)" if failures else None


def _merged(item: object, more: object) -> object:
    if not isinstance(item, dict) or not isinstance(more, dict):
        raise UnreadableAnswerError("an answer about one item, without the item")
    return {**item, **more}


def _asked(entry: ResourceType, found: CloudObject, call: DetailCall, place: _Place) -> CloudObject:
    try:
        answer = _call(place, call.operation, call.arguments, found)
    except (*CALL_ERRORS, KeyError):  # KeyError: a template names what this object does not have
        return found
    return with_detail(entry, found, call, answer)


def _adds_something(call: DetailCall, found: CloudObject) -> bool:
    return bool((call.created and found.created_at is None) or (call.tags and not found.tags))


def _call(place: _Place, operation: str, arguments: Mapping[str, object], found: CloudObject) -> object:
    filled = fill(dict(arguments), placeholders(found, place.partition))
    return getattr(place.client, operation)(**_as_arguments(filled))


def _as_arguments(filled: object) -> dict[str, object]:
    return filled if isinstance(filled, dict) else {}


def _api_name(client: Client, operation: str) -> str:
    """The name that permissions and error texts use: `list_roles` is `ListRoles`."""
    return str(client.meta.method_to_api_mapping.get(operation, operation))
