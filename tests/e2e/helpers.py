"""What the end-to-end tests share: configurations, and readers of what a run left on disk and told on stdout."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fixtures.call_log import Entry
from fixtures.fault_proxy import FaultProxy
from tfguard.schemas.document import with_sum

Json = dict[str, Any]
Run = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]
StackFactory = Callable[..., Path]

APPLY = ("apply", "-auto-approve", "-input=false", "-no-color")
DESTROY = ("destroy", "-auto-approve", "-input=false", "-no-color")

VPC = """
resource "aws_vpc" "main" {
  cidr_block = "10.9.0.0/16"
}
"""
QUEUE = """
resource "aws_sqs_queue" "jobs" {
  name = "jobs"
}
"""
BUCKET = """
resource "aws_s3_bucket" "logs" {
  bucket = "audit-logs"
}
"""


def role(label: str = "app", name: str | None = None, more: str = "") -> str:
    """A role; `name` is its label unless given, `more` are further arguments."""
    return f"""
resource "aws_iam_role" "{label}" {{
  name = "{name or label}"
  assume_role_policy = jsonencode({{
    Version   = "2012-10-17"
    Statement = [{{ Effect = "Allow", Action = "sts:AssumeRole", Principal = {{ Service = "ec2.amazonaws.com" }} }}]
  }})
  {more}
}}
"""


def inline_policy(role_name: str) -> str:
    """A policy inside a role that the configuration names as plain text, so that another stack can own the role."""
    return f"""
resource "aws_iam_role_policy" "child" {{
  name = "child"
  role = "{role_name}"
  policy = jsonencode({{
    Version   = "2012-10-17"
    Statement = [{{ Effect = "Allow", Action = "s3:ListBucket", Resource = "*" }}]
  }})
}}
"""


def settings(stack: Path, **keys: str) -> Path:
    """Write the stack's tfguard.yaml; the consistency grace is short unless given."""
    chosen = {"consistency_grace": "2s"} | keys
    (stack / "tfguard.yaml").write_text("".join(f"{key}: {value}\n" for key, value in chosen.items()))
    return stack


def record(stack: Path) -> Path:
    """The folder of the stack's record."""
    return stack / "terraform.tfstate.tfguard"


def head(stack: Path) -> Json:
    """head.json as it is on disk."""
    found: Json = json.loads((record(stack) / "head.json").read_text())
    return found


def reopen(stack: Path, operation_id: str) -> None:
    """Write the head as a run would that left this operation open."""
    opened = head(stack) | {"open_operations": [operation_id]}
    (record(stack) / "head.json").write_text(json.dumps(with_sum(opened)))


def intent(stack: Path, operation_id: str) -> Json:
    """An operation's intent as it is on disk."""
    found: Json = json.loads((record(stack) / "operations" / operation_id / "intent.json").read_text())
    return found


def outcome(stack: Path, operation_id: str) -> Json | None:
    """An operation's outcome as it is on disk; None while there is none."""
    path = record(stack) / "operations" / operation_id / "outcome.json"
    return json.loads(path.read_text()) if path.exists() else None


def operations(stack: Path) -> list[str]:
    """The ids of the operations on disk, oldest first."""
    folder = record(stack) / "operations"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def status(tfguard: Run, stack: Path, *arguments: str, code: int) -> Json:
    """What `status --format json` tells, which must give this exit code."""
    done = tfguard("status", *arguments, "--format", "json", cwd=stack)
    assert done.returncode == code, done.stdout + done.stderr
    found: Json = json.loads(done.stdout)
    return found


def orphans(tfguard: Run, stack: Path, *, code: int) -> Json:
    """What `orphans list --format json` tells, which must give this exit code."""
    done = tfguard("orphans", "list", "--format", "json", cwd=stack)
    assert done.returncode == code, done.stdout + done.stderr
    found: Json = json.loads(done.stdout)
    return found


def step(document: Mapping[str, Any], address: str) -> Json:
    """The step of an address in a status document, an intent or an outcome."""
    found: Json = next(item for item in document["steps"] if item["address"] == address)
    return found


def kinds(evidence: list[Json]) -> set[str]:
    """The kinds of some evidence."""
    return {item["kind"] for item in evidence}


def addresses(stack: Path) -> set[str]:
    """The addresses with an object in the local state, without instance keys; none while there is no state."""
    path = stack / "terraform.tfstate"
    found = json.loads((path.read_text() if path.exists() else "") or '{"resources": []}')
    return {f"{item['type']}.{item['name']}" for item in found["resources"] if item["instances"]}


def state_attribute(stack: Path, address: str, attribute: str) -> Any:
    """An attribute of a resource in the local state."""
    found = json.loads((stack / "terraform.tfstate").read_text())
    resource = next(item for item in found["resources"] if f"{item['type']}.{item['name']}" == address)
    return resource["instances"][0]["attributes"][attribute]


def run_folders(stack: Path) -> list[str]:
    """The private folders of runs that lie there, of every workspace; a run must leave none."""
    return sorted(path.name for path in (stack / ".terraform" / "tfguard").glob("*/*"))


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until a condition holds; fails the test when it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has looked at does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def in_flight(proxy: FaultProxy, action: str) -> Entry:
    """Wait until a call has taken effect, its reply being held back. A plan comes first, and takes its time."""
    return proxy.wait_for(action, timeout=120)


def engine_pid(stack: Path) -> int:
    """The engine of the operation that runs now, as the lease names it as soon as it is started."""
    wait_until(lambda: (record(stack) / "head.json").exists(), 120)
    wait_until(lambda: head(stack)["lease"].get("engine") is not None)
    found: int = head(stack)["lease"]["engine"]["pid"]
    return found


def provider_pid(engine: int) -> int:
    """The provider plugin that this engine has started."""
    return next(pid for pid in children(engine) if "terraform-provider-aws" in _command_line(pid))


def children(parent: int) -> list[int]:
    """The processes that this one has started and that still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        # A process may end at any moment.
        with contextlib.suppress(OSError):
            if (entry / "stat").read_text().rpartition(")")[2].split()[1] == str(parent):
                found.append(int(entry.name))
    return found


def _command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def kill(pid: int) -> None:
    """End a process without warning."""
    os.kill(pid, signal.SIGKILL)
