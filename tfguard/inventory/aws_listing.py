"""List and detail calls of AWS. Each service's own list is the source: the tagging API misses objects, and lags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Event

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import DetailCall, EachCall, ListCall, PerParent, ResourceType
from tfguard.inventory.aws_access import (
    CALL_ERRORS,
    AwsAccesses,
    Client,
    answered,
    is_not_found,
    refusal,
)
from tfguard.inventory.aws_answers import UnreadableAnswerError, says_more
from tfguard.inventory.aws_places import NoPlaceError, Place, find_place
from tfguard.inventory.items import as_parent, fill, holds, look_up, placeholders, to_object, with_detail
from tfguard.model.inventory import CloudObject, Detail, Gap, Listing, Scope
from tfguard.model.plan import ProviderConfig

_PARALLEL_CALLS = 8
_MOST_PAGES = 10_000
_NO_PARENT: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of a list answer, and what is known of the parent for which it was listed."""

    found: object
    parent: Mapping[str, str]


class AwsLister:
    """Makes the calls for `AwsInventory`, which has checked that the settings say whom to ask."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._accesses = AwsAccesses(catalog)

    def list(self, entry: ResourceType, provider: ProviderConfig, region: str | None) -> Listing:
        """Every object of the type; all pages, or a gap."""
        return next(self.list_many([entry], provider, region))

    def list_many(
        self, entries: Iterable[ResourceType], provider: ProviderConfig, region: str | None
    ) -> Iterator[Listing]:
        """The listing of each type; one that others are listed by is asked for once."""
        done: dict[str, Listing] = {}
        for entry in entries:
            yield self._list(entry, provider, region, done)

    def _list(
        self, entry: ResourceType, provider: ProviderConfig, region: str | None, done: dict[str, Listing]
    ) -> Listing:
        if entry.type not in done:
            done[entry.type] = self._list_anew(entry, provider, region, done)
        return done[entry.type]

    def _list_anew(
        self, entry: ResourceType, provider: ProviderConfig, region: str | None, done: dict[str, Listing]
    ) -> Listing:
        try:
            place = self._place(entry, provider, region)
        except NoPlaceError as problem:
            return Listing(entry.type, problem.scope, gap=_gap(entry, problem.scope, problem.reason), asked=False)
        parents: Listing | None = None
        if entry.list and entry.list.per:
            parent = self._catalog.get(entry.list.per.type)
            parents = self._list(parent, provider, region, done) if parent else None
        return _listing(entry, place, parents)

    def place(self, entry: ResourceType, provider: ProviderConfig, region: str | None) -> Scope | None:
        """Where `list` would look; None where that cannot be told."""
        try:
            return self._place(entry, provider, region).scope
        except NoPlaceError:
            return None

    def detail(self, entry: ResourceType, found: CloudObject, provider: ProviderConfig, region: str | None) -> Detail:
        """The object with what its detail calls add. One that is refused adds nothing, and is a gap."""
        if not any(_adds_something(call, found) for call in entry.details):
            return Detail(found)
        try:
            place = self._place(entry, provider, region)
        except NoPlaceError as problem:
            return Detail(found, _gap(entry, problem.scope, problem.reason))
        if place.scope.account != found.account:
            reason = f"the credentials are those of account {place.scope.account} now"
            return Detail(found, _gap(entry, replace(place.scope, account=found.account), reason))
        failures: list[str] = []
        for call in entry.details:
            if _adds_something(call, found):
                found = _asked(entry, found, call, place, failures)
        return Detail(found, _gap(entry, place.scope, "; ".join(dict.fromkeys(failures))))

    def _place(self, entry: ResourceType, provider: ProviderConfig, region: str | None) -> Place:
        return find_place(entry, provider, self._accesses, region)


def _gap(entry: ResourceType, scope: Scope, failure: str) -> Gap | None:
    return Gap(f"{scope} {entry.type}", failure) if failure else None


def _listing(entry: ResourceType, place: Place, parents: Listing | None) -> Listing:
    """The objects that exist. Of what was answered only they are kept, page by page: there may be many.

    What has no id is something all the same: a gap.
    """
    objects: list[CloudObject] = []
    soft_deleted: list[CloudObject] = []
    failures = [place.doubt] if place.doubt else []
    items = nameless = 0
    for item in _items(entry, place, parents, failures):
        items += 1
        waits = bool(entry.soft_deleted) and holds(entry.soft_deleted or "", item.found)
        if not waits and entry.gone and holds(entry.gone, item.found):
            continue
        if entry.only and not holds(entry.only, item.found):
            continue
        one = _object(entry, item, place)
        if one is None:
            nameless += 1
        else:
            (soft_deleted if one.soft_deleted else objects).append(one)
    if nameless:
        failures.append(f"{nameless} of {items} objects came without an id")
    gap = _gap(entry, place.scope, "; ".join(dict.fromkeys(failures)))
    return Listing(entry.type, place.scope, tuple(objects), gap, tuple(soft_deleted))


def _object(entry: ResourceType, item: _Item, place: Place) -> CloudObject | None:
    return to_object(entry, item.found, place.scope, place.partition, item.parent)


def _items(entry: ResourceType, place: Place, parents: Listing | None, failures: list[str]) -> Iterator[_Item]:
    """The items of all pages as they come, until one fails; `failures` gets why they are not all."""
    call = entry.list
    if call is None:
        failures.append("no call lists this type")
        return
    pages = (
        _pages_per_parent(call, call.per, place, parents, failures) if call.per else _all_pages(call, place, failures)
    )
    if call.each is None:
        for page in pages:
            yield from page
        return
    describer, asked = _Describer(entry, call.each, place), 0
    with ThreadPoolExecutor(_PARALLEL_CALLS) as pool:
        for page in pages:
            asked += len(page)
            yield from (item for item in pool.map(describer, page) if item is not None)
    if describer.failures:
        failures.append(f"{describer.failures[0]} ({len(describer.failures)} of {asked} objects)")


def _all_pages(call: ListCall, place: Place, failures: list[str]) -> Iterator[list[_Item]]:
    """The pages of a list that is asked for once, and once more with other arguments where the entry says so."""
    further = (more.arguments for more in call.also if more.region == place.scope.region)
    where = {"partition": place.partition, "account": place.scope.account, "region": place.scope.region}
    known = {name: value for name, value in where.items() if value is not None}
    for more in ({}, *further):
        try:
            arguments = _as_arguments(fill({**call.arguments, **more}, known))
            for page in _pages(call, arguments, place.client):
                yield [_Item(found, _NO_PARENT) for found in _items_in(call, page)]
        except KeyError as error:
            failures.append(f"no {error.args[0]} for {_api_name(place.client, call.operation)}")
        except CALL_ERRORS as error:
            failures.append(refusal(error, _api_name(place.client, call.operation)))


def _pages_per_parent(
    call: ListCall, per: PerParent, place: Place, parents: Listing | None, failures: list[str]
) -> Iterator[list[_Item]]:
    """The items of each parent. An incomplete list of the parents makes this one incomplete too."""
    if parents is None:
        failures.append(f"{per.type} is not listed")
        return
    asked = [found for found in parents.objects if not (per.only_own and found.ignored_because)]
    refused: list[str] = []
    with ThreadPoolExecutor(_PARALLEL_CALLS) as pool:
        for items, failure in pool.map(_ParentAsker(call, per, place), asked):
            refused += [failure] if failure else []
            yield items
    if refused:
        failures.append(f"{refused[0]} ({len(refused)} of {len(asked)} {per.type})")
    if parents.gap:
        failures.append(f"{per.type}: {parents.gap.reason}")


class _ParentAsker:
    """Lists what belongs to single parents, from several threads, and stops asking when nobody answers."""

    def __init__(self, call: ListCall, per: PerParent, place: Place) -> None:
        self._call = call
        self._per = per
        self._place = place
        self._api_name = _api_name(place.client, call.operation)
        self._silent = Event()

    def __call__(self, parent: CloudObject) -> tuple[list[_Item], str | None]:
        """The items of one parent, none for one that is gone by now, and why they are not all."""
        if self._silent.is_set():
            return [], f"not asked {self._api_name}"
        items: list[_Item] = []
        try:
            filled = fill({**self._call.arguments, **self._per.arguments}, placeholders(parent, self._place.partition))
            for page in _pages(self._call, _as_arguments(filled), self._place.client):
                items.extend(_Item(found, as_parent(parent)) for found in _items_in(self._call, page))
        except KeyError as error:
            return items, f"no {error.args[0]} for {self._api_name}"
        except CALL_ERRORS as error:
            if is_not_found(error):
                return items, None
            if not answered(error):
                self._silent.set()
            return items, refusal(error, self._api_name)
        return items, None


def _pages(call: ListCall, arguments: Mapping[str, object], client: Client) -> Iterator[object]:
    if client.can_paginate(call.operation):
        size = {"PageSize": call.page_size} if call.page_size else {}
        pages = client.get_paginator(call.operation).paginate(**arguments, PaginationConfig=size)
    else:
        pages = _pages_by_token(call, arguments, client)
    seen: set[str] = set()
    page: object = None
    for number, page in enumerate(pages):
        # The SDK notices a token that comes twice in a row, and none that comes back later.
        end = _end_of(call, page)
        if end in seen or number >= _MOST_PAGES:
            raise UnreadableAnswerError(f"{call.operation} has pages without an end")
        seen.add(end)
        yield page
    if says_more(page, followed=bool(call.token) or client.can_paginate(call.operation)):
        raise UnreadableAnswerError(f"{call.operation} tells of more pages, and not where they are")


def _pages_by_token(call: ListCall, arguments: Mapping[str, object], client: Client) -> Iterator[object]:
    """The pages of an operation for which the SDK has no paginator."""
    ask = getattr(client, call.operation)
    page = ask(**arguments)
    yield page
    while call.token and (token := look_up(call.token.answer, page)):
        page = ask(**arguments, **{call.token.argument: token})
        yield page


def _end_of(call: ListCall, page: object) -> str:
    """What is nowhere else in the list: the token that leads on, wherever the answer has it, and the last item."""
    items = look_up(call.result.partition("[]")[0], page)
    last = items[-1] if isinstance(items, list) and items else None
    return repr((_without_lists(page), last))


def _without_lists(answer: object) -> object:
    if not isinstance(answer, dict):
        return None if isinstance(answer, list) else answer
    return {name: _without_lists(value) for name, value in answer.items() if name != "ResponseMetadata"}


def _items_in(call: ListCall, page: object) -> list[object]:
    """The items of a page. A service may leave the list out when it is empty, but then names its request: without
    either, something else answered (a proxy's sign-in page), and nothing is known about what exists."""
    outermost, *inner = call.result.removesuffix("[]").split("[].")
    found = look_up(outermost, page)
    if found is None and holds("ResponseMetadata.RequestId", page):
        return []
    items = _checked(found, call)
    for name in inner:
        items = [_with_fields_of(holder, item) for holder in items for item in _checked(look_up(name, holder), call)]
    return items


def _with_fields_of(holder: object, item: object) -> object:
    """The item with the plain fields of what holds it: a route tells by itself not which table it is in."""
    if not isinstance(holder, dict) or not isinstance(item, dict):
        return item
    return {**{name: value for name, value in holder.items() if not isinstance(value, list | dict)}, **item}


def _checked(found: object, call: ListCall) -> list[object]:
    """A list, and nothing else: what an expression cannot follow may hold anything."""
    if not isinstance(found, list):
        raise UnreadableAnswerError(call.operation)
    return found


class _Describer:
    """Asks about single items, from several threads, and stops asking when nobody answers."""

    def __init__(self, entry: ResourceType, call: EachCall, place: Place) -> None:
        self._entry = entry
        self._call = call
        self._place = place
        self._api_name = _api_name(place.client, call.operation)
        self._silent = Event()
        self.failures: list[str] = []

    def __call__(self, item: _Item) -> _Item | None:
        """The item with what its own call tells; as it was when that failed; None when it is gone by now."""
        if isinstance(item.found, str):
            item = replace(item, found={"Item": item.found})
        bare = _object(self._entry, item, self._place)
        if bare is None:
            return item  # without an id nobody can ask about it; `_listing` tells that it is there
        if self._silent.is_set():
            return self._failed(item, f"not asked {self._api_name}")
        try:
            answer = _call(self._place, self._call.operation, self._call.arguments, bare)
            return replace(item, found=_merged(item.found, look_up(self._call.result, answer)))
        except KeyError as error:  # a template names what this item does not have
            return self._failed(item, f"no {error.args[0]} for {self._api_name}")
        except CALL_ERRORS as error:
            if is_not_found(error):
                return None
            if not answered(error):
                self._silent.set()
            return self._failed(item, refusal(error, self._api_name))

    def _failed(self, item: _Item, reason: str) -> _Item:
        self.failures.append(reason)
        return item


def _merged(item: object, more: object) -> object:
    if not isinstance(item, dict) or not isinstance(more, dict):
        raise UnreadableAnswerError("an answer about one item, without the item")
    return {**item, **more}


def _asked(entry: ResourceType, found: CloudObject, call: DetailCall, place: Place, failures: list[str]) -> CloudObject:
    """The object with what one call adds; `failures` gets why that is nothing. That there is none is an answer."""
    try:
        answer = _call(place, call.operation, call.arguments, found)
    except KeyError as error:  # a template names what this object does not have
        failures.append(f"no {error.args[0]} for {_api_name(place.client, call.operation)}")
    except CALL_ERRORS as error:
        if not is_not_found(error):
            failures.append(refusal(error, _api_name(place.client, call.operation)))
    else:
        return with_detail(entry, found, call, answer)
    return found


def _adds_something(call: DetailCall, found: CloudObject) -> bool:
    ends = call.gone_after and found.soft_deleted and found.gone_after is None
    return bool((call.created and found.created_at is None) or (call.tags and not found.tags) or ends)


def _call(place: Place, operation: str, arguments: Mapping[str, object], found: CloudObject) -> object:
    filled = fill(dict(arguments), placeholders(found, place.partition))
    return getattr(place.client, operation)(**_as_arguments(filled))


def _as_arguments(filled: object) -> dict[str, object]:
    return filled if isinstance(filled, dict) else {}


def _api_name(client: Client, operation: str) -> str:
    """The name that permissions and error texts use: `list_roles` is `ListRoles`."""
    return str(client.meta.method_to_api_mapping.get(operation, operation))
