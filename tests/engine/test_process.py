"""The engine as a process that outlives its wrapper and hears of one interrupt."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tfguard.engine.interrupts import SignalGate
from tfguard.engine.process import Following, Launch, process_start_time, run_followed
from tfguard.engine.signals import HANDLED
from tfguard.errors import NoEngineError
from tfguard.model.lease import ProcessIdentity
from tfguard.ports import EngineExit


class Seen:
    """What a run has shown."""

    def __init__(self) -> None:
        self.out = self.err = b""
        self.signals: list[tuple[str, bool]] = []
        self.process: ProcessIdentity | None = None

    def following(self) -> Following:
        return Following(
            self._out, self._err, self._start, lambda name, forwarded: self.signals.append((name, forwarded))
        )

    def _out(self, chunk: bytes) -> None:
        self.out += chunk

    def _err(self, chunk: bytes) -> None:
        self.err += chunk

    def _start(self, process: ProcessIdentity) -> None:
        self.process = process


def run(folder: Path, script: str) -> tuple[EngineExit, Seen]:
    """Run a Python script as the engine."""
    seen = Seen()
    launch = Launch([sys.executable, "-c", script], dict(os.environ), folder, "apply")
    with SignalGate() as gate:
        ended = run_followed(launch, gate, seen.following())
    return ended, seen


def test_every_byte_of_both_streams_arrives_also_the_last_without_a_line_end(tmp_path: Path) -> None:
    script = "import sys; sys.stdout.write('x' * 300000 + 'end'); sys.stderr.write('y' * 300000 + 'end')"
    ended, seen = run(tmp_path, script)
    assert ended == EngineExit(0, signal=None, interrupted=False)
    assert (len(seen.out), seen.out[-4:], len(seen.err), seen.err[-4:]) == (300003, b"xend", 300003, b"yend")
    assert oct((tmp_path / "apply.stdout").stat().st_mode & 0o777) == "0o600"


def test_it_runs_in_a_session_of_its_own_ignores_a_hang_up_and_reads_nothing(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; print(os.getsid(0) == os.getpid(), signal.getsignal(signal.SIGHUP) == signal.SIG_IGN,"
        " repr(sys.stdin.read()))"
    )
    _, seen = run(tmp_path, script)
    assert seen.out == b"True True ''\n"
    assert signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("import sys; sys.exit(3)", EngineExit(3, None, False)),
        ("import os; os.kill(os.getpid(), 9)", EngineExit(137, 9, False)),
        ("import sys; sys.exit(143)", EngineExit(143, 15, False)),
        ("import sys; sys.exit(200)", EngineExit(200, None, False)),
    ],
)
def test_an_end_by_a_signal_is_told_also_through_a_script(tmp_path: Path, script: str, expected: EngineExit) -> None:
    assert run(tmp_path, script)[0] == expected


ENGINE = """
import os, signal, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
def heard(number, frame):
    with (folder / "heard").open("a") as file:
        file.write(signal.Signals(number).name + "\\n")
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
    signal.signal(number, heard)
(folder / "ready").write_text(str(os.getpid()))
while not (folder / "finish").exists():
    time.sleep(0.01)
print("done", flush=True)
sys.exit(7)
"""


class Engine:
    """An engine that writes down what it hears until it is told to finish; `start` runs a function at its side."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "engine.py").write_text(ENGINE)

    def run(self, argv: list[str], start: Callable[[], object]) -> tuple[EngineExit, Seen]:
        """Run it; `start` is called in a thread as soon as it is there."""
        seen = Seen()
        launch = Launch(argv, dict(os.environ), self.folder, "apply")

        def at_its_side() -> None:
            try:
                eventually(lambda: (self.folder / "ready").exists() and (self.folder / "ready").read_text() != "")
                start()
            finally:
                (self.folder / "finish").touch()

        with SignalGate() as gate, ThreadPoolExecutor(1) as pool:
            side = pool.submit(at_its_side)
            ended = run_followed(launch, gate, seen.following())
            side.result()
        return ended, seen

    @property
    def argv(self) -> list[str]:
        """How it is called."""
        return [sys.executable, str(self.folder / "engine.py"), str(self.folder)]

    @property
    def heard(self) -> list[str]:
        """The signals that have reached it."""
        path = self.folder / "heard"
        return path.read_text().split() if path.exists() else []

    def script(self, text: str, interpreter: str = "/bin/sh") -> list[str]:
        """Call it through a script, which finds it as `$PYTHON $ENGINE`."""
        path = self.folder / "script"
        path.write_text(f"#!{interpreter}\n{text}\n")
        path.chmod(0o755)
        return [str(path), *self.argv[2:]]


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An engine, which is ended with the test."""
    yield Engine(tmp_path)
    (tmp_path / "finish").touch()


@pytest.mark.parametrize("signum", HANDLED)
def test_any_signal_becomes_one_interrupt_and_the_pipelines_impatience_none(
    engine: Engine, signum: signal.Signals
) -> None:
    def end_it() -> None:
        os.kill(os.getpid(), signum)
        eventually(lambda: engine.heard == ["SIGINT"])
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGQUIT)

    ended, seen = engine.run(engine.argv, end_it)
    assert ended == EngineExit(7, None, interrupted=True)
    assert engine.heard == ["SIGINT"]
    assert seen.out == b"done\n"
    assert seen.signals[0] == (signum.name, True)
    assert [forwarded for _, forwarded in seen.signals].count(True) == 1


SH_FORKS = '"$PYTHON" "$ENGINE" "$@"\nexit $?'
SH_EXECS = 'exec "$PYTHON" "$ENGINE" "$@"'
SH_HANDS_ON = (
    'trap \'kill -INT $child\' INT TERM\n"$PYTHON" "$ENGINE" "$@" &\nchild=$!\n'
    "while :; do wait $child; code=$?; kill -0 $child 2>/dev/null || exit $code; done"
)
PYTHON_RUNS = (
    "import os, subprocess, sys\n"
    "sys.exit(subprocess.run([sys.executable, os.environ['ENGINE'], *sys.argv[1:]]).returncode)"
)


@pytest.mark.parametrize(
    ("text", "interpreter"),
    [
        (SH_EXECS, "/bin/sh"),
        (SH_FORKS, "/bin/sh"),
        (SH_HANDS_ON, "/bin/sh"),
        (SH_FORKS, "/bin/bash"),
        (SH_HANDS_ON, "/bin/bash"),
        (f"( {SH_FORKS} )", "/bin/sh"),
        ('"$PYTHON" "$ENGINE" "$@" | cat', "/bin/sh"),
        (PYTHON_RUNS, sys.executable),
    ],
)
def test_the_engine_behind_a_script_hears_one_interrupt_and_is_waited_for(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, text: str, interpreter: str
) -> None:
    monkeypatch.setenv("PYTHON", sys.executable)
    monkeypatch.setenv("ENGINE", engine.argv[1])
    argv = engine.script(text, interpreter)

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        eventually(lambda: engine.heard != [])

    ended, seen = engine.run(argv, interrupt)
    assert engine.heard == ["SIGINT"]
    assert seen.out == b"done\n"
    assert ended.exit_code == (0 if "| cat" in text else 7)


def test_an_engine_whose_script_was_killed_is_waited_for_and_still_hears_an_interrupt(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON", sys.executable)
    monkeypatch.setenv("ENGINE", engine.argv[1])
    argv = engine.script(SH_FORKS)

    def kill_the_script() -> None:
        pid = int((engine.folder / "ready").read_text())
        script = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(script, signal.SIGKILL)
        eventually(lambda: process_start_time(script) is None)
        os.kill(os.getpid(), signal.SIGINT)
        eventually(lambda: engine.heard != [])

    ended, seen = engine.run(argv, kill_the_script)
    assert ended == EngineExit(137, 9, interrupted=True)
    assert seen.out == b"done\n"
    assert engine.heard == ["SIGINT"]


def test_an_interrupt_is_for_the_engine_and_not_for_what_it_is_about_to_start(engine: Engine, tmp_path: Path) -> None:
    # Between fork and exec a child looks like its parent.
    forks = "import os, sys\nif os.fork() == 0: sys.argv[1] += '/child'; os.mkdir(sys.argv[1])\n"
    (tmp_path / "engine.py").write_text(forks + ENGINE)

    def interrupt() -> None:
        eventually(lambda: (tmp_path / "child/ready").exists())
        os.kill(os.getpid(), signal.SIGINT)
        eventually(lambda: engine.heard != [] or (tmp_path / "child/heard").exists())
        (tmp_path / "child/finish").touch()

    engine.run(engine.argv, interrupt)
    assert engine.heard == ["SIGINT"]
    assert not (tmp_path / "child/heard").exists()


def test_an_interrupt_gets_through_beside_a_process_whose_name_is_no_text(engine: Engine, tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff\xfe) \xc3"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", odd)
    with subprocess.Popen([odd, b"1000"]) as beside:
        try:
            ended, _ = engine.run(
                engine.argv, lambda: (os.kill(os.getpid(), signal.SIGINT), eventually(lambda: engine.heard != []))
            )
        finally:
            beside.kill()
    assert ended.interrupted
    assert engine.heard == ["SIGINT"]


def test_an_interrupt_gets_through_while_a_reader_keeps_tfguard_waiting(engine: Engine, tmp_path: Path) -> None:
    def write_slowly(chunk: bytes) -> None:
        if chunk != b"x\n":
            return
        eventually(lambda: (tmp_path / "ready").exists())
        os.kill(os.getpid(), signal.SIGINT)
        eventually(lambda: engine.heard == ["SIGINT"])
        (tmp_path / "finish").touch()

    launch = Launch(["/bin/sh", "-c", 'echo x; exec "$@"', "sh", *engine.argv], dict(os.environ), tmp_path, "apply")
    with SignalGate() as gate:
        ended = run_followed(launch, gate, Following(write_slowly, lambda _chunk: None))
    assert ended.interrupted
    assert engine.heard == ["SIGINT"]
    assert (tmp_path / "apply.stdout").read_text() == "x\ndone\n"


def test_an_engine_that_writes_faster_than_anybody_reads_does_not_stop_the_clock(tmp_path: Path) -> None:
    script = (
        "import signal, sys\nsignal.signal(signal.SIGINT, lambda *_: sys.exit(5))\n"
        "for _ in range(4000): sys.stdout.write('x' * 99999 + '\\n')"
    )
    sent: list[int] = []
    heard: list[int] = []
    size = 0

    def read_slowly(chunk: bytes) -> None:
        nonlocal size
        size += len(chunk)
        time.sleep(0.002)
        if not sent:
            os.kill(os.getpid(), signal.SIGINT)
            sent.append(size)

    launch = Launch([sys.executable, "-c", script], dict(os.environ), tmp_path, "apply")
    with SignalGate() as gate:
        run_followed(launch, gate, Following(read_slowly, lambda _chunk: None, on_signal=lambda *_: heard.append(size)))
    assert size == (tmp_path / "apply.stdout").stat().st_size
    assert heard[0] - sent[0] <= 2 << 20


def test_an_engine_is_not_left_behind_when_what_it_said_cannot_be_shown(engine: Engine, tmp_path: Path) -> None:
    def break_off(_chunk: bytes) -> None:
        (tmp_path / "broken").touch()
        raise ValueError("a defect")

    def finish_later() -> None:
        eventually(lambda: (tmp_path / "broken").exists() and (tmp_path / "ready").exists())
        os.kill(os.getpid(), signal.SIGINT)
        eventually(lambda: engine.heard == ["SIGINT"])
        (tmp_path / "finish").touch()

    launch = Launch(["/bin/sh", "-c", 'echo x; exec "$@"', "sh", *engine.argv], dict(os.environ), tmp_path, "apply")
    with SignalGate() as gate, ThreadPoolExecutor(1) as pool:
        side = pool.submit(finish_later)
        with pytest.raises(ValueError, match="a defect"):
            run_followed(launch, gate, Following(break_off, lambda _chunk: None))
        assert engine.heard == ["SIGINT"]
        side.result()
    assert (tmp_path / "apply.stdout").read_text() == "x\ndone\n"


def test_an_engine_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    launch = Launch([str(tmp_path / "none")], {}, tmp_path, "apply")
    with SignalGate() as gate, pytest.raises(NoEngineError, match="cannot be started"):
        run_followed(launch, gate, Seen().following())


def test_a_process_is_known_by_its_start_and_a_dead_one_by_none(tmp_path: Path) -> None:
    _, seen = run(tmp_path, "import time; time.sleep(0.2)")
    assert seen.process is not None
    assert seen.process.start_time > 0
    assert process_start_time(seen.process.pid) is None
    first = process_start_time(os.getpid())
    time.sleep(0.05)
    assert process_start_time(os.getpid()) == first
