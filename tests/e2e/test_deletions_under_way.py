"""Deletions that were begun and have no end: `status` and `recover` tell of them, as text and as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers import APPLY, Json, Run, StackFactory, record, status
from test_documents_fit_their_schemas import check

from fixtures.aws_sim import ACCOUNT_ID, MotoServer
from fixtures.fault_proxy import FaultProxy
from tfguard.model.disposition import DecidedObject, DestroyStage, Disposition, DispositionKind
from tfguard.schemas.records import encode_disposition

pytestmark = pytest.mark.e2e

BEGUN = datetime(2026, 3, 1, 12, tzinfo=UTC)
STAGES = {"app": DestroyStage.IN_PROGRESS, "left": DestroyStage.REQUESTED, "refused": DestroyStage.STOPPED}


@pytest.fixture
def stack(plain_stack: StackFactory, tfguard: Run, proxy: FaultProxy, moto: MotoServer) -> Path:  # noqa: ARG001
    """A stack in whose ledger roles are being deleted; of those only `left` and `refused` are still there."""
    for name in ("left", "refused"):
        moto.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    made = plain_stack('resource "terraform_data" "a" {}')
    assert tfguard(*APPLY, cwd=made).returncode == 0
    begun(made)
    return made


def begun(stack: Path) -> None:
    """Write what a killed `orphans destroy` leaves in the ledger."""
    entries = [
        Disposition(
            f"o-0000000{number}",
            DispositionKind.DESTROY,
            BEGUN,
            "ada@here",
            "stray",
            "",
            import_id=name,
            stage=stage,
            object=DecidedObject("aws_iam_role", "aws", ACCOUNT_ID, "global", name, None),
        )
        for number, (name, stage) in enumerate(STAGES.items())
    ]
    (record(stack) / "dispositions.jsonl").write_bytes(b"".join(map(encode_disposition, entries)))


def stages(entries: list[Json]) -> dict[str, str]:
    """How far each deletion is, by the name of the object."""
    return {one["decision"]["import_id"]: one["decision"]["stage"] for one in entries}


def test_status_tells_what_is_being_deleted_and_what_goes_on_with_it(stack: Path, tfguard: Run) -> None:
    told = status(tfguard, stack, code=11)
    assert check(told) == "operation"
    assert stages(told["deletions"]) == {"app": "in-progress", "left": "requested"}
    assert told["deletions"][0]["decision"]["actor"] == "ada@here"
    assert (told["open"], told["next_actions"]) == (False, ["tfguard recover"])
    text = tfguard("status", cwd=stack).stdout
    for said in (
        "the deletion of aws_iam_role app (o-00000000) is in-progress since 2026-03-01 12:00:00Z by ada@here",
        "the deletion of aws_iam_role left (o-00000001) is requested since",
        "next: tfguard recover\n",
    ):
        assert said in text
    assert "refused" not in text


def test_recover_tells_of_each_whether_it_is_gone(stack: Path, tfguard: Run) -> None:
    done = tfguard("recover", "--format", "json", cwd=stack)
    assert done.returncode == 11, done.stderr
    told = json.loads(done.stdout)
    assert check(told) == "recovery"
    assert told["operations"] == []
    assert stages(told["deletions"]) == {name: stage.value for name, stage in STAGES.items()}
    looked = {one["decision"]["import_id"]: (one["gone"], one["detail"]) for one in told["deletions"]}
    assert looked == {
        "app": (True, "verified to be gone by recover"),
        "left": (False, "it is still there"),
        "refused": (False, "it is still there"),
    }
    assert stages(status(tfguard, stack, code=11)["deletions"]) == {"left": "requested"}


def test_where_no_operation_is_recorded_the_deletions_are_told_all_the_same(
    plain_stack: StackFactory, tfguard: Run
) -> None:
    made = plain_stack("")
    record(made).mkdir()
    begun(made)
    told = status(tfguard, made, code=11)
    assert check(told) == "operation"
    assert (told["operation_id"], told["next_actions"]) == (None, ["tfguard recover"])
    assert stages(told["deletions"]) == {"app": "in-progress", "left": "requested"}
    assert "next: tfguard recover" in tfguard("status", cwd=made).stdout
