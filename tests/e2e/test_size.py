"""Large plans, long lines, talkative provisioners: nothing hangs, nothing is lost, memory does not grow with them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import (
    APPLY,
    DESTROY,
    Run,
    StackFactory,
    engine_pid,
    kill,
    operations,
    outcome,
    run_folders,
    runs,
    wait_until,
)

from fixtures.stand_in_engine import install

pytestmark = pytest.mark.e2e

TFGUARD = [sys.executable, "-m", "tfguard"]
MOST_GROWTH = 100 * 1024  # kB

SMALL = 'resource "terraform_data" "a" {}\n'
MANY = """
resource "terraform_data" "a" {
  count = 400
  input = "${count.index} ${join(" ", [for number in range(60) : "word${number}"])}"
}
"""
LONG_LINES = """
locals {
  long = join("", [for number in range(1000) : format("%0100d", number)])
}
resource "terraform_data" "a" {
  count = 10
  input = "${local.long}${count.index}"
}
output "long" {
  value = "${local.long}end"
}
"""
TALKS = """
resource "terraform_data" "a" {
  provisioner "local-exec" {
    interpreter = ["%(python)s", "-c"]
    command     = "for number in range(10000): print(f'{number:01050d}')"
  }
  provisioner "local-exec" {
    interpreter = ["%(python)s", "-c"]
    command     = "print('z' * 60000)"
  }
}
""" % {"python": sys.executable}  # noqa: UP031 (braces are the configuration's)


@dataclass(frozen=True)
class Measured:
    """How a run ended, what it wrote, and the most memory that tfguard itself had, in kB."""

    code: int
    out: str
    err: str
    peak: int


def measured(*arguments: str, cwd: Path, env: dict[str, str]) -> Measured:
    """Run tfguard and look at its memory all the while."""
    out, err = cwd / "measured.out", cwd / "measured.err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        running = subprocess.Popen(
            [*TFGUARD, *arguments], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        peak, deadline = 0, time.monotonic() + 280
        try:
            while running.poll() is None and time.monotonic() < deadline:
                peak = _peak(running.pid) or peak
                time.sleep(0.01)
            assert running.poll() is not None, "it hangs"
        finally:
            if running.poll() is None:
                running.kill()
                running.wait()
    return Measured(running.returncode, out.read_text(), err.read_text(), peak)


def _peak(pid: int) -> int | None:
    """The most memory that a process ever had; None when it has ended."""
    with contextlib.suppress(OSError):
        if found := re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE):
            return int(found[1])
    return None


def masked(shown: str) -> list[str]:
    """Lines without what no two runs have in common, in an order of their own: the engine's is another in each run."""
    text = re.sub(r"\[id=[0-9a-f-]{36}\]|after \d+s|\"[0-9a-f-]{36}\"", "~", shown)
    return sorted(line for line in text.splitlines() if ": Still " not in line)


@pytest.fixture
def small(plain_stack: StackFactory, run_env: dict[str, str]) -> int:
    """The most memory of a small run."""
    done = measured(*APPLY, cwd=plain_stack(SMALL, name="small"), env=run_env)
    assert done.code == 0, done.err
    return done.peak


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("body", [MANY, LONG_LINES, TALKS], ids=["400 objects", "lines of 100 kB", "10 MB"])
def test_a_large_run_shows_all_that_the_engine_shows_and_takes_little_memory(
    plain_stack: StackFactory, tf: Run, run_env: dict[str, str], small: int, body: str
) -> None:
    one, two = plain_stack(body, name="one"), plain_stack(body, name="two")
    for command in (APPLY, DESTROY) if body == LONG_LINES else (APPLY,):
        real = tf(*command, cwd=one)
        ours = measured(*command, cwd=two, env=run_env)
        assert ours.code == 0, ours.err
        assert masked(ours.out) == masked(real.stdout)
        assert ours.err == ""
        assert ours.peak - small < MOST_GROWTH
        if command == APPLY:
            assert len(ours.out) > {MANY: 250_000, LONG_LINES: 1_000_000, TALKS: 10_000_000}[body]
    ends = [outcome(two, operation) for operation in operations(two)]
    assert {end["status"] if end else None for end in ends} == {"ok"}
    assert run_folders(two) == []


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_the_recovery_of_a_run_that_said_very_much_takes_little_memory(
    workdir: Path, run_env: dict[str, str], small: int
) -> None:
    stack, told = workdir / "stack", workdir / "stand-in"
    for made in (stack, told):
        made.mkdir()
    (stack / "main.tf").write_text(SMALL)
    (told / "hold-apply").touch()
    env = run_env | {
        "STAND_IN": str(told),
        "STAND_IN_LINES": "100000",
        "TFGUARD_ENGINE": str(install(workdir / "bin")),
    }
    running = subprocess.Popen([*TFGUARD, *APPLY], cwd=stack, env=env, stdout=subprocess.DEVNULL)
    wait_until(lambda: (told / "log").exists() and "apply holds" in (told / "log").read_text(), 120)
    engine = engine_pid(stack)
    kill(running.pid)
    running.wait()
    os.kill(engine, signal.SIGKILL)
    wait_until(lambda: not runs(engine))
    (stream,) = stack.rglob("apply.stdout")
    assert stream.stat().st_size > 20_000_000
    done = measured("recover", cwd=stack, env=env)
    assert done.code == 0, done.out + done.err
    assert done.peak - small < MOST_GROWTH
    assert run_folders(stack) == []
