"""The calls that change an object at its provider, as a port. The SDK waits for the first of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from threading import Lock
from typing import TYPE_CHECKING

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.inventory import aws_settings as settings_of
from tfguard.inventory.aws import CLOUD
from tfguard.model.action import ActionAnswer
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig

if TYPE_CHECKING:
    from tfguard.inventory.aws_actions import AwsCalls

TAGGING = "resourcegroupstaggingapi"
"""The service that tags an object of any other by its ARN."""

_NO_SDK = "boto3 is not installed: `pip install boto3`"


class AwsActions:
    """Changes objects of AWS by the calls of the catalogue. Implements `ports.CloudActions`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = Lock()
        self._made: AwsCalls | None = None

    def delete(self, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:
        """Delete an object by its type's own call, in the gentlest form that the service has."""
        entry = self._entry(found)
        call = entry.delete if entry else None
        if entry is None or call is None:
            return ActionAnswer(refused=f"no call is known that deletes {found.type}")
        return self._asked(entry, provider, lambda calls: calls.make(entry, found, provider, [call]))

    def restore(self, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:
        """Bring an object back into use that is deleted and only waits for its end."""
        entry = self._entry(found)
        if entry is None or not entry.restore:
            return ActionAnswer(refused=f"no call is known that restores {found.type}")
        return self._asked(entry, provider, lambda calls: calls.make(entry, found, provider, entry.restore))

    def tag(self, found: CloudObject, provider: ProviderConfig, tags: Mapping[str, str]) -> ActionAnswer:
        """Put these tags on an object, beside those that it has."""
        entry = self._entry(found)
        if entry is None or found.arn is None:
            return _untaggable(found)
        return self._asked(entry, provider, lambda calls: calls.tag(entry, found, provider, tags))

    def untag(self, found: CloudObject, provider: ProviderConfig, names: Collection[str]) -> ActionAnswer:
        """Take these tags from an object."""
        entry = self._entry(found)
        if entry is None or found.arn is None:
            return _untaggable(found)
        return self._asked(entry, provider, lambda calls: calls.untag(entry, found, provider, names))

    def _entry(self, found: CloudObject) -> ResourceType | None:
        entry = self._catalog.get(found.type)
        return entry if entry is not None and entry.cloud == CLOUD else None

    def _asked(
        self, entry: ResourceType, provider: ProviderConfig, ask: Callable[[AwsCalls], ActionAnswer]
    ) -> ActionAnswer:
        names = [name for service in (entry.service, TAGGING, "sts") for name in self._catalog.endpoint_names(service)]
        if unknown := settings_of.whom_is_unknown(provider, names):
            return ActionAnswer(refused=unknown)
        try:
            calls = self._calls()
        except ImportError:
            return ActionAnswer(refused=_NO_SDK)
        return ask(calls)

    def _calls(self) -> AwsCalls:
        with self._lock:
            if self._made is None:
                from tfguard.inventory.aws_actions import AwsCalls

                self._made = AwsCalls(self._catalog)
            return self._made


def _untaggable(found: CloudObject) -> ActionAnswer:
    return ActionAnswer(refused=f"{found.type} cannot be tagged: it has no ARN by which a tag could be put on it")
