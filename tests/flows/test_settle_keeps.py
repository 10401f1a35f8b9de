"""What a later look keeps of an earlier one: everything that was seen, and a decision about just what it was about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfguard.flows.settle import with_earlier
from tfguard.flows.verify import _may_settle
from tfguard.model.evidence import Confidence
from tfguard.model.operation import ObservedObject, Outcome, Step
from tfguard.model.plan import Action

STEP = Step("a.b", "a", "p", Action.CREATE)


def seen(name: str, *, finding: bool = True) -> ObservedObject:
    """An object; `finding` tells whether somebody has to decide about it."""
    finding_id = f"o-{name}" if finding else None
    return ObservedObject("a", name, name, "aws", None, "global", False, Confidence.CERTAIN, finding_id)


@pytest.mark.parametrize(
    ("before", "after", "still_decided"),
    [
        ((seen("x"),), (seen("x"),), True),
        ((seen("x"),), (), True),
        ((seen("x"), seen("y")), (seen("y"),), True),
        ((seen("x"),), (seen("x"), seen("older", finding=False)), True),
        ((seen("x"),), (seen("x"), seen("y")), False),
        ((), (seen("y"),), False),  # said to be absent by a person, and there all the same
    ],
)
def test_a_decision_covers_what_was_seen_when_it_was_made_and_nothing_that_came_up_since(
    before: tuple[ObservedObject, ...], after: tuple[ObservedObject, ...], still_decided: bool
) -> None:
    old = replace(STEP, outcome=Outcome.ORPHANED, observed=before, disposition="retain")
    (kept,) = with_earlier([old], [replace(STEP, outcome=Outcome.ORPHANED, observed=after)])
    assert (kept.disposition == "retain") is still_decided
    assert kept.open is not still_decided


def test_what_is_not_seen_any_more_stays_known_as_seen_earlier() -> None:
    old = replace(STEP, outcome=Outcome.ORPHANED, observed=(seen("x"), seen("y")))
    (kept,) = with_earlier([old], [replace(STEP, outcome=Outcome.ORPHANED, observed=(seen("y"),))])
    assert [item.detail for item in kept.evidence] == ["seen earlier: x"]


def test_a_decision_about_a_deposed_object_is_none_about_the_current_one() -> None:
    deposed = replace(STEP, action=Action.NOOP, deposed="0a1b2c3d", outcome=Outcome.UNKNOWN)
    current = replace(deposed, deposed=None)
    before = [replace(deposed, disposition="confirmed-absent"), current]
    assert [kept.disposition for kept in with_earlier(before, [deposed, current])] == ["confirmed-absent", None]


def test_nobody_waits_for_what_is_decided() -> None:
    unknown = replace(STEP, outcome=Outcome.UNKNOWN)
    assert _may_settle(unknown)
    assert not _may_settle(replace(unknown, disposition="retain"))
