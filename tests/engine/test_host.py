"""Who is told to live: by pid and start time here, by the folder an engine writes to, by expiry elsewhere (B26)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tfguard.engine.host import LocalHost
from tfguard.engine.process import process_start_time
from tfguard.model.lease import Lease, Liveness, ProcessIdentity

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DEAD = ProcessIdentity(2**22 + 1, 7)


@pytest.fixture
def lease(tmp_path: Path) -> Lease:
    """A lease of this process, for a run whose folder is `tmp_path`."""
    host = LocalHost({})
    return host.lease("01A", str(tmp_path), NOW, NOW + timedelta(minutes=1))


@pytest.fixture
def writer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose standard output lies in the run folder, or in one below it, as an engine's does."""
    folder = tmp_path / getattr(request, "param", "")
    folder.mkdir(exist_ok=True)
    with (folder / "apply.stdout").open("wb") as out, subprocess.Popen(["sleep", "60"], stdout=out) as process:
        yield process
        process.kill()


def test_a_holder_that_runs_is_alive(lease: Lease) -> None:
    assert LocalHost({}).liveness(lease, lambda: NOW + timedelta(days=1)) is Liveness.ALIVE


def test_a_process_of_the_same_number_and_another_start_time_is_not_the_holder(lease: Lease) -> None:
    reused = replace(lease, wrapper=ProcessIdentity(os.getpid(), 1))
    assert LocalHost({}).liveness(reused, lambda: NOW) is Liveness.GONE


def test_an_engine_whose_pid_was_noted_outlives_its_tfguard(lease: Lease, writer: subprocess.Popen[bytes]) -> None:
    engine = ProcessIdentity(writer.pid, process_start_time(writer.pid) or 0)
    assert LocalHost({}).liveness(replace(lease, wrapper=DEAD, engine=engine), lambda: NOW) is Liveness.ENGINE_ALONE


@pytest.mark.usefixtures("writer")
def test_an_engine_whose_pid_nobody_could_note_is_known_by_the_folder_that_it_writes_to(lease: Lease) -> None:
    assert LocalHost({}).liveness(replace(lease, wrapper=DEAD), lambda: NOW) is Liveness.ENGINE_ALONE


@pytest.mark.parametrize("writer", ["o-12345678", "verify"], indirect=True)
@pytest.mark.parametrize("noted", [None, DEAD])
@pytest.mark.usefixtures("writer")
def test_the_engine_of_a_deletion_writes_to_a_folder_below_and_may_be_another_than_the_lease_names(
    lease: Lease, tmp_path: Path, noted: ProcessIdentity | None
) -> None:
    assert LocalHost({}).engine_writes_to(tmp_path)
    assert not LocalHost({}).engine_writes_to(tmp_path / "another")
    assert LocalHost({}).liveness(replace(lease, wrapper=DEAD, engine=noted), lambda: NOW) is Liveness.ENGINE_ALONE


def test_without_holder_and_engine_nobody_is_there(lease: Lease) -> None:
    assert LocalHost({}).liveness(replace(lease, wrapper=DEAD), lambda: NOW) is Liveness.GONE
    assert LocalHost({}).liveness(replace(lease, wrapper=DEAD, engine=DEAD), lambda: NOW) is Liveness.GONE


@pytest.mark.parametrize("elsewhere", [{"host": "another"}, {"pid_namespace": "pid:[1]"}, {"boot_id": "another"}])
def test_a_holder_whose_processes_cannot_be_seen_lives_until_its_lease_expires(
    lease: Lease, elsewhere: dict[str, str]
) -> None:
    far = replace(lease, wrapper=DEAD, **elsewhere)  # type: ignore[arg-type]
    assert LocalHost({}).liveness(far, lambda: NOW + timedelta(seconds=59)) is Liveness.ALIVE
    assert LocalHost({}).liveness(far, lambda: NOW + timedelta(seconds=61)) is Liveness.GONE
