"""What is kept privately, so that a masked address and a name that was kept back are told again."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest
from test_records import intent, result

from tfguard.flows.withholding import also_hiding, of_plan, of_record, of_state, remember_copies, withheld_intent
from tfguard.model.operation import BaselineEntry, Intent, Operation, Outcome, Step
from tfguard.model.plan import Action, Plan, PlannedChange
from tfguard.model.secrets import WITHHELD_PLACE
from tfguard.model.state import EMPTY_STATE, StateInstance, StateSnapshot

SECRET, ADDRESS = "hunter2", 'aws_iam_role.app["hunter2"]'
PLAN = Plan("1", (PlannedChange(ADDRESS, "aws_iam_role", "aws", Action.CREATE),), secrets=frozenset([SECRET]))
HELD = StateInstance(ADDRESS, "aws_iam_role", "aws", identity={"name": "app-hunter2"})
STATE = StateSnapshot("l", 1, (HELD,))


def recorded(folder: Path, address: str, **fields: object) -> Operation:
    """An operation with one step, which ran in `folder`."""
    step = Step(address, "aws_iam_role", "aws", Action.CREATE, outcome=Outcome.UNKNOWN, **fields)  # type: ignore[arg-type]
    return Operation(
        replace(intent(), steps=(step,), run_directory=str(folder / "01A")),
        replace(result(Outcome.UNKNOWN), steps=(step,)),
    )


def test_the_key_is_made_once_where_there_is_something_to_mask_and_is_private(tmp_path: Path) -> None:
    of_plan(replace(PLAN, secrets=frozenset()), EMPTY_STATE, tmp_path)
    assert list(tmp_path.iterdir()) == []
    first = of_plan(PLAN, EMPTY_STATE, tmp_path)
    assert of_plan(PLAN, EMPTY_STATE, tmp_path).address(ADDRESS) == first.address(ADDRESS)
    (kept,) = tmp_path.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert SECRET not in kept.read_text()


def test_a_record_is_told_again_with_its_own_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    masked = of_plan(PLAN, EMPTY_STATE, tmp_path / "here").address(ADDRESS)
    of_plan(PLAN, EMPTY_STATE, tmp_path / "there")
    hidden, told = of_record(recorded(tmp_path / "here", masked))
    assert (hidden.address(ADDRESS), told) == (masked, True)
    for folder in ("there", "nowhere"):
        hidden, told = of_record(recorded(tmp_path / folder, masked))
        assert (hidden.address(ADDRESS), told) == (ADDRESS, False)
    assert of_record(recorded(tmp_path / "nowhere", "aws_iam_role.app"))[1]


def test_a_file_that_cannot_be_read_tells_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    masked = of_plan(PLAN, EMPTY_STATE, tmp_path).address(ADDRESS)
    (tmp_path / "masks").write_bytes(b"\xff no key")
    assert of_record(recorded(tmp_path, masked))[1] is False
    assert SECRET not in of_plan(PLAN, EMPTY_STATE, tmp_path).address(ADDRESS)


def test_a_name_that_was_kept_back_is_kept_back_without_a_plan_too(tmp_path: Path) -> None:
    hidden = of_plan(PLAN, EMPTY_STATE, tmp_path)
    remember_copies(STATE, hidden, tmp_path)
    without_plan = of_state(STATE, (ADDRESS,), None, tmp_path)
    assert without_plan.address(ADDRESS) == hidden.address(ADDRESS)
    assert without_plan.tells("arn:aws:iam::1:role/app-hunter2")
    assert also_hiding(hidden, STATE).tells("app-hunter2")


@pytest.mark.parametrize("withheld", [(), ("name",)])
def test_elsewhere_the_newest_operation_tells_what_was_kept_back(tmp_path: Path, withheld: tuple[str, ...]) -> None:
    masked = of_plan(PLAN, EMPTY_STATE, tmp_path).address(ADDRESS)
    (tmp_path / "elsewhere").mkdir()
    last = recorded(tmp_path, masked, withheld=withheld)
    hidden = of_state(STATE, (ADDRESS,), last, tmp_path / "elsewhere")
    assert SECRET not in hidden.address(ADDRESS)
    assert SECRET in of_state(STATE, (ADDRESS,), None, tmp_path / "elsewhere" / "still").address(ADDRESS)
    assert hidden.tells("app-hunter2")  # by its key, where not by its name


def test_a_marked_place_is_written_as_no_place(tmp_path: Path) -> None:
    entry = BaselineEntry("aws_vpc", "aws", "123456789012", "eu-west-1", True, asked_region="eu-west-1")
    step = Step("aws_vpc.a", "aws_vpc", "aws", Action.CREATE, region="eu-west-1")
    planned: Intent = replace(intent(), baseline=(entry,), steps=(step,))
    plan = replace(PLAN, secrets=frozenset(["eu-west-1", "123456789012"]))
    kept = withheld_intent(planned, of_plan(plan, EMPTY_STATE, tmp_path))
    (told,) = kept.baseline
    assert {told.account, told.region, told.asked_region, kept.steps[0].region} == {WITHHELD_PLACE}
