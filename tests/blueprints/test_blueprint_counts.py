"""What an alert asks of a blueprint's request."""

from __future__ import annotations

from datetime import timedelta

from blueprint_scene import BEGUN, FAILED, NOW, READY, S, St, event, made, view

from tfguard.model.blueprint_request import UNSEEN, Activity, BlueprintObject
from tfguard.reconcile.blueprint_counts import blueprint_counts, duplicates
from tfguard.report.metrics import blueprint_samples


def _told(**objects: tuple[BlueprintObject, ...]) -> list[str]:
    events = [event(9, step=name, status=St.OK, objects=found) for name, found in objects.items()]
    return list(duplicates(view([*BEGUN, *events]).steps))


def test_a_sound_request_counts_nothing() -> None:
    counts = blueprint_counts(view(READY))
    assert (counts.state, counts.stuck, counts.duplicates) == (S.READY, False, 0)
    assert (counts.overdue_age, counts.retained_overdue, counts.ready_probes_failing) == (0, 0, 0)
    assert counts.steps[St.OK] == 5


def test_one_id_of_two_steps_is_a_duplicate() -> None:
    told = _told(identity=(made("aws_iam_role.a", "app"),), binding=(made("aws_iam_role.b", "app"),))
    assert told == ["aws_iam_role app is an object of binding: aws_iam_role.b and of identity: aws_iam_role.a"]


def test_several_ids_of_one_address_are_one_duplicate() -> None:
    desired = {"name": "queue"}
    told = _told(identity=(made("q.a", "1", desired=desired), made("q.a", "2", desired=desired)))
    assert told == ["identity: q.a has 2 objects: 1, 2"]


def test_several_ids_of_one_planned_identity_are_a_duplicate() -> None:
    desired = {"name": "queue"}
    told = _told(identity=(made("q.a", "1", desired=desired),), binding=(made("q.b", "2", desired=desired),))
    assert told == ["identity: q.a and another address want one identity: 1, 2"]


def test_what_is_gone_given_up_of_another_type_or_of_unknown_id_is_no_duplicate() -> None:
    gone = event(8, step="binding", status=St.DESTROYED, objects=(made("q.b", "1"),))
    held = event(9, step="identity", status=St.OK, objects=(made("q.a", "1"), made("r.a", "1"), made("q.c", None)))
    given_up = tuple(made(f"q.{word}", "1", disposition=word) for word in ("destroy", "destroyed", UNSEEN))
    left = event(7, step="migrate", status=St.OK, objects=given_up)
    assert list(duplicates(view([*BEGUN, held, gone, left]).steps)) == []


def test_a_request_that_nobody_works_on_is_stuck_since_its_last_sign_of_life() -> None:
    events = [*BEGUN, event(30, step="identity", status=St.RUNNING)]
    counts = blueprint_counts(view(events))
    assert (counts.stuck, counts.stuck_age, counts.state_age) == (True, 30 * 60, 198 * 60)
    assert not blueprint_counts(view(events, live=True)).stuck
    assert not blueprint_counts(view(FAILED)).stuck


def test_a_partial_failure_counts_once_its_window_is_over_and_a_kept_step_once_its_date_is() -> None:
    assert not blueprint_counts(view(FAILED)).partial_failure_overdue
    late = blueprint_counts(view(FAILED, NOW + timedelta(days=1)))
    assert (late.partial_failure_overdue, late.retained_overdue, late.overdue_age) == (True, 0, 140 * 60)
    reviewed = view([*FAILED, event(9, state=S.RETAINED_FOR_REVIEW)], NOW + timedelta(days=14))
    counts = blueprint_counts(reviewed)
    assert (counts.partial_failure_overdue, counts.retained_overdue, counts.overdue_age) == (False, 1, 86400)


def test_a_failing_probe_counts_for_a_ready_request_alone() -> None:
    probe = event(5, "refused", probe="app-connection", status=St.ERROR)
    assert blueprint_counts(view([*READY, probe])).ready_probes_failing == 1
    assert blueprint_counts(view([*FAILED, probe])).ready_probes_failing == 0


def test_a_ready_whose_last_look_says_otherwise_is_counted_whatever_it_saw() -> None:
    gone = event(5, "it is to have x", step="database", status=St.ERROR, activity=Activity.VERIFY, missing=("x",))
    assert [blueprint_counts(view(events)).ready_not_now for events in (READY, [*READY, gone], FAILED)] == [0, 1, 0]
    (sample,) = [one for one in blueprint_samples([blueprint_counts(view([*READY, gone]))]) if "not_now" in one.name]
    assert (sample.name, sample.value) == ("tfguard_blueprint_ready_not_now", 1)
