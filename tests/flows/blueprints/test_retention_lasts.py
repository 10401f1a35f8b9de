"""What a person keeps for a time stays kept until it is gone or the request is Ready, whatever fails meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from request_stand_ins import HEAD, Crash, Desk

from tfguard.flows.blueprints.cancel import CancelOptions, cancel
from tfguard.flows.blueprints.take_away import TakeAwayOptions, take_away
from tfguard.model.blueprint_request import Request, RequestState
from tfguard.reconcile.blueprint_removal import removals
from tfguard.reconcile.blueprint_view import blueprint_view

S = RequestState
UNTIL = datetime(2026, 2, 18, tzinfo=UTC)
ONLY_A = TakeAwayOptions("over", stateful=True, steps=["a"])
TEXT = HEAD + (
    "steps:\n"
    "  a: {stack: a, on_failure: retain, retain_for: 7d}\n"
    "  b: {stack: b, compensate: {destroy: true}}\n"
    "  c: {stack: c, needs: [a, b]}\n"
)


def kept_by_auditors(folder: Path) -> Desk:
    """A request that has failed, and was kept for four weeks and a day."""
    desk = Desk(folder, TEXT.replace(", compensate: {destroy: true}", ""))
    desk.world.faults["c"] = ["refused"]
    desk.provide()
    review(desk, timedelta(days=29))
    desk.text = TEXT
    return desk


def review(desk: Desk, time: timedelta, owner: str = "auditors") -> Request:
    return cancel(desk.context, CancelOptions("for a review", retain=time, owner=owner))


def killed_while_it_destroys_a(desk: Desk) -> None:
    """Before the engine is called."""
    desk.world.crash_at = (len(desk.world.calls) + 1, False)
    with pytest.raises(Crash):
        take_away(desk.context, ONLY_A, lambda _: None)
    desk.world.crash_at = None


def promised(desk: Desk, name: str) -> tuple[object, str]:
    record = desk.request.step(name)
    return record.until.date() if record.until else None, record.owner


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_repair_that_fails_shortens_no_retention_and_changes_no_owner(tmp_path: Path, name: str) -> None:
    desk = kept_by_auditors(tmp_path)
    for _ in range(2):
        desk.world.faults["c"] = ["refused"]
        assert desk.provide().state is S.PARTIAL_FAILURE
        assert promised(desk, name) == (UNTIL.date(), "auditors")
        assert desk.statuses()[name] == "retained"
    desk.destroy()
    assert desk.world.stacks[name].exists == 1


def test_a_short_retention_by_a_person_is_made_no_longer_where_the_blueprint_does_not_say_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TEXT.replace("on_failure: retain, retain_for: 7d", "stateful: true"))
    desk.world.faults["b"] = ["refused"]
    desk.provide()
    until = review(desk, timedelta(hours=1)).step("a").until
    desk.world.faults["b"] = ["refused"]
    desk.provide()
    assert (desk.request.step("a").until, desk.statuses()["a"]) == (until, "retained")


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_a_repair_that_is_cut_short_leaves_it_kept(tmp_path: Path, how: str) -> None:
    desk = kept_by_auditors(tmp_path)
    desk.text = desk.text.replace("{stack: a,", "{stack: a, vars: {v: '1'},")
    if how == "killed":
        # Both have been applied again by then.
        desk.text = desk.text.replace("{stack: b,", "{stack: b, vars: {v: '1'},").replace(
            "name: b\n", "name: b\nparallel: 1\n"
        )
        desk.world.crash_at = (len(desk.world.calls) + 3, False)
        with pytest.raises(Crash):
            desk.provide()
        desk.world.crash_at = None
    else:
        desk.interrupt_at("apply")
        assert desk.provide().state is S.SETTLED
        desk.intents = 0
    told = removals(desk.context.blueprint, desk.request)
    assert told["a"] == told["b"] == "stays: it is retained until 2026-02-18; --dispose takes it away, too"
    desk.destroy()
    assert [desk.world.stacks[name].exists for name in "ab"] == [1, 1]
    assert promised(desk, "a") == promised(desk, "b") == (UNTIL.date(), "auditors")
    desk.clock.time = UNTIL + timedelta(days=1)
    seen = blueprint_view(desk.context.blueprint, desk.request, {}, desk.clock.now(), file="b.yaml")
    assert {step.id for step in seen.steps if step.overdue} == set("abc")
    assert any(action.command.endswith("b.yaml --dispose") for action in seen.next_actions)
    desk.destroy(dispose=True)
    assert promised(desk, "a") == (None, "")


def test_ready_ends_every_retention(tmp_path: Path) -> None:
    desk = kept_by_auditors(tmp_path)
    assert desk.provide().state is S.READY
    assert promised(desk, "a") == promised(desk, "b") == (None, "")
    desk.destroy()
    assert desk.request.state is S.CLEANED


def test_what_is_disposed_of_is_kept_no_longer_also_where_its_destroy_fails(tmp_path: Path) -> None:
    desk = kept_by_auditors(tmp_path)
    desk.world.faults["a"] = ["refused"]
    desk.destroy(dispose=True)
    assert promised(desk, "a") == (None, "")
    assert desk.destroy() is not None and desk.request.state is S.CLEANED


def test_what_is_kept_can_be_called_gone_by_a_person_s_word_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TEXT.replace(", needs: [a, b]", ""))
    desk.world.faults["c"] = ["refused"]
    desk.provide()
    review(desk, timedelta(days=29))
    desk.world.stacks["a"].in_state = False
    gone = TakeAwayOptions("over", steps=["a"], gone={"a": "removed by hand"})
    told = removals(desk.context.blueprint, desk.request, gone=gone.gone, steps=gone.steps)
    assert told["a"].startswith("is called gone")
    take_away(desk.context, gone, lambda _: None)
    assert (desk.statuses()["a"], desk.request.step("a").why) == ("absent", "gone, by a person's word: removed by hand")


def test_what_somebody_has_begun_to_destroy_is_not_kept_and_not_made_anew_by_a_resume(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path,
        HEAD + "steps:\n  a: {stack: a, stateful: true, on_failure: retain}\n"
        "  b: {stack: b, compensate: {destroy: true}}\n",
    )
    desk.provide()
    killed_while_it_destroys_a(desk)
    for _ in range(2):
        assert desk.provide().state is S.PARTIAL_FAILURE
        assert desk.statuses() == {"a": "error", "b": "ok"}
    take_away(desk.context, ONLY_A, lambda _: None)
    assert (desk.statuses()["a"], desk.world.stacks["a"].exists) == ("destroyed", 0)


def test_while_a_destroy_waits_for_a_word_nothing_is_compensated(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a, stateful: true}\n")
    desk.provide()
    killed_while_it_destroys_a(desk)
    desk.text += "  b: {stack: b, compensate: {destroy: true}}\n"
    desk.provide()
    assert desk.statuses() == {"a": "error", "b": "ok"}
    assert "b: not compensated: a waits for a person" in desk.console.lines
