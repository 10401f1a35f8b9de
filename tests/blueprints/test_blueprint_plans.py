"""What the engine plans, what the blueprint has no more, and the list of requests, as their reports show them."""

from __future__ import annotations

from blueprint_scene import BEGUN, READY, S, St, ago, commands, event, made, view

from tfguard.model.blueprint_decision import Decision, DecisionKind
from tfguard.model.blueprint_request import Activity
from tfguard.model.blueprint_view import ListedRequest, PlanOutline
from tfguard.report.blueprint import blueprint_text, plan_text, requests_text
from tfguard.report.paint import Paint
from tfguard.schemas.blueprint import blueprint_document


def test_a_plan_counts_and_names_at_most_ten_objects_that_go() -> None:
    gone = tuple(f"x.d{n}" for n in range(8))
    anew = tuple(f"x.r{n}" for n in range(5))
    assert plan_text(PlanOutline(3, 1)) == "plan: 3 to add, 1 to change, 0 to destroy"
    told = plan_text(PlanOutline(5, 0, 13, gone, anew))
    assert told == (
        "plan: 5 to add, 0 to change, 13 to destroy: "
        "deletes x.d0, x.d1, x.d2, x.d3, x.d4, x.d5, x.d6, x.d7; replaces x.r0, x.r1 and 3 more"
    )
    assert plan_text(PlanOutline(by_outputs_of=("a",))).endswith(
        "(by the outputs that a gives now, before it is applied)"
    )
    assert plan_text(PlanOutline(untold="cannot be planned before a gives its outputs")).startswith("plan: cannot be")


def test_a_plan_stands_below_its_step() -> None:
    plans = {"identity": PlanOutline(1, 0, 1, ("x.gone",))}
    text = blueprint_text(view(BEGUN, plans=plans), Paint(False))
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if "identity (stack)" in line)
    assert "plan: 1 to add, 0 to change, 1 to destroy: deletes x.gone" in "\n".join(lines[at : at + 4])
    assert blueprint_document(view(BEGUN, plans=plans))["steps"][0]["plan"]["deleted"] == ["x.gone"]  # type: ignore[index]


def test_what_the_blueprint_has_no_more_is_to_be_destroyed_before_all_else() -> None:
    left = {"old": Decision(DecisionKind.DESTROY, "it is no longer in the blueprint", asks="take it away")}
    events = [*READY, event(80, step="old", status=St.OK, objects=(made("x.y", "1"),))]
    told = view(events, decisions=left, digest="other")
    assert commands(told)[:2] == ["destroy audit.yaml --step old", "status audit.yaml --probe"]
    assert not [one for one in commands(told) if one.startswith(("apply", "resume"))]
    assert "destroy: it is no longer in the blueprint" in blueprint_text(told, Paint(False))


def test_a_probe_step_that_left_the_blueprint_is_not_told_of() -> None:
    events = [
        *READY,
        event(80, step="old", status=St.RUNNING, activity=Activity.PROBE),
        event(79, step="old", status=St.OK),
    ]
    assert "old" not in [one.id for one in view(events).steps]


def test_requests_are_listed_a_line_each() -> None:
    listed = [
        ListedRequest("03", S.READY, "team", "cc", "ci@runner", ago(5)),
        ListedRequest("02", S.READY, "team", "cc", "ci@runner", ago(5), ready_now=True),
        ListedRequest("01", S.CLEANED, "", "", "ci@runner", ago(60), ago(30), archived=True),
        ListedRequest("00", archived=True, trouble="it is damaged"),
    ]
    assert requests_text(listed).splitlines() == [
        "03  Ready, but not now, begun 2026-03-01 11:55:00Z by ci@runner, owner team",
        "02  Ready, begun 2026-03-01 11:55:00Z by ci@runner, owner team",
        "01  Cleaned, begun 2026-03-01 11:00:00Z by ci@runner, ended 2026-03-01 11:30:00Z, archived",
        "00  cannot be read, archived: it is damaged",
    ]
