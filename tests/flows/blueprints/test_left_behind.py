"""What a request has made and its blueprint does not have any more, or has elsewhere, is not forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from request_stand_ins import HEAD, Crash, Desk

from tfguard.errors import ConfigError, UsageError
from tfguard.flows.blueprints.deciding import decisions
from tfguard.flows.blueprints.kept import by_kept, decided_left_behind, left_behind
from tfguard.flows.blueprints.provide import ProvideOptions, upcoming
from tfguard.flows.blueprints.take_away import TakeAwayOptions, take_away
from tfguard.model.blueprint_decision import DecisionKind
from tfguard.model.blueprint_request import Request, RequestState

S = RequestState
A = "  a: {stack: a}\n"
B = "  b: {stack: b, needs: [a]}\n"
C = "  c: {run: [c], idempotent: true, compensate: {run: [undo]}}\n"
THREE = f"{HEAD}inputs: {{place: {{default: blue}}}}\nsteps:\n{A}{B}{C}"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A request of three steps that is Ready."""
    desk = Desk(tmp_path, THREE)
    assert desk.provide().state is S.READY
    desk.world.calls.clear()
    return desk


def take(desk: Desk, *steps: str, stateful: bool = False, gone: dict[str, str] | None = None) -> Request:
    """`destroy --step`, by the blueprint that the request keeps."""
    context = by_kept(desk.context, desk.request)
    request = take_away(context, TakeAwayOptions("over", stateful, gone=gone or {}, steps=steps), lambda _: None)
    assert request is not None
    return request


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (B, "", "b: it is no longer in the blueprint"),
        (B, "  new: {stack: b, needs: [a]}\n", "b: it is no longer in the blueprint"),
        (A, "  a: {stack: elsewhere}\n", "a: its stack was a, and is elsewhere now"),
        (A, "  a: {stack: a, workspace: green}\n", "a: its workspace was not named, and is green now"),
        (A, "  a: {stack: a, environment: {TF_WORKSPACE: red}}\n", "a: its workspace was not named, and is red now"),
        (C, "  c: {stack: c}\n", "c: it was a command, and is a stack now"),
    ],
)
def test_what_left_its_place_stops_an_apply_until_it_is_taken_away(
    desk: Desk, before: str, after: str, why: str
) -> None:
    desk.text = desk.text.replace(before, after)
    name = why[0]
    with pytest.raises(UsageError, match=why) as told:
        desk.provide()
    assert f"--step {name}`" in told.value.advice
    assert desk.world.calls == []
    decided = decided_left_behind(desk.context, desk.request)
    assert {key: one.kind for key, one in decided.items()} == {name: DecisionKind.DESTROY}
    assert f"--step {name}`" in decided[name].asks


@pytest.mark.parametrize("same", ["./a", "a/"])
def test_another_way_to_write_the_same_place_is_no_change(desk: Desk, same: str) -> None:
    desk.text = desk.text.replace("stack: a}", f'stack: "{same}"}}')
    assert left_behind(desk.context, desk.request) == {}


def test_a_workspace_that_an_input_moves_stops_an_apply(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE.replace("{stack: a}", "{stack: a, workspace: 'w-${inputs.place}'}"))
    desk.provide()
    with pytest.raises(UsageError, match="a: its workspace was w-blue, and is w-green now"):
        desk.provide(place="green")
    assert desk.provide(place="blue").state is S.READY


def test_a_step_without_work_may_leave(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE + '  p: {probe: {tcp: "x:1"}}\n')
    desk.world.faults["a"] = ["refused"]
    desk.provide()
    desk.provide()
    desk.text = THREE
    assert left_behind(desk.context, desk.request) == {}, "a probe makes nothing"
    assert desk.provide().state is S.READY


def test_some_steps_are_taken_away_and_the_request_goes_on(desk: Desk) -> None:
    desk.text = desk.text.replace(B, "").replace(C, "  d: {run: [d]}\n")
    request = take(desk, "b", "c")
    assert sorted(desk.world.calls) == [("destroy", "b"), ("undo", "c")]
    assert request.state is S.READY
    assert {name: record.status.value for name, record in request.steps.items()} == {
        "a": "ok",
        "b": "destroyed",
        "c": "destroyed",
    }
    desk.world.calls.clear()
    assert desk.provide().state is S.READY
    assert desk.world.calls == [("d", "d")]
    take(desk, "d", gone={"d": "looked"})
    assert desk.request.step("d").status.value == "absent"


def test_a_step_that_another_needs_does_not_go_without_it(desk: Desk) -> None:
    with pytest.raises(UsageError, match="b needs a, and stays") as told:
        take(desk, "a")
    assert "--step b" in told.value.advice
    assert desk.world.calls == []
    take(desk, "a", "b")
    assert desk.world.calls == [("destroy", "b"), ("destroy", "a")]
    assert desk.provide().state is S.READY, "what the blueprint still has is made anew"


def test_the_owner_of_a_step_does_not_go_without_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, f"{HEAD}steps:\n{A}  m: {{run: [m], needs: [a], owned_by: a, compensate: {{run: [undo]}}}}\n")
    desk.provide()
    with pytest.raises(UsageError, match="m is owned by a, and stays"):
        take(desk, "a")
    desk.world.calls.clear()
    with pytest.raises(UsageError, match="m is owned by a, which stays") as told:
        take(desk, "m")
    assert "--step a" in told.value.advice and desk.world.calls == []
    take(desk, "a", "m")
    assert desk.world.calls == [("destroy", "a")], "the child is gone with it"


def test_a_child_alone_is_only_called_gone_by_a_person(tmp_path: Path) -> None:
    desk = Desk(tmp_path, f"{HEAD}steps:\n{A}  m: {{run: [m], needs: [a], owned_by: a}}\n")
    desk.provide()
    desk.world.calls.clear()
    assert take(desk, "m", gone={"m": "the job was stopped by hand"}).step("m").status.value == "absent"
    assert desk.world.calls == []


@pytest.mark.parametrize("between", ["probe: {tcp: 'x:1'}", "run: [p], compensate: {run: [undo]}"])
def test_what_needs_a_step_through_another_is_not_left_without_it(tmp_path: Path, between: str) -> None:
    text = f"{HEAD}steps:\n{A}  p: {{{between}, needs: [a]}}\n  c: {{stack: c, needs: [p]}}\n"
    desk = Desk(tmp_path, text)
    desk.provide()
    desk.world.calls.clear()
    with pytest.raises(UsageError, match=r"(c|p) needs a, and stays"):
        take(desk, "a")
    assert desk.world.calls == []
    take(desk, "a", "c", *([] if "probe" in between else ["p"]))
    assert [call for call in desk.world.calls if call[0] == "destroy"] == [("destroy", "c"), ("destroy", "a")]


def test_a_destroy_that_fails_leaves_what_it_needs_also_over_a_probe(tmp_path: Path) -> None:
    text = f"{HEAD}steps:\n{A}  p: {{probe: {{tcp: 'x:1'}}, needs: [a]}}\n  c: {{stack: c, needs: [p]}}\n"
    desk = Desk(tmp_path, text)
    desk.provide()
    desk.world.calls.clear()
    desk.world.faults["c"] = ["refused"]
    take(desk, "a", "c")
    assert desk.world.calls == [("destroy", "c")]


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"steps": ("b",), "gone": {"a": "x"}}, "a is none of the steps"),
        ({"gone": {"a": "x"}}, "the state of a is not empty"),
        ({"steps": ("b",), "gone": {"b": "x"}}, "the state of b is not empty"),
        ({"gone": {"p": "x"}}, "p is a probe"),
        ({"again": {"a": "x"}}, "a is a stack"),
        ({"again": {"r": "x"}}, "no compensation of r is in doubt"),
        ({"gone": {"never": "x"}}, "nothing of never was begun"),
        ({"gone": {"typo": "x"}}, "no step typo"),
        ({"again": {"typo": "x"}}, "no step typo"),
    ],
)
def test_a_word_that_no_destroy_would_go_by_is_refused(tmp_path: Path, said: dict[str, object], match: str) -> None:
    text = f"{HEAD}steps:\n{A}  b: {{stack: b}}\n  p: {{probe: {{tcp: 'x:1'}}}}\n"
    text += "  r: {run: [r], on_failure: stop, compensate: {run: [undo]}}\n  z: {stack: z, needs: [a]}\n"
    text += "  never: {stack: never, needs: [z]}\n"
    desk = Desk(tmp_path, text)
    desk.world.faults["z"] = ["refused"]
    desk.provide()
    desk.world.calls.clear()
    asked: list[object] = []
    with pytest.raises(UsageError, match=match):
        take_away(desk.context, TakeAwayOptions("over", **said), asked.append)  # type: ignore[arg-type]
    assert (asked, desk.world.calls) == ([], [])


def test_a_step_that_there_never_was_is_refused_also_when_the_request_is_over(desk: Desk) -> None:
    desk.destroy()
    with pytest.raises(UsageError, match="no step typo"):
        take(desk, "typo")
    assert take(desk, "b").state is S.CLEANED


def test_a_removed_probe_is_in_nobody_s_way_also_where_the_kept_blueprint_is_damaged(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path, f"{HEAD}steps:\n{A}  p: {{probe: {{tcp: '${{inputs.x}}'}}}}\ninputs: {{x: {{default: 'x:1'}}}}\n"
    )
    desk.provide()
    for path in desk.folder.rglob("blueprint-*.yaml"):
        path.unlink()
    desk.text = f"{HEAD}steps:\n{A}"
    assert left_behind(desk.context, desk.request) == {}
    assert desk.provide().state is S.READY


def test_data_stays_without_a_word_also_where_one_step_goes(desk: Desk) -> None:
    desk.world.stacks["b"].stateful = True
    assert take(desk, "b").step("b").made
    assert desk.world.calls == []
    assert take(desk, "b", stateful=True).step("b").status.value == "destroyed"


def test_a_destroy_of_one_step_that_was_cut_short_is_finished(desk: Desk) -> None:
    desk.world.crash_at = (1, False)
    with pytest.raises(Crash):
        take(desk, "b")
    desk.world.crash_at = None
    desk.text = desk.text.replace(B, "")
    with pytest.raises(UsageError, match="no longer in the blueprint"):
        desk.provide()
    assert take(desk, "b").step("b").status.value == "destroyed"
    assert desk.provide().state is S.READY


def test_a_step_that_there_is_not_is_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="no step zz"):
        take(desk, "zz")


def test_the_kept_blueprint_is_also_read_from_the_archive(desk: Desk) -> None:
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED
    desk.context.requests.pack(request.id)
    desk.text = HEAD + "steps:\n  other: {stack: other}\n"
    assert by_kept(desk.context, request).text == THREE


def test_a_kept_blueprint_that_somebody_has_changed_is_not_used(desk: Desk) -> None:
    for path in desk.folder.rglob("blueprint-*.yaml"):
        path.write_text(THREE + "  x: {stack: x}\n")
    with pytest.raises(ConfigError, match="not kept"):
        by_kept(desk.context, desk.request)
    desk.text = desk.text.replace(B, "")
    assert list(left_behind(desk.context, desk.request)) == ["b"], "the record alone tells"


def test_advice_names_the_step(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {run: [a]}\n")
    desk.world.faults["a"] = ["1"]
    request = desk.provide()
    context = desk.context
    assert "--done a " in decisions(context, upcoming(context, ProvideOptions()))["a"].asks
    desk.provide()
    told = "\n".join((*desk.console.lines, desk.request.step("a").why))
    assert "STEP" not in told, request
