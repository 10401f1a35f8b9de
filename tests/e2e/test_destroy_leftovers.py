"""A destroy does not call a stack clean while something that its operations made still exists and nobody answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import (
    APPLY,
    DESTROY,
    VPC,
    Run,
    StackFactory,
    head,
    intent,
    operations,
    orphans,
    role,
    settings,
    state_attribute,
    status,
    step,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

IGNORING = (*DESTROY, "--on-gap=ignore", "--reason", "a teardown")


@pytest.fixture
def released(proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run) -> tuple[Path, str]:
    """A stack with an empty state whose only operation is closed, and left a role that was kept and is released."""
    stack = settings(stack_factory(role()), owner="audit")
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (found,) = orphans(tfguard, stack, code=2)["findings"]
    kept = tfguard("orphans", "retain", found["id"], "--for", "1d", "--reason", "audit", cwd=stack)
    assert kept.returncode == 0, kept.stderr
    assert "aws_iam_role.app is still in the configuration: the next apply makes another one" in kept.stderr
    asked = tfguard("apply", "-no-color", cwd=stack, stdin="no\n")
    assert f"aws_iam_role.app is to be created, and aws_iam_role app ({found['id']})" in asked.stderr
    assert "\n1 retained (" in tfguard("orphans", "list", cwd=stack).stdout
    assert tfguard("orphans", "release", found["id"], "--reason", "audit", cwd=stack).returncode == 0
    assert head(stack)["open_operations"] == []
    return stack, found["id"]


def test_a_destroy_of_an_empty_state_stops_at_an_orphan_of_a_closed_operation_and_keeps_open_what_it_ignored(
    released: tuple[Path, str], tfguard: Run, moto: MotoServer
) -> None:
    stack, finding = released
    before = operations(stack)
    applied = tfguard(*APPLY, cwd=stack)
    assert applied.returncode == 11, applied.stdout + applied.stderr
    assert f"aws_iam_role.app left app ({finding}): was kept, and released by" in applied.stderr
    assert operations(stack) == before
    assert status(tfguard, stack, code=11)["next_actions"] == ["tfguard orphans list"]
    shown = tfguard("status", cwd=stack)
    assert f"aws_iam_role.app left app ({finding}): was kept, and released by" in shown.stdout

    stopped = tfguard(*DESTROY, cwd=stack)
    assert stopped.returncode == 11, stopped.stdout + stopped.stderr
    assert f"aws_iam_role.app left app ({finding}): was kept, and released by" in stopped.stderr

    beside = tfguard(*IGNORING, cwd=stack)
    assert beside.returncode == 0, beside.stdout + beside.stderr
    made, destroyed = operations(stack)
    assert head(stack)["open_operations"] == [destroyed]
    document = status(tfguard, stack, code=11)
    assert (document["command"], document["on_gap_reason"]) == ("destroy", "a teardown")
    kept_open = step(document, "aws_iam_role.app")
    assert (kept_open["outcome"], kept_open["finding"]) == ("orphaned", finding)
    assert tfguard(*DESTROY, cwd=stack).returncode == 11

    moto.client("iam").delete_role(RoleName="app")
    done = tfguard(*DESTROY, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not status(tfguard, stack, destroyed, code=0)["open"]
    assert not status(tfguard, stack, made, code=0)["open"]
    assert intent(stack, operations(stack)[-1])["steps"] == [], "what is gone is looked for no more"


def test_what_hangs_on_a_network_and_is_nobodys_is_named_before_the_question(
    stack_factory: StackFactory, tfguard: Run, moto: MotoServer
) -> None:
    subnet = 'resource "aws_subnet" "own" {\n  vpc_id     = aws_vpc.main.id\n  cidr_block = "10.9.1.0/24"\n}\n'
    stack = settings(stack_factory(VPC + subnet))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    network, own = (state_attribute(stack, address, "id") for address in ("aws_vpc.main", "aws_subnet.own"))
    ec2 = moto.client("ec2")
    foreign = ec2.create_subnet(VpcId=network, CidrBlock="10.9.2.0/24")["Subnet"]["SubnetId"]
    card = ec2.create_network_interface(SubnetId=own)["NetworkInterface"]["NetworkInterfaceId"]

    asked = tfguard("destroy", "-no-color", cwd=stack, stdin="no\n")
    assert asked.returncode == 1, asked.stdout + asked.stderr
    assert "on aws_vpc.main hang 2 that no state has" in asked.stderr
    assert f"aws_subnet {foreign}" in asked.stderr
    assert asked.stderr.count(f"aws_network_interface {card}") == 2, "it hangs on the network, and on its own subnet"
    assert f"aws_subnet {own}" not in asked.stderr
    assert "aws_security_group" not in asked.stderr, "the default group goes with its network"
    assert ec2.describe_network_interfaces()["NetworkInterfaces"][0]["NetworkInterfaceId"] == card
