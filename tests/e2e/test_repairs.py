"""The engine's other changing commands: recorded, and what left the state is looked up."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from helpers import (
    APPLY,
    Json,
    Run,
    StackFactory,
    Start,
    addresses,
    head,
    intent,
    operations,
    orphans,
    outcome,
    record,
    role,
    settings,
    state_attribute,
    status,
    step,
    wait_until,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

PLAIN = """
resource "terraform_data" "a" {
  input = "x"
}
resource "terraform_data" "b" {
  for_each = toset(["one", "t wo"])
  input    = each.key
}
output "o" { value = terraform_data.a.output }
"""
TOPIC = """
resource "aws_sns_topic" "news" {
  name = "news"
}
"""
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
def pair(plain_stack: StackFactory, tf: Run, workdir: Path) -> tuple[Path, Path]:
    """Two copies of one applied stack: for the engine, and for tfguard."""
    one = plain_stack(PLAIN)
    tf("apply", "-auto-approve", cwd=one)
    other = workdir / "other"
    shutil.copytree(one, other)
    return one, other


def own_lines(text: str) -> str:
    """Standard error without tfguard's own lines."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("tfguard:"))


def masked(text: str) -> list[str]:
    """The lines without ids and times, and without the order in which the engine happened to come to the objects."""
    return sorted(re.sub(r'"@timestamp":"[^"]*"', "", ID.sub("", text)).splitlines(keepends=True))


def last(stack: Path) -> Json:
    """The outcome of the newest operation."""
    found = outcome(stack, operations(stack)[-1])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("command", "outcomes"),
    [
        (["refresh"], {}),
        (["refresh", "-json"], {}),
        (["refresh", "-no-color", "-target=terraform_data.a"], {}),
        (["taint", "terraform_data.a"], {"terraform_data.a": "tainted"}),
        (["taint", "-allow-missing", "terraform_data.nope"], {"terraform_data.nope": None}),
        (["taint", "terraform_data.nope"], {"terraform_data.nope": None}),
        (["untaint", "terraform_data.a"], {"terraform_data.a": "recorded"}),
        (["import", 'terraform_data.b["one"]', "x"], {'terraform_data.b["one"]': "recorded"}),
        (["import", "-no-color", "terraform_data.new", "x"], {"terraform_data.new": None}),
        (
            ["state", "rm", "terraform_data.b"],
            {'terraform_data.b["one"]': "absent", 'terraform_data.b["t wo"]': "absent"},
        ),
        (["state", "rm", 'terraform_data.b["t wo"]'], {'terraform_data.b["t wo"]': "absent"}),
        (["state", "rm", "terraform_data.nope"], {}),
        (["state", "mv", "terraform_data.a", "terraform_data.c"], {"terraform_data.a": "recorded"}),
        (
            ["state", "mv", "terraform_data.b", "module.m.terraform_data.b"],
            {'terraform_data.b["one"]': "recorded", 'terraform_data.b["t wo"]': "recorded"},
        ),
        (["state", "mv", "-lock=false", "terraform_data.nope", "terraform_data.c"], {}),
        (["state", "replace-provider", "-auto-approve", "terraform.io/builtin/terraform", "a.b/c/d"], {}),
        (["state", "replace-provider", "terraform.io/builtin/terraform", "a.b/c/d"], {}),
        (["force-unlock", "-force", "1234"], {}),
        (["taint", "-bogus", "terraform_data.a"], {"terraform_data.a": "recorded"}),
    ],
    ids=" ".join,
)
def test_a_repair_is_the_engines_own_and_recorded(
    pair: tuple[Path, Path], tf: Run, tfguard: Run, command: list[str], outcomes: dict[str, str | None]
) -> None:
    one, other = pair
    theirs, ours = tf(*command, cwd=one, check=False), tfguard(*command, cwd=other)
    assert masked(ours.stdout) == masked(theirs.stdout)
    assert (ours.returncode, own_lines(ours.stderr)) == (theirs.returncode, theirs.stderr)
    mine, their = (json.loads((stack / "terraform.tfstate").read_text()) for stack in (other, one))
    assert mine["resources"] == their["resources"]

    assert len(operations(other)) == 1
    found = last(other)
    assert found["exit_code"] == theirs.returncode
    assert {item["address"]: item.get("outcome") for item in found["steps"]} == outcomes
    assert intent(other, operations(other)[0])["command"] in " ".join(command)
    journal = (record(other) / "operations" / operations(other)[0] / "events.jsonl").read_text()
    assert [json.loads(line)["kind"] for line in journal.splitlines()] == ["command_start", "command_end"]
    assert (head(other)["open_operations"], head(other).get("lease")) == ([], None)


@pytest.mark.parametrize(
    "command",
    [
        ["state", "rm", "-dry-run", "terraform_data.a"],
        ["state", "rm"],
        ["state", "list"],
        ["state", "show", "terraform_data.a"],
        ["state"],
        ["taint"],
        ["import"],
        ["force-unlock"],
    ],
    ids=" ".join,
)
def test_what_changes_nothing_is_handed_through_and_not_recorded(
    pair: tuple[Path, Path], tf: Run, tfguard: Run, command: list[str]
) -> None:
    one, other = pair
    theirs, ours = tf(*command, cwd=one, check=False), tfguard(*command, cwd=other)
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)
    assert operations(other) == []


def test_arguments_from_the_environment_reach_a_two_word_command_once(
    pair: tuple[Path, Path], tf: Run, tfguard: Run
) -> None:
    one, other = pair
    env = {"TF_CLI_ARGS_state_rm": "-backup=kept.tfstate"}
    theirs = tf("state", "rm", "terraform_data.a", cwd=one, env=env)
    ours = tfguard("state", "rm", "terraform_data.a", cwd=other, env=env)
    assert (ours.stdout, ours.returncode) == (theirs.stdout, 0)
    assert (other / "kept.tfstate").exists()
    assert intent(other, operations(other)[0])["argv"] == ["state", "rm", "-backup=kept.tfstate", "terraform_data.a"]


def test_a_state_is_pushed_from_standard_input_and_what_it_lacks_is_named(
    pair: tuple[Path, Path], tfguard: Run
) -> None:
    _, stack = pair
    older = json.loads((stack / "terraform.tfstate").read_text())
    older["serial"] += 1
    older["resources"] = [item for item in older["resources"] if item["name"] == "a"]
    done = tfguard("state", "push", "-", cwd=stack, stdin=json.dumps(older))
    assert (done.returncode, done.stdout) == (0, "")
    assert addresses(stack) == {"terraform_data.a"}
    found = last(stack)
    assert [item["outcome"] for item in found["steps"]] == ["absent", "absent"], "these live in the state alone"


@pytest.mark.parametrize(("answer", "code"), [("yes\n", 0), ("no\n", 0), (None, 1)])
def test_a_piped_answer_to_the_engines_own_question_gets_through(
    pair: tuple[Path, Path], tf: Run, tfguard: Run, answer: str | None, code: int
) -> None:
    one, other = pair
    command = ["state", "replace-provider", "terraform.io/builtin/terraform", "a.b/c/d"]
    theirs = tf(*command, cwd=one, stdin=answer, check=False)
    ours = tfguard(*command, cwd=other, stdin=answer)
    assert (masked(ours.stdout), ours.returncode) == (masked(theirs.stdout), theirs.returncode)
    assert code in (0, ours.returncode)


def test_an_object_that_another_state_takes_over_is_not_lost(pair: tuple[Path, Path], tfguard: Run) -> None:
    _, stack = pair
    done = tfguard("state", "mv", "-state-out=split.tfstate", "terraform_data.b", "terraform_data.b", cwd=stack)
    assert done.returncode == 0, done.stderr
    assert {item["outcome"] for item in last(stack)["steps"]} <= {"recorded", "absent"}


def test_a_state_that_cannot_be_read_does_not_keep_anybody_from_repairing_it(
    pair: tuple[Path, Path], tfguard: Run
) -> None:
    _, stack = pair
    good = (stack / "terraform.tfstate").read_bytes()
    (stack / "good.tfstate").write_bytes(good)
    (stack / "terraform.tfstate").write_bytes(b"")
    done = tfguard("state", "push", "-force", "good.tfstate", cwd=stack)
    assert done.returncode == 0, done.stderr
    assert "what this command takes out of it will not be seen" in done.stderr
    assert len(addresses(stack)) == 2
    assert last(stack)["gaps"] != [], "nobody saw what was in it"


def test_a_failed_repair_does_not_make_a_lost_state_look_like_none(pair: tuple[Path, Path], tfguard: Run) -> None:
    _, stack = pair
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    (stack / "terraform.tfstate").write_bytes(b"")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    assert tfguard("taint", "terraform_data.a", cwd=stack).returncode == 1
    again = tfguard(*APPLY, cwd=stack)
    assert again.returncode in (1, 11), "else everything would be made a second time"
    assert (stack / "terraform.tfstate").read_bytes() == b""


def test_a_file_that_a_failed_run_did_not_write_is_not_an_empty_state(pair: tuple[Path, Path], tfguard: Run) -> None:
    _, stack = pair
    done = tfguard("refresh", "-state-out=new.tfstate", "-var", "nope=1", cwd=stack)
    assert done.returncode == 1
    assert last(stack)["steps"] == [], "everything is where it was"


def test_a_move_to_another_state_is_told_from_the_record_when_its_tfguard_was_killed(
    pair: tuple[Path, Path], engine: Path, tfguard: Run, workdir: Path
) -> None:
    _, stack = pair
    script = f'#!/bin/sh\n"{engine}" "$@"\ncode=$?\n[ "$2" = mv ] && kill -9 $PPID\nexit $code\n'
    killer = workdir / "killing-engine"
    killer.write_text(script)
    killer.chmod(0o755)
    command = ("state", "mv", "-state-out=split.tfstate", "terraform_data.a", "terraform_data.moved")
    assert tfguard("--engine", str(killer), *command, cwd=stack).returncode == -9
    assert tfguard("recover", cwd=stack).returncode == 0
    (step_found,) = last(stack)["steps"]
    assert (step_found["outcome"], "split.tfstate holds" in step_found["evidence"][0]["detail"]) == ("recorded", True)


def test_a_record_that_cannot_be_written_stops_a_repair_before_the_engine(
    pair: tuple[Path, Path], tfguard: Run
) -> None:
    _, stack = pair
    before = (stack / "terraform.tfstate").read_bytes()
    (stack / "terraform.tfstate.tfguard").write_text("in the way")
    done = tfguard("state", "rm", "terraform_data.a", cwd=stack)
    assert done.returncode == 10
    assert (stack / "terraform.tfstate").read_bytes() == before


def test_a_repair_next_to_a_living_run_is_refused(
    plain_stack: StackFactory, tfguard: Run, tfguard_popen: Start, workdir: Path
) -> None:
    go_on = workdir / "go-on"
    wait = f"while [ ! -e {go_on} ]; do sleep 0.1; done"
    body = f'resource "terraform_data" "a" {{\n  provisioner "local-exec" {{\n    command = "{wait}"\n  }}\n}}\n'
    stack = plain_stack(body)
    running = tfguard_popen(*APPLY, cwd=stack)
    wait_until(lambda: (record(stack) / "head.json").exists() and head(stack)["lease"].get("engine") is not None)
    for command in (
        ["taint", "terraform_data.a"],
        ["state", "rm", "terraform_data.a"],
        ["force-unlock", "-force", "x"],
    ):
        refused = tfguard(*command, cwd=stack)
        assert refused.returncode == 12, refused.stderr
        assert "it is running" in refused.stderr
    go_on.touch()
    running.communicate(timeout=60)
    assert running.returncode == 0
    assert len(operations(stack)) == 1


# --- objects that live ---


def test_a_live_object_that_is_taken_out_of_the_state_is_a_finding_with_its_decision(
    moto: MotoServer, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role() + TOPIC))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    moto.client("sns").delete_topic(TopicArn=state_attribute(stack, "aws_sns_topic.news", "arn"))

    done = tfguard("state", "rm", "aws_iam_role.app", "aws_sns_topic.news", cwd=stack)
    assert done.returncode == 0
    assert "tfguard: aws_iam_role.app left the state and still exists: app" in done.stderr
    document = status(tfguard, stack, code=0)
    kept, vanished = step(document, "aws_iam_role.app"), step(document, "aws_sns_topic.news")
    assert (kept["status"], kept["outcome"], kept["disposition"]) == ("retained", "orphaned", "retain")
    assert (vanished["outcome"], vanished["observed"], vanished["open"]) == ("unknown", [], False)

    listed = tfguard("orphans", "list", "--all", "--format", "json", cwd=stack)
    assert listed.returncode == 0, "it was decided about"
    (finding,) = json.loads(listed.stdout)["findings"]
    decision = finding["disposition"]
    assert finding["object"]["import_id"] == "app"
    assert re.fullmatch(r"removed from state by \S+@\S+ at \d{4}-\S+Z \(state rm\)", decision["reason"])

    # The next operation does not make it forgotten, and an import by hand settles it.
    assert tfguard("refresh", cwd=stack).returncode == 0
    again = json.loads(tfguard("orphans", "list", "--all", "--format", "json", cwd=stack).stdout)["findings"]
    assert [item["id"] for item in again] == [finding["id"]]
    assert tfguard("import", "aws_iam_role.app", "app", cwd=stack).returncode == 0
    after = json.loads(tfguard("orphans", "list", "--all", "--format", "json", cwd=stack).stdout)["findings"]
    assert [item["disposition"]["kind"] for item in after] in ([], ["import"])


def test_an_object_that_a_removed_block_gives_up_is_a_finding_with_its_decision(
    stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    (stack / "main.tf").write_text("removed {\n  from = aws_iam_role.app\n  lifecycle {\n    destroy = false\n  }\n}\n")
    done = tfguard(*APPLY, cwd=stack)
    assert (done.returncode, own_lines(done.stderr)) == (0, "")
    assert status(tfguard, stack, code=0)["open"] is False
    shown = tfguard("orphans", "list", "--all", cwd=stack)
    assert shown.returncode == 0
    assert re.search(r"settled: retain by \S+: removed from state by \S+ at \S+ \(apply\)", shown.stdout)
    assert tfguard(*APPLY, cwd=stack).returncode == 0, "a decision stands in nobody's way"


def test_an_object_that_a_pushed_state_forgets_is_an_orphan(stack_factory: StackFactory, tfguard: Run) -> None:
    stack = settings(stack_factory(role()))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    state = json.loads((stack / "terraform.tfstate").read_text())
    (stack / "older.tfstate").write_text(json.dumps({**state, "serial": state["serial"] + 1, "resources": []}))

    done = tfguard("state", "push", "older.tfstate", cwd=stack)
    assert done.returncode == 0
    assert "aws_iam_role.app: orphaned" in done.stderr
    found = orphans(tfguard, stack, code=2)["findings"]
    assert [item["object"]["import_id"] for item in found] == ["app"]
    assert tfguard(*APPLY, cwd=stack).returncode == 11
    assert tfguard("import", "--orphan", found[0]["id"], "--yes", cwd=stack).returncode == 0
    assert status(tfguard, stack, code=0)["open"] is False


def test_a_refresh_that_drops_what_the_provider_still_lists_says_so(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    proxy.add_rule("error:404", action="GetRole", code="NoSuchEntity", count=None)
    done = tfguard("refresh", "-no-color", cwd=stack)
    assert done.returncode == 0
    assert addresses(stack) == set(), "the engine believed it"
    assert "aws_iam_role.app: orphaned" in done.stderr
    assert step(status(tfguard, stack, code=11), "aws_iam_role.app")["outcome"] == "orphaned"


def test_a_refresh_in_the_wrong_region_proves_nothing_gone(stack_factory: StackFactory, tfguard: Run) -> None:
    stack = settings(stack_factory(TOPIC + 'variable "where" { default = "eu-west-1" }\n'))
    providers = (stack / "providers.tf").read_text()
    (stack / "providers.tf").write_text(re.sub(r'region\s*=\s*"[^"]*"', "region = var.where", providers))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    done = tfguard("refresh", "-var=where=us-west-2", cwd=stack)
    assert done.returncode == 0, done.stderr
    assert "aws_sns_topic.news" not in addresses(stack), "the engine believed it"
    assert step(status(tfguard, stack, code=11), "aws_sns_topic.news")["outcome"] in ("unknown", "orphaned")


def test_a_killed_refresh_is_settled_by_the_next_look(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role()))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    held_back = proxy.add_rule("delay:5", action="GetRole")
    running = tfguard_popen("refresh", cwd=stack)
    wait_until(lambda: held_back.fired == 1)
    wait_until(lambda: head(stack)["lease"].get("engine") is not None)
    running.kill()
    running.wait()
    alive = tfguard("taint", "aws_iam_role.app", cwd=stack)
    assert alive.returncode == 12, "its engine goes on alone"
    engine = head(stack)["lease"]["engine"]["pid"]
    wait_until(lambda: not Path(f"/proc/{engine}").exists() or "Z" in Path(f"/proc/{engine}/stat").read_text())
    assert tfguard("recover", cwd=stack).returncode == 0
    document = status(tfguard, stack, code=0)
    assert (document["command"], document["status"], document["steps"]) == ("refresh", "interrupted", [])


def test_no_value_of_a_variable_is_kept_of_an_import(pair: tuple[Path, Path], tfguard: Run) -> None:
    _, stack = pair
    (stack / "v.tf").write_text('variable "pw" {}\nresource "terraform_data" "n" {}\n')
    assert tfguard("import", "-var", "pw=hunter2", "terraform_data.n", "hunter2-id", cwd=stack).returncode == 0
    assert tfguard("import", "terraform_data.n", "x", "-var", "pw=hunter2", cwd=stack).returncode == 1
    kept = subprocess.run(["grep", "-r", "hunter2", str(record(stack))], capture_output=True, text=True)
    assert kept.stdout == ""
    argv: list[Any] = intent(stack, operations(stack)[0])["argv"]
    assert argv == ["import", "-var=pw=<removed>", "terraform_data.n", "<removed>"]


@pytest.mark.parametrize(
    "typed",
    ["resource.terraform_data.a", "terraform_data . a", 'terraform_data.b[ "one" ]', 'terraform_data.b["\\u006fne"]'],
)
def test_however_an_address_is_typed_what_left_the_state_is_seen(
    pair: tuple[Path, Path], tfguard: Run, typed: str
) -> None:
    _, stack = pair
    assert tfguard("state", "rm", typed, cwd=stack).returncode == 0
    (found,) = last(stack)["steps"]
    assert (found["action"], found["outcome"]) == ("forget", "absent"), "it lived in the state alone"


def test_a_moved_object_of_a_type_that_nobody_lists_is_found_at_its_new_address(
    stack_factory: StackFactory, tfguard: Run
) -> None:
    alarm = """
resource "aws_cloudwatch_event_rule" "{name}" {{
  name                = "nightly"
  schedule_expression = "rate(1 day)"
}}
"""
    stack = settings(stack_factory(alarm.format(name="n")))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    moved = "moved {\n  from = aws_cloudwatch_event_rule.n\n  to = aws_cloudwatch_event_rule.z\n}\n"
    (stack / "main.tf").write_text(alarm.format(name="z") + moved)
    assert tfguard("refresh", cwd=stack).returncode == 0
    found = step(status(tfguard, stack, code=0), "aws_cloudwatch_event_rule.n")
    assert (found["outcome"], found["evidence"][0]["detail"].split(" at ")[1]) == (
        "recorded",
        "aws_cloudwatch_event_rule.z",
    )
    assert (
        tfguard("state", "mv", "aws_cloudwatch_event_rule.z", "aws_cloudwatch_event_rule . n", cwd=stack).returncode
        == 0
    )
    assert step(status(tfguard, stack, code=0), "aws_cloudwatch_event_rule.z")["outcome"] == "recorded"


@pytest.mark.parametrize("command", [["refresh"], ["import", "terraform_data.n", "id"]])
def test_a_variable_that_is_piped_in_reaches_a_repair(
    pair: tuple[Path, Path], tf: Run, tfguard: Run, command: list[str]
) -> None:
    one, other = pair
    for stack in pair:
        (stack / "v.tf").write_text('variable "v" {}\nresource "terraform_data" "n" {\n  input = var.v\n}\n')
    theirs, ours = tf(*command, cwd=one, stdin="val\n", check=False), tfguard(*command, cwd=other, stdin="val\n")
    assert (masked(ours.stdout), ours.returncode) == (masked(theirs.stdout), theirs.returncode) and ours.returncode == 0


def test_a_destination_that_cannot_be_read_blocks_nothing_for_ever(
    pair: tuple[Path, Path], engine: Path, tfguard: Run, workdir: Path
) -> None:
    _, stack = pair
    killer = workdir / "killing-engine"
    killer.write_text(f'#!/bin/sh\n"{engine}" "$@"\ncode=$?\n[ "$2" = mv ] && kill -9 $PPID\nexit $code\n')
    killer.chmod(0o755)
    tfguard(
        "--engine",
        str(killer),
        "state",
        "mv",
        "-state-out=o.tfstate",
        "terraform_data.a",
        "terraform_data.a",
        cwd=stack,
    )
    (stack / "o.tfstate").write_bytes(b"")
    assert tfguard("recover", cwd=stack).returncode == 11
    done = tfguard("recover", "--confirm-absent", "terraform_data.a", "--reason", "moved by hand", cwd=stack)
    assert done.returncode == 0, done.stderr


def test_mistyped_words_that_could_be_secrets_are_not_kept(pair: tuple[Path, Path], tfguard: Run) -> None:
    _, stack = pair
    for words in ("import hunter2", "import terraform_data.a=hunter2 x", "refresh -vars=hunter2", "refresh s=hunter2"):
        assert tfguard(*words.split(), cwd=stack).returncode == 1
    kept = subprocess.run(["grep", "-r", "hunter2", str(record(stack))], capture_output=True, text=True)
    assert kept.stdout == ""


def test_a_repair_of_a_stack_that_was_not_initialised_gets_the_engines_words(
    workdir: Path, tf: Run, tfguard: Run
) -> None:
    (workdir / "main.tf").write_text('terraform {\n  backend "http" {\n    address = "http://127.0.0.1:9/"\n  }\n}\n')
    theirs, ours = tf("refresh", cwd=workdir, check=False), tfguard("refresh", cwd=workdir)
    assert (ours.returncode, own_lines(ours.stderr)) == (theirs.returncode, theirs.stderr)
    assert not (workdir / "terraform.tfstate.tfguard").exists()
