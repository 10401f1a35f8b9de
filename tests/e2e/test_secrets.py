"""No secret is in any file that tfguard wrote, whatever became of the run (rule 10)."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import (
    APPLY,
    VPC,
    Run,
    StackFactory,
    Start,
    engine_pid,
    in_flight,
    intent,
    kill,
    operations,
    record,
    role,
    settings,
    status,
    wait_until,
)

from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

# One for each way in: a sensitive variable, a variable on the command line, a variable in a file.
FROM_ENVIRONMENT, FROM_COMMAND_LINE, FROM_FILE = "kanarie-env-7f3a", "kanarie-var-51c0", "kanarie-file-e88d"
IN_A_KEY = "kanarie-key-19bd"
CANARIES = (FROM_ENVIRONMENT, FROM_COMMAND_LINE, FROM_FILE, IN_A_KEY)
VARIABLES = (f"-var=note={FROM_COMMAND_LINE}", "-var-file=secret.tfvars")

BODY = (
    """
variable "password" {
  sensitive = true
}
variable "note" {}
variable "token" {
  sensitive = true
}
resource "aws_ssm_parameter" "password" {
  name  = "/app/password"
  type  = "SecureString"
  value = var.password
}
resource "terraform_data" "loud" {
  provisioner "local-exec" {
    command = "echo ${nonsensitive(var.password)}"
  }
}
output "token" {
  value     = var.token
  sensitive = true
}
"""
    + VPC.replace('"10.9.0.0/16"', '"10.9.0.0/16"\n  tags = { Name = var.token }')
    + role(name="app-${var.password}", more="description = var.note")
)


@pytest.fixture
def secret_stack(stack_factory: StackFactory, run_env: dict[str, str], tmp_path: Path) -> Path:
    """A stack full of secrets; temporary files go where they are searched, too."""
    stack = settings(stack_factory(BODY))
    (stack / "secret.tfvars").write_text(f'token = "{FROM_FILE}"\n')
    (tmp_path / "tmp").mkdir()
    run_env |= {"TMPDIR": str(tmp_path / "tmp"), "TF_VAR_password": FROM_ENVIRONMENT}
    return stack


def told(folder: Path) -> list[str]:
    """The files below a folder that hold a canary; what the user wrote and the engine's own state are no news."""
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("terraform.tfstate") and path.suffix not in (".tf", ".tfvars")
        if any(canary.encode() in part for part in _parts(path) for canary in CANARIES)
    ]


def _parts(path: Path) -> Iterator[bytes]:
    """A file's bytes and, of a plan, those that it holds packed."""
    if path.stat().st_size > 10_000_000:  # the provider's own binary
        return
    yield path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            yield from (packed.read(name) for name in packed.namelist())


def test_no_secret_is_in_any_file_after_a_success(secret_stack: Path, tmp_path: Path, tfguard: Run) -> None:
    done = tfguard(*APPLY, *VARIABLES, cwd=secret_stack)
    assert done.returncode == 0, done.stderr
    assert FROM_ENVIRONMENT in done.stdout, "the provisioner said it aloud, so that this test can tell"
    assert told(tmp_path) == []
    (operation,) = operations(secret_stack)
    kept = intent(secret_stack, operation)
    assert kept["argv"] == [*APPLY, "-var=note=<removed>", "-var-file=secret.tfvars"]
    assert kept["var_files"] == ["secret.tfvars"]
    assert not status(tfguard, secret_stack, code=0)["open"]


def test_no_secret_is_in_any_file_after_a_failure_and_after_a_second_look(
    secret_stack: Path, tmp_path: Path, proxy: FaultProxy, tfguard: Run
) -> None:
    proxy.add_rule("drop", action="CreateRole")
    done = tfguard(*APPLY, *VARIABLES, cwd=secret_stack)
    assert done.returncode == 1
    assert f"app-{FROM_ENVIRONMENT}" in done.stderr, "the provider said it aloud, so that this test can tell"
    assert told(tmp_path) == []
    for again in (("recover",), ("recover", *VARIABLES), (*APPLY, *VARIABLES)):
        assert tfguard(*again, cwd=secret_stack).returncode == 11
        assert told(tmp_path) == []
    shown = status(tfguard, secret_stack, code=11)
    assert not any(canary in str(shown) for canary in CANARIES)


def test_no_secret_is_in_the_record_during_a_run_and_in_any_file_once_a_killed_one_was_settled(
    secret_stack: Path, tmp_path: Path, proxy: FaultProxy, tfguard: Run, tfguard_popen: Start
) -> None:
    proxy.add_rule("delay:300", action="CreateRole")
    running = tfguard_popen(*APPLY, *VARIABLES, cwd=secret_stack)
    in_flight(proxy, "CreateRole")
    engine = engine_pid(secret_stack)
    assert told(record(secret_stack)) == []
    kill(running.pid)
    kill(engine)
    running.wait()
    assert told(record(secret_stack)) == []
    assert tfguard("recover", cwd=secret_stack).returncode == 11
    assert told(tmp_path) == []


# --- a secret that is an instance key, and so a part of every address ---

USER = f'terraform_data.user["{IN_A_KEY}"]'
MASKED = re.compile(r'terraform_data\.user\["<withheld [0-9a-f]{12}>"\]')
USERS = """
variable "names" {
  type      = set(string)
  sensitive = true
}
resource "terraform_data" "user" {
  for_each = setunion(nonsensitive(var.names), ["open"])
  input    = each.key
  provisioner "local-exec" {
    command = "echo ${each.key}"
  }
}
resource "terraform_data" "last" {
  depends_on = [terraform_data.user]
  input      = join(",", [for name, user in terraform_data.user : name])
  provisioner "local-exec" {
    command = %s
  }
}
output "names" {
  value = keys(terraform_data.user)
}
"""


def users(plain_stack: StackFactory, run_env: dict[str, str], command: str = "true") -> Path:
    """A stack with an object for a secret name and one for an open one; the last one's provisioner runs `command`."""
    run_env |= {"TF_VAR_names": json.dumps([IN_A_KEY])}
    return settings(plain_stack(USERS % json.dumps(command)))


def own_words(stderr: str) -> str:
    """What tfguard itself said."""
    return "\n".join(line for line in stderr.splitlines() if line.startswith("tfguard:"))


def by_address(document: dict[str, object]) -> dict[str, object]:
    """The outcomes of a status document, with the one masked address as `masked`."""
    steps = document["steps"]
    assert isinstance(steps, list)
    return {"masked" if MASKED.fullmatch(step["address"]) else step["address"]: step["outcome"] for step in steps}


def test_a_secret_key_is_masked_in_the_record_the_argv_and_the_words_and_the_step_is_followed_all_the_same(
    plain_stack: StackFactory, run_env: dict[str, str], tmp_path: Path, tfguard: Run
) -> None:
    stack = users(plain_stack, run_env)
    done = tfguard(*APPLY, f"-target={USER}", "-target=terraform_data.last", cwd=stack)
    assert done.returncode == 0, done.stderr
    assert f"{USER} (local-exec): {IN_A_KEY}" in done.stdout, "the engine said it aloud, so that this test can tell"
    assert IN_A_KEY not in own_words(done.stderr)
    assert told(tmp_path) == []
    (operation,) = operations(stack)
    kept = intent(stack, operation)
    assert MASKED.fullmatch(kept["argv"][-2].removeprefix("-target="))
    assert MASKED.fullmatch(kept["targets"][0])
    shown = status(tfguard, stack, code=0)
    assert by_address(shown) == {"masked": "recorded", "terraform_data.last": "recorded"}


def test_what_was_masked_stays_masked_when_a_command_without_a_plan_names_it(
    plain_stack: StackFactory, run_env: dict[str, str], tmp_path: Path, tfguard: Run
) -> None:
    stack = users(plain_stack, run_env)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    for command in (("taint", USER), ("state", "mv", USER, 'terraform_data.user["else"]'), ("refresh", "-no-color")):
        done = tfguard(*command, cwd=stack)
        assert IN_A_KEY not in own_words(done.stderr)
        assert told(tmp_path) == []
    taint, move = (intent(stack, operation) for operation in operations(stack)[1:3])
    assert taint["argv"][1] == move["argv"][2] == move["moved"][0]
    assert MASKED.fullmatch(taint["argv"][1])


@pytest.mark.parametrize("elsewhere", [False, True])
def test_after_a_kill_a_masked_step_is_settled_where_its_run_was_and_unknown_elsewhere(
    plain_stack: StackFactory,
    run_env: dict[str, str],
    tmp_path: Path,
    tfguard: Run,
    tfguard_popen: Start,
    elsewhere: bool,
) -> None:
    pid = tmp_path / "pid"
    stack = users(plain_stack, run_env, f"echo $$ > {pid}.new && mv {pid}.new {pid} && exec sleep 300")
    running = tfguard_popen(*APPLY, cwd=stack)
    wait_until(pid.exists, 120)
    engine = engine_pid(stack)
    kill(running.pid)
    kill(engine)
    kill(int(pid.read_text()))
    running.wait()
    wait_until(lambda: '"user"' in (stack / "terraform.tfstate").read_text())
    if elsewhere:
        shutil.rmtree(stack / ".terraform" / "tfguard")
    assert tfguard("recover", cwd=stack).returncode == (11 if elsewhere else 0)
    shown = status(tfguard, stack, code=11 if elsewhere else 0)
    assert by_address(shown)["masked"] == ("unknown" if elsewhere else "recorded")
    assert by_address(shown)['terraform_data.user["open"]'] == "recorded"
    assert told(tmp_path) == []
    if elsewhere:
        (action,) = shown["next_actions"]
        masked = next(step["address"] for step in shown["steps"] if MASKED.fullmatch(step["address"]))
        assert f"--confirm-absent '{masked}'" in action
        closed = tfguard("recover", "--confirm-absent", masked, "--reason", "it is in the state", cwd=stack)
        assert closed.returncode == 0, closed.stdout + closed.stderr
