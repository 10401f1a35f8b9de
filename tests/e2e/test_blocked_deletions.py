"""Stray objects that something keeps from being deleted: what it is and whose is told, and nothing is forced."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from helpers import Json, Run, StackFactory, settings

from fixtures.aws_sim import ACCOUNT_ID, REGION, MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.labelled.states import state_v4

pytestmark = pytest.mark.e2e

OTHER = "222222222222"
READS = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}
)
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})


@pytest.fixture
def stack(stack_factory: StackFactory) -> Path:
    """A stack without resources; nothing is too young to be deleted."""
    made = settings(stack_factory(""), consistency_grace="0s")
    (made / "terraform.tfstate").write_bytes(state_v4([], "blocked"))
    return made


def strays(tfguard: Run, stack: Path, *kinds: str) -> list[Json]:
    """What a scan of these types finds; kept in a file as well."""
    named = [word for kind in kinds for word in ("--type", kind)]
    words = ("scan", ".", *named, "--region", REGION, "--no-audit-log", "--state-file", "kept.json", "--format", "json")
    done = tfguard(*words, cwd=stack)
    assert done.returncode == 2, done.stderr
    found: list[Json] = json.loads(done.stdout)["findings"]
    return found


def destroy(tfguard: Run, stack: Path, found: Json, **options: object) -> CompletedProcess[str]:
    """Delete what was found, approved by its name, without much patience."""
    name = found["object"]["name"] or found["object"]["import_id"]
    words = ("--yes", "--confirm", name, "--findings", "kept.json", "--wait", "5s")
    return tfguard("orphans", "destroy", found["id"], *words, cwd=stack, **options)


def last(stack: Path) -> Json:
    """The last word of the ledger."""
    (path,) = stack.glob("*.tfguard/dispositions.jsonl")
    found: Json = json.loads(path.read_text().splitlines()[-1])
    return found


def test_a_vpc_with_somebodys_network_interface_stays_and_the_interface_is_named_with_its_owner(
    stack: Path, proxy: FaultProxy, moto: MotoServer, tfguard: Run
) -> None:
    ec2 = moto.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")["Subnet"]["SubnetId"]
    tags = [{"ResourceType": "network-interface", "Tags": [{"Key": "team", "Value": "payments"}]}]
    made = ec2.create_network_interface(SubnetId=subnet, Description="proxy of payments", TagSpecifications=tags)
    interface = made["NetworkInterface"]["NetworkInterfaceId"]
    (found,) = strays(tfguard, stack, "aws_vpc")

    done = destroy(tfguard, stack, found)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the engine could not delete it within 5 s" in done.stdout
    assert f"aws_network_interface {interface}" in done.stdout
    asked, advised = done.stderr.split("nothing is forced; delete or detach what hangs on it")
    named = f"aws_network_interface {interface} (proxy of payments; asked for by "
    for text in (asked, advised):
        assert named in text
        assert "tags team=payments" in text
        assert f"aws_subnet {subnet}" in text
        assert "default" not in text  # the group, the table and the list that go with the VPC are in nobody's way

    assert set(proxy.log.actions(mutating=True)) == {"DeleteVpc"}
    assert [one["NetworkInterfaceId"] for one in ec2.describe_network_interfaces()["NetworkInterfaces"]] == [interface]
    assert vpc in [one["VpcId"] for one in ec2.describe_vpcs()["Vpcs"]]
    assert (last(stack)["stage"], interface in last(stack)["reason"]) == ("stopped", True)
    assert "payments" not in last(stack)["reason"]


def test_a_role_with_an_attached_policy_keeps_it_and_what_is_attached_is_named(
    stack: Path, proxy: FaultProxy, moto: MotoServer, tfguard: Run
) -> None:
    iam = moto.client("iam")
    iam.create_role(RoleName="app", AssumeRolePolicyDocument=TRUST)
    policy = iam.create_policy(PolicyName="reads", PolicyDocument=READS)["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="app", PolicyArn=policy)
    (found,) = strays(tfguard, stack, "aws_iam_role")
    done = destroy(tfguard, stack, found)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"on it hangs aws_iam_role_policy_attachment app/{policy}" in done.stdout
    assert set(proxy.log.actions(mutating=True)) == {"DeleteRole"}
    assert len(iam.list_attached_role_policies(RoleName="app")["AttachedPolicies"]) == 1


def test_a_route_table_in_use_and_a_role_in_an_instance_profile_stay_where_they_are(
    stack: Path, proxy: FaultProxy, moto: MotoServer, tfguard: Run
) -> None:
    ec2, iam = moto.client("ec2"), moto.client("iam")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")["Subnet"]["SubnetId"]
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    association = ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)["AssociationId"]
    iam.create_role(RoleName="app", AssumeRolePolicyDocument=TRUST)
    iam.create_instance_profile(InstanceProfileName="servers")
    iam.add_role_to_instance_profile(InstanceProfileName="servers", RoleName="app")
    found = {one["object"]["import_id"]: one for one in strays(tfguard, stack, "aws_route_table", "aws_iam_role")}

    done = destroy(tfguard, stack, found["app"])
    assert (done.returncode, proxy.log.actions(mutating=True)) == (1, []), done.stdout + done.stderr
    assert "on it hangs aws_iam_instance_profile servers, and the provider would take it out" in done.stdout
    done = destroy(tfguard, stack, found[table])
    assert (done.returncode, proxy.log.actions(mutating=True)) == (1, ["DeleteRouteTable"]), done.stdout + done.stderr
    assert "it could not be deleted: DependencyViolation on DeleteRouteTable" in done.stdout
    assert f"on it hangs aws_route_table_association {subnet}/{table}" in done.stdout
    ec2.disassociate_route_table(AssociationId=association)
    done = destroy(tfguard, stack, found[table])
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_role_of_another_account_is_refused_with_both_accounts_named(
    stack: Path, proxy: FaultProxy, moto: MotoServer, tfguard: Run
) -> None:
    given = moto.client("sts").assume_role(RoleArn=f"arn:aws:iam::{OTHER}:role/ci", RoleSessionName="ci")["Credentials"]
    elsewhere = {
        "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
        "AWS_SESSION_TOKEN": given["SessionToken"],
    }
    moto.client("iam").create_role(RoleName="app", AssumeRolePolicyDocument=TRUST)
    (found,) = strays(tfguard, stack, "aws_iam_role")

    done = destroy(tfguard, stack, found, env=elsewhere)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"the credentials are those of account {OTHER}, and {ACCOUNT_ID} is wanted" in done.stdout
    assert f"let it be listed by the credentials of its account, {ACCOUNT_ID}" in done.stderr

    settings(stack, consistency_grace="0s", scan=f'{{aws: {{accounts: [{{id: "{OTHER}"}}]}}}}')
    done = destroy(tfguard, stack, found)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"is in the account {ACCOUNT_ID}, which is not a configured one ({OTHER})" in done.stdout

    assert proxy.log.actions(mutating=True) == []
    assert [one["RoleName"] for one in moto.client("iam").list_roles()["Roles"]] == ["app"]
    assert list(stack.glob("*.tfguard/dispositions.jsonl")) == []
