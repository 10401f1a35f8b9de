"""What waits for a person's word, or is kept, is undone by no failure; a word counts for the work that it was about."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from request_stand_ins import HEAD, Crash, Desk

from tfguard.blueprint_ports import StackCall, StackLook, StackPlace, Verified
from tfguard.errors import UsageError
from tfguard.flows.blueprints.cancel import CancelOptions, cancel
from tfguard.flows.blueprints.take_away import TakeAwayOptions, take_away
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import RequestState
from tfguard.reconcile.blueprint_view import blueprint_view

S = RequestState
TWO = HEAD + "steps:\n  two: {stack: two, compensate: {destroy: true}}\n"
OWNED = TWO + "  work: {run: [w], needs: [two], owned_by: two}\n"
CHECKED = OWNED.replace("{run: [w],", "{run: [w], check: [is-done],")
TWICE = HEAD + "steps:\n  good: {run: [mk, a]}\n  bad: {run: [mk, b], needs: [good]}\n"


def killed_in(desk: Desk, call: int, *, after: bool) -> None:
    desk.world.crash_at = (call, after)
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at = None
    desk.world.calls.clear()


# What waits for a person


def test_a_command_that_waits_for_a_word_undoes_nothing_beside_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OWNED)
    killed_in(desk, 2, after=True)
    request = desk.provide()
    assert request.state is S.PARTIAL_FAILURE
    assert desk.world.calls == []
    assert desk.world.stacks["two"].exists == 1
    assert any("two: not compensated: work waits for a person" in line for line in desk.console.lines)
    assert desk.provide({"work": Told(True, "seen")}).state is S.READY


def test_a_check_that_cannot_tell_undoes_nothing_beside_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, CHECKED)
    desk.world.faults["work"] = ["1"]
    killed_in(desk, 3, after=True)
    desk.world.faults["work"] = ["7"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.world.calls == [("is-done", "work")]


def test_a_command_that_fails_now_is_still_compensated(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OWNED)
    killed_in(desk, 2, after=True)
    desk.world.faults["work"] = ["1"]
    assert desk.provide({"work": Told(False, "nothing there")}).state is S.PARTIAL_FAILURE
    assert desk.world.calls == [("w", "work"), ("destroy", "two")]


@pytest.mark.parametrize("how", ["look", "verify"])
def test_what_cannot_be_looked_at_undoes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    desk = Desk(tmp_path, TWO + "  b: {stack: b, needs: [two]}\n")
    of, answer = desk.world.of, StackLook(failure="no") if how == "look" else Verified(failure="no")
    real = getattr(desk.world, how)

    def failing(given: StackPlace | StackCall) -> object:
        place = given.place if isinstance(given, StackCall) else given
        return answer if place.directory.name == "b" and (how == "look" or of(place).in_state) else real(given)

    monkeypatch.setattr(desk.world, how, failing)
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert not any(what == "destroy" for what, _ in desk.world.calls)


# What is kept


@pytest.mark.parametrize("again", [False, True])
def test_what_a_person_keeps_is_not_undone_when_a_resume_fails(tmp_path: Path, again: bool) -> None:
    desk = Desk(tmp_path, TWO + "  b: {stack: b, needs: [two]}\n")
    killed_in(desk, 2, after=False)
    cancel(desk.context, CancelOptions("over"))
    cancel(desk.context, CancelOptions("look at it", retain=timedelta(days=1), owner="team"))
    assert desk.request.step("two").status.value == "retained"
    desk.world.faults["b"] = ["refused", "refused"]
    told = {"two": Told(False, "anew")} if again else {}
    for words in (told, {}):
        assert desk.provide(words).state is S.PARTIAL_FAILURE
        assert ("destroy", "two") not in desk.world.calls


# What a word is about


def test_a_word_about_work_whose_owner_is_gone_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OWNED)
    desk.world.faults["work"] = ["1"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.statuses() == {"two": "destroyed", "work": "error"}
    desk.world.calls.clear()
    with pytest.raises(UsageError, match="two is gone, and its work with it"):
        desk.provide({"work": Told(True, "seen")})
    assert desk.world.calls == []
    assert desk.provide().state is S.READY
    assert desk.world.calls == [("apply", "two"), ("w", "work")]


def test_a_word_counts_for_no_owner_that_is_made_anew_in_the_same_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OWNED)
    killed_in(desk, 2, after=True)
    desk.world.stacks["two"].exists = 0  # and it is made anew by what follows
    request = desk.provide({"work": Told(True, "seen")})
    assert desk.world.calls[:1] == [("apply", "two")]
    assert request.state is S.READY
    assert ("w", "work") in desk.world.calls, "its work was gone with its owner"


def test_a_word_counts_where_the_owner_was_made_anew_before_it_was_given(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OWNED)
    desk.world.faults["work"] = ["1"]
    desk.provide()
    desk.world.faults["work"] = ["1"]
    killed_in(desk, len(desk.world.calls) + 2, after=True)
    assert desk.provide({"work": Told(True, "done by hand")}).state is S.READY
    assert desk.world.calls == []


# What nothing undoes


def test_work_that_nothing_undoes_is_gone_on_a_word_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWICE)
    desk.world.faults["bad"] = ["1"]
    desk.provide()
    for gone in ({}, {"bad": "removed"}):
        request = desk.destroy(gone=gone)
        assert request is not None and request.state is S.SETTLED
        assert any("good: stays" in line and "--gone good" in line for line in desk.console.lines)
    seen = blueprint_view(desk.context.blueprint, desk.request, {}, desk.clock.now(), file="b.yaml")
    assert seen.next_actions[0].command == "tfguard blueprint destroy b.yaml --gone good --reason TEXT"
    request = desk.destroy(gone={"good": "removed"})
    assert request is not None and request.state is S.CLEANED
    assert desk.statuses() == {"good": "absent", "bad": "absent"}


def test_work_that_nothing_undoes_is_in_nobody_s_way(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n  tell: {run: [tell], needs: [a]}\n")
    desk.provide()
    request = desk.destroy()
    assert request is not None and request.state is S.SETTLED
    assert desk.statuses() == {"a": "destroyed", "tell": "ok"}
    request = desk.destroy(gone={"tell": "an announcement"})
    assert request is not None and request.state is S.CLEANED


# What is told meanwhile


def test_who_waits_for_a_probe_is_told_what_it_said_and_until_when_it_is_asked(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {run: [w]}\nready:\n  probes: [{name: p, tcp: 'x:1', within: 5m}]\n")
    desk.world.services["p"] = False
    desk.provide()
    lines = [line for line in desk.console.lines if line.startswith("probe p: ")]
    assert lines[0].startswith("probe p: not yet: refused; asked again until 00:05:0")
    assert lines[1].startswith("probe p: still asked, 3")
    assert 3 <= len(lines) <= 5


def test_who_waits_for_a_command_of_an_earlier_run_is_told_so_now_and_then(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {run: [w]}\n")
    killed_in(desk, 1, after=True)
    desk.world.running["a"] = 300
    cancel(desk.context, CancelOptions("over"))
    assert 3 <= len([line for line in desk.console.lines if "still runs" in line]) <= 5


def test_a_step_that_begins_is_not_called_not_begun(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OWNED)
    desk.provide()
    assert {"two: begins", "work: begins"} <= set(desk.console.lines)
    assert not any("not begun" in line for line in desk.console.lines)


def test_a_lost_state_names_the_word_that_ends_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n")
    desk.provide()
    desk.world.stacks["a"].in_state = False
    desk.provide()
    assert any("`destroy --step a --gone a --reason TEXT`" in line for line in desk.console.lines)
    take_away(desk.context, TakeAwayOptions("x", gone={"a": "removed by hand"}, steps=("a",)), lambda _: None)
    assert desk.statuses() == {"a": "absent"}
