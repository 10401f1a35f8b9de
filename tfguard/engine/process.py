"""Run the engine so that it outlives tfguard: own session, hang-up ignored, output into files that tfguard follows.

A pipe whose reader dies kills the engine mid-apply, even with SIGPIPE ignored; a file does not (rule 8, case B10).
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tfguard.engine.interrupts import InterruptPolicy, SignalGate
from tfguard.errors import NoEngineError
from tfguard.model.lease import ProcessIdentity
from tfguard.ports import EngineExit

_CHUNK = 1 << 16
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Following:
    """What to do with what the engine writes, chunk by chunk, and with what happens meanwhile."""

    on_stdout: Callable[[bytes], None]
    on_stderr: Callable[[bytes], None]
    on_start: Callable[[ProcessIdentity], None] = lambda _identity: None
    on_signal: Callable[[str, bool], None] = lambda _name, _forwarded: None
    on_tick: Callable[[], None] = lambda: None


def process_start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it does not run (field 22 of /proc/PID/stat)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    # A zombie has ended: only its parent has not looked yet.
    return None if fields[0] in ("Z", "X") else int(fields[19])


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: its output goes to `<name>.stdout` and `<name>.stderr` in `run_directory`.

    `stdin` hands tfguard's own standard input on, for questions on a terminal; without it the engine reads nothing.
    """

    argv: Sequence[str]
    environ: Mapping[str, str]
    run_directory: Path
    name: str
    stdin: bool = False


def run_followed(launch: Launch, gate: SignalGate, following: Following) -> EngineExit:
    """Run an engine to its end. Never kills it, and never returns before it has ended.

    Raises `NoEngineError` when it cannot be started.
    """
    with ExitStack() as stack:
        out_path = launch.run_directory / f"{launch.name}.stdout"
        err_path = launch.run_directory / f"{launch.name}.stderr"
        process = _start(launch, out_path, err_path)
        readers = [
            (stack.enter_context(out_path.open("rb")), following.on_stdout),
            (stack.enter_context(err_path.open("rb")), following.on_stderr),
        ]
        following.on_start(ProcessIdentity(process.pid, process_start_time(process.pid) or 0))
        interrupted = _follow(process, readers, gate, following)
    return _exit(process.returncode, interrupted)


def _start(launch: Launch, out_path: Path, err_path: Path) -> subprocess.Popen[bytes]:
    # Inherited as ignored, so that a closing terminal does not end the engine; set here and not in the child, since
    # code between fork and exec is unsafe next to threads.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _private(out_path) as out, _private(err_path) as err:
            return subprocess.Popen(
                launch.argv,
                stdin=None if launch.stdin else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=dict(launch.environ),
                start_new_session=True,
            )
    except OSError as error:
        raise NoEngineError(
            f"{launch.argv[0]} cannot be started: {error.strerror}", "name another engine with --engine"
        ) from error
    finally:
        signal.signal(signal.SIGHUP, before)


def _private(path: Path) -> IO[bytes]:
    """Open for appending, readable by the owner alone: an engine that appends cannot overwrite what it wrote before."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def _follow(
    process: subprocess.Popen[bytes],
    readers: Sequence[tuple[IO[bytes], Callable[[bytes], None]]],
    gate: SignalGate,
    following: Following,
) -> bool:
    policy = InterruptPolicy()
    pause = _SHORTEST_PAUSE
    interrupted = False
    while True:
        ended = process.poll() is not None  # asked before reading, so that the last bytes are not missed
        moved = [_drain(reader, take) for reader, take in readers]
        while (arrived := gate.take()) is not None:
            interrupted = True
            forwards = policy.forwards(*arrived) and not ended
            if forwards:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGINT)
            following.on_signal(signal.Signals(arrived[0]).name, forwards)
        following.on_tick()
        if ended:
            return interrupted
        pause = _SHORTEST_PAUSE if any(moved) else min(pause * 1.5, _LONGEST_PAUSE)
        time.sleep(pause)


def _drain(reader: IO[bytes], take: Callable[[bytes], None]) -> bool:
    moved = False
    while chunk := reader.read(_CHUNK):
        moved = True
        take(chunk)
    return moved


def _exit(returncode: int, interrupted: bool) -> EngineExit:
    if returncode < 0:
        return EngineExit(128 - returncode, signal=-returncode, interrupted=interrupted)
    # A shell script around the engine reports its child's death as 128 + N (case B06).
    by_signal = returncode - 128 if 128 < returncode < 160 else None
    return EngineExit(returncode, signal=by_signal, interrupted=interrupted)
