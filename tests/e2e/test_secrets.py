"""No secret is in any file that tfguard wrote, whatever became of the run (rule 10)."""

from __future__ import annotations

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
)

from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

# One for each way in: a sensitive variable, a variable on the command line, a variable in a file.
FROM_ENVIRONMENT, FROM_COMMAND_LINE, FROM_FILE = "kanarie-env-7f3a", "kanarie-var-51c0", "kanarie-file-e88d"
CANARIES = (FROM_ENVIRONMENT, FROM_COMMAND_LINE, FROM_FILE)
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
