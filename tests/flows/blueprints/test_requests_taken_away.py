"""A request is taken away: what it has made and nothing else, and nothing is called gone that nobody has seen gone."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from request_stand_ins import FIVE, HEAD, Crash, Desk, StandInStack

from tfguard.blueprint_ports import Output, StackCall
from tfguard.errors import InterruptedRunError, UsageError
from tfguard.flows.blueprints.cancel import CancelOptions, cancel
from tfguard.flows.blueprints.deciding import decisions
from tfguard.flows.blueprints.requests import Requests
from tfguard.flows.blueprints.take_away import TakeAwayOptions, take_away
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import UNSEEN, BlueprintObject, RequestState
from tfguard.reconcile.blueprint_removal import removals
from tfguard.reconcile.blueprint_view import blueprint_view

S = RequestState
TWO = HEAD + "steps:\n  a: {stack: a}\n  b: {stack: b, needs: [a]}\n"
OWNED = (
    HEAD + "steps:\n  a: {stack: a}\n"
    "  m: {run: [m], needs: [a], owned_by: a, idempotent: true, compensate: {run: [undo]}}\n"
)


@pytest.mark.parametrize("fault", ["a fails", "init of b fails", "b's variables have no value"])
def test_a_stack_that_the_request_never_made_is_left_as_it_is(tmp_path: Path, fault: str) -> None:
    desk = Desk(tmp_path, TWO)
    desk.world.stacks["b"] = StandInStack(exists=1, in_state=True, operations=1)
    if fault == "a fails":
        desk.world.faults["a"] = ["refused"]
    elif fault == "init of b fails":
        desk.world.inits["b"] = [1]
    else:
        desk.text = desk.text.replace("needs: [a]", "needs: [a], vars: {v: '${steps.a.outputs.none}'}")
    assert desk.provide().state is S.PARTIAL_FAILURE
    request = desk.destroy()
    assert desk.world.stacks["b"].exists == 1
    assert not desk.world.stacks["a"].exists
    assert request is not None and request.state is S.CLEANED, "it is in nobody's way"
    assert desk.statuses()["b"] == "pending"
    assert "b was never begun" in request.transitions[-1].why


def test_a_stack_that_was_never_begun_and_is_empty_is_absent(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWO)
    desk.world.faults["a"] = ["refused"]
    desk.provide()
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED
    assert desk.statuses()["b"] == "absent"
    assert request.transitions[-1].why == "everything is confirmed gone"


def test_where_a_stack_lies_that_was_never_begun_may_not_be_known(tmp_path: Path) -> None:
    text = TWO.replace("needs: [a]", "needs: [a], workspace: '${steps.a.outputs.none}'")
    desk = Desk(tmp_path, text)
    desk.world.faults["a"] = ["refused"]
    desk.provide()
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED
    assert desk.statuses()["b"] == "pending"
    assert "cannot be told" in request.step("b").why


def test_a_command_that_nothing_undoes_is_not_called_gone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {run: [make-things]}\n")
    desk.provide()
    request = desk.destroy()
    assert request is not None and request.state is S.SETTLED
    assert desk.statuses()["a"] == "ok", "nobody has looked whether it is there"


@pytest.mark.parametrize(("says", "status", "state"), [("1", "absent", S.CLEANED), ("0", "error", S.SETTLED)])
def test_a_check_tells_whether_a_command_s_work_is_gone(
    tmp_path: Path, says: str, status: str, state: RequestState
) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {run: [make-things], check: [is-there]}\n")
    desk.world.faults["a"] = ["1", "0", "0"]
    assert desk.provide().state is S.READY
    desk.world.faults["a"] = [says]
    request = desk.destroy()
    assert request is not None and request.state is state
    assert desk.statuses()["a"] == status
    assert not request.step("a").undoing, "a repair does not begin with a destroy"


def test_a_command_that_still_runs_is_waited_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {run: [work], idempotent: true, compensate: {run: [undo]}}\n")
    desk.world.crash_at = (1, True)
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at, desk.world.running["a"] = None, 5
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED
    assert not desk.world.running["a"]
    assert desk.world.calls[-1] == ("undo", "a")
    assert any("a: waits for its command" in line for line in desk.console.lines)


def test_a_child_whose_owner_is_gone_is_gone_and_its_compensation_is_not_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OWNED)
    desk.provide()
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED
    assert ("undo", "m") not in desk.world.calls
    assert desk.statuses()["m"] == "destroyed"


def test_a_child_of_what_nothing_undoes_is_not_called_gone_with_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {run: [w]}\n  m: {run: [m], needs: [a], owned_by: a}\n")
    desk.provide()
    request = desk.destroy()
    assert request is not None and request.state is S.SETTLED
    assert desk.statuses() == {"a": "ok", "m": "ok"}
    request = desk.destroy(gone={"a": "removed by hand"})
    assert request is not None and request.state is S.CLEANED


def test_the_compensation_of_a_child_is_run_when_the_request_fails(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OWNED)
    desk.world.faults["m"] = ["1"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.world.calls[-1] == ("undo", "m")
    assert desk.statuses()["m"] == "destroyed"


def test_what_stays_says_why_by_itself_and_what_it_hangs_on(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path,
        HEAD + "steps:\n  net: {stack: net}\n  data: {stack: data, needs: [net], stateful: true}\n"
        "  migrate: {run: [m], needs: [data], check: [is]}\n  app: {stack: app, needs: [migrate]}\n",
    )
    desk.world.faults["migrate"] = ["1"]
    desk.provide()
    desk.world.faults["app"] = ["refused"]
    desk.destroy()
    told = [line for line in desk.console.lines if ": stays:" in line]
    assert told == [
        "net: stays: data is not gone, since app stays",
        "data: stays: it holds data; --stateful takes it away, too; migrate is not gone, since app stays",
        "migrate: stays: app is not gone",
    ]


def test_a_second_destroy_does_not_rewrite_what_the_first_has_found(tmp_path: Path) -> None:
    text = HEAD + "steps:\n  z: {stack: z}\n  a: {run: [a], needs: [z], compensate: {run: [undo]}}\n"
    desk = Desk(tmp_path, text)
    desk.provide()
    desk.world.faults["z"] = ["refused"]
    desk.destroy()
    first = desk.request.step("a")
    desk.destroy()
    assert desk.request.step("a") == first
    assert first.why == "compensated"


# What stands that no state knows


def test_what_left_the_state_is_not_forgotten_and_not_called_destroyed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n")
    desk.world.stacks["a"] = StandInStack(others=[BlueprintObject("x.z", "x", observed_id="x-2")])
    desk.provide()
    desk.world.stacks["a"].others.clear()
    assert desk.provide().state is S.READY
    told = {found.observed_id: found.disposition for found in desk.request.step("a").objects}
    assert told == {"x-1": None, "x-2": UNSEEN}
    request = desk.destroy()
    assert request is not None
    told = {found.observed_id: found.disposition for found in request.step("a").objects}
    assert told == {"x-1": "destroyed", "x-2": UNSEEN}
    assert "what became of x.z was not seen" in request.transitions[-1].why


def test_nothing_is_destroyed_while_a_stray_of_it_is_kept(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n")
    desk.provide()
    kept = BlueprintObject("x.z", "x", observed_id="x-2", finding="o-2", disposition="retain")
    desk.world.stacks["a"].others.append(kept)
    for _ in range(2):
        request = desk.destroy()
        assert request is not None and request.state is S.SETTLED
        assert desk.statuses()["a"] == "error"
        assert "x-2 still stands" in request.step("a").why
    desk.world.stacks["a"].others.clear()  # somebody has destroyed it
    desk.world.stacks["a"].emptied = False
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED
    assert desk.statuses()["a"] == "absent"


def test_what_an_apply_has_replaced_or_deleted_is_gone(tmp_path: Path) -> None:
    text = HEAD + "inputs: {n: {type: number, default: 1}}\nsteps:\n  a: {stack: a, vars: {n: '${inputs.n}'}}\n"
    desk = Desk(tmp_path, text)
    desk.world.stacks["a"] = StandInStack(others=[BlueprintObject("x.z", "x", observed_id="x-2")])
    desk.provide()
    apply = desk.world.apply

    def replacing(call: StackCall, step: str) -> object:
        desk.world.stacks["a"].others[:] = [BlueprintObject("x.z", "x", observed_id="x-3")]
        return apply(call, step)

    desk.world.apply = replacing  # type: ignore[method-assign, assignment]
    request = desk.provide(n="2")
    told = {found.observed_id: found.disposition for found in request.step("a").objects}
    assert told == {"x-1": None, "x-3": None, "x-2": "destroyed"}


# Killed and interrupted


def test_a_compensation_that_may_have_ended_is_asked_before_it_is_repeated(tmp_path: Path) -> None:
    text = HEAD + "steps:\n  a: {run: [w], compensate: {run: [undo], check: [undone], timeout: 3m}}\n"
    desk = Desk(tmp_path, text)
    desk.world.faults["a"] = ["1"]
    desk.world.crash_at = (2, True)  # the undo has worked, and its end was not written down
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at = None
    desk.world.calls.clear()
    limits, run = [], desk.world.run

    def noting(command: object, step: str) -> object:
        limits.append(command.timeout.total_seconds() if command.timeout else None)  # type: ignore[attr-defined]
        return run(command, step)  # type: ignore[arg-type]

    desk.world.run = noting  # type: ignore[method-assign, assignment]
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED
    assert [call[0] for call in desk.world.calls] == ["undone"]
    assert limits == [180]


UNDOUBTED = "check: [undone], ", "idempotent: true, "


def undoing(tmp_path: Path, said: str, step: str = "run: [w]", *, killed: bool = True) -> Desk:
    """A request of which a compensation was begun that has worked; nobody has seen its end, or it ended with 3."""
    desk = Desk(tmp_path, HEAD + f"steps:\n  a: {{{step}, compensate: {{{said}run: [undo]}}}}\n")
    desk.world.faults["a"] = ["refused", "3"]
    if killed:
        desk.world.crash_at = (2, True)
        with pytest.raises(Crash):
            desk.provide()
        desk.world.crash_at = None
    else:
        desk.provide()
    desk.world.faults.clear()
    desk.world.calls.clear()
    return desk


@pytest.mark.parametrize("step", ["run: [w]", "stack: a"])
def test_a_compensation_whose_end_is_not_known_is_not_repeated_without_a_word(tmp_path: Path, step: str) -> None:
    desk = undoing(tmp_path, "", step)
    decided = decisions(desk.context, desk.request)["a"]
    assert "--again a" in decided.asks
    for _ in range(2):
        assert desk.provide().state is not S.READY
        assert desk.world.calls == []
        assert desk.request.step("a").undoing, "and it is not made anew meanwhile"
        assert "how it ended is not known" in desk.request.step("a").why
        assert sum("--done a" in line for line in desk.console.lines) == 1, "told once"
        desk.console.lines.clear()


@pytest.mark.parametrize("said", UNDOUBTED)
def test_a_compensation_that_can_be_repeated_or_asked_needs_no_word(tmp_path: Path, said: str) -> None:
    desk = undoing(tmp_path, said)
    assert desk.provide().state is S.READY
    assert desk.world.calls[0][0] == ("undone" if "check" in said else "undo")


def test_a_compensation_that_failed_by_its_own_word_is_finished(tmp_path: Path) -> None:
    desk = undoing(tmp_path, "", killed=False)
    assert desk.provide().state is S.READY
    assert [call[0] for call in desk.world.calls] == ["undo", "w"]


@pytest.mark.parametrize(("done", "calls"), [(True, ["w"]), (False, ["undo", "w"])])
def test_a_person_s_word_about_a_compensation_is_not_one_about_the_step(
    tmp_path: Path, done: bool, calls: list[str]
) -> None:
    desk = undoing(tmp_path, "")
    assert desk.provide({"a": Told(done, "looked")}).state is S.READY
    assert [call[0] for call in desk.world.calls] == calls


@pytest.mark.parametrize(
    ("word", "calls"), [({"gone": {"a": "looked"}}, []), ({"again": {"a": "it can"}}, ["undo"]), ({}, [])]
)
def test_a_destroy_repeats_a_compensation_in_doubt_on_a_word_alone(
    tmp_path: Path, word: dict[str, dict[str, str]], calls: list[str]
) -> None:
    desk = undoing(tmp_path, "")
    request = take_away(desk.context, TakeAwayOptions("over", **word), lambda _: None)  # type: ignore[arg-type]
    assert [call[0] for call in desk.world.calls] == calls
    assert request is not None and (request.state is S.CLEANED) == bool(word)


@pytest.mark.parametrize("how", ["kept", "cancelled", "failed otherwise"])
def test_a_doubt_about_a_compensation_outlives_whatever_else_comes_of_the_step(tmp_path: Path, how: str) -> None:
    text = "steps:\n  o: {stack: o}\n  a: {run: [w], needs: [o], compensate: {run: [undo, '${steps.o.outputs.x}']}}\n"
    desk = Desk(tmp_path, HEAD + text)
    desk.world.outputs_of["o"] = {"x": Output("1", sensitive=False)}
    desk.provide()
    desk.world.crash_at = (len(desk.world.calls) + 1, True)
    with pytest.raises(Crash):
        desk.destroy()
    desk.world.crash_at = None
    desk.world.calls.clear()
    if how == "failed otherwise":
        desk.world.outputs_of["o"] = {}
        take_away(desk.context, TakeAwayOptions("over", again={"a": "it can"}), lambda _: None)
        assert desk.request.step("a").status.value == "error"
        desk.world.outputs_of["o"] = {"x": Output("1", sensitive=False)}
    else:
        time = timedelta(days=1) if how == "kept" else None
        cancel(desk.context, CancelOptions("look at it", retain=time, owner="me"))
    for _ in range(2):
        assert "--again a" in decisions(desk.context, desk.request)["a"].asks
        desk.destroy(dispose=True)
        assert desk.world.calls == []
    take_away(desk.context, TakeAwayOptions("over", dispose=True, again={"a": "it can"}), lambda _: None)
    assert desk.world.calls == [("undo 1", "a"), ("destroy", "o")]


def test_a_compensation_that_was_never_begun_is_in_no_doubt(tmp_path: Path) -> None:
    text = "steps:\n  o: {stack: o}\n  a: {run: [w], needs: [o], compensate: {run: [undo, '${steps.o.outputs.x}']}}\n"
    desk = Desk(tmp_path, HEAD + text + "  e: {stack: e, needs: [a]}\n")
    desk.world.faults["e"] = ["refused"]
    request = desk.provide()
    assert "not compensated" in request.step("a").why and not request.step("a").undoing
    assert desk.provide().state is S.READY
    assert [call for call in desk.world.calls if call[1] == "a"] == [("w", "a")]


def test_a_word_about_a_child_that_went_with_its_owner_was_not_needed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OWNED.replace("idempotent: true, ", ""))
    desk.world.faults["m"] = ["1"]
    desk.world.crash_at = (3, True)
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at = None
    desk.world.calls.clear()
    request = take_away(desk.context, TakeAwayOptions("over", again={"m": "it can"}), lambda _: None)
    assert request is not None and request.state is S.CLEANED
    assert desk.world.calls == [("destroy", "a")]
    assert any("m: your word" in line and "not needed" in line for line in desk.console.lines)


def test_the_question_tells_what_stays_as_the_destroy_does(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path,
        HEAD + "steps:\n  a: {stack: a}\n  p: {probe: {tcp: 'x:1'}, needs: [a]}\n"
        "  c: {stack: c, needs: [p], stateful: true}\n",
    )
    desk.provide()
    told = removals(desk.context.blueprint, desk.request)
    assert told["a"] == "stays: c is not gone"
    told = removals(desk.context.blueprint, desk.request, gone={"c": "the state is lost"})
    assert told["c"].startswith("is called gone, by your word, if its state is empty")
    assert told["a"].startswith("to be destroyed")


def test_a_destroy_that_did_not_end_is_not_gone_on_with_where_the_stack_is_kept(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWO.replace("needs: [a]", "needs: [a], compensate: {destroy: true}"))
    desk.provide()
    desk.world.faults["b"] = ["refused"]
    desk.destroy()
    assert desk.request.step("b").undoing
    cancel(desk.context, CancelOptions("keep it", retain=timedelta(days=1), owner="me"))
    desk.world.calls.clear()
    assert desk.provide().state is S.READY
    assert ("destroy", "b") not in desk.world.calls


def test_why_a_command_failed_is_known_also_when_a_resume_has_only_asked(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {run: [w]}\n")
    desk.world.faults["a"] = ["3"]
    for _ in range(2):
        desk.provide()
        assert "ended with 3" in desk.request.step("a").failure
    assert desk.world.calls == [("w", "a")]


@pytest.mark.parametrize("killed", [True, False])
def test_why_a_step_failed_is_known_also_when_it_was_undone(tmp_path: Path, killed: bool) -> None:
    desk = undoing(tmp_path, "idempotent: true, ", killed=killed)
    assert "ended with 1" in desk.request.step("a").failure
    desk.destroy()
    record = desk.request.step("a")
    assert (record.status.value, record.attempts) == ("destroyed", 1)
    assert "ended with 1" in record.failure


def test_a_destroy_that_comes_just_after_another_finds_it_gone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWO)
    desk.provide()
    context, holding = desk.context, desk.context.requests.holding

    def later() -> AbstractContextManager[None]:
        desk.destroy()
        return holding()

    context.requests.holding = later  # type: ignore[method-assign]
    asked: list[object] = []
    request = take_away(context, TakeAwayOptions("over"), asked.append)
    assert request is not None and request.state is S.CLEANED
    assert asked == []


@pytest.mark.parametrize("killed", [True, False])
def test_a_resume_that_may_not_take_data_away_says_what_does(tmp_path: Path, killed: bool) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a, stateful: true}\n")
    desk.provide()
    only_a = TakeAwayOptions("over", stateful=True, steps=["a"])
    desk.world.faults["a"], desk.world.crash_at = ["refused"], (2, False) if killed else None
    with pytest.raises(Crash) if killed else nullcontext():
        take_away(desk.context, only_a, lambda _: None)
    desk.world.crash_at = None
    desk.world.faults.clear()
    desk.console.lines.clear()
    request = desk.provide()
    assert (request.state, desk.statuses(), desk.world.stacks["a"].exists) == (S.PARTIAL_FAILURE, {"a": "error"}, 1)
    way = "it holds data; `destroy --step a --stateful` takes it away, `cancel --retain` keeps it"
    assert any(line.startswith("a: ") and way in line for line in desk.console.lines)
    assert not killed or way in request.step("a").why
    seen = blueprint_view(desk.context.blueprint, request, {}, desk.clock.now(), file="b.yaml")
    assert not seen.stuck
    take_away(desk.context, only_a, lambda _: None)
    assert (desk.statuses(), desk.provide().state) == ({"a": "destroyed"}, S.READY)


def test_a_compensation_that_finds_data_is_none_and_nothing_is_left_running(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a, compensate: {destroy: true}}\n  b: {stack: b, needs: [a]}\n")
    desk.world.faults["b"], desk.world.crash_at = ["refused"], (3, False)
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at = None
    desk.world.stacks["a"].stateful = True
    desk.provide()
    assert desk.statuses() == {"a": "error", "b": "error"}
    assert desk.request.step("a").why == "it holds data, which is never deleted as a compensation"


def test_a_destroy_that_was_interrupted_before_it_began_changes_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWO)
    desk.provide()

    def approve(_: object) -> None:
        desk.intents = 1

    with pytest.raises(InterruptedRunError):
        take_away(desk.context, TakeAwayOptions("over"), approve)
    assert desk.request.state is S.READY


@pytest.mark.parametrize("line", range(1, 12))
def test_killed_at_any_line_of_the_journal_a_destroy_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int
) -> None:
    desk = Desk(tmp_path, FIVE)
    desk.provide()
    append, written = Requests.append, 0

    def dying(self: Requests, request_id: str, *events: object) -> None:
        nonlocal written
        written += 1
        append(self, request_id, *events)  # type: ignore[arg-type]
        if written == line:
            raise Crash

    with monkeypatch.context() as dies:
        dies.setattr(Requests, "append", dying)
        try:
            desk.destroy(stateful=True)
        except Crash:
            pass
        else:
            pytest.fail("a destroy writes fewer lines")
    if desk.request.state is not S.CLEANED:
        request = desk.destroy(stateful=True)
        assert request is not None and request.state is S.CLEANED
    assert not any(stack.exists for stack in desk.world.stacks.values())
    assert set(desk.statuses().values()) <= {"destroyed", "absent"}


def test_a_thousand_steps_are_taken_away(tmp_path: Path) -> None:
    steps = "".join(f"  s{n}: {{stack: s{n}, needs: [{f's{n - 1}' if n % 10 else ''}]}}\n" for n in range(1000))
    desk = Desk(tmp_path, HEAD + "parallel: 8\nsteps:\n" + steps)
    desk.provide()
    desk.world.calls.clear()
    desk.world.faults["s500"] = ["refused"]
    events = len(next(tmp_path.rglob("events.jsonl")).read_text().splitlines())
    desk.destroy()
    assert len(desk.world.calls) == 1000
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED
    assert len(desk.world.calls) == 1001
    assert len(next(tmp_path.rglob("events.jsonl")).read_text().splitlines()) - events < 3 * 1000


def test_a_stack_whose_state_is_lost_is_gone_on_a_person_s_word_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWO)
    desk.provide()
    desk.world.stacks["a"] = StandInStack(operations=1)
    request = desk.destroy()
    assert request is not None and request.state is S.SETTLED
    assert "--gone a" in request.step("a").why
    request = desk.destroy(gone={"a": "removed by hand, the bill says so"})
    assert request is not None and request.state is S.CLEANED
    assert "by a person's word: removed by hand" in request.step("a").why


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_word_that_something_is_gone_takes_nothing_that_a_state_has(tmp_path: Path, when: str) -> None:
    desk = Desk(tmp_path, TWO)
    desk.provide()
    desk.world.calls.clear()
    made = desk.world.stacks["b"]
    if when == "before":
        with pytest.raises(UsageError, match="b is not empty"):
            desk.destroy(gone={"b": "gone"})
    else:
        desk.world.stacks["b"] = StandInStack(operations=1)

        def approve(_: object) -> None:
            desk.world.stacks["b"] = made  # somebody restores the state

        take_away(desk.context, TakeAwayOptions("over", gone={"b": "gone"}), approve)
        assert "its state is not empty" in desk.request.step("b").why
    assert desk.world.calls == []
    assert desk.request.step("b").made
