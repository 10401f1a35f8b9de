"""The stacks of a blueprint: what is told of their objects, and in what surroundings they are looked at and changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tfguard.blueprint_ports import CallEnd, StackCall, StackPlace, Verified
from tfguard.catalog.loader import load_catalog
from tfguard.cli.blueprint_stacks import GuardedStacks, managed_object, plan_folder, sweep_plans
from tfguard.cli.blueprint_wiring import blueprint_context, check_stacks
from tfguard.cli.invocation import Invocation
from tfguard.engine.commands import Calls
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import ConfigError, InputError
from tfguard.flows.blueprints.context import BlueprintContext
from tfguard.model.plan import Action, Plan, PlannedChange
from tfguard.model.state import StateInstance


@pytest.mark.parametrize(
    ("kind", "identity", "own_id"),
    [
        ("aws_db_instance", {"identifier": "audit", "resource_id": "db-1", "arn": "arn:x"}, "db-1"),
        ("aws_iam_role", {"name": "audit", "arn": "arn:x"}, "audit"),
        ("other_thing", {"id": "7", "name": "audit"}, "7"),
        ("other_thing", {}, None),
    ],
)
def test_an_object_has_the_same_id_in_the_state_as_where_it_was_found(
    kind: str, identity: dict[str, str], own_id: str | None
) -> None:
    instance = StateInstance(f"{kind}.one", kind, "p", identity=identity)
    assert managed_object(instance, None, load_catalog()).observed_id == own_id


class Recorded(Calls):
    """Calls that are not made: what they would have been, and how each ends."""

    made: list[tuple[Sequence[str], Mapping[str, str]]]
    ends: list[int]

    def run(self, words: Sequence[str], _: Path, environment: Mapping[str, str], *__: Any, **___: Any) -> CallEnd:
        self.made.append((words, environment))
        return CallEnd(self.ends.pop(0) if self.ends else 0)


@pytest.fixture
def stacks(tmp_path: Path) -> GuardedStacks:
    """The stacks of a blueprint in a folder, of which none is called."""
    calls = Recorded(tmp_path / "calls")
    calls.made, calls.ends = [], []
    return GuardedStacks(Invocation(), SignalGate(), calls, {"HOME": "/", "AWS_PROFILE": "mine"})


def calls_of(stacks: GuardedStacks) -> Recorded:
    assert isinstance(stacks.calls, Recorded)
    return stacks.calls


def test_every_call_about_a_stack_has_the_step_s_environment(stacks: GuardedStacks, tmp_path: Path) -> None:
    place = StackPlace(tmp_path, "blue", {"AWS_PROFILE": "prod", "TF_WORKSPACE": "red"})
    stacks.initialise(place, "a")
    stacks.apply(StackCall(place, {"size": "2"}), "a")
    stacks.destroy(StackCall(place), "a")
    stacks.recover(StackCall(place), "a")
    stacks.adopt(StackCall(place), ("o-1",), "a")
    for _, environment in calls_of(stacks).made:
        assert (environment["AWS_PROFILE"], environment["TF_WORKSPACE"], environment["HOME"]) == ("prod", "blue", "/")
    assert calls_of(stacks).made[1][1]["TF_VAR_size"] == "2"


def test_a_setup_that_did_not_come_to_a_good_end_is_made_again(stacks: GuardedStacks, tmp_path: Path) -> None:
    place, calls = StackPlace(tmp_path / "stack"), calls_of(stacks)
    (place.directory / ".terraform").mkdir(parents=True)
    assert stacks.initialise(place, "a").exit_code == 0
    assert calls.made == [], "somebody has set it up"
    (place.directory / ".terraform.lock.hcl").write_text('provider "registry.terraform.io/hashicorp/aws" {}')
    calls.ends = [1]
    assert stacks.initialise(place, "a").exit_code == 1
    (place.directory / ".terraform" / "providers").mkdir()
    assert stacks.initialise(place, "b").exit_code == 0
    assert len(calls.made) == 2, "the first ended with 1, whatever it has left"
    assert stacks.initialise(place, "a").exit_code == 0
    assert len(calls.made) == 2


def test_an_object_that_left_the_state_is_missing_like_one_that_left_its_provider(
    stacks: GuardedStacks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(name: str, action: Action) -> PlannedChange:
        return PlannedChange(f"x.{name}", "x", "p", action, "x")

    plan = Plan("1.11.4", (change("gone", Action.CREATE), change("there", Action.NOOP)))
    monkeypatch.setattr(GuardedStacks, "_plan", lambda *_: plan)
    assert stacks.verify(StackCall(StackPlace(tmp_path))) == Verified(missing=("x.gone",))


def test_why_outputs_cannot_be_read_is_told_by_the_engine_itself(
    stacks: GuardedStacks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = SimpleNamespace(installed=SimpleNamespace(binary=tmp_path))
    monkeypatch.setattr(GuardedStacks, "_context", lambda *_: nullcontext(SimpleNamespace(engine=engine)))
    answer = SimpleNamespace(exit_code=1, reason="Error: hunter2", stdout="")
    monkeypatch.setattr("tfguard.cli.blueprint_stacks.captured", lambda *_: answer)
    with pytest.raises(InputError) as told:
        stacks.outputs(StackPlace(tmp_path))
    assert f"`tfguard -chdir={tmp_path} output`" in told.value.advice
    assert "hunter2" not in told.value.what + told.value.advice, "a decision shows both"


def test_a_plan_that_a_kill_has_left_goes_and_one_that_is_made_now_stays(tmp_path: Path) -> None:
    left = tmp_path / "plan-killed"
    left.mkdir()
    (left / "plan").write_text("in clear")
    with plan_folder(tmp_path) as folder:
        sweep_plans(tmp_path)
        assert folder.is_dir()
    assert not folder.exists()
    sweep_plans(tmp_path)
    assert not left.exists()
    sweep_plans(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ("  a: {stack: a}\n  b: {stack: a, workspace: default}\n", r":6: steps\.b\.stack: has the same state"),
        ("  a: {stack: a}\n  b: {stack: a, environment: {TF_WORKSPACE: default}}\n", "has the same state"),
        ("  a: {stack: a, on_failure: retain, retain_for: 900d}\n", r":5: steps\.a\.retain_for: .*retention\.max: 90d"),
    ],
)
def test_what_the_folders_and_the_configuration_do_not_allow_is_told_with_line_and_key(
    tmp_path: Path, steps: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TF_WORKSPACE", raising=False)
    with pytest.raises(ConfigError, match=why):
        look(tmp_path, steps)


def test_a_folder_in_two_workspaces_is_two_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_WORKSPACE", raising=False)
    context = look(tmp_path, "  a: {stack: a}\n  b: {stack: a, workspace: blue}\n")
    places = [StackPlace(context.folder / "a", workspace) for workspace in (None, "blue")]
    workspaces = [context.stacks.facts(place).location.split()[-1] for place in places]
    assert workspaces == ["default", "blue"]


OPEN = """
variable "open" { type = string }
variable "said" {
  description = "sensitive = true"
  # sensitive = true
}
variable "hidden" {
  type = object({
    data = string
  })
  validation {
    condition     = length("${var.hidden.data}}") > 3
    error_message = <<-EOT
      output "x" {
    EOT
  }
  sensitive = true
}
output "token" {
  value     = var.hidden
  sensitive = true
}
output "plain" { value = 1 }
"""
REFUSED = r"\$\{%s\} is sensitive, and would be seen in what the engine prints"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("vars: {open: '${inputs.key}'}", r"steps\.b\.vars\.open: " + REFUSED % r"inputs\.key"),
        ("vars: {said: {of: ['x${inputs.key}']}}", REFUSED % r"inputs\.key"),
        ("vars: {open: '${steps.a.outputs.token}'}", REFUSED % r"steps\.a\.outputs\.token"),
        ("environment: {TF_VAR_open: '${inputs.key}'}", r"steps\.b\.environment\.TF_VAR_open: \$\{inputs"),
        ("vars: {json: '${inputs.key}'}", REFUSED % r"inputs\.key"),
        ("vars: {hidden: '${inputs.key}', later: '${inputs.key}', hidden_json: '${steps.a.outputs.token}'}", ""),
        ("vars: {open: '${steps.a.outputs.plain}', said: '${inputs.name}', unknown: '${inputs.key}'}", ""),
        ("environment: {TF_VAR_hidden: '${inputs.key}', TOKEN: '${inputs.key}'}", ""),
    ],
)
def test_nothing_sensitive_is_given_to_a_variable_that_the_engine_prints(
    tmp_path: Path, given: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TF_WORKSPACE", raising=False)
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "main.tf").write_text(OPEN)
    (tmp_path / "s" / "more.tf").write_text('variable "later" {}')
    (tmp_path / "s" / "more_override.tf").write_text('variable "later" {\n  ephemeral = true\n}')
    more = {"variable": [{"json": {}}, {"hidden_json": [{"sensitive": True}]}]}
    (tmp_path / "s" / "more.tf.json").write_text(json.dumps(more))
    steps = f"  a: {{stack: s, workspace: x}}\n  b: {{stack: s, needs: [a], {given}}}\n"
    with pytest.raises(ConfigError, match=why) if why else nullcontext() as told:
        look(tmp_path, steps, "inputs: {key: {sensitive: true}, name: {default: x}}\n")
    if why:
        assert told is not None and "with `sensitive = true`" in told.value.advice


def look(folder: Path, steps: str, more: str = "") -> BlueprintContext:
    """Look into the stacks of a blueprint with these steps; `a` is a folder with a stack."""
    (folder / "a").mkdir()
    (folder / "a" / "main.tf").write_text("")
    path = folder / "b.yaml"
    path.write_text(f"apiVersion: tfguard/v1\nkind: Blueprint\nname: b\n{more}steps:\n{steps}")
    context, parsed = blueprint_context(Invocation(), SignalGate(), path)
    check_stacks(context, parsed)
    return context
