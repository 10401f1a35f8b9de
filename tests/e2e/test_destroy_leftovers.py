"""A destroy does not call a stack clean while something that its operations made still exists and nobody answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import APPLY, DESTROY, Run, StackFactory, head, intent, operations, orphans, role, settings, status, step

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

IGNORING = (*DESTROY, "--on-gap=ignore", "--reason", "a teardown")


@pytest.fixture
def released(proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run) -> tuple[Path, str]:
    """A stack with an empty state whose only operation is closed, and left a role that was kept and is released."""
    stack = settings(stack_factory(role()), owner="audit")
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (found,) = orphans(tfguard, stack, code=2)["findings"]
    for words in (("retain", found["id"], "--for", "1d"), ("release", found["id"])):
        assert tfguard("orphans", *words, "--reason", "audit", cwd=stack).returncode == 0
    assert head(stack)["open_operations"] == []
    return stack, found["id"]


def test_a_destroy_of_an_empty_state_stops_at_an_orphan_of_a_closed_operation_and_keeps_open_what_it_ignored(
    released: tuple[Path, str], tfguard: Run, moto: MotoServer
) -> None:
    stack, finding = released
    stopped = tfguard(*DESTROY, cwd=stack)
    assert stopped.returncode == 11, stopped.stdout + stopped.stderr
    assert f"aws_iam_role.app left app ({finding}): was kept, and released by" in stopped.stderr

    beside = tfguard(*IGNORING, cwd=stack)
    assert beside.returncode == 0, beside.stdout + beside.stderr
    made, destroyed = operations(stack)
    assert head(stack)["open_operations"] == [destroyed]
    document = status(tfguard, stack, code=11)
    assert (document["command"], document["on_gap_reason"]) == ("destroy", "a teardown")
    kept_open = step(document, "aws_iam_role.app")
    assert (kept_open["outcome"], kept_open["finding"]) == ("orphaned", finding)
    assert tfguard(*DESTROY, cwd=stack).returncode == 11

    moto.client("iam").delete_role(RoleName="app")
    done = tfguard(*DESTROY, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not status(tfguard, stack, destroyed, code=0)["open"]
    assert not status(tfguard, stack, made, code=0)["open"]
    assert intent(stack, operations(stack)[-1])["steps"] == [], "what is gone is looked for no more"
