"""What the owner of a blueprint's request sees, and the next commands."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from blueprint_scene import (
    BEGUN,
    BLUEPRINT,
    FAILED,
    IDENTITY,
    NOW,
    READY,
    S,
    St,
    commands,
    event,
    made,
    step,
    view,
)

from tfguard.model.blueprint import BlueprintInput, InputType
from tfguard.model.blueprint_decision import Decision, DecisionKind
from tfguard.model.blueprint_request import UNSEEN, Activity


def test_what_was_not_attempted_is_pending_and_says_behind_what() -> None:
    seen = view(FAILED)
    assert [(one.id, one.status.value) for one in seen.steps] == [
        ("identity", "ok"),
        ("database", "retained"),
        ("migrate", "error"),
        ("binding", "pending"),
        ("smoke", "pending"),
    ]
    assert (step(seen, "migrate").blocked_by, step(seen, "database").blocked_by) == ((), ())
    assert (step(seen, "binding").blocked_by, step(seen, "binding").held_up_by) == (("migrate",), ("migrate",))
    assert (step(seen, "smoke").blocked_by, step(seen, "smoke").held_up_by) == (("binding",), ("migrate",))
    assert step(seen, "smoke").reason == "waits for binding"


def test_a_retained_object_says_until_when_for_whom_and_who_pays() -> None:
    (found,) = step(view(FAILED), "database").objects
    assert (found.disposition, found.owner, found.cost_owner) == ("retain", "dba", "cc-7")
    assert found.until == NOW + timedelta(days=13)
    (role,) = step(view(FAILED), "identity").objects
    assert (role.disposition, role.owner, role.cost_owner) == (None, "audit-team", "cc-1042")


def test_a_partial_failure_offers_repair_disposal_and_a_review() -> None:
    asks = Decision(DecisionKind.INSPECT, "it was begun", asks="find out")
    assert commands(view(FAILED, decisions={"migrate": asks})) == [
        "resume audit.yaml --done migrate --reason TEXT",
        "resume audit.yaml --again migrate --reason TEXT",
        "destroy audit.yaml",
        "destroy audit.yaml --dispose --stateful",
        "cancel audit.yaml --retain",
    ]


def test_a_plain_resume_is_offered_where_something_would_come_of_it() -> None:
    asks = Decision(DecisionKind.INSPECT, "it was begun", asks="find out")
    behind = Decision(DecisionKind.WAIT, "waits for migrate", ("migrate",))
    seen = view(FAILED, decisions={"migrate": asks, "binding": behind})
    assert "resume audit.yaml" not in commands(seen), "a person's word comes first"
    also = {"migrate": asks, "binding": behind, "identity": Decision(DecisionKind.RUN, "changed")}
    assert "resume audit.yaml" in commands(view(FAILED, decisions=also))
    settle = view(FAILED, decisions={"database": asks})
    assert "go on, when database is settled" in [action.why for action in settle.next_actions]


def test_a_word_about_a_compensation_is_asked_for_as_such() -> None:
    undo = Decision(DecisionKind.UNDO, "its compensation was begun", asks="find out")
    seen = view(FAILED, decisions={"binding": undo})
    assert "if the compensation of binding has done its work" in [action.why for action in seen.next_actions]


def test_a_stack_that_a_person_has_to_settle_is_named_with_its_folder() -> None:
    unsettled = Decision(DecisionKind.INSPECT, "operation 1 is not settled")
    actions = view(FAILED, decisions={"database": unsettled}, folder="live").next_actions
    assert actions[0].command == "tfguard '-chdir=live/stacks/the db' status"


def test_the_environment_of_a_step_stands_before_the_look_at_its_stack() -> None:
    said = {"AWS_PROFILE": "prod eu", "TOKEN": "${inputs.token}"}
    steps = {**BLUEPRINT.steps, "database": replace(BLUEPRINT.steps["database"], environment=said, workspace="blue")}
    unsettled = Decision(DecisionKind.INSPECT, "operation 1 is not settled")
    seen = view(FAILED, decisions={"database": unsettled}, blueprint=replace(BLUEPRINT, steps=steps))
    assert seen.next_actions[0].command.startswith("AWS_PROFILE='prod eu' TF_WORKSPACE=blue tfguard ")


@pytest.mark.parametrize(
    ("events", "live", "expected"),
    [
        (None, False, ["apply audit.yaml"]),
        (BEGUN, True, ["cancel audit.yaml"]),
        (BEGUN, False, ["resume audit.yaml", "destroy audit.yaml", "cancel audit.yaml"]),
        ([*BEGUN, event(9, state=S.CANCEL_PENDING)], True, ["cancel audit.yaml --interrupt"]),
        ([*BEGUN, event(9, state=S.CANCEL_PENDING)], False, ["cancel audit.yaml", "destroy audit.yaml"]),
        (
            [*BEGUN, *IDENTITY, event(9, state=S.CANCEL_PENDING), event(8, state=S.SETTLED)],
            False,
            ["destroy audit.yaml", "cancel audit.yaml --retain"],
        ),
        (
            [*BEGUN, event(9, state=S.CANCEL_PENDING), event(8, state=S.SETTLED), event(7, state=S.CLEANED)],
            False,
            ["apply audit.yaml"],
        ),
        (
            [*FAILED, event(9, state=S.RETAINED_FOR_REVIEW)],
            False,
            ["resume audit.yaml", "destroy audit.yaml", "destroy audit.yaml --dispose --stateful"],
        ),
        (
            READY,
            False,
            ["status audit.yaml --probe", "destroy audit.yaml", "destroy audit.yaml --stateful"],
        ),
    ],
)
def test_each_state_has_its_next_commands(events: list[object] | None, live: bool, expected: list[str]) -> None:
    assert commands(view(events, live=live)) == expected  # type: ignore[arg-type]


INPUTS = {
    "site": BlueprintInput(required=True),
    "size": BlueprintInput(InputType.NUMBER, default=1),
    "debug": BlueprintInput(InputType.BOOL),
    "password": BlueprintInput(required=True, sensitive=True),
}
WITH_INPUTS = replace(BLUEPRINT, inputs=INPUTS)
GIVEN = {"site": "a b", "size": 1, "debug": True, "password": "env:PW", "unknown": "x"}
APPLY = "apply audit.yaml --input 'site=a b' --input debug=true --input password=env:PW"
OVER = [*BEGUN, event(9, state=S.CANCEL_PENDING), event(8, state=S.SETTLED), event(7, state=S.CLEANED)]


@pytest.mark.parametrize(
    ("events", "given", "expected"),
    [
        (None, None, "apply audit.yaml --input site=VALUE --input password=env:NAME"),
        (None, GIVEN, APPLY),
        (None, {"site": "x", "password": "in clear"}, "apply audit.yaml --input site=x --input password=env:NAME"),
        ([event(199, inputs=GIVEN), *OVER], None, APPLY),
        ([event(199, inputs=GIVEN), *READY], {**GIVEN, "size": 2}, "apply audit.yaml --input size=2"),
        ([event(199, inputs=GIVEN), *FAILED], {**GIVEN, "size": 2}, "apply audit.yaml --input size=2"),
        ([event(199, inputs=GIVEN), *FAILED], None, "resume audit.yaml"),
        (FAILED, None, "apply audit.yaml --input site=VALUE --input password=env:NAME"),
    ],
)
def test_the_next_apply_gives_the_inputs_that_it_needs(
    events: list[object] | None, given: dict[str, object] | None, expected: str
) -> None:
    seen = view(events, blueprint=WITH_INPUTS, inputs=given)  # type: ignore[arg-type]
    going_on = [one for one in commands(seen) if one.startswith(("apply", "resume"))]
    assert going_on == [expected]


def test_how_an_input_is_changed_is_told_where_it_failed() -> None:
    assert "`apply --input NAME=VALUE`" not in " ".join(action.why for action in view(FAILED).next_actions)
    seen = view([event(199, inputs=GIVEN), *FAILED], blueprint=WITH_INPUTS)
    assert "go on: only what is not done is done; `apply --input NAME=VALUE` does so with another input" in [
        action.why for action in seen.next_actions
    ]


def test_a_ready_whose_probe_fails_is_not_ready_now() -> None:
    assert view(READY).ready_now
    seen = view([*READY, event(5, "refused", probe="app-connection", status=St.ERROR)])
    assert (seen.state, seen.ready_now, seen.failing_probes) == (S.READY, False, ("app-connection",))
    assert seen.notes == ("it was Ready, and is not now: probe app-connection failed when last asked",)
    assert "resume audit.yaml" in commands(seen)


def test_a_ready_whose_probe_was_never_asked_is_not_known_to_be_ready_now() -> None:
    seen = view([one for one in READY if one.probe is None])
    assert (seen.state, seen.ready_now, seen.failing_probes) == (S.READY, False, ())
    assert seen.notes == ("probe app-connection was never asked: whether it is Ready is not known",)


def test_a_request_that_is_over_is_not_stuck_whatever_its_steps_say() -> None:
    over = [event(9 - number, state=state) for number, state in enumerate((S.CANCEL_PENDING, S.SETTLED, S.CLEANED))]
    seen = view([*BEGUN, IDENTITY[0], *over])
    assert (seen.state, seen.stuck, seen.notes) == (S.CLEANED, False, ())


def test_what_was_not_seen_is_not_called_destroyed_with_its_step() -> None:
    objects = (made("q.seen", "1"), made("q.unseen", "2", disposition=UNSEEN))
    gone = event(9, step="identity", status=St.DESTROYED, objects=objects)
    assert [one.disposition for one in step(view([*BEGUN, gone]), "identity").objects] == ["destroy", UNSEEN]


def test_a_request_under_way_without_a_tfguard_is_stuck_and_what_ran_is_not_known() -> None:
    running = [*BEGUN, IDENTITY[0]]
    seen = view(running)
    assert (seen.stuck, step(seen, "identity").interrupted) == (True, True)
    assert seen.moved_at == IDENTITY[0].at
    alone = view([*READY, event(9, "destroying", step="identity", status=St.RUNNING, activity=Activity.DESTROY)])
    assert (alone.state, alone.stuck, alone.ready_now) == (S.READY, True, False), "its --step was killed"
    alive = view(running, live=True)
    assert (alive.stuck, step(alive, "identity").interrupted, alive.notes) == (False, False, ())


def test_a_repair_that_fails_again_does_not_begin_a_new_window() -> None:
    again = [*FAILED, event(60, state=S.REPAIRING), event(50, "again", state=S.PARTIAL_FAILURE)]
    assert not view(again).overdue
    late = view(again, NOW + timedelta(hours=21, minutes=41))
    assert late.overdue and late.failing_since == FAILED[-2].at
    assert "was to be repaired within 1d" in late.notes[0]


def test_what_is_kept_beyond_its_date_is_overdue() -> None:
    seen = view([*FAILED, event(9, state=S.RETAINED_FOR_REVIEW)], NOW + timedelta(days=14))
    assert seen.overdue and step(seen, "database").overdue
    assert seen.notes == ("step database kept beyond the date: repair it, or dispose of it",)


def test_a_step_that_left_the_blueprint_and_was_made_is_still_told() -> None:
    smaller = replace(BLUEPRINT, steps={"identity": BLUEPRINT.steps["identity"]})
    seen = view(FAILED, blueprint=smaller)
    assert [(one.id, one.kind) for one in seen.steps if one.kind is None] == [("database", None), ("migrate", None)]
    assert "not in the blueprint any more" in seen.notes[0]


def test_before_anything_is_on_record_every_step_is_pending() -> None:
    seen = view(None, owner="somebody")
    assert {one.status for one in seen.steps} == {St.PENDING}
    assert (seen.state, seen.owner, seen.stuck) == (None, "audit-team", False)


@pytest.mark.parametrize("kind", [DecisionKind.INSPECT, DecisionKind.ADOPT])
def test_a_ready_whose_stack_says_something_else_by_now_is_not_ready_now(kind: DecisionKind) -> None:
    seen = view(READY, decisions={"database": Decision(kind, "its state is empty")})
    assert (seen.state, seen.ready_now) == (S.READY, False)
    assert "it was Ready, and is not now: see step database" in seen.notes
    assert view(READY, decisions={"migrate": Decision(DecisionKind.INSPECT, "its check is asked")}).ready_now
