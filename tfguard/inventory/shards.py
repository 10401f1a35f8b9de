"""The parts that a scan's listing falls into, and what lists them: threads, processes, or a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.loader import load_catalog
from tfguard.catalog.patterns import listable_types
from tfguard.errors import UsageError
from tfguard.inventory import aws_settings as settings_of
from tfguard.inventory.clouds import inventory_of_clouds
from tfguard.inventory.listers import DaskLister, ProcessLister, ThreadLister
from tfguard.model.cloud import GOOGLE, cloud_of_source
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Shard
from tfguard.ports import Inventory, ShardLister

if TYPE_CHECKING:
    from botocore.session import Session

THREADS = "threads"
PROCESSES = "processes"
DASK = "dask://"
_SEARCH = "cloudasset"


def shards_for(
    catalog: Catalog, provider: ProviderConfig, regions: Sequence[str], patterns: Sequence[str] = ("*",)
) -> tuple[Shard, ...]:
    """The shards of one account: one for each service and region, and one for what a service has once in an account.

    `provider` says as whom to ask; its own region does not count. `patterns` are patterns of Terraform types, other
    names of a type included. The largest come first, so that none is left over at the end. Raises `UsageError` for a
    pattern that matches no type that can be listed, for a region that the SDK does not know (unless the settings or the
    environment name an endpoint for every service that is asked there, which may know it), and for no region at all.
    """
    cloud = provider.source.rpartition("/")[2]
    if not regions:
        raise UsageError("no region is known to scan", "name one with --region, or in scan.aws.regions of tfguard.yaml")
    chosen = listable_types(catalog, patterns, cloud)
    asked = {entry.service: catalog.endpoint_names(entry.service) for entry in chosen if not entry.is_global}
    _check_regions(provider, regions, asked or {"sts": ("sts",)})
    by_place: dict[tuple[str, str | None], list[str]] = {}
    for entry in chosen:
        for region in (None,) if entry.is_global else dict.fromkeys(regions):
            by_place.setdefault((entry.service, region), []).append(entry.type)
    shards = [
        Shard(cloud, _in_region(provider, region or regions[0]), region, service, tuple(types))
        for (service, region), types in by_place.items()
    ]
    return tuple(sorted(shards, key=lambda shard: (-len(shard.types), shard.service, shard.region or "")))


def shards_of_projects(
    catalog: Catalog, provider: ProviderConfig, patterns: Sequence[str] = ("*",)
) -> tuple[Shard, ...]:
    """The shard of a provider configuration of Google Cloud: its searches answer for all locations of a project, for
    all types of one at once, and what is listed below other things needs their list too, so that it is one alone.

    Raises `UsageError` for a pattern that matches no type that can be listed.
    """
    cloud = cloud_of_source(provider.source) or GOOGLE
    types = tuple(entry.type for entry in listable_types(catalog, patterns, cloud.name))
    return (Shard(cloud.name, provider, None, _SEARCH, types),)


def lister_for(
    executor: str, stop: Callable[[], bool], workers: int | None = None, inventory: Inventory | None = None
) -> ShardLister:
    """What lists shards: `threads`, `processes`, or the workers of a Dask cluster (`dask://HOST:PORT`).

    `stop` tells that nobody waits any more: the listing then raises `InterruptedRunError`. `inventory` is what threads
    share; processes make their own. Raises `UsageError` for another executor, and where Dask is not installed.
    """
    if executor == THREADS:
        return ThreadLister(inventory or worker_inventory(), stop, workers)
    if executor == PROCESSES:
        return ProcessLister(worker_inventory, stop, workers)
    if executor.startswith(DASK) and executor != DASK:
        if not _is_address(executor.removeprefix(DASK)):
            raise UsageError(f"{executor} names no scheduler", f"write {DASK}HOST:PORT, such as {DASK}localhost:8786")
        if find_spec("distributed") is None:
            raise UsageError("Dask is not installed", "install it: `pip install distributed`")
        return DaskLister(executor.removeprefix(DASK), worker_inventory, stop)
    raise UsageError(
        f"{executor} is no executor", f"use {THREADS}, {PROCESSES}, or {DASK}HOST:PORT of a Dask scheduler"
    )


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and "/" not in host and port.isdecimal() and port.isascii() and 0 < int(port[:6]) < 1 << 16


def worker_inventory() -> Inventory:
    """The inventory as a worker makes it for itself."""
    return inventory_of_clouds(load_catalog())


def _in_region(provider: ProviderConfig, region: str) -> ProviderConfig:
    settings = {**provider.settings, "region": region}
    return ProviderConfig(provider.key, provider.source, settings, provider.unresolved - {"region"})


def _check_regions(provider: ProviderConfig, regions: Sequence[str], services: Mapping[str, Sequence[str]]) -> None:
    """`services` are those that are asked by region, with what a provider block's `endpoints` may call each.

    An endpoint may know a region that is newer than the SDK, but none that is made of other words.
    """
    from botocore.session import Session  # slow to import, and not needed for a listing from a file

    session = Session()
    known = {
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("ec2", partition)
    }
    if not known:
        return
    words = {region.rstrip("0123456789") for region in known}
    own_endpoint = provider.settings.get("endpoint_url") or os.environ.get("AWS_ENDPOINT_URL")
    for region in regions:
        may_be = own_endpoint or all(_has_endpoint(session, provider, *one) for one in services.items())
        if region not in known and not (may_be and region.rstrip("0123456789") in words and region[-1:].isdigit()):
            several = "name --region once for each" if "," in region else "correct --region"
            raise UsageError(f"{_shown(region)} is no region of AWS", f"{several}, or scan.aws.regions of tfguard.yaml")


def _has_endpoint(session: Session, provider: ProviderConfig, service: str, names: Sequence[str]) -> bool:
    """Whether an endpoint of the service's own is named, which may know a region that the SDK does not."""
    if settings_of.endpoint(provider.settings, names):
        return True
    service_id: str = session.get_service_data(service)["metadata"]["serviceId"]
    return bool(os.environ.get(f"AWS_ENDPOINT_URL_{service_id.replace(' ', '_').upper()}"))


def _shown(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text) or '""'
