"""The commands of a blueprint's steps: what holds a step's lock, and whom an interrupt reaches."""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tfguard.blueprint_ports import CallEnd, Command
from tfguard.engine.commands import Calls, StepCommands
from tfguard.errors import InputError

NOTES = """
import os, signal, sys, time
def heard(*_):
    with open(sys.argv[1], "a") as file:
        file.write("interrupt\\n")
signal.signal(signal.SIGINT, heard)
open(sys.argv[1], "a").close()
end = time.monotonic() + 60
while not os.path.exists(sys.argv[2]) and time.monotonic() < end:
    time.sleep(0.02)
"""


@pytest.fixture
def commands(tmp_path: Path) -> StepCommands:
    return StepCommands(Calls(tmp_path / "run"), dict(os.environ))


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_only_looks_tells_its_reason_hears_of_an_interrupt_and_is_waited_for_aloud(tmp_path: Path) -> None:
    told: list[str] = []
    calls = Calls(tmp_path / "run", told.append, quiet=timedelta(seconds=0.1))
    ready, go_on = tmp_path / "ready", tmp_path / "go-on"
    script = f"{NOTES}sys.stderr.write('why\\n'); print('a secret'); sys.exit(3)"
    ended: list[tuple[int, str]] = []
    words = (sys.executable, "-c", script, str(ready), str(go_on))
    asking = threading.Thread(target=lambda: ended.append(calls.ask(words, tmp_path, dict(os.environ), "plan of a")))
    asking.start()
    until(ready.exists)
    calls.interrupt()
    until(lambda: ready.read_text() == "interrupt\n" and bool(told))
    go_on.touch()
    asking.join()
    assert ended == [(3, "why\n")]
    assert told[0] == "plan of a: still running, 0 s by now"
    assert not [found for found in (tmp_path / "run").rglob("*") if found.is_file()], "what it prints may be a value"


def test_a_service_that_a_command_has_started_is_in_no_later_command_s_way(
    commands: StepCommands, tmp_path: Path
) -> None:
    stays = tmp_path / "stays"
    os.mkfifo(stays)
    words = ("sh", "-c", f"exec 1>&- 2>&-; (read line < {stays}) & exit 0")
    assert commands.run(Command(words, tmp_path), "boot").exit_code == 0
    try:
        assert not commands.still_runs("boot"), "its end was seen"
        assert commands.run(Command(("true",), tmp_path), "boot").exit_code == 0
    finally:
        stays.write_text("end\n")


def test_a_command_whose_end_nobody_has_seen_is_named_and_not_begun_again(
    commands: StepCommands, tmp_path: Path
) -> None:
    stays = tmp_path / "stays"
    os.mkfifo(stays)
    running = threading.Thread(
        target=lambda: commands.run(Command(("sh", "-c", f"read line < {stays}"), tmp_path), "boot")
    )
    running.start()
    later = StepCommands(Calls(tmp_path / "run"), dict(os.environ))
    try:
        until(lambda: later.still_runs("boot"))
        with pytest.raises(InputError, match=r"boot: .* still runs, and holds .*boot\.lock"):
            later.run(Command(("true",), tmp_path), "boot")
        assert later.run(Command(("true",), tmp_path), "other").exit_code == 0
    finally:
        stays.write_text("end\n")
        running.join()
    assert not later.still_runs("boot")
    assert later.run(Command(("true",), tmp_path), "boot").exit_code == 0


def test_a_program_that_is_just_being_started_is_not_taken_for_the_step_s_command(
    commands: StepCommands, tmp_path: Path
) -> None:
    """Between its fork and its own program, another step's command has a copy of this step's lock."""
    lock = tmp_path / "run/boot.lock"
    lock.parent.mkdir()
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        copy = os.dup(held.fileno())
    freeing = threading.Timer(0.4, os.close, (copy,))
    freeing.start()
    assert commands.run(Command(("true",), tmp_path), "boot").exit_code == 0
    freeing.join()


def test_an_interrupt_reaches_a_command_with_all_it_has_started_and_each_of_them_once(
    commands: StepCommands, tmp_path: Path
) -> None:
    script, inner, call, end = (tmp_path / name for name in ("notes.py", "inner", "call", "end"))
    script.write_text(NOTES)
    wrapped = f"trap '' INT; {sys.executable} {script} {inner} {end}; exit 0"
    ends: list[CallEnd] = []
    works = (
        lambda: commands.run(Command(("sh", "-c", wrapped), tmp_path), "wrapped"),
        lambda: commands.calls.run((sys.executable, str(script), str(call), str(end)), tmp_path, os.environ, "stack"),
    )
    threads = [threading.Thread(target=lambda work=work: ends.append(work())) for work in works]
    for thread in threads:
        thread.start()
    try:
        until(lambda: inner.exists() and call.exists())
        commands.interrupt()
        until(lambda: inner.read_text() == "interrupt\n")
        assert call.read_text() == "", "what runs a stack passes its own interrupts on"
        commands.calls.interrupt()
        until(lambda: call.read_text() == "interrupt\n")
    finally:
        end.touch()
        for thread in threads:
            thread.join(60)
    assert [one.exit_code for one in ends] == [0, 0]
    assert inner.read_text() == call.read_text() == "interrupt\n"


def test_what_runs_for_long_is_told_of_and_where_its_words_are(tmp_path: Path) -> None:
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        if len(told) == 2:
            (tmp_path / "go").touch()

    short = timedelta(milliseconds=20)
    calls = Calls(tmp_path / "run", tell, quiet=short, sparse=short)
    words = ("sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.02; done")
    assert calls.run(words, tmp_path, dict(os.environ), "boot").exit_code == 0
    assert told[0].startswith("boot: still running, ")
    assert told[0].endswith(f"log {tmp_path / 'run' / 'boot.log'}")


def test_a_word_about_what_runs_does_not_lengthen_its_time(tmp_path: Path) -> None:
    calls = Calls(tmp_path / "run", lambda _: None, quiet=timedelta(milliseconds=20))
    end = calls.run(("sleep", "60"), tmp_path, dict(os.environ), "boot", seconds=0.1)
    assert end.timed_out
