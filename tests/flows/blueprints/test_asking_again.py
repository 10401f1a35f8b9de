"""`status --probe`: whether what was Ready still is, by probes of `ready:` and by steps that are probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from request_stand_ins import HEAD, Desk

from tfguard.blueprint_ports import StackCall, Verified
from tfguard.errors import InputError
from tfguard.flows.blueprints.asking import ask_probes, ask_until
from tfguard.flows.blueprints.checking import check_again
from tfguard.flows.blueprints.context import values_of
from tfguard.flows.blueprints.requests import Journal
from tfguard.model.blueprint import Probe
from tfguard.model.blueprint_request import RequestState
from tfguard.model.blueprint_view import BlueprintView
from tfguard.reconcile.blueprint_counts import blueprint_counts
from tfguard.reconcile.blueprint_view import blueprint_view

TEXT = """
apiVersion: tfguard/v1
kind: Blueprint
name: b
inputs: {password: {sensitive: true}}
steps:
  a: {stack: a}
  service: {probe: {name: service, tcp: "x:1", within: 1s}, needs: [a]}
ready:
  probes: [{name: sql, sql: "postgresql://x"}]
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, TEXT)


def ask(desk: Desk) -> Sequence[str]:
    """The probes that fail, each asked once."""
    context, request = desk.context, desk.request
    return ask_probes(context, Journal(context.requests, request), values_of(context, request), bool, once=True)


def check(desk: Desk) -> Sequence[str]:
    """What is not as it was, by name."""
    context = desk.context
    return check_again(context, Journal(context.requests, desk.request), bool)


def view(desk: Desk) -> BlueprintView:
    """How it stands."""
    digest = desk.context.requests.digest(desk.text)
    return blueprint_view(desk.context.blueprint, desk.request, {}, desk.clock.now(), file="b.yaml", digest=digest)


def test_after_an_interrupt_nothing_more_is_looked_at_or_asked(tmp_path: Path) -> None:
    steps = "".join(f"  s{number}: {{stack: s{number}}}\n" for number in range(5))
    probes = "ready:\n  inventory: true\n  probes:\n    - {name: up, tcp: 'localhost:1'}\n"
    desk = Desk(tmp_path, HEAD + "parallel: 1\nsteps:\n" + steps + probes)
    desk.world.services["up"] = True
    desk.provide()
    looked: list[str] = []
    verify = desk.world.verify

    def noted(call: StackCall) -> Verified:
        looked.append(call.place.directory.name)
        return verify(call)

    desk.world.verify = noted  # type: ignore[method-assign]
    context, events = desk.context, desk.request.events
    failed = check_again(context, Journal(context.requests, desk.request), lambda: len(looked) >= 2)
    assert (looked, failed) == (["s0", "s1"], ["s2", "s3", "s4", "up"])
    assert view(desk).ready_now and desk.request.events == events


def test_a_step_that_is_a_probe_is_asked_too_and_counted(desk: Desk) -> None:
    desk.provide()
    assert (ask(desk), view(desk).ready_now) == ([], True)
    desk.world.services["service"] = False
    assert ask(desk) == ["service"]
    seen = view(desk)
    assert (seen.state, seen.ready_now, seen.failing_probes) == (RequestState.READY, False, ("service",))
    assert blueprint_counts(seen).ready_probes_failing == 1
    assert "service failed when last asked" in seen.notes[0]
    desk.world.services["service"] = True
    assert (ask(desk), view(desk).ready_now, view(desk).notes) == ([], True, ())


@pytest.mark.parametrize(
    ("tries", "told"),
    [(99, "refused (asked 11 times within 1m)"), (3, "refused (asked 3 times in 1 s, then cancelled)")],
)
def test_how_long_a_service_was_asked_is_told_as_it_was(desk: Desk, tries: int, told: str) -> None:
    desk.world.services[""] = False
    asked = iter(range(tries - 1))
    answer = ask_until(desk.context, "p", Probe(tcp="x:1"), lambda: next(asked, None) is None)
    assert answer.detail == told


@pytest.mark.parametrize("how", ["vanished", "state lost"])
def test_a_ready_whose_objects_are_gone_is_not_ready_until_they_are_there_again(desk: Desk, how: str) -> None:
    desk.provide()
    assert check(desk) == []
    stack = desk.world.stacks["a"]
    stack.exists, stack.in_state = (0, True) if how == "vanished" else (1, False)
    assert check(desk) == ["a"]
    seen = view(desk)
    assert (seen.state, seen.ready_now, seen.changed_steps) == (RequestState.READY, False, ("a",))
    assert blueprint_counts(seen).ready_not_now
    stack.exists, stack.in_state = 1, True
    assert check(desk) == []
    assert view(desk).ready_now


def test_what_cannot_be_looked_at_here_is_told_and_not_written(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.provide()
    monkeypatch.setattr(desk.world, "verify", lambda _: Verified(failure="no credentials"))
    assert check(desk) == ["a"]
    assert view(desk).ready_now


def test_what_only_the_stack_s_files_have_until_now_did_not_vanish(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.provide()
    monkeypatch.setattr(desk.world, "verify", lambda _: Verified(missing=("x.new",)))
    assert check(desk) == []


def test_a_step_that_was_never_asked_is_not_asked_ahead_of_its_turn(desk: Desk) -> None:
    desk.world.faults["a"] = ["refused"]
    desk.provide()
    assert ask(desk) == []
    assert desk.statuses()["service"] == "pending"


def test_a_probe_whose_secret_is_not_here_says_nothing_of_the_service(desk: Desk) -> None:
    desk.text = desk.text.replace("postgresql://x", "postgresql://u:${inputs.password}@x")
    desk.provide(password="env:P")
    context = desk.context

    def unset(_: str) -> str:
        raise InputError("the environment variable P is not set", "set it")

    here = replace(context, secret=unset)
    failed = ask_probes(here, Journal(context.requests, desk.request), values_of(here, desk.request), bool, once=True)
    assert failed == ["sql"]
    assert desk.request.failing_probes == ()


def test_what_a_blueprint_asks_for_beyond_what_was_made_is_not_ready_now(desk: Desk) -> None:
    desk.provide()
    desk.text = desk.text.replace("ready:", "  b: {stack: b}\nready:").replace("name: sql", "name: database")
    seen = view(desk)
    assert (seen.state, seen.ready_now) == (RequestState.READY, False)
    notes = " | ".join(seen.notes)
    for told in ("without step b", "probe database was never asked", "has changed since it was last applied"):
        assert told in notes
    assert "tfguard blueprint apply b.yaml" in [action.command for action in seen.next_actions]
    assert desk.provide().state is RequestState.READY
    assert (view(desk).ready_now, view(desk).notes) == (True, ())


TWO_PROBES = TEXT.replace("[{name: sql,", "[{name: api, tcp: 'x:2'}, {name: sql,")


@pytest.mark.parametrize("name", ["api", "service"])
@pytest.mark.parametrize("edited", ["before it is asked", "after it was asked"])
def test_a_probe_that_fails_is_not_answered_by_taking_it_out_of_the_file(
    tmp_path: Path, name: str, edited: str
) -> None:
    desk = Desk(tmp_path, TWO_PROBES)
    desk.provide()
    desk.world.services[name] = False
    without = {
        "api": TEXT,
        "service": "".join(line for line in TWO_PROBES.splitlines(keepends=True) if "service:" not in line),
    }
    if edited == "after it was asked":
        assert check(desk) == [name]
    desk.text = without[name]
    if edited == "before it is asked":
        assert check(desk) == [name]
    seen = view(desk)
    assert (seen.ready_now, seen.failing_probes) == (False, (name,))
    assert blueprint_counts(seen).ready_probes_failing == 1
    assert f"it was Ready, and is not now: probe {name} failed when last asked" in seen.notes
    assert desk.provide().state is RequestState.READY
    assert (view(desk).ready_now, check(desk)) == (True, [])
    desk.text += "# why\n"
    assert view(desk).ready_now, "what an apply has left out counts no more"


def test_a_stack_that_is_gone_is_not_there_again_when_the_file_has_it_no_more(desk: Desk) -> None:
    desk.text = desk.text.replace("steps:", "steps:\n  b: {stack: b}")
    desk.provide()
    desk.world.stacks["b"].exists = 0
    assert check(desk) == ["b"]
    desk.text = TEXT
    seen = view(desk)
    assert (seen.ready_now, seen.changed_steps) == (False, ("b",))


def test_a_word_for_the_reader_is_told_as_a_change_and_keeps_it_ready(desk: Desk) -> None:
    desk.provide()
    desk.text += "# why\n"
    assert (view(desk).ready_now, view(desk).notes) == (True, ("the blueprint has changed since it was last applied",))
