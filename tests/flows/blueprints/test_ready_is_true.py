"""A request is called Ready only by what was seen of it as it is: not by a stranger's apply, nor by a look that a call
has overtaken, nor by data that was made anew without a word."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest
from request_stand_ins import HEAD, Crash, Desk, StandInStack

from tfguard.blueprint_ports import CallEnd, Command, StackCall, Verified
from tfguard.errors import CorruptRecordError
from tfguard.flows.blueprints.cancel import CancelOptions, cancel
from tfguard.flows.blueprints.checking import check_again
from tfguard.flows.blueprints.requests import Journal
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import RequestState

S = RequestState
INPUT = "inputs: {x: {default: '1'}}\n"
WAIT = 30


def check(desk: Desk) -> Sequence[str]:
    """What is not as it was, by name."""
    context = desk.context
    return check_again(context, Journal(context.requests, desk.request), bool)


def test_a_stranger_s_apply_is_not_the_request_s_own_and_is_made_once_more(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + INPUT + "steps:\n  a: {stack: a, vars: {v: '${inputs.x}'}}\n")
    desk.provide()
    desk.world.crash_at = (2, False)
    with pytest.raises(Crash):
        desk.provide(x="2")
    desk.world.crash_at = None
    stack = desk.world.stacks["a"]
    stack.operations += 1
    kept = cancel(desk.context, CancelOptions("over", retain=timedelta(days=1), owner="me"))
    assert (kept.state, kept.step("a").done) == (S.RETAINED_FOR_REVIEW, False)
    desk.world.calls.clear()
    assert desk.provide().state is S.READY
    assert desk.world.calls == [("apply", "a")]


@pytest.mark.parametrize("kind", ["stack: b, vars", "run: [b], idempotent: true, environment"])
def test_what_was_seen_while_a_call_ran_is_looked_up_again(tmp_path: Path, kind: str) -> None:
    desk = Desk(tmp_path, HEAD + INPUT + f"steps:\n  a: {{stack: a}}\n  b: {{{kind}: {{X: '${{inputs.x}}'}}}}\n")
    desk.provide()
    began, seen, verify, apply, run = Event(), Event(), desk.world.verify, desk.world.apply, desk.world.run

    def verify_meanwhile(call: StackCall) -> Verified:
        began.wait(WAIT)
        answer = verify(call)
        if call.place.directory.name == "a":
            seen.set()
        return answer

    def taking_away() -> None:
        began.set()
        assert seen.wait(WAIT)
        desk.world.stacks["a"].exists = 0

    def apply_after(call: StackCall, step: str) -> CallEnd:
        taking_away()
        return apply(call, step)

    def run_after(command: Command, step: str) -> CallEnd:
        taking_away()
        return run(command, step)

    desk.world.verify, desk.world.apply, desk.world.run = verify_meanwhile, apply_after, run_after  # type: ignore[method-assign]
    assert desk.provide(x="2").state is S.PARTIAL_FAILURE
    assert desk.statuses()["a"] == "error"


# Data that is gone comes back with no apply

CHANGES = {
    "edited": "steps:\n  n: {stack: n}\n  a: {stack: a, stateful: true, needs: [n], vars: {v: '${inputs.x}'}}\n",
    "newer": "steps:\n  n: {stack: n, vars: {v: '${inputs.x}'}}\n  a: {stack: a, stateful: true, needs: [n]}\n",
}


@pytest.mark.parametrize("change", CHANGES)
def test_data_that_vanished_is_not_made_anew_by_an_apply_for_another_reason(tmp_path: Path, change: str) -> None:
    desk = Desk(tmp_path, HEAD + INPUT + CHANGES[change])
    desk.provide()
    desk.world.stacks["a"].exists = 0
    desk.world.calls.clear()
    request = desk.provide(x="2")
    assert (request.state, ("apply", "a") in desk.world.calls) == (S.PARTIAL_FAILURE, False)
    assert "x.y, which holds data, would be made anew without it" in request.step("a").why
    desk.world.calls.clear()
    assert desk.provide({"a": Told(False, "it was a copy")}).state is S.READY
    assert ("apply", "a") in desk.world.calls


def test_data_that_vanished_behind_a_failed_apply_is_not_made_anew(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + INPUT + CHANGES["edited"])
    desk.provide()
    desk.world.faults["a"] = ["refused"]
    assert desk.provide(x="2").state is S.PARTIAL_FAILURE
    desk.world.stacks["a"].exists = 0
    desk.world.calls.clear()
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert ("apply", "a") not in desk.world.calls
    desk.world.stacks["a"].exists = 1  # restored
    assert desk.provide().state is S.READY


def test_data_that_was_taken_away_on_purpose_is_made_anew_without_a_word(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a, stateful: true}\n")
    desk.provide()
    desk.world.faults["a"] = ["refused"]
    desk.destroy(stateful=True)
    desk.world.faults.clear()
    desk.destroy(stateful=True)
    assert desk.provide().state is S.READY


# A healthy stack is no work of what failed


@pytest.mark.parametrize("how", ["vanished", "changed"])
def test_what_stood_when_ready_is_not_undone_since_it_was_repaired_or_applied_again(tmp_path: Path, how: str) -> None:
    step = "{stack: %s, compensate: {destroy: true}, vars: {v: '${inputs.x}'}}"
    desk = Desk(tmp_path, HEAD + INPUT + f"steps:\n  a: {step % 'a'}\n  b: {step % 'b'}\n")
    desk.provide()
    if how == "vanished":
        desk.world.stacks["a"].exists = 0
    desk.world.faults["b"] = ["refused"]
    assert desk.provide(x="2").state is S.PARTIAL_FAILURE
    assert ("apply", "a") in desk.world.calls
    assert not [call for call in desk.world.calls if call[0] == "destroy"]


# What was missing once


@pytest.mark.parametrize("failing", ["stop", "retain"])
def test_data_that_is_there_again_needs_no_word_and_its_commands_do_not_run_again(tmp_path: Path, failing: str) -> None:
    steps = f"  a: {{stack: a, stateful: true, on_failure: {failing}}}\n  c: {{run: [c], needs: [a], owned_by: a}}\n"
    desk = Desk(tmp_path, HEAD + "steps:\n" + steps)
    desk.provide()
    desk.world.stacks["a"].exists = 0
    assert check(desk) == ["a"]
    assert desk.provide().state is S.PARTIAL_FAILURE, "it is not there"
    desk.world.stacks["a"].exists = 1
    desk.world.calls.clear()
    assert (desk.provide().state, desk.world.calls) == (S.READY, [])


def test_a_look_finds_what_is_there_again_also_where_the_request_is_not_ready(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a, stateful: true}\n")
    desk.provide()
    desk.world.stacks["a"].exists = 0
    assert desk.provide().state is S.PARTIAL_FAILURE
    desk.world.stacks["a"].exists = 1
    assert (check(desk), desk.statuses()) == ([], {"a": "ok"})


@pytest.mark.parametrize("failing", ["stop", "retain"])
@pytest.mark.parametrize("how", ["vanished", "state lost", "as it was"])
def test_what_is_kept_is_looked_at_and_stays_kept(tmp_path: Path, failing: str, how: str) -> None:
    steps = f"  a: {{stack: a, stateful: true, on_failure: {failing}}}\n  b: {{stack: b, needs: [a]}}\n"
    desk = Desk(tmp_path, HEAD + "steps:\n" + steps)
    desk.world.faults["b"] = ["lost"]
    desk.provide()
    if failing == "stop":
        cancel(desk.context, CancelOptions("look at it", retain=timedelta(days=1), owner="me"))
    kept, stack = desk.request.step("a"), desk.world.stacks["a"]
    stack.exists, stack.in_state = {"vanished": (0, True), "state lost": (1, False), "as it was": (1, True)}[how]
    assert check(desk) == ([] if how == "as it was" else ["a"])
    assert desk.request.step("a") == kept
    assert (how != "as it was") == any(line.startswith("a: error: it") for line in desk.console.lines)


@pytest.mark.parametrize("gone", [True, False])
def test_what_a_failed_step_that_is_kept_has_made_is_looked_at(tmp_path: Path, gone: bool) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a, on_failure: retain}\n")
    desk.world.faults["a"] = ["refused"]
    desk.world.stacks["a"] = StandInStack(exists=1, in_state=True)
    kept = desk.provide().step("a")
    missing = ("x.never_made", "x.y") if gone else ("x.never_made",)
    desk.world.verify = lambda _: Verified(missing=missing)  # type: ignore[method-assign]
    assert check(desk) == (["a"] if gone else [])
    assert desk.request.step("a") == kept
    told = "a: error: it is to have x.y, which the provider does not have"
    assert (told in desk.console.lines) is gone


# A look beside others


def test_a_step_whose_part_of_the_file_was_edited_is_looked_at_as_it_was_made(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n  b: {stack: b}\n")
    desk.provide()
    desk.world.stacks["a"].exists = 0
    desk.text = desk.text.replace("{stack: a}", "{stack: elsewhere}")
    assert (check(desk), desk.statuses()["a"]) == (["a"], "error")


def test_a_step_that_cannot_be_looked_at_as_it_was_made_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n  b: {stack: b}\n")
    desk.provide()
    for kept in tmp_path.rglob("blueprint-*.yaml"):
        kept.unlink()
    desk.text = desk.text.replace("{stack: a}", "{stack: a, vars: {v: '1'}}")
    assert (check(desk), desk.statuses()["a"]) == (["a"], "ok")
    assert any(line.startswith("a: was not looked at") for line in desk.console.lines)


@pytest.mark.parametrize("how", ["destroyed", "repaired", "destroy killed"])
def test_a_look_writes_nothing_over_what_was_done_meanwhile(tmp_path: Path, how: str) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n  b: {stack: b}\n")
    desk.provide()
    desk.world.stacks["a"].exists = 0
    verify = desk.world.verify

    def meanwhile(call: StackCall) -> Verified:
        answer = verify(call)
        if call.place.directory.name == "a" and desk.world.verify is meanwhile:
            desk.world.verify = verify  # type: ignore[method-assign]
            if how == "repaired":
                desk.provide()
            elif how == "destroyed":
                desk.destroy()
            else:
                desk.world.crash_at = (len(desk.world.calls) + 1, False)
                with pytest.raises(Crash):
                    desk.destroy()
        return answer

    desk.world.verify = meanwhile  # type: ignore[method-assign]
    check(desk)
    step = desk.request.step("a")
    told = (step.status.value, step.undoing) if how != "destroy killed" else desk.request.state
    assert told == {"destroyed": ("destroyed", False), "repaired": ("ok", False), "destroy killed": S.SETTLED}[how]
    assert not step.missing
    assert any("what was seen is not written down" in line for line in desk.console.lines)


def test_what_a_look_has_written_is_counted(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n")
    desk.provide()
    desk.world.stacks["a"].exists = 0
    check(desk)
    journal = next(tmp_path.rglob("events.jsonl"))
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(CorruptRecordError, match="at least"):
        desk.context.requests.current()
