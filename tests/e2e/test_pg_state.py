"""A state in PostgreSQL: where the record lies, and how the next run goes on from a killed one."""

from __future__ import annotations

import json
import os
import signal
import time
from itertools import count
from pathlib import Path

import pytest
from helpers import APPLY, Json, Run, StackFactory, Start, kill, role, runs, settings, status, step, wait_until

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.postgres_server import PASSWORD, PostgresServer

pytestmark = pytest.mark.e2e

_NUMBERS = count(1)
TWO = 'resource "terraform_data" "a" {}\nresource "terraform_data" "b" {}\n'
SLOW = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch started; while [ ! -e go ]; do sleep 0.1; done"
  }
}
"""


@pytest.fixture
def schema() -> str:
    """A schema that is not there yet."""
    return f"state-{next(_NUMBERS)}"


@pytest.fixture
def block(postgres_server: PostgresServer, schema: str, run_env: dict[str, str]) -> str:
    """A backend block whose connection string is in the environment."""
    run_env["PG_CONN_STR"] = postgres_server.url()
    return f'terraform {{\n  backend "pg" {{\n    schema_name = "{schema}"\n  }}\n}}\n'


def rows(server: PostgresServer, schema: str) -> list[tuple[str, str]]:
    """Workspace and name of everything in the records."""
    found = server.execute(f'SELECT DISTINCT stack, name FROM "{schema}".tfguard_records ORDER BY 1, 2')
    return [(stack, name) for stack, name in found]


def head(server: PostgresServer, schema: str, workspace: str = "default") -> Json:
    """The head of a workspace's record; empty when there is none."""
    if server.execute("SELECT to_regclass(%s)", f'"{schema}".tfguard_records') == [(None,)]:
        return {}
    asked = f'SELECT data FROM "{schema}".tfguard_records WHERE name = %s AND stack = %s'
    found = server.execute(asked, "head.json", workspace)
    told: Json = json.loads(found[0][0]) if found else {}
    return told


def engine_pid(server: PostgresServer, schema: str) -> int:
    """The engine that runs now, as the lease names it."""
    wait_until(lambda: bool((head(server, schema).get("lease") or {}).get("engine")), 120)
    found: int = head(server, schema)["lease"]["engine"]["pid"]
    return found


def test_the_record_lies_beside_the_state_and_each_workspace_has_its_own(
    postgres_server: PostgresServer, schema: str, block: str, workdir: Path, tfguard: Run
) -> None:
    stack = workdir / "stack"
    stack.mkdir()
    (stack / "main.tf").write_text(block + TWO)
    assert tfguard("init", "-input=false", cwd=stack).returncode == 0
    done = tfguard(*APPLY, cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")
    found = rows(postgres_server, schema)
    assert ("default", "head.json") in found
    assert {workspace for workspace, _ in found} == {"default"}
    first = status(tfguard, stack, code=0)
    assert first["record"] == f"postgresql://127.0.0.1:{postgres_server.port}/postgres/{schema}/default"
    assert (first["stack"]["backend"], first["stack"]["workspace"]) == ("pg", "default")
    assert step(first, "terraform_data.a")["outcome"] == "recorded"
    assert not list(stack.rglob("*.tfguard"))

    assert tfguard("workspace", "new", "dev", cwd=stack).returncode == 0
    assert status(tfguard, stack, code=0)["steps"] == []
    (stack / "main.tf").write_text(block + 'resource "terraform_data" "c" {}\n')
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    second = status(tfguard, stack, code=0)
    assert [item["address"] for item in second["steps"]] == ["terraform_data.c"]
    assert {workspace for workspace, _ in rows(postgres_server, schema)} == {"default", "dev"}
    told = tfguard("history", "--format", "json", cwd=stack)
    assert told.returncode == 0, told.stderr
    assert len(json.loads(told.stdout)["operations"]) == 1

    written = postgres_server.execute(f'SELECT data FROM "{schema}".tfguard_records')
    shown = done.stdout + done.stderr + told.stdout + json.dumps([first, second])
    assert PASSWORD not in shown and "canary" not in shown
    assert not any(b"canary" in data for (data,) in written)


def test_a_killed_run_is_settled_by_recover(
    moto: MotoServer,
    proxy: FaultProxy,
    postgres_server: PostgresServer,
    schema: str,
    stack_factory: StackFactory,
    tfguard: Run,
    tfguard_popen: Start,
) -> None:
    backend = {"type": "pg", "conn_str": postgres_server.url(), "schema_name": schema}
    stack = settings(stack_factory(role(), backend=backend))
    proxy.add_rule("delay:60", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack)
    proxy.log.wait_for("CreateRole", timeout=120)
    engine = engine_pid(postgres_server, schema)
    running.kill()
    kill(engine)
    running.wait()
    wait_until(lambda: not runs(engine))
    proxy.clear()
    document = status(tfguard, stack, code=11)
    assert document["status"] == "interrupted"
    assert tfguard(*APPLY, cwd=stack).returncode == 11
    recovered = tfguard("recover", cwd=stack)
    assert recovered.returncode == 11, recovered.stdout + recovered.stderr
    found = step(status(tfguard, stack, code=11), "aws_iam_role.app")
    assert found["outcome"] == "orphaned"
    adopted = tfguard("import", "--orphan", found["finding"], "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stderr
    assert head(postgres_server, schema)["open_operations"] == []
    assert [item["RoleName"] for item in moto.client("iam").list_roles()["Roles"]] == ["app"]


def test_an_engine_that_outlives_its_killed_tfguard_is_waited_for_and_settled(
    postgres_server: PostgresServer,
    schema: str,
    block: str,
    plain_stack: StackFactory,
    tfguard: Run,
    tfguard_popen: Start,
) -> None:
    stack = settings(plain_stack(block + SLOW))
    running = tfguard_popen(*APPLY, cwd=stack)
    engine = engine_pid(postgres_server, schema)
    wait_until(lambda: (stack / "started").exists())
    running.kill()
    running.wait()
    assert runs(engine)
    assert tfguard(*APPLY, cwd=stack).returncode == 12
    (stack / "go").touch()
    wait_until(lambda: not runs(engine))
    recovered = tfguard("recover", cwd=stack)
    assert recovered.returncode == 0, recovered.stdout + recovered.stderr
    assert step(status(tfguard, stack, code=0), "terraform_data.slow")["outcome"] == "recorded"


def test_connections_that_end_during_a_run_are_made_again_and_not_even_mentioned(
    postgres_server: PostgresServer,
    schema: str,
    block: str,
    plain_stack: StackFactory,
    tfguard: Run,
    tfguard_popen: Start,
) -> None:
    stack = settings(plain_stack(block + SLOW))
    running = tfguard_popen(*APPLY, cwd=stack)
    engine_pid(postgres_server, schema)
    wait_until(lambda: (stack / "started").exists())
    for _ in range(3):
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tfguard'"
        postgres_server.execute(ended)
        time.sleep(0.2)
    (stack / "go").touch()
    _, told = running.communicate(timeout=120)
    assert (running.returncode, told) == (0, "")
    assert step(status(tfguard, stack, code=0), "terraform_data.slow")["outcome"] == "recorded"


def test_of_runs_that_start_together_one_alone_runs(
    postgres_server: PostgresServer, schema: str, block: str, plain_stack: StackFactory, tfguard_popen: Start
) -> None:
    stacks = [settings(plain_stack(block + SLOW, name=f"copy-{number}")) for number in range(5)]
    # None waits for another's lock while it plans, so that all come to the record.
    started = [tfguard_popen("apply", "-auto-approve", "-lock=false", cwd=stack) for stack in stacks]
    wait_until(lambda: sum(process.poll() is not None for process in started) == len(started) - 1, 240)
    (winner,) = (process for process in started if process.poll() is None)
    wait_until(lambda: any((stack / "started").exists() for stack in stacks))
    for stack in stacks:
        (stack / "go").touch()
    winner.communicate(timeout=120)
    assert winner.returncode == 0
    assert sorted(process.returncode for process in started) == [0, 12, 12, 12, 12]
    assert len({name for _, name in rows(postgres_server, schema) if name.endswith("/intent.json")}) == 1


def test_a_role_that_may_not_write_records_starts_no_engine(
    postgres_server: PostgresServer, schema: str, block: str, plain_stack: StackFactory, tfguard: Run
) -> None:
    stack = plain_stack(block + SLOW)
    name = postgres_server.make_role(f"pipeline-{next(_NUMBERS)}")
    postgres_server.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO "{name}"')
    postgres_server.execute(f'GRANT ALL ON "{schema}".states TO "{name}"')
    postgres_server.execute(f'GRANT USAGE ON SEQUENCE public.global_states_id_seq TO "{name}"')
    (stack / "go").touch()
    skipping = {name: "true" for name in ("PG_SKIP_TABLE_CREATION", "PG_SKIP_INDEX_CREATION")}
    environment = {"PG_CONN_STR": postgres_server.url(name), **skipping}
    done = tfguard(*APPLY, cwd=stack, env=environment)
    assert done.returncode == 10
    _what, advice = done.stderr.splitlines()
    assert not (stack / "started").exists()
    assert head(postgres_server, schema) == {}
    postgres_server.execute(advice[advice.index("CREATE") :])
    done = tfguard(*APPLY, cwd=stack, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_during_an_apply_is_settled(
    postgres_server: PostgresServer, schema: str, block: str, plain_stack: StackFactory, tfguard_popen: Start
) -> None:
    stack = settings(plain_stack(block + SLOW))
    running = tfguard_popen(*APPLY, cwd=stack)
    engine_pid(postgres_server, schema)
    wait_until(lambda: (stack / "started").exists())
    os.kill(running.pid, signal.SIGINT)
    running.communicate(timeout=120)
    assert running.returncode == 1
    assert head(postgres_server, schema).get("lease") is None


def test_records_of_any_stack_may_lie_in_postgresql(
    postgres_server: PostgresServer, plain_stack: StackFactory, tfguard: Run, run_env: dict[str, str]
) -> None:
    run_env["PGPASSWORD"] = PASSWORD
    place = f"postgresql://tfguard_test@127.0.0.1:{postgres_server.port}/postgres"
    stacks = [
        settings(plain_stack(TWO, name=name), records=f"{place}?sslmode=disable&schema_name=shared")
        for name in ("one", "two")
    ]
    for stack in stacks:
        done = tfguard(*APPLY, cwd=stack)
        assert (done.returncode, done.stderr) == (0, "")
        assert "canary" not in json.dumps(status(tfguard, stack, code=0))
    assert len({stack for stack, _ in rows(postgres_server, "shared")}) == 2
    secret = settings(stacks[0], records="postgresql://tfguard_test:hunter2@127.0.0.1/postgres")
    done = tfguard(*APPLY, cwd=secret)
    assert done.returncode == 1
    assert "PGPASSWORD" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr
