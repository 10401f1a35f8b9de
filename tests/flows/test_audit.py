"""Every outcome that is written is told in the operation's audit trail, whatever fails in between."""

from __future__ import annotations

from dataclasses import replace

import pytest
from packed import STEP, FailingStore, Heard, MovedClock, intent, orphaned, records_in, result, run

from tfguard.errors import CorruptRecordError, RecordError
from tfguard.flows.records import Records
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import Outcome
from tfguard.ports import RecordStore
from tfguard.stores.local import LocalStore


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def store(tmp_path: object) -> LocalStore:
    return LocalStore(tmp_path / "record")  # type: ignore[operator]


def trail(records: Records, operation_id: str) -> list[tuple[str, str | None, str]]:
    return [(one.what, one.before, one.after) for one in records.transitions(operation_id)]


def test_an_operation_is_followed_from_its_outcome_to_its_decision(store: RecordStore, clock: MovedClock) -> None:
    records = records_in(store, clock)
    name = run(records, clock, Outcome.ORPHANED, **orphaned())
    clock.sleep(3600)
    records = records_in(store, clock)
    records.decide([Disposition("o-1", DispositionKind.RETAIN, clock.now(), "anna@ci", "needed", name)])
    held = records.operation(name).result
    assert held is not None
    decided = replace(held, steps=(replace(held.steps[0], disposition="retain"),))
    records.finish(decided, held)
    assert trail(records_in(store), name) == [
        (name, "running", "ok, open"),
        (STEP.address, None, "orphaned"),
        (name, "ok, open", "ok, settled"),
        (STEP.address, "orphaned", "orphaned (retain)"),
    ]
    *_, last = records_in(store).transitions(name)
    assert (last.by, last.at, last.why) == ("me@here", clock.now(), "retain by anna@ci: needed")


def test_a_run_that_never_started_is_told(store: RecordStore, clock: MovedClock) -> None:
    records = records_in(store, clock)
    run(records, clock, Outcome.ORPHANED, **orphaned())
    name = new_operation_id(clock.now())
    with pytest.raises(Exception, match="was left open meanwhile"):
        records.begin(intent(name, clock.now()), ())
    assert trail(records, name)[0] == (name, "running", "cancelled, settled")
    assert "was left open meanwhile" in records.transitions(name)[0].why


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_trail_that_could_not_be_written_is_made_good_by_the_next_outcome(
    store: RecordStore, clock: MovedClock, fails_at: int
) -> None:
    name = new_operation_id(clock.now())
    records_in(store, clock).begin(intent(name, clock.now()), ())
    failing = FailingStore(store, fails_at, after=False, error=RecordError("full", "free some"))
    concluded = result(name, clock.now(), Outcome.ABSENT)
    with pytest.raises(RecordError):
        records_in(failing, clock).finish(concluded, None)  # type: ignore[arg-type]
    records = records_in(store, clock)
    assert records.head().open_operations == (name,)
    records.finish(concluded, records.operation(name).result)
    assert records.head().open_operations == ()
    assert trail(records_in(store), name) == [(name, "running", "ok, settled"), (STEP.address, None, "absent")]


def test_a_settled_operation_whose_outcome_is_damaged_is_told_to_be_open_again(
    store: RecordStore, clock: MovedClock
) -> None:
    records = records_in(store, clock)
    name = run(records, clock)
    blob = store.read(f"operations/{name}/outcome.json")
    assert blob is not None
    store.replace(f"operations/{name}/outcome.json", b"{", blob.version)
    records = records_in(store, clock)
    assert records.set_damage_aside(name, Heard())
    records.outcome_lost(name)
    records.reopen(name)
    records.finish(result(name, clock.now(), Outcome.RECORDED), None)
    assert trail(records_in(store), name) == [
        (name, "running", "ok, settled"),
        (name, "ok, settled", "running, open"),
        (name, "running, open", "ok, settled"),
    ]


def test_a_damaged_trail_is_moved_aside_by_recover_and_told(store: RecordStore, clock: MovedClock) -> None:
    records = records_in(store, clock)
    name = run(records, clock, Outcome.ORPHANED, **orphaned())
    store.append(f"operations/{name}/transitions.jsonl", b'{"v": 1}\n')
    records = records_in(store, clock)
    with pytest.raises(CorruptRecordError):
        records.transitions(name)
    heard = Heard()
    records.set_damage_aside(name, heard)
    assert "transitions.jsonl.unreadable-1" in heard.lines[0]
    assert trail(records, name) == []


def test_a_line_that_was_cut_off_keeps_nobody_from_reading_the_others(store: RecordStore, clock: MovedClock) -> None:
    records = records_in(store, clock)
    name = run(records, clock, Outcome.ORPHANED, **orphaned())
    store.append(f"operations/{name}/transitions.jsonl", b'{"v": 1, "at"')
    assert len(trail(records_in(store), name)) == 2
