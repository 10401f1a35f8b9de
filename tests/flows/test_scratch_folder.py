"""The private folder for plans and states that are needed for a moment: no kill leaves one for ever."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_dispose import Account, roles

from tfguard.errors import CorruptRecordError
from tfguard.flows.context import StackContext
from tfguard.flows.untaint import UntaintOptions, _planned


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackContext:
    """A stack with a folder for its runs, and a system whose temporary folder is `tmp`."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return replace(Account(roles("one"), tmp_path).context, runs=tmp_path / "data" / "runs")


def test_it_is_the_owners_alone_and_gone_afterwards(context: StackContext, tmp_path: Path) -> None:
    with context.scratch() as folder:
        (folder / "plan").write_text("hunter2")
        assert folder.parent == context.runs
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "data").exists()


def test_what_a_killed_one_left_is_removed_by_the_next_and_what_is_in_use_stays(context: StackContext) -> None:
    assert context.runs is not None
    with context.scratch() as mine:
        killed = context.runs / "01KILLED"
        killed.mkdir()
        (killed / "holder").write_text("999999999 1")
        (killed / "plan").write_text("hunter2")
        context.host.runs = lambda process: process.pid == 1  # type: ignore[method-assign]
        context.host.engine_writes_to = lambda run_directory: False  # type: ignore[method-assign]  # noqa: ARG005
        with context.scratch() as other:
            assert sorted(context.runs.iterdir()) == sorted([mine, other])


def no_folder(context: StackContext) -> StackContext:
    """Where a file is in the way."""
    assert context.runs is not None
    context.runs.parent.write_text("")
    return context


def no_record(context: StackContext) -> StackContext:
    """Where nobody can tell which folders are needed still."""

    def damaged() -> None:
        raise CorruptRecordError("the head is damaged", "look")

    context.records.head = damaged  # type: ignore[method-assign,assignment]
    return context


@pytest.mark.parametrize("broken", [no_folder, no_record])
def test_where_none_can_be_made_it_is_one_of_the_system(
    context: StackContext, tmp_path: Path, broken: Callable[[StackContext], StackContext]
) -> None:
    with broken(context).scratch() as folder:
        assert folder.parent == tmp_path / "tmp"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_plan_that_is_only_looked_at_lies_there(context: StackContext) -> None:
    files: list[Path] = []

    def quiet_plan(_: Sequence[str], plan_file: Path) -> str:
        files.append(plan_file)
        return "it fails"

    engine: Any = context.engine
    engine.quiet_plan = quiet_plan
    assert context.plan_now() == "it fails"
    assert _planned(context, "a.b", UntaintOptions("why")) == "it fails"
    assert [one.parent.parent for one in files] == [context.runs, context.runs]
