"""Replies that get lost: what the provider made, and what tfguard says about it."""

from __future__ import annotations

import json

import pytest
from helpers import (
    APPLY,
    BUCKET,
    VPC,
    Run,
    StackFactory,
    Start,
    addresses,
    engine_pid,
    in_flight,
    inline_policy,
    kill,
    kinds,
    orphans,
    provider_pid,
    role,
    run_folders,
    settings,
    state_attribute,
    status,
    step,
    wait_until,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e


def test_a_role_whose_reply_was_lost_is_found_then_blocks_and_is_adopted(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("drop", action="CreateRole")

    lost = tfguard(*APPLY, cwd=stack)
    assert lost.returncode == 1
    assert "EntityAlreadyExists" in lost.stderr
    assert run_folders(stack) == []

    document = status(tfguard, stack, code=11)
    found = step(document, "aws_iam_role.app")
    assert (document["open"], document["status"], document["engine"]["exit_code"]) == (True, "error", 1)
    assert (found["status"], found["outcome"], found["finding"][:2]) == ("error", "orphaned", "o-")
    (seen,) = found["observed"]
    assert (seen["import_id"], seen["confidence"], seen["in_state"]) == ("app", "certain", False)
    assert {"desired-identity", "baseline-difference", "created-in-window"} <= kinds(seen["evidence"])
    assert document["next_actions"] == [f"tfguard import --orphan {found['finding']}"]

    listed = orphans(tfguard, stack, code=2)
    assert [(item["id"], item["address"], item["verdict"]) for item in listed["findings"]] == [
        (found["finding"], "aws_iam_role.app", "orphaned")
    ]
    assert listed["coverage"]["complete"]

    proxy.log.clear()
    blocked = tfguard(*APPLY, cwd=stack)
    assert blocked.returncode == 11
    assert f"aws_iam_role.app is orphaned: app ({found['finding']})" in blocked.stderr
    assert proxy.log.actions(mutating=True) == []

    adopted = tfguard("import", "--orphan", found["finding"], "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stderr
    assert addresses(stack) == {"aws_iam_role.app"}
    assert list(stack.glob("*import*")) == []
    assert run_folders(stack) == []
    assert proxy.log.actions(mutating=True, service="iam") == []

    assert not status(tfguard, stack, code=0)["open"]
    assert orphans(tfguard, stack, code=0)["findings"] == []
    planned = tfguard("plan", "-detailed-exitcode", "-input=false", cwd=stack)
    assert planned.returncode == 0, planned.stdout
    assert [item["RoleName"] for item in moto.client("iam").list_roles()["Roles"]] == ["app"]


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--fail-on-gap",), 14)])
def test_a_vpc_that_was_made_twice_behind_a_success_is_named_with_both_ids(
    moto: MotoServer,
    proxy: FaultProxy,
    stack_factory: StackFactory,
    tfguard: Run,
    options: tuple[str, ...],
    code: int,
) -> None:
    stack = settings(stack_factory(VPC))
    proxy.add_rule("drop", action="CreateVpc")
    done = tfguard(*APPLY, *options, cwd=stack)
    assert done.returncode == code
    assert "Apply complete! Resources: 1 added" in done.stdout

    document = status(tfguard, stack, code=11)
    found = step(document, "aws_vpc.main")
    held = state_attribute(stack, "aws_vpc.main", "id")
    made = moto.client("ec2").describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.9.0.0/16"]}])["Vpcs"]
    (stray,) = {vpc["VpcId"] for vpc in made} - {held}
    assert (document["status"], found["status"], found["outcome"]) == ("ok", "ok", "duplicated")
    assert {seen["id"]: seen["in_state"] for seen in found["observed"]} == {held: True, stray: False}
    assert f"the state holds {held}" in done.stderr
    assert f"{found['finding']}: {stray}" in done.stderr


def test_a_stray_twin_that_somebody_deletes_no_longer_stands_in_the_way(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(VPC))
    proxy.add_rule("drop", action="CreateVpc")
    tfguard(*APPLY, cwd=stack)
    found = step(status(tfguard, stack, code=11), "aws_vpc.main")
    refused = tfguard("import", "--orphan", found["finding"], "--yes", cwd=stack)
    assert refused.returncode == 1
    assert "the state already holds" in refused.stderr

    stray = next(seen["id"] for seen in found["observed"] if not seen["in_state"])
    moto.client("ec2").delete_vpc(VpcId=stray)
    recovered = tfguard("recover", cwd=stack)
    assert recovered.returncode == 0, recovered.stdout
    after = step(status(tfguard, stack, code=0), "aws_vpc.main")
    assert after["outcome"] == "recorded"
    assert any(stray in item["detail"] for item in after["evidence"]), "what was seen once stays known"


def test_a_vpc_whose_reply_broke_off_is_found(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(VPC))
    proxy.add_rule("cut", action="CreateVpc")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    found = step(status(tfguard, stack, code=11), "aws_vpc.main")
    made = moto.client("ec2").describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.9.0.0/16"]}])["Vpcs"]
    assert [(seen["id"], seen["in_state"]) for seen in found["observed"]] == [(made[0]["VpcId"], False)]
    assert (found["outcome"], found["observed"][0]["confidence"]) == ("orphaned", "likely")


def test_a_bucket_that_already_belongs_to_us_was_made_by_the_lost_call(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(BUCKET, region="eu-west-1"))
    proxy.add_rule("drop", action="CreateBucket")
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 1
    assert "BucketAlreadyOwnedByYou" in done.stderr
    found = step(status(tfguard, stack, code=11), "aws_s3_bucket.logs")
    (seen,) = found["observed"]
    assert (found["outcome"], seen["import_id"], seen["confidence"]) == ("orphaned", "audit-logs", "certain")
    assert seen["stateful"]
    assert "baseline-difference" in kinds(seen["evidence"])


def test_a_child_that_no_list_shows_is_found_by_the_engines_own_read(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role() + inline_policy("${aws_iam_role.app.name}")))
    proxy.add_rule("delay:300", action="PutRolePolicy")
    running = tfguard_popen(*APPLY, cwd=stack)
    in_flight(proxy, "PutRolePolicy")
    kill(provider_pid(engine_pid(stack)))
    assert running.wait(timeout=120) == 1
    found = step(status(tfguard, stack, code=11), "aws_iam_role_policy.child")
    assert (found["outcome"], found["observed"][0]["import_id"]) == ("orphaned", "app:child")
    assert kinds(found["evidence"]) == {"engine-read"}
    adopted = tfguard("import", "--orphan", found["finding"], "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stderr
    assert not status(tfguard, stack, code=0)["open"]


def test_two_lost_of_a_group_of_three_fit_two_addresses_and_a_person_has_to_choose(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(VPC.replace("cidr_block", "count = 3\n  cidr_block")))
    proxy.add_rule("cut", action="CreateVpc", count=2)
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    document = status(tfguard, stack, code=11)
    by_outcome: dict[str, list[str]] = {}
    for item in document["steps"]:
        by_outcome.setdefault(item["outcome"], []).append(item["address"])
    assert (len(by_outcome["recorded"]), len(by_outcome["orphaned"])) == (1, 2)

    findings = orphans(tfguard, stack, code=2)["findings"]
    assert len(findings) == 2
    assert all(finding["address"] is None for finding in findings)
    chosen = findings[0]["id"]
    unclear = tfguard("import", "--orphan", chosen, "--yes", cwd=stack)
    assert unclear.returncode == 1
    assert all(address in unclear.stderr for address in by_outcome["orphaned"])

    first, second = by_outcome["orphaned"]
    adopted = tfguard("import", "--orphan", chosen, "--address", first, "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stderr
    left = status(tfguard, stack, document["operation_id"], code=11)
    assert step(left, first)["outcome"] == "recorded"
    assert step(left, second)["outcome"] == "orphaned"
    (finding,) = orphans(tfguard, stack, code=2)["findings"]
    assert (finding["id"], finding["address"]) == (findings[1]["id"], second)


def test_the_lost_one_of_a_for_each_group_is_told_from_its_siblings(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    group = role(name="app-${each.key}", more='for_each = toset(["a", "b.c", "d e"])').replace("d e", "d-e")
    stack = settings(stack_factory(group))
    proxy.add_rule("drop", action="CreateRole", contains="RoleName=app-b")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    document = status(tfguard, stack, code=11)
    outcomes = {item["address"]: item["outcome"] for item in document["steps"]}
    assert outcomes == {
        'aws_iam_role.app["a"]': "recorded",
        'aws_iam_role.app["b.c"]': "orphaned",
        'aws_iam_role.app["d-e"]': "recorded",
    }
    (finding,) = orphans(tfguard, stack, code=2)["findings"]
    assert (finding["address"], finding["object"]["import_id"]) == ('aws_iam_role.app["b.c"]', "app-b.c")


def test_an_orphan_of_one_stack_never_lists_what_another_stack_made_meanwhile(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    ours = settings(stack_factory(role("ours") + VPC, name="ours"))
    theirs = settings(stack_factory(role("theirs") + VPC.replace("10.9", "10.8"), name="theirs"))
    proxy.add_rule("delay:300", action="CreateRole", contains="RoleName=ours")
    running = tfguard_popen(*APPLY, cwd=ours)
    in_flight(proxy, "CreateRole")
    other = tfguard(*APPLY, cwd=theirs)
    assert other.returncode == 0, other.stderr
    wait_until(lambda: addresses(ours) == {"aws_vpc.main"})
    kill(engine_pid(ours))
    running.wait(timeout=60)

    (finding,) = orphans(tfguard, ours, code=2)["findings"]
    assert (finding["address"], finding["object"]["name"]) == ("aws_iam_role.ours", "ours")
    assert step(status(tfguard, ours, code=11), "aws_vpc.main")["outcome"] == "recorded"
    assert orphans(tfguard, theirs, code=0)["findings"] == []


def test_beside_a_deposed_object_nothing_can_be_adopted_and_the_way_out_is_told(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    new_first = "lifecycle { create_before_destroy = true }"
    stack = settings(stack_factory(role(name="app-0", more=new_first)))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    main = stack / "main.tf"
    main.write_text(main.read_text().replace("app-0", "app-1"))
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    # As a kill leaves it between the deposing of the old object and the saving of the new one.
    state = json.loads((stack / "terraform.tfstate").read_text())
    state["resources"][0]["instances"][0]["deposed"] = "deadbeef"
    (stack / "terraform.tfstate").write_text(json.dumps({**state, "serial": state["serial"] + 1}))

    assert tfguard("recover", "--yes", cwd=stack).returncode == 11
    (found,) = orphans(tfguard, stack, code=2)["findings"]
    refused = tfguard("import", "--orphan", found["id"], "--yes", cwd=stack)
    assert refused.returncode == 1
    assert "aws_iam_role.app still has a deposed object" in refused.stderr
    assert "delete app-1 at the provider, run `tfguard recover`, then apply again" in refused.stderr

    moto.client("iam").delete_role(RoleName="app-1")
    assert tfguard("recover", "--yes", cwd=stack).returncode == 0
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert [item["RoleName"] for item in moto.client("iam").list_roles()["Roles"]] == ["app-1"]
