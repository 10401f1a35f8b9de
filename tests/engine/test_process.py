"""The engine as a process that outlives its wrapper and hears of one interrupt."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from tfguard.engine.interrupts import InterruptPolicy, SignalGate
from tfguard.engine.process import Following, Launch, process_start_time, run_followed
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


def run(folder: Path, script: str, *, signals: list[tuple[float, int]] | None = None) -> tuple[EngineExit, Seen]:
    """Run a Python script as the engine; `signals` come to this process after so many seconds."""
    seen = Seen()
    launch = Launch([sys.executable, "-c", script], dict(os.environ), folder, "apply")
    timers = [threading.Timer(after, os.kill, (os.getpid(), signum)) for after, signum in signals or ()]
    with SignalGate() as gate:
        for timer in timers:
            timer.start()
        ended = run_followed(launch, gate, seen.following())
        for timer in timers:
            timer.join()
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


WAITING = """
import signal, sys, time
count = 0
def arrived(number, frame):
    global count
    count += 1
signal.signal(signal.SIGINT, arrived)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(99))
print("ready", flush=True)
end = time.monotonic() + 2.2
while time.monotonic() < end:
    time.sleep(0.02)
print("interrupts", count)
sys.exit(1)
"""


@pytest.mark.parametrize(
    ("signals", "interrupts"),
    [
        ([(0.8, signal.SIGTERM)], 1),
        ([(0.8, signal.SIGINT), (0.9, signal.SIGINT), (1.2, signal.SIGTERM), (1.3, signal.SIGHUP)], 1),
        ([(0.6, signal.SIGTERM), (1.9, signal.SIGINT)], 2),
    ],
)
def test_the_engine_hears_one_interrupt_for_each_intent(
    tmp_path: Path, signals: list[tuple[float, int]], interrupts: int
) -> None:
    ended, seen = run(tmp_path, WAITING, signals=signals)
    assert f"interrupts {interrupts}\n".encode() in seen.out
    assert ended == EngineExit(1, None, True)
    assert [forwarded for _, forwarded in seen.signals].count(True) == interrupts
    assert len(seen.signals) == len(signals)


def test_the_policy_takes_a_second_ctrl_c_alone_for_a_second_intent() -> None:
    policy = InterruptPolicy()
    assert policy.forwards(signal.SIGTERM, 0.0)
    assert not policy.forwards(signal.SIGTERM, 60.0)
    assert policy.forwards(signal.SIGINT, 61.0)
    assert not policy.forwards(signal.SIGINT, 61.5)


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
