"""What the stream of `terraform query -json` says exists. Reads text only; who ran the engine is no matter here.

Built from the documented stream and the engine's source. Each `list` block starts (`list_start`), finds objects
(`list_resource_found`) and completes (`list_complete`, with their number). Only the block's limit is not told, and a
list that found as many may have been cut.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.patterns import types_matching
from tfguard.catalog.types import ResourceType
from tfguard.errors import InputError
from tfguard.inventory.exported import Export, Place, filled, plain, with_origin
from tfguard.inventory.items import look_up, with_tags
from tfguard.inventory.query_limits import DEFAULT_LIMIT
from tfguard.model.arn import arn_part, place_in
from tfguard.model.cloud import cloud_of_type
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject

_START, _FOUND, _COMPLETE = "list_start", "list_resource_found", "list_complete"
_LISTS = (_START, _FOUND, _COMPLETE)
_MODULE = "terraform.ui"
_MAJOR = "1."
# What says where a list looks, and leaves nothing out there.
_PLACES = ("region",)

Json = Mapping[str, object]


@dataclass(slots=True)
class _List:
    """One list block, or one instance of it, as far as the stream has told of it."""

    address: str
    type: str
    found: list[Json] = field(default_factory=list)
    filters: tuple[str, ...] = ()
    complete: bool = False
    total: int | None = None
    error: str = ""


@dataclass(slots=True)
class _Stream:
    """All lists of a stream by address, the errors that name none of them, and what could not be read."""

    lists: dict[str, _List] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)


def is_stream(text: str) -> bool:
    """Whether a text is an engine's event stream; a wrapper may have printed lines of its own before."""
    first = next((line for line in text.split("\n") if line.lstrip().startswith("{")), "")
    try:
        event = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(event, dict) and (event.get("@module") == _MODULE or event.get("type") in _LISTS)


def read_stream(
    text: str,
    name: str,
    catalog: Catalog,
    patterns: Sequence[str],
    limits: Mapping[str, int | None],
    failure: str = "",
) -> Export:
    """The objects in a stream, of the types that match `patterns`, with a gap for every list that may lack some.

    `limits` are those of the list blocks by address, as far as they are known; `failure` says how the engine ended
    where it did not end well. Raises `InputError` for a stream in which nothing was listed, and for one of another
    major version; `UsageError` for a pattern that no type of the catalogue matches.
    """
    wanted = types_matching(catalog, patterns)
    asked = {entry.type for entry in wanted}
    stream = _parse(text, name)
    told = [*stream.errors, *(one.error for one in stream.lists.values() if one.error)]
    shared = stream.errors[0] if stream.errors else "" if told else failure
    if not stream.lists:
        why = shared or "it has no `list_start` message"
        raise InputError(
            f"{name}: nothing was listed: {why}", "run `terraform query` in its folder, and correct what it says"
        )
    listings: dict[tuple[Place, str], list[CloudObject]] = defaultdict(list)
    gaps: dict[tuple[Place, str], str] = {}
    unknown: dict[str, int] = {}
    for one in stream.lists.values():
        entry = catalog.get(catalog.canonical(one.type))
        if entry is None:
            if any(fnmatchcase(one.type, pattern) for pattern in patterns):
                unknown[one.type] = unknown.get(one.type, 0) + len(one.found)
                stream.damage += [f"{one.address}: {one.error}"] if one.error else []
            continue
        if entry.type not in asked:
            continue
        objects = [found for told_of in one.found if (found := _object(entry, told_of)) is not None]
        problem = one.error or shared or _problem(entry, one, len(objects), limits)
        for place in dict.fromkeys(_place(found) for found in objects) or [(entry.cloud, None, UNKNOWN_REGION)]:
            listings[place, entry.type] += [found for found in objects if _place(found) == place]
            if problem:
                gaps.setdefault((place, entry.type), problem)
    return Export(
        name,
        {key: tuple(objects) for key, objects in listings.items()},
        tuple(entry.type for entry in wanted if entry.list is not None),
        {kind: count for kind, count in unknown.items() if count},
        gaps,
        tuple(dict.fromkeys([*stream.damage, *([shared] if shared else [])])),
        exhaustive=True,
    )


def _parse(text: str, name: str) -> _Stream:
    stream = _Stream()
    for number, event in _events(text, stream):
        kind = event.get("type")
        if kind == "version" and not str(event.get("ui", _MAJOR)).startswith(_MAJOR):
            raise InputError(f"{name}: its messages have version {event.get('ui')}", "upgrade tfguard")
        if kind == "diagnostic":
            _note_error(stream, event.get("diagnostic"))
        elif kind in _LISTS and not _note(stream, str(kind), event.get(str(kind))):
            stream.damage.append(f"line {number} is no {kind} message as it is known")
    return stream


def _events(text: str, stream: _Stream) -> Iterator[tuple[int, Json]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("{"):
            continue  # a wrapper's own words
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            stream.damage.append(f"line {number} is cut or not JSON")
            continue
        yield number, event


def _note(stream: _Stream, kind: str, message: object) -> bool:
    """Take in a message about a list; False for one that has another shape."""
    if not isinstance(message, dict):
        return False
    address, of_type = message.get("address"), message.get("resource_type")
    if not isinstance(address, str) or not isinstance(of_type, str):
        return False
    one = stream.lists.setdefault(address, _List(address, of_type))
    if kind == _START:
        settings = message.get("input_config")
        items = settings.items() if isinstance(settings, dict) else ()
        one.filters = tuple(key for key, value in items if key not in _PLACES and value not in (None, "", [], {}))
    elif kind == _FOUND:
        one.found.append(message)
    else:
        total = message.get("total")
        one.complete, one.total = True, total if isinstance(total, int) else None
    return True


def _note_error(stream: _Stream, diagnostic: object) -> None:
    if not isinstance(diagnostic, dict) or diagnostic.get("severity") != "error":
        return
    said = str(diagnostic.get("summary") or "an error without a summary")  # its detail may hold anything
    one = stream.lists.get(str(diagnostic.get("address")))
    if one is None:
        stream.errors.append(said)
    else:
        one.error = one.error or said


def _problem(entry: ResourceType, one: _List, readable: int, limits: Mapping[str, int | None]) -> str:
    """Why objects may be missing in a list; empty where none can."""
    found = len(one.found)
    if not one.complete:
        return f"{one.address} did not come to its end"
    if one.total is not None and one.total != found:
        return f"{one.address} found {one.total}, and {found} are in the stream"
    block = one.address.partition("[")[0]
    limit = limits.get(block, DEFAULT_LIMIT)
    if limit is None and found:
        return f"whether {one.address} was cut cannot be told: its limit is no plain number"
    if limit is not None and found >= limit:
        known = "its limit" if block in limits else "the limit of a list block that does not say another"
        return f"{one.address} found {found}, and may be cut: {known} is {limit}"
    if readable < found:
        return f"{found - readable} objects tell none of {', '.join(entry.keys)}; set include_resource = true"
    if entry.is_global and any(_identity(told).get("region") for told in one.found):
        return f"{one.address} lists one region, and objects of other regions are not in it"
    if one.filters:
        return f"{one.address} was asked for some only ({', '.join(one.filters)})"
    return ""


def _object(entry: ResourceType, told: Json) -> CloudObject | None:
    """The object that a message tells of; None where it names no key, so that no state could be seen to have it.

    Of the resource's attributes the catalogue's alone are read, since the stream marks no secrets.
    """
    own = _identity(told)
    resource = told.get("resource_object")
    values = {**(resource if isinstance(resource, dict) else {}), **own}
    known = {path: value for path in entry.attributes if (value := plain(look_up(path, values)))}
    untold = [path for path in entry.attributes if path.partition(".")[0] not in values]
    identity = {**known, **entry.joined(known, untold)}
    if not any(key in identity for key in entry.keys):
        return None
    arn = identity.get("arn") or plain(values.get("arn"))
    region = "global" if entry.is_global else plain(values.get("region")) or arn_part(arn, 3)
    first = next(identity[key] for key in entry.keys if key in identity)
    object_id = plain(values.get("id")) or filled(entry.id, identity) or first
    found = CloudObject(
        cloud=entry.cloud,
        account=plain(own.get("account_id")) or _account(entry, arn, values, identity),
        region=region or UNKNOWN_REGION,
        type=entry.type,
        id=object_id,
        import_id=filled(entry.import_id, {**identity, "id": object_id}) or object_id,
        identity=identity,
        arn=arn,
        name=_name(entry, identity) or plain(told.get("display_name")),
        parent=identity.get(entry.parent.attribute) if entry.parent else None,
        stateful=entry.stateful,
    )
    return with_tags(entry, with_origin(entry, found, {}), values.get("tags_all") or values.get("tags"))


def _account(entry: ResourceType, arn: str | None, values: Json, identity: Mapping[str, str]) -> str | None:
    """The account in the object's unique name, or the project that it names itself."""
    cloud = cloud_of_type(entry.type)
    unique = arn or (identity.get(entry.arn_key, "") if entry.arn_key else "")
    told = plain(values.get(cloud.own_place)) if cloud is not None and cloud.place_is_account else None
    return place_in(unique)[0] or told


def _name(entry: ResourceType, identity: Mapping[str, str]) -> str | None:
    """The key that is a name, under whatever name it goes: `bucket`, `identifier`, `function_name`."""
    named = (identity[key] for key, expression in entry.keys.items() if key in identity and expression == entry.name)
    return next(named, None) or identity.get("name")


def _identity(told: Json) -> Json:
    identity = told.get("identity")
    return identity if isinstance(identity, dict) else {}


def _place(found: CloudObject) -> Place:
    return found.cloud, found.account, found.region
