"""Run other programs for a blueprint, each in a session of its own, so that a Ctrl-C reaches tfguard alone, which
decides what it means. What they print goes to a private file, and its end to the user."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import IO

from tfguard.blueprint_ports import CallEnd, Command
from tfguard.engine.signals import signals_let_through
from tfguard.errors import InputError
from tfguard.model.durations import in_words

_TAIL_LINES = 12
_TAIL_BYTES = 1 << 14
_GRACE_SECONDS = 10.0
_LOOK_SECONDS = 0.05
# A program that is just being started has a copy of every open file, and so of each lock, until it is another program.
_STARTING_SECONDS = 2.0
# Where it is only asked about, again and again: a wrong yes is asked again.
_ASKING_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class _Running:
    """A program that runs. `command`: what it has started is signalled with it; a tfguard passes its signals on
    itself."""

    process: subprocess.Popen[bytes]
    command: bool


@dataclass(slots=True)
class Calls:
    """Starts programs and waits for them, with their output in `folder`, a file for each step; knows which run now.

    `tell` is handed a line about what runs for long: the first after `quiet`, then one after each `sparse`.
    """

    folder: Path
    tell: Callable[[str], None] | None = None
    quiet: timedelta = timedelta(seconds=30)
    sparse: timedelta = timedelta(minutes=3)
    _running: dict[int, _Running] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def run(
        self,
        words: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        step: str,
        *,
        seconds: float | None = None,
        holding: tuple[int, ...] = (),
    ) -> CallEnd:
        """Run a program to its end. After `seconds` it and all that it has started are asked to end, and then made to.

        It inherits the descriptors in `holding`, which make it a step's command. Raises `InputError` when it cannot be
        started.
        """
        with self._log(step) as (log, path):
            began = log.tell()
            process = _started(words, directory, environment, step, log, subprocess.STDOUT, holding)
            with self._known(_Running(process, bool(holding))):
                ended = self._ends(process, seconds, step, path)
                if not ended:
                    _make_end(process)
            code = process.returncode
            return CallEnd(128 - code if code < 0 else code, not ended, _tail(path, began), path)

    def ask(self, words: Sequence[str], directory: Path, environment: Mapping[str, str], what: str) -> tuple[int, str]:
        """Run a program that only looks to its end: its exit code, and what it says on stderr. What it prints is not
        kept. Raises `InputError` when it cannot be started."""
        with tempfile.TemporaryFile(dir=private_folder(self.folder)) as said:
            process = _started(words, directory, environment, what, subprocess.DEVNULL, said)
            with self._known(_Running(process, command=False)):
                self._ends(process, None, what)
            said.seek(0)
            return process.returncode, said.read().decode(errors="replace")

    def interrupt(self, *, commands: bool = False) -> None:
        """Send one interrupt to every program that runs now and is no step's command; else to the commands alone, each
        with all that it has started."""
        with self._lock:
            running = [one.process for one in self._running.values() if one.command is commands]
        for process in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if commands:
                    os.killpg(process.pid, signal.SIGINT)
                else:
                    process.send_signal(signal.SIGINT)

    def _ends(
        self, process: subprocess.Popen[bytes], seconds: float | None, step: str, log: Path | None = None
    ) -> bool:
        """Wait for a program; whether it has ended within `seconds`."""
        began, word = time.monotonic(), self.quiet.total_seconds()
        while True:
            spent = time.monotonic() - began
            until = word if seconds is None else min(word, seconds)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(until - spent, 0.0))
                return True
            if until == seconds:
                return False
            if self.tell is not None:
                where = f"; log {log}" if log else ""
                self.tell(f"{step}: still running, {in_words(timedelta(seconds=word))} by now{where}")
            word += self.sparse.total_seconds()

    @contextmanager
    def _known(self, running: _Running) -> Iterator[None]:
        with self._lock:
            self._running[running.process.pid] = running
        try:
            yield
        finally:
            with self._lock:
                del self._running[running.process.pid]

    @contextmanager
    def _log(self, step: str) -> Iterator[tuple[IO[bytes], Path]]:
        path = private_folder(self.folder) / f"{step}.log"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}", "make its folder writable") from error
        with os.fdopen(descriptor, "ab") as log:
            yield log, path


@dataclass(slots=True)
class StepCommands:
    """Runs the commands of steps. Each holds a lock: while nobody has seen its end, the next tfguard here can
    tell by it that the command, or anything that it has started, still runs."""

    calls: Calls
    environ: Mapping[str, str]

    def run(self, command: Command, step: str) -> CallEnd:
        """Run it to its end, or to its timeout. Raises `InputError` when it cannot be started at all, or while
        something that an earlier command of the step has started still runs."""
        seconds = command.timeout.total_seconds() if command.timeout else None
        environment = {**self.environ, **command.environment}
        with ExitStack() as stack:
            lock = self._lock_file(step)
            try:
                held = stack.enter_context(_locked(lock))
            except BlockingIOError:
                raise InputError(
                    f"{step}: something that its last command has started still runs, and holds {lock}",
                    "let it end, or end it: what is to outlive a command belongs into a service; then go on",
                ) from None
            end = self.calls.run(command.words, command.directory, environment, step, seconds=seconds, holding=(held,))
            # Its end is known. What it has left behind, such as a service, goes on holding a lock that nobody asks.
            lock.unlink(missing_ok=True)
            return end

    def still_runs(self, step: str) -> bool:
        """Whether a command of this step that an earlier tfguard started is still running on this machine."""
        try:
            with _locked(self._lock_file(step), _ASKING_SECONDS):
                return False
        except BlockingIOError:
            return True

    def interrupt(self) -> None:
        """Pass one interrupt on to every command that runs now."""
        self.calls.interrupt(commands=True)

    def _lock_file(self, step: str) -> Path:
        return private_folder(self.calls.folder) / f"{step}.lock"


def _started(
    words: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    step: str,
    stdout: IO[bytes] | int,
    stderr: IO[bytes] | int,
    holding: tuple[int, ...] = (),
) -> subprocess.Popen[bytes]:
    try:
        with signals_let_through():
            return subprocess.Popen(
                list(words),
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                pass_fds=holding,
            )
    except OSError as error:
        raise InputError(
            f"{step}: {words[0]} cannot be started: {error.strerror}", "correct the command in the blueprint"
        ) from error
    except ValueError:
        raise InputError(f"{step}: a value has a null byte, which no command takes", "correct it") from None


def private_folder(path: Path) -> Path:
    """The folder, made when it is not there, for this user alone. Raises `InputError`."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be made: {error.strerror}", "make its folder writable") from error
    return path


@contextmanager
def _locked(path: Path, patience: float = _STARTING_SECONDS) -> Iterator[int]:
    """Hold the lock. Raises `BlockingIOError` when another program holds it for as many seconds, and not just for its
    start."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}", "make its folder writable") from error
    try:
        _lock(descriptor, patience)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise
        time.sleep(_LOOK_SECONDS)


def _make_end(process: subprocess.Popen[bytes]) -> None:
    """Ask a program and all that it has started to end, and then make them."""
    for signum, patience in ((signal.SIGTERM, _GRACE_SECONDS), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            break
    # What it has started may have outlived it.
    end = time.monotonic() + _GRACE_SECONDS
    while _group_lives(process.pid) and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _tail(path: Path, began: int) -> tuple[str, ...]:
    """The last lines that were written since, for a person."""
    with path.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(began, size - _TAIL_BYTES))
        lines = log.read().decode(errors="replace").splitlines()
    shown = ["".join(char if char.isprintable() else " " for char in line).rstrip() for line in lines]
    return tuple([line for line in shown if line][-_TAIL_LINES:])
