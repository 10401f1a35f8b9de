"""What states tell of the objects that others make and that have no address there: a group's rules, a table's routes.

A state lists them inside their maker, or as resources of their own. Where it tells of any, what it lacks is not its.
"""

from __future__ import annotations

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import HELD, ResourceType
from tfguard.model.state import StateInstance


class Held:
    """What the instances of all states tell of the objects of such types; it only ever grows."""

    def __init__(self, catalog: Catalog) -> None:
        self._makers: dict[str, dict[str, str]] = {}
        for kind in catalog:
            told = {rule.type: rule.parent_attribute for rule in kind.made_by if rule.held}
            if told:
                self._makers[kind.type] = told
        self._told: set[tuple[str, str]] = set()
        self._values: set[tuple[str, str]] = set()

    def take(self, kind: ResourceType, instance: StateInstance) -> None:
        """Take in what an instance of a type tells."""
        if not instance.owned and kind.type not in self._makers:
            return
        for told in {kind.type, *(owned.type for owned in instance.owned)}:
            for maker, attribute in self._makers.get(told, {}).items():
                if kind.type == maker:
                    value = instance.identity.get(attribute)
                else:
                    of_maker = kind.parent is not None and kind.parent.type == maker
                    value = instance.identity.get(kind.parent.attribute) if kind.parent and of_maker else None
                if value:
                    self._told.add((maker, value))
        self._values.update((owned.type, owned.value) for owned in instance.owned if owned.key == HELD)

    def tells_of(self, maker: str, value: str) -> bool:
        """Whether a state tells of what this maker made, or of what was added to it."""
        return (maker, value) in self._told

    def has(self, resource_type: str, value: str) -> bool:
        """Whether a maker's state has an object of the type that looks so."""
        return (resource_type, value) in self._values
