"""A request that is killed at each of its transitions: what comes next brings it to Ready, and nothing is made twice.

The same sample in every run of CI; `TFGUARD_KILLS=all` takes every transition, with and without what it has started.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from blueprint_places import (
    add_stack,
    document,
    events,
    networks,
    objects,
    statuses,
    world_env,  # noqa: F401 (fixtures)
    world_moto,  # noqa: F401
    world_proxy,  # noqa: F401
)
from helpers import Run, Start, in_flight, wait_until

from fixtures.aws_sim import MotoServer
from fixtures.chaos.world import World
from fixtures.fault_proxy import FaultProxy
from fixtures.leftovers import end_processes_in

pytestmark = pytest.mark.e2e

BLUEPRINT = """\
apiVersion: tfguard/v1
kind: Blueprint
name: five
owner: team
steps:
  network: {stack: stacks/network}
  routes:  {stack: stacks/routes, needs: [network], vars: {vpc_id: "${steps.network.outputs.id}"}}
  note:    {run: [sh, -c, "echo noted >>noted"], check: [test, -e, noted], needs: [network], owned_by: network}
  tell:    {run: [sh, -c, "echo $ID >told"], environment: {ID: "${steps.network.outputs.id}"}, idempotent: true,
            needs: [note]}
  service: {probe: {command: [test, -s, told]}, needs: [routes, tell]}
ready: {inventory: true}
"""
NETWORK = """
resource "aws_vpc" "main" {
  cidr_block = "10.9.0.0/16"
}
output "id" {
  value = aws_vpc.main.id
}
"""
ROUTES = """
variable "vpc_id" {
  type = string
}
resource "aws_route_table" "main" {
  vpc_id = var.vpc_id
}
"""
# The journal of a request that nothing stops has 15 lines: what was skipped, two states, two for each step, one more
# for the check of `note`, and Ready. Before its first line there is the request alone.
LINES = range(16)
NETWORK_RUNS, ROUTES_RUN = range(4, 5), range(6, 12)
SEED = "blueprint"
QUICKLY = "--skip-check=stacks=planned when they are applied"


def kills() -> list[tuple[int, bool]]:
    """After which line of the journal to kill, and whether all that was started is killed, too."""
    if os.environ.get("TFGUARD_KILLS") == "all":
        return [(line, everything) for line in LINES for everything in (False, True)]
    # One with all that was started, in the middle of a create, and one without.
    chance = random.Random(SEED)
    return [(chance.choice((*NETWORK_RUNS, *ROUTES_RUN)), True), (chance.choice(LINES), False)]


@pytest.fixture
def file(workdir: Path, seed: Path, proxy: FaultProxy) -> Path:  # noqa: ARG001 (an empty account)
    path = workdir / "five" / "five.yaml"
    for name, body in (("network", NETWORK), ("routes", ROUTES)):
        add_stack(path, name, body, seed)
    path.write_text(BLUEPRINT)
    return path


def route_tables(moto: MotoServer) -> list[str]:
    """The ids of the route tables that another client sees, without those that every VPC has."""
    found = moto.client("ec2").describe_route_tables()["RouteTables"]
    return [one["RouteTableId"] for one in found if not any(link["Main"] for link in one["Associations"])]


@pytest.mark.parametrize(("line", "everything"), kills(), ids=str)
def test_a_request_that_is_killed_at_any_transition_ends_ready_with_no_object_twice(
    line: int,
    everything: bool,
    file: Path,
    world: World,
    moto: MotoServer,
    workdir: Path,
    tfguard: Run,
    tfguard_popen: Start,
) -> None:
    chance = random.Random(f"{SEED}/{line}")
    slow = "CreateVpc" if line in NETWORK_RUNS else "CreateRouteTable" if line in ROUTES_RUN else None
    if slow and everything:
        world.proxy.add_rule("delay:300", action=slow)
    # An engine that is killed takes a provider of its own along; else the one that is up is quicker.
    environment = world.environment_to_kill if everything else world.environment
    running = tfguard_popen("blueprint", "apply", str(file), "--yes", QUICKLY, env=environment)
    requests = file.parent / "five.tfguard" / "requests"

    def there() -> bool:
        return any(requests.glob("*/request.json")) and len(events(file)) >= line

    # One that has ended comes no further.
    wait_until(lambda: there() or running.poll() is not None, 300)
    assert there(), running.communicate()
    if slow and everything and chance.random() < 0.7:
        in_flight(world.proxy, slow)
    running.kill()
    assert running.wait() in (-signal.SIGKILL, 0), "0 only after its last line"
    while everything and end_processes_in(workdir):
        pass
    world.proxy.release()
    world.proxy.clear()
    if line == LINES[-1]:
        assert events(file)[-1]["state"] == "Ready", "there are more transitions than are tried"

    done = tfguard("blueprint", "resume", str(file), "--yes", QUICKLY, "--format", "json")
    told = document(done, code=0)
    assert (told["state"], set(statuses(told).values())) == ("Ready", {"ok"})
    assert [objects(told, "network")["aws_vpc"]] == networks(moto)
    assert [objects(told, "routes")["aws_route_table"]] == route_tables(moto)
    assert (file.parent / "noted").read_text() == "noted\n"
    assert (file.parent / "told").read_text().split() == networks(moto)
