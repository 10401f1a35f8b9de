"""What a scan's listing is cut into, and the threads, processes and Dask workers that list it."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.errors import InputError, InterruptedRunError, UsageError
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.listers import DaskLister, ProcessLister, ThreadLister
from tfguard.inventory.shards import lister_for, shards_for, worker_inventory
from tfguard.model.inventory import CloudObject, Listing, Scope
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Shard

CATALOG = load_catalog()
AWS = "registry.terraform.io/hashicorp/aws"
HERE = ProviderConfig("aws", AWS)
REGIONS = ["eu-west-1", "us-east-1"]


@pytest.fixture(autouse=True)
def no_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """No endpoint of the environment, which would make every region a good one."""
    for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")]:
        monkeypatch.delenv(name)


def test_every_type_that_can_be_listed_is_in_one_shard_a_region_and_global_ones_in_one_at_all() -> None:
    shards = shards_for(CATALOG, HERE, REGIONS)
    listed = [(name, shard.region) for shard in shards for name in shard.types]
    assert len(listed) == len(set(listed))
    for entry in CATALOG:
        if entry.cloud == "aws" and entry.list is not None:
            expected = {None} if entry.is_global else set(REGIONS)
            assert {region for name, region in listed if name == entry.type} == expected
    assert len({(shard.service, shard.region) for shard in shards}) == len(shards)


def test_a_shard_says_in_its_settings_where_to_ask_and_keeps_what_else_they_say() -> None:
    guarded = ProviderConfig(
        "aws.1", AWS, {"region": "eu-north-1", "allowed_account_ids.0": "1"}, frozenset(["region"])
    )
    for shard in shards_for(CATALOG, guarded, REGIONS, ["aws_sqs_queue", "aws_iam_role"]):
        assert shard.provider.settings["region"] == (shard.region or "eu-west-1")
        assert shard.provider.settings["allowed_account_ids.0"] == "1"
        assert "region" not in shard.provider.unresolved


def test_a_shard_can_be_pickled() -> None:
    shards = shards_for(CATALOG, ProviderConfig("aws", AWS, {"profile": "p"}), REGIONS)
    assert pickle.loads(pickle.dumps(shards)) == shards


def test_a_pattern_chooses_types_by_any_of_their_names() -> None:
    assert [s.types for s in shards_for(CATALOG, HERE, REGIONS[:1], ["aws_sqs_queu*"])] == [("aws_sqs_queue",)]
    for other, canonical in list(CATALOG.also_called.items())[:1]:
        assert [s.types for s in shards_for(CATALOG, HERE, REGIONS[:1], [other])] == [(canonical,)]


@pytest.mark.parametrize("pattern", ["aws_nothing_*", "google_*", "", "iam"])
def test_a_pattern_that_matches_nothing_is_an_error(pattern: str) -> None:
    with pytest.raises(UsageError, match="matches no type"):
        shards_for(CATALOG, HERE, REGIONS, ["aws_iam_role", pattern])


def test_a_type_that_cannot_be_listed_by_itself_is_no_match() -> None:
    unlisted = [entry.type for entry in CATALOG if entry.list is None]
    for name in unlisted[:1]:
        with pytest.raises(UsageError):
            shards_for(CATALOG, HERE, REGIONS, [name])


def test_a_region_that_does_not_exist_is_an_error_unless_an_endpoint_may_know_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UsageError, match="eu-wset-1 is no region"):
        shards_for(CATALOG, HERE, ["eu-wset-1"])
    with pytest.raises(UsageError, match="no region"):
        shards_for(CATALOG, HERE, [])
    with pytest.raises(UsageError, match="eu-south-9 is no region"):
        shards_for(CATALOG, HERE, ["eu-south-9"])
    local = ProviderConfig("aws", AWS, {"endpoints.sqs": "http://127.0.0.1:1"})
    assert shards_for(CATALOG, local, ["eu-south-9"], ["aws_sqs_queue"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert shards_for(CATALOG, HERE, ["eu-south-9"], ["aws_sqs_queue"])


@pytest.mark.parametrize(
    "region", ["eu-wset-1", "eu-west", "eu-west-1,us-east-1", "EU-WEST-1", "eu-west-1 ", "", "global"]
)
def test_no_endpoint_makes_a_region_of_what_can_be_none(region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    local = ProviderConfig("aws", AWS, {"endpoint_url": "http://127.0.0.1:1"})
    for provider in (HERE, local):
        with pytest.raises(UsageError, match="is no region of AWS") as caught:
            shards_for(CATALOG, provider, ["us-east-1", region], ["aws_sqs_queue"])
    assert ("once for each" in caught.value.advice) is ("," in region)


def test_the_endpoint_of_one_service_says_nothing_of_the_regions_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2", "http://127.0.0.1:1")
    own = ProviderConfig("aws", AWS, {"endpoints.sqs": "http://127.0.0.1:1"})
    for types in (["aws_sns_topic"], ["aws_lb", "aws_sns_topic"], ["aws_sqs_queue", "aws_sns_topic"], ["aws_iam_role"]):
        with pytest.raises(UsageError, match="eu-south-9 is no region"):
            shards_for(CATALOG, own, ["eu-south-9"], types)
    assert shards_for(CATALOG, own, ["eu-south-9"], ["aws_sqs_queue", "aws_lb"])


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1"])
def test_regions_of_other_partitions_are_regions(region: str) -> None:
    assert shards_for(CATALOG, HERE, [region], ["aws_sqs_queue"])


def test_an_executor_that_is_none_is_an_error() -> None:
    for name in ("fibres", "dask://", "dask:host:1"):
        with pytest.raises(UsageError, match="is no executor"):
            lister_for(name, lambda: False)


@pytest.mark.parametrize("address", ["x", "x:", "x:y", ":8786", "x:0", "x:99999", "tcp://x:8786", "x:8786/"])
def test_an_address_of_dask_that_is_none_is_an_error_before_anything_is_asked(address: str) -> None:
    with pytest.raises(UsageError, match="names no scheduler"):
        lister_for(f"dask://{address}", lambda: False)


class FakeInventory:
    """A fake of the port `Inventory`: answers each type with one object, and does what its name says otherwise."""

    def list_many(self, types: Iterable[str], provider: ProviderConfig, region: str | None = None) -> Iterator[Listing]:
        for name in types:
            if name == "aws_defect":
                raise RuntimeError("a secret")
            if name == "aws_death":
                os._exit(9)
            if name == "aws_silence":
                continue
            scope = Scope("aws", "123456789012", region or "global", provider.key)
            yield Listing(name, scope, (CloudObject("aws", scope.account, scope.region, name, "x", "x"),))


def make_fake() -> Any:
    """Called by name in a process of its own."""
    return FakeInventory()


def shard(service: str, *types: str) -> Shard:
    """A shard of one region."""
    return Shard("aws", HERE, "eu-west-1", service, types)


MANY = [shard(f"s{n}", f"aws_a{n}", f"aws_b{n}") for n in range(20)]


def never() -> bool:
    """Nobody interrupts."""
    return False


LISTERS = {
    "threads": lambda: ThreadLister(make_fake(), never, 3),
    "processes": lambda: ProcessLister(make_fake, never, 2),
}


@pytest.mark.parametrize("kind", LISTERS)
def test_each_type_of_each_shard_is_answered_once_whatever_fails(kind: str) -> None:
    shards = [*MANY, shard("defect", "aws_first", "aws_defect", "aws_third"), shard("silence", "aws_silence")]
    told: list[Shard] = []
    listings = list(LISTERS[kind]().list(shards, told.append))
    assert sorted(one.type for one in listings) == sorted(name for one in shards for name in one.types)
    assert sorted(told, key=lambda one: one.service) == sorted(shards, key=lambda one: one.service)
    gaps = {one.type: one.gap.reason for one in listings if one.gap}
    assert gaps.keys() == {"aws_defect", "aws_third", "aws_silence"}
    assert "RuntimeError" in gaps["aws_defect"] and "secret" not in str(gaps)


def test_a_process_that_dies_leaves_gaps_for_its_own_shard_alone() -> None:
    shards = [*MANY[:5], shard("death", "aws_before", "aws_death"), *MANY[5:]]
    told: list[Shard] = []
    listings = list(ProcessLister(make_fake, never, 2).list(shards, told.append))
    assert sorted(one.type for one in listings) == sorted(name for one in shards for name in one.types)
    assert {one.type for one in listings if one.gap} == {"aws_before", "aws_death"}
    assert len(told) == len(shards)


class SlowInventory(FakeInventory):
    """A fake that answers only when it is told to."""

    def __init__(self) -> None:
        self.release = threading.Event()

    def list_many(self, types: Iterable[str], provider: ProviderConfig, region: str | None = None) -> Iterator[Listing]:
        self.release.wait(60)
        yield from super().list_many(types, provider, region)


def test_an_interrupt_does_not_wait_for_a_list_that_does_not_answer() -> None:
    inventory = SlowInventory()
    stopped = threading.Event()
    threading.Timer(0.3, stopped.set).start()
    start = time.monotonic()
    with pytest.raises(InterruptedRunError):
        list(ThreadLister(inventory, stopped.is_set).list(MANY, lambda _: None))
    assert time.monotonic() - start < 30
    inventory.release.set()


class SleepingInventory(FakeInventory):
    """A fake that does not answer for as long as any test lasts."""

    def list_many(self, types: Iterable[str], provider: ProviderConfig, region: str | None = None) -> Iterator[Listing]:
        time.sleep(600)
        yield from super().list_many(types, provider, region)


def make_sleeping() -> Any:
    """Called by name in a process of its own."""
    return SleepingInventory()


def test_an_interrupt_ends_the_processes_in_the_middle_of_a_list() -> None:
    before = set(multiprocessing.active_children())
    with pytest.raises(InterruptedRunError):
        list(ProcessLister(make_sleeping, lambda: True, 2).list(MANY[:2], lambda _: None))
    assert set(multiprocessing.active_children()) <= before


def test_listings_that_nobody_takes_do_not_pile_up() -> None:
    taken = ThreadLister(make_fake(), never, 2).list(MANY, lambda _: None)
    first = next(taken)
    taken.close()  # type: ignore[attr-defined]
    assert first.complete


SEEDED = ("aws_sqs_queue", "aws_sns_topic", "aws_iam_role")


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_the_objects_of_an_account_are_listed_through_every_executor(
    executor: str, aws: ProviderConfig, client: Callable[..., Any]
) -> None:
    for region in REGIONS:
        client("sqs", region).create_queue(QueueName=f"{executor}-{region}")
    client("iam").create_role(RoleName=executor, AssumeRolePolicyDocument="{}")
    shards = shards_for(CATALOG, aws, REGIONS, SEEDED)
    inventory = AwsInventory(CATALOG) if executor == "threads" else None
    listings = list(lister_for(executor, never, 2, inventory).list(shards, lambda _: None))
    assert [one.gap for one in listings if one.gap] == []
    names = {(one.type, found.name, found.region) for one in listings for found in one.objects}
    expected = {("aws_sqs_queue", f"{executor}-{region}", region) for region in REGIONS}
    assert names >= {*expected, ("aws_iam_role", executor, "global")}
    assert sum(one.type == "aws_iam_role" for one in listings) == 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Dask cluster of two processes on this machine."""
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as running:
        yield running


def test_two_workers_of_a_dask_cluster_list_what_threads_list(
    cluster: Any, aws: ProviderConfig, client: Callable[..., Any]
) -> None:
    client("sqs").create_queue(QueueName="jobs")
    shards = shards_for(CATALOG, aws, REGIONS, SEEDED)
    told: list[Shard] = []
    address = cluster.scheduler_address.removeprefix("tcp://")
    by_dask = list(lister_for(f"dask://{address}", never).list(shards, told.append))
    by_threads = list(ThreadLister(worker_inventory(), never).list(shards, lambda _: None))

    def order(one: Listing) -> tuple[str, str]:
        return one.type, one.scope.region

    assert sorted(by_dask, key=order) == sorted(by_threads, key=order)
    assert sorted(told, key=str) == sorted(shards, key=str)


def test_a_defect_on_a_dask_worker_is_a_gap(cluster: Any) -> None:
    address = cluster.scheduler_address.removeprefix("tcp://")
    shards = [MANY[0], shard("defect", "aws_defect")]
    listings = list(DaskLister(address, make_fake, never).list(shards, lambda _: None))
    assert {one.type for one in listings if one.gap} == {"aws_defect"}


def test_an_interrupt_ends_a_listing_on_a_dask_cluster(cluster: Any) -> None:
    address = cluster.scheduler_address.removeprefix("tcp://")
    with pytest.raises(InterruptedRunError):
        list(DaskLister(address, make_fake, lambda: True).list(MANY, lambda _: None))


def test_a_dask_scheduler_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    monkeypatch.setattr("tfguard.inventory.listers._CONNECT_SECONDS", 1)
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        list(lister_for("dask://127.0.0.1:1", never).list(MANY, lambda _: None))
