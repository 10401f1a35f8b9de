"""How a command is asked: its exit code, without a shell, and with everything that it started ended in time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from tfguard.blueprint_ports import ProbeAnswer
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.process import process_start_time
from tfguard.engine.signals import signals_let_through
from tfguard.model.blueprint import Probe
from tfguard.probes.prober import ServiceProber

Ask = Callable[..., ProbeAnswer]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Ask a command that runs in a new folder."""

    def asked(*words: str, seconds: float = 60, **environment: str) -> ProbeAnswer:
        prober = ServiceProber(tmp_path, {"PATH": os.environ["PATH"], "INHERITED": "yes"}, signals_let_through)
        return prober.ask(Probe(command=words, environment=environment, timeout=timedelta(seconds=seconds)))

    return asked


@pytest.mark.parametrize(
    ("code", "ok", "detail"),
    [
        ("", True, "ended with 0"),
        ("raise SystemExit(7)", False, "ended with 7"),
        ("import os; os.kill(os.getpid(), 9)", False, "ended by SIGKILL"),
        ("import sys; sys.exit(sys.argv[1:] != ['$HOME; exit 0'])", True, "ended with 0"),
        ("import os; exit((os.environ['INHERITED'], os.environ['GIVEN']) != ('yes', 'too'))", True, "ended with 0"),
        ("print('x' * 10_000_000)", True, "ended with 0"),
        ("exit(len(input()))", False, "ended with 1"),
    ],
)  # fmt: skip
def test_the_exit_code_decides(ask: Ask, code: str, ok: bool, detail: str) -> None:
    answer = ask(sys.executable, "-c", code, "$HOME; exit 0", GIVEN="too")
    assert answer == ProbeAnswer(ok, f"{Path(sys.executable).name}: {detail}")


def test_a_path_counts_from_the_folder(ask: Ask, tmp_path: Path) -> None:
    assert ask("./check.sh") == ProbeAnswer(False, "check.sh: cannot be started: No such file or directory")
    script = tmp_path / "check.sh"
    script.write_text("#!/bin/sh\ntest -f check.sh\n")
    assert ask("./check.sh") == ProbeAnswer(False, "check.sh: cannot be started: Permission denied")
    script.chmod(0o755)
    assert ask("./check.sh").ok


def test_a_command_that_hangs_is_ended_with_all_that_it_started(ask: Ask, tmp_path: Path) -> None:
    answer = ask("sh", "-c", "trap '' TERM INT HUP; sleep 300 & echo $! >child; wait", seconds=3)
    assert answer == ProbeAnswer(False, "sh: no answer within 3s")
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 30
    while process_start_time(child) is not None:
        assert time.monotonic() < deadline, "the child still runs"
        time.sleep(0.05)


def test_a_command_has_no_signal_blocked_while_tfguard_waits_for_some(ask: Ask) -> None:
    blocked = "import signal; exit(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    with SignalGate(), ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask, sys.executable, "-c", blocked).result()
    assert answer.ok, answer.detail
