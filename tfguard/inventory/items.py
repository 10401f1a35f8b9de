"""Turns an item of a list answer into a `CloudObject`, by the catalogue's expressions. Knows no SDK, only JMESPath."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import cast

import jmespath  # type: ignore[import-untyped]
from jmespath import exceptions, functions

from tfguard.catalog.loader import PLACEHOLDER
from tfguard.catalog.types import DetailCall, ResourceType
from tfguard.model.inventory import CloudObject, Scope

_MILLISECONDS = 1e11
"""Above it, a number of seconds since 1970 would be after the year 5000: it counts milliseconds."""


class _Functions(functions.Functions):  # type: ignore[misc]
    """JMESPath's functions, and the one that names need."""

    @functions.signature({"types": ["string"]}, {"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_last_segment(self, text: str, separator: str) -> str:
        return text.rstrip(separator).rsplit(separator, 1)[-1]


_OPTIONS = jmespath.Options(custom_functions=_Functions())


@cache
def _compiled(expression: str) -> Callable[[object], object]:
    parsed = jmespath.compile(expression)
    return lambda item: parsed.search(item, options=_OPTIONS)


def look_up(expression: str, item: object) -> object:
    """What the item has at a JMESPath; None also where the item has not the form that the expression expects."""
    try:
        return _compiled(expression)(item)
    except exceptions.JMESPathTypeError:
        return None


def holds(expression: str, item: object) -> bool:
    """Whether a JMESPath is true for the item, as JMESPath means it: nothing, false and empty are not."""
    found = look_up(expression, item)
    return found is not None and found is not False and found not in ("", [], {})


def fill(template: object, values: Mapping[str, str]) -> object:
    """The template with every `{name}` replaced, also in lists and mappings. `KeyError` for a name without a value."""
    match template:
        case str():
            return PLACEHOLDER.sub(lambda match: values[match[1]], template)
        case dict():
            return {key: fill(inner, values) for key, inner in template.items()}
        case list():
            return [fill(inner, values) for inner in template]
        case _:
            return template


def placeholders(found: CloudObject, partition: str) -> Mapping[str, str]:
    """What the templates of a call for one object may name."""
    own = {"id": found.id, "import_id": found.import_id, "name": found.name, "arn": found.arn, "account": found.account}
    known = {key: value for key, value in own.items() if value is not None}
    return {**known, "partition": partition, "region": found.region, **found.identity}


def to_object(entry: ResourceType, item: object, scope: Scope, partition: str) -> CloudObject | None:
    """The object that an item describes, or None for an item without an id."""
    reader = _ItemReader(entry, item, scope, partition)
    object_id, import_id = reader.value(entry.id), reader.value(entry.import_id)
    if object_id is None or import_id is None:
        return None
    found = CloudObject(
        cloud=entry.cloud,
        account=scope.account,
        region=scope.region,
        type=entry.type,
        id=object_id,
        import_id=import_id,
        identity=reader.identity,
        arn=reader.value(entry.arn),
        name=reader.value(entry.name),
        created_at=to_time(look_up(entry.created, item)) if entry.created else None,
        parent=reader.identity.get(entry.parent.attribute) if entry.parent else None,
        stateful=entry.stateful,
        ignored_because=next((rule.reason for rule in entry.ignore if holds(rule.when, item)), None),
    )
    return with_tags(entry, found, look_up(entry.tags, item) if entry.tags else None)


def with_detail(entry: ResourceType, found: CloudObject, call: DetailCall, answer: object) -> CloudObject:
    """The object with what the answer to one of its detail calls adds."""
    if call.created:
        found = replace(found, created_at=to_time(look_up(call.created, answer)) or found.created_at)
    return with_tags(entry, found, look_up(call.tags, answer)) if call.tags else found


def with_tags(entry: ResourceType, found: CloudObject, answered: object) -> CloudObject:
    """The object with tags in whatever form they were answered, ignored if a tag tells that a service made it."""
    tags = to_tags(answered)
    if not tags:
        return found
    made_by = (reason for start, reason in entry.ignore_tags.items() if any(tag.startswith(start) for tag in tags))
    return replace(found, tags=tags, ignored_because=found.ignored_because or next(made_by, None))


def to_tags(answered: object) -> Mapping[str, str]:
    """Tags from a mapping, or from a list of Key/Value, key/value or TagKey/TagValue."""
    if isinstance(answered, dict):
        return {str(key): str(value) for key, value in answered.items()}
    if isinstance(answered, list):
        return dict(_pair(tag) for tag in answered if isinstance(tag, dict))
    return {}


def to_time(answered: object) -> datetime | None:
    """A time in UTC from a datetime, or from seconds or milliseconds since 1970 as number or text."""
    match answered:
        case bool():
            return None
        case datetime() | int() | float() | str():
            try:
                return _time_of(answered)
            except (ValueError, OverflowError, OSError):
                return None
        case _:
            return None


def _time_of(answered: datetime | int | float | str) -> datetime:
    if isinstance(answered, datetime):
        return answered.astimezone(UTC)
    seconds = float(answered)
    return datetime.fromtimestamp(seconds / 1000 if seconds > _MILLISECONDS else seconds, UTC)


def _pair(tag: Mapping[str, object]) -> tuple[str, str]:
    lowered = {key.lower().removeprefix("tag"): value for key, value in tag.items()}
    return str(lowered.get("key", "")), str(lowered.get("value", ""))


class _ItemReader:
    """One item, with the values of its keys and traits worked out."""

    def __init__(self, entry: ResourceType, item: object, scope: Scope, partition: str) -> None:
        self._item = item
        where = {"partition": partition, "region": scope.region, "account": scope.account}
        self._known = {name: value for name, value in where.items() if value is not None}
        self.identity: Mapping[str, str] = dict(self._identity({**entry.keys, **entry.traits}))

    def value(self, expression: str | None) -> str | None:
        """What a JMESPath or a template gives for this item."""
        if expression is None:
            return None
        if PLACEHOLDER.search(expression):
            return self._filled(expression)
        return _scalar(look_up(expression, self._item))

    def _identity(self, expressions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        # Templates last: they are made of the others.
        for attribute, expression in sorted(expressions.items(), key=lambda pair: "{" in pair[1]):
            value = self.value(expression)
            if value is not None:
                self._known[attribute] = value
                yield attribute, value

    def _filled(self, template: str) -> str | None:
        try:
            return cast(str, fill(template, self._known))
        except KeyError:
            return None


def _scalar(value: object) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value) or None
        case _:
            return None
