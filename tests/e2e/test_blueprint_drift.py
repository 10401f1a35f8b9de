"""An object of a Ready request is deleted by somebody else: one apply repairs that, and a look sees and counts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from blueprint_places import (
    add_stack,
    document,
    networks,
    statuses,
    world_env,  # noqa: F401 (fixtures)
    world_moto,  # noqa: F401
    world_proxy,  # noqa: F401
)
from helpers import Run

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

BLUEPRINT = """\
apiVersion: tfguard/v1
kind: Blueprint
name: drift
owner: team
steps:
  network: {stack: stacks/network}
  tell:    {run: [sh, -c, "echo $ID >>told"], environment: {ID: "${steps.network.outputs.id}"}, idempotent: true,
            needs: [network]}
"""
NETWORK = """
resource "aws_vpc" "main" {
  cidr_block = "10.8.0.0/16"
}
output "id" {
  value = aws_vpc.main.id
}
"""


def test_what_vanished_is_made_anew_by_one_apply_and_seen_and_counted_by_a_look(
    workdir: Path,
    seed: Path,
    proxy: FaultProxy,  # noqa: ARG001 (an empty account)
    moto: MotoServer,
    tfguard: Run,
) -> None:
    file = workdir / "drift" / "drift.yaml"
    add_stack(file, "network", NETWORK, seed)
    file.write_text(BLUEPRINT)
    words = ("blueprint", "apply", str(file), "--yes", "--skip-check=stacks=one alone", "--format", "json")
    assert document(tfguard(*words), code=0)["ready_now"]
    (first,) = networks(moto)
    moto.client("ec2").delete_vpc(VpcId=first)

    again = document(tfguard(*words), code=0)
    assert again["ready_now"] and statuses(again) == {"network": "ok", "tell": "ok"}
    (second,) = networks(moto)
    assert second != first
    assert (file.parent / "told").read_text().split() == [first, second], "what builds on it is done again"

    moto.client("ec2").delete_vpc(VpcId=second)
    seen = document(tfguard("blueprint", "status", str(file), "--probe", "--format", "json"), code=11)
    assert (seen["state"], seen["ready_now"]) == ("Ready", False)
    assert "aws_vpc.main" in seen["steps"][0]["why"]
    counted = tfguard("metrics", "--blueprint", str(file)).stdout.splitlines()
    (line,) = [line for line in counted if line.startswith("tfguard_blueprint_ready_not_now")]
    assert line.endswith(" 1")
