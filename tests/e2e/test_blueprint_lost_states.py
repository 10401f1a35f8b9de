"""Through the engine: what an empty state tells of a stack depends on what has emptied it."""

from __future__ import annotations

from pathlib import Path

import pytest
from blueprint_places import document, statuses
from helpers import Run

pytestmark = pytest.mark.e2e

STACK = """
resource "terraform_data" "x" {
  provisioner "local-exec" {
    when    = destroy
    command = "test ! -e held"
  }
}
"""


@pytest.fixture
def file(workdir: Path) -> Path:
    """A blueprint of one stack, whose object stays while there is a file `held`."""
    (workdir / "a").mkdir()
    (workdir / "a" / "main.tf").write_text(STACK)
    file = workdir / "b.yaml"
    file.write_text("apiVersion: tfguard/v1\nkind: Blueprint\nname: b\nsteps:\n  a: {stack: a}\n")
    return file


def test_a_state_that_is_lost_behind_a_failed_destroy_calls_nothing_gone(file: Path, tfguard: Run) -> None:
    words = (str(file), "--yes", "--format", "json")
    document(tfguard("blueprint", "apply", *words), code=0)
    held, state = file.parent / "a" / "held", file.parent / "a" / "terraform.tfstate"
    held.touch()
    document(tfguard("blueprint", "destroy", *words), code=11)
    state.unlink()
    told = document(tfguard("blueprint", "destroy", *words), code=11)
    assert (told["state"], statuses(told)) == ("Settled", {"a": "error"})
    assert "no destroy has emptied it" in told["steps"][0]["why"]
    told = document(tfguard("blueprint", "destroy", *words, "--gone", "a", "--reason", "seen"), code=0)
    assert (told["state"], statuses(told)) == ("Cleaned", {"a": "absent"})


def test_a_state_that_is_lost_before_a_destroy_that_finds_nothing_calls_nothing_gone(file: Path, tfguard: Run) -> None:
    words = (str(file), "--yes", "--format", "json")
    document(tfguard("blueprint", "apply", *words), code=0)
    stack = file.parent / "a"
    (stack / "terraform.tfstate").unlink()
    for _ in range(2):  # the second finds the state that the first has left
        assert tfguard(f"-chdir={stack}", "destroy", "-auto-approve").returncode == 0
    told = document(tfguard("blueprint", "destroy", *words), code=11)
    assert (told["state"], statuses(told)) == ("Settled", {"a": "error"})
    assert "no destroy has emptied it" in told["steps"][0]["why"]


def test_what_somebody_has_destroyed_stays_gone_whatever_destroy_finds_nothing_more(file: Path, tfguard: Run) -> None:
    words = (str(file), "--yes", "--format", "json")
    document(tfguard("blueprint", "apply", *words), code=0)
    for _ in range(2):
        assert tfguard(f"-chdir={file.parent / 'a'}", "destroy", "-auto-approve").returncode == 0
    told = document(tfguard("blueprint", "destroy", *words), code=0)
    assert (told["state"], statuses(told)) == ("Cleaned", {"a": "absent"})


def test_a_state_that_somebody_has_destroyed_is_empty_for_good(file: Path, tfguard: Run) -> None:
    words = (str(file), "--yes", "--format", "json")
    document(tfguard("blueprint", "apply", *words), code=0)
    assert tfguard(f"-chdir={file.parent / 'a'}", "destroy", "-auto-approve").returncode == 0
    told = document(tfguard("blueprint", "destroy", *words), code=0)
    assert (told["state"], statuses(told)) == ("Cleaned", {"a": "absent"})


def test_a_stack_that_stood_before_the_request_is_not_undone_when_that_fails(file: Path, tfguard: Run) -> None:
    stack = file.parent / "a"
    assert tfguard(f"-chdir={stack}", "init").returncode == 0
    assert tfguard(f"-chdir={stack}", "apply", "-auto-approve").returncode == 0
    text = file.read_text().replace("{stack: a}", "{stack: a, compensate: {destroy: true}}")
    file.write_text(text + "  b: {run: ['false'], needs: [a]}\n")
    done = tfguard("blueprint", "apply", str(file), "--yes")
    assert "a: not compensated: it stood before this request" in done.stderr
    assert "terraform_data" in (stack / "terraform.tfstate").read_text()
