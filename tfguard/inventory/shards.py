"""The parts that a scan's listing falls into, and what lists them: threads, processes, or a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from tfguard.catalog.loader import Catalog, load_catalog
from tfguard.catalog.types import ResourceType
from tfguard.errors import UsageError
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.combined import CombinedInventory
from tfguard.inventory.listers import DaskLister, ProcessLister, ThreadLister
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Shard
from tfguard.ports import Inventory, ShardLister

THREADS = "threads"
PROCESSES = "processes"
DASK = "dask://"


def shards_for(
    catalog: Catalog, provider: ProviderConfig, regions: Sequence[str], patterns: Sequence[str] = ("*",)
) -> tuple[Shard, ...]:
    """The shards of one account: one for each service and region, and one for what a service has once in an account.

    `provider` says as whom to ask; its own region does not count. `patterns` are patterns of Terraform types, other
    names of a type included. The largest come first, so that none is left over at the end. Raises `UsageError` for a
    pattern that matches no type that can be listed, for a region that the SDK does not know (unless the settings or the
    environment name an endpoint, which may know it), and where there is no region.
    """
    cloud = provider.source.rpartition("/")[2]
    if not regions:
        raise UsageError("no region is known to scan", "name one with --region, or in scan.aws.regions of tfguard.yaml")
    _check_regions(provider, regions)
    by_place: dict[tuple[str, str | None], list[str]] = {}
    for entry in _chosen(catalog, cloud, patterns):
        for region in (None,) if entry.is_global else dict.fromkeys(regions):
            by_place.setdefault((entry.service, region), []).append(entry.type)
    shards = [
        Shard(cloud, _in_region(provider, region or regions[0]), region, service, tuple(types))
        for (service, region), types in by_place.items()
    ]
    return tuple(sorted(shards, key=lambda shard: (-len(shard.types), shard.service, shard.region or "")))


def lister_for(
    executor: str, stop: Callable[[], bool], workers: int | None = None, inventory: Inventory | None = None
) -> ShardLister:
    """What lists shards: `threads`, `processes`, or the workers of a Dask cluster (`dask://HOST:PORT`).

    `stop` tells that nobody waits any more: the listing then raises `InterruptedRunError`. `inventory` is what threads
    share; processes make their own. Raises `UsageError` for another executor, and where Dask is not installed.
    """
    if executor == THREADS:
        return ThreadLister(inventory or aws_inventory(), stop, workers)
    if executor == PROCESSES:
        return ProcessLister(aws_inventory, stop, workers)
    if executor.startswith(DASK) and executor != DASK:
        if find_spec("distributed") is None:
            raise UsageError("Dask is not installed", "pip install 'tfguard[dask]'")
        return DaskLister(executor.removeprefix(DASK), aws_inventory, stop)
    raise UsageError(
        f"{executor} is no executor", f"use {THREADS}, {PROCESSES}, or {DASK}HOST:PORT of a Dask scheduler"
    )


def aws_inventory() -> Inventory:
    """The inventory as a worker makes it for itself."""
    return CombinedInventory([AwsInventory(load_catalog())])


def _chosen(catalog: Catalog, cloud: str, patterns: Sequence[str]) -> list[ResourceType]:
    listable = [entry for entry in catalog if entry.cloud == cloud and entry.list is not None]
    chosen: set[str] = set()
    for pattern in patterns:
        matched = {entry.type for entry in catalog.matching(pattern)} & {entry.type for entry in listable}
        if not matched:
            raise UsageError(
                f"the pattern {pattern} matches no type that can be listed", "see `tfguard catalog list` for the types"
            )
        chosen |= matched
    return [entry for entry in listable if entry.type in chosen]


def _in_region(provider: ProviderConfig, region: str) -> ProviderConfig:
    settings = {**provider.settings, "region": region}
    return ProviderConfig(provider.key, provider.source, settings, provider.unresolved - {"region"})


def _check_regions(provider: ProviderConfig, regions: Sequence[str]) -> None:
    if _has_endpoint(provider):
        return
    from botocore.session import Session  # slow to import, and not needed for a listing from a file

    session = Session()
    known = {
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("ec2", partition)
    }
    for region in regions:
        if known and region not in known:
            raise UsageError(f"{region} is no region of AWS", "correct --region, or scan.aws.regions of tfguard.yaml")


def _has_endpoint(provider: ProviderConfig) -> bool:
    own = any(name == "endpoint_url" or name.startswith("endpoints.") for name in provider.settings)
    return own or any(name.startswith("AWS_ENDPOINT_URL") for name in os.environ)
