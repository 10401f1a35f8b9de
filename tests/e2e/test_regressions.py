"""The eight regression tests of the contract (docs/contract.md): the durable state before, during and after."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers import (
    APPLY,
    DESTROY,
    VPC,
    Run,
    StackFactory,
    Start,
    addresses,
    engine_pid,
    head,
    in_flight,
    inline_policy,
    intent,
    kill,
    operations,
    outcome,
    record,
    role,
    settings,
    status,
    step,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

OUTPUT = """
output "role" {
  value = aws_iam_role.app.name
}
"""


def snapshot(stack: Path) -> dict[str, bytes]:
    """Every document of the record, to be compared."""
    return {str(path): path.read_bytes() for path in record(stack).rglob("*.json*") if path.is_file()}


def test_1_old_destroyed_marker_is_running_before_the_provider_is_called(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role()))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert tfguard(*DESTROY, cwd=stack).returncode == 0
    before = step(status(tfguard, stack, code=0), "aws_iam_role.app")
    assert (before["status"], before["outcome"]) == ("destroyed", "absent")

    proxy.log.clear()
    proxy.add_rule("delay:300", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack, kept_provider=True)
    called = in_flight(proxy, "CreateRole")
    current = head(stack)["current"]
    assert current == operations(stack)[-1]
    written = (record(stack) / "operations" / current / "intent.json").stat().st_mtime
    assert datetime.fromtimestamp(written, UTC) < datetime.fromisoformat(called.time)
    assert head(stack)["open_operations"] == [current]
    during = status(tfguard, stack, code=11)
    assert (during["operation_id"], during["status"], during["open"]) == (current, "running", True)
    assert step(during, "aws_iam_role.app")["outcome"] is None

    proxy.release()
    assert running.wait(timeout=60) == 0
    after = step(status(tfguard, stack, code=0), "aws_iam_role.app")
    assert (after["status"], after["outcome"]) == ("ok", "recorded")


def test_2_provider_is_not_called_when_the_required_write_fails(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    # Whoever runs the tests, a file cannot be a folder.
    record(stack).write_text("in the way")
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 10, done.stderr
    assert str(record(stack)) in done.stderr
    assert proxy.log.actions(mutating=True) == []
    assert not (stack / "terraform.tfstate").exists()


def test_2_provider_is_not_called_when_the_record_is_refused_after_the_approval(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    moto.client("s3").create_bucket(Bucket="records")
    stack = settings(stack_factory(role()), records="s3://records/tfguard")
    # The lease can be taken, so that nothing speaks against the run until the intent is to be written.
    proxy.add_rule("deny", action="PutObject", path="*/intent.json", count=None)
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 10, done.stderr
    assert "Terraform will perform the following actions" in done.stdout
    assert proxy.log.actions(mutating=True, service="iam") == []
    assert moto.client("iam").list_roles()["Roles"] == []


def test_3_failed_first_apply_leaves_a_nonterminal_error(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role() + role("blocked", more="depends_on = [aws_iam_role.app]")))
    proxy.add_rule("drop", action="CreateRole")
    assert operations(stack) == []
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (operation,) = operations(stack)
    result = outcome(stack, operation)
    assert result is not None
    assert (result["status"], result["exit_code"]) == ("error", 1)
    failed, blocked = step(result, "aws_iam_role.app"), step(result, "aws_iam_role.blocked")
    assert (failed["status"], failed["outcome"]) == ("error", "orphaned")
    assert failed["error"] == "IAM CreateRole: HTTP 409 EntityAlreadyExists"
    assert (blocked["status"], blocked["outcome"]) == ("pending", "absent")
    assert head(stack)["open_operations"] == [operation]
    kept = intent(stack, operation)
    assert kept["stack"]["location"] == str(stack / "terraform.tfstate")
    assert step(kept, "aws_iam_role.app")["desired"]["name"] == "app"


def test_4_earlier_outputs_survive_a_later_failed_change(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role() + OUTPUT))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    first = operations(stack)[0]
    earlier = snapshot(stack)
    (stack / "main.tf").write_text(role() + role("second") + OUTPUT)
    proxy.add_rule("deny", action="CreateRole", count=None)
    assert tfguard(*APPLY, cwd=stack).returncode == 1

    failed = operations(stack)[-1]
    assert intent(stack, failed)["outputs_before"] == ["role"]
    kept = {path: data for path, data in snapshot(stack).items() if first in path}
    assert kept == {path: data for path, data in earlier.items() if first in path}
    document = status(tfguard, stack, failed, code=0)
    assert (document["status"], document["open"]) == ("error", False)
    assert step(document, "aws_iam_role.second")["outcome"] == "absent"
    assert tfguard("output", "-raw", "role", cwd=stack).stdout == "app"


def test_5_successful_apply_replaces_running_with_ok(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("delay:300", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack, kept_provider=True)
    in_flight(proxy, "CreateRole")
    (operation,) = operations(stack)
    assert outcome(stack, operation) is None
    assert head(stack)["lease"]["operation_id"] == operation
    assert status(tfguard, stack, code=11)["status"] == "running"

    proxy.release()
    assert running.wait(timeout=60) == 0
    result = outcome(stack, operation)
    assert result is not None
    assert (result["status"], result["exit_code"]) == ("ok", 0)
    assert step(result, "aws_iam_role.app")["outcome"] == "recorded"
    assert (head(stack)["open_operations"], head(stack).get("lease")) == ([], None)
    assert operations(stack) == [operation]


@pytest.mark.parametrize("failure", ["configuration", "plan"])
def test_6_preflight_failure_leaves_the_earlier_terminal_state_unchanged(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, failure: str
) -> None:
    stack = settings(stack_factory(role()))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    before = snapshot(stack)
    if failure == "configuration":
        (stack / "main.tf").write_text(role() + "resource {\n")
    else:
        proxy.add_rule("deny", action="GetRole", count=None)
    proxy.log.clear()
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    assert snapshot(stack) == before
    assert status(tfguard, stack, code=0)["status"] == "ok"
    assert proxy.log.actions(mutating=True, service="iam") == []


def test_7_error_state_is_part_of_destroy(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role() + VPC))
    proxy.add_rule("deny", action="GetRole", count=None)
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    failed = status(tfguard, stack, code=0)
    assert (failed["status"], step(failed, "aws_iam_role.app")["outcome"]) == ("error", "tainted")

    proxy.clear()
    assert tfguard(*DESTROY, cwd=stack).returncode == 0
    assert addresses(stack) == set()
    gone = status(tfguard, stack, code=0)
    assert gone["command"] == "destroy"
    assert {item["address"]: (item["status"], item["outcome"]) for item in gone["steps"]} == {
        "aws_iam_role.app": ("destroyed", "absent"),
        "aws_vpc.main": ("destroyed", "absent"),
    }
    assert moto.client("iam").list_roles()["Roles"] == []


def test_7_what_a_failed_apply_orphaned_blocks_a_destroy_that_would_call_the_stack_clean(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (failed,) = operations(stack)
    blocked = tfguard(*DESTROY, cwd=stack)
    assert blocked.returncode == 11
    assert "aws_iam_role.app is orphaned" in blocked.stderr
    beside = tfguard(*DESTROY, "--on-gap=ignore", "--reason", "teardown", cwd=stack)
    assert beside.returncode == 0, beside.stderr
    assert head(stack)["open_operations"] == [failed], "a destroy that found an empty state closes nothing"
    assert [item["RoleName"] for item in moto.client("iam").list_roles()["Roles"]] == ["app"]


def test_8_child_is_destroyed_only_after_its_parent_is_confirmed_gone(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tf: Run, tfguard: Run, tfguard_popen: Start
) -> None:
    parent = settings(stack_factory(role(), name="parent"))
    child = settings(stack_factory(inline_policy("app"), name="child"))
    assert tfguard(*APPLY, cwd=parent).returncode == 0
    assert tfguard(*APPLY, cwd=child).returncode == 0

    # Everything dies during the delete, and somebody drops the child from the state: nobody knows whether it is gone.
    proxy.add_rule("delay:300", action="DeleteRolePolicy")
    running = tfguard_popen(*DESTROY, cwd=child)
    in_flight(proxy, "DeleteRolePolicy")
    engine = engine_pid(child)
    kill(running.pid)
    kill(engine)
    running.wait()
    tf("state", "rm", "aws_iam_role_policy.child", cwd=child)

    operation = operations(child)[-1]
    for _ in range(2):
        stuck = tfguard("recover", cwd=child)
        assert stuck.returncode == 11, stuck.stdout + stuck.stderr
        found = step(status(tfguard, child, operation, code=11), "aws_iam_role_policy.child")
        assert (found["status"], found["outcome"]) == ("error", "unknown")
        assert "its parent aws_iam_role app still exists" in found["evidence"][0]["detail"]

    assert tfguard(*DESTROY, cwd=parent).returncode == 0
    assert step(status(tfguard, parent, code=0), "aws_iam_role.app")["status"] == "destroyed"
    assert moto.client("iam").list_roles()["Roles"] == []
    settled = tfguard("recover", cwd=child)
    assert settled.returncode == 0, settled.stdout + settled.stderr
    found = step(status(tfguard, child, operation, code=0), "aws_iam_role_policy.child")
    assert (found["status"], found["outcome"]) == ("destroyed", "absent")
    assert "its parent aws_iam_role app is gone" in found["evidence"][0]["detail"]
