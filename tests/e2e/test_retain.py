"""Stray objects that are kept on purpose: out of the findings until their date, then back; all of it on record."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from helpers import APPLY, Json, Run, StackFactory, kinds, orphans, role, settings, status

from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e


@pytest.fixture
def lost(proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run) -> tuple[Path, str]:
    """A stack whose apply has left a role behind, and the finding's id."""
    stack = settings(stack_factory(role()), retention="{default: 14d, max: 90d}", cost_owner="cc-1042")
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (found,) = orphans(tfguard, stack, code=2)["findings"]
    assert found["actions"] == ["import", "retain", "destroy"]
    return stack, found["id"]


def ledger(stack: Path) -> list[Json]:
    """What stands in the ledger."""
    (path,) = stack.glob("*.tfguard/dispositions.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_is_kept_is_no_finding_until_its_date_and_then_it_is_one_again(
    lost: tuple[Path, str], tfguard: Run
) -> None:
    stack, finding = lost
    keep = ("orphans", "retain", finding, "--owner", "audit", "--reason", "the audit runs until Friday")
    kept = tfguard(*keep, "--for", "1h", cwd=stack)
    assert kept.returncode == 0, kept.stderr
    assert orphans(tfguard, stack, code=0)["findings"] == []
    assert not status(tfguard, stack, code=0)["open"]
    (entry,) = json.loads(tfguard("orphans", "list", "--retained", "--format", "json", cwd=stack).stdout)["retained"]
    decision = entry["decision"]
    assert (decision["kind"], decision["owner"], decision["cost_owner"]) == ("retain", "audit", "cc-1042")
    assert (decision["object"]["type"], decision["object"]["name"], entry["overdue"]) == ("aws_iam_role", "app", False)

    assert tfguard(*keep, "--for", "1s", cwd=stack).returncode == 0  # which moves the date
    deadline = time.monotonic() + 120
    while not json.loads(tfguard("orphans", "list", "--retained", "--format", "json", cwd=stack).stdout)["retained"][0][
        "overdue"
    ]:
        assert time.monotonic() < deadline
        time.sleep(1)
    (back,) = orphans(tfguard, stack, code=2)["findings"]
    assert back["id"] == finding
    assert "retention-ended" in kinds(back["evidence"])
    assert "overdue: was kept until" in tfguard("orphans", "list", "--retained", cwd=stack).stdout

    again = tfguard(*keep, "--for", "14d", cwd=stack)
    assert again.returncode == 0, again.stderr
    assert "for another 13 d 23 h" in again.stdout
    assert orphans(tfguard, stack, code=0)["findings"] == []

    released = tfguard("orphans", "release", finding, "--reason", "the audit is over", cwd=stack)
    assert released.returncode == 0, released.stderr
    (back,) = orphans(tfguard, stack, code=2)["findings"]
    assert "released" in kinds(back["evidence"])
    assert [entry["kind"] for entry in ledger(stack)] == ["retain", "retain", "retain", "release"]
    assert all(entry["actor"] and entry["reason"] and entry["at"] for entry in ledger(stack))

    adopted = tfguard("orphans", "import", finding, "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stderr
    assert orphans(tfguard, stack, code=0)["findings"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--for", "91d", "--owner", "o", "--reason", "r"), "more than retention.max: 90d"),
        (("--for", "0s", "--owner", "o", "--reason", "r"), "is nothing"),
        (("--for", "soon", "--owner", "o", "--reason", "r"), "--for soon is not a duration"),
        (("--for", "1d", "--reason", "r"), "nobody would own"),
        (("--for", "1d", "--owner", "o", "--reason", " "), "--reason is empty"),
    ],
)
def test_a_retention_without_a_bound_an_owner_or_a_reason_is_refused(
    plain_stack: StackFactory, tfguard: Run, words: tuple[str, ...], said: str
) -> None:
    stack = plain_stack("")
    refused = tfguard("orphans", "retain", "o-12345678", *words, cwd=stack)
    assert (refused.returncode, said in refused.stderr) == (1, True), refused.stderr
    assert list(stack.glob("*.tfguard")) == []


def test_what_is_not_there_can_be_neither_kept_nor_released(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack("")
    refused = tfguard("orphans", "retain", "o-12345678", "--owner", "o", "--reason", "r", cwd=stack)
    assert (refused.returncode, "there is no finding o-12345678 here" in refused.stderr) == (1, True)
    assert "--findings FILE" in refused.stderr
    refused = tfguard("orphans", "release", "o-12345678", "--reason", "r", cwd=stack)
    assert (refused.returncode, "o-12345678 is not retained here" in refused.stderr) == (1, True)
    refused = tfguard("orphans", "import", "--yes", cwd=stack)
    assert (refused.returncode, "no finding is named" in refused.stderr) == (1, True)
    listed = tfguard("orphans", "list", "--retained", cwd=stack)
    assert (listed.returncode, listed.stdout) == (0, "nothing is retained\n")
