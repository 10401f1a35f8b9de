"""How long a deletion that something blocks is tried, and how what is in the way is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from packed import MovedClock
from test_verify import CATALOG, START, role

from tfguard.flows.blockers import Patience, ids_of, told, told_of, told_of_none

WAIT = timedelta(minutes=2)


class Looks:
    """Answers whether something is in the way, and counts how often it was asked."""

    def __init__(self, *answers: bool) -> None:
        self._answers: Iterator[bool] = iter(answers)
        self.asked = 0

    def __call__(self) -> bool:
        self.asked += 1
        return next(self._answers)


def test_the_time_runs_from_the_begin_of_the_deletion_and_nobody_looks_before_its_end() -> None:
    clock, looks = MovedClock(START), Looks(True)
    patience = Patience(clock, WAIT, looks)  # type: ignore[arg-type]
    clock.time += WAIT
    assert not patience.is_over()
    patience.begins()
    clock.time += WAIT - timedelta(seconds=1)
    assert (patience.is_over(), looks.asked) == (False, 0)
    clock.time += timedelta(seconds=1)
    assert (patience.is_over(), patience.over) == (True, True)


def test_a_deletion_that_nothing_blocks_is_waited_for_and_looked_at_again_now_and_then() -> None:
    clock, looks = MovedClock(START), Looks(False, True)
    patience = Patience(clock, WAIT, looks)  # type: ignore[arg-type]
    patience.begins()
    clock.time += WAIT
    assert [patience.is_over() for _ in range(3)] == [False] * 3
    assert looks.asked == 1
    clock.time += WAIT
    assert patience.is_over()


def test_an_object_is_told_with_all_that_says_whose_it_is() -> None:
    interface = replace(
        role("eni-1"),
        type="aws_network_interface",
        name="ELB app/front",
        identity={"requester_id": "amazon-elb"},
        ignored_because="made by an AWS service",
        owner="222222222222",
        tags={"team": "net", "Name": "ELB app/front"},
    )
    assert told(interface) == (
        "aws_network_interface eni-1 (ELB app/front; made by an AWS service; asked for by amazon-elb; tags team=net; "
        "of the account 222222222222)"
    )
    assert ids_of([interface]) == "aws_network_interface eni-1"
    assert told(role("app")) == "aws_iam_role app"


def test_that_nothing_hangs_on_an_object_is_not_said_where_the_list_lags() -> None:
    network = replace(role("net"), cloud="google", type="google_compute_network")
    assert told_of_none(CATALOG, role("app")) == "nothing that can be listed hangs on it"
    assert "what is new may do so all the same" in told_of_none(CATALOG, network)


@pytest.mark.parametrize(("number", "ends"), [(5, "r4"), (7, "r4 and 2 more")])
def test_of_many_only_the_first_are_named(number: int, ends: str) -> None:
    hanging = [role(f"r{place}") for place in range(number)]
    assert told_of(hanging).endswith(ends)
