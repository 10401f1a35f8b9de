"""Who approved what was applied, and that no plan file is applied a second time without a word."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest
from helpers import APPLY, Json, Run, StackFactory, intent, operations, outcome, record, run_folders, status

from fixtures.terminal import Terminal

pytestmark = pytest.mark.e2e

ONE = 'resource "terraform_data" "a" {\n  input = "one"\n}\n'
FAILS = 'resource "terraform_data" "bad" {\n  provisioner "local-exec" {\n    command = "exit 3"\n  }\n}\n'
TFGUARD = [sys.executable, "-m", "tfguard"]
AGAIN = "this plan file was applied before"


def approval(stack: Path, tfguard: Run) -> Json:
    """How the newest operation was approved, as the record and `status` tell it alike."""
    kept = intent(stack, operations(stack)[-1])
    told = status(tfguard, stack, code=0)
    found: Json = kept["approval"]
    assert {name: told[name] for name in ("approval", "approved_by", "approved_at", "plan_digest")} == {
        "approval": found["how"],
        "approved_by": found["by"],
        "approved_at": found["at"],
        "plan_digest": kept["plan_digest"],
    }
    return found


def plans(stack: Path) -> dict[str, Json]:
    """The plan files that the record names, by digest."""
    return {path.stem: json.loads(path.read_text()) for path in (record(stack) / "plans").glob("*")}


def test_an_approval_at_the_prompt_is_the_users(
    plain_stack: StackFactory, run_env: dict[str, str], tfguard: Run
) -> None:
    stack = plain_stack(ONE)
    with Terminal([*TFGUARD, "apply"], stack, run_env) as terminal:
        terminal.wait_for("Enter a value:")
        terminal.type("yes\n")
        assert terminal.wait() == 0, terminal.shown
    found = approval(stack, tfguard)
    actor = intent(stack, operations(stack)[-1])["actor"]
    assert (found["how"], found["by"]) == ("prompt", actor["user"])
    assert plans(stack) == {}


def test_auto_approve_is_the_word_of_whoever_ran_the_command(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    found = approval(stack, tfguard)
    kept = intent(stack, operations(stack)[-1])
    assert (found["how"], found["by"]) == ("auto-approve", kept["actor"]["user"])
    assert found["at"] <= kept["started_at"]
    assert plans(stack) == {}


def test_in_a_pipeline_the_approval_is_that_of_whoever_triggered_it(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    job = {
        "GITHUB_REPOSITORY": "acme/app",
        "GITHUB_RUN_ID": "7",
        "GITHUB_JOB": "apply",
        "GITHUB_TRIGGERING_ACTOR": "ada",
    }
    assert tfguard("plan", "-out=p", cwd=stack).returncode == 0
    assert tfguard("apply", "p", cwd=stack, env=job).returncode == 0
    found = approval(stack, tfguard)
    assert (found["how"], found["by"]) == ("plan-file", "ada")
    (operation,) = operations(stack)
    digest = hashlib.sha256((stack / "p").read_bytes()).hexdigest()
    claim = plans(stack)[digest]
    assert claim.items() >= {"schema": "tfguard.applied-plan/v1", "operation_id": operation}.items()
    assert claim.items() >= {"at": found["at"], "by": "ada", "how": "plan-file"}.items()


def test_a_plan_file_that_was_applied_is_named_and_the_engine_decides(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    assert tfguard("plan", "-out=p", cwd=stack).returncode == 0
    first = tfguard("apply", "-no-color", "p", cwd=stack)
    assert first.returncode == 0
    assert AGAIN not in first.stderr
    (one,) = operations(stack)
    kept = plans(stack)
    (claim,) = kept.values()

    again = tfguard("apply", "-no-color", "p", cwd=stack)
    assert again.returncode == 1
    assert "Saved plan is stale" in again.stderr
    said = f"{AGAIN}, by operation {one} at {claim['at'][:19]}Z by {claim['by']} (plan-file)"
    assert f"tfguard: warning: {said}\n" in again.stderr
    assert again.stderr.index(AGAIN) < again.stderr.index("Saved plan is stale")
    found = outcome(stack, operations(stack)[-1])
    assert found is not None
    assert said in found["notes"]
    assert plans(stack) == kept


def test_a_plan_file_that_is_applied_again_after_a_failed_apply_is_named_too(
    plain_stack: StackFactory, tfguard: Run
) -> None:
    stack = plain_stack(ONE + FAILS)
    assert tfguard("plan", "-out=p", cwd=stack).returncode == 0
    assert tfguard("apply", "p", cwd=stack).returncode == 1
    (one,) = operations(stack)
    again = tfguard("apply", "p", cwd=stack)
    assert again.returncode == 1
    assert f"{AGAIN}, by operation {one} at " in again.stderr


def test_two_plan_files_of_one_stack_are_two_approvals(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    for word in ("one", "two"):
        (stack / "main.tf").write_text(ONE.replace("one", word))
        assert tfguard("plan", f"-out={word}", cwd=stack).returncode == 0
        done = tfguard("apply", word, cwd=stack)
        assert (done.returncode, AGAIN in done.stderr) == (0, False)
    assert {item["operation_id"] for item in plans(stack).values()} == set(operations(stack))


@pytest.mark.parametrize("damage", ["{", "", '{"schema": "tfguard.applied-plan/v2"}', "[]"])
def test_a_note_of_an_earlier_use_that_cannot_be_read_is_said_and_kept(
    plain_stack: StackFactory, tfguard: Run, damage: str
) -> None:
    stack = plain_stack(ONE)
    assert tfguard("plan", "-out=p", cwd=stack).returncode == 0
    (record(stack) / "plans").mkdir(parents=True)
    note = record(stack) / "plans" / f"{hashlib.sha256((stack / 'p').read_bytes()).hexdigest()}.json"
    note.write_text(damage)
    done = tfguard("apply", "p", cwd=stack)
    assert done.returncode == 0
    assert f"{AGAIN}; by which operation cannot be read" in done.stderr
    assert note.read_text() == damage


def test_a_plan_file_that_cannot_be_noted_is_not_applied(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    assert tfguard("plan", "-out=p", cwd=stack).returncode == 0
    record(stack).mkdir()
    (record(stack) / "plans").write_text("not a folder")
    done = tfguard("apply", "p", cwd=stack)
    assert done.returncode == 10
    assert "plans/" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (stack / "terraform.tfstate").exists()
    assert operations(stack) == []
    assert run_folders(stack) == []
    (record(stack) / "plans").unlink()
    assert tfguard("apply", "p", cwd=stack).returncode == 0


def test_a_plan_file_whose_run_could_not_begin_counts_as_not_applied(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    assert tfguard("plan", "-out=p", cwd=stack).returncode == 0
    record(stack).mkdir()
    (record(stack) / "operations").write_text("not a folder")
    done = tfguard("apply", "p", cwd=stack)
    assert done.returncode == 10, done.stderr
    assert plans(stack) == {}
    (record(stack) / "operations").unlink()
    done = tfguard("apply", "p", cwd=stack)
    assert (done.returncode, AGAIN in done.stderr) == (0, False)
