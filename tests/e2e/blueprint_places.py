"""Blueprints in a test's folder, ready to run, in a world of which the provider is kept up; and readers of what a
request has left on disk and tells on stdout."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import Json, Run

from fixtures.aws_sim import REGION, MotoServer
from fixtures.chaos.world import World
from fixtures.fault_proxy import FaultProxy
from fixtures.terraform_env import plant

SHIPPED = Path(__file__).parents[2] / "blueprints"
# The scripts of a blueprint are run by the python3 that has tfguard's own dependencies.
SEARCH_PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
_PROVIDER = f'provider "aws" {{\n  region = "{REGION}"\n  s3_use_path_style = true\n}}\n'


@pytest.fixture(name="proxy")
def world_proxy(world: World) -> FaultProxy:
    """The way to an account that is empty."""
    world.reset()
    return world.proxy


@pytest.fixture(name="moto")
def world_moto(world: World) -> MotoServer:
    """The simulated account."""
    return world.moto


@pytest.fixture(name="run_env")
def world_env(world: World) -> dict[str, str]:
    """The environment in which tfguard and the engine reach that account, through the provider that is up."""
    return dict(world.environment)


def shipped(name: str, folder: Path, seed: Path) -> Path:
    """Copy a shipped blueprint below a folder, with the provider in each of its stacks; returns its file."""
    shutil.copytree(SHIPPED / name, folder / name)
    return furnish(folder / name / "blueprint.yaml", seed)


def furnish(file: Path, seed: Path) -> Path:
    """Give each stack beside a blueprint its provider, and all of them settings for a test; returns the file."""
    for stack in (file.parent / "stacks").iterdir():
        (stack / "providers.tf").write_text(_PROVIDER)
        plant(seed, stack)
    (file.parent / "tfguard.yaml").write_text("consistency_grace: 0s\n")
    return file


def add_stack(file: Path, name: str, body: str, seed: Path) -> None:
    """Put one more stack beside a blueprint."""
    stack = file.parent / "stacks" / name
    stack.mkdir(parents=True)
    shutil.copy(SHIPPED / "static-site" / "stacks" / "bucket" / "versions.tf", stack)
    (stack / "main.tf").write_text(body)
    furnish(file, seed)


def status(tfguard: Run, file: Path, *, code: int) -> Json:
    """What `blueprint status --format json` tells, which must give this exit code."""
    return document(tfguard("blueprint", "status", str(file), "--format", "json"), code=code)


def document(done: subprocess.CompletedProcess[str], *, code: int) -> Json:
    """The JSON that a command has printed, which must have given this exit code."""
    assert done.returncode == code, done.stdout + done.stderr
    found: Json = json.loads(done.stdout)
    return found


def statuses(told: Json) -> dict[str, str]:
    """The status of each step in a status document."""
    return {step["id"]: step["status"] for step in told["steps"]}


def objects(told: Json, step: str) -> dict[str, str]:
    """The observed ids of the objects of a step, by type."""
    found = next(one for one in told["steps"] if one["id"] == step)
    return {one["type"]: one["observed_id"] for one in found["objects"] if one["disposition"] is None}


def events(file: Path) -> list[Json]:
    """The whole lines of the journal of the only request that a blueprint has; none while there is no request."""
    paths = list((file.parent / f"{file.stem}.tfguard" / "requests").glob("*/events.jsonl"))
    text = paths[0].read_text() if paths else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def networks(moto: MotoServer) -> list[str]:
    """The ids of the VPCs that another client sees, without the default one."""
    found: list[dict[str, Any]] = moto.client("ec2").describe_vpcs()["Vpcs"]
    return [one["VpcId"] for one in found if not one["IsDefault"]]


def instances(moto: MotoServer) -> list[str]:
    """The ids of the instances that another client sees running."""
    reservations = moto.client("ec2").describe_instances()["Reservations"]
    found = [one for reservation in reservations for one in reservation["Instances"]]
    return [one["InstanceId"] for one in found if one["State"]["Name"] not in ("terminated", "shutting-down")]


def addresses(moto: MotoServer) -> list[str]:
    """The ids of the elastic addresses that another client sees."""
    return [one["AllocationId"] for one in moto.client("ec2").describe_addresses()["Addresses"]]
