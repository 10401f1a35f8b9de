"""Operations of a real engine, packed away: history, status and findings tell of them as before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers import APPLY, Json, Run, StackFactory, operations, record, role, settings, status, step

pytestmark = pytest.mark.e2e

ONE = """
resource "terraform_data" "one" {
  input = "x"
}
"""
NOW = ("archive", "--older-than", "0s")


def history(tfguard: Run, stack: Path, *arguments: str) -> Json:
    """What `history --format json` tells."""
    done = tfguard("history", *arguments, "--format", "json", cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")
    found: Json = json.loads(done.stdout)
    return found


def ids(document: Json) -> list[str]:
    """The operations of a history, in its order."""
    return [item["operation_id"] for item in document["operations"]]


def applied(plain_stack: StackFactory, tfguard: Run, times: int) -> Path:
    """A stack that was applied so many times; the last but one of them fails."""
    stack = plain_stack(ONE)
    for number in range(times):
        fails = number == times - 2
        broken = '  provisioner "local-exec" {\n    command = "exit 3"\n  }\n' if fails else ""
        (stack / "main.tf").write_text(ONE.replace("}\n", f"{broken}}}\n"))
        done = tfguard(*APPLY, "-replace=terraform_data.one", cwd=stack)
        assert (done.returncode != 0) == fails, done.stderr
    return stack


def test_archived_applies_are_told_as_before(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = applied(plain_stack, tfguard, 4)
    before, found = operations(stack), history(tfguard, stack, "--all")
    assert ids(found) == before[::-1]
    current = tfguard("status", cwd=stack).stdout
    failed = tfguard("status", before[2], cwd=stack).stdout
    assert "tainted" in failed

    assert "nothing was archived" in tfguard("archive", cwd=stack).stdout  # nothing is a month old
    done = tfguard(*NOW, cwd=stack)
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 operations archived" in done.stdout
    assert operations(stack) == before[3:]
    assert history(tfguard, stack, "--all") == found
    assert tfguard("status", cwd=stack).stdout == current
    assert tfguard("status", before[2], cwd=stack).stdout == failed
    assert tfguard(*APPLY, cwd=stack).returncode == 0


def test_history_tells_how_to_get_the_next_page(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = applied(plain_stack, tfguard, 3)
    all_of_them = operations(stack)[::-1]
    assert tfguard(*NOW, cwd=stack).returncode == 0
    first = tfguard("history", "--limit", "2", cwd=stack).stdout.splitlines()
    assert [line.split()[0] for line in first[:2]] == all_of_them[:2]
    command = first[2].removeprefix("older: tfguard ").split()
    assert command == ["history", "--before", all_of_them[1], "--limit", "2"]
    assert [line.split()[0] for line in tfguard(*command, cwd=stack).stdout.splitlines()] == all_of_them[2:]
    page = history(tfguard, stack, "--limit", "2")
    assert (ids(page), page["next"]) == (all_of_them[:2], all_of_them[1])
    assert "transitions" not in page["operations"][0]
    last = history(tfguard, stack, "--before", page["next"])
    assert (ids(last), last["next"]) == (all_of_them[2:], None)


def test_the_audit_trail_tells_who_when_and_why(plain_stack: StackFactory, tfguard: Run, run_env: Any) -> None:
    run_env.update(
        GITHUB_REPOSITORY="org/repo", GITHUB_RUN_ID="77", GITHUB_JOB="apply", GITHUB_ACTOR="anna", GITHUB_SHA="abc"
    )
    stack = applied(plain_stack, tfguard, 3)
    failed = operations(stack)[1]
    assert tfguard(*NOW, cwd=stack).returncode == 0
    found = {item["operation_id"]: item["transitions"] for item in history(tfguard, stack, "--all")["operations"]}
    trail = [(line["what"], line["before"], line["after"]) for line in found[failed]]
    assert trail[0] == (failed, None, "running")
    assert ("terraform_data.one", None, "tainted") in trail
    assert {line["by"] for line in found[failed]} == {"anna (github org/repo/77/apply)"}
    assert any("exit code 1" in line["why"] for line in found[failed])
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\S+Z", line["at"]) for line in found[failed])
    shown = tfguard("history", "--transitions", cwd=stack).stdout
    assert re.search(r"    \S+ \S+  anna \(github \S+\)  terraform_data\.one  tainted: .*tainted", shown)


def test_verify_finds_a_changed_byte_and_names_the_object(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = applied(plain_stack, tfguard, 3)
    head = re.search(r"^head  ([0-9a-f]{64})$", tfguard(*NOW, cwd=stack).stdout, re.MULTILINE)
    assert head is not None
    whole = tfguard("archive", "--verify", "--expect", head[1], cwd=stack)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert f"whole; head {head[1]}" in whole.stdout
    assert tfguard("archive", "--verify", "--expect", "f" * 64, cwd=stack).returncode == 1

    (packed,) = (record(stack) / "archive").glob("*.gz")
    data = bytearray(packed.read_bytes())
    data[len(data) // 2] ^= 1
    packed.write_bytes(data)
    found = tfguard("archive", "--verify", "--format", "json", cwd=stack)
    assert found.returncode == 1
    document = json.loads(found.stdout)
    assert (document["schema"], document["whole"]) == ("tfguard.archive-check/v1", False)
    assert packed.name in document["flaws"][0]["where"]
    spoken = tfguard("archive", "--verify", cwd=stack)
    assert (spoken.returncode, "changed: " in spoken.stdout, packed.name in spoken.stdout) == (1, True, True)
    listed = tfguard("history", cwd=stack)
    assert listed.returncode == 0
    assert packed.name in listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == operations(stack)
    assert tfguard("status", cwd=stack).returncode == 0
    assert tfguard(*APPLY, cwd=stack).returncode == 0


def test_another_state_has_its_own_archive(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    for _ in range(2):
        assert tfguard(*APPLY, "-state=x.tfstate", "-replace=terraform_data.one", cwd=stack).returncode == 0
    assert "nothing was archived" in tfguard(*NOW, cwd=stack).stdout
    assert "1 operation archived" in tfguard(*NOW, "-state=x.tfstate", cwd=stack).stdout
    assert list((stack / "x.tfstate.tfguard" / "archive").iterdir())
    shown = tfguard("history", "--limit", "1", "-state=x.tfstate", cwd=stack).stdout.splitlines()
    assert len(tfguard(*shown[1].removeprefix("older: tfguard ").split(), cwd=stack).stdout.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [("--older-than", "soon"), ("--expect", "f" * 64), ("--verify", "--expect", "abc"), ("x",), ("--format", "csv")],
)
def test_what_archive_cannot_do_is_refused(plain_stack: StackFactory, tfguard: Run, arguments: tuple[str, ...]) -> None:
    done = tfguard("archive", *arguments, cwd=plain_stack(ONE))
    assert done.returncode == 1
    assert done.stderr.startswith("tfguard: ")
    assert "defect" not in done.stderr


def test_an_object_that_left_the_state_is_still_a_finding_when_its_operation_is_archived(
    stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert tfguard("state", "rm", "aws_iam_role.app", cwd=stack).returncode == 0
    assert tfguard("refresh", cwd=stack).returncode == 0
    listed = tfguard("orphans", "list", "--all", "--format", "json", cwd=stack)
    (finding,) = json.loads(listed.stdout)["findings"]
    refused = tfguard("import", "--orphan", finding["id"], "--yes", cwd=stack)
    assert "was settled: retain by" in refused.stderr

    done = tfguard(*NOW, cwd=stack)
    assert "2 operations archived" in done.stdout, done.stderr
    again = tfguard("orphans", "list", "--all", "--format", "json", cwd=stack)
    assert (again.returncode, again.stdout) == (listed.returncode, listed.stdout)
    shown = tfguard("orphans", "show", finding["id"], cwd=stack)
    assert (shown.returncode, "removed from state by" in shown.stdout) == (0, True)
    refused_again = tfguard("import", "--orphan", finding["id"], "--yes", cwd=stack)
    assert (refused_again.returncode, refused_again.stderr) == (refused.returncode, refused.stderr)

    # An import by hand is put into the ledger as the end of that finding, which only the archive can tell.
    assert tfguard("import", "aws_iam_role.app", "app", cwd=stack).returncode == 0
    ledger = [json.loads(line) for line in (record(stack) / "dispositions.jsonl").read_text().splitlines()]
    assert [(line["finding_id"], line["kind"]) for line in ledger] == [
        (finding["id"], "retain"),
        (finding["id"], "import"),
    ]
    assert all(re.search(r"\S+@\S+", line["actor"]) and line["reason"] and line["at"] for line in ledger)
    assert step(status(tfguard, stack, code=0), "aws_iam_role.app")["outcome"] == "recorded"


@pytest.mark.parametrize("document", ["outcome.json", "transitions.jsonl"])
def test_the_history_beside_an_operation_of_a_newer_tfguard_is_shown_and_its_exit_code_is_an_error(
    plain_stack: StackFactory, tfguard: Run, document: str
) -> None:
    stack = plain_stack(ONE)
    for _ in range(2):
        assert tfguard(*APPLY, "-replace=terraform_data.one", cwd=stack).returncode == 0
    first, second = operations(stack)
    newer = '{"schema": "tfguard.outcome/v9"}\n' if document == "outcome.json" else '{"v": 9}\n'
    (record(stack) / "operations" / first / document).write_text(newer)
    shown = tfguard("history", "--transitions", "--format", "json", cwd=stack)
    assert shown.returncode == 10
    assert ids(json.loads(shown.stdout)) == ([second] if document == "outcome.json" else [second, first])
    assert f"{first}/{document}" in shown.stderr and "newer tfguard" in shown.stderr
    lines = tfguard("history", "--limit", "1", cwd=stack)
    assert (lines.returncode, lines.stderr, second in lines.stdout) == (0, "", True)
