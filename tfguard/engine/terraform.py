"""The engine, terraform or tofu, in one working directory: what stands behind `ports.Engine`."""

from __future__ import annotations

import os
import re
import select
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tfguard.catalog.loader import Catalog
from tfguard.engine.backend import StateLocation
from tfguard.engine.events import StreamReader, parse_line
from tfguard.engine.human import PlanTrailer, error_text, question
from tfguard.engine.importing import discard_leftover, import_blocks, read_probe
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.locate import InstalledEngine
from tfguard.engine.plan import not_a_plan, parse_plan
from tfguard.engine.printers import HumanPrinter, JsonPrinter, Streams, utf8
from tfguard.engine.process import Following, Launch, run_followed
from tfguard.engine.providers import literal_settings
from tfguard.engine.queries import CLI_ARGUMENT_VARIABLES, Answer, captured
from tfguard.engine.state import parse_state, read_state_file
from tfguard.errors import InputError
from tfguard.model.engine import EngineInfo
from tfguard.model.event import EngineEvent
from tfguard.model.operation import ErroredState, StreamHealth
from tfguard.model.plan import Plan
from tfguard.model.request import Approval, ChangeRequest
from tfguard.model.state import EMPTY_STATE, StateSnapshot
from tfguard.ports import ApplyExit, EngineExit, ImportProbe, RunWatcher

_PRODUCTS = {"terraform": "Terraform", "tofu": "OpenTofu"}

# An answer that is piped in comes at once; a pipe that nobody writes to must not hang a pipeline (case B67).
_PIPED_ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class TerraformEngine:
    """One engine binary in one working directory.

    `environ` is the user's environment; `global_arguments` stand before the command (`-chdir=...`); `invoked_from` is
    where the user stands, `location` says where the state lies, `gate` holds the signals that arrive meanwhile.
    """

    installed: InstalledEngine
    location: StateLocation
    catalog: Catalog
    environ: Mapping[str, str]
    global_arguments: tuple[str, ...]
    streams: Streams
    gate: SignalGate

    @property
    def info(self) -> EngineInfo:
        """Its name and version."""
        return self.installed.info

    @property
    def directory(self) -> Path:
        """The engine's working directory."""
        return Path(self.location.stack.directory)

    def plan(self, request: ChangeRequest, plan_file: Path, run_directory: Path) -> EngineExit:
        """Plan into `plan_file`, in the engine's own form on the user's stdout."""
        form = ("-json",) if request.json else ()
        arguments = (*form, *request.planning, f"-out={plan_file}")
        trailer, decoder = PlanTrailer(), utf8()
        following = Following(
            on_stdout=lambda chunk: self.streams.out(trailer.feed(decoder.decode(chunk))),
            on_stderr=_decoding(self.streams.err),
        )
        interactive = request.input and sys.stdin.isatty()
        launch = self._launch("plan", arguments, run_directory, stdin=interactive)
        ended = run_followed(launch, self.gate, following)
        self.streams.out(trailer.finish())
        return ended

    def quiet_plan(self, arguments: Sequence[str], plan_file: Path) -> str | None:
        """Plan into `plan_file` without showing it and without a lock; None when it worked, else why not."""
        answer = self._query("plan", "-input=false", "-no-color", "-lock=false", *arguments, f"-out={plan_file}")
        return None if answer.exit_code == 0 else _first_error(answer.stderr)

    def show_plan(self, plan_file: Path) -> Plan:
        """The plan in a plan file, reduced. Raises `InputError` for a file that this engine cannot read as a plan."""
        answer = self._query("show", "-json", "-no-color", str(plan_file.absolute()))
        if answer.exit_code != 0:
            why = (
                "it is not there" if not plan_file.exists() else f"{self.info.name} {self.info.version} cannot read it"
            )
            raise not_a_plan(str(plan_file), why)
        return parse_plan(answer.stdout, str(plan_file), self.catalog, literal_settings(self.directory))

    def ask(self, request: ChangeRequest, plan: Plan) -> Approval:
        """Put the engine's own question to the user, exactly as it would, and take the answer."""
        if request.plan_file:
            return Approval.PLAN_FILE
        if request.auto_approve:
            return Approval.AUTO
        if plan.trivial:
            return Approval.NOTHING_TO_ASK
        product = _PRODUCTS[self.info.name]
        self.streams.out(question(request, self.location.stack.workspace, product))
        answer = _answer(self.gate)
        if self.gate.interrupted:
            return Approval.INTERRUPTED
        if answer is None:
            self.streams.err(error_text("error asking for approval: EOF", request.color))
            return Approval.NO_ANSWER
        self.streams.out("\n")
        if answer == "yes":
            return Approval.PROMPT
        self.streams.out(f"{'Destroy' if request.destroy else 'Apply'} cancelled.\n")
        return Approval.DECLINED

    def apply(
        self,
        request: ChangeRequest,
        plan_file: Path,
        run_directory: Path,
        user_agent: str,
        watcher: RunWatcher,
        imports: Sequence[tuple[str, str]] = (),
    ) -> ApplyExit:
        """Apply a plan file in a session of its own, and follow it to its end, however long that takes."""
        reader = StreamReader()
        printer = (
            JsonPrinter(self.streams, continued=not request.plan_file, destroying=request.command == "destroy")
            if request.json
            else HumanPrinter(self.streams, request, imports)
        )

        def take(chunk: bytes) -> None:
            events = reader.feed(chunk) if chunk else reader.finish()
            printer.show(chunk, events)
            for event in events:
                watcher.event(event)

        following = Following(
            on_stdout=take,
            on_stderr=_decoding(self.streams.err),
            on_start=watcher.started,
            on_signal=watcher.interrupted,
            on_tick=watcher.tick,
        )
        environ = {"TF_APPEND_USER_AGENT": f"{self.environ.get('TF_APPEND_USER_AGENT', '')} {user_agent}".strip()}
        arguments = ("-json", *request.applying, str(plan_file.absolute()))
        ended = run_followed(self._launch("apply", arguments, run_directory, environ), self.gate, following)
        take(b"")
        return ApplyExit(ended, _health(reader))

    def leftover_events(self, run_directory: Path) -> tuple[Sequence[EngineEvent], StreamHealth] | None:
        """The event stream of an apply whose wrapper died, read from its run directory; None when it is not there."""
        try:
            data = (run_directory / "apply.stdout").read_bytes()
        except OSError:
            return None
        reader = StreamReader()
        events = [*reader.feed(data), *reader.finish()]
        return events, _health(reader)

    def pull_state(self) -> StateSnapshot:
        """The state as its backend holds it; a local one is read where it lies, every other through the engine."""
        if self.location.path is not None:
            return read_state_file(self.location.path, self.catalog)
        answer = self._query("state", "pull")
        if answer.exit_code != 0:
            raise InputError(
                f"the state at {self.location.stack.location} cannot be read: {_first_error(answer.stderr)}",
                "check the backend and its credentials, then run the command again",
            )
        if not answer.stdout.strip():
            return EMPTY_STATE
        return parse_state(answer.stdout.encode(), self.location.stack.location, self.catalog)

    def read_state_file(self, path: Path) -> StateSnapshot:
        """The state in a file that is not the backend's."""
        return read_state_file(path, self.catalog)

    def errored_state(self) -> ErroredState | None:
        """An `errored.tfstate` in the working directory, found by looking for the file, whatever was said about it."""
        path = self.directory / "errored.tfstate"
        if not path.exists():
            return None
        snapshot = read_state_file(path, self.catalog)
        return ErroredState(str(path), None, snapshot.lineage, snapshot.serial)

    def push_state(self, path: Path) -> EngineExit:
        """`state push`; the engine itself refuses another lineage or a lower serial. Its words go to stderr."""
        with tempfile.TemporaryDirectory(prefix="tfguard-") as folder:
            launch = self._launch("state", ("push", str(path.absolute())), Path(folder))
            following = Following(_decoding(self.streams.err), _decoding(self.streams.err))
            return run_followed(launch, self.gate, following)

    def probe_import(self, address: str, import_id: str, arguments: Sequence[str]) -> ImportProbe:
        """Ask the engine whether an object exists, by planning an import block for it."""
        plan = ("plan", "-json", "-input=false", "-lock=false", "-refresh=false", f"-target={address}", *arguments)
        try:
            with import_blocks(self.directory, [(address, import_id)]):
                answer = self._query(*plan)
        except InputError as error:
            return ImportProbe(None, error.what)
        return read_probe([parse_line(line.encode()) for line in answer.stdout.splitlines()], address, import_id)

    def discard_import_blocks(self) -> None:
        """Remove import blocks that a killed adoption left in the configuration; nobody else's are touched."""
        discard_leftover(self.directory)

    def import_blocks(self, pairs: Sequence[tuple[str, str]]) -> AbstractContextManager[Path]:
        """While open, the configuration has import blocks for these (address, import id) pairs."""
        return import_blocks(self.directory, pairs)

    def _query(self, *arguments: str) -> Answer:
        return captured(self.installed.binary, self.directory, *arguments)

    def _launch(
        self,
        command: str,
        arguments: Sequence[str],
        run_directory: Path,
        environ: Mapping[str, str] | None = None,
        stdin: bool = False,
    ) -> Launch:
        argv = [str(self.installed.binary), *self.global_arguments, command, *arguments]
        scrubbed = {name: value for name, value in self.environ.items() if not name.startswith(CLI_ARGUMENT_VARIABLES)}
        return Launch(argv, {**scrubbed, **(environ or {})}, run_directory, command, stdin)


def _decoding(write: Callable[[str], None]) -> Callable[[bytes], None]:
    decoder = utf8()
    return lambda chunk: write(decoder.decode(chunk))


def _health(reader: StreamReader) -> StreamHealth:
    counts = reader.counts
    return StreamHealth(counts.events, counts.unknown, counts.plain, counts.cut, whole=counts.cut == 0)


def _answer(gate: SignalGate) -> str | None:
    """The line that is typed or piped in as an answer; None when there is no whole one, or when a signal came first."""
    descriptor = sys.stdin.fileno()
    typed = os.isatty(descriptor)
    deadline = None if typed else time.monotonic() + _PIPED_ANSWER_SECONDS
    line = b""
    while not gate.interrupted and (deadline is None or time.monotonic() < deadline):
        if not select.select([descriptor], [], [], 0.1)[0]:
            continue
        byte = os.read(descriptor, 1)
        if byte == b"":
            return None
        if byte == b"\n":
            return line.decode("utf-8", "replace").strip()
        line += byte
    return None


def _first_error(stderr: str) -> str:
    """The first line of an engine's error, without colour and frame."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stderr)
    lines = [line.strip("│╷╵ \t") for line in plain.splitlines()]
    found = next((line for line in lines if line.startswith("Error")), next((line for line in lines if line), ""))
    return found or "the engine gave no reason"
