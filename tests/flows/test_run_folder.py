"""A run's private folder: nobody else reads it, and it outlives nothing but its run; with a fake host."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from tfguard.errors import InputError
from tfguard.flows.run_folder import discard_run_folder, in_use, open_run_folder
from tfguard.model.lease import ProcessIdentity

ME, OTHER = ProcessIdentity(100, 7), ProcessIdentity(200, 9)


@dataclass
class FakeHost:
    """A host on which these processes run."""

    running: frozenset[ProcessIdentity] = frozenset([ME])
    me: ProcessIdentity = ME

    def process(self) -> ProcessIdentity:
        """The process that opens folders."""
        return self.me

    def engine_writes_to(self, run_directory: Path) -> bool:  # noqa: ARG002 (the port's signature)
        """No engine is left alone here."""
        return False

    def runs(self, process: ProcessIdentity) -> bool:
        """Whether it is one of the running ones."""
        return process in self.running


def opened(parent: Path, name: str, host: FakeHost | None = None, keep: tuple[str, ...] = ()) -> Path:
    """Open a folder as a run does."""
    return open_run_folder(parent, name, host or FakeHost(), keep)  # type: ignore[arg-type]


def test_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    directory = opened(tmp_path / "data" / "tfguard", "01A")
    assert directory.is_absolute()
    assert directory == tmp_path / "data" / "tfguard" / "01A"
    for folder in (directory, directory.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("holder", "running", "keep", "stays"),
    [
        (OTHER, True, (), True),
        (OTHER, False, (), False),
        (OTHER, False, ("01A",), True),  # an open operation: its stream is still to be read
        (ProcessIdentity(OTHER.pid, 1), True, (), False),  # the same number, another process
    ],
)
def test_a_folder_stays_while_its_process_runs_or_its_operation_is_open(
    tmp_path: Path, holder: ProcessIdentity, running: bool, keep: tuple[str, ...], stays: bool
) -> None:
    first = opened(tmp_path, "01A", FakeHost(me=holder))
    (first / "stream").write_text("{}")
    opened(tmp_path, "01B", FakeHost(frozenset([ME, OTHER] if running else [ME])), keep)
    assert (first / "stream").exists() is stays


@pytest.mark.parametrize("content", ["", "x", "1", "1 2 3", "a b"])
def test_a_folder_whose_holder_cannot_be_read_is_left_alone(tmp_path: Path, content: str) -> None:
    first = opened(tmp_path, "01A")
    (first / "holder").write_text(content)
    opened(tmp_path, "01B", FakeHost(frozenset()))
    assert first.exists()


def test_an_old_folder_without_a_holder_is_swept_away_and_a_new_one_and_what_is_no_folder_are_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "01A").mkdir()
    os.utime(tmp_path / "01A", (0, 0))
    (tmp_path / "01C").mkdir()
    (tmp_path / "note").write_text("mine")
    opened(tmp_path, "01B")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["01B", "01C", "note"]


def test_nothing_behind_a_link_is_swept_away(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "precious").write_text("x")
    parent = tmp_path / "runs"
    parent.mkdir()
    (parent / "01A").symlink_to(target)
    opened(parent, "01B")
    assert (target / "precious").exists()


def test_two_runs_never_share_a_folder(tmp_path: Path) -> None:
    first = opened(tmp_path, "01A")
    with pytest.raises(InputError):
        opened(tmp_path, "01A")
    assert (first / "holder").read_text() == f"{ME.pid} {ME.start_time}"


def test_a_place_that_is_no_folder_stops_the_run_with_advice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written") as raised:
        opened(tmp_path / "file" / "tfguard", "01A")
    assert "TF_DATA_DIR" in raised.value.advice


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_place_stops_the_run_with_advice(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written"):
        opened(tmp_path / "tfguard", "01A")
    tmp_path.chmod(0o700)


def test_a_folder_is_discarded_with_all_in_it_and_a_second_time_is_no_error(tmp_path: Path) -> None:
    directory = opened(tmp_path, "01A")
    (directory / "plan").write_text("secret")
    discard_run_folder(directory, "01A")
    discard_run_folder(directory, "01A")
    assert not directory.exists()


def test_a_folder_that_is_not_the_operations_own_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    discard_run_folder(precious, "01A")
    assert precious.exists()


def test_a_folder_that_is_gone_is_in_nobodys_use(tmp_path: Path) -> None:
    assert not in_use(tmp_path / "01A", FakeHost())
