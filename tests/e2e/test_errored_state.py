"""A backend that takes no state any more: `errored.tfstate` is found, kept, said last, and pushed by `recover`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import APPLY, Run, StackFactory, role, settings, status, step
from state_server import StateServer, running_server

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e


@pytest.fixture
def server() -> Iterator[StateServer]:
    """A running http backend without a state."""
    with running_server() as running:
        yield running


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Where the records lie, away from the working copies."""
    return tmp_path / "records"


@pytest.fixture
def stack(plain_stack: StackFactory, server: StateServer, records: Path) -> Path:
    """Two objects with their state in the http backend and their records in a folder."""
    return settings(plain_stack(configuration(server)), records=f"file://{records}")


def configuration(server: StateServer) -> str:
    return f"""
terraform {{
  backend "http" {{
    address = "{server.url}"
  }}
}}
resource "terraform_data" "a" {{
}}
resource "terraform_data" "b" {{
}}
"""


def addresses(server: StateServer) -> set[str]:
    """The addresses in the backend's state."""
    assert server.state is not None
    return {f"{item['type']}.{item['name']}" for item in json.loads(server.state)["resources"]}


def test_a_refused_upload_is_found_kept_and_said_last(
    stack: Path, server: StateServer, records: Path, tfguard: Run, tf: Run
) -> None:
    server.refusing = True
    lost = tfguard(*APPLY, cwd=stack)
    assert lost.returncode == 1
    assert "Failed to save state" in lost.stderr
    last = lost.stderr.splitlines()[-1]
    assert last.startswith("tfguard: THE STATE WAS NOT SAVED")
    assert str(stack / "errored.tfstate") in last
    (kept,) = records.rglob("errored.tfstate")
    assert kept.read_bytes() == (stack / "errored.tfstate").read_bytes()
    assert oct(kept.stat().st_mode & 0o777) == "0o600"

    document = status(tfguard, stack, code=11)
    assert document["errored_state"]["path"] == str(stack / "errored.tfstate")
    assert document["next_actions"] == ["tfguard recover"]
    assert {found["outcome"] for found in document["steps"]} == {"orphaned"}

    server.refusing = False
    blocked = tfguard(*APPLY, cwd=stack)
    assert blocked.returncode == 11
    assert "has not been pushed" in blocked.stderr
    assert server.state is None

    unasked = tfguard("recover", cwd=stack)
    assert unasked.returncode == 11
    assert "--yes" in unasked.stderr
    assert server.state is None

    assert tfguard("recover", "--yes", cwd=stack).returncode == 0
    assert addresses(server) == {"terraform_data.a", "terraform_data.b"}
    settled = status(tfguard, stack, code=0)
    assert {found["outcome"] for found in settled["steps"]} == {"recorded"}
    assert settled["errored_state"]["pushed"]
    assert tf("plan", "-detailed-exitcode", cwd=stack).returncode == 0
    assert tfguard(*APPLY, cwd=stack).returncode == 0


def test_a_rescued_state_is_pushed_from_a_new_working_copy(
    stack: Path, server: StateServer, tfguard: Run, tf: Run
) -> None:
    server.refusing = True
    tfguard(*APPLY, cwd=stack)
    server.refusing = False
    copy = stack.with_name("copy")
    copy.mkdir()
    for name in ("main.tf", "tfguard.yaml"):
        shutil.copy2(stack / name, copy)
    shutil.rmtree(stack)
    tf("init", cwd=copy)

    assert tfguard(*APPLY, cwd=copy).returncode == 11
    recovered = tfguard("recover", "--yes", cwd=copy)
    assert recovered.returncode == 0, recovered.stderr
    assert addresses(server) == {"terraform_data.a", "terraform_data.b"}
    assert tf("plan", "-detailed-exitcode", cwd=copy).returncode == 0


def test_a_state_that_the_user_pushed_settles_the_operation(
    stack: Path, server: StateServer, tfguard: Run, tf: Run
) -> None:
    server.refusing = True
    tfguard(*APPLY, cwd=stack)
    server.refusing = False
    tf("state", "push", "errored.tfstate", cwd=stack)
    (stack / "errored.tfstate").unlink()
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert status(tfguard, stack, code=0)["errored_state"] is None


def test_an_errored_state_of_another_stack_is_left_alone_and_hides_nothing(
    stack: Path, server: StateServer, tfguard: Run
) -> None:
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    foreign = json.loads(server.state or b"")
    foreign["lineage"] = "00000000-0000-0000-0000-000000000000"
    (stack / "errored.tfstate").write_text(json.dumps(foreign))
    done = tfguard(*APPLY, "-replace=terraform_data.a", cwd=stack)
    assert done.returncode == 0
    assert "belongs to another state" in done.stderr
    assert json.loads((stack / "errored.tfstate").read_text()) == foreign
    assert not status(tfguard, stack, code=0)["open"]


def test_an_errored_state_that_was_pushed_long_ago_holds_nothing_up(
    stack: Path, server: StateServer, tfguard: Run
) -> None:
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    (stack / "errored.tfstate").write_bytes(server.state or b"")
    done = tfguard(*APPLY, "-replace=terraform_data.a", cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failed_create_beside_a_refused_upload_shows_both(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, server: StateServer, records: Path, tfguard: Run
) -> None:
    body = role("kept") + role("lost")
    made = stack_factory(body, backend={"type": "http", "address": server.url})
    settings(made, records=f"file://{records}")
    proxy.add_rule("deny", action="CreateRole", contains="RoleName=lost", count=None)
    server.refusing = True
    done = tfguard(*APPLY, cwd=made)
    assert done.returncode == 1
    assert "creating IAM Role (lost)" in done.stderr
    assert "THE STATE WAS NOT SAVED" in done.stderr.splitlines()[-1]
    server.refusing = False
    assert tfguard("recover", "--yes", cwd=made).returncode == 0
    document = status(tfguard, made, code=0)
    assert step(document, "aws_iam_role.kept")["outcome"] == "recorded"
    assert step(document, "aws_iam_role.lost")["outcome"] == "absent"
    assert len(moto.client("iam").list_roles()["Roles"]) == 1


def test_a_backend_without_a_place_for_records_needs_one_named(
    plain_stack: StackFactory, server: StateServer, tfguard: Run
) -> None:
    stack = plain_stack(configuration(server))
    done = tfguard(*APPLY, cwd=stack)
    assert (done.returncode, done.stdout) == (10, "")
    what, advice = done.stderr.splitlines()
    assert "the backend 'http'" in what
    assert "records: file:///DIR" in advice
    assert server.state is None
    planned = tfguard("plan", "-no-color", cwd=stack)
    assert planned.returncode == 0
    assert "2 to add" in planned.stdout
