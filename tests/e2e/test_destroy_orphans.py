"""Stray objects that are deleted: shown, asked for, looked at again, deleted through the engine, verified absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import APPLY, BUCKET, Json, Run, StackFactory, orphans, role, run_folders, settings, status

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}


@pytest.fixture
def lost(proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run) -> tuple[Path, str]:
    """A stack whose apply has left a role behind, and the finding's id."""
    stack = settings(stack_factory(role()), consistency_grace="0s")
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (found,) = orphans(tfguard, stack, code=2)["findings"]
    return stack, found["id"]


def ledger(stack: Path) -> list[Json]:
    """What stands in the ledger."""
    (path,) = stack.glob("*.tfguard/dispositions.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def roles(moto: MotoServer) -> list[str]:
    """The names of the roles that another client sees."""
    return [one["RoleName"] for one in moto.client("iam").list_roles()["Roles"]]


def test_an_orphan_is_shown_deleted_and_verified_absent(lost: tuple[Path, str], tfguard: Run, moto: MotoServer) -> None:
    stack, finding = lost
    refused = tfguard("orphans", "destroy", finding, cwd=stack)
    assert (refused.returncode, roles(moto)) == (1, ["app"]), refused.stderr
    assert "--yes --confirm app" in refused.stderr
    refused = tfguard("orphans", "destroy", finding, "--yes", "--confirm", "other", cwd=stack)
    assert (refused.returncode, roles(moto)) == (1, ["app"]), refused.stderr

    done = tfguard("orphans", "destroy", finding, "--yes", "--confirm", "app", "--reason", "not needed", cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deleted, and verified to be gone" in done.stdout
    for said in (
        "aws_iam_role app",
        "evidence: desired-identity",
        "nothing that can be listed hangs on it",
        "created ",
    ):
        assert said in done.stderr
    assert roles(moto) == []
    assert [(line["kind"], line["stage"]) for line in ledger(stack)] == [
        ("destroy", "requested"),
        ("destroy", "in-progress"),
        ("destroy", "absent"),
    ]
    assert {line["reason"] for line in ledger(stack)} == {"not needed"}
    assert orphans(tfguard, stack, code=0)["findings"] == []
    assert not status(tfguard, stack, code=0)["open"]
    assert run_folders(stack) == []
    assert (
        not (stack / "terraform.tfstate").exists()
        or json.loads((stack / "terraform.tfstate").read_text())["resources"] == []
    )


def test_what_was_deleted_meanwhile_is_told_so(lost: tuple[Path, str], tfguard: Run, moto: MotoServer) -> None:
    stack, finding = lost
    moto.client("iam").delete_role(RoleName="app")
    done = tfguard("orphans", "destroy", finding, cwd=stack)
    assert (done.returncode, "it is gone already" in done.stdout) == (0, True), done.stderr
    assert orphans(tfguard, stack, code=0)["findings"] == []


def test_what_hangs_on_it_is_named_before_anybody_approves(
    lost: tuple[Path, str], tfguard: Run, moto: MotoServer
) -> None:
    stack, finding = lost
    policy = json.dumps(POLICY)
    moto.client("iam").put_role_policy(RoleName="app", PolicyName="reads", PolicyDocument=policy)
    done = tfguard("orphans", "destroy", finding, cwd=stack)
    assert (done.returncode, roles(moto)) == (1, ["app"]), done.stdout + done.stderr
    assert "on it hangs aws_iam_role_policy app:reads" in done.stderr
    assert list(stack.glob("*.tfguard/dispositions.jsonl")) == []


def test_what_has_changed_since_it_was_found_is_left_alone(
    lost: tuple[Path, str], tfguard: Run, moto: MotoServer
) -> None:
    stack, finding = lost
    iam = moto.client("iam")
    iam.delete_role(RoleName="app")
    iam.create_role(RoleName="app", AssumeRolePolicyDocument="{}", Tags=[{"Key": "owner", "Value": "somebody"}])
    done = tfguard("orphans", "destroy", finding, "--yes", "--confirm", "app", cwd=stack)
    assert (done.returncode, roles(moto)) == (1, ["app"]), done.stdout + done.stderr
    assert "it has changed since it was found" in done.stdout


def test_what_holds_data_needs_a_word_and_a_bucket_with_objects_is_not_emptied(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, moto: MotoServer
) -> None:
    stack = settings(stack_factory(BUCKET, region="eu-west-1"), consistency_grace="0s")
    proxy.add_rule("drop", action="CreateBucket")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (found,) = orphans(tfguard, stack, code=2)["findings"]
    s3 = moto.client("s3")
    s3.put_object(Bucket="audit-logs", Key="a", Body=b"1")
    go = ("orphans", "destroy", found["id"], "--yes", "--confirm", "audit-logs")
    done = tfguard(*go, cwd=stack)
    assert (done.returncode, "holds data" in done.stdout) == (1, True), done.stdout + done.stderr
    done = tfguard(*go, "--stateful", cwd=stack)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BucketNotEmpty" in done.stdout
    assert [line["stage"] for line in ledger(stack)] == ["requested", "in-progress", "stopped"]
    (still,) = orphans(tfguard, stack, code=2)["findings"]
    assert any("its deletion is stopped" in item["detail"] for item in still["evidence"])
    assert "it HOLDS DATA" in done.stderr
    assert [one["Key"] for one in s3.list_objects_v2(Bucket="audit-logs")["Contents"]] == ["a"]
    s3.delete_object(Bucket="audit-logs", Key="a")
    done = tfguard(*go, "--stateful", cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert s3.list_buckets()["Buckets"] == []


def test_more_than_the_bound_are_refused(lost: tuple[Path, str], tfguard: Run, moto: MotoServer) -> None:
    stack, finding = lost
    iam = moto.client("iam")
    names = [f"o-{number:08}" for number in range(3)]
    done = tfguard("orphans", "destroy", finding, *names, "--max", "2", cwd=stack)
    unknown = "there is no finding o-00000000 or o-00000001 or o-00000002 here"
    assert (done.returncode, unknown in done.stderr) == (1, True), done.stderr
    done = tfguard("orphans", "destroy", finding, "--max", "0", cwd=stack)
    assert done.returncode == 1
    assert [one["RoleName"] for one in iam.list_roles()["Roles"]] == ["app"]
