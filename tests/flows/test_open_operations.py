"""The next run starts at the gap: what it does about an operation that was left open."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_records import Heard
from test_story import SINCE, FakeEngine, make_context, make_intent, start
from test_verify import Answer, answers, listing, role

from tfguard.errors import OpenOperationError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.open_operations import settle_open_operations
from tfguard.model.config import OnGap
from tfguard.model.operation import StreamHealth

APP_BEGUN = FakeEngine(([start("aws_iam_role.app")], StreamHealth(whole=True)))
THERE, NOT_THERE = answers(listing(role(created=SINCE))), answers(listing())


def unsettled(tmp_path: Path, answer: Answer) -> StackContext:
    """A stack on which a run was killed while it made a role."""
    context = make_context(tmp_path, answer, engine=APP_BEGUN)
    context.records.begin(make_intent(tmp_path), ())
    return context


@pytest.mark.parametrize("reason", [None, ""])
def test_an_open_operation_is_not_ignored_without_a_reason(tmp_path: Path, reason: str | None) -> None:
    context = unsettled(tmp_path, THERE)
    with pytest.raises(UsageError, match="operation 01A is open") as raised:
        settle_open_operations(context, OnGap.IGNORE, reason, ())
    assert "--reason" in raised.value.advice
    assert context.records.head().open_operations == ("01A",)
    assert context.records.awaits_outcome("01A"), "nothing was looked up"


@pytest.mark.parametrize("on_gap", list(OnGap))
def test_where_nothing_is_open_no_reason_is_needed(tmp_path: Path, on_gap: OnGap) -> None:
    context = make_context(tmp_path, THERE)
    assert settle_open_operations(context, on_gap, None, ()) == ()


def test_an_open_operation_that_is_ignored_for_a_reason_is_told_with_the_reason(tmp_path: Path) -> None:
    context = unsettled(tmp_path, THERE)
    assert settle_open_operations(context, OnGap.IGNORE, "a teardown", ()) == ("01A",)
    assert isinstance(context.console, Heard)
    (line,) = context.console.lines
    assert ("01A" in line, "a teardown" in line) == (True, True)


def test_an_operation_that_a_look_settles_does_not_stand_in_the_way(tmp_path: Path) -> None:
    context = unsettled(tmp_path, NOT_THERE)
    assert settle_open_operations(context, OnGap.RECONCILE, None, ()) == ()
    assert context.records.head().open_operations == ()


@pytest.mark.parametrize(
    ("on_gap", "answer", "words"),
    [
        (OnGap.RECONCILE, THERE, "aws_iam_role.app is orphaned: app (o-"),
        (OnGap.BLOCK, NOT_THERE, "aws_iam_role.app is not looked up"),
    ],
)
def test_an_operation_that_stays_open_stops_the_run_and_says_what_it_is(
    tmp_path: Path, on_gap: OnGap, answer: Answer, words: str
) -> None:
    context = unsettled(tmp_path, answer)
    with pytest.raises(OpenOperationError) as raised:
        settle_open_operations(context, on_gap, None, ())
    assert words in raised.value.what
    assert context.records.head().open_operations == ("01A",)
