"""The engine, terraform or tofu, in one working directory: what stands behind `ports.Engine`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tfguard.catalog.catalog import Catalog
from tfguard.engine.answers import PipedAnswers, read_answer
from tfguard.engine.arguments import variables_in
from tfguard.engine.backend import StateLocation
from tfguard.engine.configuration import declared_resources, written_imports
from tfguard.engine.deposed import DeposedKeys
from tfguard.engine.drafting import Drafting
from tfguard.engine.encrypted import EncryptedStates
from tfguard.engine.events import StreamReader, parse_line
from tfguard.engine.features import has_json_into
from tfguard.engine.human import error_text, question
from tfguard.engine.importing import (
    FILE,
    block_lines,
    discard_leftover,
    errors_in,
    import_blocks,
    read_probe,
    troubles,
    unwritten,
)
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.locate import InstalledEngine
from tfguard.engine.locks import local_lock, met_lock
from tfguard.engine.plan import not_a_plan, parse_plan
from tfguard.engine.planview import PlanWarnings
from tfguard.engine.printers import (
    FileStreams,
    HumanPlanPrinter,
    HumanPrinter,
    JsonPlanPrinter,
    JsonPrinter,
    OwnFormPrinter,
    Streams,
    utf8,
    warnings_text,
)
from tfguard.engine.process import Following, Launch, run_followed
from tfguard.engine.providers import literal_settings
from tfguard.engine.queries import CLI_ARGUMENT_VARIABLES, Answer, captured
from tfguard.engine.refusal import refusal
from tfguard.engine.scratch import ScratchDeletion
from tfguard.engine.state import is_encrypted, parse_state, read_envelope, read_state_file
from tfguard.engine.terminal import columns_of
from tfguard.errors import EncryptedStateError, InputError
from tfguard.model.address import module_path, without_instance_key
from tfguard.model.engine import EngineInfo
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.importing import Draft, ImportTarget, ImportTrouble, WrittenImport
from tfguard.model.lock import StateLock
from tfguard.model.operation import ErroredState, StreamHealth
from tfguard.model.plan import Plan
from tfguard.model.request import Approval, ChangeRequest, Effect, RepairRequest
from tfguard.model.state import EMPTY_STATE, StateSnapshot
from tfguard.ports import ApplyExit, Deletion, DeletionTarget, EngineExit, ImportProbe, RunWatcher

_PRODUCTS = {"terraform": "Terraform", "tofu": "OpenTofu"}
_EVENTS = "apply.events"
_CHUNK = 1 << 20
_PLANS = ("plan", "plan-2", "plan-3")
_UNHEARD = "tfguard: the engine asked, and did not read the answer"
# What provisioners and plugins print: as much as they like, and nothing about a step.
_TALK = frozenset({EventKind.PROVISION_PROGRESS, EventKind.PLAIN, EventKind.UNKNOWN})


@dataclass(frozen=True, slots=True)
class TerraformEngine:
    """One engine binary in one working directory.

    `environ` is the user's environment; `global_arguments` stand before the command (`-chdir=...`); `invoked_from` is
    where the user stands, `location` says where the state lies, `gate` holds the signals that arrive meanwhile.
    `warnings` are those of the plan that is being applied. `variables` are the user's `-var` and `-var-file`.
    """

    installed: InstalledEngine
    location: StateLocation
    catalog: Catalog
    environ: Mapping[str, str]
    global_arguments: tuple[str, ...]
    streams: Streams
    gate: SignalGate
    warnings: PlanWarnings = field(default_factory=PlanWarnings)
    variables: tuple[str, ...] = ()

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
        # A plan changes nothing: should it not outlive tfguard, then nothing is lost.
        columns = (None, None) if request.json else (columns_of(1), columns_of(2))
        launch = replace(self._launch("plan", arguments, run_directory), columns=columns)
        given: list[str] = []
        # A plan that was stopped while it asked has locked and changed nothing, and can be begun again.
        for name in _PLANS:
            printer = JsonPlanPrinter(self.streams) if request.json else HumanPlanPrinter(self.streams, request)
            following = Following(printer.show, printer.complain)
            ended, heard = self._run_asking(replace(launch, name=name), request.input, following, given)
            if heard:
                break
            then = "run the command again, or give the values as -var" if name == _PLANS[-1] else "it plans anew"
            self.streams.err(f"{_UNHEARD}: it was stopped; {then}\n")
        if ended.exit_code == 0:
            self.warnings.hold(printer.finish())
        else:
            printer.failed(lambda: self._plans_anything(plan_file), lambda: self._refusal(request))
        return ended

    def _run_asking(
        self, launch: Launch, asks: bool, following: Following, given: list[str]
    ) -> tuple[EngineExit, bool]:
        """Run an engine that, when it `asks`, reads the answers from the user; and whether it heard them. Those in
        `given`, which are of an earlier run, are its first; new ones are added there."""
        if not asks or sys.stdin.isatty():
            return run_followed(replace(launch, stdin=asks), self.gate, following), True
        with PipedAnswers(self.gate, given) as piped:
            answering = replace(following, on_stdout=piped.answering(following.on_stdout), gives_up=piped.goes_unheard)
            ended = run_followed(replace(launch, source=piped.descriptor), self.gate, answering)
        return ended, not piped.unheard or self.gate.interrupted

    def _plans_anything(self, plan_file: Path) -> bool:
        """Whether a plan that failed came to any change, an empty one included."""
        try:
            plan = self.show_plan(plan_file)
        except InputError:
            return False
        return bool(plan.changes or plan.reads or plan.changes_outputs)

    def _refusal(self, request: ChangeRequest) -> Answer | None:
        return refusal(self.installed.binary, request.command, request.arguments, self.environ, self.gate)

    def quiet_plan(self, arguments: Sequence[str], plan_file: Path) -> str | None:
        """Plan into `plan_file` without showing it and without a lock; None when it worked, else why not."""
        answer = self._query(*quiet_plan_words(arguments, plan_file))
        return None if answer.exit_code == 0 else answer.reason

    def show_plan(self, plan_file: Path) -> Plan:
        """The plan in a plan file, reduced. Raises `InputError` for a file that this engine cannot read as a plan."""
        answer = self._query("show", "-json", "-no-color", *self._early, str(plan_file.absolute()))
        if answer.exit_code != 0:
            why = (
                "it is not there" if not plan_file.exists() else f"{self.info.name} {self.info.version} cannot read it"
            )
            raise not_a_plan(str(plan_file), why)
        return parse_plan(answer.stdout, str(plan_file), self.catalog, literal_settings(self.directory, self.info))

    def ask(self, request: ChangeRequest, plan: Plan) -> Approval:
        """Put the engine's own question to the user, exactly as it would, and take the answer."""
        if request.plan_file:
            return Approval.PLAN_FILE
        if request.auto_approve:
            return Approval.AUTO
        if plan.asks_nothing(request.refresh_only):
            return Approval.NOTHING_TO_ASK
        self._tell_warnings(request)
        product = _PRODUCTS[self.info.name]
        self.streams.out(question(request, self.location.stack.workspace, product))
        answer = read_answer(self.gate)
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
        plan: Plan,
    ) -> ApplyExit:
        """Apply a plan file in a session of its own, and follow it to its end, however long that takes.

        An engine that can tells its events to a file, so that its own human form reaches the user as it is.
        """
        reader = StreamReader()
        apart = self._tells_events_apart(request)
        if apart:
            self._tell_warnings(request)  # the engine itself prints what comes from now on
        printers = self._printers(request, plan, apart)

        def take(chunk: bytes) -> None:
            events = reader.feed(chunk) if chunk else reader.finish()
            for printer in printers:
                printer.show(chunk, events)
            for event in events:
                watcher.event(event)

        own_form = OwnFormPrinter(self.streams, destroying=request.command == "destroy")
        following = Following(
            on_stdout=(lambda chunk: own_form.show(chunk, ())) if apart else take,
            on_stderr=_decoding(self.streams.err),
            on_start=watcher.started,
            on_signal=watcher.interrupted,
            on_events=take,
        )
        events = run_directory / _EVENTS if apart else None
        options = (*self._form(request, events), *request.applying, *self._again(request, plan))
        arguments = (*options, str(plan_file.absolute()))
        launch = self._launch("apply", arguments, run_directory, self._user_agent(user_agent))
        ended = run_followed(replace(launch, events=events), self.gate, following)
        own_form.show(b"", ())
        take(b"")
        return ApplyExit(ended, _health(reader))

    def _tells_events_apart(self, request: ChangeRequest) -> bool:
        """Whether the events come in a file. Not for an adoption, whose output is not all of interest to the user."""
        return not request.json and request.command in ("apply", "destroy") and has_json_into(self.installed)

    def _printers(self, request: ChangeRequest, plan: Plan, apart: bool) -> tuple[JsonPrinter | HumanPrinter, ...]:
        """What shows the user the events: on stdout unless its human form comes there, and in a file that was named."""
        planned, destroying = None if request.plan_file else self.warnings, request.command == "destroy"
        if not apart and request.json:
            return (JsonPrinter(self.streams, planned, destroying),)
        if not apart:
            state = self.location.path
            written = self.directory / request.state_out if state and request.state_out else state
            return (HumanPrinter(self.streams, request, plan, DeposedKeys(plan, written), planned),)
        if not request.json_into:
            return ()
        named = FileStreams(self.directory / request.json_into, begins=planned is None)
        return (JsonPrinter(named, planned, destroying),)

    def _again(self, request: ChangeRequest, plan: Plan) -> tuple[str, ...]:
        """The variables that tfguard's own plan was made with, where the engine needs them beside it.

        OpenTofu compares the plan's with those that the files and the environment give, which may be others.
        """
        own = request.plan_file is None or request.command == "import"
        needed = own and (plan.unkept or self.info.name == "tofu")
        return variables_in(request.variables) if needed and self.info.takes_variables_with_a_plan else ()

    @property
    def _early(self) -> tuple[str, ...]:
        """The variables that the engine needs for any command at all."""
        return self.variables if self.info.evaluates_early else ()

    def _tell_warnings(self, request: ChangeRequest) -> None:
        """Show what the plan has warned of and nobody was shown yet."""
        text = warnings_text(self.warnings.waiting, request, _PRODUCTS[self.info.name])
        self.streams.out(text)
        self.warnings.waiting = ()

    def _form(self, request: ChangeRequest, events: Path | None) -> tuple[str, ...]:
        if events is not None:
            return (f"-json-into={events}",)
        # An engine that does not have it, or not beside -json, says so itself.
        return ("-json", f"-json-into={request.json_into}") if request.json_into else ("-json",)

    def repair(self, request: RepairRequest, run_directory: Path, user_agent: str, watcher: RunWatcher) -> ApplyExit:
        """Run one of the engine's other changing commands as the user typed it, and follow it to its end."""
        reader, show = StreamReader(), _decoding(self.streams.out)

        def take(chunk: bytes) -> None:
            show(chunk)
            for event in (reader.feed(chunk) if chunk else reader.finish()) if request.json else ():
                watcher.event(event)

        following = Following(take, _decoding(self.streams.err), watcher.started, watcher.interrupted)
        command, *rest = request.command.split()
        launch = self._launch(command, (*rest, *request.arguments), run_directory, self._user_agent(user_agent))
        if request.effect is Effect.OVERWRITES and "-" in request.operands:
            ended = run_followed(replace(launch, stdin=True), self.gate, following)  # the state itself
        else:
            ended, heard = self._run_asking(launch, asks=True, following=following, given=[])
            if not heard:
                self.streams.err(f"{_UNHEARD}: it was stopped; run the command again, or give the values as -var\n")
        take(b"")
        return ApplyExit(ended, _health(reader))

    def leftover_events(self, run_directory: Path) -> tuple[Sequence[EngineEvent], StreamHealth] | None:
        """The event stream of an apply whose wrapper died, read from its run directory; None when it is not there."""
        apart = run_directory / _EVENTS
        reader = StreamReader()
        events: list[EngineEvent] = []
        try:
            with (apart if apart.exists() else run_directory / "apply.stdout").open("rb") as file:
                while chunk := file.read(_CHUNK):
                    events += (event for event in reader.feed(chunk) if event.kind not in _TALK)
        except OSError:
            return None
        return [*events, *reader.finish()], _health(reader)

    def pull_state(self) -> StateSnapshot:
        """The state as its backend holds it; a local one is read where it lies, every other through the engine.

        Through the engine too when it is encrypted. Of a file that `-state` named, `state pull` knows nothing.
        """
        if self.location.path is not None:
            try:
                return read_state_file(self.location.path, self.catalog)
            except EncryptedStateError:
                if self.location.by_flag:
                    return self._encrypted.in_file(self.location.path)
                return self._encrypted.of_backend(str(self.location.path))
        answer = self._query("state", "pull", *self._early)
        if answer.exit_code != 0:
            raise InputError(
                f"the state at {self.location.stack.location} cannot be read: {answer.reason}",
                "check the backend and its credentials, then run the command again",
            )
        if not answer.stdout.strip():
            return EMPTY_STATE
        return parse_state(answer.stdout.encode(), self.location.stack.location, self.catalog)

    def read_state_file(self, path: Path) -> StateSnapshot:
        """The state in a file that is not the backend's."""
        try:
            return read_state_file(path, self.catalog)
        except EncryptedStateError:
            return self._encrypted.in_file(path)

    def errored_state(self) -> ErroredState | None:
        """An `errored.tfstate` in the working directory, found by looking for the file, whatever was said about it."""
        path = self.directory / "errored.tfstate"
        if not path.exists():
            return None
        snapshot = read_envelope(path, self.catalog)
        return ErroredState(str(path), None, snapshot.lineage, snapshot.serial)

    def lock(self) -> StateLock | None:
        """The engine's lock on the state: from the local lock's own file, else from what the engine says of it."""
        if self.location.path is not None:
            return local_lock(self.location.path)
        return met_lock(lambda command, *words: self._query(command, *self._early, *words))

    def push_state(self, path: Path) -> EngineExit:
        """`state push`; the engine itself refuses another lineage or a lower serial. Its words go to stderr.

        An encrypted one is handed over in clear, since `state push` reads no other. Raises `InputError` where -state
        names the state: the engine pushes to the backend's own alone.
        """
        if self.location.by_flag:
            raise InputError(
                f"{path} cannot be pushed to {self.location.stack.location}: the engine pushes to no state that -state "
                "names",
                "see that it is the newer one, copy it over that file, then run the command again",
            )
        clear = self._encrypted.in_clear(path) if is_encrypted(path) else None
        source = str(path.absolute()) if clear is None else "-"
        with tempfile.TemporaryDirectory(prefix="tfguard-") as folder:
            launch = replace(self._launch("state", ("push", *self._early, source), Path(folder)), answer=clear)
            following = Following(_decoding(self.streams.err), _decoding(self.streams.err))
            return run_followed(launch, self.gate, following)

    def probe_import(self, address: str, import_id: str, arguments: Sequence[str]) -> ImportProbe:
        """Ask the engine whether an object exists, by planning an import block for it."""
        plan = ("plan", "-json", "-input=false", "-lock=false", "-refresh=false", f"-target={address}", *arguments)
        try:
            targets = unwritten(self.directory, [ImportTarget(address, import_id)], self.info)
            with import_blocks(self.directory, targets):
                answer = self._query(*plan)
        except InputError as error:
            return ImportProbe(None, error.what)
        return read_probe([parse_line(line.encode()) for line in answer.stdout.splitlines()], address, import_id)

    def discard_import_blocks(self) -> None:
        """Remove import blocks that a killed adoption left in the configuration; nobody else's are touched."""
        discard_leftover(self.directory)

    def plan_imports(
        self, targets: Sequence[ImportTarget], draft: str, arguments: Sequence[str], plan_file: Path
    ) -> tuple[ImportTrouble, ...]:
        """Plan into `plan_file` what imports these targets, without showing it and without a lock."""
        words = ("-json", "-input=false", "-lock=false", *arguments, f"-out={plan_file}")
        # The draft says the provider by now.
        blocks = unwritten(self.directory, [replace(target, provider="") for target in targets], self.info)
        with import_blocks(self.directory, blocks, draft):
            answer = self._query("plan", *words)
        if answer.exit_code == 0:
            return ()
        errors = errors_in([parse_line(line.encode()) for line in answer.stdout.splitlines()])
        told = troubles(errors, [target.address for target in targets], block_lines(blocks))
        return told or (ImportTrouble(None, answer.reason, general=True),)

    def draft(
        self,
        targets: Sequence[ImportTarget],
        references: Mapping[str, str],
        arguments: Sequence[str],
        secrets: frozenset[str],
        folder: Path,
    ) -> Draft:
        """Configuration for targets whose addresses have none."""
        drafting = Drafting(self.directory, self._query, self.show_plan)
        return drafting.draft(targets, references, arguments, folder, secrets)

    def declares(self, address: str) -> bool:
        """Whether the configuration has the resource of an address; of one in a module only the plan can tell."""
        if module_path(address):
            return True
        return without_instance_key(address) in declared_resources(self.directory, self.info)

    def written_imports(self) -> tuple[WrittenImport, ...]:
        """The import blocks that the configuration has, but for those of an import that is under way."""
        return written_imports(self.directory, self.info, without=FILE)

    def prepare_deletion(self, target: DeletionTarget, directory: Path, user_agent: str) -> Deletion:
        """Import an object into a private folder of its own, which changes nothing, and tell what the engine read."""
        return self._scratch(target, directory, user_agent).prepare()

    def delete_object(
        self,
        target: DeletionTarget,
        directory: Path,
        user_agent: str,
        watcher: RunWatcher,
        gives_up: Callable[[], bool],
    ) -> Deletion:
        """Delete what `prepare_deletion` has imported into `directory`, and nothing else; nothing is forced."""
        return self._scratch(target, directory, user_agent).delete(watcher, gives_up)

    def _scratch(self, target: DeletionTarget, directory: Path, user_agent: str) -> ScratchDeletion:
        environ = {**self.environ, **self._user_agent(user_agent)}
        return ScratchDeletion(self.installed, self.directory, self.catalog, environ, self.gate, target, directory)

    def _user_agent(self, operation: str) -> Mapping[str, str]:
        """What lets the provider's calls be told as this operation's in an audit log."""
        return {"TF_APPEND_USER_AGENT": f"{self.environ.get('TF_APPEND_USER_AGENT', '')} {operation}".strip()}

    @property
    def _encrypted(self) -> EncryptedStates:
        return EncryptedStates(self.installed, self.directory, self.catalog, self._early)

    def _query(self, *arguments: str) -> Answer:
        return captured(self.installed.binary, self.directory, *arguments)

    def _launch(
        self,
        command: str,
        arguments: Sequence[str],
        run_directory: Path,
        environ: Mapping[str, str] | None = None,
    ) -> Launch:
        argv = [str(self.installed.binary), *self.global_arguments, command, *arguments]
        scrubbed = {name: value for name, value in self.environ.items() if not name.startswith(CLI_ARGUMENT_VARIABLES)}
        return Launch(argv, {**scrubbed, **(environ or {})}, run_directory, command)


def quiet_plan_words(arguments: Sequence[str], plan_file: Path) -> tuple[str, ...]:
    """The command line of a plan into `plan_file` that asks nothing and takes no lock."""
    return "plan", "-input=false", "-no-color", "-lock=false", *arguments, f"-out={plan_file}"


def _decoding(write: Callable[[str], None]) -> Callable[[bytes], None]:
    decoder = utf8()
    return lambda chunk: write(decoder.decode(chunk))


def _health(reader: StreamReader) -> StreamHealth:
    counts = reader.counts
    return StreamHealth(counts.events, counts.unknown, counts.plain, counts.cut, whole=counts.cut == 0)
