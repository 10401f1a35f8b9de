"""The object that a step wanted, or that a state names, as far as that can be asked for directly. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import JOINT, PLACEHOLDER, ResourceType
from tfguard.model.arn import account_in
from tfguard.model.cloud import cloud_named
from tfguard.model.inventory import CloudObject, Scope
from tfguard.model.operation import Step

_PLAIN_PROJECT = re.compile(r"[a-z][a-z0-9-]+")
"""A project's id, and not its number, a path, or an id that begins with a domain."""


def wanted_object(kind: ResourceType, step: Step, scope: Scope) -> CloudObject | None:
    """What a complete list of `scope` would have of the object that a step wanted; None where the plan does not tell
    all that its own service has to be asked with."""
    scope = replace(scope, account=step.own_account or scope.account)
    return _object(kind, step.desired, scope)


def left_object(kind: ResourceType, step: Step, scope: Scope) -> CloudObject | None:
    """The same of the object that a step was to take away, or that left the state with it."""
    scope = replace(scope, account=step.own_account or scope.account)
    return _object(kind, kind.told_by(step.before), scope)


def parent_object(parent: ResourceType, child: ResourceType, step: Step, scope: Scope) -> CloudObject | None:
    """The same of the object that the one of a step lies in; `parent` is the type that the rule of `child` names."""
    rule, told = child.parent, step.before or step.desired
    if rule is None or rule.attribute not in told:
        return None
    scope = replace(scope, account=told.get("project") or step.own_account or scope.account)
    return _object(parent, {rule.parent_attribute: told[rule.attribute]}, scope)


def lists_lag(kind: ResourceType, catalog: Catalog) -> bool:
    """Whether what lists a type, or what it is listed by, is an index that lags behind what there is."""
    by: ResourceType | None = kind
    while by is not None and by.asset is None:
        by = catalog.get(by.list.per.type) if by.list is not None and by.list.per is not None else None
    return by is not None


def named_object(kind: ResourceType, unique_name: str, scope: Scope) -> CloudObject | None:
    """What a complete list of `scope` would have of the object of this unique name; None where that does not tell all
    that its own service has to be asked with."""
    parts = kind.parts_of(unique_name)
    return _object(kind, {**parts, kind.arn_key or "": unique_name}, scope) if parts else None


def told_in_full(kind: ResourceType, found: CloudObject) -> CloudObject | None:
    """An object that a record tells of by its ids alone, with all that its own service has to be asked with; None where
    these do not tell it."""
    if found.identity:
        return found
    own = kind.keys.get(kind.arn_key or "", "")
    ids = ((kind.id, found.id), (own, found.id), (own, found.import_id), (kind.import_id, found.import_id))
    told = {name: part for template, value in ids for name, part in kind.parts_in(template, value).items()}
    named = _object(kind, told, Scope(found.cloud, found.account, found.region))
    if named is None or named.import_id != found.import_id:
        return None
    return replace(found, identity=named.identity, name=found.name or named.identity.get("name"))


def _object(kind: ResourceType, told: Mapping[str, str], scope: Scope) -> CloudObject | None:
    if kind.get is None:
        return None
    identity = _identity(kind, told, scope)
    object_id, import_id = _filled(kind.id, identity), _filled(kind.import_id, identity)
    if object_id is None or import_id is None:
        return None
    name = _filled(kind.name, identity) if kind.name else None
    found = CloudObject(
        cloud=scope.cloud,
        account=account_in(identity.get(kind.arn_key or "", "")) or scope.account,  # a project is its own
        region=scope.region,
        type=kind.type,
        id=object_id,
        import_id=import_id,
        identity=identity,
        name=name,
        stateful=kind.stateful,
    )
    known = {**identity, "id": object_id, "import_id": import_id}
    return found if set(PLACEHOLDER.findall(kind.get.url)) <= known.keys() else None


def _identity(kind: ResourceType, told: Mapping[str, str], scope: Scope) -> Mapping[str, str]:
    """What is told, and what follows from it: a key may be made of others."""
    cloud = cloud_named(scope.cloud)
    place = {cloud.own_place: scope.account} if cloud and cloud.place_is_account else {}
    known = {name: value for name, value in place.items() if value} | dict(told)
    templates = {
        name: text
        for name, text in {**kind.keys, **kind.traits, **kind.handles}.items()
        if JOINT not in name and PLACEHOLDER.search(text)
    }
    account = known.get(cloud.own_place, "") if cloud else ""
    if _PLAIN_PROJECT.fullmatch(account):
        templates = {**kind.planned, **templates}
    while more := {
        name: value
        for name, text in templates.items()
        if name not in known and (value := _filled(text, known)) is not None
    }:
        known |= more
    return {**known, **kind.joined(known)}


def _filled(template: str, values: Mapping[str, str]) -> str | None:
    names = PLACEHOLDER.findall(template)
    if not names or not values.keys() >= set(names):
        return None
    return PLACEHOLDER.sub(lambda match: values[match[1]], template)
