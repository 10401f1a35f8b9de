"""Stray databases: none goes without the last snapshot that its service takes by default, and the user names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import Run, StackFactory, settings

from fixtures.aws_sim import MotoServer
from fixtures.labelled.states import state_v4
from tests.contract.aws_creators import CREATORS, REGION, Cloud

pytestmark = pytest.mark.e2e

KINDS = ("aws_db_instance", "aws_dynamodb_table")


@pytest.fixture
def stack(moto: MotoServer, stack_factory: StackFactory) -> Path:
    """A stack without resources, in an account with a database and a table of another's."""
    for kind in KINDS:
        CREATORS[kind](Cloud(moto.url))
    folder = settings(stack_factory("", region=REGION), consistency_grace="0s")
    (folder / "terraform.tfstate").write_bytes(state_v4([], "databases"))
    return folder


def test_a_database_goes_with_a_last_snapshot_that_is_named_and_not_without(
    stack: Path, tfguard: Run, moto: MotoServer
) -> None:
    words = [word for kind in KINDS for word in ("--type", kind)]
    words += ["--region", REGION, "--state-file", "kept.json", "--format", "json"]
    looked = tfguard("scan", ".", *words, cwd=stack)
    found = {one["object"]["type"]: one["id"] for one in json.loads(looked.stdout)["findings"]}
    rds = moto.client("rds", region=REGION)

    def destroy(*kinds: str, more: tuple[str, ...] = ()) -> tuple[int, str]:
        ids = [found[kind] for kind in kinds]
        allowed = ("--yes", "--confirm", "one", "--stateful", "--findings", "kept.json")
        done = tfguard("orphans", "destroy", *ids, *allowed, *more, cwd=stack)
        return done.returncode, done.stdout + done.stderr

    code, said = destroy("aws_db_instance")
    assert (code, "--final-snapshot NAME" in said) == (1, True), said
    code, said = destroy(*KINDS, more=("--final-snapshot", "last"))
    assert (code, "the snapshot of one object" in said) == (1, True), said
    assert [one["DBInstanceIdentifier"] for one in rds.describe_db_instances()["DBInstances"]] == ["one"]

    code, said = destroy("aws_db_instance", more=("--final-snapshot", "last"))
    assert (code, "verified to be gone" in said) == (0, True), said
    assert "its final snapshot last is taken first" in said
    assert rds.describe_db_instances()["DBInstances"] == []
    (snapshot,) = rds.describe_db_snapshots(DBSnapshotIdentifier="last")["DBSnapshots"]
    assert snapshot["DBInstanceIdentifier"] == "one"
    (ledger,) = stack.glob("*.tfguard/dispositions.jsonl")
    assert json.loads(ledger.read_text().splitlines()[-1])["reason"] == "stray; final snapshot last"
