"""A state in Google Cloud Storage, with a real engine on a real server: where the record lies, what stops a run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import APPLY, Json, Run, StackFactory, Start, kill, runs, settings, status, step, wait_until

from fixtures.fault_proxy import FaultProxy
from fixtures.record_servers import GcsServer, new_name

pytestmark = pytest.mark.e2e

STATE = "net/dev.tfstate"
RECORD = f"{STATE}.tfguard"
ONE = 'resource "terraform_data" "a" {\n  input = 1\n}\n'
# Tells that it has begun, and waits until it may go on; in another working copy it does not wait.
SLOW = """
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command = "test ! -e wait || { touch begun; while test -e wait; do sleep 0.1; done; }"
  }
}
"""


@pytest.fixture
def gcs_proxy(gcs_server: GcsServer) -> Iterator[FaultProxy]:
    """A fault proxy before the server."""
    with FaultProxy(gcs_server.url) as running:
        yield running


@pytest.fixture
def bucket(gcs_server: GcsServer) -> str:
    """The name of an empty bucket."""
    return gcs_server.make_bucket(new_name("state"))


def configuration(body: str, url: str, bucket: str) -> str:
    """A stack with its state in the bucket, below `net`."""
    place = f'bucket = "{bucket}"\n    prefix = "net"\n    storage_custom_endpoint = "{url}/storage/v1/b"'
    return f'terraform {{\n  backend "gcs" {{\n    {place}\n    access_token = "s3cr3t-token"\n  }}\n}}\n{body}'


def in_dev(stack: Path, tf: Run) -> Path:
    """The stack in the workspace `dev`, which is made."""
    tf("workspace", "new", "dev", cwd=stack)
    return settings(stack)


def copy_of(stack: Path, tf: Run) -> Path:
    """A second working copy, as another machine has it."""
    folder = stack.with_name("copy")
    folder.mkdir()
    for path in (*stack.glob("*.tf"), stack / "tfguard.yaml"):
        shutil.copy2(path, folder)
    tf("init", "-input=false", cwd=folder)
    tf("workspace", "select", "dev", cwd=folder)
    return folder


def test_the_record_lies_beside_each_workspaces_state(
    gcs_server: GcsServer, bucket: str, plain_stack: StackFactory, tf: Run, tfguard: Run
) -> None:
    stack = in_dev(plain_stack(configuration(ONE, gcs_server.url, bucket)), tf)
    done = tfguard(*APPLY, cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")
    document = status(tfguard, stack, code=0)
    assert document["record"] == f"gs://{bucket}/{RECORD}"
    assert (document["stack"]["backend"], document["stack"]["workspace"]) == ("gcs", "dev")
    assert step(document, "terraform_data.a")["outcome"] == "recorded"
    keys = gcs_server.keys(bucket)
    assert STATE in keys
    assert f"{RECORD}/head.json" in keys

    tf("workspace", "select", "default", cwd=stack)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert status(tfguard, stack, code=0)["record"] == f"gs://{bucket}/net/default.tfstate.tfguard"
    history = tfguard("history", "--format", "json", cwd=stack)
    assert history.returncode == 0, history.stderr
    assert history.stdout.count('"apply"') == 1, "the other workspace's operation is not this one's"
    states = ("net/default.tfstate", STATE)
    assert all(
        key in states or key.startswith(tuple(f"{state}.tfguard/" for state in states))
        for key in gcs_server.keys(bucket)
    )
    # The engine does not take a record for a workspace.
    assert tf("workspace", "list", cwd=stack).stdout.split() == ["*", "default", "dev"]

    doctor = tfguard("doctor", cwd=stack)
    assert doctor.returncode == 0, doctor.stdout
    assert f"gs://{bucket}/net/default.tfstate.tfguard: nothing open" in doctor.stdout


def test_no_credential_comes_into_the_record(
    gcs_server: GcsServer, bucket: str, plain_stack: StackFactory, tf: Run, tfguard: Run
) -> None:
    stack = in_dev(plain_stack(configuration(ONE, gcs_server.url, bucket)), tf)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    keys = [key for key in gcs_server.keys(bucket) if key.startswith(RECORD)]
    assert keys
    assert not any(b"s3cr3t-token" in gcs_server.content(bucket, key) for key in keys)


def test_a_killed_run_is_settled_from_another_working_copy(
    gcs_server: GcsServer, bucket: str, plain_stack: StackFactory, tf: Run, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = in_dev(plain_stack(configuration(SLOW, gcs_server.url, bucket)), tf)

    def remote_head() -> Json:
        found: Json = json.loads(gcs_server.content(bucket, f"{RECORD}/head.json"))
        return found

    (stack / "wait").touch()
    running = tfguard_popen(*APPLY, cwd=stack)
    wait_until(lambda: (stack / "begun").exists(), 120)
    wait_until(lambda: remote_head()["lease"].get("engine") is not None)
    engine = remote_head()["lease"]["engine"]["pid"]
    running.kill()
    kill(engine)
    running.wait()
    wait_until(lambda: not runs(engine))
    assert "net/dev.tflock" in gcs_server.keys(bucket)
    copy = copy_of(stack, tf)

    document = status(tfguard, copy, code=11)
    assert document["status"] == "interrupted"
    assert step(document, "terraform_data.a")["status"] in ("running", "pending")

    recovered = tfguard("recover", cwd=copy)
    assert recovered.returncode == 0, recovered.stdout + recovered.stderr
    assert remote_head()["open_operations"] == []
    assert step(status(tfguard, copy, code=0), "terraform_data.a")["outcome"] == "absent"

    # The lock of the dead engine is the user's to take away; this backend knows it by its object's generation.
    locked = tfguard(*APPLY, cwd=copy)
    assert "Error acquiring the state lock" in locked.stderr
    found = re.search(r"ID: +(\d+)", locked.stderr)
    assert found is not None, locked.stderr
    assert tfguard("force-unlock", "-force", found[1], cwd=copy).returncode == 0
    assert tfguard(*APPLY, cwd=copy).returncode == 0
    assert step(status(tfguard, copy, code=0), "terraform_data.a")["outcome"] == "recorded"


def test_a_run_that_is_alive_stops_another(
    gcs_server: GcsServer, bucket: str, plain_stack: StackFactory, tf: Run, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = in_dev(plain_stack(configuration(SLOW, gcs_server.url, bucket)), tf)
    copy = copy_of(stack, tf)
    (stack / "wait").touch()
    first = tfguard_popen(*APPLY, cwd=stack)
    wait_until(lambda: (stack / "begun").exists(), 120)
    second = tfguard(*APPLY, cwd=copy)
    assert second.returncode == 12, second.stderr
    assert f"pid {first.pid}" in second.stderr
    (stack / "wait").unlink()
    first.communicate(timeout=120)
    assert first.returncode == 0


def test_a_record_that_may_not_be_written_stops_the_run_before_the_engine(
    gcs_server: GcsServer, gcs_proxy: FaultProxy, bucket: str, plain_stack: StackFactory, tf: Run, tfguard: Run
) -> None:
    stack = in_dev(plain_stack(configuration(SLOW, gcs_proxy.url, bucket)), tf)
    (stack / "wait").touch()
    gcs_proxy.add_rule("error:403", method="POST", path="/upload/*", contains="tfguard", count=None)
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 10, done.stderr
    assert "storage.objects.create" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (stack / "begun").exists()
    assert not any(key.startswith(RECORD) for key in gcs_server.keys(bucket))
    doctor = tfguard("doctor", cwd=stack)
    assert f"gs://{bucket}/{RECORD}" in doctor.stdout


def test_a_record_that_may_not_be_read_is_a_failed_check_of_doctor_and_not_an_empty_history(
    gcs_proxy: FaultProxy, bucket: str, plain_stack: StackFactory, tf: Run, tfguard: Run
) -> None:
    stack = in_dev(plain_stack(configuration(ONE, gcs_proxy.url, bucket)), tf)
    gcs_proxy.add_rule("error:403", path="/storage/v1/b/*tfguard*", count=None)
    gcs_proxy.add_rule("error:403", path="/storage/v1/b/*/o", count=None)
    for command in ("status", "history"):
        done = tfguard(command, cwd=stack)
        assert done.returncode == 10, done.stdout + done.stderr
        assert "allow storage.objects." in done.stderr
    doctor = tfguard("doctor", cwd=stack)
    assert doctor.returncode == 1
    line = next(line for line in doctor.stdout.splitlines() if line.split()[:2] == ["FAIL", "record"])
    assert f"gs://{bucket}/{RECORD}" in line
    assert "allow storage.objects." in line


def test_records_of_a_local_state_can_lie_in_a_bucket(
    gcs_server: GcsServer, bucket: str, plain_stack: StackFactory, tfguard: Run
) -> None:
    stack = settings(plain_stack(ONE), records=f"gs://{bucket}/team?endpoint={gcs_server.url}")
    done = tfguard(*APPLY, cwd=stack, env={"GOOGLE_OAUTH_ACCESS_TOKEN": "testing"})
    assert done.returncode == 0, done.stderr
    keys = gcs_server.keys(bucket)
    assert [key for key in keys if key.endswith("/head.json")]
    assert all(key.startswith("team/") for key in keys)
    assert not list(stack.glob("*.tfguard"))


def test_a_place_that_is_not_there_is_told_in_one_line(
    gcs_server: GcsServer, plain_stack: StackFactory, tfguard: Run
) -> None:
    stack = settings(plain_stack(ONE), records=f"gs://nowhere/team?endpoint={gcs_server.url}")
    done = tfguard(*APPLY, cwd=stack, env={"GOOGLE_OAUTH_ACCESS_TOKEN": "testing"})
    assert done.returncode == 10, done.stderr
    assert "there is no bucket nowhere" in done.stderr
    assert "create the bucket nowhere" in done.stderr
    assert not (stack / "terraform.tfstate").exists()
