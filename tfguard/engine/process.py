"""Run the engine so that it outlives tfguard: own session, hang-up ignored, output into files that tfguard follows.

A pipe whose reader dies kills the engine mid-apply, even with SIGPIPE ignored; a file does not (rule 8, case B10).
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tfguard.engine.interrupts import SignalGate
from tfguard.engine.signals import signals_let_through
from tfguard.engine.terminal import EngineTerminal
from tfguard.errors import NoEngineError
from tfguard.model.lease import ProcessIdentity
from tfguard.ports import EngineExit

_CHUNK = 1 << 16
_MOST_AT_ONCE = 1 << 19
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 0.05


Read = Callable[[int], bytes]
Columns = tuple[int | None, int | None]
"""The widths of stdout and stderr where they are terminals."""


@dataclass(frozen=True, slots=True)
class Following:
    """What to do with what the engine writes, chunk by chunk, and with what happens meanwhile."""

    on_stdout: Callable[[bytes], None]
    on_stderr: Callable[[bytes], None]
    on_start: Callable[[ProcessIdentity], None] = lambda _identity: None
    on_signal: Callable[[str, bool], None] = lambda _name, _forwarded: None
    on_events: Callable[[bytes], None] = lambda _chunk: None
    gives_up: Callable[[], bool] = lambda: False
    """Asked again and again while the engine runs: whether it is to be interrupted, once."""


def process_start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it does not run (field 22 of /proc/PID/stat)."""
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes()  # a process may have any bytes for a name
    except OSError:
        return None
    fields = told.rpartition(b")")[2].split()
    # A zombie has ended: only its parent has not looked yet.
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: its output goes to `<name>.stdout` and `<name>.stderr` in `run_directory`.

    `stdin` hands tfguard's own standard input on, for questions on a terminal; `answer` is all that the engine is to
    read, and `source` a descriptor to read from; without any it reads nothing. `events` is a further file that the
    engine was told to write. A stream that has a width in `columns` is a terminal that wide for the engine, and no
    file: not for what must outlive tfguard.
    """

    argv: Sequence[str]
    environ: Mapping[str, str]
    run_directory: Path
    name: str
    stdin: bool = False
    answer: bytes | None = None
    source: int | None = None
    events: Path | None = None
    columns: Columns = (None, None)


def run_followed(launch: Launch, gate: SignalGate, following: Following) -> EngineExit:
    """Run an engine to its end. Never kills it, and never returns before it has ended.

    Raises `NoEngineError` when it cannot be started.
    """
    with ExitStack() as stack:
        out_path = launch.run_directory / f"{launch.name}.stdout"
        err_path = launch.run_directory / f"{launch.name}.stderr"
        if launch.events is not None:
            # There before the engine is: private, and nothing to wait for. That the engine empties it first is no harm.
            _private(launch.events).close()
        out, read_out = _output(stack, out_path, launch.columns[0])
        err, read_err = _output(stack, err_path, launch.columns[1])
        process = _start(launch, out, err)
        readers = [(read_out, following.on_stdout), (read_err, following.on_stderr)]
        if launch.events is not None:
            readers.append((stack.enter_context(launch.events.open("rb")).read, following.on_events))
        interrupted = _follow(process, launch.argv[1:], readers, gate, following)
    return _exit(process.returncode, interrupted)


def _output(stack: ExitStack, path: Path, columns: int | None) -> tuple[int, Read]:
    """Where the engine writes a stream to, and how to read what it wrote."""
    if columns is None:
        return stack.enter_context(_private(path)).fileno(), stack.enter_context(path.open("rb")).read
    terminal = stack.enter_context(EngineTerminal(columns))
    return terminal.descriptor, terminal.read


def _start(launch: Launch, out: int, err: int) -> subprocess.Popen[bytes]:
    # Inherited as ignored, so that a closing terminal does not end the engine; set here and not in the child, since
    # code between fork and exec is unsafe next to threads.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _input(launch) as given, signals_let_through():
            return subprocess.Popen(
                launch.argv,
                stdin=given,
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


@contextmanager
def _input(launch: Launch) -> Iterator[IO[bytes] | int | None]:
    if launch.stdin or launch.answer is None:
        unasked = subprocess.DEVNULL if launch.source is None else launch.source
        yield None if launch.stdin else unasked
        return
    with _memory() as file:
        file.write(launch.answer)
        file.seek(0)
        yield file


def _memory() -> IO[bytes]:
    """A file that lies on no disk, where the system has such: an answer can be a state in clear."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("tfguard"), "w+b")
    return tempfile.TemporaryFile()


def _private(path: Path) -> IO[bytes]:
    """Open for appending, readable by the owner alone: an engine that appends cannot overwrite what it wrote before."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def _follow(
    process: subprocess.Popen[bytes],
    arguments: Sequence[str],
    readers: Sequence[tuple[Read, Callable[[bytes], None]]],
    gate: SignalGate,
    following: Following,
) -> bool:
    """Whether a signal came while the engine ran."""
    with gate.forwarding(lambda: _interrupt(process, arguments)):
        try:
            following.on_start(ProcessIdentity(process.pid, process_start_time(process.pid) or 0))
            return _followed_to_the_end(process, arguments, readers, gate, following)
        finally:
            # Whatever broke here: the engine is not left behind, nor kept waiting for a reader.
            while not _has_ended(process, arguments):
                for read, _ in readers:
                    read(_CHUNK)
                time.sleep(_SHORTEST_PAUSE)


def _followed_to_the_end(
    process: subprocess.Popen[bytes],
    arguments: Sequence[str],
    readers: Sequence[tuple[Read, Callable[[bytes], None]]],
    gate: SignalGate,
    following: Following,
) -> bool:
    pause = _SHORTEST_PAUSE
    interrupted = given_up = False
    while True:
        ended = _has_ended(process, arguments)  # asked before reading, so that the last bytes are not missed
        moved = [_drain(read, take) for read, take in readers]
        while (arrived := gate.take()) is not None:
            interrupted = True
            signum, forwarded = arrived
            following.on_signal(signal.Signals(signum).name, forwarded)
        if not ended and not interrupted and not given_up and following.gives_up():
            given_up = True
            gate.stop_engine()
        if any(moved):
            pause = _SHORTEST_PAUSE
        elif ended:
            return interrupted
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _drain(read: Read, take: Callable[[bytes], None]) -> bool:
    """Whether anything was there. Not all of it at once: an engine that writes without end must not stop the clock."""
    taken = 0
    while taken < _MOST_AT_ONCE and (chunk := read(_CHUNK)):
        taken += len(chunk)
        take(chunk)
    return taken > 0


def _interrupt(process: subprocess.Popen[bytes], arguments: Sequence[str]) -> bool:
    """Send the engine one interrupt; False when it has ended.

    To the engine itself and not to a script around it: a script that does not pass signals on would die and leave the
    engine behind, and to one that does, or to the whole group, would make it two.
    """
    started = () if process.returncode is not None else (process.pid,)
    for pid in (*_engine_processes(process.pid, arguments), *started):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGINT)
            return True
    return False


def _has_ended(process: subprocess.Popen[bytes], arguments: Sequence[str]) -> bool:
    """Whether the engine has ended. A script around it that somebody killed may have left it running."""
    code = process.poll()
    if code is None:
        return False
    return 0 <= code <= 128 or not _engine_processes(process.pid, arguments)


def _engine_processes(session: int, arguments: Sequence[str]) -> list[int]:
    """The engine among the processes of its session, then the scripts around it, from the inside outwards.

    They are those that were called with the engine's arguments, which name this run's own files; what a provider or a
    provisioner starts is not. Empty where the system does not tell.
    """
    parents: dict[int, int] = {}
    calls: dict[int, Sequence[bytes]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may end at any moment
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if all(os.fsencode(argument) in words for argument in arguments):
                    parents[int(entry.name)], calls[int(entry.name)] = int(fields[1]), words

    def depth(pid: int) -> int:
        return 1 + depth(parents[pid]) if pid in parents else 0

    # One that was called as its parent was has not become anything yet: the engine is starting something.
    itself = [pid for pid in calls if calls[pid] != calls.get(parents[pid])]
    return sorted(itself, key=depth, reverse=True)


def _exit(returncode: int, interrupted: bool) -> EngineExit:
    if returncode < 0:
        return EngineExit(128 - returncode, signal=-returncode, interrupted=interrupted)
    # A shell script around the engine reports its child's death as 128 + N (case B06).
    by_signal = returncode - 128 if 128 < returncode < 160 else None
    return EngineExit(returncode, signal=by_signal, interrupted=interrupted)
