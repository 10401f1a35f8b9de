"""The shipped network with a host: it fails halfway, is cancelled, is taken away, and says each time how it stands."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from blueprint_places import (
    SEARCH_PATH,
    add_stack,
    addresses,
    document,
    events,
    instances,
    networks,
    objects,
    shipped,
    status,
    statuses,
    world_moto,  # noqa: F401 (fixtures)
    world_proxy,  # noqa: F401
)
from helpers import Json, Run, Start, in_flight, wait_until

from fixtures.aws_sim import MotoServer
from fixtures.chaos.world import World
from fixtures.fault_proxy import FaultProxy
from fixtures.probe_servers import say, web_server

pytestmark = pytest.mark.e2e

IMAGE = "ami-12c6146b"
ADDRESS = """
resource "aws_eip" "entry" {
  domain = "vpc"
}
"""
STEP = """  entry:
    stack: stacks/entry
    on_failure: retain
    retain_for: 7d

ready:"""


QUICKLY = "--skip-check=stacks=planned when they are applied"


class Site:
    """The blueprint in a folder, with a service on this machine in place of the one on the host."""

    def __init__(self, file: Path, tfguard: Run, port: str) -> None:
        self.file, self._tfguard, self._port = file, tfguard, port

    @property
    def applying(self) -> tuple[str, ...]:
        """The words of an apply."""
        given = {"image": IMAGE, "service_address": "127.0.0.1", "port": self._port}
        return (*self.words("apply"), "--yes", QUICKLY, *(f"--input={name}={value}" for name, value in given.items()))

    @property
    def actor(self) -> str:
        """Who has asked for it."""
        return str(events(self.file)[0]["actor"])

    def words(self, verb: str) -> tuple[str, ...]:
        """The words of another command, with its result as JSON."""
        return ("blueprint", verb, str(self.file), "--format", "json")

    def apply(self, *, code: int) -> Json:
        """How it stands after an apply, which must give this exit code."""
        return document(self._tfguard(*self.applying), code=code)

    def destroy(self, *options: str, code: int) -> Json:
        """How it stands after a destroy, which must give this exit code."""
        return document(self._tfguard(*self.words("destroy"), "--yes", *options), code=code)

    def status(self, *, code: int) -> Json:
        """How it stands now, which must give this exit code."""
        return status(self._tfguard, self.file, code=code)


@pytest.fixture
def run_env(world: World) -> dict[str, str]:
    return world.environment | {"PATH": f"{SEARCH_PATH}:{world.environment['PATH']}"}


@pytest.fixture
def site(workdir: Path, seed: Path, proxy: FaultProxy, tfguard: Run) -> Iterator[Site]:  # noqa: ARG001 (an empty account)
    def answer(request: BaseHTTPRequestHandler) -> None:
        say(request, body=b"up\n") if request.path == "/health" else say(request, 404)

    with web_server(answer) as place:
        yield Site(shipped("network-and-hosts", workdir, seed), tfguard, place.rpartition(":")[2])


def test_when_the_instance_fails_only_it_is_an_error_and_a_destroy_leaves_what_is_retained(
    site: Site, seed: Path, proxy: FaultProxy, moto: MotoServer
) -> None:
    site.file.write_text(site.file.read_text().replace("ready:", STEP))
    add_stack(site.file, "entry", ADDRESS, seed)
    proxy.add_rule("deny", action="RunInstances", count=None)

    told = site.apply(code=11)
    assert told["state"] == "PartialFailure"
    expected = {"network": "ok", "instance": "error", "bootstrap": "pending", "entry": "retained"}
    assert statuses(told) == expected
    blocked = {step["id"]: step["blocked_by"] for step in told["steps"]}
    assert blocked["bootstrap"] == ["instance"]
    assert [(probe["name"], probe["status"]) for probe in told["probes"]] == [("service", "pending")]
    assert objects(told, "network")["aws_vpc"] in networks(moto)
    assert (instances(moto), len(addresses(moto))) == ([], 1)

    told = site.destroy(code=11)
    assert told["state"] == "RetainedForReview"
    gone = {"network": "destroyed", "instance": "absent", "bootstrap": "absent"}
    assert statuses(told) == {**gone, "entry": "retained"}
    assert (networks(moto), len(addresses(moto))) == ([], 1)

    told = site.destroy("--dispose", code=0)
    assert (told["state"], statuses(told)["entry"]) == ("Cleaned", "destroyed")
    assert addresses(moto) == []


def test_what_was_set_up_on_a_host_is_gone_only_when_the_host_is(
    site: Site, proxy: FaultProxy, moto: MotoServer
) -> None:
    told = site.apply(code=0)
    assert (told["state"], set(statuses(told).values())) == ("Ready", {"ok"})
    assert [objects(told, "instance")["aws_instance"]] == instances(moto)
    (sent,) = moto.client("ssm").list_commands()["Commands"]
    assert (sent["InstanceIds"], sent["DocumentName"]) == (instances(moto), "AWS-RunShellScript")

    proxy.add_rule("deny", action="TerminateInstances", count=None)
    told = site.destroy(code=11)
    assert told["state"] == "Settled"
    assert statuses(told) == {"network": "ok", "instance": "error", "bootstrap": "ok"}
    assert (len(networks(moto)), len(instances(moto))) == (1, 1)

    proxy.clear()
    told = site.destroy(code=0)
    assert told["state"] == "Cleaned"
    assert statuses(told) == {"network": "destroyed", "instance": "destroyed", "bootstrap": "destroyed"}
    assert (networks(moto), instances(moto)) == ([], [])
    order = [event["step"] for event in events(site.file) if event.get("status") == "destroyed"]
    assert order == ["instance", "bootstrap", "network"]


@pytest.mark.parametrize("by", ["another terminal", "an interrupt"])
def test_a_cancel_in_the_middle_of_a_slow_create_begins_nothing_new_and_knows_what_was_made(
    site: Site, proxy: FaultProxy, moto: MotoServer, tfguard_popen: Start, by: str
) -> None:
    proxy.add_rule("delay:300", action="CreateVpc")
    running = tfguard_popen(*site.applying)
    in_flight(proxy, "CreateVpc")
    if by == "an interrupt":
        running.send_signal(signal.SIGINT)
        reason = "interrupted by a signal"
    else:
        asked = tfguard_popen(*site.words("cancel"), "--reason", "not needed")
        reason = f"cancelled by {site.actor}: not needed"
    wait_until(lambda: events(site.file)[-1].get("state") == "CancelPending", 120)
    assert running.poll() is None, "it waits for what runs"
    proxy.release()
    out, err = running.communicate(timeout=300)
    assert running.returncode == 11, out + err
    told = site.status(code=11)
    assert told["state"] == "Settled"
    assert statuses(told) == {"network": "ok", "instance": "pending", "bootstrap": "pending"}
    assert [objects(told, "network")["aws_vpc"]] == networks(moto)
    assert [change["why"] for change in told["transitions"] if change["to"] == "CancelPending"] == [reason]
    if by != "an interrupt":
        out, err = asked.communicate(timeout=300)
        assert (asked.returncode, json.loads(out)["state"]) == (11, "Settled"), err
        assert "asked the tfguard that works on it to stop" in err

    told = site.destroy(code=0)
    assert (told["state"], statuses(told)["network"]) == ("Cleaned", "destroyed")
    assert networks(moto) == []
