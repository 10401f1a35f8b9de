"""May this plan adopt these objects? Pure (rule 15: it must import them and touch nothing else)."""

from __future__ import annotations

from collections.abc import Mapping

from tfguard.model.plan import Action, Plan, PlannedChange

_ALLOWED = (Action.NOOP, Action.UPDATE)


def objections(plan: Plan, wanted: Mapping[str, str]) -> tuple[str, ...]:
    """Why the plan must not be applied, a line each; `wanted` maps addresses to import ids. Empty: it may."""
    found = [line for change in plan.changing if (line := _objection(change, wanted))]
    imported = {change.address: change.importing for change in plan.changes if change.importing is not None}
    found += [line for address, import_id in wanted.items() if (line := _other(address, import_id, imported))]
    return tuple(found)


def _other(address: str, import_id: str, imported: Mapping[str, str]) -> str | None:
    if address not in imported:
        return f"it does not import {address}"
    # An import by identity has no id in the plan.
    if imported[address] not in ("", import_id):
        return f"it would import another object, {imported[address]}, to {address}"
    return None


def _objection(change: PlannedChange, wanted: Mapping[str, str]) -> str | None:
    if change.address not in wanted:
        return f"it would also {change.action.value} {change.address}"
    if change.action not in _ALLOWED:
        return f"it would {change.action.value} {change.address} right after importing it"
    return None


def updates(plan: Plan) -> tuple[str, ...]:
    """The addresses that the plan changes in place after importing them."""
    return tuple(change.address for change in plan.changing if change.action is Action.UPDATE)
