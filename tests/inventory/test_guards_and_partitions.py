"""Whose account is asked, and where: the guard of an account, and the endpoints of each partition."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from botocore import configloader

from tfguard.catalog.loader import load_catalog
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.aws_access import AwsAccesses
from tfguard.inventory.aws_listing import AwsLister
from tfguard.model.plan import ProviderConfig

Block = Callable[..., ProviderConfig]
GUARD = {"allowed_account_ids__0": "999999999999"}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, "the credentials are those of account 123456789012"),
        ({"endpoints__sts": "http://127.0.0.1:1"}, "EndpointConnectionError on GetCallerIdentity"),
        (
            {"skip_requesting_account_id": "true", "endpoint_url": "", "endpoints__ec2": "SERVER"},
            "may not be asked for",
        ),
        ({"profile": "absent", "access_key": ""}, "ProfileNotFound on preparing to ask ec2"),
        ({"assume_role_with_web_identity__role_arn": "arn:aws:iam::999999999999:role/r"}, "is not supported"),
    ],
)
def test_an_account_that_is_not_known_to_be_the_wanted_one_is_a_gap_of_that_one(
    inventory: AwsInventory, aws_server: str, block: Block, more: dict[str, str], reason: str
) -> None:
    settings = {"endpoint_url": aws_server, **GUARD, **more}
    given = {name: aws_server if value == "SERVER" else value for name, value in settings.items()}
    listing = inventory.list("aws_vpc", block(**given))
    assert (listing.objects, listing.scope.account) == ((), "999999999999")
    assert listing.gap is not None
    assert listing.gap.scope == "aws 999999999999 eu-west-1 aws_vpc"
    assert reason in listing.gap.reason


@pytest.mark.parametrize(
    ("region", "endpoints"),
    [
        ("eu-west-1", ("https://iam.amazonaws.com", "https://sqs.eu-west-1.amazonaws.com")),
        ("us-gov-east-1", ("https://iam.us-gov.amazonaws.com", "https://sqs.us-gov-east-1.amazonaws.com")),
        ("cn-northwest-1", ("https://iam.cn-north-1.amazonaws.com.cn", "https://sqs.cn-northwest-1.amazonaws.com.cn")),
    ],
)
def test_each_partition_is_asked_at_its_own_endpoints(
    block: Block, monkeypatch: pytest.MonkeyPatch, region: str, endpoints: tuple[str, str]
) -> None:
    catalog = load_catalog()
    asked: list[str] = []
    lister = AwsLister(catalog)
    provider = block(region=region, skip_requesting_account_id="true")
    monkeypatch.setattr(
        "tfguard.inventory.aws_listing._items",
        lambda _entry, place, _parents, _failures: (asked.append(place.client.meta.endpoint_url), iter(()))[1],
    )
    for name in ("aws_iam_role", "aws_sqs_queue"):
        entry = catalog.get(name)
        assert entry is not None
        lister.list(entry, provider, None if entry.is_global else region)
    assert tuple(asked) == endpoints


def test_a_role_without_credentials_to_assume_it_with_is_told_as_missing_credentials(
    inventory: AwsInventory, aws_server: str, block: Block
) -> None:
    role = {"assume_role__role_arn": "arn:aws:iam::999999999999:role/scan"}
    without = {"access_key": "", "secret_key": "", "endpoint_url": aws_server}
    listing = inventory.list("aws_vpc", block(**role, **without, **GUARD))
    assert listing.gap is not None
    assert listing.gap.reason == "NoCredentialsError on GetCallerIdentity"


def test_threads_that_ask_for_the_region_at_once_wait_for_the_profiles_to_be_read(
    block: Block, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "credentials").write_text("[blue]\nregion = sa-east-1\naws_access_key_id = a\n")
    provider = block(
        profile="blue", region="", access_key="", shared_credentials_files__0=str(tmp_path / "credentials")
    )
    access = AwsAccesses(load_catalog()).of(provider.settings)
    half_read, asked, parse = threading.Event(), threading.Event(), configloader.raw_config_parse

    def slow(path: str, *more: object) -> object:
        if path.endswith("credentials"):  # the last of the two files
            half_read.set()
            asked.wait(2)  # the other one has its answer by then, or waits for this one
        return parse(path, *more)

    monkeypatch.setattr("botocore.configloader.raw_config_parse", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(access.region)
        half_read.wait(10)
        second = pool.submit(access.region)
        second.add_done_callback(lambda _: asked.set())
        assert (first.result(), second.result()) == ("sa-east-1", "sa-east-1")


def test_without_a_region_the_gap_is_still_one_of_the_wanted_account(inventory: AwsInventory, block: Block) -> None:
    listing = inventory.list("aws_vpc", block(region="", **GUARD))
    assert (listing.objects, listing.scope.account) == ((), "999999999999")
