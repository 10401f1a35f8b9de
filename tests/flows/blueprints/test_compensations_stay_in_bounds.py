"""A failure undoes what this request has made, while nothing that stands needs it and nobody has to look first."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from request_stand_ins import HEAD, Crash, Desk, StandInStack

from tfguard.blueprint_ports import ProbeAnswer, StackCall
from tfguard.flows.blueprints.cancel import CancelOptions, cancel
from tfguard.flows.blueprints.take_away import TakeAwayOptions, take_away
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import BlueprintObject, RequestState
from tfguard.model.plan import Action, Plan, PlannedChange
from tfguard.reconcile.blueprint_removal import removals

S = RequestState
STEPS = HEAD + "steps:\n"
TWO = STEPS + "  a: {stack: a, compensate: {destroy: true}}\n"
AND_B = TWO + "  b: {stack: b, needs: [a]}\n"
X = HEAD + "inputs: {v: {type: string, default: '1'}}\nsteps:\n  x: {stack: x, vars: {v: '${inputs.v}'}}\n"
IN_DOUBT = (
    X + "  two: {stack: two, compensate: {destroy: true}}\n"
    "  work: {run: [w], needs: [two, x], owned_by: two}\n  more: {run: [m], needs: [work]}\n"
)


def destroyed(desk: Desk) -> list[str]:
    return [step for what, step in desk.world.calls if what == "destroy"]


def x_fails_and_nothing_is_undone(desk: Desk) -> None:
    """The next run changes x, which fails, so that what is behind it is not come to."""
    desk.world.faults["x"] = ["refused"]
    assert desk.provide(v="2").state is S.PARTIAL_FAILURE
    assert destroyed(desk) == []


def killed_in(desk: Desk, call: int) -> None:
    desk.world.crash_at = (call, True)
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at = None
    desk.world.calls.clear()


# What stands needs it


@pytest.mark.parametrize("keeps", ["on_failure: retain", "stateful: true"])
def test_what_stands_is_needed_through_a_probe(tmp_path: Path, keeps: str) -> None:
    text = TWO + "  p: {probe: {tcp: 'x:1', within: 1s}, needs: [a]}\n"
    desk = Desk(tmp_path, text + f"  c: {{stack: c, needs: [p], {keeps}}}\n  e: {{stack: e, needs: [c]}}\n")
    desk.world.faults["e"] = ["refused"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert destroyed(desk) == []
    assert "a: not compensated: c needs it" in desk.console.lines


def test_what_stands_is_needed_through_a_command_whose_check_says_that_it_is_not_done(tmp_path: Path) -> None:
    text = TWO + "  m: {run: [m], check: [is-done], needs: [a]}\n"
    desk = Desk(tmp_path, text + "  c: {stack: c, needs: [m], on_failure: stop}\n  e: {stack: e, needs: [c]}\n")
    desk.world.faults.update(e=["refused"], m=["1", "0", "0", "1", "1", "1"])
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.world.calls[-3:] == [("is-done", "m"), ("m", "m"), ("is-done", "m")]
    assert destroyed(desk) == []


def test_a_chain_of_compensations_still_goes_back_to_its_beginning(tmp_path: Path) -> None:
    text = AND_B.replace("b: {stack: b,", "b: {stack: b, compensate: {destroy: true},")
    desk = Desk(tmp_path, text + "  p: {probe: {tcp: 'x:1', within: 1s}, needs: [b]}\n  c: {stack: c, needs: [p]}\n")
    desk.world.faults["c"] = ["refused"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert destroyed(desk) == ["b", "a"]


def test_a_stack_whose_state_is_lost_still_needs_what_it_stands_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = X.replace("x: {stack: x", "z: {stack: z") + TWO.removeprefix(STEPS)
    text += "  b: {stack: b, compensate: {destroy: true}, needs: [a, z]}\n"
    desk = Desk(tmp_path, text + "  p: {probe: {tcp: 'x:1', within: 1s}, needs: [b]}\n")

    def killed(_: object) -> ProbeAnswer:
        raise Crash

    with monkeypatch.context() as while_asked, pytest.raises(Crash):
        while_asked.setattr(desk.world, "ask", killed)
        desk.provide()  # b is done, and nothing was ever Ready
    desk.world.stacks["b"].in_state = False
    desk.world.faults["z"] = ["refused"]
    assert desk.provide(v="2").state is S.PARTIAL_FAILURE
    assert desk.statuses()["b"] == "error"
    assert destroyed(desk) == []
    assert "a: not compensated: b needs it" in desk.console.lines


def test_a_stack_of_which_something_is_kept_still_needs_what_it_stands_on(tmp_path: Path) -> None:
    text = AND_B.replace("b: {stack: b,", "b: {stack: b, compensate: {destroy: true},")
    desk = Desk(tmp_path, text + "  c: {stack: c, needs: [b]}\n")
    kept = BlueprintObject("x.z", "x", observed_id="x-2", finding="o-2", disposition="retain")
    desk.world.stacks["b"] = StandInStack(others=[kept])
    desk.world.faults["c"] = ["refused"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert destroyed(desk) == ["b"]
    assert "a: not compensated: b needs it" in desk.console.lines


# What nobody knows


def test_work_that_was_cut_short_and_is_not_come_to_undoes_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, IN_DOUBT)
    killed_in(desk, 3)
    x_fails_and_nothing_is_undone(desk)
    assert "two: not compensated: how work stands is not known" in desk.console.lines


@pytest.mark.parametrize("fails", ["stop", "retain"])
def test_work_that_waits_for_a_word_and_is_not_come_to_undoes_nothing(tmp_path: Path, fails: str) -> None:
    desk = Desk(tmp_path, IN_DOUBT.replace("owned_by: two", f"owned_by: two, on_failure: {fails}"))
    killed_in(desk, 3)
    assert desk.provide().state is S.PARTIAL_FAILURE  # it asks
    x_fails_and_nothing_is_undone(desk)


def test_a_stack_with_something_open_that_is_not_come_to_undoes_nothing(tmp_path: Path) -> None:
    text = X + "  two: {stack: two, compensate: {destroy: true}}\n  work: {stack: w, needs: [two, x], owned_by: two}\n"
    desk = Desk(tmp_path, text)
    desk.world.faults["work"] = ["lost"]
    killed_in(desk, 3)
    x_fails_and_nothing_is_undone(desk)


def test_a_step_that_failed_with_nothing_there_and_is_not_come_to_is_in_no_way(tmp_path: Path) -> None:
    text = X + "  two: {stack: two, compensate: {destroy: true}}\n  w: {stack: w, needs: [two, x]}\n"
    desk = Desk(tmp_path, text)
    desk.world.faults["w"] = ["refused"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert destroyed(desk) == ["two"]
    desk.world.faults["x"] = ["refused"]
    # Where `two` is made again first is as it comes; it is undone, or not made.
    assert desk.provide(v="2").state is S.PARTIAL_FAILURE
    assert desk.world.stacks["two"].exists == 0


@pytest.mark.parametrize("killed", [False, True])
def test_a_compensation_that_was_begun_is_finished_where_its_step_is_not_come_to(tmp_path: Path, killed: bool) -> None:
    text = X + "  two: {stack: two, needs: [x], compensate: {destroy: true}}\n  b: {stack: b, needs: [two]}\n"
    desk = Desk(tmp_path, text)
    desk.world.faults.update(b=["refused"], two=["", "refused"])
    if killed:
        killed_in(desk, 4)
    else:
        desk.provide()
    assert desk.world.stacks["two"].exists
    desk.world.faults["x"] = ["refused"]
    assert desk.provide(v="2").state is S.PARTIAL_FAILURE
    assert destroyed(desk)[-1] == "two"
    assert not desk.world.stacks["two"].exists


# What was there before


def test_a_stack_that_had_something_before_is_not_undone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, AND_B)
    desk.world.stacks["a"] = StandInStack(exists=1, in_state=True, operations=1)
    desk.world.faults["b"] = ["refused", "refused"]
    for _ in range(2):
        assert desk.provide().state is S.PARTIAL_FAILURE
    assert destroyed(desk) == []
    assert "a: not compensated: it stood before this request" in desk.console.lines
    told = removals(desk.context.blueprint, desk.request)
    assert told["a"] == "to be destroyed: 1 object; it stood before this request"


def test_a_stack_that_is_made_anew_by_this_request_is_its_own(tmp_path: Path) -> None:
    desk = Desk(tmp_path, AND_B)
    desk.world.stacks["a"] = StandInStack(exists=1, in_state=True, operations=1)
    desk.world.faults["b"] = ["refused", "refused"]
    desk.provide()
    take_away(desk.context, TakeAwayOptions("x", steps=("a", "b")), lambda _: None)
    desk.world.calls.clear()
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert destroyed(desk) == ["a"]


def test_what_stood_ready_stays_where_its_request_was_lost(tmp_path: Path) -> None:
    desk = Desk(tmp_path, AND_B)
    assert desk.provide().state is S.READY
    (tmp_path / "b.tfguard").rename(tmp_path / "aside")
    desk.text += "  c: {stack: c}\n"
    desk.world.faults["c"] = ["refused"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert destroyed(desk) == []


@pytest.mark.parametrize("killed", [False, True])
def test_work_that_a_check_calls_done_before_it_was_begun_is_not_undone(tmp_path: Path, killed: bool) -> None:
    text = STEPS + "  a: {run: [w], check: [is-done], compensate: {run: [undo]}}\n  b: {stack: b, needs: [a]}\n"
    desk = Desk(tmp_path, text)
    if killed:
        killed_in(desk, 1)
    desk.world.faults["b"] = ["refused"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert ("undo", "a") not in desk.world.calls


def test_work_that_was_begun_here_and_is_called_done_by_its_check_is_undone(tmp_path: Path) -> None:
    text = STEPS + "  a: {run: [w], check: [is-done], compensate: {run: [undo]}}\n  b: {stack: b, needs: [a]}\n"
    desk = Desk(tmp_path, text)
    desk.world.faults.update(a=["1"], b=["refused"])
    killed_in(desk, 2)
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert ("undo", "a") in desk.world.calls


def test_what_somebody_else_left_open_is_not_this_request_s_when_it_cannot_be_adopted(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWO)
    desk.world.stacks["a"] = StandInStack(exists=1, lost=True, operations=1)
    desk.world.faults["a"] = ["refused", ""]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.world.calls == [("adopt", "a")]
    assert not desk.request.step("a").made
    desk.destroy()
    assert destroyed(desk) == []
    assert desk.world.stacks["a"].exists == 1


def test_what_was_adopted_and_not_applied_is_left_as_it_is(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWO)
    desk.world.stacks["a"] = StandInStack(exists=1, lost=True, operations=1)
    killed_in(desk, 1)
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED
    assert destroyed(desk) == []
    assert desk.world.stacks["a"].exists == 1
    assert "was not made by this request" in desk.request.step("a").why


def test_what_was_adopted_and_is_in_no_state_any_more_is_not_made_again(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWO)
    desk.world.stacks["a"] = StandInStack(exists=1, lost=True, operations=1)
    desk.interrupt_at("adopt")
    assert desk.provide().state is S.SETTLED
    desk.intents = 0
    cancel(desk.context, CancelOptions("go on", retain=timedelta(days=1), owner="me"))
    desk.world.stacks["a"].in_state = False
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert ("apply", "a") not in desk.world.calls
    line = next(line for line in desk.console.lines if "this request knows 1 objects by it; restore the state" in line)
    assert line.endswith("`resume --again a --reason TEXT`")
    assert desk.provide({"a": Told(False, "removed by hand")}).state is S.READY
    assert ("apply", "a") in desk.world.calls


@pytest.mark.parametrize("begun", [False, True])
def test_a_stray_that_was_settled_elsewhere_is_in_no_resume_s_way(tmp_path: Path, begun: bool) -> None:
    desk = Desk(tmp_path, TWO.replace("compensate: {destroy: true}", "on_failure: stop"))
    desk.world.stacks["a"] = StandInStack(exists=1, lost=not begun, operations=1)
    desk.world.faults["a"] = ["lost", "refused"] if begun else ["refused"]
    for _ in desk.world.faults["a"][:]:
        assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.world.calls[-1] == ("adopt", "a")
    assert (desk.request.step("a").made, len(desk.request.step("a").standing)) == (begun, 1)
    desk.world.stacks["a"] = StandInStack(operations=2)
    assert desk.provide().state is S.READY
    assert desk.world.stacks["a"].exists == 1


def test_a_stack_that_was_adopted_from_before_is_not_undone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, AND_B)
    desk.world.stacks["a"] = StandInStack(exists=1, lost=True, operations=1)
    desk.world.faults["b"] = ["refused"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert [call for call in desk.world.calls if call[1] == "a"] == [("adopt", "a"), ("apply", "a")]


def test_an_adoption_of_what_this_request_has_begun_takes_nothing_from_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, AND_B)
    desk.world.faults.update(a=["lost"], b=["refused"])
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert ("adopt", "a") in desk.world.calls
    assert desk.world.stacks["a"].exists == 0


# What a failed destroy tells


def test_a_state_that_is_lost_after_a_destroy_that_failed_calls_nothing_gone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, STEPS + "  a: {stack: a}\n")
    desk.provide()
    desk.world.faults["a"] = ["refused"]
    desk.destroy()
    desk.world.stacks["a"].in_state = False
    request = desk.destroy()
    assert request is not None and request.state is S.SETTLED
    assert desk.statuses() == {"a": "error"}
    assert "`destroy --gone a --reason TEXT`" in request.step("a").why
    request = desk.destroy(gone={"a": "removed by hand"})
    assert request is not None and request.state is S.CLEANED


def test_a_state_that_is_lost_after_a_compensation_that_failed_makes_nothing_twice(tmp_path: Path) -> None:
    desk = Desk(tmp_path, AND_B)
    desk.world.faults.update(a=["", "refused"], b=["refused"])
    desk.provide()
    assert desk.request.step("a").undoing
    desk.world.stacks["a"].in_state = False
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.world.stacks["a"].exists == 1
    assert "`destroy --step a --gone a --reason TEXT`" in desk.request.step("a").why


def test_a_destroy_that_was_cut_short_behind_its_last_object_has_emptied_the_state(tmp_path: Path) -> None:
    desk = Desk(tmp_path, STEPS + "  a: {stack: a}\n")
    desk.provide()
    desk.world.crash_at = (2, True)
    with pytest.raises(Crash):
        desk.destroy()
    desk.world.crash_at = None
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED


# What becomes of data


@pytest.mark.parametrize("plan", ["", "Error: no route to hunter2", Plan("1.11", (), errored=True)])
def test_nothing_is_applied_to_data_of_which_no_plan_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan | str
) -> None:
    desk = Desk(tmp_path, X.replace("stack: x", "stack: x, stateful: true"))
    assert desk.provide().state is S.READY
    desk.world.calls.clear()
    monkeypatch.setattr(desk.world, "plan", lambda _: plan)
    request = desk.provide(v="2")
    assert request.state is S.PARTIAL_FAILURE
    assert desk.world.calls == []
    assert "what becomes of its data is not known" in request.step("x").why
    assert "--skip-check data=REASON" in request.step("x").why
    assert "hunter2" not in next(tmp_path.rglob("events.jsonl")).read_text()
    monkeypatch.undo()
    assert desk.provide().state is S.READY


def test_what_would_lose_its_data_undoes_nothing_before_a_person_has_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, X.replace("stack: x", "stack: x, stateful: true"))
    assert desk.provide().state is S.READY
    desk.text += "  y: {stack: y, compensate: {destroy: true}}\n"
    lost = PlannedChange("x.y", "x", "p", Action.REPLACE)

    def plan(call: StackCall) -> Plan:
        return Plan("1.11", (lost,) if call.place.directory.name == "x" else ())

    monkeypatch.setattr(desk.world, "plan", plan)
    assert desk.provide(v="2").state is S.PARTIAL_FAILURE
    assert destroyed(desk) == []


def test_a_stack_that_holds_a_stray_alone_was_not_there_before(tmp_path: Path) -> None:
    desk = Desk(tmp_path, AND_B)
    kept = BlueprintObject("x.z", "x", observed_id="x-2", finding="o-2", disposition="retain")
    desk.world.stacks["a"] = StandInStack(others=[kept], operations=1)
    desk.world.faults["b"] = ["refused"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert destroyed(desk) == ["a"]
