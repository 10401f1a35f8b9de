"""Streams of listings that are read at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from tfguard.inventory.at_once import at_once
from tfguard.model.inventory import Listing, Scope

SCOPE = Scope("google", "p", "global")


def _stream(name: str, count: int, begun: list[str]) -> Iterator[Listing]:
    for number in range(count):
        begun.append(name)
        yield Listing(f"{name}{number}", SCOPE)


def test_everything_of_every_task_comes_once() -> None:
    begun: list[str] = []
    found = [one.type for one in at_once([partial(_stream, name, 30, begun) for name in "abcde"], 3)]
    assert sorted(found) == sorted(f"{name}{number}" for name in "abcde" for number in range(30))
    assert list(at_once([], 3)) == []


def test_nobody_runs_far_ahead_of_the_reader_and_nobody_goes_on_without_one() -> None:
    begun: list[str] = []
    before = threading.active_count()
    listings = at_once([partial(_stream, "a", 10_000, begun)], 2)
    for _ in range(5):
        next(listings)
    assert len(begun) < 5 + 8
    listings.close()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread.name == "tfguard-google":
            thread.join(10)
    assert threading.active_count() <= before
    assert len(begun) < 5 + 8


def test_what_a_task_raises_is_raised_to_the_reader() -> None:
    def broken() -> Iterator[Listing]:
        yield Listing("a", SCOPE)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(at_once([broken], 2))
