"""Variables on the command line: an apply that plans for itself hands on what no plan keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import Run, StackFactory

pytestmark = pytest.mark.e2e

EPHEMERAL = """
variable "token" {
  type      = string
  ephemeral = true
}
variable "names" {
  type = list(object({ name = string, size = optional(number, 3) }))
}
variable "unset" {
  default = 1
}
resource "terraform_data" "a" {
  input = var.names
}
"""


@pytest.fixture
def stack(plain_stack: StackFactory) -> Path:
    """A stack whose terraform.tfvars says something else than the command line will."""
    made = plain_stack(EPHEMERAL)
    (made / "terraform.tfvars").write_text('names = [{ name = "file" }]\n')
    return made


def test_an_ephemeral_value_of_the_command_line_reaches_the_apply(stack: Path, tfguard: Run) -> None:
    (stack / "more.tfvars").write_text('names = [{ name = "cli" }]\n')
    words = ("-auto-approve", "-no-color", "-var", "token=hunter2", "-var-file=more.tfvars")
    done = tfguard("apply", *words, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = json.loads((stack / "terraform.tfstate").read_text())["resources"]
    assert made["instances"][0]["attributes"]["input"]["value"] == [{"name": "cli", "size": 3}]
    kept = b"".join(path.read_bytes() for path in stack.rglob("*.tfguard/**/*") if path.is_file())
    assert b"hunter2" not in kept
    destroyed = tfguard("destroy", *words, cwd=stack)
    assert destroyed.returncode == 0, destroyed.stdout + destroyed.stderr


def test_a_plan_file_that_the_user_made_is_applied_with_what_the_user_says(stack: Path, tfguard: Run, tf: Run) -> None:
    tf("plan", "-out=p", "-var=token=x", cwd=stack)
    without = tfguard("apply", "-no-color", "p", cwd=stack)
    assert without.returncode == 1
    assert "No value for required variable" in without.stderr
    done = tfguard("apply", "-no-color", "-var=token=x", "p", cwd=stack)
    assert done.returncode == 0, done.stderr
