"""What exists at AWS, as a port. The SDK is slow to import, so that it waits for the first listing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.inventory import aws_settings as settings_of
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject, Detail, Gap, Listing, Scope
from tfguard.model.plan import ProviderConfig

if TYPE_CHECKING:
    from tfguard.inventory.aws_listing import AwsLister

CLOUD = "aws"
_NO_SDK = "boto3 is not installed: `pip install boto3`"


class AwsInventory:
    """Lists the AWS types of a catalogue. Implements `ports.Inventory`; safe to use from several threads."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = Lock()
        self._made_lister: AwsLister | None = None

    def warm_up(self) -> None:
        """Load the SDK in the background: it takes as long as a list, and the engine plans meanwhile."""
        Thread(target=self._load_quietly, daemon=True, name="tfguard-sdk").start()

    def _load_quietly(self) -> None:
        with suppress(ImportError):
            self._lister()

    def covers(self, resource_type: str) -> bool:
        """Whether objects of the type can be listed at all."""
        entry = self._entry(resource_type)
        return entry is not None and entry.list is not None

    def list(self, resource_type: str, provider: ProviderConfig, region: str | None = None) -> Listing:
        """Every object of the type that the provider configuration can see; whatever is in the way becomes a gap."""
        return next(self.list_many([resource_type], provider, region))

    def list_many(
        self, resource_types: Iterable[str], provider: ProviderConfig, region: str | None = None
    ) -> Iterator[Listing]:
        """The listing of each type, in no order. A type that others are listed by is asked for once."""
        listable: dict[str, ResourceType] = {}
        for name in resource_types:
            entry = self._entry(name)
            if entry is None or entry.list is None:
                yield _nothing(name, provider, region, "no call lists this type")
            elif reason := self._unknown(entry, provider, region):
                yield _nothing(name, provider, region, reason, asked=False)
            else:
                listable[name] = entry
        if not listable:
            return
        try:
            lister = self._lister()
        except ImportError:
            yield from (_nothing(name, provider, region, _NO_SDK, asked=False) for name in listable)
            return
        yield from lister.list_many(listable.values(), provider, region)

    def place(self, resource_type: str, provider: ProviderConfig, region: str | None = None) -> Scope | None:
        """Where a listing would look, without listing; None where that cannot be told."""
        entry = self._entry(resource_type)
        if entry is None or self._unknown(entry, provider, region):
            return None
        try:
            return self._lister().place(entry, provider, region)
        except ImportError:
            return None

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:
        """The object with creation time and tags, where more calls give them; a gap where one is refused."""
        entry = self._entry(found.type)
        region = None if found.region == "global" else found.region
        if entry is None or not entry.details:
            return Detail(found)
        if reason := self._unknown(entry, provider, region):
            return Detail(found, _nothing(found.type, provider, region, reason).gap)
        try:
            lister = self._lister()
        except ImportError:
            return Detail(found, _nothing(found.type, provider, region, _NO_SDK).gap)
        return lister.detail(entry, found, provider, region)

    def _entry(self, resource_type: str) -> ResourceType | None:
        entry = self._catalog.get(resource_type)
        return entry if entry is not None and entry.cloud == CLOUD else None

    def _unknown(self, entry: ResourceType, provider: ProviderConfig, region: str | None) -> str | None:
        """Why it is not known whom to ask. What exists once in an account needs no region: credentials are good in
        one partition only, so that the wrong one refuses them."""
        names = (*self._catalog.endpoint_names(entry.service), *self._catalog.endpoint_names("sts"))
        whom = settings_of.whom_is_unknown(provider, names)
        return whom or (None if entry.is_global or region else settings_of.region_is_unknown(provider))

    def _lister(self) -> AwsLister:
        with self._lock:
            if self._made_lister is None:
                from tfguard.inventory.aws_listing import AwsLister

                self._made_lister = AwsLister(self._catalog)
            return self._made_lister


def _nothing(
    resource_type: str, provider: ProviderConfig, region: str | None, reason: str, *, asked: bool = True
) -> Listing:
    known = region or provider.settings.get("region") or UNKNOWN_REGION
    scope = Scope(CLOUD, settings_of.wanted_account(provider.settings), known, provider.key)
    return Listing(resource_type, scope, gap=Gap(f"{scope} {resource_type}", reason), asked=asked)
