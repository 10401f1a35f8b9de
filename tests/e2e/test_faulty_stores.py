"""A place for records that fails: before the run nothing is started, in it the engine goes on and nothing is lost."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers import APPLY, Json, Run, StackFactory, Start, settings, status, step, wait_until

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

ADDRESS = "terraform_data.slow"
# An apply that lasts until somebody makes the file `go`.
LASTING = """
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch running; until [ -e go ]; do sleep 0.05; done"
  }
}
"""


class SmallDisk:
    """A file system of its own, of a few kilobytes, for records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Leave no space on it."""
        with contextlib.suppress(OSError), self._filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 512)

    def free(self) -> None:
        """Have space again."""
        self._filler.unlink()

    def mount(self, options: str) -> None:
        """Mount it again with these options."""
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.folder)], check=True)


@pytest.fixture
def disk(workdir: Path) -> Iterator[SmallDisk]:
    folder = workdir / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk needs the right to mount one: {mounted.stderr.strip()}")
    yield SmallDisk(folder)
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def local_stack(plain_stack: StackFactory, disk: SmallDisk) -> Path:
    """A stack whose record lies on the small disk."""
    return settings(plain_stack(LASTING), records=f"file://{disk.folder}/records")


@pytest.fixture
def s3_stack(plain_stack: StackFactory, moto: MotoServer, proxy: FaultProxy) -> Path:
    """A stack whose record lies in S3, behind the fault proxy."""
    moto.client("s3").create_bucket(Bucket="records")
    place = f"s3://records/all?region=us-east-1&use_path_style=true&endpoint={proxy.url}"
    return settings(plain_stack(LASTING), records=place)


def test_a_full_disk_starts_no_engine(disk: SmallDisk, local_stack: Path, tfguard: Run) -> None:
    disk.fill()
    refused = tfguard(*APPLY, cwd=local_stack)
    assert (refused.returncode, refused.stdout) == (10, "")
    assert "No space left on device" in refused.stderr
    assert "free space" in refused.stderr
    assert not (local_stack / "terraform.tfstate").exists()
    disk.free()
    (local_stack / "go").touch()
    assert tfguard(*APPLY, cwd=local_stack).returncode == 0
    assert status(tfguard, local_stack, code=0)["status"] == "ok"


@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_disk_that_fails_after_the_intent_does_not_stop_the_engine_and_the_next_run_settles(
    fault: str, disk: SmallDisk, local_stack: Path, tfguard: Run, tfguard_popen: Start
) -> None:
    running = tfguard_popen(*APPLY, cwd=local_stack)
    wait_until(lambda: (local_stack / "running").exists())
    disk.fill() if fault == "full" else disk.mount("ro")
    (local_stack / "go").touch()
    out, said = running.communicate(timeout=120)
    assert running.returncode == 0
    assert "Apply complete! Resources: 1 added" in out
    assert "the operation stays open" in said
    assert said.count("the engine goes on") <= 1
    disk.free() if fault == "full" else disk.mount("rw")
    settled_afterwards(tfguard, local_stack)


def settled_afterwards(tfguard: Run, stack: Path) -> None:
    """The operation is open, and `recover` closes it with the truth."""
    left = status(tfguard, stack, code=11)
    assert left["open"]
    recovered = tfguard("recover", cwd=stack)
    assert recovered.returncode == 0, recovered.stderr
    found = status(tfguard, stack, code=0)
    assert step(found, ADDRESS)["outcome"] == "recorded"
    assert tfguard(*APPLY, cwd=stack).returncode == 0


def test_a_bucket_that_refuses_starts_no_engine(proxy: FaultProxy, s3_stack: Path, tfguard: Run) -> None:
    proxy.add_rule("error:403", service="s3", method="PUT", code="AccessDenied", count=None)
    refused = tfguard(*APPLY, cwd=s3_stack)
    assert (refused.returncode, refused.stdout) == (10, "")
    assert "s3:PutObject" in refused.stderr
    assert not (s3_stack / "terraform.tfstate").exists()


@pytest.mark.parametrize("name", ["head.json", "intent.json"])
def test_a_bucket_that_takes_no_intent_or_no_head_starts_no_engine(
    name: str, proxy: FaultProxy, s3_stack: Path, tfguard: Run
) -> None:
    proxy.add_rule("error:403", service="s3", method="PUT", path=f"*/{name}", code="AccessDenied", count=None)
    refused = tfguard(*APPLY, cwd=s3_stack)
    assert refused.returncode == 10
    assert not (s3_stack / "terraform.tfstate").exists()
    proxy.clear()
    (s3_stack / "go").touch()
    assert tfguard(*APPLY, cwd=s3_stack).returncode == 0
    assert status(tfguard, s3_stack, code=0)["status"] == "ok"


def test_a_permission_that_is_lost_in_the_run_does_not_stop_the_engine_and_the_next_run_settles(
    proxy: FaultProxy, s3_stack: Path, tfguard: Run, tfguard_popen: Start
) -> None:
    running = tfguard_popen(*APPLY, cwd=s3_stack)
    wait_until(lambda: (s3_stack / "running").exists())
    proxy.add_rule("error:403", service="s3", method="PUT", code="AccessDenied", count=None)
    (s3_stack / "go").touch()
    _, said = running.communicate(timeout=120)
    assert running.returncode == 0
    assert "AccessDenied" in said
    assert "the operation stays open" in said
    proxy.clear()
    settled_afterwards(tfguard, s3_stack)


def drop(proxy: FaultProxy, path: str) -> None:
    """S3 does what it was told, and its reply is lost."""
    proxy.add_rule("drop", service="s3", method="PUT", path=path)


def error_afterwards(proxy: FaultProxy, path: str) -> None:
    """S3 does what it was told, and says that it failed."""
    proxy.add_rule("error:500", service="s3", method="PUT", path=path, code="InternalError", forward=True)


def throttle(proxy: FaultProxy, path: str) -> None:
    """S3 is asked too often."""
    proxy.add_rule("throttle:503", service="s3", method="PUT", path=path, code="SlowDown", count=2)


# Each write of a run: the path, how many puts to it come before, and what its body has to hold. The head is written to
# claim the lease, to begin, now and then in the run, and to finish, without the lease.
WRITES = {
    "claim": ("*/head.json", 0, None),
    "intent": ("*/intent.json", 0, None),
    "begin": ("*/head.json", 1, None),
    "journal": ("*/events.jsonl/*", 0, None),
    "first outcome": ("*/outcome.json", 0, None),
    "transitions": ("*/transitions.jsonl/*", 0, None),
    "last outcome": ("*/outcome.json", 1, None),
    "finish": ("*/head.json", 0, r'\A(?![\s\S]*"lease")'),
}


@pytest.mark.parametrize("fault", [drop, error_afterwards, throttle], ids=lambda fault: fault.__name__)
def test_a_write_whose_fate_is_doubtful_is_written_once_and_the_run_is_whole(
    fault: Callable[[FaultProxy, str], None], proxy: FaultProxy, s3_stack: Path, tfguard: Run
) -> None:
    (s3_stack / "go").touch()
    paths = ("*/head.json", "*/intent.json", "*/events.jsonl/*", "*/outcome.json")
    for path in paths:
        fault(proxy, path)
    done = tfguard(*APPLY, cwd=s3_stack)
    assert done.returncode == 0, done.stderr
    found = status(tfguard, s3_stack, code=0)
    assert step(found, ADDRESS)["outcome"] == "recorded"
    assert len(history(tfguard, s3_stack)) == 1


@pytest.mark.parametrize("write", WRITES)
def test_a_lost_reply_to_any_write_is_no_conflict_with_oneself(
    write: str, proxy: FaultProxy, s3_stack: Path, tfguard: Run
) -> None:
    path, before, contains = WRITES[write]
    rule = proxy.add_rule("drop", service="s3", method="PUT", path=path, skip=before, contains=contains)
    (s3_stack / "go").touch()
    done = tfguard(*APPLY, cwd=s3_stack)
    assert (done.returncode, done.stderr) == (0, "")
    assert rule.fired == 1
    assert not status(tfguard, s3_stack, code=0)["open"]


def history(tfguard: Run, stack: Path) -> list[Json]:
    """The operations of a stack."""
    done = tfguard("history", "--format", "json", cwd=stack)
    assert done.returncode == 0, done.stderr
    found: list[Json] = json.loads(done.stdout)["operations"]
    return found
