"""Turns an item of a list answer into a `CloudObject`, by the catalogue's expressions. Knows no SDK, only JMESPath."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from types import MappingProxyType
from typing import cast
from zlib import crc32

import jmespath  # type: ignore[import-untyped]
from jmespath import exceptions, functions

from tfguard.catalog.types import JOINT, PLACEHOLDER, DetailCall, ResourceType, TagRule
from tfguard.model.inventory import ANY_VALUE, CloudObject, MadeBy, Scope

_REST = "*"
"""Ends the name of a tag of which what follows is meant, and not the value."""

_MILLISECONDS = 1e11
"""Above it, a number of seconds since 1970 would be after the year 5000: it counts milliseconds."""


class _Functions(functions.Functions):  # type: ignore[misc]
    """JMESPath's functions, and those that names need."""

    @functions.signature({"types": ["string"]}, {"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_last_segment(self, text: str, separator: str) -> str:
        return text.rstrip(separator).rsplit(separator, 1)[-1]

    @functions.signature({"types": ["string"]}, {"types": ["string"]}, {"types": ["number"]})  # type: ignore[untyped-decorator]
    def _func_segment(self, text: str, separator: str, number: float) -> str | None:
        parts = text.split(separator)
        position = int(number)
        return (parts[position] or None) if -len(parts) <= position < len(parts) else None

    @functions.signature({"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_crc32(self, text: str) -> int:
        return crc32(text.encode())

    @functions.signature({"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_lower(self, text: str) -> str:
        return text.lower()

    @functions.signature({"types": ["string"]}, {"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_before_last(self, text: str, separator: str) -> str | None:
        return text.rpartition(separator)[0] or None

    @functions.signature({"types": ["string"]}, {"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_after(self, text: str, start: str) -> str | None:
        return _after(text, start)

    @functions.signature({"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_domain_name(self, text: str) -> str:
        """As a state writes it: small, without the dot at the end, and `*` instead of Route 53's `\\052`."""
        return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text).rstrip(".").lower()


_OCTAL = re.compile(r"\\([0-3][0-7]{2})")
_PLAIN_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_ON_A_PATH = re.compile(rf"(after|starts_with)\(({_PLAIN_PATH.pattern}|@), '([^'\\\\]*)'\)")
_OPTIONS = jmespath.Options(custom_functions=_Functions())


@cache
def _compiled(expression: str) -> Callable[[object], object]:
    if _PLAIN_PATH.fullmatch(expression):  # most are, and a list answer can have a hundred thousand items
        names = expression.split(".")
        return lambda item: _at(item, names)
    if match := _ON_A_PATH.fullmatch(expression):  # and so are most rules
        path, start = [] if match[2] == "@" else match[2].split("."), match[4]
        ask: Callable[[str, str], object] = _after if match[1] == "after" else str.startswith
        return lambda item: ask(text, start) if isinstance(text := _at(item, path), str) else None
    parsed = jmespath.compile(expression)
    return lambda item: parsed.search(item, options=_OPTIONS)


def _after(text: str, start: str) -> str | None:
    """What follows `start`, up to the next `/`; None where the text starts otherwise."""
    return text.removeprefix(start).partition("/")[0] or None if text.startswith(start) else None


def _at(item: object, names: Sequence[str]) -> object:
    for name in names:
        item = item.get(name) if isinstance(item, dict) else None
    return item


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


def as_parent(found: CloudObject) -> Mapping[str, str]:
    """What the templates of an object that was listed for this one may name: `parent_id`, `parent_name`, ..."""
    own = {"id": found.id, "import_id": found.import_id, "name": found.name, "arn": found.arn, **found.identity}
    return {f"parent_{key}": value for key, value in own.items() if value is not None}


def to_object(
    entry: ResourceType, item: object, scope: Scope, partition: str, parent: Mapping[str, str] = MappingProxyType({})
) -> CloudObject | None:
    """The object that an item describes, or None for an item without an id.

    `parent` is what `as_parent` gives of the object for which the item was listed.
    """
    reader = _ItemReader(entry, item, scope, partition, parent)
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
        created_at=_created(entry, item),
        parent=reader.identity.get(entry.parent.attribute) if entry.parent else None,
        stateful=entry.stateful,
        ignored_because=next((rule.reason for rule in entry.ignore if holds(rule.when, item)), None),
        owner=reader.value(entry.owner),
        made_by=tuple(_makers(entry, item, reader)),
    )
    if entry.soft_deleted and holds(entry.soft_deleted, item):
        end = to_time(look_up(entry.gone_after, item)) if entry.gone_after else None
        found = replace(found, soft_deleted=True, gone_after=end)
    return with_tags(entry, found, look_up(entry.tags, item) if entry.tags else None)


def _created(entry: ResourceType, item: object) -> datetime | None:
    """When the object was made; a time that may mean something else is none, or others would take it for evidence."""
    return to_time(look_up(entry.created, item)) if entry.created and "created" not in entry.unverified else None


def _makers(entry: ResourceType, item: object, reader: _ItemReader) -> Iterator[MadeBy]:
    for rule in entry.made_by:
        value = reader.value(rule.value) if rule.when is None or holds(rule.when, item) else None
        if value is not None:
            held = tuple(told for one in rule.held if (told := reader.value(one)) is not None)
            yield MadeBy(rule.type, rule.parent_attribute, value, rule.reason, rule.certain, rule.when_ignored, held)


def with_detail(entry: ResourceType, found: CloudObject, call: DetailCall, answer: object) -> CloudObject:
    """The object with what the answer to one of its detail calls adds."""
    if call.created:
        found = replace(found, created_at=to_time(look_up(call.created, answer)) or found.created_at)
    if call.gone_after and found.soft_deleted:
        found = replace(found, gone_after=to_time(look_up(call.gone_after, answer)) or found.gone_after)
    return with_tags(entry, found, look_up(call.tags, answer)) if call.tags else found


def with_tags(entry: ResourceType, found: CloudObject, answered: object) -> CloudObject:
    """The object with tags in whatever form they were answered, and with what these tell of its maker."""
    tags = to_tags(answered)
    if not tags:
        return found
    # An object also carries the tags that it puts on what it makes: nothing is its own maker.
    rules = [
        rule
        for start, rule in entry.ignore_tags.items()
        if rule.type != entry.type and any(tag.startswith(start) for tag in tags)
    ]
    because = next((rule.reason for rule in rules if rule.type is None), None)
    makers = [
        MadeBy(rule.type, rule.parent_attribute, _maker_in(tags, rule), rule.reason) for rule in rules if rule.type
    ]
    return replace(
        found,
        tags=tags,
        ignored_because=found.ignored_because or because,
        made_by=tuple(dict.fromkeys([*_not_named_better(found.made_by, makers), *makers])),
    )


def _not_named_better(others: Iterable[MadeBy], makers: Sequence[MadeBy]) -> Iterator[MadeBy]:
    """The makers that are not told by name alone where a tag names the one of that type: then it is no other."""
    named = {maker.type for maker in makers if not maker.value.startswith(ANY_VALUE)}
    return (one for one in others if one.type not in named or not one.value.startswith(ANY_VALUE))


def _maker_in(tags: Mapping[str, str], rule: TagRule) -> str:
    """What names the maker, by the first of the rule's tags that is there."""
    for name in rule.named_by:
        if not name.endswith(_REST):
            if value := tags.get(name):
                return value
        elif rest := next((tag.removeprefix(name[:-1]) for tag in tags if tag.startswith(name[:-1])), None):
            return rest
    return ANY_VALUE


def to_tags(answered: object) -> Mapping[str, str]:
    """Tags from a mapping, or from a list of Key/Value, key/value or TagKey/TagValue."""
    if isinstance(answered, dict):
        return {str(key): str(value) for key, value in answered.items()}
    if isinstance(answered, list):
        return dict(_pair(tag) for tag in answered if isinstance(tag, dict))
    return {}


def to_time(answered: object) -> datetime | None:
    """A time in UTC from a datetime, from seconds or milliseconds since 1970 as number or text, or from ISO 8601."""
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
    try:
        seconds = float(answered)
    except ValueError:
        written = datetime.fromisoformat(str(answered))
        return (written if written.tzinfo else written.replace(tzinfo=UTC)).astimezone(UTC)
    return datetime.fromtimestamp(seconds / 1000 if seconds > _MILLISECONDS else seconds, UTC)


def _pair(tag: Mapping[str, object]) -> tuple[str, str]:
    lowered = {key.lower().removeprefix("tag"): value for key, value in tag.items()}
    return str(lowered.get("key", "")), str(lowered.get("value", ""))


class _ItemReader:
    """One item, with the values of its keys and traits worked out."""

    def __init__(
        self, entry: ResourceType, item: object, scope: Scope, partition: str, parent: Mapping[str, str]
    ) -> None:
        self._item = item
        where = {"partition": partition, "region": scope.region, "account": scope.account, **parent}
        self._known = {name: value for name, value in where.items() if value is not None}
        named = {**entry.keys, **entry.traits, **entry.handles}
        plain = {name: value for name, value in named.items() if JOINT not in name}
        single = dict(self._identity(plain))
        self.identity: Mapping[str, str] = {**single, **entry.joined(single)}

    def value(self, expression: str | None) -> str | None:
        """What a JMESPath or a template gives for this item."""
        if expression is None:
            return None
        if PLACEHOLDER.search(expression):
            return self._filled(expression)
        return _scalar(look_up(expression, self._item))

    def _identity(self, expressions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """What the paths give, and then the templates, which are made of the others and of one another."""
        templates = {name for name, expression in expressions.items() if PLACEHOLDER.search(expression)}
        yield from self._worked_out(expressions, [name for name in expressions if name not in templates])
        while templates:
            done = list(self._worked_out(expressions, sorted(templates)))
            yield from done
            if not done:
                return
            templates -= {name for name, _ in done}

    def _worked_out(self, expressions: Mapping[str, str], names: Iterable[str]) -> Iterator[tuple[str, str]]:
        for name in names:
            value = self.value(expressions[name])
            if value is not None:
                self._known[name] = value
                yield name, value

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
