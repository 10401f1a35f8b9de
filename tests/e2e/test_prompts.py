"""Questions about variables, piped and typed, and what becomes of a plan when its terminal goes away."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from helpers import Run, StackFactory, Start, operations, run_folders, wait_until

from fixtures.terminal import Terminal

pytestmark = pytest.mark.e2e

ASKING = """
variable "first" {}
variable "second" { sensitive = true }
resource "terraform_data" "a" { input = "${var.first} and ${nonsensitive(var.second)}" }
output "a" { value = terraform_data.a.output }
"""


def test_each_question_takes_one_line_of_what_is_piped_in(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ASKING)
    done = tfguard("apply", "-no-color", cwd=stack, stdin="one\ntwo\nyes\n")
    assert done.returncode == 0, done.stderr
    assert 'a = "one and two"' in done.stdout
    assert len(operations(stack)) == 1


@pytest.mark.parametrize("more", [(), ("-auto-approve",)])
def test_a_pipe_that_nobody_writes_to_ends_in_the_engines_error(
    plain_stack: StackFactory, tfguard_popen: Start, more: tuple[str, ...]
) -> None:
    stack = plain_stack(ASKING)
    running = tfguard_popen("apply", "-no-color", *more, cwd=stack, stdin=-1)
    assert running.wait(timeout=60) == 1
    assert running.stderr is not None
    assert "No value for required variable" in running.stderr.read()
    assert operations(stack) == []
    assert run_folders(stack) == []


DEAF = """#!/bin/sh
if [ "$1" = plan ] && [ ! -e asked ]; then
  touch asked
  printf 'var.first\\n  Enter a value: '; read -r line; printf '\\nvar.second\\n  Enter a value: '
  trap 'exit 1' INT
  while :; do sleep 0.1; done
fi
exec terraform "$@"
"""


@pytest.mark.parametrize(("answers", "code"), [("one\ntwo\nyes\n", 0), ("", 1)])
def test_an_engine_that_has_stopped_listening_is_asked_anew(
    plain_stack: StackFactory, tfguard: Run, tmp_path: Path, answers: str, code: int
) -> None:
    """Terraform asks the second question before it has done with the first, and at times nobody reads the answer, or
    that there is none."""
    stack = plain_stack(ASKING)
    deaf = tmp_path / "deaf"
    deaf.write_text(DEAF)
    deaf.chmod(0o755)
    done = tfguard("--engine", str(deaf), "apply", "-no-color", cwd=stack, stdin=answers)
    assert done.returncode == code, done.stderr
    assert (stack / "asked").exists()
    assert "the engine asked, and did not read the answer" in done.stderr
    assert code or 'a = "one and two"' in done.stdout
    assert not code or "No value for required variable" in done.stderr
    assert run_folders(stack) == []


def test_an_answer_that_is_not_asked_for_stays_in_the_pipe(plain_stack: StackFactory, tfguard: Run) -> None:
    """The plan reads nothing when it asks nothing, so that the line is there for the approval."""
    stack = plain_stack('resource "terraform_data" "a" {}\n')
    assert tfguard("apply", "-no-color", cwd=stack, stdin="yes\n").returncode == 0


def test_what_is_typed_is_seen_once_and_a_secret_not_at_all(plain_stack: StackFactory, run_env: dict[str, str]) -> None:
    stack = plain_stack(ASKING.replace("nonsensitive(var.second)", "length(var.second)"))
    with Terminal([sys.executable, "-m", "tfguard", "apply", "-no-color"], stack, run_env, columns=100) as terminal:
        shown = 0
        for line in ("visible\n", "hunter2\n", "no\n"):
            terminal.wait_for("Enter a value:", after=shown)
            shown = terminal.shown.rindex("Enter a value:") + 14
            terminal.type(line)
        assert terminal.process.wait(timeout=60) == 1
    assert terminal.shown.count("visible\n") == 1
    assert "hunter2" not in terminal.shown
    assert "\r" not in terminal.shown


LATE = """#!/bin/sh
case "$1" in
plan) touch planning; while [ ! -e go ]; do sleep 0.05; done; terraform "$@"; echo $? > ended ;;
*) exec terraform "$@" ;;
esac
"""


def test_a_plan_on_a_terminal_outlives_tfguard_and_harms_nothing(
    plain_stack: StackFactory, run_env: dict[str, str], tmp_path: Path
) -> None:
    """It meets no signal when tfguard is killed, and when it writes an error that it does not mind."""
    stack = plain_stack('resource "terraform_data" "a" {}\n')
    late = tmp_path / "late"
    late.write_text(LATE)
    late.chmod(0o755)
    argv = [sys.executable, "-m", "tfguard", "--engine", str(late), "apply", "-auto-approve"]
    with Terminal(argv, stack, run_env, columns=100) as terminal:
        wait_until(lambda: (stack / "planning").exists())
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.process.wait(timeout=60)
    (stack / "go").touch()
    wait_until(lambda: (stack / "ended").exists() and bool((stack / "ended").read_text()))
    assert (stack / "ended").read_text() == "0\n"
    assert not (stack / "terraform.tfstate").exists()
    assert operations(stack) == []
