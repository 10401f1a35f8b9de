"""`force-unlock`: shows who holds the lock, refuses while they live, and wants the lock's id to be typed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import (
    APPLY,
    Run,
    StackFactory,
    Start,
    engine_pid,
    head,
    kill,
    operations,
    record,
    role,
    settings,
    wait_until,
)
from state_server import StateServer, running_server

from fixtures.aws_sim import MotoServer
from fixtures.terraform_env import s3_backend

pytestmark = pytest.mark.e2e

LOCK = "11111111-2222-3333-4444-555555555555"
NOTE = {
    "ID": LOCK,
    "Operation": "OperationTypeApply",
    "Info": "",
    "Who": "runner@build-7",
    "Version": "1.11.4",
    "Created": "2026-01-02T03:04:05.678Z",
    "Path": "state/net/terraform.tfstate",
}


@pytest.fixture
def server() -> Iterator[StateServer]:
    with running_server() as running:
        yield running


@pytest.fixture
def behind_http(plain_stack: StackFactory, server: StateServer, tmp_path: Path) -> Path:
    """A stack whose state lies in an http backend that locks, with the lock taken by somebody."""
    body = f"""
terraform {{
  backend "http" {{
    address        = "{server.url}"
    lock_address   = "{server.url}"
    unlock_address = "{server.url}"
  }}
}}
resource "terraform_data" "a" {{}}
"""
    stack = settings(plain_stack(body), records=f"file://{tmp_path / 'records'}")
    server.lock = json.dumps(NOTE).encode()
    return stack


@pytest.mark.parametrize(("answer", "code"), [(f"{LOCK}\n", 0), ("yes\n", 1), ("\n", 1), (None, 1)])
def test_only_the_locks_own_id_unlocks(
    behind_http: Path, server: StateServer, tfguard: Run, answer: str | None, code: int
) -> None:
    done = tfguard("force-unlock", "-no-color", LOCK, cwd=behind_http, stdin=answer) if answer is None else None
    done = done or tfguard("force-unlock", LOCK, cwd=behind_http, stdin=answer)
    assert done.returncode == code, done.stderr
    assert f"tfguard: lock {LOCK}" in done.stderr
    assert bool(server.lock) is (code != 0)
    assert ("successfully unlocked" in done.stdout) is (code == 0)


def test_another_id_never_reaches_a_backend_that_would_take_it(
    behind_http: Path, server: StateServer, tfguard: Run
) -> None:
    done = tfguard("force-unlock", "-force", "99999999-0000-0000-0000-000000000000", cwd=behind_http)
    assert done.returncode == 1
    assert LOCK in done.stderr
    assert server.lock


def test_force_with_the_id_is_the_users_word(behind_http: Path, server: StateServer, tfguard: Run) -> None:
    done = tfguard("force-unlock", "-force", LOCK, cwd=behind_http)
    assert done.returncode == 0, done.stderr
    assert not server.lock
    assert "successfully unlocked" in done.stdout


def test_looking_for_the_lock_leaves_no_trace(behind_http: Path, server: StateServer, tfguard: Run) -> None:
    server.lock = b""
    done = tfguard("force-unlock", "-force", LOCK, cwd=behind_http)
    assert "no lock could be found" in done.stderr
    assert (server.lock, server.state) == (b"", None)


def test_the_holder_of_a_lock_in_s3_is_shown_with_the_age_and_the_last_operation(
    moto: MotoServer, stack_factory: StackFactory, tfguard: Run
) -> None:
    moto.client("s3").create_bucket(Bucket="state")
    stack = settings(stack_factory(role(), backend=s3_backend("state", "net/terraform.tfstate")))
    assert (
        tfguard(
            *APPLY, cwd=stack, env={"CI_PROJECT_PATH": "a/b", "CI_JOB_ID": "7", "CI_JOB_URL": "https://ci/7"}
        ).returncode
        == 0
    )
    lock = {"Bucket": "state", "Key": "net/terraform.tfstate.tflock"}
    moto.client("s3").put_object(**lock, Body=json.dumps(NOTE).encode())

    refused = tfguard("force-unlock", LOCK, cwd=stack)
    assert refused.returncode == 1
    assert f"tfguard: lock {LOCK}: OperationTypeApply by runner@build-7, taken " in refused.stderr
    assert "cannot be told from here" in refused.stderr
    assert "apply by" in refused.stderr and "https://ci/7" in refused.stderr
    assert moto.client("s3").get_object(**lock)["Body"].read()

    done = tfguard("force-unlock", LOCK, cwd=stack, stdin=f"{LOCK}\n")
    assert done.returncode == 0, done.stderr
    assert "Contents" not in moto.client("s3").list_objects_v2(Bucket="state", Prefix=lock["Key"])


WAITING = """
resource "terraform_data" "a" {{
  provisioner "local-exec" {{
    command = "while [ ! -e {go_on} ]; do sleep 0.1; done"
  }}
}}
"""


def test_a_lock_that_an_engine_without_tfguard_holds_is_refused(
    plain_stack: StackFactory, engine: Path, run_env: dict[str, str], tfguard: Run, workdir: Path
) -> None:
    go_on = workdir / "go-on"
    stack = plain_stack(WAITING.format(go_on=go_on))
    running = subprocess.Popen([engine, *APPLY], cwd=stack, env=run_env, stdout=subprocess.DEVNULL)
    note = stack / ".terraform.tfstate.lock.info"
    wait_until(note.exists)
    lock = json.loads(note.read_text())["ID"]
    refused = tfguard("force-unlock", "-force", lock, cwd=stack)
    assert refused.returncode == 12
    assert f"process {running.pid} of this machine, which is running" in refused.stderr
    go_on.touch()
    assert running.wait(timeout=60) == 0


def test_a_lock_whose_holder_was_killed_is_shown_as_nobodys(
    plain_stack: StackFactory, tfguard: Run, tfguard_popen: Start, workdir: Path
) -> None:
    stack = plain_stack(WAITING.format(go_on=workdir / "never"))
    running = tfguard_popen(*APPLY, cwd=stack)
    killed = engine_pid(stack)
    wait_until((stack / ".terraform.tfstate.lock.info").exists)
    lock = json.loads((stack / ".terraform.tfstate.lock.info").read_text())["ID"]
    alive = tfguard("force-unlock", "-force", lock, cwd=stack)
    assert alive.returncode == 12
    running.send_signal(signal.SIGKILL)
    kill(killed)
    running.wait()
    wait_until(lambda: not Path(f"/proc/{killed}").exists())

    done = tfguard("force-unlock", lock, cwd=stack, stdin=f"{lock}\n")
    assert "no process of this machine holds it" in done.stderr
    assert "has not ended" in done.stderr
    assert done.returncode == 1, "the engine does not unlock a local state for another process"
    assert len(operations(stack)) == 2
    assert head(stack)["open_operations"] == [operations(stack)[0]]
    assert record(stack).exists()
