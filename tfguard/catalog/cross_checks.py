"""What an entry says of others: they must be there, with what it names of them. Looked at once all files are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tfguard.catalog.entries import EVERYWHERE, IN_ARGUMENTS, OF_THE_PARENT
from tfguard.catalog.types import HELD, PLACEHOLDER, PerParent, ResourceType, TagRule
from tfguard.catalog.yaml_node import ADVICE
from tfguard.errors import ConfigError

Wrong = Iterator[tuple[str, str]]
"""Keys, and what is wrong with each."""


def check_entry(file: str, entry: ResourceType, types: Mapping[str, ResourceType]) -> None:
    """Raise `ConfigError` where an entry names a type that is not in the catalogue, or what that one has not."""
    for check in (_list_for_each, _rules, _owned, _left_by_it, _detached_by_it):
        for key, what in check(entry, types):
            raise ConfigError(f"{file}: {entry.type}: {key}: {what}", ADVICE)


def check_tags(file: str, rules: Mapping[str, TagRule], types: Mapping[str, ResourceType]) -> None:
    """Raise `ConfigError` where a tag's rule names a type that is not in the catalogue, or what that one has not."""
    for start, rule in rules.items():
        if rule.type is not None:
            for key, what in _attribute(f"ignore_tags.{start}", rule.type, rule.parent_attribute, types):
                raise ConfigError(f"{file}: (head): {key}: {what}", ADVICE)


def check_names(file: str, also_called: Mapping[str, str], types: Mapping[str, ResourceType]) -> None:
    """Raise `ConfigError` for another name of a type that is not in the catalogue, or for one with its own entry."""
    for other, canonical in also_called.items():
        if canonical not in types:
            raise ConfigError(f"{file}: (head): also_called.{other}: {_absent(canonical)}", ADVICE)
        if other in types:
            raise ConfigError(f"{file}: (head): also_called.{other}: has an entry of its own", ADVICE)


def _rules(entry: ResourceType, types: Mapping[str, ResourceType]) -> Wrong:
    if entry.parent:
        yield from _attribute("parent", entry.parent.type, entry.parent.parent_attribute, types)
    for number, rule in enumerate(entry.made_by):
        yield from _attribute(f"made_by[{number}]", rule.type, rule.parent_attribute, types)


def _left_by_it(entry: ResourceType, types: Mapping[str, ResourceType]) -> Wrong:
    for left in entry.leaves:
        if left not in types:
            yield "leaves", _absent(left)
        elif not any(rule.type == entry.type for rule in types[left].ignore_tags.values()):
            yield "leaves", f"no rule in ignore_tags tells which {left} it has made"


def _detached_by_it(entry: ResourceType, types: Mapping[str, ResourceType]) -> Wrong:
    for name in entry.detaches:
        other = types.get(name)
        if other is None or other.list is None:
            yield "detaches", _absent(name) if other is None else f"{name} cannot be listed"


def _attribute(key: str, named: str, attribute: str, types: Mapping[str, ResourceType]) -> Wrong:
    other = types.get(named)
    if other is None:
        yield f"{key}.type", _absent(named)
    elif attribute not in other.keys and attribute not in other.traits:
        yield f"{key}.parent_attribute", f"{attribute!r} is neither a key nor a trait of {named}"


def _owned(entry: ResourceType, types: Mapping[str, ResourceType]) -> Wrong:
    for owned, keys in entry.owns.items():
        if owned not in types:
            yield f"owns.{owned}", _absent(owned)
        elif types[owned].stateful and not entry.stateful:
            yield f"owns.{owned}", f"{owned} is stateful and goes along, so that this type is stateful as well"
        else:
            yield from (
                (f"owns.{owned}.{key}", f"is no key of {owned}")
                for key in keys
                if key != HELD and key not in types[owned].keys
            )


def _list_for_each(entry: ResourceType, types: Mapping[str, ResourceType]) -> Wrong:
    """What is wrong with a list that is asked for once for each object of another type."""
    per = entry.list.per if entry.list else None
    if per is None:
        return
    parent = types.get(per.type)
    if parent is None or parent.list is None:
        yield "list.per.type", _absent(per.type) if parent is None else f"{per.type} cannot be listed"
        return
    if entry.type in _asked_before(per, types):
        yield "list.per.type", f"{per.type} is itself listed for each {entry.type}"
    has = {*parent.keys, *parent.traits, *parent.handles, *IN_ARGUMENTS}
    for name in _named(per.arguments.values()):
        if name not in has:
            yield "list.per.arguments", f"{{{name}}} is not a key or trait of {per.type}"
    values = [*entry.keys.values(), *entry.traits.values(), *entry.handles.values(), entry.id, entry.import_id]
    single = [entry.name, entry.arn, entry.owner, *(rule.value for rule in entry.made_by)]
    for name in _named([*values, *single]):
        if name.startswith(OF_THE_PARENT) and name.removeprefix(OF_THE_PARENT) not in has - EVERYWHERE:
            yield "list.per", f"{{{name}}} is used, which {per.type} has not"


def _asked_before(per: PerParent, types: Mapping[str, ResourceType]) -> set[str]:
    """The types that must be listed first, one for each object of the other."""
    found: set[str] = set()
    asked: PerParent | None = per
    while asked is not None and asked.type not in found:
        found.add(asked.type)
        parent = types.get(asked.type)
        asked = parent.list.per if parent and parent.list else None
    return found


def _named(templates: Iterable[object]) -> Iterator[str]:
    for template in templates:
        match template:
            case str():
                yield from PLACEHOLDER.findall(template)
            case dict():
                yield from _named(template.values())
            case list():
                yield from _named(template)
            case _:
                pass


def _absent(named: str) -> str:
    return f"{named} is not in the catalogue"
