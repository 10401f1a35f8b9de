"""What a command says by its exit code. Its output goes nowhere: it may hold anything."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from tfguard.blueprint_ports import ProbeAnswer
from tfguard.model.blueprint import Probe
from tfguard.probes.attempt import Attempt


@dataclass(frozen=True, slots=True)
class CommandProbe:
    """Runs commands in `folder`, without a shell. `starting` is around the start of each: there signals are let through
    that tfguard has blocked, since a process inherits that."""

    folder: Path
    environ: Mapping[str, str]
    starting: Callable[[], AbstractContextManager[None]]

    def ask(self, probe: Probe, attempt: Attempt) -> ProbeAnswer:
        """0 is yes. When the time is over, the command and all that it started are killed. Raises `TimeoutError`."""
        try:
            with self.starting():
                process = subprocess.Popen(
                    probe.command,
                    cwd=self.folder,
                    env={**self.environ, **probe.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
        except OSError as error:
            return ProbeAnswer(False, f"cannot be started: {error.strerror}")
        try:
            code = process.wait(attempt.left())
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            # Only while nobody has asked how it ended: until then its number, and its group's, is no other process's.
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return ProbeAnswer(code == 0, f"ended by {_signal_name(-code)}" if code < 0 else f"ended with {code}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
