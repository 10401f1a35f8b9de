"""What a scan says of objects after real applies: whose they are, which run lost them, and what runs now."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers import APPLY, Run, StackFactory, Start, in_flight, role, settings

from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e


def scanned(done: subprocess.CompletedProcess[str], code: int) -> dict[str, Any]:
    """The document of a scan that ended with this exit code."""
    assert done.returncode == code, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def verdicts(document: dict[str, Any]) -> dict[str, str]:
    """The findings' verdicts by the objects' names."""
    return {item["object"]["name"]: item["verdict"] for item in document["findings"]}


SCAN = ("scan", "--type", "aws_iam_role", "--format", "json")


def test_a_scan_names_the_operation_that_lost_an_object_and_blames_none_for_other_stacks_objects(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tf: Run, workdir: Path
) -> None:
    names = ("held", "dropped", "removed")
    several = "".join(role(name) for name in names)
    one, other = settings(stack_factory(several, name="one")), settings(stack_factory(role(), name="other"))
    assert tfguard(*APPLY, cwd=one).returncode == 0
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=other).returncode == 1
    tf("state", "rm", "aws_iam_role.dropped", cwd=one)  # behind tfguard's back
    assert tfguard("state", "rm", "aws_iam_role.removed", cwd=one).returncode == 0

    both = scanned(tfguard(*SCAN, str(one), str(other), cwd=workdir), 2)
    assert verdicts(both) == {"app": "orphaned", "dropped": "unmanaged", "removed": "retained"}
    assert both["summary"] == {"managed": 1, "orphaned": 1, "unmanaged": 1, "retained": 1}
    assert (both["coverage"]["complete"], both["coverage"]["states_read"]) == (True, 2)
    orphan = next(item for item in both["findings"] if item["verdict"] == "orphaned")
    status = json.loads(tfguard("status", "--format", "json", cwd=other).stdout)
    assert (orphan["operation_id"], orphan["address"]) == (status["operation_id"], "aws_iam_role.app")
    assert orphan["confidence"] == "certain"
    assert orphan["id"] == next(step["finding"] for step in status["steps"])

    alone = scanned(tfguard(*SCAN, str(one), cwd=workdir), 2)
    assert verdicts(alone) == {"app": "unmanaged", "dropped": "unmanaged", "removed": "retained"}

    (other / "terraform.tfstate").write_text("{")
    blind = scanned(tfguard(*SCAN, str(one), str(other), cwd=workdir), 3)
    assert verdicts(blind) == {"app": "unknown", "dropped": "unknown", "removed": "retained"}


def test_what_an_apply_makes_that_still_runs_is_unknown(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start, workdir: Path
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("delay:600", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack)
    in_flight(proxy, "CreateRole")
    seen = scanned(tfguard(*SCAN, str(stack), cwd=workdir), 3)
    assert running.poll() is None
    assert verdicts(seen) == {"app": "unknown"}
    assert "runs now" in seen["findings"][0]["evidence"][0]["detail"]
    proxy.release()
