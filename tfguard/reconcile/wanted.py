"""The object that a step wanted, or that a state names, as far as that can be asked for directly. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tfguard.catalog.types import JOINT, PLACEHOLDER, ResourceType
from tfguard.model.cloud import cloud_named
from tfguard.model.inventory import CloudObject, Scope
from tfguard.model.operation import Step


def wanted_object(kind: ResourceType, step: Step, scope: Scope) -> CloudObject | None:
    """What a complete list of `scope` would have of the object that a step wanted; None where the plan does not tell
    all that its own service has to be asked with."""
    scope = replace(scope, account=step.own_account or scope.account)
    return _object(kind, step.desired, scope)


def named_object(kind: ResourceType, unique_name: str, scope: Scope) -> CloudObject | None:
    """What a complete list of `scope` would have of the object of this unique name; None where that does not tell all
    that its own service has to be asked with."""
    parts = kind.parts_of(unique_name)
    return _object(kind, {**parts, kind.arn_key or "": unique_name}, scope) if parts else None


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
        account=scope.account,
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
