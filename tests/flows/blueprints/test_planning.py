"""`plan` decides by what an apply would work on: the new inputs, and what is done before a step."""

from __future__ import annotations

from pathlib import Path

import pytest
from request_stand_ins import Desk

from tfguard.blueprint_ports import Output, StackCall, StackPlace
from tfguard.errors import InputError, UsageError
from tfguard.flows.blueprints.context import values_of
from tfguard.flows.blueprints.deciding import decisions
from tfguard.flows.blueprints.provide import ProvideOptions, upcoming

TEXT = """
apiVersion: tfguard/v1
kind: Blueprint
name: b
inputs: {size: {type: number, default: 1}, region: {}, password: {sensitive: true}}
steps:
  a: {stack: a, vars: {size: "${inputs.size}"}, environment: {AWS_REGION: "${inputs.region}", P: "${inputs.password}"}}
  b: {stack: b, needs: [a]}
  c: {run: [c], needs: [b]}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, TEXT)


def planned(desk: Desk, **inputs: object) -> dict[str, str]:
    """What would be done about each step with these inputs."""
    context = desk.context
    return {name: one.kind.value for name, one in decisions(context, upcoming(context, ProvideOptions(inputs))).items()}


def test_a_plan_tells_what_the_apply_does(desk: Desk) -> None:
    assert planned(desk) == {"a": "run", "b": "wait", "c": "wait"}
    desk.provide()
    assert planned(desk) == {"a": "skip", "b": "skip", "c": "skip"}
    assert planned(desk, size="2") == {"a": "run", "b": "run", "c": "skip"}
    desk.world.calls.clear()
    desk.provide(size="2")
    assert desk.world.calls == [("apply", "a"), ("apply", "b")]


def test_an_input_that_there_is_not_is_refused_also_where_a_request_stands(desk: Desk) -> None:
    desk.provide()
    with pytest.raises(UsageError, match="no input siez"):
        planned(desk, siez="2")


def test_the_environment_of_a_step_is_there_for_each_look_and_each_call(desk: Desk) -> None:
    looked, applied = list[StackPlace](), list[StackCall]()
    look, apply = desk.world.look, desk.world.apply
    desk.world.look = lambda place: looked.append(place) or look(place)  # type: ignore[func-returns-value, method-assign]
    desk.world.apply = lambda call, step: applied.append(call) or apply(call, step)  # type: ignore[func-returns-value, method-assign]
    desk.provide(region="eu-west-1", password="env:P")
    expected = {"AWS_REGION": "eu-west-1", "P": "secret of env:P"}
    assert applied[0].place.environment == expected
    assert all(place.environment == (expected if place.directory.name == "a" else {}) for place in looked)
    assert "secret of" not in repr(applied)


def test_a_sensitive_output_is_no_name_of_a_workspace(desk: Desk) -> None:
    desk.world.outputs_of["a"] = {"x": Output("hunter2", sensitive=True)}
    desk.text = desk.text.replace("stack: b,", "stack: b, workspace: '${steps.a.outputs.x}',")
    desk.provide()
    with pytest.raises(InputError, match="sensitive"):
        values_of(desk.context, desk.request).place("b")
