"""tfguard around a stand-in for OpenTofu: `fixtures/stand_in_tofu.py`, which runs the real terraform. No real tofu."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from helpers import (
    APPLY,
    DESTROY,
    Json,
    Run,
    StackFactory,
    Start,
    addresses,
    engine_pid,
    kill,
    kinds,
    operations,
    orphans,
    record,
    role,
    run_folders,
    runs,
    settings,
    status,
    step,
    wait_until,
)
from state_server import StateServer

from fixtures import stand_in_tofu
from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("binary")]

ONE = """
resource "terraform_data" "a" {
  input = "<&>"
}
output "o" {
  value = terraform_data.a.input
}
"""
WAITING = """
resource "terraform_data" "a" {
}
resource "terraform_data" "b" {
  depends_on = [terraform_data.a]
  provisioner "local-exec" {
    command = "touch begun; while [ ! -e go ]; do sleep 0.05; done"
  }
}
"""
KEY = 'passphrase = "correct horse battery staple"'
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
def binary(engine: Path, tmp_path: Path, run_env: dict[str, str]) -> Path:
    """The stand-in under the name `tofu`, alone in a folder; every run of tfguard takes it, and it runs terraform."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tofu").symlink_to(stand_in_tofu.__file__)
    run_env.update(TFGUARD_ENGINE=str(folder / "tofu"), STAND_IN_TERRAFORM=str(engine))
    return folder / "tofu"


@pytest.fixture
def tofu(binary: Path, run_env: dict[str, str]) -> Run:
    """Run the stand-in without tfguard."""

    def run(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        environ = run_env | dict(env or {})
        return subprocess.run(
            [binary, *arguments], cwd=cwd, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    return run


def masked(text: str) -> str:
    """Without the ids that every object gets anew."""
    return _ID.sub("<id>", text)


def events(path: Path) -> list[Json]:
    """The events in a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


# Which engine


def test_tofu_is_found_by_its_name_in_every_way_that_an_engine_can_be_named(
    binary: Path, plain_stack: StackFactory, tfguard: Run, run_env: dict[str, str]
) -> None:
    stack = plain_stack(ONE)
    del run_env["TFGUARD_ENGINE"]
    run_env["PATH"] = f"{binary.parent}{os.pathsep}{run_env['PATH']}"
    assert f"(engine {binary})" in tfguard("--engine", "tofu", "version", cwd=stack).stdout
    assert "Terraform v" in tfguard("version", cwd=stack).stdout
    settings(stack, engine="tofu")
    assert f"(engine {binary})" in tfguard("version", cwd=stack).stdout
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert status(tfguard, stack, code=0)["engine"]["name"] == "tofu"


@pytest.mark.parametrize("version", ["1.5.7", "1.5.0-rc1"])
def test_a_tofu_that_is_too_old_is_refused_before_anything_runs(
    binary: Path, plain_stack: StackFactory, tfguard: Run, version: str
) -> None:
    stack = plain_stack(ONE)
    done = tfguard(*APPLY, cwd=stack, env={"STAND_IN_TOFU_VERSION": version})
    assert (done.returncode, done.stdout) == (13, "")
    assert f"tofu {version} at {binary} is too old: tfguard needs tofu 1.6 or newer" in done.stderr
    assert not record(stack).exists()


# The human form beside the events (tofu 1.12), and without it


def test_the_user_gets_the_engines_own_output_and_tfguard_the_events(
    plain_stack: StackFactory, tofu: Run, tfguard: Run
) -> None:
    stack, twin = plain_stack(ONE), plain_stack(ONE, name="twin")
    assert tofu("plan", "-no-color", "-out=p", cwd=twin).returncode == 0
    own = tofu("apply", "-no-color", "-json-into=events", "p", cwd=twin)
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == own.returncode == 0, done.stderr
    assert done.stderr == ""
    assert own.stdout.startswith("terraform_data.a: Creating...\n")
    assert masked(done.stdout).endswith("\n" + masked(own.stdout))
    assert "OpenTofu will perform the following actions" in done.stdout
    assert "Terraform" not in done.stdout
    found = step(status(tfguard, stack, code=0), "terraform_data.a")
    assert (found["status"], found["outcome"]) == ("ok", "recorded")
    assert run_folders(stack) == []


def test_a_destroy_ends_as_destroy_does(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    done = tfguard(*DESTROY, cwd=stack)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\nDestroy complete! Resources: 1 destroyed.\n")
    assert addresses(stack) == set()


@pytest.mark.parametrize("version", ["1.9.0", "1.12.0", "1.13.0-dev"])
def test_with_json_the_user_gets_tofus_own_stream(
    plain_stack: StackFactory,
    tfguard: Run,
    version: str,
) -> None:
    stack = plain_stack(ONE)
    done = tfguard("apply", "-auto-approve", "-json", cwd=stack, env={"STAND_IN_TOFU_VERSION": version})
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["@module"] for line in lines} == {"tofu.ui"}
    assert [line["tofu"] for line in lines if line["type"] == "version"] == [version]
    assert [line["type"] for line in lines if line["type"].startswith("apply_")] == ["apply_start", "apply_complete"]
    assert '"value":"<&>"' in done.stdout


CHECKED = (
    ONE + 'check "c" {\n  assert {\n    condition = terraform_data.a.input == ""\n    error_message = "no"\n  }\n}\n'
)


def test_before_1_12_the_events_are_shown_in_tofus_words(
    plain_stack: StackFactory,
    tfguard: Run,
) -> None:
    stack = plain_stack(CHECKED)
    done = tfguard(*APPLY, "-compact-warnings", cwd=stack, env={"STAND_IN_TOFU_VERSION": "1.9.0"})
    assert done.returncode == 0, done.stderr
    assert "terraform_data.a: Creation complete" in done.stdout
    assert "run OpenTofu without -compact-warnings" in " ".join(done.stdout.split())
    assert "Terraform" not in done.stdout


@pytest.mark.parametrize("version", ["1.9.0", "1.12.0"])
def test_concise_output_has_no_line_for_each_object(
    plain_stack: StackFactory,
    tfguard: Run,
    version: str,
) -> None:
    stack = plain_stack(ONE)
    done = tfguard(*APPLY, "-concise", cwd=stack, env={"STAND_IN_TOFU_VERSION": version})
    assert done.returncode == 0, done.stderr
    assert "Creating..." not in done.stdout
    assert "Creation complete" not in done.stdout
    assert "Apply complete! Resources: 1 added" in done.stdout
    assert step(status(tfguard, stack, code=0), "terraform_data.a")["outcome"] == "recorded"


def test_a_file_that_the_user_named_has_the_events_of_plan_and_apply(
    plain_stack: StackFactory,
    tfguard: Run,
) -> None:
    stack = plain_stack(ONE)
    done = tfguard(*APPLY, "-json-into=events", cwd=stack)
    assert done.returncode == 0, done.stderr
    told = [event["type"] for event in events(stack / "events")]
    assert told[:2] == ["version", "planned_change"]
    assert (told.count("version"), told.count("planned_change")) == (1, 1)
    assert told[-4:] == ["apply_start", "apply_complete", "change_summary", "outputs"]
    assert stat.S_IMODE((stack / "events").stat().st_mode) == 0o600
    assert '"@level"' not in done.stdout

    assert tfguard("plan", "-out=p", "-destroy", cwd=stack).returncode == 0
    assert tfguard("apply", "-no-color", "-json-into", "events", "p", cwd=stack).returncode == 0
    told = [event["type"] for event in events(stack / "events")]
    assert told[0] == "version"
    assert "apply_complete" in told


@pytest.mark.parametrize("version", ["1.11.0", "1.12.0"])
def test_what_the_engine_does_not_take_it_refuses_itself(
    plain_stack: StackFactory,
    tfguard: Run,
    version: str,
) -> None:
    stack = plain_stack(ONE)
    json_too = ["-json"] if version == "1.12.0" else []
    done = tfguard(*APPLY, *json_too, "-json-into=f", cwd=stack, env={"STAND_IN_TOFU_VERSION": version})
    assert done.returncode == 1
    assert "-json-into" in done.stderr
    assert operations(stack) == []
    assert addresses(stack) == set()


# The question


def test_the_question_is_tofus_and_is_asked_only_where_tofu_asks(
    plain_stack: StackFactory,
    tfguard: Run,
) -> None:
    """Its plan does not say whether it can be applied, as terraform's does."""
    stack = plain_stack(ONE)
    asked = tfguard("apply", "-no-color", cwd=stack, stdin="no\n")
    assert asked.returncode == 1
    assert "  OpenTofu will perform the actions described above.\n" in asked.stdout
    assert asked.stdout.endswith("Apply cancelled.\n")
    assert tfguard("apply", "-no-color", cwd=stack, stdin="yes\n").returncode == 0
    for words in (("apply",), ("apply", "-refresh-only")):
        done = tfguard(*words, "-no-color", cwd=stack)
        assert (done.returncode, "Enter a value" in done.stdout) == (0, False), done.stdout + done.stderr

    body = ONE.replace('"a"', '"b"').replace("data.a", "data.b")
    (stack / "main.tf").write_text(body + "moved {\n  from = terraform_data.a\n  to   = terraform_data.b\n}\n")
    moved = tfguard("apply", "-no-color", cwd=stack, stdin="yes\n")
    assert (moved.returncode, "Enter a value" in moved.stdout) == (0, True), moved.stdout + moved.stderr
    assert addresses(stack) == {"terraform_data.b"}

    destroyed = tfguard("destroy", "-no-color", cwd=stack, stdin="yes\n")
    assert destroyed.returncode == 0
    assert "OpenTofu will destroy all your managed infrastructure" in destroyed.stdout


# What a real tofu needs to be told again

VARIABLE = ONE.replace('"<&>"', "var.x") + 'variable "x" {\n}\n'


@pytest.mark.parametrize(
    ("version", "everywhere", "with_plan"), [("1.7.0", False, False), ("1.9.0", True, False), ("1.12.0", True, True)]
)
def test_variables_go_to_every_command_that_takes_them(
    plain_stack: StackFactory, tfguard: Run, run_env: dict[str, str], version: str, everywhere: bool, with_plan: bool
) -> None:
    """From 1.8 on backend and key may depend on them; from 1.11 on the apply compares them with the plan's."""
    stack = plain_stack(VARIABLE)
    (stack / "terraform.tfvars").write_text('x = "file"\n')
    run_env.update(STAND_IN_TOFU_VERSION=version, STAND_IN_LOG=str(stack / "log"))
    for _ in range(2):
        assert tfguard(*APPLY, "-var", "x=cli", cwd=stack, env={"TF_ENCRYPTION": KEY}).returncode == 0
    calls = [json.loads(line) for line in (stack / "log").read_text().splitlines()]
    given = {call[0]: "x=cli" in call for call in calls if "-help" not in call}
    assert given == {"version": False, "plan": True, "show": everywhere, "state": everywhere, "apply": with_plan}
    assert sum("-help" in call for call in calls) == 2, "once for each run"


# Signals and kills


def test_an_interrupt_reaches_the_engine_once(
    plain_stack: StackFactory,
    tfguard: Run,
    tfguard_popen: Start,
) -> None:
    stack = plain_stack(WAITING)
    running = tfguard_popen(*APPLY, cwd=stack)
    wait_until((stack / "begun").exists, 120)
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 1, out + err
    assert "Please wait for OpenTofu to exit" in out
    assert "Two interrupts" not in out + err
    assert "SIGTERM: the engine was interrupted once" in err
    document = status(tfguard, stack, code=0)
    assert document["status"] == "cancelled"
    assert step(document, "terraform_data.b")["outcome"] == "tainted"


def test_the_events_of_an_engine_that_lost_its_tfguard_are_read_from_their_file(
    plain_stack: StackFactory,
    tfguard: Run,
    tfguard_popen: Start,
) -> None:
    stack = plain_stack(WAITING)
    running = tfguard_popen(*APPLY, cwd=stack)
    wait_until((stack / "begun").exists, 120)
    (folder,) = (stack / ".terraform" / "tfguard").glob("*/*")
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("apply.*")} == {0o600}
    assert b'"@level"' not in (folder / "apply.stdout").read_bytes()
    assert "apply_complete" in {event["type"] for event in events(folder / "apply.events")}
    engine = engine_pid(stack)
    kill(running.pid)
    running.wait()
    assert tfguard("recover", cwd=stack).returncode == 12

    (stack / "go").touch()
    wait_until(lambda: not runs(engine))
    done = tfguard("recover", cwd=stack)
    assert done.returncode == 0, done.stderr
    assert "the engine went on alone and finished its work" in done.stderr
    closed = status(tfguard, stack, operations(stack)[0], code=0)
    assert {found["status"] for found in closed["steps"]} == {"ok"}
    assert {found["outcome"] for found in closed["steps"]} == {"recorded"}
    assert run_folders(stack) == []


def test_when_engine_and_tfguard_die_together_the_file_tells_what_had_begun(
    plain_stack: StackFactory,
    tfguard: Run,
    tfguard_popen: Start,
) -> None:
    stack = plain_stack(WAITING)
    running = tfguard_popen(*APPLY, cwd=stack)
    wait_until((stack / "begun").exists, 120)
    engine = engine_pid(stack)
    kill(running.pid)
    kill(engine)
    running.wait()
    (stack / "go").touch()
    wait_until(lambda: not runs(engine))
    done = tfguard("recover", cwd=stack)
    assert "it was ended before its work was finished" in done.stderr
    (operation,) = operations(stack)
    document = json.loads(tfguard("status", operation, "--format", "json", cwd=stack).stdout)
    assert (document["status"], step(document, "terraform_data.a")["status"]) == ("interrupted", "ok")
    assert step(document, "terraform_data.b")["status"] == "error"


# Lost replies, with the real provider


def test_a_role_whose_reply_was_lost_is_found_and_adopted_under_tofu(
    moto: MotoServer,
    proxy: FaultProxy,
    stack_factory: StackFactory,
    tfguard: Run,
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("drop", action="CreateRole")
    lost = tfguard(*APPLY, cwd=stack, env={"STAND_IN_LOG": str(stack / "log")})
    assert '"apply", "-json-into=' in (stack / "log").read_text()
    assert lost.returncode == 1
    assert "Error: creating IAM Role (app)" in lost.stderr
    assert len(moto.client("iam").list_roles()["Roles"]) == 1
    document = status(tfguard, stack, code=11)
    found = step(document, "aws_iam_role.app")
    assert (found["provider"], found["outcome"]) == ("registry.opentofu.org/hashicorp/aws", "orphaned")
    assert "desired-identity" in kinds(found["evidence"])
    assert document["engine"]["name"] == "tofu"
    (finding,) = orphans(tfguard, stack, code=2)["findings"]

    proxy.clear()
    adopted = tfguard("import", "--orphan", finding["id"], "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stderr
    assert "Resources: 1 imported" in adopted.stdout
    assert tfguard("plan", "-detailed-exitcode", cwd=stack).returncode == 0
    assert not status(tfguard, stack, code=0)["open"]
    state = json.loads((stack / "terraform.tfstate").read_text())
    assert {item["provider"] for item in state["resources"]} == {'provider["registry.opentofu.org/hashicorp/aws"]'}


# Encrypted states


@pytest.fixture
def key(run_env: dict[str, str]) -> str:
    """Encryption is on for every run."""
    run_env["TF_ENCRYPTION"] = KEY
    return KEY


def encrypted(path: Path) -> bool:
    """Whether a state file is an encrypted one."""
    return "encrypted_data" in json.loads(path.read_text())


@pytest.mark.usefixtures("key")
def test_every_command_works_on_an_encrypted_state(
    plain_stack: StackFactory,
    tfguard: Run,
) -> None:
    stack = plain_stack(ONE)
    for words in (APPLY, (*APPLY, "-replace=terraform_data.a")):
        done = tfguard(*words, cwd=stack)
        assert (done.returncode, done.stderr) == (0, "")
        assert encrypted(stack / "terraform.tfstate")
    document = status(tfguard, stack, code=0)
    assert step(document, "terraform_data.a")["outcome"] == "recorded"
    held = json.loads((stack / "terraform.tfstate").read_text())
    assert (document["stack"]["lineage"], document["stack"]["serial_after"]) == (held["lineage"], held["serial"])
    assert tfguard("recover", cwd=stack).returncode == 0
    assert orphans(tfguard, stack, code=0)["findings"] == []
    checked = tfguard("doctor", cwd=stack)
    assert checked.returncode == 0, checked.stdout
    assert "1 objects" in checked.stdout
    assert tfguard("plan", "-detailed-exitcode", cwd=stack).returncode == 0
    assert tfguard(*DESTROY, cwd=stack).returncode == 0
    kept = b"".join(path.read_bytes() for path in record(stack).rglob("*") if path.is_file())
    assert b"correct horse" not in kept


@pytest.mark.usefixtures("key")
def test_repairs_of_an_encrypted_state_are_recorded(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    for words in (("taint", "terraform_data.a"), ("untaint", "terraform_data.a"), ("state", "rm", "terraform_data.a")):
        done = tfguard(*words, cwd=stack)
        assert done.returncode == 0, done.stdout + done.stderr
        assert encrypted(stack / "terraform.tfstate")
    assert len(operations(stack)) == 4
    assert status(tfguard, stack, code=0)["command"] == "state rm"


@pytest.mark.usefixtures("key")
def test_with_another_key_the_state_is_unknown_and_never_empty(
    plain_stack: StackFactory,
    tfguard: Run,
) -> None:
    stack = plain_stack(ONE)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    before = (stack / "terraform.tfstate").read_bytes()
    for wrong in ({"TF_ENCRYPTION": "passphrase = wrong"}, {"TF_ENCRYPTION": ""}, {"TFGUARD_ENGINE": "terraform"}):
        refused = tfguard(*APPLY, cwd=stack, env=wrong)
        assert refused.returncode == 1
        assert "is encrypted, and " in refused.stderr
        checked = tfguard("doctor", cwd=stack, env=wrong)
        assert checked.returncode == 1
        assert "no state yet" not in checked.stdout
    assert (stack / "terraform.tfstate").read_bytes() == before
    assert len(operations(stack)) == 1


@pytest.mark.usefixtures("key")
def test_a_state_that_was_named_with_state_is_shown_and_not_pulled(
    plain_stack: StackFactory,
    tfguard: Run,
) -> None:
    stack = plain_stack(ONE)
    for _ in range(2):
        done = tfguard(*APPLY, "-state=other.tfstate", cwd=stack)
        assert done.returncode == 0, done.stderr
        assert "warning:" not in done.stderr
    assert encrypted(stack / "other.tfstate")
    assert not (stack / "terraform.tfstate").exists()


@pytest.mark.usefixtures("key")
def test_a_state_that_went_elsewhere_is_read_there(
    plain_stack: StackFactory,
    tfguard: Run,
) -> None:
    stack = plain_stack(ONE)
    done = tfguard(*APPLY, "-state-out=out.tfstate", cwd=stack)
    assert done.returncode == 0, done.stderr
    assert encrypted(stack / "out.tfstate")
    assert step(status(tfguard, stack, code=0), "terraform_data.a")["outcome"] == "recorded"


@pytest.fixture
def server() -> Iterator[StateServer]:
    """A running http backend without a state."""
    with StateServer() as running:
        threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True).start()
        yield running
        running.shutdown()


@pytest.mark.usefixtures("key")
def test_an_encrypted_errored_state_is_read_kept_and_pushed(
    plain_stack: StackFactory,
    tfguard: Run,
    server: StateServer,
    tmp_path: Path,
) -> None:
    backend = f'terraform {{\n  backend "http" {{\n    address = "{server.url}"\n  }}\n}}\n'
    stack = settings(plain_stack(backend + ONE), records=f"file://{tmp_path}/records")
    server.refusing = True
    lost = tfguard(*APPLY, cwd=stack)
    assert lost.returncode == 1
    assert "THE STATE WAS NOT SAVED" in lost.stderr.splitlines()[-1]
    assert encrypted(stack / "errored.tfstate")
    document = status(tfguard, stack, code=11)
    assert document["errored_state"]["serial"] == json.loads((stack / "errored.tfstate").read_text())["serial"]
    assert step(document, "terraform_data.a")["outcome"] == "orphaned"
    (kept,) = (tmp_path / "records").rglob("errored.tfstate")
    assert encrypted(kept)

    server.refusing = False
    unread = tfguard("recover", "--yes", cwd=stack, env={"TF_ENCRYPTION": "another"})
    assert unread.returncode == 1
    assert "cannot decrypt it" in unread.stderr
    assert server.state is None

    recovered = tfguard("recover", "--yes", cwd=stack)
    assert recovered.returncode == 0, recovered.stderr
    assert "was pushed" in recovered.stderr
    assert [item["name"] for item in json.loads(server.state or b"")["resources"]] == ["a"]
    assert step(status(tfguard, stack, code=0), "terraform_data.a")["outcome"] == "recorded"
