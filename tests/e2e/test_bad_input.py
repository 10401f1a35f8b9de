"""Bad input: one line of what, one of advice, the documented exit code, and nothing lost."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import (
    APPLY,
    DESTROY,
    Run,
    StackFactory,
    head,
    kinds,
    operations,
    outcome,
    record,
    reopen,
    role,
    run_folders,
    settings,
    status,
    step,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

ONE = 'resource "terraform_data" "a" {\n}\n'
LOG_GROUP = 'resource "aws_cloudwatch_log_group" "logs" {\n  name = "logs"\n}\n'
# In no catalogue entry, unique by name, and quick in the simulator.
UNKNOWN = "aws_glue_security_configuration"
UNKNOWN_TYPE = f"""resource "{UNKNOWN}" "team" {{
  name = "team"
  encryption_configuration {{
    cloudwatch_encryption {{}}
    job_bookmarks_encryption {{}}
    s3_encryption {{}}
  }}
}}
"""


def refusal(done: subprocess.CompletedProcess[str], code: int) -> tuple[str, str]:
    """What and advice, which are all that tfguard says beside the exit code."""
    assert done.returncode == code, done.stderr
    lines = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert len(lines) == 2, done.stderr
    assert all(line.startswith("tfguard: ") for line in lines)
    return lines[0], lines[1]


def everything(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The engine.


def test_no_engine_is_told(plain_stack: StackFactory, tfguard: Run, tmp_path: Path) -> None:
    stack = plain_stack(ONE)
    for command in (APPLY, ("plan",), ("status",), ("version",), ("init",)):
        what, _ = refusal(tfguard(*command, cwd=stack, env={"PATH": str(tmp_path)}), 13)
        assert "neither terraform nor tofu is on the PATH" in what
        what, _ = refusal(tfguard("--engine", "no-such-engine", *command, cwd=stack), 13)
        assert "no-such-engine" in what


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("Terraform v1.4.7\non linux_amd64", "terraform 1.4.7"),
        ("OpenTofu v1.5.0", "tofu 1.5.0"),
        ("Packer v1.10.0", "does not answer `version`"),
        ("", "does not answer `version`"),
    ],
)
def test_an_engine_that_is_too_old_or_none_is_told(
    plain_stack: StackFactory, tfguard: Run, tmp_path: Path, says: str, expected: str
) -> None:
    stack = plain_stack(ONE)
    stand_in = tmp_path / "engine"
    stand_in.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
    stand_in.chmod(0o755)
    what, _ = refusal(tfguard("--engine", str(stand_in), *APPLY, cwd=stack), 13)
    assert expected in what
    assert operations(stack) == []


def test_a_file_that_cannot_be_run_is_no_engine(plain_stack: StackFactory, tfguard: Run, tmp_path: Path) -> None:
    stack = plain_stack(ONE)
    stand_in = tmp_path / "engine"
    stand_in.write_bytes(b"\x7fELF no")
    stand_in.chmod(0o755)
    refusal(tfguard("--engine", str(stand_in), *APPLY, cwd=stack), 13)


# The stack.


def test_a_stack_that_is_not_initialised_is_told(tfguard: Run, workdir: Path) -> None:
    (workdir / "main.tf").write_text('terraform {\n  backend "local" {\n    path = "x.tfstate"\n  }\n}\n' + ONE)
    for command in (("history",), ("status",), ("recover",)):
        what, advice = refusal(tfguard(*command, cwd=workdir), 1)
        assert "is not initialised" in what
        assert "tfguard init" in advice
    assert [path.name for path in workdir.iterdir()] == ["main.tf"]


def test_a_missing_provider_is_the_engines_to_tell(tfguard: Run, workdir: Path) -> None:
    (workdir / "main.tf").write_text(LOG_GROUP)
    done = tfguard(*APPLY, cwd=workdir)
    assert done.returncode == 1
    assert "terraform init" in done.stderr
    assert operations(workdir) == []


def test_a_damaged_backend_file_is_told(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    (stack / ".terraform").mkdir(exist_ok=True)
    (stack / ".terraform" / "terraform.tfstate").write_text('{"version": 3, "backend": {"type": "s3"')
    what, advice = refusal(tfguard(*APPLY, cwd=stack), 1)
    assert "is damaged" in what
    assert "init -reconfigure" in advice


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda _: b"", "it is empty"),
        (lambda whole: whole[: len(whole) // 2], "cut"),
        (lambda _: b"[]", "no JSON object"),
    ],
    ids=["empty", "cut", "foreign"],
)
def test_a_damaged_state_is_never_taken_for_an_empty_one(
    plain_stack: StackFactory, tfguard: Run, damage: object, reason: str
) -> None:
    stack = plain_stack(ONE)
    tfguard(*APPLY, cwd=stack)
    state = stack / "terraform.tfstate"
    assert callable(damage)
    state.write_bytes(damage(state.read_bytes()))
    before = everything(stack)
    what, advice = refusal(tfguard(*APPLY, cwd=stack), 1)
    assert reason in what
    assert "backup" in advice
    assert everything(stack) == before
    assert run_folders(stack) == []


def test_a_state_that_is_lost_during_a_run_leaves_the_operation_open(
    plain_stack: StackFactory, tfguard: Run, tf: Run
) -> None:
    body = 'resource "terraform_data" "a" {\n  provisioner "local-exec" {\n    command = "true"\n  }\n}\n'
    stack = plain_stack(body)
    tfguard(*APPLY, cwd=stack)
    whole = (stack / "terraform.tfstate").read_bytes()
    tf("plan", "-replace=terraform_data.a", "-out=p", cwd=stack)
    # The engine's last word is written; then somebody cuts the file before it is read again.
    wrapped = stack.with_name("wrapped")
    wrapped.write_text('#!/bin/sh\nterraform "$@"; code=$?\n[ "$1" = apply ] && : >terraform.tfstate\nexit $code\n')
    wrapped.chmod(0o755)
    done = tfguard("--engine", str(wrapped), "apply", "p", cwd=stack)
    assert done.returncode == 0
    assert "it is empty" in done.stderr
    assert tfguard("status", cwd=stack).returncode == 11
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (stack / "terraform.tfstate").write_bytes(whole)
    assert tfguard("recover", cwd=stack).returncode == 0


def test_a_plan_that_is_cut_is_told(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    (stack / "p").write_bytes(b"PK\x03\x04 cut")
    what, advice = refusal(tfguard("apply", "p", cwd=stack), 1)
    assert "is not a plan that can be applied" in what
    assert "plan -out=FILE" in advice
    assert operations(stack) == []
    assert run_folders(stack) == []


@pytest.mark.parametrize("content", [b"", b"plain text", None], ids=["empty", "text", "missing"])
def test_a_file_that_cannot_be_a_plan_is_refused_in_the_engines_words(
    plain_stack: StackFactory, tf: Run, tfguard: Run, content: bytes | None
) -> None:
    stack = plain_stack(ONE)
    if content is not None:
        (stack / "p").write_bytes(content)
    done, real = tfguard("apply", "p", cwd=stack), tf("apply", "p", cwd=stack, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, real.stdout, real.stderr)
    assert 'Failed to load "p" as a plan file' in done.stderr.replace("\x1b[0m", "")
    assert operations(stack) == []
    assert run_folders(stack) == []


def test_a_state_in_the_place_of_a_plan_is_told(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    tfguard(*APPLY, cwd=stack)
    what, _ = refusal(tfguard("apply", "terraform.tfstate", cwd=stack), 1)
    assert "it is a state, not a plan" in what


# The configuration and the options.


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("on_gap: maybe\n", "tfguard.yaml:1: on_gap"),
        ("engine: terraform\nrecordz: x\n", "tfguard.yaml:2: recordz"),
        ("a: [\n", "tfguard.yaml:2:"),
        ("consistency_grace: soon\n", "tfguard.yaml:1: consistency_grace"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_told_with_its_line(
    plain_stack: StackFactory, tfguard: Run, text: str, where: str
) -> None:
    stack = plain_stack(ONE)
    (stack / "tfguard.yaml").write_text(text)
    for command in (APPLY, ("status",)):
        what, _ = refusal(tfguard(*command, cwd=stack), 1)
        assert where in what
    assert not (stack / "terraform.tfstate").exists()


def test_a_configuration_that_is_named_and_missing_is_told(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    for name in ("none.yaml", ".", "main.tf/none.yaml"):
        what, advice = refusal(tfguard("--config", name, *APPLY, cwd=stack), 1)
        assert name in what
        assert advice.startswith("tfguard: correct --config")


def test_ignoring_a_gap_needs_a_reason(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    what, advice = refusal(tfguard(*APPLY, "--on-gap=ignore", cwd=stack), 1)
    assert "needs a reason" in what
    assert "--reason TEXT" in advice
    refusal(tfguard(*APPLY, "--on-gap=perhaps", cwd=stack), 1)
    assert operations(stack) == []


# The record.


def test_a_record_from_a_newer_version_is_left_as_it_is(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    tfguard(*APPLY, cwd=stack)
    path = record(stack) / "head.json"
    path.write_text(path.read_text().replace("tfguard.head/v1", "tfguard.head/v2"))
    before = everything(stack)
    for command in (APPLY, ("status",), ("recover", "--yes"), ("destroy", "-auto-approve")):
        what, advice = refusal(tfguard(*command, cwd=stack), 10)
        assert "newer tfguard" in what
        assert "update tfguard" in advice
    assert everything(stack) == before


@pytest.mark.parametrize("damage", ["", "{", '{"schema": "tfguard.head/v1", "revision": "x"}', "[]"])
def test_a_damaged_head_stands_in_the_way_until_recover_moves_it_aside(
    plain_stack: StackFactory, tfguard: Run, damage: str
) -> None:
    stack = plain_stack(ONE)
    tfguard(*APPLY, cwd=stack)
    (record(stack) / "head.json").write_text(damage)
    before = everything(stack)
    for command in (APPLY, ("status",), ("destroy", "-auto-approve")):
        what, advice = refusal(tfguard(*command, cwd=stack), 11)
        assert "head.json" in what
        assert "tfguard recover" in advice
    assert everything(stack) == before

    recovered = tfguard("recover", cwd=stack)
    assert recovered.returncode == 0
    assert "head.json.unreadable-1" in recovered.stderr
    assert (record(stack) / "head.json.unreadable-1").read_text() == damage
    assert tfguard(*APPLY, cwd=stack).returncode == 0


@pytest.mark.parametrize("name", ["outcome.json", "events.jsonl"])
def test_a_damaged_outcome_or_journal_is_moved_aside_and_looked_up_again(
    plain_stack: StackFactory, tfguard: Run, name: str
) -> None:
    stack = plain_stack(ONE)
    tfguard(*APPLY, cwd=stack)
    (operation,) = operations(stack)
    path = record(stack) / "operations" / operation / name
    path.write_text('{"schema": "something else", "v": "x"}\n')
    reopen(stack, operation)
    what, _ = refusal(tfguard(*APPLY, cwd=stack), 11)
    assert name in what
    recovered = tfguard("recover", cwd=stack)
    assert recovered.returncode == 0, recovered.stderr
    assert f"{name}.unreadable-1" in recovered.stderr
    found = outcome(stack, operation)
    assert found is not None
    assert found["steps"][0]["outcome"] == "recorded"
    assert path.with_name(f"{name}.unreadable-1").exists()


def test_a_damaged_intent_stays_open_until_somebody_says_why_it_may_be_ignored(
    plain_stack: StackFactory, tfguard: Run
) -> None:
    stack = plain_stack(ONE)
    tfguard(*APPLY, cwd=stack)
    (operation,) = operations(stack)
    path = record(stack) / "operations" / operation / "intent.json"
    path.write_text("{")
    reopen(stack, operation)
    assert "intent.json" in refusal(tfguard(*APPLY, cwd=stack), 11)[0]
    assert tfguard("recover", cwd=stack).returncode == 11
    assert path.read_text() == "{"
    done = tfguard(*APPLY, "--on-gap=ignore", "--reason", "looked by hand", cwd=stack)
    assert done.returncode == 0, done.stderr
    assert head(stack)["open_operations"] == [operation]


def test_a_cut_line_in_a_journal_is_passed_over_and_counted(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    tfguard(*APPLY, cwd=stack)
    (operation,) = operations(stack)
    folder = record(stack) / "operations" / operation
    (folder / "outcome.json").unlink()
    lines = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(lines[:-30])
    reopen(stack, operation)
    assert tfguard("recover", cwd=stack).returncode == 0
    found = outcome(stack, operation)
    assert found is not None
    assert (found["stream"]["cut"], found["stream"]["whole"]) == (1, False)
    assert found["steps"][0]["outcome"] == "recorded"


# A record that cannot be written.


@pytest.fixture
def disk(plain_stack: StackFactory, tf: Run) -> Iterator[Path]:
    """A stack with one object in state and one to be made, and its record on a small disk of its own."""
    stack = plain_stack(ONE)
    tf(*APPLY, cwd=stack)
    (stack / "more.tf").write_text(ONE.replace('"a"', '"b"'))
    yield from _on_a_disk(stack)


def _on_a_disk(stack: Path) -> Iterator[Path]:
    folder = record(stack)
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("no right to mount here")
    try:
        yield stack
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _freeze(stack: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(record(stack))], check=True, capture_output=True)


def _assert_refused(stack: Path, tfguard: Run, reason: str) -> None:
    state = (stack / "terraform.tfstate").read_bytes()
    for command in (APPLY, DESTROY):
        done = tfguard(*command, cwd=stack)
        assert done.returncode == 10
        what, _advice = done.stderr.splitlines()
        assert reason in what
        assert (stack / "terraform.tfstate").read_bytes() == state
        assert run_folders(stack) == []


def test_a_read_only_record_stops_the_run_before_any_call(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    for stack in _on_a_disk(settings(stack_factory(role()))):
        _freeze(stack)
        done = tfguard(*APPLY, cwd=stack)
        assert done.returncode == 10
        assert "Read-only file system" in done.stderr
        assert proxy.log.actions(mutating=True) == []
        assert moto.client("iam").list_roles()["Roles"] == []


def test_a_read_only_record_stops_the_run_and_loses_nothing(disk: Path, tfguard: Run) -> None:
    _freeze(disk)
    _assert_refused(disk, tfguard, "Read-only file system")


def test_a_full_disk_stops_the_run_and_loses_nothing(disk: Path, tfguard: Run) -> None:
    filler = os.open(record(disk) / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(filler, b"x" * 4096)
    os.close(filler)
    _assert_refused(disk, tfguard, "No space left on device")


def test_a_file_in_the_place_of_the_record_stops_the_run_and_loses_nothing(
    plain_stack: StackFactory, tf: Run, tfguard: Run
) -> None:
    stack = plain_stack(ONE)
    tf(*APPLY, cwd=stack)
    record(stack).write_text("not a folder")
    _assert_refused(stack, tfguard, "Not a directory")
    assert record(stack).read_text() == "not a folder"


def test_a_run_folder_that_cannot_be_made_stops_the_run(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    shutil.rmtree(stack / ".terraform", ignore_errors=True)
    (stack / ".terraform").mkdir()
    (stack / ".terraform" / "tfguard").write_text("not a folder")
    refusal(tfguard(*APPLY, cwd=stack), 1)
    assert operations(stack) == []


# A provider that does not answer.


def test_a_lost_reply_with_refused_reads_is_unknown_and_never_absent(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("deny", action="ListRoles", count=None)
    proxy.add_rule("deny", action="GetRole", count=None)
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    assert tfguard("recover", cwd=stack).returncode == 11
    found = step(status(tfguard, stack, code=11), "aws_iam_role.app")
    assert found["outcome"] == "unknown"
    assert any("AccessDenied" in item["detail"] for item in found["evidence"])
    listed = tfguard("orphans", "list", "--format", "json", cwd=stack)
    assert listed.returncode == 3
    coverage = json.loads(listed.stdout)["coverage"]
    assert not coverage["complete"]
    assert any("AccessDenied" in gap["reason"] for gap in coverage["gaps"])
    assert len(moto.client("iam").list_roles()["Roles"]) == 1

    proxy.rules.clear()
    assert tfguard("recover", cwd=stack).returncode == 11
    assert step(status(tfguard, stack, code=11), "aws_iam_role.app")["outcome"] == "orphaned"


def test_where_lists_are_refused_the_engines_own_read_names_the_object_and_a_person_decides_whose_it_is(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("deny", action="ListRoles", count=None)
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    found = step(status(tfguard, stack, code=11), "aws_iam_role.app")
    # The create met a role of that name; without a list before the run nothing tells that the run made it.
    assert found["outcome"] == "unknown"
    assert "engine-read" in kinds(found["evidence"])
    assert found["observed"][0]["import_id"] == "app"
    assert tfguard("import", "--orphan", found["finding"], "--yes", cwd=stack).returncode == 0
    assert tfguard("plan", "-detailed-exitcode", cwd=stack).returncode == 0


def test_a_refused_list_after_a_sound_run_is_a_warning(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("deny", action="ListRoles", count=None)
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 0
    assert "no baseline of aws_iam_role (AccessDenied" in done.stderr
    assert "not complete: " in done.stderr
    assert step(status(tfguard, stack, code=0), "aws_iam_role.app")["outcome"] == "recorded"


def test_a_type_that_nobody_can_list_stays_unknown_until_a_person_says_that_nothing_exists(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(UNKNOWN_TYPE))
    proxy.add_rule("drop", action="CreateSecurityConfiguration")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    assert tfguard("recover", cwd=stack).returncode == 11
    found = step(status(tfguard, stack, code=11), f"{UNKNOWN}.team")
    assert (found["outcome"], found["observed"]) == ("unknown", [])
    listed = tfguard("orphans", "list", "--format", "json", cwd=stack)
    assert listed.returncode == 3
    gaps = {gap["scope"]: gap["reason"] for gap in json.loads(listed.stdout)["coverage"]["gaps"]}
    assert "cannot list" in gaps[f"{UNKNOWN}.team"]
    assert "not in the catalogue" in gaps[UNKNOWN]
    moto.client("glue").delete_security_configuration(Name="team")

    word = ("recover", "--confirm-absent", f"{UNKNOWN}.team")
    assert tfguard(*word, cwd=stack).returncode == 1
    assert tfguard(*word, "--reason", "looked in the console", cwd=stack).returncode == 0
    closed = status(tfguard, stack, code=0)
    assert any("looked in the console" in item["detail"] for item in step(closed, f"{UNKNOWN}.team")["evidence"])
    assert tfguard(*APPLY, cwd=stack).returncode == 0
