"""Through the engine: a plan tells how much changes, and what left the blueprint goes by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from blueprint_places import document, status, statuses
from helpers import Run

pytestmark = pytest.mark.e2e

STACK = """
variable "v" { default = "1" }
resource "terraform_data" "x" { triggers_replace = var.v }
output "o" { value = terraform_data.x.id }
"""
HEAD = 'apiVersion: tfguard/v1\nkind: Blueprint\nname: b\ninputs: {v: {default: "1"}}\nsteps:\n'
A, B = '  a: {stack: a, vars: {v: "${inputs.v}"}}\n', '  b: {stack: b, needs: [a], vars: {v: "${steps.a.outputs.o}"}}\n'


def test_what_left_the_blueprint_is_planned_and_taken_away_by_itself(workdir: Path, tfguard: Run) -> None:
    file = workdir / "b.yaml"
    file.write_text(HEAD + A + B)
    for name in ("a", "b"):
        (workdir / name).mkdir()
        (workdir / name / "main.tf").write_text(STACK)

    def plans(*words: str, code: int = 0) -> dict[str, object]:
        told = document(tfguard("blueprint", "plan", str(file), "--format", "json", *words), code=code)
        return {step["id"]: (step["decision"], step["plan"]) for step in told["steps"]}

    counted = {
        "change": 0,
        "destroy": 0,
        "deleted": [],
        "replaced": [],
        "by_outputs_of": [],
        "untold": "",
        "refused": False,
    }
    assert plans() == {
        "a": ("run", {"add": 1, **counted}),
        "b": ("wait", {"add": 0, **counted, "untold": "cannot be planned before a gives its outputs"}),
    }
    applied = tfguard("blueprint", "apply", str(file), "--yes")
    assert applied.returncode == 0, applied.stderr
    assert "a: plan: 1 to add, 0 to change, 0 to destroy" in applied.stderr
    replaced = {**counted, "destroy": 1, "replaced": ["terraform_data.x"]}
    assert plans("--input=v=2")["a"] == ("run", {"add": 1, **replaced})

    file.write_text(HEAD + A)
    assert plans(code=11) == {"a": ("skip", None), "b": ("destroy", None)}
    refused = tfguard("blueprint", "apply", str(file), "--yes")
    assert refused.returncode == 1
    assert f"`tfguard blueprint destroy {file} --step b`" in refused.stderr
    gone = document(tfguard("blueprint", "destroy", str(file), "--step", "b", "--yes", "--format", "json"), code=0)
    assert (gone["state"], gone["ready_now"], statuses(gone)) == ("Ready", True, {"a": "ok"})
    assert '"resources": []' in (workdir / "b" / "terraform.tfstate").read_text()
    assert statuses(document(tfguard("blueprint", "apply", str(file), "--yes", "--format", "json"), code=0)) == {
        "a": "ok"
    }

    file.write_text("steps: [")
    assert statuses(status(tfguard, file, code=0)) == {"a": "ok"}
    assert tfguard("blueprint", "destroy", str(file), "--yes").returncode == 0
    assert '"resources": []' in (workdir / "a" / "terraform.tfstate").read_text()
