"""What the real provider writes into a state is what the catalogue lists: the same ids, ARNs and keys, no object more.

Each file below `states` is one stack.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fixtures.aws_sim import ACCESS_KEY, REGION, SECRET_KEY, MotoServer
from fixtures.terraform_env import plant, terraform_environment, write_stack
from tfguard.catalog.loader import load_catalog
from tfguard.engine.state import read_state_file
from tfguard.inventory.aws import AwsInventory
from tfguard.model.inventory import CloudObject, Listing
from tfguard.model.plan import ProviderConfig
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.reconcile.matching import same_object
from tfguard.reconcile.state_index import StateIndex

STACKS = sorted((Path(__file__).parent / "states").glob("*.tf"))
ACCOUNT = "123456789012"
CATALOG = load_catalog()

# What the simulation itself tells otherwise than AWS does.
ODD_ARNS = {"aws_vpc_dhcp_options"}  # the provider makes it of an OwnerId that is not answered

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Applied:
    """A stack that was applied in an account of its own, and what that holds afterwards."""

    state: StateSnapshot
    attributes: dict[str, dict[str, Any]]
    listings: dict[str, Listing]


@pytest.fixture(scope="module", params=STACKS, ids=[path.stem for path in STACKS])
def applied(
    request: pytest.FixtureRequest, engine: Path, seed: Path, cli_config: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Applied]:
    """A stack in a simulated AWS."""
    with MotoServer() as moto:
        stack = write_stack(tmp_path_factory.mktemp("applied"), request.param.read_text())
        plant(seed, stack)
        environment = terraform_environment(cli_config, endpoint=moto.url)
        command = [str(engine), "apply", "-auto-approve", "-no-color"]
        for at_once in (16, 1):
            moto.reset()
            (stack / "terraform.tfstate").unlink(missing_ok=True)
            words = [*command, f"-parallelism={at_once}"]
            done = subprocess.run(words, cwd=stack, env=environment, capture_output=True, text=True, check=False)
            # The simulation is not made for many calls at once: at times it makes an object and answers with an error,
            # so that the second try of the SDK is refused.
            if done.returncode == 0:
                break
        assert done.returncode == 0, done.stderr
        state = read_state_file(stack / "terraform.tfstate", CATALOG)
        settings = {"region": REGION, "endpoint_url": moto.url, "access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
        provider = ProviderConfig("aws", "registry.terraform.io/hashicorp/aws", settings)
        services = {entry.service for instance in state.instances if (entry := CATALOG.get(listed_type(instance)))}
        types = [entry.type for entry in CATALOG if entry.list and entry.service in services]
        listings = {found.type: found for found in AwsInventory(CATALOG).list_many(types, provider)}
        yield Applied(state, attributes_in(stack / "terraform.tfstate"), listings)


def listed_type(instance: StateInstance) -> str:
    """The type under which an instance's object is listed."""
    return CATALOG.canonical(instance.type)


def attributes_in(state: Path) -> dict[str, dict[str, Any]]:
    """Every attribute of every instance, by its address."""
    resources = [one for one in json.loads(state.read_text())["resources"] if one["mode"] == "managed"]
    return {f"{one['type']}.{one['name']}": one["instances"][0]["attributes"] for one in resources}


def objects_of(applied: Applied, instance: StateInstance) -> list[CloudObject]:
    """The listed objects that are this instance's, by the catalogue's keys."""
    kind = CATALOG.get(listed_type(instance))
    assert kind is not None
    return [found for found in applied.listings[kind.type].objects if same_object(kind, instance.identity, found)]


def listed_instances(applied: Applied) -> list[StateInstance]:
    """The instances of the types that can be listed."""
    return [one for one in applied.state.instances if listed_type(one) in applied.listings]


def test_every_instance_is_listed_once_with_the_values_of_the_state(applied: Applied) -> None:
    wrong = []
    for instance in listed_instances(applied):
        attributes = applied.attributes[instance.address]
        found = objects_of(applied, instance)
        if len(found) != 1:
            wrong.append(f"{instance.address} is {len(found)} objects")
            continue
        (one,) = found
        told: dict[str, object] = {"id": one.id, **one.identity}
        if attributes.get("arn") and instance.type not in ODD_ARNS:
            told["arn"] = one.arn
        known = {"id": attributes["id"], "arn": attributes.get("arn"), **instance.identity}
        wrong += [
            f"{instance.address}.{name}: the state has {known[name]}, the list {value}"
            for name, value in told.items()
            if name in known and known[name] != value
        ]
    assert wrong == []


def test_every_instance_is_found_where_its_object_is(applied: Applied) -> None:
    index, wrong = StateIndex(CATALOG), []
    index.add("here", "default", applied.state)
    for instance in listed_instances(applied):
        for one in objects_of(applied, instance):
            if (instance.account or one.account) != one.account or (instance.region or one.region) != one.region:
                wrong.append(f"{instance.address} says that it is in {instance.account} {instance.region}")
            if index.match(one) is None and index.alone(one) is None:
                wrong.append(f"{instance.address} is not told to be {one.import_id}")
    assert wrong == []


def test_nothing_is_left_over_that_nobody_made(applied: Applied) -> None:
    claimed = {found.key for instance in listed_instances(applied) for found in objects_of(applied, instance)}
    owned = {(one.type, one.value) for instance in applied.state.instances for one in instance.owned}
    left = [
        f"{found.type} {found.import_id}"
        for listing in applied.listings.values()
        for found in listing.objects
        if found.key not in claimed
        and not any((found.type, value) in owned for value in found.identity.values())
        and not (found.ignored_because or found.made_by or found.owner not in (None, ACCOUNT))
    ]
    assert left == []
