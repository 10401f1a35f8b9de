"""Small values: durations, ids, what is open, what a plan changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfguard.model.config import AwsAccount, Config, IgnoreRule, Retention, format_duration, parse_duration
from tfguard.model.ids import month_of, months_of, new_operation_id, time_of
from tfguard.model.inventory import CloudObject, Coverage, Gap, Listing, Scope
from tfguard.model.operation import (
    ErroredState,
    OperationStatus,
    Outcome,
    Result,
    Step,
)
from tfguard.model.plan import Action, Plan, PlannedChange
from tfguard.model.request import Approval
from tfguard.model.state import StateInstance, StateSnapshot

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"), [("0s", 0), ("30s", 30), ("2m", 120), ("1h30m", 5400), ("14d", 1209600), ("1d1s", 86401)]
)
def test_a_duration_is_numbers_with_units(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "m", "1.5h", "-1s", "1 m", "1w", "1M", "١m", "999999999d" * 9, "2m\n"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(0, 10**8))
def test_a_duration_reads_back_as_it_was_written(seconds: int) -> None:
    assert parse_duration(format_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


def test_impossible_settings_are_refused() -> None:
    for make in (
        lambda: Retention(timedelta(days=2), timedelta(days=1)),
        lambda: AwsAccount("12345"),
        lambda: AwsAccount("١٢٣٤٥٦٧٨٩٠١٢"),
        lambda: IgnoreRule("aws_vpc", " "),
        lambda: Config(records="somewhere"),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            make()


@given(st.lists(st.datetimes(datetime(2020, 1, 1), datetime(2090, 1, 1)), min_size=2, max_size=5))
def test_operation_ids_sort_by_time_and_differ(times: list[datetime]) -> None:
    stamped = [time.replace(microsecond=0, tzinfo=UTC) for time in times]
    ids = [new_operation_id(time) for time in stamped]
    assert len(set(ids)) == len(ids)
    assert all(len(each) == 26 for each in ids)
    by_id = [time for _, time in sorted(zip(ids, stamped, strict=True))]
    assert by_id == sorted(stamped)


OBJECT = CloudObject("aws", "1", "eu-west-1", "aws_vpc", "vpc-1", "vpc-1")


def test_a_finding_is_the_same_in_every_scan_whatever_else_is_known_of_the_object() -> None:
    richer = replace(OBJECT, identity={"id": "vpc-1"}, arn="arn", name="n", created_at=NOW, tags={"a": "b"})
    assert richer.finding_id == OBJECT.finding_id
    assert OBJECT.finding_id.startswith("o-")


@pytest.mark.parametrize("field", ["cloud", "account", "region", "type", "import_id"])
def test_each_part_of_an_objects_identity_makes_another_finding(field: str) -> None:
    assert replace(OBJECT, **{field: "other"}).finding_id != OBJECT.finding_id


def test_a_listing_or_look_with_a_gap_is_not_complete() -> None:
    gap = Gap("aws 1", "AccessDenied")
    where = Scope("aws", None, "eu-west-1")
    assert (Listing("aws_vpc", where).complete, Listing("aws_vpc", where, gap=gap).complete) == (True, False)
    assert (Coverage().complete, Coverage(gaps=(gap,)).complete) == (True, False)
    assert str(where) == "aws unknown-account eu-west-1"


STEP = Step("a.b", "a", "p", Action.CREATE)


def result(*steps: Step, **fields: object) -> Result:
    """A result with these steps."""
    base = Result("01A", OperationStatus.OK, NOW, steps)
    return replace(base, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given_result", "is_open"),
    [
        (result(), False),
        *((result(replace(STEP, outcome=outcome)), outcome.needs_action) for outcome in Outcome),
        *(
            (result(replace(STEP, outcome=outcome, disposition="retain")), False)
            for outcome in Outcome
            if outcome.needs_action
        ),
        (result(STEP), False),
        (result(status=OperationStatus.RUNNING), True),
        (result(errored_state=ErroredState("p", None, "l", 1)), True),
        (result(errored_state=ErroredState("p", None, "l", 1, pushed=True)), False),
        (result(replace(STEP, outcome=Outcome.RECORDED), replace(STEP, outcome=Outcome.UNKNOWN)), True),
    ],
)
def test_an_operation_is_open_as_long_as_something_has_to_be_decided(given_result: Result, is_open: bool) -> None:
    assert given_result.open is is_open


def test_orphaned_duplicated_and_unknown_alone_need_an_action() -> None:
    assert {outcome for outcome in Outcome if outcome.needs_action} == {
        Outcome.ORPHANED,
        Outcome.DUPLICATED,
        Outcome.UNKNOWN,
    }


def change(action: Action, importing: str | None = None) -> PlannedChange:
    """One change."""
    return PlannedChange("a.b", "a", "p", action, importing=importing)


@pytest.mark.parametrize(
    ("plan", "asks_nothing"),
    [
        (Plan("1", ()), True),
        (Plan("1", (change(Action.NOOP), change(Action.READ))), True),
        (Plan("1", (change(Action.NOOP, "id"),)), False),
        (Plan("1", (change(Action.CREATE),)), False),
        (Plan("1", (), changes_outputs=True), False),
        (Plan("1", (change(Action.NOOP, ""),)), False),
        (Plan("1", (replace(change(Action.NOOP), previous_address="a.a"),)), False),
        (Plan("1", (), reads=True), False),
        (Plan("1", (), drifted=True), True),
        (Plan("1", (change(Action.CREATE),), errored=True), True),
        (Plan("1", (), applyable=True), False),
        (Plan("1", (change(Action.CREATE),), applyable=False), True),
    ],
)
def test_a_plan_asks_nothing_when_the_engine_says_so_or_it_changes_nothing(plan: Plan, asks_nothing: bool) -> None:
    assert plan.asks_nothing(refresh_only=False) is asks_nothing


def test_changes_from_outside_are_a_question_of_a_refresh_only_plan_alone() -> None:
    assert not Plan("1", (), drifted=True).asks_nothing(refresh_only=True)
    assert Plan("1", (), drifted=True, applyable=False).asks_nothing(refresh_only=True)


def test_actions_know_what_comes_and_goes() -> None:
    assert {action for action in Action if action.creates} == {Action.CREATE, Action.REPLACE}
    assert {action for action in Action if action.deletes} == {Action.DELETE, Action.REPLACE}


def test_an_approval_that_was_not_given_is_none() -> None:
    refused = {approval for approval in Approval if not approval.given}
    assert refused == {Approval.DECLINED, Approval.NO_ANSWER, Approval.INTERRUPTED}


def test_a_deposed_object_is_not_the_one_at_its_address() -> None:
    deposed = StateInstance("a.b", "a", "p", deposed="0a1b")
    current = StateInstance("a.b", "a", "p", identity={"id": "1"})
    assert StateSnapshot("l", 1, (deposed, current)).at("a.b") == current
    alone = StateSnapshot("l", 1, (deposed,))
    assert (alone.at("a.b"), alone.addresses) == (None, frozenset())


def test_credentials_do_not_show_when_a_value_is_printed() -> None:
    plan = Plan("1", (), secrets=frozenset(["hunter2"]))
    assert "hunter2" not in repr(plan)
    assert "hunter2" not in repr(Config(providers={"aws": {"secret_key": "hunter2"}}))


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 11, 30), timezones=st.just(UTC)))
def test_the_time_and_the_month_of_an_operation_follow_from_its_id(time: datetime) -> None:
    operation_id = new_operation_id(time)
    assert abs(time - time_of(operation_id)) < timedelta(milliseconds=2)
    assert month_of(operation_id) == f"{time_of(operation_id):%Y-%m}"
    first, last = months_of(operation_id[:6])
    assert first <= month_of(operation_id) <= last
    assert months_of(operation_id) == (month_of(operation_id), month_of(operation_id))


@pytest.mark.parametrize("text", ["", "01J", "01J" + "I" * 23, "0" * 27, "Z" * 26, "../" + "0" * 23])
def test_what_is_no_id_has_no_month(text: str) -> None:
    with pytest.raises(ValueError, match=r"no operation's id|no time"):
        month_of(text)


def test_a_beginning_that_fits_every_id_fits_every_month() -> None:
    assert months_of("") == ("1970-01", "9999-12")
    with pytest.raises(ValueError, match="no operation's id"):
        months_of("U")
