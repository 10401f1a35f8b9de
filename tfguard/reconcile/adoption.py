"""May this plan adopt these objects? Pure (rule 15: it must import them and touch nothing else)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import PLACEHOLDER, ResourceType
from tfguard.model.importing import ImportTarget
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import Action, Plan, PlannedChange
from tfguard.reconcile.matching import lies_elsewhere

_ALLOWED = (Action.NOOP, Action.UPDATE)
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
# An id or an ARN; a name may be equal to any other text by chance.
_POINTS = ("id", "arn", "url")
_SHORTEST_ID = 4


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a plan must not be applied; `address` is the wanted one that it is about, None where it is about another."""

    address: str | None
    what: str


def objections(plan: Plan, wanted: Mapping[str, str], updatable: Collection[str]) -> tuple[Objection, ...]:
    """Why the plan must not be applied. None: it may.

    `wanted` maps addresses to import ids; those of them that are `updatable` may be changed in place.
    """
    found = [one for change in plan.changing if (one := _objection(change, wanted, updatable))]
    imported = {change.address: change.importing for change in plan.changes if change.importing is not None}
    found += [one for address, import_id in wanted.items() if (one := _other(address, import_id, imported))]
    return tuple(found)


def _other(address: str, import_id: str, imported: Mapping[str, str]) -> Objection | None:
    if address not in imported:
        return Objection(address, f"it does not import {address}")
    # An import by identity has no id in the plan.
    if imported[address] not in ("", import_id):
        return Objection(address, f"it would import another object, {imported[address]}, to {address}")
    return None


def _objection(change: PlannedChange, wanted: Mapping[str, str], updatable: Collection[str]) -> Objection | None:
    address = change.address
    if address not in wanted:
        return Objection(None, f"it would also {change.action.value} {address}")
    if change.action not in _ALLOWED:
        forced = ", ".join(change.forced_by)
        why = f", for what it has as {forced} differs from the configuration and cannot be changed" if forced else ""
        return Objection(address, f"it would {change.action.value} {address} right after importing it{why}")
    if change.differs and address not in updatable:
        return Objection(address, f"it would update {address} in place: {', '.join(change.differs)}")
    return None


def elsewhere(plan: Plan, objects: Mapping[str, CloudObject], catalog: Catalog) -> tuple[Objection, ...]:
    """Objections to an object of the right id that lies in another account or region than the wanted one."""
    return tuple(
        Objection(
            change.address,
            f"it would import an object of another account or region than {known.account} {known.region}: the provider "
            f"of {change.address} looks elsewhere",
        )
        for change in plan.changes
        if change.importing is not None and (known := objects.get(change.address))
        if lies_elsewhere(catalog.get(change.type), change.before, known.account, known.region)
    )


def updates(plan: Plan) -> Mapping[str, tuple[str, ...]]:
    """The addresses that the plan changes in place after importing them, with the arguments that differ."""
    return {change.address: change.differs for change in plan.changing if change.action is Action.UPDATE}


def update_in_words(differs: Sequence[str] | None) -> str:
    """What follows "will import ..." where the plan updates what it imports; `differs` as `updates` tells, None for no
    update. One without a difference only has the provider note what an import leaves empty: whose labels they are."""
    if differs is None:
        return ""
    if not differs:
        return ", and note in the state what it has already; the engine counts that as a change"
    return f", and update it in place to what the configuration says: {', '.join(differs)}"


def own_import_id(kind: ResourceType, desired: Mapping[str, str]) -> str | None:
    """The import id that the configuration's own values make, where the catalogue has a template for it.

    None where a value is missing: never a guess (case B53).
    """
    if kind.import_as is None:
        return None

    def part(match: re.Match[str]) -> str:
        return match[1] if desired.keys() >= set(PLACEHOLDER.findall(match[1])) else ""

    template = _OPTIONAL.sub(part, kind.import_as)
    if not desired.keys() >= set(PLACEHOLDER.findall(template)):
        return None
    return PLACEHOLDER.sub(lambda match: desired[match[1]], template)


def derived_address(found: CloudObject, taken: Collection[str]) -> str:
    """An address for an object without one, made of its name; none of those that are `taken`."""
    name = re.sub(r"\W+", "_", (found.name or found.id).rpartition("/")[2], flags=re.ASCII).strip("_").lower()
    if not name or not (name[0].isalpha() or name[0] == "_"):
        name = f"this_{name}".rstrip("_")
    number, address = 1, f"{found.type}.{name}"
    while address in taken:
        number += 1
        address = f"{found.type}.{name}_{number}"
    return address


def references_to(objects: Iterable[tuple[str, Mapping[str, str]]]) -> Mapping[str, str]:
    """The expression for each id, URL and ARN that one object alone has; `objects` are addresses and their own keys.

    Only what lies in the root module can be named from there.
    """
    found: dict[str, list[str]] = {}
    for address, keys in objects:
        for name in sorted(keys, key=lambda one: (one not in _POINTS, one)):
            if (name in _POINTS or name.endswith("_id")) and not address.startswith("module."):
                found.setdefault(keys[name], []).append(f"{address}.{name}")
    return {
        value: told[0]
        for value, told in found.items()
        if len(value) >= _SHORTEST_ID and len({one.rpartition(".")[0] for one in told}) == 1
    }


def wanted_ids(targets: Iterable[ImportTarget]) -> Mapping[str, str]:
    """Addresses and import ids."""
    return {target.address: target.import_id for target in targets}
