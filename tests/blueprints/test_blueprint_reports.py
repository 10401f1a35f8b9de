"""A blueprint's request as text, as a picture and as counters."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from blueprint_scene import BEGUN, BLUEPRINT, FAILED, NOW, READY, S, St, event, made, view

from tfguard.model.blueprint import API_VERSION, KIND, Blueprint, BlueprintStep
from tfguard.model.blueprint_decision import Decision, DecisionKind
from tfguard.model.blueprint_request import Activity
from tfguard.model.blueprint_view import BlueprintView
from tfguard.reconcile.blueprint_counts import blueprint_counts
from tfguard.reconcile.blueprint_view import blueprint_view
from tfguard.report.blueprint import blueprint_text, tree
from tfguard.report.blueprint_svg import Box, blueprint_svg, layout
from tfguard.report.metrics import blueprint_samples, prometheus_text
from tfguard.report.paint import Paint

SVG = "{http://www.w3.org/2000/svg}"


def _large(count: int, *needs: int) -> BlueprintView:
    steps = {
        f"s{number}": BlueprintStep("stack", needs=tuple(f"s{number - back}" for back in needs if number >= back))
        for number in range(count)
    }
    return blueprint_view(Blueprint(API_VERSION, KIND, "large", steps), None, {}, NOW, file="large.yaml")


def test_the_text_tells_the_steps_what_they_made_and_what_is_next() -> None:
    text = blueprint_text(view(FAILED), Paint())
    assert text.splitlines()[0] == "audit-service (request 01J): PartialFailure for 2 h 20 min"
    assert "  steps: 1 error, 1 retained, 2 pending, 1 ok" in text
    assert re.search(r"^  error          migrate \(run\), .*owned by database$", text, re.M)
    assert "its command ended with 3" in text
    assert re.search(
        r"^  pending            smoke \(probe\), behind binding, held up by migrate \(error\)$", text, re.M
    )
    assert "aws_db_instance audit, created 2026-03-01 09:30:00Z, cost owner cc-7, holds data, retained until" in text
    assert text.rstrip().splitlines()[-1].startswith("  next: tfguard blueprint cancel audit.yaml --retain")


def test_what_a_service_said_cannot_command_a_terminal() -> None:
    failing = [*READY, event(5, "\x1b[2Jgone\nnext: rm", probe="app-connection", status=St.ERROR)]
    text = blueprint_text(view(failing), Paint())
    assert "\x1b" not in text
    assert "\nnext: rm" not in text
    assert "Ready for 1 h 30 min, but 1 probe failed when last asked" in text.splitlines()[0]


def test_the_headline_says_what_is_not_as_it_was() -> None:
    lost = {"database": Decision(DecisionKind.INSPECT, "its state is empty")}
    first = blueprint_text(view(READY, decisions=lost), Paint()).splitlines()[0]
    assert "Ready for 1 h 30 min, but database is not as it was" in first and "probe" not in first
    vanished = [*READY, event(5, "it is to have x", step="database", status=St.ERROR, activity=Activity.VERIFY)]
    assert "but database is not as it was" in blueprint_text(view(vanished), Paint()).splitlines()[0]


def test_no_object_of_a_step_that_is_said_to_hold_no_data_is_told_to_hold_some() -> None:
    said = {**BLUEPRINT.steps, "database": replace(BLUEPRINT.steps["database"], stateful=False)}
    seen = view(FAILED, blueprint=replace(BLUEPRINT, steps=said))
    for report in (lambda one: blueprint_text(one, Paint()), blueprint_svg):
        assert "holds data" in report(view(FAILED))
        assert "holds data" not in report(seen)


def test_an_object_of_a_kind_whose_id_is_not_kept_is_told_by_its_address() -> None:
    policy = made("aws_s3_bucket_policy.site", None)
    seen = view([*READY, event(5, "applied", step="identity", status=St.OK, objects=(policy,))])
    text, picture = blueprint_text(seen, Paint()), blueprint_svg(seen)
    assert "  aws_s3_bucket_policy.site, created 2026-03-01 09:30:00Z" in text
    assert ">aws_s3_bucket_policy.site</text>" in picture
    assert "unknown" not in text + picture, "nothing went wrong"


def test_why_a_step_failed_is_told_also_when_it_was_undone() -> None:
    undone = [
        *FAILED,
        event(5, "running", step="migrate", status=St.RUNNING, activity=Activity.COMPENSATE),
        event(4, "compensated", step="migrate", status=St.DESTROYED),
    ]
    for told in (blueprint_text(view(undone), Paint()), blueprint_svg(view(undone))):
        assert "it had failed: its command ended" in told
    assert "attempt" not in blueprint_text(view(undone), Paint()), "a compensation is none"


def test_every_step_stands_once_in_the_tree_below_one_of_its_needs() -> None:
    seen = _large(200, 3, 4)
    told = list(tree(seen.steps))
    assert sorted(step.id for step, _ in told) == sorted(step.id for step in seen.steps)
    above: dict[int, str] = {}
    for step, level in told:
        assert not step.needs if level == 0 else above[level - 1] in step.needs
        above[level] = step.id


def test_a_long_chain_stays_on_the_screen() -> None:
    lines = blueprint_text(_large(1000, 1), Paint()).splitlines()
    assert len(lines) < 1010
    assert max(map(len, lines)) < 100


def test_the_picture_is_one_sound_document_without_scripts_and_tells_each_status_as_text() -> None:
    picture = ElementTree.fromstring(blueprint_svg(view(FAILED)))
    assert picture.find(f"{SVG}title") is not None and picture.find(f"{SVG}desc") is not None
    assert not list(picture.iter(f"{SVG}script")) and "href" not in blueprint_svg(view(FAILED))
    words = {
        group.get("data-step"): " ".join(text.text or "" for text in group.iter(f"{SVG}text"))
        for group in picture.iter(f"{SVG}g")
    }
    assert set(words) == {"identity", "database", "migrate", "binding", "smoke"}
    assert "retained (stack)" in words["database"] and "error (run)" in words["migrate"]
    asks = {"migrate": Decision(DecisionKind.INSPECT, "it was begun", asks="find out")}
    assert ">inspect: it was begun</text>" in blueprint_svg(view(FAILED, decisions=asks))
    dashed = [line for line in picture.iter(f"{SVG}path") if "dasharray" in str(line.attrib)]
    assert len(dashed) == 2  # migrate, which the database owns, and the legend


def test_whatever_text_the_picture_holds_is_escaped() -> None:
    bad = "</text><script>alert('&')</script>\x00\x1b\ud800"
    found = made("q.a", bad, desired={bad: bad})
    events = [*BEGUN, event(9, bad, step="identity", status=St.ERROR, objects=(found,))]
    seen = replace(view([*events, event(8, bad, state=S.PARTIAL_FAILURE)]), blueprint=bad, owner=bad, notes=(bad,))
    text = blueprint_svg(seen)
    assert "<script" not in text
    assert not list(ElementTree.fromstring(text).iter(f"{SVG}script"))


def _apart(one: Box, other: Box) -> bool:
    across = one.x + one.width <= other.x or other.x + other.width <= one.x
    return across or one.y + one.height <= other.y or other.y + other.height <= one.y


@pytest.mark.parametrize("needs", [(), (1,), (7, 8), (300,)])
def test_no_two_boxes_of_a_large_picture_touch(needs: tuple[int, ...]) -> None:
    boxes = layout(_large(1000, *needs).steps, 0, 0)
    assert len(boxes) == 1000
    by_row: dict[float, list[Box]] = {}
    for box in boxes.values():
        by_row.setdefault(box.y, []).append(box)
    rows = sorted(by_row)
    assert all(below - above >= by_row[above][0].height for above, below in pairwise(rows))
    assert all(_apart(*pair) for row in by_row.values() for pair in combinations(row, 2))


def test_no_line_of_a_picture_passes_behind_a_box() -> None:
    seen = _large(120, 1, 9, 40)
    boxes = layout(seen.steps, 56, 100)
    picture = ElementTree.fromstring(blueprint_svg(seen))
    routes = [path.get("d", "") for path in picture.iter(f"{SVG}path") if "V" in path.get("d", "")]
    rects = [
        tuple(float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
        for group in picture.iter(f"{SVG}g")
        for rect in group.iter(f"{SVG}rect")
    ]
    assert len(routes) > 100 and len(rects) == len(boxes)
    for route in routes:
        match = re.fullmatch(r"M(\S+) (\S+)H(\S+)V(\S+)H(\S+)V(\S+)H(\S+)", route)
        assert match
        x1, y1, gx1, lane, gx2, y2, x2 = map(float, match.groups())
        parts = [
            (x1, y1, gx1, y1),
            (gx1, y1, gx1, lane),
            (gx1, lane, gx2, lane),
            (gx2, lane, gx2, y2),
            (gx2, y2, x2, y2),
        ]
        for ax, ay, bx, by in parts:
            for x, y, width, height in rects:
                inside_x = max(min(ax, bx), x + 1) < min(max(ax, bx), x + width - 1) or x + 1 < ax == bx < x + width - 1
                inside_y = (
                    max(min(ay, by), y + 1) < min(max(ay, by), y + height - 1) or y + 1 < ay == by < y + height - 1
                )
                assert not (inside_x and inside_y), (route, x, y)


def test_the_counters_of_a_blueprint_are_told_by_its_name_and_file() -> None:
    counts = blueprint_counts(view(FAILED, NOW + timedelta(days=1)))
    text = prometheus_text(blueprint_samples([counts]))
    which = 'blueprint="audit-service",file="audit.yaml"'
    assert f'tfguard_blueprint_state{{{which},state="PartialFailure"}} 1\n' in text
    assert f'tfguard_blueprint_state{{{which},state="Ready"}} 0\n' in text
    assert f"tfguard_blueprint_partial_failure_overdue{{{which}}} 1\n" in text
    assert f'tfguard_blueprint_steps{{{which},status="pending"}} 2\n' in text
    assert len(set(text.splitlines())) == len(text.splitlines())


def test_what_a_destroy_of_one_step_took_away_is_told_as_that_and_as_no_fault() -> None:
    taken = [*READY, event(5, "destroyed, and verified to be gone", step="binding", status=St.DESTROYED)]
    first, *others = blueprint_text(view(taken), Paint()).splitlines()
    assert "but binding was taken away by `destroy --step`" in first and "not as" not in first
    assert any("step binding taken away by `destroy --step`: `apply` makes that anew" in line for line in others)
