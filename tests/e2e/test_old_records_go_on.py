"""A stack whose record an earlier tfguard wrote: the present one reads it, settles it, and goes on with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from helpers import APPLY, Run, StackFactory, addresses, head, intent, operations, outcome, record, run_folders, status

pytestmark = pytest.mark.e2e

DATA = Path(__file__).parent.parent / "schemas" / "data"
VERSIONS = sorted(path.name for path in DATA.iterdir() if path.is_dir())


def stack_of(plain_stack: StackFactory, version: str, kind: str) -> Path:
    """A stack with state and record as that version left them."""
    stack = plain_stack((DATA / version / kind / "main.tf").read_text())
    shutil.copytree(DATA / version / kind, stack, dirs_exist_ok=True)
    return stack


def documents(stack: Path, ids: list[str]) -> dict[str, bytes]:
    """Every byte of these operations' records."""
    folders = [record(stack) / "operations" / name for name in ids]
    return {str(path): path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_apply_goes_on_beside_a_settled_record(plain_stack: StackFactory, tfguard: Run, version: str) -> None:
    stack = stack_of(plain_stack, version, "settled")
    old = operations(stack)
    before = documents(stack, old)
    assert status(tfguard, stack, code=0)["operation_id"] == old[-1]
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 0, done.stderr
    (new,) = set(operations(stack)) - set(old)
    assert (head(stack)["current"], head(stack)["open_operations"]) == (new, [])
    assert intent(stack, new)["schema"] == "tfguard.intent/v2"
    assert documents(stack, old) == before
    listed = json.loads(tfguard("history", "--format", "json", cwd=stack).stdout)["operations"]
    assert [item["operation_id"] for item in listed] == [new, *reversed(old)]
    assert listed[-1]["approval"] == "auto-approve"
    assert listed[-1]["approved_by"] == "deploy"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_apply_settles_what_an_earlier_version_left_open(
    plain_stack: StackFactory, tfguard: Run, version: str
) -> None:
    stack = stack_of(plain_stack, version, "interrupted")
    (main := stack / "main.tf").write_text(main.read_text().replace("sleep 20", "true"))
    (old,) = operations(stack)
    untouched = (record(stack) / "operations" / old / "intent.json").read_bytes()
    found = status(tfguard, stack, code=11)
    assert (found["operation_id"], found["status"], found["open"]) == (old, "interrupted", True)
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 0, done.stderr
    settled = outcome(stack, old)
    assert settled is not None
    steps = {item["address"]: item["outcome"] for item in settled["steps"]}
    assert steps["terraform_data.a"] == "recorded"
    assert head(stack)["open_operations"] == []
    assert head(stack)["current"] != old
    assert (record(stack) / "operations" / old / "intent.json").read_bytes() == untouched
    assert addresses(stack) >= {"terraform_data.a", "terraform_data.b", "terraform_data.slow"}
    assert run_folders(stack) == []
