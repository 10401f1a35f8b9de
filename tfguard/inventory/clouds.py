"""The adapters of every cloud, by its name: the one place that names them all. Each loads its SDK when it is asked.

What else tells a cloud from another is data: `model/cloud.py`, the catalogue's `CLOUD*.yaml`, the grammar of its errors
(`reconcile/failures_CLOUD.py`), and whom a scan asks (`cli/scan_CLOUD.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tfguard.catalog.catalog import Catalog
from tfguard.inventory.combined import CombinedInventory
from tfguard.model.action import ActionAnswer
from tfguard.model.audit import AuditAnswer, Creation
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig
from tfguard.ports import AuditLog, CloudActions, Inventory

Pause = Callable[[float], bool]
Now = Callable[[], datetime]


class CloudInventory(Inventory, Protocol):
    """The inventory of one cloud."""

    def warm_up(self) -> None:
        """Load the SDK in the background."""
        ...


@dataclass(frozen=True, slots=True)
class Adapters:
    """What makes the adapters of one cloud."""

    inventory: Callable[[Catalog], CloudInventory]
    actions: Callable[[Catalog], CloudActions]
    audit: Callable[[Catalog, Pause, Now], AuditLog]


def _aws_inventory(catalog: Catalog) -> CloudInventory:
    from tfguard.inventory.aws import AwsInventory

    return AwsInventory(catalog)


def _aws_actions(catalog: Catalog) -> CloudActions:
    from tfguard.inventory.actions import AwsActions

    return AwsActions(catalog)


def _aws_audit(catalog: Catalog, pause: Pause, now: Now) -> AuditLog:
    from tfguard.inventory.aws_trail import CloudTrail

    return CloudTrail(catalog, pause, now)


def _google_inventory(catalog: Catalog) -> CloudInventory:
    from tfguard.inventory.google import GoogleInventory

    return GoogleInventory(catalog)


def _google_actions(catalog: Catalog) -> CloudActions:
    from tfguard.inventory.google_actions import GoogleActions

    return GoogleActions(catalog)


def _google_audit(catalog: Catalog, pause: Pause, now: Now) -> AuditLog:
    from tfguard.inventory.google_audit import GoogleAuditLog

    return GoogleAuditLog(catalog, pause, now)


ADAPTERS: Mapping[str, Adapters] = {
    "aws": Adapters(_aws_inventory, _aws_actions, _aws_audit),
    "google": Adapters(_google_inventory, _google_actions, _google_audit),
}


def inventory_of_clouds(catalog: Catalog, warm: Collection[str] = ()) -> Inventory:
    """The inventory of every cloud. The SDKs of those in `warm` are loaded in the background from here on."""
    made = {name: adapters.inventory(catalog) for name, adapters in ADAPTERS.items()}
    for name in warm:
        made[name].warm_up()
    return CombinedInventory(tuple(made.values()))


class CombinedActions:
    """Hands each action to the cloud of its object. Implements `ports.CloudActions`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._made: dict[str, CloudActions] = {}

    def delete(self, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:
        """Delete an object by its type's own call, in the gentlest form that the service has."""
        return self._asked(found, lambda actions: actions.delete(found, provider))

    def restore(self, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:
        """Bring an object back into use that is deleted and only waits for its end."""
        return self._asked(found, lambda actions: actions.restore(found, provider))

    def tag(self, found: CloudObject, provider: ProviderConfig, tags: Mapping[str, str]) -> ActionAnswer:
        """Put these tags on an object, beside those that it has."""
        return self._asked(found, lambda actions: actions.tag(found, provider, tags))

    def untag(self, found: CloudObject, provider: ProviderConfig, names: Collection[str]) -> ActionAnswer:
        """Take these tags from an object."""
        return self._asked(found, lambda actions: actions.untag(found, provider, names))

    def _asked(self, found: CloudObject, ask: Callable[[CloudActions], ActionAnswer]) -> ActionAnswer:
        if found.cloud not in ADAPTERS:
            return ActionAnswer(refused=f"no call is known that changes {found.type}")
        if found.cloud not in self._made:
            self._made[found.cloud] = ADAPTERS[found.cloud].actions(self._catalog)
        return ask(self._made[found.cloud])


class CombinedAuditLog:
    """Asks the log of each cloud about its own objects. Implements `ports.AuditLog`."""

    def __init__(self, catalog: Catalog, pause: Pause, now: Now) -> None:
        self._catalog = catalog
        self._pause = pause
        self._now = now

    def creations(self, candidates: Sequence[tuple[CloudObject, ProviderConfig]]) -> AuditAnswer:
        """The calls that made these objects, as far as each log may be read."""
        by_cloud: dict[str, list[tuple[CloudObject, ProviderConfig]]] = {}
        for pair in candidates:
            by_cloud.setdefault(pair[0].cloud, []).append(pair)
        creations: dict[str, Creation] = {}
        notes: list[str] = []
        for name, pairs in by_cloud.items():
            if name in ADAPTERS:
                answer = ADAPTERS[name].audit(self._catalog, self._pause, self._now).creations(pairs)
                creations.update(answer.creations)
                notes += answer.notes
        return AuditAnswer(creations, tuple(notes))
