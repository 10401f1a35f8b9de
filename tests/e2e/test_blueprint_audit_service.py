"""The shipped blueprint `audit-service` on a simulated AWS and a real PostgreSQL: what is lost, refused and stopped on
the way is told, nothing is made twice, and the data stays until somebody says otherwise."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blueprint_places import SEARCH_PATH, shipped, statuses
from helpers import Json, Run, Start, wait_until

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.postgres_server import PASSWORD, LossyProxy, PostgresServer
from fixtures.record_servers import running_postgres

pytestmark = pytest.mark.e2e

FILE = "blueprint.yaml"
INPUTS = ("environment=prod", "admin_url=env:ADMIN_URL", "app_url=env:APP_URL")
CANARY = PASSWORD.rpartition("/")[2]
"""A part of the password that is the same in a URL."""
# What is planned and what is left of quotas has tests of its own, and costs an engine's run for each stack.
SKIPPED = tuple(word for name in ("stacks", "quotas") for word in ("--skip-check", f"{name}=tested elsewhere"))


@pytest.fixture
def postgres() -> Iterator[tuple[PostgresServer, contextlib.ExitStack]]:
    """A PostgreSQL, and what stops it when it is closed."""
    with contextlib.ExitStack() as running:
        yield running.enter_context(running_postgres()), running


@pytest.fixture
def folder(workdir: Path, seed: Path) -> Path:
    """A copy of the blueprint, ready to be applied."""
    return shipped("audit-service", workdir, seed).parent


class Request:
    """The request of the copied blueprint, as its owner sees it."""

    def __init__(self, folder: Path, tfguard: Run, env: dict[str, str]) -> None:
        self._folder = folder
        self._tfguard = tfguard
        self._env = env

    def call(self, command: str, *words: str, code: int, told: str = "") -> Json:
        """What a `blueprint` command tells as JSON; its exit code and a part of what it says are checked."""
        done = self._tfguard(
            "blueprint", command, FILE, *words, "--format", "json", cwd=self._folder, env=self._env, timeout=900
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert told in done.stderr, done.stderr
        assert CANARY not in done.stdout + done.stderr
        found: Json = json.loads(done.stdout)
        return found


def step(request: Json, name: str) -> Json:
    found: Json = next(step for step in request["steps"] if step["id"] == name)
    return found


def databases(moto: MotoServer) -> list[Any]:
    return [one["DBInstanceIdentifier"] for one in moto.client("rds").describe_db_instances()["DBInstances"]]


def parameters(moto: MotoServer) -> set[str]:
    found = moto.client("ssm").get_parameters_by_path(Path="/audit/prod", Recursive=True)["Parameters"]
    return {one["Name"].rpartition("/")[2] for one in found}


def test_a_request_is_truthful_from_a_lost_reply_to_ready_and_until_its_data_is_disposed_of(
    moto: MotoServer,
    proxy: FaultProxy,
    folder: Path,
    tfguard: Run,
    tfguard_popen: Start,
    postgres: tuple[PostgresServer, contextlib.ExitStack],
) -> None:
    server, running = postgres
    app = running.enter_context(LossyProxy(server.port).running())
    app.refusing = True
    env = {
        "ADMIN_URL": server.url(),
        "APP_URL": server.url(server.make_role("audit_app"), app.port),
        "PATH": SEARCH_PATH,
    }
    request = Request(folder, tfguard, env)

    # 1. The database is made, and its reply is lost.
    proxy.add_rule("drop", action="CreateDBInstance")
    inputs = [word for value in INPUTS for word in ("--input", value)]
    lost = request.call("apply", *inputs, *SKIPPED, "--yes", code=11)
    assert lost["state"] == "PartialFailure"
    assert statuses(lost) == {
        **dict.fromkeys(("repository", "namespace", "identity"), "ok"),
        "database": "retained",
        **dict.fromkeys(("migrate", "binding"), "pending"),
    }
    assert (step(lost, "database")["decision"], step(lost, "binding")["blocked_by"]) == ("adopt", ["migrate"])
    (found,) = step(lost, "database")["objects"]
    assert found["desired"] == {"identifier": "audit-prod"}
    assert databases(moto) == ["audit-prod"]

    # 2. and 8. It is found and adopted; then the binding fails, and what undoes it fails halfway.
    proxy.add_rule("deny", action="PutParameter", contains="/prod/role", count=None)
    proxy.add_rule("deny", action="DeleteParameter", contains="/prod/image")
    proxy.log.clear()
    failed = request.call("resume", *SKIPPED, "--yes", code=11)
    assert "CreateDBInstance" not in proxy.log.actions(mutating=True)
    assert databases(moto) == ["audit-prod"]
    kept = step(failed, "database")
    assert (failed["state"], kept["status"], kept["owner"]) == ("PartialFailure", "retained", "audit-team")
    assert kept["until"] > failed["seen_at"]
    (adopted,) = kept["objects"]
    assert [adopted[key] for key in ("observed_id", "desired", "created_at", "cost_owner", "disposition")] == [
        found["observed_id"],
        found["desired"],
        found["created_at"],
        "cc-1042",
        "retain",
    ]
    half = step(failed, "binding")
    assert (half["status"], half["activity"], half["decision"]) == ("error", "compensate", "undo")
    assert parameters(moto) == {"image"}

    # 4. and 8. The compensation is finished, the binding made anew; not Ready while the probe fails, Ready afterwards.
    proxy.rules.clear()
    repair = tfguard_popen("blueprint", "resume", FILE, *SKIPPED, "--yes", "--format", "json", cwd=folder, env=env)
    wait_until(lambda: app.connections >= 2 or repair.poll() is not None, 600)
    assert repair.poll() is None
    asked = request.call("status", code=11)
    assert (asked["state"], asked["live"], asked["ready_now"]) == ("Repairing", True, False)
    assert set(statuses(asked).values()) == {"ok"}
    app.refusing = False
    told, said = repair.communicate(timeout=600)
    assert repair.returncode == 0, told + said
    assert said.index("binding: destroyed") < said.index("binding: ok") < said.index("probe app-connection: ok")
    ready = json.loads(told)
    assert (ready["state"], ready["ready_now"]) == ("Ready", True)
    assert parameters(moto) == {"image", "namespace", "role", "database"}
    assert [change["to"] for change in ready["transitions"]] == [
        *("Requested", "Validated", "Provisioning", "PartialFailure"),
        *("Repairing", "PartialFailure", "Repairing", "Ready"),
    ]

    # 4. PostgreSQL is stopped.
    running.close()
    stopped = request.call("status", "--probe", code=11)
    assert (stopped["state"], stopped["ready_now"]) == ("Ready", False)
    assert [probe["status"] for probe in stopped["probes"]] == ["error"]
    counted = tfguard("metrics", "--blueprint", FILE, cwd=folder).stdout.splitlines()
    labels = f'blueprint="audit-service",file="{FILE}"'
    assert f"tfguard_blueprint_ready_probes_failing{{{labels}}} 1" in counted
    assert f"tfguard_blueprint_duplicate_ids{{{labels}}} 0" in counted

    # 2. Nor can it be repaired then; what is retained goes when it is told twice.
    again = request.call("resume", *SKIPPED, "--yes", code=11)
    assert (again["state"], step(again, "database")["status"]) == ("PartialFailure", "retained")
    # The binding stood when the request was Ready, and is no work of what failed now.
    assert (step(again, "migrate")["status"], step(again, "binding")["status"]) == ("error", "ok")
    held = request.call("destroy", "--dispose", "--yes", code=11, told="database: stays: it holds data; --stateful")
    assert (databases(moto), step(held, "migrate")["status"]) == (["audit-prod"], "error")
    proxy.add_rule("drop", action="DeleteDBInstance")
    gone = request.call("destroy", "--dispose", "--stateful", "--yes", code=0)
    assert gone["state"] == "Cleaned"
    assert set(statuses(gone).values()) == {"destroyed"}
    assert databases(moto) == []
    assert moto.client("ecr").describe_repositories()["repositories"] == []
    assert moto.client("iam").list_roles()["Roles"] == []
    written = [path for path in folder.rglob("*") if path.is_file() and ".terraform" not in path.parts]
    assert (folder / ".tfguard" / "blueprint" / "migrate.log") in written
    assert [path for path in written if CANARY.encode() in path.read_bytes()] == []
