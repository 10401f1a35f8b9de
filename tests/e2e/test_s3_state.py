"""A state in S3: where the record lies, and how the next run on another machine goes on from a killed one."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from helpers import APPLY, Json, Run, StackFactory, Start, kill, role, runs, settings, status, step, wait_until

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.terraform_env import s3_backend

pytestmark = pytest.mark.e2e

KEY = "net/terraform.tfstate"
STATE = f"env:/dev/{KEY}"
RECORD = f"{STATE}.tfguard"


@pytest.fixture
def stack(moto: MotoServer, stack_factory: StackFactory, tf: Run) -> Path:
    """A role with its state in S3, in the workspace `dev`."""
    moto.client("s3").create_bucket(Bucket="state")
    made = settings(stack_factory(role(), backend=s3_backend("state", KEY)))
    tf("workspace", "new", "dev", cwd=made)
    return made


def copy_of(stack: Path, tf: Run) -> Path:
    """A second working copy, as another machine has it: the configuration alone, and its own init."""
    folder = stack.with_name("copy")
    folder.mkdir()
    for path in (*stack.glob("*.tf"), stack / ".terraform.lock.hcl", stack / "tfguard.yaml"):
        shutil.copy2(path, folder)
    tf("init", "-input=false", cwd=folder)
    tf("workspace", "select", "dev", cwd=folder)
    return folder


def keys(moto: MotoServer) -> list[str]:
    """The keys in the state's bucket."""
    return [item["Key"] for item in moto.client("s3").list_objects_v2(Bucket="state").get("Contents", [])]


def remote_head(moto: MotoServer) -> Json:
    """The head of the record in the bucket."""
    found: Json = json.load(moto.client("s3").get_object(Bucket="state", Key=f"{RECORD}/head.json")["Body"])
    return found


def test_the_record_lies_below_the_workspaces_own_key(moto: MotoServer, stack: Path, tfguard: Run) -> None:
    done = tfguard(*APPLY, cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")
    found = keys(moto)
    assert STATE in found
    assert f"{RECORD}/head.json" in found
    assert all(key == STATE or key.startswith(f"{RECORD}/") for key in found)
    document = status(tfguard, stack, code=0)
    assert document["record"] == f"s3://state/{RECORD}"
    assert (document["stack"]["backend"], document["stack"]["workspace"]) == ("s3", "dev")
    assert document["stack"]["location"] == f"s3://state/{STATE}"
    assert step(document, "aws_iam_role.app")["outcome"] == "recorded"
    assert not list(stack.rglob("*.tfguard"))


def test_a_killed_run_is_settled_from_another_working_copy(
    moto: MotoServer, proxy: FaultProxy, stack: Path, tf: Run, tfguard: Run, tfguard_popen: Start
) -> None:
    proxy.add_rule("delay:60", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack)
    proxy.log.wait_for("CreateRole", timeout=120)
    wait_until(lambda: remote_head(moto)["lease"].get("engine") is not None)
    engine = remote_head(moto)["lease"]["engine"]["pid"]
    running.kill()
    kill(engine)
    running.wait()
    wait_until(lambda: not runs(engine))
    assert f"{STATE}.tflock" in keys(moto)
    proxy.rules.clear()
    copy = copy_of(stack, tf)
    shutil.rmtree(stack)

    proxy.log.clear()
    blocked = tfguard(*APPLY, cwd=copy)
    assert blocked.returncode == 11
    assert "aws_iam_role.app is orphaned: app" in blocked.stderr
    assert proxy.log.entries(service="iam", mutating=True) == []

    document = status(tfguard, copy, code=11)
    found = step(document, "aws_iam_role.app")
    assert (document["status"], found["outcome"]) == ("interrupted", "orphaned")
    assert found["observed"][0]["import_id"] == "app"

    # The lock of the dead engine is the user's to take away.
    adopt = ("import", "--orphan", found["finding"], "--yes")
    locked = tfguard(*adopt, cwd=copy)
    assert locked.returncode == 1
    assert "Error acquiring the state lock" in locked.stderr
    assert f"{STATE}.tflock" in keys(moto)
    lock = json.load(moto.client("s3").get_object(Bucket="state", Key=f"{STATE}.tflock")["Body"])
    assert tfguard("force-unlock", "-force", lock["ID"], cwd=copy).returncode == 0

    adopted = tfguard(*adopt, cwd=copy)
    assert adopted.returncode == 0, adopted.stderr
    assert proxy.log.entries("CreateRole") == []
    assert remote_head(moto)["open_operations"] == []
    assert tf("plan", "-detailed-exitcode", "-input=false", cwd=copy, check=False).returncode == 0


def test_two_runs_at_once_give_one_apply(
    proxy: FaultProxy, stack: Path, tf: Run, tfguard: Run, tfguard_popen: Start
) -> None:
    copy = copy_of(stack, tf)
    proxy.add_rule("delay:4", action="CreateRole")
    first = tfguard_popen(*APPLY, cwd=stack)
    proxy.log.wait_for("CreateRole", timeout=120)
    second = tfguard(*APPLY, cwd=copy)
    assert second.returncode == 12
    assert f"pid {first.pid}" in second.stderr
    first.communicate(timeout=120)
    assert first.returncode == 0
    assert len(proxy.log.entries("CreateRole")) == 1


def test_two_runs_that_start_together_create_once(
    proxy: FaultProxy, stack: Path, tf: Run, tfguard_popen: Start
) -> None:
    copy = copy_of(stack, tf)
    # Neither waits for the other's lock while it plans, so that both come to the record.
    started = [tfguard_popen("apply", "-auto-approve", "-lock=false", cwd=folder) for folder in (stack, copy)]
    errors = [process.communicate(timeout=120)[1] for process in started]
    assert sorted(process.returncode for process in started) in ([0, 12], [0, 0], [0, 11]), errors
    assert len(proxy.log.entries("CreateRole")) == 1


def test_a_record_that_cannot_be_written_stops_the_run_before_the_engine(
    moto: MotoServer, proxy: FaultProxy, stack: Path, tfguard: Run
) -> None:
    proxy.add_rule("deny", service="s3", method="PUT", path="*.tfguard/*", count=None)
    proxy.log.clear()
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 10
    assert "s3:PutObject" in done.stderr
    assert proxy.log.entries("CreateRole") == []
    assert moto.client("iam").list_roles()["Roles"] == []
    assert keys(moto) == [STATE]


def test_a_record_that_breaks_off_during_the_run_stops_nothing(
    proxy: FaultProxy, stack: Path, tfguard: Run, tfguard_popen: Start
) -> None:
    proxy.add_rule("delay:4", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack)
    proxy.log.wait_for("CreateRole", timeout=120)
    proxy.add_rule("deny", service="s3", method="PUT", path="*.tfguard/*", count=None)
    _, err = running.communicate(timeout=120)
    assert running.returncode == 0
    assert "stays open" in err
    proxy.rules.clear()
    recovered = tfguard("recover", cwd=stack)
    assert recovered.returncode == 0, recovered.stdout + recovered.stderr
    assert step(status(tfguard, stack, code=0), "aws_iam_role.app")["outcome"] == "recorded"


def test_an_interrupt_during_a_create_is_settled_in_s3(
    moto: MotoServer, proxy: FaultProxy, stack: Path, tfguard: Run, tfguard_popen: Start
) -> None:
    proxy.add_rule("delay:5", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack)
    proxy.log.wait_for("CreateRole", timeout=120)
    os.kill(running.pid, signal.SIGINT)
    running.communicate(timeout=120)
    assert running.returncode == 1
    assert remote_head(moto).get("lease") is None
    assert f"{STATE}.tflock" not in keys(moto)
    assert step(status(tfguard, stack, code=11), "aws_iam_role.app")["outcome"] == "orphaned"
