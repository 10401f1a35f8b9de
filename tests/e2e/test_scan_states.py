"""States and records as a scan finds them after real applies: in buckets, in databases, and through the backend."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import APPLY, Run, StackFactory, role, settings, status
from state_server import running_server

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.postgres_server import ADMIN, DATABASE, PASSWORD, PostgresServer
from fixtures.terraform_env import s3_backend
from tfguard.cli.invocation import Invocation
from tfguard.cli.states import state_sources
from tfguard.model.config import Config
from tfguard.ports import KnownState

pytestmark = pytest.mark.e2e

KEY = "net/terraform.tfstate"
WORKSPACES = ("default", "dev", "prod")


@pytest.fixture
def environment(run_env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What tfguard runs with, in this process too."""
    for name in [name for name in os.environ if name.startswith("TF_")]:
        monkeypatch.delenv(name)
    for name, value in run_env.items():
        if name.startswith(("AWS_", "TF_", "CHECKPOINT")):
            monkeypatch.setenv(name, value)
    return run_env


def read(*patterns: str, config: Config | None = None, workspaces: Sequence[str] = ()) -> list[KnownState]:
    sources = state_sources(patterns, Invocation(), config or Config(), None, workspaces)
    return [known for source in sources for known in source.read()]


def by_workspace(found: Sequence[KnownState]) -> dict[str, list[str]]:
    """The addresses in each state; a failure in place of them."""
    return {one.workspace: sorted(one.snapshot.addresses) if one.snapshot else [one.failure] for one in found}


def operations(known: KnownState) -> set[str]:
    """The operations that are recorded for a state."""
    assert known.records is not None
    return {name.split("/")[1] for name in known.records.names("operations")}


def applied(stack: Path, tf: Run, tfguard: Run) -> dict[str, tuple[str, str]]:
    """Apply in three workspaces; the operation and the state's location in each."""
    found = {}
    for workspace in WORKSPACES:
        if workspace != "default":
            tf("workspace", "new", workspace, cwd=stack)
        (stack / "more.tf").write_text(f'resource "terraform_data" "{workspace}" {{}}\n')
        done = tfguard(*APPLY, cwd=stack)
        assert done.returncode == 0, done.stderr
        document = status(tfguard, stack, code=0)
        found[workspace] = (document["operation_id"], document["stack"]["location"])
    tf("workspace", "select", "dev", cwd=stack)
    return found


def check(found: Sequence[KnownState], told: dict[str, tuple[str, str]]) -> None:
    """Every workspace is there, with the operation that wrote its state, under the name that the apply gave it."""
    assert by_workspace(found) == {name: [f"terraform_data.{name}"] for name in WORKSPACES}
    for one in found:
        operation, location = told[one.workspace]
        assert operations(one) == {operation}
        assert one.location == location


@pytest.mark.usefixtures("environment")
def test_three_workspaces_in_s3_are_found_in_the_bucket_and_through_the_backend(
    moto: MotoServer,
    proxy: FaultProxy,
    plain_stack: StackFactory,
    tf: Run,
    tfguard: Run,
) -> None:
    moto.client("s3").create_bucket(Bucket="state")
    arguments = {name: value for name, value in s3_backend("state", KEY).items() if name != "type"}
    block = "\n".join(f"{name} = {json.dumps(value)}" for name, value in arguments.items())
    stack = plain_stack(f'terraform {{\n  backend "s3" {{\n{block}\n}}\n}}\n')
    told = applied(settings(stack), tf, tfguard)

    url = "use_path_style=true"
    check(read(f"s3://state/**/terraform.tfstate?{url}"), told)
    check(read(f"s3://state/{KEY}?{url}"), told)
    proxy.log.clear()
    check(read(str(stack)), told)
    assert proxy.log.actions(mutating=True) == []
    assert (stack / ".terraform" / "environment").read_text() == "dev"
    assert set(by_workspace(read(str(stack), workspaces=["prod"]))) == {"prod"}

    # A role that may read one state, and may not look for others, has that one, and says that there may be more.
    proxy.add_rule("deny", service="s3", action="ListObjectsV2", count=None)
    found = read(f"s3://state/{KEY}?{url}")
    assert [one.snapshot is not None for one in found] == [True, False]
    assert "which workspaces there are is not known: cannot list the states below s3://state/env:/" in found[1].failure
    assert set(by_workspace(read(f"s3://state/{KEY}?{url}&workspace=default"))) == {"default"}
    # The same of a state that may not be read.
    proxy.clear()
    proxy.add_rule("deny", service="s3", method="GET", path="*/prod/*", count=None)
    denied = {one.workspace: one.failure for one in read(f"s3://state/**/*.tfstate?{url}")}
    assert denied["default"] == denied["dev"] == ""
    assert denied["prod"] == f"cannot read the state s3://state/env:/prod/{KEY}: AccessDenied"


def test_three_workspaces_in_postgresql_are_found_in_the_database_and_through_the_backend(
    postgres_server: PostgresServer,
    environment: dict[str, str],
    plain_stack: StackFactory,
    tf: Run,
    tfguard: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment["PG_CONN_STR"] = postgres_server.url()
    schema = "scan-states"
    stack = plain_stack(f'terraform {{\n  backend "pg" {{\n    schema_name = "{schema}"\n  }}\n}}\n')
    told = applied(settings(stack), tf, tfguard)

    url = f"postgresql://{ADMIN}@127.0.0.1:{postgres_server.port}/{DATABASE}?sslmode=disable&schema_name={schema}"
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    check(read(url), told)
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PG_CONN_STR", postgres_server.url())
    check(read(str(stack)), told)
    assert (stack / ".terraform" / "environment").read_text() == "dev"
    # A role that may not read is told so, for each schema of which it cannot tell what it holds.
    nobody = postgres_server.make_role("scan_nobody")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    (found,) = read(url.replace(ADMIN, nobody))
    assert found.snapshot is None
    assert "permission denied" in found.failure and PASSWORD not in found.failure


@pytest.mark.usefixtures("environment")
def test_a_backend_that_only_the_engine_reaches_is_read_through_it(
    plain_stack: StackFactory, tmp_path: Path, tfguard: Run
) -> None:
    with running_server() as server:
        backend = f'terraform {{\n  backend "http" {{\n    address = "{server.url}"\n  }}\n}}\n'
        stack = plain_stack(backend + 'resource "terraform_data" "a" {}\n')
        assert [one.snapshot and one.snapshot.lineage for one in read(str(stack))] == [""]
        records = f"file://{tmp_path}/records"
        assert tfguard(*APPLY, cwd=settings(stack, records=records)).returncode == 0
        writes = server.writes
        (found,) = read(str(stack), config=Config(records=records))
        assert by_workspace([found]) == {"default": ["terraform_data.a"]}
        assert operations(found) == {status(tfguard, stack, code=0)["operation_id"]}
        (beside,) = read(str(stack))
        assert beside.records is None
        assert (server.writes, server.lock) == (writes, b"")
        server.state = b"{}"
        (cut,) = read(str(stack))
        assert cut.snapshot is None and f"the state at http:{server.url} cannot be read" in cut.failure
    (gone,) = read(str(stack))
    assert gone.snapshot is None and gone.failure.count("\n") == 0


def test_an_object_that_a_state_elsewhere_has_is_not_adopted(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    client = moto.client("s3")
    client.create_bucket(Bucket="state")
    stack = settings(stack_factory(role()))
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    seen = status(tfguard, stack, code=11)["steps"][0]
    attributes = {"name": "app", "arn": seen["observed"][0]["arn"]}
    resource = {"mode": "managed", "type": "aws_iam_role", "name": "theirs", "instances": [{"attributes": attributes}]}
    held = json.dumps({"version": 4, "serial": 1, "lineage": "other", "resources": [resource]}).encode()
    settings(stack, scan='{stacks: ["s3://state/**/terraform.tfstate?use_path_style=true", "absent/**"]}')
    adopt = ("import", "--orphan", seen["finding"], "--yes")

    client.put_object(Bucket="state", Key=KEY, Body=held)
    refused = tfguard(*adopt, cwd=stack)
    assert refused.returncode == 1
    assert f"the state s3://state/{KEY} has it at aws_iam_role.theirs" in refused.stderr

    client.put_object(Bucket="state", Key=KEY, Body=held[:-4])
    unread = tfguard(*adopt, cwd=stack)
    assert unread.returncode == 1
    assert f"the state at s3://state/{KEY} cannot be read: it is cut or not JSON" in unread.stderr

    client.delete_object(Bucket="state", Key=KEY)
    adopted = tfguard(*adopt, cwd=stack)
    assert adopted.returncode == 0, adopted.stderr
