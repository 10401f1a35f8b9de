"""One run at a time on a stack, from before its plan on: others are told, or wait, and never start an engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from helpers import APPLY, Run, StackFactory, Start, head, kill, operations, record, settings, wait_until

from fixtures.large_runs import TFGUARD
from fixtures.terminal import Terminal

pytestmark = pytest.mark.e2e

# An apply that lasts until somebody makes the file `go`.
LASTING = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch running; until [ -e go ]; do sleep 0.05; done"
  }
}
"""


def test_a_second_run_is_refused_before_it_plans(plain_stack: StackFactory, tfguard: Run, tfguard_popen: Start) -> None:
    stack = settings(plain_stack(LASTING))
    running = tfguard_popen(*APPLY, cwd=stack)
    wait_until(lambda: (stack / "running").exists())
    for arguments in (APPLY, ("destroy", "-auto-approve"), ("refresh",), ("taint", "terraform_data.slow")):
        second = tfguard(*arguments, cwd=stack)
        assert (second.returncode, second.stdout) == (12, ""), second.stderr
        assert "it is running (pid" in second.stderr
    (stack / "go").touch()
    assert running.wait(60) == 0
    assert len(operations(stack)) == 1


def test_with_a_lock_timeout_a_second_run_waits_for_the_first_as_for_the_engines_lock(
    plain_stack: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(plain_stack(LASTING))
    running = tfguard_popen(*APPLY, cwd=stack)
    wait_until(lambda: (stack / "running").exists())
    impatient = tfguard(*APPLY, "-lock-timeout=1500ms", cwd=stack)
    assert impatient.returncode == 12
    assert "waiting for it" in impatient.stderr
    patient = tfguard_popen(*APPLY, "-lock-timeout=2m", cwd=stack)
    (stack / "go").touch()
    assert running.wait(60) == 0
    assert patient.wait(60) == 0
    assert len(operations(stack)) == 2


def test_a_run_at_its_question_holds_the_stack_and_a_no_leaves_the_record_as_it_was(
    plain_stack: StackFactory, tfguard: Run, run_env: dict[str, str]
) -> None:
    stack = settings(plain_stack('resource "terraform_data" "a" {}'))
    with Terminal([*TFGUARD, "apply"], stack, run_env) as terminal:
        terminal.wait_for("Enter a value:")
        second = tfguard(*APPLY, cwd=stack)
        assert (second.returncode, second.stdout) == (12, "")
        shown = tfguard("status", cwd=stack)
        assert "it is running (pid" in shown.stdout
        terminal.type("no\n")
        assert terminal.process.wait(60) == 1
    assert not (record(stack) / "head.json").exists()
    assert tfguard(*APPLY, cwd=stack).returncode == 0


def test_a_plan_that_fails_gives_the_lease_back(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = settings(plain_stack('resource "terraform_data" "a" {}'))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    before = head(stack)
    (stack / "main.tf").write_text('resource "terraform_data" "a" { input = var.missing }')
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    assert head(stack) == before


def test_a_run_that_was_killed_while_it_planned_leaves_nothing_in_the_way(
    plain_stack: StackFactory, tfguard: Run, run_env: dict[str, str]
) -> None:
    stack = settings(plain_stack('resource "terraform_data" "a" {}'))
    with Terminal([*TFGUARD, "apply"], stack, run_env) as terminal:
        terminal.wait_for("Enter a value:")
        assert json.loads((record(stack) / "head.json").read_text())["lease"]
        kill(terminal.process.pid)
        terminal.process.wait(60)
    assert tfguard("status", cwd=stack).returncode == 0
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert len(operations(stack)) == 1


def test_an_empty_state_that_another_engine_holds_is_not_called_damaged(
    plain_stack: StackFactory, tfguard: Run, run_env: dict[str, str], engine: Path
) -> None:
    stack = settings(plain_stack(LASTING))
    plain = subprocess.Popen([str(engine), *APPLY], cwd=stack, env=run_env, stdout=subprocess.DEVNULL)
    wait_until(lambda: (stack / "running").exists())
    assert (stack / "terraform.tfstate").read_bytes() == b""
    refused = tfguard(*APPLY, cwd=stack)
    assert (refused.returncode, refused.stdout) == (12, "")
    assert "an engine is about to write it" in refused.stderr
    assert "delete" not in refused.stderr
    (stack / "go").touch()
    assert plain.wait(60) == 0
    assert tfguard(*APPLY, cwd=stack).returncode == 0
