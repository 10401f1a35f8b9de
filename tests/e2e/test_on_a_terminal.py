"""Questions: on a terminal they come through as they are typed; without one nothing hangs and nothing is approved."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import APPLY, Run, StackFactory, Start, head, operations, run_folders, settings, wait_until
from state_server import StateServer

from fixtures.terminal import Terminal

pytestmark = pytest.mark.e2e

TFGUARD = [sys.executable, "-m", "tfguard"]
ONE = 'resource "terraform_data" "one" {}\n'
ASKING = """
variable "name" {
  description = "Who it is for"
}
variable "word" {
  sensitive = true
}
resource "terraform_data" "one" {
  input = var.name
}
resource "terraform_data" "two" {
  input      = var.word
  depends_on = [terraform_data.one]
}
output "said" {
  value = "for ${var.name}"
}
"""


def masked(shown: str) -> str:
    """A screen without what no two runs have in common."""
    return re.sub(r"\[id=[0-9a-f-]+\]|after \d+s", "~", shown)


@pytest.mark.parametrize("columns", [78, 40, 0])
def test_the_engines_questions_for_variables_come_through_as_typed(
    plain_stack: StackFactory, engine: Path, run_env: dict[str, str], columns: int
) -> None:
    screens = []
    for name, program in (("one", [str(engine)]), ("two", TFGUARD)):
        stack = plain_stack(ASKING, name=name)
        with Terminal([*program, "apply"], stack, run_env, columns) as terminal:
            terminal.wait_for("Enter a value:")
            terminal.type("joe\n")
            terminal.wait_for("var.word")
            # The engine turns the echo off a moment after it has asked.
            wait_until(lambda terminal=terminal: not terminal.echoes)
            terminal.type("hunter2\n")
            terminal.wait_for("perform these actions?")
            time.sleep(0.2)
            terminal.type("yes\n")
            assert terminal.wait() == 0, terminal.shown
            screens.append(masked(terminal.shown))
    assert "hunter2" not in screens[0]
    assert screens[1] == screens[0]


@pytest.mark.parametrize(("key", "code"), [("\x03", 130), ("\x04", 1), ("no\n", 1)], ids=["ctrl-c", "ctrl-d", "no"])
def test_at_the_question_a_ctrl_c_is_130_and_only_yes_is_yes(
    plain_stack: StackFactory, run_env: dict[str, str], key: str, code: int
) -> None:
    stack = plain_stack(ONE)
    with Terminal([*TFGUARD, "apply"], stack, run_env) as terminal:
        terminal.wait_for("Enter a value:")
        time.sleep(0.2)
        terminal.type(key)
        assert terminal.wait() == code, terminal.shown
        assert ("defect" in terminal.shown) is False
    assert operations(stack) == []
    assert not (stack / "terraform.tfstate").exists()
    assert run_folders(stack) == []


def test_a_ctrl_c_at_a_question_of_the_engine_is_for_the_engine(
    plain_stack: StackFactory, run_env: dict[str, str]
) -> None:
    stack = plain_stack(ASKING)
    with Terminal([*TFGUARD, "apply"], stack, run_env) as terminal:
        terminal.wait_for("Enter a value:")
        time.sleep(0.2)
        terminal.type("\x03")
        assert terminal.wait() == 1, terminal.shown
        assert "Two interrupts" not in terminal.shown
    assert run_folders(stack) == []


def test_a_window_that_is_closed_at_the_question_approves_nothing(
    plain_stack: StackFactory, run_env: dict[str, str]
) -> None:
    stack = plain_stack(ONE)
    with Terminal([*TFGUARD, "apply"], stack, run_env) as terminal:
        terminal.wait_for("Enter a value:")
        terminal.close()
        assert terminal.wait() in (1, 130)  # an answer that never comes, or the hang-up, whichever is seen first
    assert operations(stack) == []
    assert run_folders(stack) == []


def test_a_window_that_is_closed_during_the_apply_lets_the_engine_settle(
    plain_stack: StackFactory, run_env: dict[str, str], tfguard: Run
) -> None:
    stack = plain_stack(
        'resource "terraform_data" "one" {\n  provisioner "local-exec" {\n'
        '    command = "touch started; sleep 300"\n  }\n}\n'
    )
    with Terminal([*TFGUARD, *APPLY], stack, run_env) as terminal:
        wait_until(lambda: (stack / "started").exists())
        terminal.close()
        assert terminal.wait() == 1
    assert head(stack).get("lease") is None
    assert tfguard("status", cwd=stack).returncode == 0
    assert run_folders(stack) == []


@pytest.fixture
def server() -> Iterator[StateServer]:
    """A running http backend without a state."""
    with StateServer() as running:
        threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True).start()
        yield running
        running.shutdown()


@pytest.mark.parametrize(
    ("key", "code", "pushed"),
    [("\x03", 130, False), ("\x04", 11, False), ("no\n", 11, False), ("yes\n", 0, True)],
    ids=["ctrl-c", "ctrl-d", "no", "yes"],
)
def test_at_a_question_of_tfguards_own_only_yes_is_yes(
    plain_stack: StackFactory,
    run_env: dict[str, str],
    server: StateServer,
    tfguard: Run,
    tmp_path: Path,
    key: str,
    code: int,
    pushed: bool,
) -> None:
    body = f'terraform {{\n  backend "http" {{\n    address = "{server.url}"\n  }}\n}}\n{ONE}'
    stack = settings(plain_stack(body), records=f"file://{tmp_path}/records")
    server.refusing = True
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    server.refusing = False
    with Terminal([*TFGUARD, "recover"], stack, run_env) as terminal:
        terminal.wait_for("Only 'yes' is taken:")
        terminal.type(key)
        assert terminal.wait() == code, terminal.shown
    assert (server.state is not None) is pushed


@pytest.mark.parametrize("stdin", ["open pipe", "closed", "/dev/null"])
@pytest.mark.parametrize("body", [ONE, ASKING], ids=["approval", "variable"])
def test_without_a_terminal_nothing_hangs_and_nothing_is_approved(
    plain_stack: StackFactory, run_env: dict[str, str], stdin: str, body: str
) -> None:
    stack = plain_stack(body)
    argv = ["sh", "-c", 'exec "$@" <&-', "sh"] if stdin == "closed" else []
    source = subprocess.PIPE if stdin == "open pipe" else subprocess.DEVNULL
    with subprocess.Popen(
        [*argv, *TFGUARD, "apply", "-no-color"],
        cwd=stack,
        env=run_env,
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.wait(timeout=120) == 1
        out, err = running.stdout.read(), running.stderr.read()
    assert "Error:" in err, out + err
    assert ("perform these actions?" in out) is (body == ONE)
    assert operations(stack) == []
    assert not (stack / "terraform.tfstate").exists()
    assert run_folders(stack) == []


def test_a_question_is_seen_before_it_is_answered_also_in_a_pipe(
    plain_stack: StackFactory, tfguard_popen: Start
) -> None:
    stack = plain_stack(ONE)
    running = tfguard_popen("apply", "-no-color", cwd=stack, stdin=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdin is not None
    shown = ""
    while "Enter a value: " not in shown:
        piece = os.read(running.stdout.fileno(), 4096).decode()
        assert piece, shown
        shown += piece
    running.stdin.write("yes\n")
    running.stdin.flush()
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, out + err
    assert "Apply complete!" in out
