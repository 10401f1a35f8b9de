"""`tfguard orphans` alone on a terminal: one finding adopted, one kept, one deleted; and leaving changes nothing."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from helpers import APPLY, Run, StackFactory, addresses, children, orphans, record, role, run_folders, settings

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.terminal import Terminal
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage
from tfguard.schemas.document import with_sum
from tfguard.schemas.findings import findings_document

pytestmark = pytest.mark.e2e

TAINTED = """
resource "terraform_data" "job" {
  for_each = toset(["a", "b", "c"])
  provisioner "local-exec" {
    command = "exit 1"
  }
}
"""
CHOOSER = [sys.executable, "-m", "tfguard", "orphans"]
# What a shell would see of the terminal before and after.
WATCHED = ["sh", "-c", 'stty -g >before; "$@"; code=$?; stty -g >after; exit $code', "sh", *CHOOSER]
TABLE = "i import  r retain  d destroy"
PROMPT = "numbers and a letter"


@pytest.fixture
def lost(proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run) -> Path:
    """A stack whose apply has left three roles behind."""
    stack = settings(stack_factory("".join(role(name) for name in ("one", "two", "three"))), consistency_grace="0s")
    proxy.add_rule("drop", action="CreateRole", count=3)
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    return stack


def numbers(tfguard: Run, stack: Path) -> dict[str, int]:
    """The number in the table that each object has."""
    found = orphans(tfguard, stack, code=2)["findings"]
    return {item["object"]["name"]: number for number, item in enumerate(found, 1)}


def press(terminal: Terminal, keys: str, until: str, seconds: float = 120) -> None:
    """Press keys, and wait for what is shown then."""
    so_far = len(terminal.shown)
    terminal.type(keys)
    terminal.wait_for(until, seconds, so_far)


def everything(stack: Path) -> dict[str, bytes]:
    """Each file of the record, and the state."""
    files = [path for path in record(stack).rglob("*") if path.is_file()] + [stack / "terraform.tfstate"]
    return {str(path): path.read_bytes() for path in files}


def test_one_is_adopted_one_kept_and_one_deleted(
    lost: Path, run_env: dict[str, str], tfguard: Run, moto: MotoServer
) -> None:
    where = numbers(tfguard, lost)
    with Terminal(WATCHED, lost, run_env, 100) as terminal:
        terminal.wait_for(TABLE)
        assert "3 findings to decide about" in terminal.shown
        press(terminal, f"{where['one']}", "for aws_iam_role.one")
        press(terminal, "\n", "any key goes back")
        assert "evidence: desired-identity: name = one" in terminal.shown
        press(terminal, "q", TABLE)
        press(terminal, "d", "Only 'yes' is taken:")
        assert "orphans destroy o-" in terminal.shown
        press(terminal, "no\n", TABLE)
        assert len(moto.client("iam").list_roles()["Roles"]) == 3

        press(terminal, "i", "Run it? Only 'yes' is taken:")
        assert "this would run: tfguard orphans import o-" in terminal.shown
        press(terminal, "yes\n", "Only 'yes' is taken:")  # the import's own question, after its plan
        press(terminal, "yes\n", "enter goes back to the table")
        assert "1 imported, 0 added" in terminal.shown
        press(terminal, "\n", "2 findings to decide about")

        where = numbers(tfguard, lost)
        press(terminal, f"{where['two']}r", "for how long, at most 90d [14d]:")
        press(terminal, "\n", "who keeps it:")
        press(terminal, "audit\n", "why:")
        press(terminal, "the audit runs\n", "Run it? Only 'yes' is taken:")
        command = "--for=14d --owner=audit '--reason=the audit runs'"
        assert command in terminal.shown
        press(terminal, "yes\n", "enter goes back to the table")
        press(terminal, "\n", "1 finding to decide about")

        press(terminal, "d", "Run it? Only 'yes' is taken:")
        press(terminal, "yes\n", "Type three to delete it:")
        press(terminal, "three\n", "no findings to decide about; coverage: complete")
        assert terminal.wait() == 0, terminal.shown
        assert "deleted, and verified to be gone" in terminal.shown
    assert addresses(lost) == {"aws_iam_role.one"}
    assert {one["RoleName"] for one in moto.client("iam").list_roles()["Roles"]} == {"one", "two"}
    kept = json.loads(tfguard("orphans", "list", "--retained", "--format", "json", cwd=lost).stdout)["retained"]
    assert [(entry["decision"]["owner"], entry["decision"]["reason"]) for entry in kept] == [
        ("audit", "the audit runs")
    ]
    assert orphans(tfguard, lost, code=0)["findings"] == []
    assert (lost / "after").read_text() == (lost / "before").read_text()
    assert run_folders(lost) == []


@pytest.fixture
def stack(plain_stack: StackFactory, tfguard: Run) -> Path:
    """A stack whose apply has left three tainted objects, with what a scan kept: a bucket that nobody knows."""
    made = plain_stack(TAINTED)
    assert tfguard(*APPLY, cwd=made).returncode == 1
    bucket = CloudObject("aws", "1", "eu-west-1", "aws_s3_bucket", "logs", "logs", stateful=True)
    finding = Finding(bucket.finding_id, Verdict.UNMANAGED, Confidence.POSSIBLE, None, None, bucket)
    times = {"started_at": "2026-03-01T12:00:00Z", "ended_at": "2026-03-01T12:01:00Z"}
    kept = {**findings_document([finding], Coverage(), {}), "scan": times}
    (made / "kept.json").write_text(json.dumps(with_sum(kept)))
    return settings(made, retention="{default: 2d, max: 3d}", owner="platform")


@pytest.mark.parametrize(("keys", "code"), [("\x03", 130), ("q", 0), ("\x1b", 0), ("", 130)])
def test_leaving_restores_the_terminal_and_changes_nothing(
    stack: Path, run_env: dict[str, str], keys: str, code: int
) -> None:
    before = everything(stack)
    with Terminal(WATCHED, stack, run_env, 100) as terminal:
        terminal.wait_for(TABLE)
        assert not terminal.echoes
        if keys:
            terminal.type(keys)
        else:
            (chooser,) = children(terminal.process.pid)
            os.kill(chooser, signal.SIGTERM)
        assert terminal.wait() == code, terminal.shown
        assert terminal.shown.count("\x1b[?1049h") == terminal.shown.count("\x1b[?1049l") == 1
    assert (stack / "after").read_text() == (stack / "before").read_text()
    assert everything(stack) == before


def test_a_no_or_a_ctrl_c_at_the_question_changes_nothing(stack: Path, run_env: dict[str, str]) -> None:
    before = everything(stack)
    with Terminal([*CHOOSER, "--findings", "kept.json"], stack, run_env | {"NO_COLOR": "1"}, 100) as terminal:
        terminal.wait_for(TABLE)
        terminal.type("d")  # the first is tainted
        terminal.wait_for("is tainted, which leaves retain")
        terminal.type("4d")
        terminal.wait_for("Delete what HOLDS DATA, too (--stateful)? Only 'yes' is taken:")
        press(terminal, "no\n", TABLE)
        press(terminal, "r", "for how long, at most 3d [2d]:")
        press(terminal, "4d\n", "for how long, at most 3d [2d]:")
        assert "more than retention.max: 3d" in terminal.shown
        press(terminal, "1d\n", "who keeps it [platform]:")
        press(terminal, "\n", "why:")
        press(terminal, "\n", "enter goes back to the table")
        press(terminal, "\n", TABLE)
        press(terminal, "r", "[2d]:")
        press(terminal, "\n", "[platform]:")
        press(terminal, "\n", "why:")
        press(terminal, "x\n", "Run it? Only 'yes' is taken:")
        press(terminal, "no\n", TABLE)
        press(terminal, "r", "[2d]:")
        press(terminal, "\n", "[platform]:")
        press(terminal, "\n", "why [x]:")
        press(terminal, "\n", "Run it? Only 'yes' is taken:")
        assert "--for=2d --owner=platform --reason=x --findings=kept.json" in terminal.shown
        terminal.type("\x03")
        assert terminal.wait() == 130, terminal.shown
        assert terminal.echoes
        assert "\x1b[1m" not in terminal.shown
    assert everything(stack) == before


@pytest.mark.parametrize(
    ("program", "columns"), [(["env", "TERM=dumb", *CHOOSER], 100), (CHOOSER, 30)], ids=["dumb", "small"]
)
def test_without_a_screen_lines_are_typed(
    stack: Path, run_env: dict[str, str], tfguard: Run, program: list[str], columns: int
) -> None:
    with Terminal(program, stack, run_env, columns) as terminal:
        terminal.wait_for(PROMPT)
        assert "3: o-" in terminal.shown
        press(terminal, "2\n", "evidence: ")
        press(terminal, "1 3 r\n", "why:")
        press(terminal, "the provisioner is at fault\n", "Run it? Only 'yes' is taken:")
        press(terminal, "yes\n", PROMPT, 120)
        assert "2: o-" not in terminal.shown[terminal.shown.rindex("untaint") :]
        terminal.type("q\n")
        assert terminal.wait() == 0, terminal.shown
        assert "\x1b[?1049h" not in terminal.shown
    assert len(orphans(tfguard, stack, code=0)["findings"]) == 1


def test_without_findings_it_is_one_line_and_without_a_terminal_the_help(
    plain_stack: StackFactory, run_env: dict[str, str], tfguard: Run
) -> None:
    stack = plain_stack('resource "terraform_data" "one" {}\n')
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    with Terminal(CHOOSER, stack, run_env, 100) as terminal:
        assert terminal.wait() == 0, terminal.shown
        assert terminal.shown == "no findings to decide about; coverage: complete\n"
    done = tfguard("orphans", cwd=stack)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Usage: tfguard orphans" in done.stderr
    assert "a table opens to choose from" in done.stderr
    done = tfguard("orphans", "--findings", "x", "list", cwd=stack)
    assert (done.returncode, "options stand behind the command" in done.stderr) == (1, True)
