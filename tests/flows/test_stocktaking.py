"""After the engine: its exit code gets through whatever breaks, and is on disk before anything is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_records import Heard
from test_story import APP, OTHER, SINCE, FakeEngine, make_context, make_intent, start
from test_verify import END, Answer, FakeClock, FakeInventory, answers, listing, role

from tfguard.errors import ConflictError, RecordError
from tfguard.flows.context import StackContext
from tfguard.flows.heads import HEAD
from tfguard.flows.records import Records
from tfguard.flows.run_folder import close_run_folder
from tfguard.flows.run_journal import RunJournal
from tfguard.flows.stocktaking import Ran, take_stock
from tfguard.flows.upkeep import Upkeep
from tfguard.model.inventory import CloudObject, Detail, Listing
from tfguard.model.operation import Operation, OperationStatus, Outcome, Result, StreamHealth
from tfguard.model.plan import ProviderConfig
from tfguard.model.secrets import Withholding
from tfguard.model.state import StateSnapshot
from tfguard.ports import ApplyExit, EngineExit
from tfguard.stores.local import LocalStore

DEFECTS = [
    KeyError("x"),
    RecursionError("deep"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    OSError(5, "I/O error"),
    RecordError("what", "advice"),
]
defects = pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: type(defect).__name__)


class FullDisk(LocalStore):
    """A store in which documents of these names cannot be written."""

    full: Sequence[str] = ()

    def replace(self, name: str, data: bytes, expected: str | None) -> None:
        """Write a document, where there is space."""
        if name.rpartition("/")[2] in self.full:
            raise RecordError(f"{name} cannot be written: no space left", "free space")
        super().replace(name, data, expected)


class Broken(FakeInventory):
    """A cloud whose details break a parser."""

    defect: Exception

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:  # noqa: ARG002 (the port's)
        """Never an answer."""
        self.detailed.append(found.id)
        raise self.defect


def raising(defect: BaseException) -> Answer:
    """A list that breaks."""

    def answer(*_: object) -> Listing:
        raise defect

    return answer


def begun(tmp_path: Path, answer: Answer, **more: Any) -> StackContext:
    """A stack on which a run has begun, and whose engine has just ended."""
    context = make_context(tmp_path, answer, clock=FakeClock(END), **more)
    context.records.begin(make_intent(tmp_path), ())
    return context


def ran(context: StackContext, tmp_path: Path, exit_code: int = 1) -> Ran:
    """A run whose engine began the first of two roles."""
    upkeep = Upkeep("01A", context.records, context.clock, context.console)
    journal = RunJournal(upkeep, context.clock, context.console, Withholding())
    journal.event(start(APP))
    ended = ApplyExit(EngineExit(exit_code), StreamHealth(whole=True))
    return Ran(make_intent(tmp_path), journal, ended, Withholding(), {}, (), True)


def outcomes(operation: Operation) -> dict[str, Outcome | None]:
    """The outcome of each step."""
    return {step.address: step.outcome for step in operation.steps}


def said(context: StackContext) -> str:
    """Everything that the user was told."""
    assert isinstance(context.console, Heard)
    return "\n".join(context.console.lines)


@defects
def test_a_list_that_breaks_is_a_gap_and_the_exit_code_gets_through(tmp_path: Path, defect: Exception) -> None:
    context = begun(tmp_path, raising(defect))
    found = take_stock(context, ran(context, tmp_path))
    assert found.result is not None
    assert (found.result.exit_code, found.result.status) == (1, OperationStatus.ERROR)
    assert outcomes(found) == {APP: Outcome.UNKNOWN, OTHER: Outcome.ABSENT}
    assert type(defect).__name__ in found.result.gaps[0]
    assert context.records.operation("01A").result == found.result


@defects
def test_a_detail_that_breaks_takes_neither_the_object_nor_the_exit_code_away(
    tmp_path: Path, defect: Exception
) -> None:
    context = begun(tmp_path, answers())
    cloud = Broken(answers(listing(role(created=None))))
    cloud.defect = defect
    object.__setattr__(context.around, "inventory", cloud)
    found = take_stock(context, ran(context, tmp_path))
    assert found.result is not None
    assert found.result.exit_code == 1
    assert set(cloud.detailed) == {"app"}
    assert [seen.import_id for seen in found.steps[0].observed] == ["app"]
    assert context.records.operation("01A").result == found.result


@defects
def test_a_look_that_breaks_altogether_leaves_the_exit_code_on_disk_and_the_operation_open(
    tmp_path: Path, defect: Exception
) -> None:
    class Defective(FakeEngine):
        def pull_state(self) -> StateSnapshot:
            raise defect

    context = begun(tmp_path, answers(listing()), engine=Defective())
    found = take_stock(context, ran(context, tmp_path, exit_code=3))
    kept = context.records.operation("01A")
    assert found.result is not None
    assert kept.result == found.result
    assert kept.result.exit_code == 3
    assert outcomes(kept) == {APP: Outcome.UNKNOWN, OTHER: Outcome.UNKNOWN}
    assert kept.open
    assert context.records.head().open_operations == ("01A",)
    assert "the operation stays open" in said(context)


def test_the_exit_code_is_on_disk_before_the_first_question_to_the_cloud(tmp_path: Path) -> None:
    on_disk: list[tuple[int | None, set[Outcome | None], bool]] = []

    def answer(*_: object) -> Listing:
        kept = context.records.operation("01A")
        assert kept.result is not None
        on_disk.append((kept.result.exit_code, {step.outcome for step in kept.steps}, kept.open))
        return listing(role(created=SINCE))

    context = begun(tmp_path, answer)
    found = take_stock(context, ran(context, tmp_path))
    assert on_disk[0] == (1, {Outcome.UNKNOWN}, True)
    assert outcomes(found)[APP] is Outcome.ORPHANED


def test_what_the_first_look_told_is_on_disk_before_the_patient_one(tmp_path: Path) -> None:
    on_disk: list[tuple[str, ...]] = []

    def answer(*_: object) -> Listing:
        kept = context.records.operation("01A").result
        on_disk.append(tuple(item.kind.value for item in kept.steps[1].evidence) if kept else ())
        return listing()

    context = begun(tmp_path, answer)
    take_stock(context, ran(context, tmp_path))
    assert on_disk[:2] == [("gap",), ("never-started",)]


def test_a_first_write_that_fails_leaves_no_outcome_and_so_the_run_folder_stays(tmp_path: Path) -> None:
    store = FullDisk(tmp_path / "record")
    context = begun(tmp_path, answers(listing()), store=store)
    folder = tmp_path / "01A"
    folder.mkdir()
    store.full = ("outcome.json",)
    found = take_stock(context, ran(context, tmp_path))
    assert found.result is not None
    assert (found.result.exit_code, found.open) == (1, True)
    assert "no space left" in said(context)
    assert context.records.awaits_outcome("01A")
    assert context.records.head().open_operations == ("01A",)
    close_run_folder(folder, "01A", context.records)
    assert folder.exists()

    store.full = ()
    take_stock(context, ran(context, tmp_path))
    assert not context.records.awaits_outcome("01A")
    close_run_folder(folder, "01A", context.records)
    assert not folder.exists()


def test_a_head_that_cannot_be_written_leaves_the_outcome_and_an_open_operation(tmp_path: Path) -> None:
    store = FullDisk(tmp_path / "record")
    context = begun(tmp_path, answers(listing(role(created=SINCE))), store=store)
    store.full = (HEAD,)
    found = take_stock(context, ran(context, tmp_path, exit_code=0))
    assert found.result is not None
    assert found.result.exit_code == 0
    kept = context.records.operation("01A").result
    assert kept is not None
    assert (kept.exit_code, kept.steps[0].outcome) == (0, Outcome.ORPHANED)
    assert context.records.head().open_operations == ("01A",)


def test_a_run_folder_stays_when_nobody_can_tell_whether_it_is_needed(tmp_path: Path) -> None:
    class Unreadable(LocalStore):
        def read(self, name: str) -> Any:
            raise ConflictError(name, "wait")

    folder = tmp_path / "01A"
    folder.mkdir()
    context = make_context(tmp_path, answers(listing()), store=Unreadable(tmp_path / "record"))
    close_run_folder(folder, "01A", context.records)
    assert folder.exists()


def test_a_folder_of_a_run_that_never_began_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "01A"
    folder.mkdir()
    close_run_folder(folder, "01A", make_context(tmp_path, answers(listing())).records)
    assert not folder.exists()


def test_a_run_that_was_taken_for_dead_opens_its_operation_again_and_looks(tmp_path: Path) -> None:
    context = begun(tmp_path, answers(listing(role(created=None))))
    other = Records(LocalStore(Path(context.records.location)), context.clock, context.host)
    steps = tuple(replace(step, outcome=Outcome.ABSENT) for step in make_intent(tmp_path).steps)
    hasty = Result("01A", OperationStatus.INTERRUPTED, END, steps, notes=("hasty",))
    other.finish(hasty, None)
    assert other.head().open_operations == ()

    found = take_stock(context, ran(context, tmp_path))
    kept = context.records.operation("01A")
    assert found.result == kept.result
    assert kept.result is not None
    assert (kept.result.exit_code, kept.result.notes[0]) == (1, "hasty")
    assert kept.steps[0].outcome is Outcome.ORPHANED, "it was called absent while it was being made"
    assert context.records.head().open_operations == ("01A",)
    assert "took this run for dead" in said(context)
