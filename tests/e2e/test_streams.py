"""Standard streams that are closed, full or slow: the run goes to its end, and its record with it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from helpers import APPLY, Json, Run, StackFactory, Start, head, operations, outcome

pytestmark = pytest.mark.e2e

ONE = 'resource "terraform_data" "a" {\n  input = "x"\n}\n'
MANY = 300


def through_shell(
    redirection: str, *arguments: str, stack: Path, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run tfguard as a shell does that closes or redirects a stream of it."""
    script = f'exec "$@" {redirection}'
    argv = ["sh", "-c", script, "sh", sys.executable, "-m", "tfguard", *arguments]
    return subprocess.run(argv, cwd=stack, env=env, capture_output=True, text=True, timeout=120)


def only_outcome(stack: Path) -> Json:
    """How the stack's only operation ended."""
    (operation,) = operations(stack)
    found = outcome(stack, operation)
    assert found is not None
    return found


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_stops_neither_the_run_nor_its_record(
    plain_stack: StackFactory, run_env: dict[str, str], redirection: str
) -> None:
    stack = plain_stack(ONE)
    done = through_shell(redirection, "apply", "-auto-approve", "-no-color", stack=stack, env=run_env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "defect" not in done.stdout + done.stderr
    assert ("Apply complete!" in done.stdout) is (">&-" not in redirection.split())
    result = only_outcome(stack)
    assert (result["status"], result["exit_code"]) == ("ok", 0)
    assert [step["outcome"] for step in result["steps"]] == ["recorded"]
    assert (head(stack)["open_operations"], head(stack).get("lease")) == ([], None)
    assert [path.name for path in stack.iterdir() if path.suffix == ".tf"] == ["main.tf"]


def test_a_slow_reader_of_a_pipe_that_does_not_wait_gets_everything(
    plain_stack: StackFactory, tfguard_popen: Start
) -> None:
    stack = plain_stack(f'resource "terraform_data" "a" {{\n  count = {MANY}\n  input = count.index\n}}\n')
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    got = bytearray()

    def read_slowly() -> None:
        while chunk := os.read(reading, 1024):
            got.extend(chunk)
            time.sleep(0.002)

    reader = threading.Thread(target=read_slowly)
    with os.fdopen(writing, "w") as stdout:
        running = tfguard_popen(*APPLY, cwd=stack, stdout=stdout)
    reader.start()
    _, err = running.communicate(timeout=120)
    reader.join(timeout=30)
    os.close(reading)
    text = got.decode()
    assert running.returncode == 0, err
    assert text.count(": Creation complete after") == MANY
    assert text.count("# terraform_data.a[") == MANY
    assert f"Apply complete! Resources: {MANY} added, 0 changed, 0 destroyed." in text
    assert "defect" not in err


@pytest.mark.parametrize("arguments", [("history",), ("history", "--format", "json"), ("status",)])
def test_an_output_that_cannot_be_written_is_one_clear_error(
    plain_stack: StackFactory, tfguard: Run, run_env: dict[str, str], arguments: tuple[str, ...]
) -> None:
    stack = plain_stack(ONE)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    done = through_shell("> /dev/full", *arguments, stack=stack, env=run_env)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("No space left on device") == 1
    for word in ("defect", "Traceback", "Exception ignored"):
        assert word not in done.stderr
    assert len(done.stderr.splitlines()) == 2
