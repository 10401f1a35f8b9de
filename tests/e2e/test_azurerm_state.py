"""A state in Azure Blob: where the record lies, how the engine's lease on the state and the record stay apart, and that
tfguard signs in as the engine does.

The engine's own azurerm backend talks to Azurite: its host names lead there through a proxy (fixtures/azure_sim.py).
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from azure.storage.blob import BlobLeaseClient
from helpers import APPLY, Json, Run, StackFactory, Start, kill, runs, status, step, wait_until

from fixtures.azure_sim import (
    ACCOUNT,
    ACCOUNT_KEY,
    CLIENT,
    CLIENT_SECRET,
    GROUP,
    SUBSCRIPTION,
    TENANT,
    AzureServer,
)
from fixtures.record_servers import new_name

pytestmark = pytest.mark.e2e

KEY = "net/prod.tfstate"
STATE = f"{KEY}env:dev"
RECORD = f"{STATE}.tfguard"
SECRETS = (ACCOUNT_KEY, CLIENT_SECRET)
PRINCIPAL = {"ARM_TENANT_ID": TENANT, "ARM_CLIENT_ID": CLIENT, "ARM_CLIENT_SECRET": CLIENT_SECRET}


class Place:
    """A container, as somebody with the account's key sees it."""

    def __init__(self, server: AzureServer) -> None:
        self.name = new_name("state")
        self.client = server.container(self.name)
        self.client.create_container()

    def names(self) -> list[str]:
        """The names of all blobs."""
        return [blob.name for blob in self.client.list_blobs()]

    def read(self, name: str) -> bytes:
        """The content of a blob."""
        data: bytes = self.client.download_blob(name).readall()
        return data

    def head(self) -> Json:
        """The head of the record."""
        found: Json = json.loads(self.read(f"{RECORD}/head.json"))
        return found

    def state_is_leased(self) -> bool:
        """Whether somebody holds the lease on the state: the engine's lock."""
        return self.client.get_blob_client(STATE).get_blob_properties().lease.state == "leased"


@pytest.fixture
def place(azure_server: AzureServer, run_env: dict[str, str]) -> Place:
    """An empty container, which runs reach by Azure's own host names, with no credential yet."""
    run_env.update(azure_server.environment)
    azure_server.calls.clear()
    return Place(azure_server)


@pytest.fixture
def stack(place: Place, run_env: dict[str, str], plain_stack: StackFactory, tf: Run) -> Path:
    """An object whose create takes a while if there is a file `slow`, its state in the workspace `dev`."""
    run_env["ARM_ACCESS_KEY"] = ACCOUNT_KEY
    made = plain_stack(configuration(place, slow=True))
    tf("workspace", "new", "dev", cwd=made)
    return made


def configuration(place: Place, more: str = "", *, slow: bool = False) -> str:
    """A stack with its state in the container."""
    wait = (
        'provisioner "local-exec" { command = "touch started; while [ -e slow ]; do sleep 0.1; done" }' if slow else ""
    )
    return f"""
terraform {{
  backend "azurerm" {{
    storage_account_name = "{ACCOUNT}"
    container_name       = "{place.name}"
    key                  = "{KEY}"
    {more}
  }}
}}
resource "terraform_data" "app" {{
  input = "x"
  {wait}
}}
"""


def test_the_record_lies_below_the_workspaces_own_blob(place: Place, stack: Path, tfguard: Run) -> None:
    done = tfguard(*APPLY, cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")
    found = place.names()
    assert STATE in found
    assert f"{RECORD}/head.json" in found
    assert all(name in (KEY, STATE) or name.startswith(f"{RECORD}/") for name in found)
    document = status(tfguard, stack, code=0)
    assert document["record"] == f"azblob://{ACCOUNT}/{place.name}/{RECORD}"
    assert (document["stack"]["backend"], document["stack"]["workspace"]) == ("azurerm", "dev")
    assert step(document, "terraform_data.app")["outcome"] == "recorded"
    assert not list(stack.rglob("*.tfguard"))
    written = b"".join(place.read(name) for name in found)
    assert not any(secret.encode() in written for secret in SECRETS)


def test_the_engine_takes_no_record_for_a_workspace(stack: Path, tf: Run, tfguard: Run) -> None:
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert tf("workspace", "list", cwd=stack).stdout.replace("*", " ").split() == ["default", "dev"]


def test_the_record_of_the_default_workspace_lies_below_the_key(
    place: Place, run_env: dict[str, str], plain_stack: StackFactory, tfguard: Run
) -> None:
    run_env["ARM_ACCESS_KEY"] = ACCOUNT_KEY
    stack = plain_stack(configuration(place))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    found = place.names()
    assert f"{KEY}.tfguard/head.json" in found
    assert all(name == KEY or name.startswith(f"{KEY}.tfguard/") for name in found)


def test_a_killed_run_is_settled_from_another_working_copy_while_the_state_is_still_leased(
    place: Place, stack: Path, tf: Run, tfguard: Run, tfguard_popen: Start
) -> None:
    (stack / "slow").touch()
    running = tfguard_popen(*APPLY, cwd=stack)
    wait_until(lambda: (stack / "started").exists())
    wait_until(lambda: place.head()["lease"].get("engine") is not None)
    engine = place.head()["lease"]["engine"]["pid"]
    running.kill()
    kill(engine)
    running.wait()
    wait_until(lambda: not runs(engine))
    (stack / "slow").unlink()
    assert place.state_is_leased()
    copy = stack.with_name("copy")
    copy.mkdir()
    shutil.copy2(stack / "main.tf", copy)
    tf("init", "-input=false", cwd=copy)
    tf("workspace", "select", "dev", cwd=copy)
    shutil.rmtree(stack)

    # The lock of the dead engine is the user's to take away.
    locked = tfguard(*APPLY, cwd=copy)
    assert locked.returncode == 1
    assert "it was ended before" in locked.stderr
    assert "state blob is already locked" in locked.stderr
    document = status(tfguard, copy, code=0)
    assert (document["status"], step(document, "terraform_data.app")["outcome"]) == ("interrupted", "absent")
    assert place.state_is_leased()

    lock = re.findall(r"ID: +([0-9a-f-]{36})", locked.stderr)
    assert len(lock) == 1
    assert tfguard("force-unlock", "-force", lock[0], cwd=copy).returncode == 0
    assert not place.state_is_leased()
    assert tfguard(*APPLY, cwd=copy).returncode == 0
    assert step(status(tfguard, copy, code=0), "terraform_data.app")["outcome"] == "recorded"


def test_two_runs_at_once_give_one_apply(
    place: Place, stack: Path, tf: Run, tfguard: Run, tfguard_popen: Start
) -> None:
    copy = stack.with_name("copy")
    copy.mkdir()
    shutil.copy2(stack / "main.tf", copy)
    tf("init", "-input=false", cwd=copy)
    tf("workspace", "select", "dev", cwd=copy)
    (stack / "slow").touch()
    first = tfguard_popen(*APPLY, cwd=stack)
    wait_until(lambda: (stack / "started").exists())
    second = tfguard(*APPLY, "-lock=false", cwd=copy)
    assert second.returncode == 12, second.stderr
    assert f"pid {first.pid}" in second.stderr
    (stack / "slow").unlink()
    assert first.communicate(timeout=120) is not None
    assert first.returncode == 0
    assert not place.state_is_leased()
    assert place.head()["open_operations"] == []


@pytest.mark.parametrize(
    ("more", "environment"),
    [
        ("use_azuread_auth = true", PRINCIPAL),
        (f'resource_group_name = "{GROUP}"', {**PRINCIPAL, "ARM_SUBSCRIPTION_ID": SUBSCRIPTION}),
        ('metadata_host = "management.azure.com"', {"ARM_ACCESS_KEY": ACCOUNT_KEY}),
    ],
    ids=["role", "key-looked-up", "own-cloud"],
)
def test_tfguard_signs_in_as_the_engine_does(
    more: str,
    environment: dict[str, str],
    place: Place,
    run_env: dict[str, str],
    plain_stack: StackFactory,
    tfguard: Run,
) -> None:
    run_env.update(environment)
    stack = plain_stack(configuration(place, more))
    done = tfguard(*APPLY, cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{KEY}.tfguard/head.json" in place.names()
    assert step(status(tfguard, stack, code=0), "terraform_data.app")["outcome"] == "recorded"


def test_a_record_that_cannot_be_written_stops_the_run_before_the_engine(
    place: Place, stack: Path, tfguard: Run
) -> None:
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    BlobLeaseClient(place.client.get_blob_client(f"{RECORD}/head.json")).acquire()
    before = place.read(STATE)
    done = tfguard("apply", "-auto-approve", "-replace=terraform_data.app", cwd=stack)
    assert done.returncode == 10
    assert "LeaseIdMissing" in done.stderr
    assert "break the lease" in done.stderr
    assert place.read(STATE) == before


def test_a_container_that_cannot_be_reached_is_told_in_two_lines(
    stack: Path, run_env: dict[str, str], tfguard: Run
) -> None:
    run_env["ARM_ACCESS_KEY"] = "d3Jvbmc="
    done = tfguard("status", cwd=stack)
    assert done.returncode == 10
    assert "Traceback" not in done.stderr
    assert "renew the Azure credentials" in done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in SECRETS)


def test_records_of_a_local_state_go_to_a_container_that_the_configuration_names(
    place: Place, azure_server: AzureServer, run_env: dict[str, str], plain_stack: StackFactory, tfguard: Run
) -> None:
    run_env["ARM_ACCESS_KEY"] = ACCOUNT_KEY
    stack = plain_stack('resource "terraform_data" "app" {}\n')
    (stack / "tfguard.yaml").write_text(
        f"records: azblob://{ACCOUNT}/{place.name}/team?endpoint={azure_server.endpoint}\n"
    )
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert any(name.startswith("team/") and name.endswith("/head.json") for name in place.names())
    assert status(tfguard, stack, code=0)["record"].startswith(f"azblob://{ACCOUNT}/{place.name}/team/")
