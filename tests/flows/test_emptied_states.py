"""What an empty state tells of a blueprint's stack: whether a destroy has emptied it, or it was lost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from packed import START, intent, records_in, result

from tfguard.blueprint_ports import StackPlace
from tfguard.cli.blueprint_stacks import GuardedStacks
from tfguard.cli.invocation import Invocation
from tfguard.engine.commands import Calls
from tfguard.engine.interrupts import SignalGate
from tfguard.flows.records import Records
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import Outcome, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.state import StateSnapshot
from tfguard.stores.local import LocalStore

Ran = tuple[str, StateSnapshot, Sequence[Action]]
"""A command, the state that it left, and what it did."""

FIRST, LAST, NEW = StateSnapshot("old", 2), StateSnapshot("old", 3), StateSnapshot("new", 1)
MADE, GONE, LOOKED = (Action.CREATE,), (Action.DELETE,), (Action.NOOP,)


def record(folder: Path, ran: Sequence[Ran]) -> Records:
    records = records_in(LocalStore(folder))
    for number, (command, left, actions) in enumerate(ran):
        at = START + timedelta(hours=number)
        name = new_operation_id(at)
        steps = tuple(Step("x.y", "x", "p", action, StepStatus.OK) for action in actions)
        records.begin(replace(intent(name, at), command=command, steps=steps), ())
        ended = replace(result(name, at, Outcome.RECORDED), steps=steps)
        records.finish(replace(ended, lineage=left.lineage, serial_after=left.serial), None)
    return records


def emptied(folder: Path, monkeypatch: pytest.MonkeyPatch, records: Records, state: StateSnapshot) -> bool:
    context = SimpleNamespace(records=records, read_state=lambda _: state)
    monkeypatch.setattr(GuardedStacks, "_context", lambda *_: nullcontext(context))
    look = GuardedStacks(Invocation(), SignalGate(), Calls(folder), {}).look(StackPlace(folder))
    assert (look.managed, look.failure) == (0, "")
    return look.emptied


@pytest.mark.parametrize(
    ("ran", "state", "by_a_destroy"),
    [
        ([("apply", FIRST, MADE), ("destroy", LAST, GONE)], LAST, True),
        ([("destroy", FIRST, GONE), ("destroy", LAST, ())], LAST, True),
        ([("destroy", FIRST, GONE), ("apply", FIRST, ()), ("destroy", LAST, LOOKED)], LAST, True),
        ([("apply", FIRST, MADE), ("destroy", LAST, GONE)], NEW, False),
        ([("apply", LAST, MADE), ("destroy", NEW, ())], NEW, False),
        ([("apply", LAST, MADE), ("destroy", NEW, LOOKED)], NEW, False),
        ([("apply", LAST, MADE), ("destroy", NEW, ()), ("destroy", NEW, ())], NEW, False),
        ([("destroy", LAST, GONE), ("destroy", NEW, ())], NEW, False),
        ([("apply", FIRST, MADE), ("destroy", LAST, ())], LAST, False),
        ([("destroy", NEW, ())], NEW, False),
    ],
)
def test_a_destroy_that_took_nothing_away_has_emptied_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Sequence[Ran], state: StateSnapshot, by_a_destroy: bool
) -> None:
    assert emptied(tmp_path, monkeypatch, record(tmp_path, ran), state) is by_a_destroy


def test_an_operation_that_cannot_be_read_may_have_changed_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = record(tmp_path, [("destroy", FIRST, GONE), ("apply", FIRST, ()), ("destroy", LAST, ())])
    between = records.operation_ids()[1]
    (tmp_path / "operations" / between / "intent.json").write_text("{")
    assert not emptied(tmp_path, monkeypatch, records, LAST)
