"""One inventory made of several, each of which knows its own clouds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tfguard.model.cloud import cloud_of_type
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject, Detail, Gap, Listing, Scope
from tfguard.model.plan import ProviderConfig
from tfguard.ports import Inventory


class CombinedInventory:
    """Hands each question to the first inventory that covers the type. Implements `ports.Inventory`."""

    def __init__(self, inventories: Sequence[Inventory]) -> None:
        self._inventories = tuple(inventories)

    def covers(self, resource_type: str) -> bool:
        """Whether any of them can list the type."""
        return self._for(resource_type) is not None

    def list(self, resource_type: str, provider: ProviderConfig, place: str | None = None, /) -> Listing:
        """The listing of the inventory that covers the type; a gap when none does."""
        inventory = self._for(resource_type)
        if inventory is not None:
            return inventory.list(resource_type, provider, place)
        scope = _nowhere(resource_type, provider, place)
        return Listing(resource_type, scope, gap=Gap(f"{scope} {resource_type}", "no call lists this type"))

    def list_many(
        self, resource_types: Iterable[str], provider: ProviderConfig, place: str | None = None, /
    ) -> Iterator[Listing]:
        """The listing of each type, asked for together with the others that its inventory covers."""
        by_inventory: dict[int, list[str]] = {}
        for name in resource_types:
            covering = (n for n, inventory in enumerate(self._inventories) if inventory.covers(name))
            if (number := next(covering, None)) is None:
                yield self.list(name, provider, place)
            else:
                by_inventory.setdefault(number, []).append(name)
        for number, names in by_inventory.items():
            yield from self._inventories[number].list_many(names, provider, place)

    def place(self, resource_type: str, provider: ProviderConfig, place: str | None = None, /) -> Scope | None:
        """Where the inventory that covers the type would look; None when none does."""
        inventory = self._for(resource_type)
        return inventory.place(resource_type, provider, place) if inventory is not None else None

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:
        """The object with what its inventory can add; unchanged when none covers the type."""
        inventory = self._for(found.type)
        return inventory.detail(found, provider) if inventory is not None else Detail(found)

    def _for(self, resource_type: str) -> Inventory | None:
        return next((inventory for inventory in self._inventories if inventory.covers(resource_type)), None)


def _nowhere(resource_type: str, provider: ProviderConfig, place: str | None) -> Scope:
    cloud = cloud_of_type(resource_type)
    if cloud is not None and cloud.place_is_account:
        return Scope(cloud.name, place or cloud.account_of(provider.settings), "global", provider.key)
    region = place or provider.settings.get("region") or UNKNOWN_REGION
    return Scope(resource_type.split("_", 1)[0], None, region, provider.key)
