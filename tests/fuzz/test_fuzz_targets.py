"""Whatever is read from outside is taken or refused in two lines: no traceback, no hang, no wrong clean."""

from __future__ import annotations

import pytest

from fixtures.fuzz.running import Outcome, Target, WrongCleanError, run_many, run_one
from fixtures.fuzz.targets import TARGETS
from tfguard.errors import InputError

INPUTS = 120


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_no_input_shows_a_fault(name: str) -> None:
    share = TARGETS[name].share
    tally = run_many(TARGETS[name], max(20, int(INPUTS * min(share, 1.0))), seed=1)
    assert tally.counts.total() > 0
    assert [fault.text for fault in tally.faults.values()] == []


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"record-folder"}))
def test_a_sound_sample_is_never_a_fault_and_some_are_taken(name: str) -> None:
    outcomes = [run_one(TARGETS[name], sample)[0] for sample in TARGETS[name].samples()]
    assert not any(outcome.fault for outcome in outcomes)
    refusing = {"lock-refusal", "hcl", "state"}  # what engines refuse with, and stacks without `init`
    assert Outcome.ACCEPTED in outcomes or name in refusing


def reading(read: object) -> Target:
    return Target("x", lambda: [b"x"], read, TARGETS["help"].strategy)  # type: ignore[arg-type]


def test_each_kind_of_fault_is_told_from_the_others() -> None:
    def traceback(_: bytes) -> None:
        raise KeyError("x")

    def wrong(_: bytes) -> None:
        raise WrongCleanError("x")

    def two_lines(_: bytes) -> None:
        raise InputError("one\ntwo", "do this")

    def nothing_to_do(_: bytes) -> None:
        raise InputError("one", "")

    def refused(_: bytes) -> None:
        raise InputError("one", "do this")

    readers = (traceback, wrong, two_lines, nothing_to_do, refused, lambda _: None)
    assert [run_one(reading(read), b"")[0] for read in readers] == [
        Outcome.TRACEBACK,
        Outcome.WRONG_CLEAN,
        Outcome.TRACEBACK,
        Outcome.TRACEBACK,
        Outcome.REFUSED,
        Outcome.ACCEPTED,
    ]


def test_what_does_not_end_is_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_: bytes) -> None:
        while True:
            pass

    monkeypatch.setattr("fixtures.fuzz.running.LONGEST_SECONDS", 0.2)
    assert run_one(reading(endless), b"")[0] is Outcome.HANG


def test_the_same_seed_makes_the_same_inputs() -> None:
    def seen(seed: int) -> list[bytes]:
        inputs: list[bytes] = []
        run_many(reading(inputs.append), 20, seed)
        return inputs

    assert seen(4) == seen(4) != seen(5)
