"""Polite signals, to tfguard alone and through terminals and wrappers: one interrupt for one intent, and patience.

What counts the interrupts is a stand-in (fixtures/stand_in_engine.py); the other tests run the real engine.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import (
    APPLY,
    Run,
    StackFactory,
    Start,
    engine_pid,
    head,
    in_flight,
    kill,
    operations,
    provider_pid,
    record,
    role,
    run_folders,
    runs,
    settings,
    status,
    step,
    wait_until,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.leftovers import end_processes_in
from fixtures.stand_in_engine import install
from fixtures.terminal import Terminal

pytestmark = pytest.mark.e2e


def test_a_termination_reaches_the_engine_as_one_interrupt_and_the_role_in_flight_is_accounted_for(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role() + role("later", more="depends_on = [aws_iam_role.app]")))
    proxy.add_rule("delay:300", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack)
    in_flight(proxy, "CreateRole")
    running.send_signal(signal.SIGTERM)
    time.sleep(1.5)
    # A pipeline that loses its patience is still the same wish to stop.
    running.send_signal(signal.SIGTERM)
    running.send_signal(signal.SIGHUP)
    proxy.release()
    out, err = running.communicate(timeout=60)

    assert running.returncode == 1, out + err
    assert out.count("Interrupt received") == 1
    assert "Two interrupts received" not in out
    assert err.count("the engine was interrupted once") == 1
    document = status(tfguard, stack, code=11)
    assert (document["status"], document["engine"]["exit_code"]) == ("cancelled", 1)
    assert step(document, "aws_iam_role.app")["outcome"] == "orphaned"
    assert (step(document, "aws_iam_role.later")["status"], step(document, "aws_iam_role.later")["outcome"]) == (
        "pending",
        "absent",
    )
    assert [item["RoleName"] for item in moto.client("iam").list_roles()["Roles"]] == ["app"]
    assert run_folders(stack) == []


def test_an_interrupt_at_the_question_changes_nothing_and_records_nothing(
    plain_stack: StackFactory, tfguard_popen: Start
) -> None:
    stack = plain_stack('resource "terraform_data" "one" {}\n')
    # A pipe that stays open: nobody has answered yet.
    running = tfguard_popen("apply", "-no-color", cwd=stack, stdin=-1, stdout=(stack / "out").open("w"))
    wait_until(lambda: "Enter a value:" in (stack / "out").read_text())
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=30) == 130
    assert operations(stack) == []
    assert not (stack / "terraform.tfstate").exists()
    assert run_folders(stack) == []


class Scene:
    """A stack for the stand-in engine, and what it heard and did."""

    def __init__(self, folder: Path, run_env: dict[str, str]) -> None:
        self.stack = folder / "stack"
        self.told = folder / "stand-in"
        for made in (self.stack, self.told):
            made.mkdir()
        (self.stack / "main.tf").write_text('resource "terraform_data" "one" {}\n')
        self.engine = install(folder / "bin")
        self.env = run_env | {"STAND_IN": str(self.told), "TFGUARD_ENGINE": str(self.engine)}

    def hold(self, command: str) -> None:
        """Make the engine stop halfway through a command."""
        (self.told / f"hold-{command}").touch()

    def go_on(self, command: str) -> None:
        """Let it go on."""
        (self.told / f"hold-{command}").unlink()

    def lines(self, name: str) -> list[str]:
        """What the stand-in has written down: `signals`, `log`."""
        path = self.told / name
        return path.read_text().splitlines() if path.exists() else []

    def wait_for(self, line: str, times: int = 1, name: str = "log") -> None:
        """Wait until it has written a line so often."""
        wait_until(lambda: self.lines(name).count(line) >= times)

    @property
    def journal(self) -> list[dict[str, object]]:
        """The journal of the stack's only operation."""
        (operation,) = operations(self.stack)
        text = (record(self.stack) / "operations" / operation / "events.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def scene(workdir: Path, run_env: dict[str, str]) -> Iterator[Scene]:
    """A stand-in engine that holds while it applies."""
    made = Scene(workdir, run_env)
    made.hold("apply")
    yield made
    end_processes_in(workdir)


AUTO = [sys.executable, "-m", "tfguard", *APPLY]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_any_signal_is_one_interrupt_and_tfguard_stays_until_the_engine_has_ended(
    scene: Scene, tfguard_popen: Start, signum: signal.Signals
) -> None:
    running = tfguard_popen(*APPLY, cwd=scene.stack, env=scene.env)
    scene.wait_for("apply holds")
    running.send_signal(signum)
    scene.wait_for("apply SIGINT", name="signals")
    for impatient in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        running.send_signal(impatient)
    assert running.poll() is None
    assert head(scene.stack)["lease"] is not None
    scene.go_on("apply")
    out, err = running.communicate(timeout=60)
    assert running.returncode == 1, out + err
    assert scene.lines("signals") == ["apply SIGINT"]
    assert scene.lines("log")[-1] == "unlocked"
    assert head(scene.stack).get("lease") is None
    assert next(entry["action"] for entry in scene.journal if entry["kind"] == "signal") == signum.name
    assert all(line.startswith("tfguard: ") for line in err.splitlines())


@pytest.mark.parametrize("presses", [1, 2])
def test_each_ctrl_c_on_a_terminal_is_one_interrupt_also_when_they_come_fast(scene: Scene, presses: int) -> None:
    with Terminal(AUTO, scene.stack, scene.env) as terminal:
        scene.wait_for("apply holds")
        terminal.type("\x03")
        if presses == 2:
            time.sleep(0.1)
            terminal.type("\x03")
        scene.wait_for("apply SIGINT", presses, "signals")
        if presses == 1:
            scene.go_on("apply")
        assert terminal.wait() == 1, terminal.shown
        assert terminal.shown.count("the engine was interrupted once") == 1
        assert terminal.shown.count("the engine was interrupted again") == presses - 1
    assert scene.lines("signals") == ["apply SIGINT"] * presses


@pytest.mark.parametrize("words", [("plan",), ("apply", "--yes")])
@pytest.mark.parametrize("on_terminal", [False, True])
def test_while_a_blueprint_is_planned_an_interrupt_is_told_and_passed_on_at_once(
    scene: Scene, words: tuple[str, ...], on_terminal: bool
) -> None:
    file = scene.stack.parent / "b.yaml"
    file.write_text("apiVersion: tfguard/v1\nkind: Blueprint\nname: b\nsteps: {a: {stack: stack}}\n")
    scene.hold("plan")
    with Terminal([sys.executable, "-m", "tfguard", "blueprint", *words, "b.yaml"], file.parent, scene.env) as running:
        scene.wait_for("plan holds")
        if on_terminal:
            running.type("\x03")
        else:
            running.process.send_signal(signal.SIGINT)
        scene.wait_for("plan SIGINT", name="signals")
        running.wait_for("interrupted: ")
        scene.go_on("plan")
        assert running.wait() == 130, running.shown
    assert scene.lines("signals") == ["plan SIGINT"]
    assert "interrupted; nothing was changed" in running.shown
    assert "on record" not in running.shown and "cannot be planned" not in running.shown
    assert not list((file.parent / "b.tfguard").rglob("request.json"))


PLAIN = 'tfguard "$@"\nexit $?'
TRAPS = (
    "trap 'kill -INT $child' INT\ntfguard \"$@\" &\nchild=$!\n"
    "while :; do wait $child; code=$?; kill -0 $child 2>/dev/null || exit $code; done"
)
# As npm and many a tool do: the group has had the interrupt, and the child gets it from its parent too.
FORWARDS = """
import signal, subprocess, sys, time
child = subprocess.Popen(["tfguard", *sys.argv[1:]])
def forward(number, frame):
    time.sleep({delay})
    child.send_signal(number)
signal.signal(signal.SIGINT, forward)
sys.exit(child.wait())
"""


def wrapped(folder: Path, text: str, interpreter: str) -> list[str]:
    """A script that calls `tfguard` apply, and a `tfguard` for it to call."""
    for name, shebang, body in (
        ("wrapper", interpreter, text),
        ("tfguard", "/bin/sh", f'exec "{sys.executable}" -m tfguard "$@"'),
    ):
        path = folder / name
        path.write_text(f"#!{shebang}\n{body}\n")
        path.chmod(0o755)
    return [str(folder / "wrapper"), *APPLY]


@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.parametrize(
    ("text", "interpreter"),
    [
        (PLAIN, "/bin/sh"),
        (PLAIN, "/bin/bash"),
        (TRAPS, "/bin/bash"),
        (FORWARDS.format(delay=0), sys.executable),
        (FORWARDS.format(delay=1.5), sys.executable),
    ],
    ids=["sh", "bash", "trap", "forwards", "forwards-late"],
)
def test_a_ctrl_c_that_a_wrapper_hands_on_too_is_one_interrupt(
    scene: Scene, tmp_path: Path, text: str, interpreter: str, presses: int
) -> None:
    argv = wrapped(tmp_path, text, interpreter)
    env = scene.env | {"PATH": f"{tmp_path}{os.pathsep}{scene.env['PATH']}"}
    with Terminal(argv, scene.stack, env) as terminal:
        scene.wait_for("apply holds")
        for press in range(presses):
            terminal.type("\x03")
            try:
                scene.wait_for("apply SIGINT", press + 1, "signals")
            except AssertionError:  # of two that wait at the same moment the kernel makes one: a person presses again
                terminal.type("\x03")
                scene.wait_for("apply SIGINT", press + 1, "signals")
            if "forward" in text and press == 0:  # after the second one the engine ends, before it is handed on
                with contextlib.suppress(AssertionError):  # as above
                    wait_until(lambda: terminal.shown.count("tfguard: SIGINT") == 2, 15)
        if presses == 1:
            scene.go_on("apply")
        # A shell without a trap dies of the Ctrl-C that its child survives; tfguard goes on without it.
        terminal.wait()
        wait_until(lambda: bool(operations(scene.stack)) and head(scene.stack).get("lease") is None)
    assert scene.lines("signals") == ["apply SIGINT"] * presses
    assert scene.lines("log")[-1] == "unlocked"


@pytest.mark.skipif(shutil.which("timeout") is None, reason="no timeout(1) on this machine")
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_timeout_that_signals_its_child_and_then_the_group_is_one_interrupt(
    scene: Scene, signum: signal.Signals
) -> None:
    running = subprocess.Popen(["timeout", "1000", *AUTO], cwd=scene.stack, env=scene.env, start_new_session=True)
    scene.wait_for("apply holds")
    running.send_signal(signum)
    scene.wait_for("apply SIGINT", name="signals")
    scene.go_on("apply")
    running.wait(timeout=60)
    wait_until(lambda: head(scene.stack).get("lease") is None)
    assert scene.lines("signals") == ["apply SIGINT"]


def test_an_engine_that_takes_half_a_minute_to_unlock_gets_it(scene: Scene, tfguard_popen: Start) -> None:
    running = tfguard_popen(*APPLY, cwd=scene.stack, env=scene.env | {"STAND_IN_UNLOCK_SECONDS": "30"})
    scene.wait_for("apply holds")
    running.send_signal(signal.SIGTERM)
    scene.wait_for("apply SIGINT", name="signals")
    scene.go_on("apply")
    scene.wait_for("unlocking")
    began = time.monotonic()
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 1, out + err
    assert time.monotonic() - began >= 29
    assert scene.lines("log")[-1] == "unlocked"
    assert scene.lines("signals") == ["apply SIGINT"]
    assert head(scene.stack).get("lease") is None


def test_a_hang_up_that_nohup_ignores_is_no_intent(scene: Scene) -> None:
    argv = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *AUTO]
    running = subprocess.Popen(argv, cwd=scene.stack, env=scene.env, start_new_session=True)
    scene.wait_for("apply holds")
    running.send_signal(signal.SIGHUP)
    scene.go_on("apply")
    assert running.wait(timeout=60) == 0
    assert scene.lines("signals") == []


@pytest.mark.parametrize(
    ("command", "query", "signum"),
    [
        (APPLY, "show", signal.SIGINT),
        (APPLY, "show", signal.SIGTERM),
        (APPLY, "show", signal.SIGHUP),
        (APPLY, "show", signal.SIGQUIT),
        (("status",), "version", signal.SIGINT),
        (("history",), "version", signal.SIGTERM),
        (("orphans", "list"), "version", signal.SIGINT),
        (("recover",), "version", signal.SIGTERM),
        (("version",), "version", signal.SIGTERM),
        (("version",), "version", signal.SIGHUP),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
)
def test_an_interrupt_while_no_engine_changes_anything_is_130(
    scene: Scene, tfguard_popen: Start, command: tuple[str, ...], query: str, signum: signal.Signals
) -> None:
    scene.hold(query)
    running = tfguard_popen(*command, cwd=scene.stack, env=scene.env)
    scene.wait_for(f"{query} holds")
    running.send_signal(signum)
    scene.go_on(query)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, out + err
    assert "apply holds" not in scene.lines("log")
    assert operations(scene.stack) == []
    assert run_folders(scene.stack) == []


def test_an_interrupt_while_the_engine_plans_is_the_engines_own_to_answer(scene: Scene, tfguard_popen: Start) -> None:
    scene.hold("plan")
    running = tfguard_popen(*APPLY, cwd=scene.stack, env=scene.env)
    scene.wait_for("plan holds")
    running.send_signal(signal.SIGTERM)
    scene.wait_for("plan SIGINT", name="signals")
    scene.go_on("plan")
    assert running.wait(timeout=60) == 1
    assert scene.lines("signals") == ["plan SIGINT"]
    assert operations(scene.stack) == []


def test_an_interrupt_during_the_lists_before_a_run_is_130_at_once(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("delay:300", action="ListRoles", count=None)
    running = tfguard_popen(*APPLY, cwd=stack)
    in_flight(proxy, "ListRoles")
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=60) == 130
    proxy.clear()
    assert moto.client("iam").list_roles()["Roles"] == []
    assert operations(stack) == []


def test_an_interrupt_while_recover_waits_is_130_and_leaves_the_step_unknown(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role()), consistency_grace="1h")
    proxy.add_rule("refuse", action="CreateRole", count=None)
    running = tfguard_popen(*APPLY, cwd=stack)
    in_flight(proxy, "CreateRole")
    engine = engine_pid(stack)
    provider = provider_pid(engine)
    for pid in (running.pid, engine, provider):
        kill(pid)
    running.wait()
    wait_until(lambda: not runs(engine) and not runs(provider))
    proxy.clear()
    errors = stack / "recover-stderr"
    with errors.open("w") as stderr:
        recovering = tfguard_popen("recover", cwd=stack, stderr=stderr)
        wait_until(lambda: "looking for" in errors.read_text(), 120)
        recovering.send_signal(signal.SIGINT)
        assert recovering.wait(timeout=60) == 130
    assert step(status(tfguard, stack, code=11), "aws_iam_role.app")["outcome"] == "unknown"


SLEEPS = """
resource "terraform_data" "one" {
  provisioner "local-exec" {
    command = "touch started; sleep 300"
  }
}
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "text", ["", 'exec "$ENGINE" "$@"', '"$ENGINE" "$@"\nexit $?'], ids=["plain", "execs", "forks"]
)
def test_the_real_engine_settles_after_one_interrupt_also_behind_a_script(
    plain_stack: StackFactory,
    engine: Path,
    tfguard: Run,
    tfguard_popen: Start,
    tmp_path: Path,
    text: str,
    signum: signal.Signals,
) -> None:
    stack = plain_stack(SLEEPS)
    script = tmp_path / "terraform-script"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    env = {"ENGINE": str(engine)} | ({"TFGUARD_ENGINE": str(script)} if text else {})
    running = tfguard_popen(*APPLY, cwd=stack, env=env)
    wait_until(lambda: (stack / "started").exists())
    running.send_signal(signum)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 1, out + err
    assert out.count("Interrupt received") == 1
    assert "Two interrupts received" not in out + err
    assert err.count("the engine was interrupted once") == 1
    assert head(stack).get("lease") is None
    assert not list(stack.glob(".*.lock.info"))
    (operation,) = operations(stack)
    events = (record(stack) / "operations" / operation / "events.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in events]
    assert [entry["action"] for entry in told if entry["kind"] == "signal"] == [signum.name]
    assert status(tfguard, stack, code=0)["status"] == "cancelled"
