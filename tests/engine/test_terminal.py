"""A terminal of tfguard's own for the engine to write to."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tfguard.engine.terminal import EngineTerminal, columns_of

TELLING = """
import os, sys
sys.stdout.write(f"{os.get_terminal_size(1).columns}\\none\\ntwo\\r\\n\\x1b[0mthree")
"""
# Writes on after its reader has gone, and then says how that went.
OUTLIVING = """
import os, sys, time
os.write(1, b"before")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
failed = 0
for _ in range(3):
    try:
        os.write(1, b"x" * 100000)
    except OSError:
        failed += 1
with open(sys.argv[2], "w") as file:
    file.write(str(failed))
"""
HOLDING = """
import subprocess, sys, time
from tfguard.engine.terminal import EngineTerminal
with EngineTerminal(80) as terminal:
    writing = [sys.executable, "-c", *sys.argv[1:]]
    subprocess.Popen(writing, stdout=terminal.descriptor, start_new_session=True)
    while not terminal.read(100):
        time.sleep(0.01)
    print("begun", flush=True)
    time.sleep(60)
"""


def test_what_is_written_comes_as_it_is_and_the_width_is_the_one_that_was_asked_for() -> None:
    with EngineTerminal(123) as terminal:
        assert columns_of(terminal.descriptor) == 123
        subprocess.run([sys.executable, "-c", TELLING], stdout=terminal.descriptor, check=True)
        text = b""
        while chunk := terminal.read(7):
            text += chunk
    assert text == b"123\none\ntwo\r\n\x1b[0mthree"


def test_what_is_no_terminal_has_no_width(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert columns_of(file.fileno()) is None


def test_nothing_is_there_while_nothing_is_written() -> None:
    with EngineTerminal(80) as terminal:
        assert terminal.read(10) == b""


def test_a_program_outlives_the_reader_of_its_terminal(tmp_path: Path) -> None:
    """As the engine does when tfguard is killed while it plans: it gets an error, and no signal."""
    gone, told = tmp_path / "gone", tmp_path / "told"
    argv = [sys.executable, "-c", HOLDING, OUTLIVING, str(gone), str(told)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as holding:
        assert holding.stdout is not None
        assert holding.stdout.readline() == b"begun\n"
        holding.kill()
    gone.touch()
    deadline = time.monotonic() + 60
    while not (told.exists() and told.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert told.read_text() == "3"
