"""A head that is gone, and documents that lie in another operation's place: neither makes an open operation a settled
one."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_records import FixedClock, Heard, OneHost, intent, result

from tfguard.errors import CorruptRecordError
from tfguard.flows.heads import HEAD
from tfguard.flows.records import Records
from tfguard.model.operation import Outcome
from tfguard.stores.local import LocalStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "record"


@pytest.fixture
def records(folder: Path) -> Records:
    return Records(LocalStore(folder), FixedClock(), OneHost())  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", [None, Outcome.ORPHANED])
def test_without_its_head_a_record_with_an_open_operation_is_damaged_and_not_fresh(
    records: Records, folder: Path, outcome: Outcome | None
) -> None:
    records.begin(intent(), ())
    if outcome:
        records.finish(result(outcome), None)
    (folder / HEAD).unlink()
    with pytest.raises(CorruptRecordError, match=r"head\.json is missing, and operation 01A is recorded beside it"):
        records.head()
    with pytest.raises(CorruptRecordError):
        records.claim("01B", None)
    assert records.head_is_damaged()
    assert records.rebuild_head(Heard())  # type: ignore[arg-type]
    assert records.head().open_operations == ("01A",)


def test_without_its_head_a_record_of_settled_operations_is_damaged_too_and_made_good(
    records: Records, folder: Path
) -> None:
    records.begin(intent(), ())
    records.finish(result(Outcome.ABSENT), None)
    (folder / HEAD).unlink()
    with pytest.raises(CorruptRecordError):
        records.head()
    assert records.rebuild_head(Heard())  # type: ignore[arg-type]
    assert (records.head().current, records.head().open_operations) == ("01A", ())


@pytest.mark.parametrize("name", ["outcome.json", "intent.json"])
def test_a_document_of_another_operation_is_damage(records: Records, folder: Path, name: str) -> None:
    for operation_id, outcome in (("01A", Outcome.ABSENT), ("01B", Outcome.ORPHANED)):
        records.begin(intent(operation_id), ())
        records.finish(result(outcome, operation_id), None)
    other = (folder / "operations" / "01A" / name).read_bytes()
    (folder / "operations" / "01B" / name).write_bytes(other)
    with pytest.raises(CorruptRecordError, match=f"{name} is that of operation 01A"):
        records.operation("01B")
