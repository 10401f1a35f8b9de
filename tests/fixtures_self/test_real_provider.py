"""The real engine with the real AWS provider, through the proxy: what the faults do to an apply."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.terraform_env import s3_backend

pytestmark = pytest.mark.e2e

ROLE = """
resource "aws_iam_role" "app" {
  name = "app"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "ec2.amazonaws.com" } }]
  })
}
"""
VPC = """
resource "aws_vpc" "main" {
  cidr_block = "10.9.0.0/16"
}
"""
QUEUE = """
resource "aws_sqs_queue" "jobs" {
  name = "jobs"
}
"""
BUCKET = """
resource "aws_s3_bucket" "logs" {
  bucket = "audit-logs"
}
"""
APPLY = ("apply", "-auto-approve", "-input=false", "-no-color")


def addresses(stack: Path) -> set[str]:
    """The addresses in a local state."""
    state: dict[str, Any] = json.loads((stack / "terraform.tfstate").read_text())
    return {f"{resource['type']}.{resource['name']}" for resource in state["resources"]}


def vpcs(moto: MotoServer) -> int:
    """How many VPCs of the stack's range exist."""
    return len(moto.client("ec2").describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.9.0.0/16"]}])["Vpcs"])


def test_four_protocols_apply_through_the_proxy(proxy: FaultProxy, stack_factory: Any, tf: Any) -> None:
    stack = stack_factory(ROLE + VPC + QUEUE + BUCKET)
    tf(*APPLY, cwd=stack, env={"TF_APPEND_USER_AGENT": "tfguard/01JTEST"})
    assert addresses(stack) == {"aws_iam_role.app", "aws_vpc.main", "aws_sqs_queue.jobs", "aws_s3_bucket.logs"}
    created = [action for action in proxy.log.actions(mutating=True) if action.startswith("Create")]
    assert sorted(created) == ["CreateBucket", "CreateQueue", "CreateRole", "CreateVpc"]
    assert "tfguard/01JTEST" in (proxy.log.entries("CreateRole")[0].user_agent or "")


def test_dropped_create_role_fails_the_apply_with_the_role_there(
    moto: MotoServer, proxy: FaultProxy, stack_factory: Any, tf: Any
) -> None:
    proxy.add_rule("drop", action="CreateRole")
    stack = stack_factory(ROLE)
    done = tf(*APPLY, cwd=stack, check=False)
    assert done.returncode == 1
    assert "EntityAlreadyExists" in done.stderr
    assert [role["RoleName"] for role in moto.client("iam").list_roles()["Roles"]] == ["app"]
    assert addresses(stack) == set()
    assert len(proxy.log.entries("CreateRole")) == 2


def test_dropped_create_vpc_makes_a_second_one_behind_a_success(
    moto: MotoServer, proxy: FaultProxy, stack_factory: Any, tf: Any
) -> None:
    proxy.add_rule("drop", action="CreateVpc")
    stack = stack_factory(VPC)
    assert tf(*APPLY, cwd=stack).returncode == 0
    assert vpcs(moto) == 2
    assert addresses(stack) == {"aws_vpc.main"}


def test_dropped_create_bucket_fails_the_apply_with_the_bucket_there(
    moto: MotoServer, proxy: FaultProxy, stack_factory: Any, tf: Any
) -> None:
    proxy.add_rule("drop", action="CreateBucket")
    # In us-east-1 a second create of one's own bucket succeeds, so the loss would not show.
    stack = stack_factory(BUCKET, region="eu-west-1")
    done = tf(*APPLY, cwd=stack, check=False)
    assert done.returncode == 1
    assert "BucketAlreadyOwnedByYou" in done.stderr
    assert [bucket["Name"] for bucket in moto.client("s3").list_buckets()["Buckets"]] == ["audit-logs"]
    assert addresses(stack) == set()


def test_cut_create_vpc_fails_the_apply_with_the_vpc_there(
    moto: MotoServer, proxy: FaultProxy, stack_factory: Any, tf: Any
) -> None:
    proxy.add_rule("cut", action="CreateVpc")
    stack = stack_factory(VPC)
    # A reply that begins and breaks off is not retried, unlike one that never begins.
    assert tf(*APPLY, cwd=stack, check=False).returncode == 1
    assert len(proxy.log.entries("CreateVpc")) == 1
    assert vpcs(moto) == 1
    assert addresses(stack) == set()


def test_engine_killed_during_a_delay_leaves_a_role_that_no_state_knows(
    moto: MotoServer, proxy: FaultProxy, stack_factory: Any, engine: Path, run_env: dict[str, str]
) -> None:
    proxy.add_rule("delay:60", action="CreateRole")
    stack = stack_factory(ROLE)
    running = subprocess.Popen([engine, *APPLY], cwd=stack, env=run_env, stdout=subprocess.DEVNULL)
    proxy.wait_for("CreateRole")
    running.kill()
    assert running.wait() == -signal.SIGKILL
    assert proxy.log.wait_until(lambda: proxy.log.entries("CreateRole")[0].client_gone)
    assert [role["RoleName"] for role in moto.client("iam").list_roles()["Roles"]] == ["app"]
    assert (stack / "terraform.tfstate").read_text() == ""


def test_denied_read_taints_the_role(proxy: FaultProxy, stack_factory: Any, tf: Any) -> None:
    proxy.add_rule("deny", action="GetRole", count=None)
    stack = stack_factory(ROLE)
    assert tf(*APPLY, cwd=stack, check=False).returncode == 1
    state = json.loads((stack / "terraform.tfstate").read_text())
    assert state["resources"][0]["instances"][0]["status"] == "tainted"


def test_s3_backend_keeps_its_state_and_its_lock_in_the_bucket(
    moto: MotoServer, proxy: FaultProxy, stack_factory: Any, tf: Any
) -> None:
    moto.client("s3").create_bucket(Bucket="state")
    stack = stack_factory(VPC, backend=s3_backend("state", "net/terraform.tfstate"))
    tf(*APPLY, cwd=stack)
    assert [item["Key"] for item in moto.client("s3").list_objects_v2(Bucket="state")["Contents"]] == [
        "net/terraform.tfstate"
    ]
    assert "/state/net/terraform.tfstate.tflock" in {entry.path for entry in proxy.log.entries("PutObject")}


def test_provider_alias_works_in_its_own_region(proxy: FaultProxy, stack_factory: Any, tf: Any) -> None:
    stack = stack_factory(VPC.replace("{", "{\n  provider = aws.eu", 1), aliases={"eu": "eu-west-1"})
    tf(*APPLY, cwd=stack)
    assert {entry.region for entry in proxy.log.entries("CreateVpc")} == {"eu-west-1"}
