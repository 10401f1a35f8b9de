"""What is done again when something changed: an input, a part of the blueprint, or what a step builds on."""

from __future__ import annotations

from pathlib import Path

import pytest
from request_stand_ins import Crash, Desk

from tfguard.blueprint_ports import Output, StackLook, StackPlace
from tfguard.errors import UsageError
from tfguard.model.blueprint_request import BlueprintObject, RequestState

S = RequestState
HEAD = "apiVersion: tfguard/v1\nkind: Blueprint\nname: b\nowner: team\n"
SIZED = "inputs: {size: {type: number, default: 1}}\n"


def made_anew(desk: Desk, gone: str) -> None:
    """Let a step's object vanish: the next apply of it makes it again."""
    desk.world.stacks[gone].exists = 0
    desk.world.calls.clear()


def test_what_builds_on_a_step_that_was_made_anew_is_done_again(tmp_path: Path) -> None:
    text = """
steps:
  a: {stack: a}
  b: {stack: b, needs: [a], vars: {x: "${steps.a.outputs.x}"}}
  c: {run: [c], needs: [a], owned_by: a}
  d: {run: [d], needs: [a], idempotent: true}
  e: {run: [e], needs: [a]}
"""
    desk = Desk(tmp_path, HEAD + text)
    desk.world.outputs_of["a"] = {"x": Output("1")}
    assert desk.provide().state is S.READY
    made_anew(desk, "a")
    assert desk.provide().state is S.READY
    assert sorted(desk.world.calls) == [("apply", "a"), ("apply", "b"), ("c", "c"), ("d", "d")]
    desk.world.calls.clear()
    assert desk.provide().state is S.READY
    assert desk.world.calls == []


def test_a_command_that_takes_an_output_of_what_was_made_anew_is_run_on_a_word_alone(tmp_path: Path) -> None:
    text = "steps:\n  a: {stack: a}\n  b: {run: [b], needs: [a], environment: {X: '${steps.a.outputs.x}'}}\n"
    desk = Desk(tmp_path, HEAD + text)
    desk.world.outputs_of["a"] = {"x": Output("1")}
    desk.provide()
    made_anew(desk, "a")
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert ("b", "b") not in desk.world.calls
    assert "a changed since" in desk.request.step("b").why


@pytest.mark.parametrize(
    ("after", "runs"),
    [(("i-1", "v-1"), False), (("i-2", "v-1"), False), (("i-2", "v-2"), True)],
    ids=["in place", "a part of it anew", "all of it anew"],
)
def test_an_owned_command_runs_again_where_nothing_is_left_of_its_owner(
    tmp_path: Path, after: tuple[str, str], runs: bool
) -> None:
    desk = Desk(tmp_path, HEAD + SIZED + "steps:\n  a: {stack: a, vars: {size: '${inputs.size}'}}\n"
                "  c: {run: [c], needs: [a], owned_by: a}\n")  # fmt: skip
    ids = ["i-1", "v-1"]

    def look(place: StackPlace) -> StackLook:
        seen = desk.world.of(place).look()
        objects = tuple(BlueprintObject(f"x.{n}", "x", observed_id=one) for n, one in enumerate(ids))
        return StackLook(seen.operation_id, objects=objects if seen.managed else (), managed=seen.managed)

    desk.world.look = look  # type: ignore[method-assign]
    assert desk.provide().state is S.READY
    ids[:] = after
    desk.world.calls.clear()
    request = desk.provide(size="2")
    assert (("c", "c") in desk.world.calls) is runs
    partly = after == ("i-2", "v-1")
    assert request.state is (S.PARTIAL_FAILURE if partly else S.READY), "of a part only a person can tell"


def test_a_retention_hides_no_change_of_an_input(tmp_path: Path) -> None:
    text = "steps:\n  z: {stack: z, vars: {size: '${inputs.size}'}}\n"
    text += "  a: {stack: a, needs: [z], on_failure: retain, vars: {size: '${inputs.size}'}}\n"
    desk = Desk(tmp_path, HEAD + SIZED + text)
    desk.provide()
    desk.world.faults["z"] = ["refused"]
    assert desk.provide(size="2").state is S.PARTIAL_FAILURE
    assert desk.statuses()["a"] == "retained"
    desk.world.calls.clear()
    assert desk.provide().state is S.READY
    assert desk.world.calls == [("apply", "z"), ("apply", "a")]


def test_only_the_steps_that_a_change_is_about_are_done_again(tmp_path: Path) -> None:
    text = SIZED + "steps:\n  a: {stack: a, vars: {size: '${inputs.size}'}}\n  b: {stack: b}\n  c: {run: [c]}\n"
    desk = Desk(tmp_path, HEAD + text)
    desk.provide()
    desk.world.calls.clear()
    desk.text += "# a word for the reader\n"
    assert desk.provide().state is S.READY
    assert desk.world.calls == []
    assert desk.provide(size="2").state is S.READY
    assert desk.world.calls == [("apply", "a")]
    desk.text = desk.text.replace("run: [c]", "run: [c, --more]")
    request = desk.provide()
    assert (request.state, desk.statuses()["c"]) == (S.PARTIAL_FAILURE, "error"), "whether it may run again is not told"


def test_a_kill_after_the_work_hides_nothing_from_what_builds_on_it(tmp_path: Path) -> None:
    text = "steps:\n  a: {run: [a], check: [is-done], idempotent: true}\n  b: {stack: b, needs: [a]}\n"
    desk = Desk(tmp_path, HEAD + text)
    desk.world.faults["a"] = ["1", "", ""]
    assert desk.provide().state is S.READY
    desk.world.faults["a"] = ["1"]
    desk.world.crash_at = (len(desk.world.calls) + 2, True)
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at = None
    desk.world.calls.clear()
    assert desk.provide().state is S.READY
    assert desk.world.calls == [("is-done", "a"), ("apply", "b")]


def test_an_owned_command_runs_again_where_its_owner_was_compensated(tmp_path: Path) -> None:
    text = """
steps:
  a: {stack: a, compensate: {destroy: true}}
  c: {run: [c], needs: [a], owned_by: a}
  z: {stack: z, needs: [c]}
"""
    desk = Desk(tmp_path, HEAD + text)
    desk.world.faults["z"] = ["refused"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.statuses()["a"] == "destroyed", "nothing but what it owns needs it"
    desk.world.calls.clear()
    assert desk.provide().state is S.READY
    assert desk.world.calls == [("apply", "a"), ("c", "c"), ("apply", "z")]


def test_a_step_that_left_the_blueprint_is_told_with_the_file_to_put_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n  b: {stack: b}\n")
    desk.provide()
    kept, desk.text = desk.text, desk.text.replace("  b: {stack: b}\n", "")
    with pytest.raises(UsageError, match="b: it is no longer in the blueprint") as told:
        desk.provide()
    place = Path(told.value.advice.rpartition(" ")[2])
    assert place.read_text() == kept
    assert f"destroy {tmp_path / 'b.yaml'} --step b`" in told.value.advice
