"""Where a run works: a place that the plan does not tell is never guessed, and a look elsewhere is no answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import (
    APPLY,
    VPC,
    Run,
    StackFactory,
    Start,
    engine_pid,
    in_flight,
    intent,
    kill,
    kinds,
    operations,
    orphans,
    provider_pid,
    role,
    runs,
    settings,
    state_attribute,
    status,
    step,
    wait_until,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

DERIVED = 'replace(var.region, "us-east-1", "eu-west-1")'
GROUP = """
resource "aws_cloudwatch_log_group" "app" {
  name = "app"
}
"""
HERE, ELSEWHERE = {"AWS_REGION": "eu-west-1"}, {"AWS_REGION": "us-west-2"}


def in_region(stack: Path, region: str) -> Path:
    """The stack with a provider whose region is this expression over a variable."""
    (stack / "providers.tf").write_text(
        f'variable "region" {{\n  default = "us-east-1"\n}}\nprovider "aws" {{\n  region = {region}\n}}\n'
    )
    return stack


def vpcs(moto: MotoServer, region: str) -> set[str]:
    """The VPCs that were made there."""
    client = moto.client("ec2", region=region)
    found: list[dict[str, Any]] = client.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.9.0.0/16"]}])["Vpcs"]
    return {item["VpcId"] for item in found}


@pytest.mark.parametrize(("fault", "code", "outcome", "made"), [("drop", 0, "recorded", 2), ("cut", 1, "unknown", 1)])
def test_a_region_that_the_plan_does_not_tell_is_a_gap_with_a_line_for_tfguard_yaml(
    moto: MotoServer,
    proxy: FaultProxy,
    stack_factory: StackFactory,
    tfguard: Run,
    fault: str,
    code: int,
    outcome: str,
    made: int,
) -> None:
    stack = settings(in_region(stack_factory(VPC), DERIVED))
    proxy.add_rule(fault, action="CreateVpc")
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == code, done.stdout + done.stderr
    assert len(vpcs(moto, "eu-west-1")) == made
    warning = next(line for line in done.stderr.splitlines() if "no baseline of aws_vpc" in line)
    assert "providers: {aws: {region: ...}}" in warning
    document = status(tfguard, stack, code=0 if outcome == "recorded" else 11)
    assert [item["outcome"] for item in document["steps"]] == [outcome]
    assert "providers: {aws: {region: ...}}" in json.dumps(document["gaps"])


def test_a_region_from_tfguard_yaml_shows_the_second_vpc(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(in_region(stack_factory(VPC), DERIVED), providers="{aws: {region: eu-west-1}}")
    proxy.add_rule("drop", action="CreateVpc")
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 0, done.stderr
    assert "no baseline" not in done.stderr
    found = step(status(tfguard, stack, code=11), "aws_vpc.main")
    held = state_attribute(stack, "aws_vpc.main", "id")
    (stray,) = vpcs(moto, "eu-west-1") - {held}
    assert found["outcome"] == "duplicated"
    assert {seen["id"]: (seen["in_state"], seen["region"]) for seen in found["observed"]} == {
        held: (True, "eu-west-1"),
        stray: (False, "eu-west-1"),
    }


def test_a_region_that_is_a_variable_and_nothing_else_needs_no_line(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(in_region(stack_factory(VPC), "var.region"))
    (stack / "some.auto.tfvars").write_text('region = "eu-west-1"\n')
    proxy.add_rule("drop", action="CreateVpc")
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 0, done.stderr
    assert "no baseline" not in done.stderr
    assert len(vpcs(moto, "eu-west-1")) == 2
    found = step(status(tfguard, stack, code=11), "aws_vpc.main")
    assert (found["outcome"], {seen["region"] for seen in found["observed"]}) == ("duplicated", {"eu-west-1"})


def test_a_look_from_another_region_than_the_run_worked_in_is_no_answer(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(GROUP))
    (stack / "providers.tf").write_text('provider "aws" {}\n')
    proxy.add_rule("delay:300", action="CreateLogGroup")
    running = tfguard_popen(*APPLY, "--baseline=off", cwd=stack, env=HERE)
    in_flight(proxy, "CreateLogGroup")
    engine = engine_pid(stack)
    provider = provider_pid(engine)
    for pid in (running.pid, engine, provider):
        kill(pid)
    running.wait()
    wait_until(lambda: not runs(engine) and not runs(provider))
    proxy.clear()
    (entry,) = intent(stack, operations(stack)[0])["baseline"]
    assert (entry["complete"], entry["region"], entry["reason"]) == (False, "eu-west-1", "--baseline=off")

    # Of the wanted name, and in the other region: neither a list nor the engine itself may take it for the run's.
    moto.client("logs", region=ELSEWHERE["AWS_REGION"]).create_log_group(logGroupName="app")
    away = tfguard("recover", cwd=stack, env=ELSEWHERE)
    assert away.returncode == 11, away.stdout + away.stderr
    found = step(status(tfguard, stack, code=11), "aws_cloudwatch_log_group.app")
    assert (found["outcome"], found["observed"]) == ("unknown", [])
    assert "eu-west-1: ask there" in found["evidence"][0]["detail"]

    back = tfguard("recover", cwd=stack, env=HERE)
    assert back.returncode == 11, back.stdout + back.stderr
    found = step(status(tfguard, stack, code=11), "aws_cloudwatch_log_group.app")
    assert found["outcome"] == "orphaned"
    assert [(seen["import_id"], seen["region"]) for seen in found["observed"]] == [("app", "eu-west-1")]


def test_a_role_that_was_there_before_and_that_nobody_may_list_is_never_called_an_orphan(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    iam = moto.client("iam")
    iam.create_role(RoleName="app", AssumeRolePolicyDocument="{}")
    stack = settings(stack_factory(role()))
    proxy.add_rule("deny", action="ListRoles", count=None)
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 1
    assert "EntityAlreadyExists" in done.stderr
    assert "import --orphan" not in done.stderr
    for command in (None, "recover"):
        if command:
            assert tfguard(command, cwd=stack).returncode == 11
        document = status(tfguard, stack, code=11)
        found = step(document, "aws_iam_role.app")
        assert found["outcome"] == "unknown"
        assert "engine-read" in kinds(found["evidence"]), "the engine was asked, and tells existence alone"
        assert document["next_actions"]
        assert not any("import" in action for action in document["next_actions"])
    assert all(finding["verdict"] == "unknown" for finding in orphans(tfguard, stack, code=2)["findings"])


def test_a_later_look_reads_keys_that_stand_in_the_configuration_again_and_keeps_none(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, run_env: dict[str, str]
) -> None:
    stack = settings(stack_factory(GROUP))
    (stack / "providers.tf").write_text(
        'provider "aws" {\n  region     = "us-east-1"\n  access_key = "testing"\n  secret_key = "s3cr3t-in-hcl"\n}\n'
    )
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        del run_env[name]
    proxy.add_rule("drop", action="CreateLogGroup")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    assert tfguard("recover", cwd=stack).returncode == 11
    assert step(status(tfguard, stack, code=11), "aws_cloudwatch_log_group.app")["outcome"] == "orphaned"
    record = stack / "terraform.tfstate.tfguard"
    assert not any(b"s3cr3t-in-hcl" in path.read_bytes() for path in record.rglob("*") if path.is_file())
