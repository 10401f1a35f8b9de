"""Large plans, long lines, talkative provisioners: nothing hangs, nothing is lost, memory does not grow with them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import defaultdict
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

from fixtures.large_runs import LARGE, LONG_LINES, MANY, SMALL, TALKS, TFGUARD, measured
from fixtures.stand_in_engine import install

pytestmark = pytest.mark.e2e

MOST_GROWTH = 100 * 1024  # kB


def masked(shown: str) -> list[str]:
    """Lines without what no two runs have in common, in an order of their own: the engine's is another in each run.

    What a provisioner prints is one line here: the engine cuts it where nothing came for a moment.
    """
    text = re.sub(r"\[id=[0-9a-f-]{36}\]|after \d+s|\"[0-9a-f-]{36}\"", "~", shown)
    lines, printed = [], defaultdict(list)
    for line in text.splitlines():
        name, is_output, output = line.partition(" (local-exec): ")
        if is_output:
            printed[name].append(output)
        elif ": Still " not in line:
            lines.append(line)
    return sorted([*lines, *(name + "".join(outputs) for name, outputs in printed.items())])


@pytest.fixture
def small(plain_stack: StackFactory, run_env: dict[str, str]) -> int:
    """The most memory of a small run."""
    done = measured(*APPLY, cwd=plain_stack(SMALL, name="small"), env=run_env)
    assert done.code == 0, done.err
    return done.peak


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE)
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
