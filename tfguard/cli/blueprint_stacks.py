"""The stacks of a blueprint: each is changed by a tfguard of its own, as a pipeline would call it; here it is looked
at."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock

from tfguard.blueprint_ports import (
    CallEnd,
    Output,
    StackCall,
    StackFacts,
    StackLook,
    StackPlace,
    Verified,
)
from tfguard.catalog.catalog import Catalog
from tfguard.catalog.loader import load_catalog
from tfguard.cli.invocation import Invocation
from tfguard.cli.wiring import stack_context
from tfguard.engine.backend import data_directory, locate_state
from tfguard.engine.commands import Calls, private_folder
from tfguard.engine.configuration import declared_values
from tfguard.engine.documents import mapping, parse_json
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.queries import Answer, captured, without_arguments
from tfguard.engine.terraform import quiet_plan_words
from tfguard.errors import EmptyStateError, InputError, NotInitialisedError, TfguardError
from tfguard.flows.context import StackContext
from tfguard.flows.history import current_operation, findings, last_change
from tfguard.flows.records import Records
from tfguard.inventory.exported import filled
from tfguard.model.blueprint_request import BlueprintObject
from tfguard.model.disposition import DestroyStage, Disposition, DispositionKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.operation import Operation, Step, StepStatus
from tfguard.model.plan import Action, Plan
from tfguard.model.state import StateInstance, StateSnapshot

_WORKSPACE = "TF_WORKSPACE"
_WRONG_FOLDER = "make it, with a configuration in it, or correct `stack:`, which starts at the blueprint's folder"
_VARIABLE = "TF_VAR_"
_PLAN = "plan-"
_LOCK_FILE = ".terraform.lock.hcl"
_APPROVED = ("-auto-approve", "-input=false", "-no-color")
_ADOPTABLE = (Verdict.ORPHANED,)

_querying = RLock()
"""Captured queries take the environment of this process: one stack's at a time (see `tfguard.engine.queries`)."""


@dataclass(slots=True)
class GuardedStacks:
    """Runs `tfguard` for each stack, and reads each stack's record and state.

    `before` are tfguard's own options, such as `--engine`, which are handed on; `environ` is what every call starts
    from.
    """

    invocation: Invocation
    gate: SignalGate
    calls: Calls
    environ: Mapping[str, str]
    _initialising: dict[Path, RLock] = field(default_factory=dict)

    def facts(self, place: StackPlace) -> StackFacts:
        """What its configuration tells. Raises `ConfigError` or `InputError` for a folder that holds no stack."""
        outputs = declared_values(place.directory, "output")
        if not place.directory.is_dir():
            raise InputError(f"there is no folder {place.directory}", _WRONG_FOLDER)
        if outputs is None:
            raise InputError(f"{place.directory} holds no configuration", _WRONG_FOLDER)
        with self._as(StackCall(place)):
            try:
                stack = locate_state(place.directory, os.environ).stack
                location = f"{stack.backend} {stack.location} {stack.workspace}"
            except NotInitialisedError:
                location = f"{place.directory.resolve()} {os.environ.get(_WORKSPACE) or 'default'}"
        return StackFacts(location, outputs, declared_values(place.directory, "variable") or {})

    def initialise(self, place: StackPlace, step: str) -> CallEnd:
        """`init`, where it was not run yet, or did not come to a good end."""
        with self._initialising.setdefault(place.directory, RLock()):
            data = data_directory(place.directory, self._environment(StackCall(place)))
            begun = private_folder(self.calls.folder) / f"{_digest(data)}.init"
            if data.is_dir() and not begun.exists() and not _lacks_providers(place.directory, data):
                return CallEnd(0)
            # One that does not come to a good end leaves a folder that looks like that of one that did.
            begun.touch()
            end = self._tfguard(StackCall(place), ("init", "-input=false", "-no-color"), step)
            if end.exit_code == 0:
                begun.unlink(missing_ok=True)
            return end

    def context(self, place: StackPlace) -> StackContext:
        """The stack with everything around it, for what asks no engine. Raises `TfguardError` where there is none."""
        with self._context(StackCall(place)) as context:
            return context

    def look(self, place: StackPlace) -> StackLook:
        """Its record and its state; never an exception."""
        try:
            with self._context(StackCall(place)) as context:
                return _look(context)
        except TfguardError as error:
            return StackLook(failure=error.what)

    def outputs(self, place: StackPlace) -> Mapping[str, Output]:
        """Its outputs, from its state. Raises `InputError` when they cannot be read."""
        with self._context(StackCall(place)) as context:
            answer = captured(_binary(context), place.directory, "output", "-json", "-no-color")
        if answer.exit_code != 0:
            # Why is the engine's own words, which no record and no document has (rule 10).
            folder = shlex.quote(f"-chdir={place.directory}")
            raise InputError(
                f"the outputs of {place.directory} cannot be read",
                f"apply that step first; `tfguard {folder} output` says what is wrong",
            )
        found = mapping(parse_json(answer.stdout))
        return {
            name: Output(mapping(told).get("value"), mapping(told).get("sensitive") is True)
            for name, told in found.items()
        }

    def plan(self, call: StackCall) -> Plan | str:
        """What an apply would do, or why that cannot be told; nothing is shown or changed."""
        try:
            return self._plan(call)
        except TfguardError as error:
            return error.what

    def verify(self, call: StackCall) -> Verified:
        """Look every object of the state up at its provider; nothing is changed."""
        try:
            plan = self._plan(call)
        except TfguardError as error:
            return Verified(failure=error.what)
        if isinstance(plan, str):
            return Verified(failure=plan)
        # Behind an apply that has come to its end nothing is left to create: what is to be has vanished, also where a
        # refresh has taken it out of the state meanwhile.
        return Verified(missing=tuple(change.address for change in plan.changes if change.action is Action.CREATE))

    def apply(self, call: StackCall, step: str) -> CallEnd:
        """A guarded apply, approved."""
        return self._tfguard(call, ("apply", *_APPROVED, *_files(call)), step)

    def destroy(self, call: StackCall, step: str) -> CallEnd:
        """A guarded destroy, approved."""
        return self._tfguard(call, ("destroy", *_APPROVED, *_files(call)), step)

    def recover(self, call: StackCall, step: str) -> CallEnd:
        """Settle what is open, by looking it up."""
        return self._tfguard(call, ("recover", "--yes", *_files(call)), step)

    def adopt(self, call: StackCall, findings: Sequence[str], step: str) -> CallEnd:
        """Import these findings. What the next apply would bring in line, such as flags that a provider sets when it
        imports, is approved with the step; the import itself refuses all that is more than an update in place."""
        named = tuple(f"--orphan={finding}" for finding in findings)
        return self._tfguard(
            call, ("import", *named, "--yes", "--allow-update", "-input=false", "-no-color", *_files(call)), step
        )

    def interrupt(self) -> None:
        """Pass one interrupt on to every call that runs now."""
        self.calls.interrupt()

    def _tfguard(self, call: StackCall, words: Sequence[str], step: str) -> CallEnd:
        own = _own_options(self._at(call.place))
        argv = (sys.executable, "-m", "tfguard", *own, *words)
        return self.calls.run(argv, Path.cwd(), self._environment(call), step)

    def _environment(self, call: StackCall) -> Mapping[str, str]:
        chosen = {_VARIABLE + name: value for name, value in call.variables.items()}
        workspace = {_WORKSPACE: call.place.workspace} if call.place.workspace else {}
        return {**self.environ, **call.place.environment, **workspace, **chosen}

    def _at(self, place: StackPlace) -> Invocation:
        return replace(self.invocation, engine_arguments=(f"-chdir={place.directory}",))

    def _plan(self, call: StackCall) -> Plan | str:
        with plan_folder(self.calls.folder) as folder:
            plan_file = folder / "plan"
            with self._context(call) as context:
                words = (str(_binary(context)), *quiet_plan_words(_files(call), plan_file))
                directory = call.place.directory
                # In a session of its own, as every call: a Ctrl-C means what this tfguard says.
                code, said = self.calls.ask(
                    words, directory, without_arguments(os.environ), f"plan of {directory.name}"
                )
                return context.engine.show_plan(plan_file) if code == 0 else Answer(code, "", said).reason

    @contextmanager
    def _context(self, call: StackCall) -> Iterator[StackContext]:
        with self._as(call):
            yield stack_context(self._at(call.place), self.gate)

    @contextmanager
    def _as(self, call: StackCall) -> Iterator[None]:
        """Stand in a stack's environment. One at a time: it is this process's own."""
        with _querying:
            wanted = self._environment(call)
            before = {name: os.environ.get(name) for name in wanted}
            os.environ.update(wanted)
            try:
                yield
            finally:
                for name, value in before.items():
                    if value is None:
                        del os.environ[name]
                    else:
                        os.environ[name] = value


def _binary(context: StackContext) -> Path:
    found: Path = context.engine.installed.binary  # type: ignore[attr-defined]
    return found


@contextmanager
def plan_folder(below: Path) -> Iterator[Path]:
    """A folder for one plan, which holds values in clear, and goes with the plan; `sweep_plans` takes away what a kill
    has left. Raises `InputError`."""
    with _plans_lock(private_folder(below), fcntl.LOCK_SH), tempfile.TemporaryDirectory("", _PLAN, below) as made:
        yield Path(made)


def sweep_plans(below: Path) -> None:
    """Remove the plans that a kill has left, unless another tfguard is planning there now."""
    if not any(below.glob(f"{_PLAN}*")):
        return
    with suppress(BlockingIOError), _plans_lock(below, fcntl.LOCK_EX | fcntl.LOCK_NB):
        for left in below.glob(f"{_PLAN}*"):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _plans_lock(folder: Path, kind: int) -> Iterator[None]:
    path = folder / "plans.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}", "make its folder writable") from error
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


def _lacks_providers(directory: Path, data: Path) -> bool:
    """Whether providers were chosen for a stack, and none is installed."""
    with suppress(OSError):
        return "provider " in (directory / _LOCK_FILE).read_text(errors="replace") and not (data / "providers").is_dir()
    return False


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:12]


def _own_options(invocation: Invocation) -> tuple[str, ...]:
    named = zip(("--engine", "--config"), (invocation.engine, invocation.config), strict=True)
    return (*(f"{name}={value}" for name, value in named if value), *invocation.engine_arguments)


def _files(call: StackCall) -> tuple[str, ...]:
    return tuple(f"-var-file={name}" for name in call.var_files)


def _look(context: StackContext) -> StackLook:
    records = context.records
    operation = current_operation(records)
    alive = records.live_operation()
    if alive is not None:
        return StackLook(operation_id=alive, alive=True, open=True)
    try:
        state: StateSnapshot | None = context.read_state(operation)
    except EmptyStateError:
        state = None
    found = findings(records)[0] if operation else ()
    strays = [one for one in found if one.needs_action]
    opened = bool(records.head().open_operations)
    alone = _alone(strays)
    return StackLook(
        operation_id=operation.id if operation else None,
        open=opened,
        adoptable=tuple(one.id for one in strays if opened and one.id in alone),
        unsettled=tuple(_unsettled(operation)) if operation else (),
        objects=_objects(state, operation, [*strays, *filter(_decided, found)], load_catalog()),
        managed=len(state.instances) if state is not None else None,
        emptied=state is not None and operation is not None and _emptied(state, operation, records),
        failure="" if state is not None else "its state file is empty",
    )


def _emptied(state: StateSnapshot, operation: Operation, records: Records) -> bool:
    """Whether a destroy has left this state, and nothing in it. A state that was lost since is another; so is one that
    was lost before a destroy which then found nothing to do."""
    result = operation.result
    if operation.intent.command != "destroy" or result is None or state.instances:
        return False
    if (state.lineage, state.serial) != (result.lineage, result.serial_after):
        return False
    changed = last_change(records, operation)
    return changed is not None and changed.intent.command == "destroy" and changed.lineage == state.lineage


def _decided(one: Finding) -> bool:
    """Whether it is a stray that somebody keeps for a time, or has had destroyed: what belongs elsewhere is neither."""
    told = one.disposition
    if told is None or one.verdict is Verdict.TAINTED:
        return False
    return _is_kept(told) or _is_destroyed(told)


def _is_kept(told: Disposition) -> bool:
    return told.kind is DispositionKind.RETAIN and told.until is not None


def _is_destroyed(told: Disposition) -> bool:
    return told.kind is DispositionKind.DESTROY and told.stage in (None, DestroyStage.ABSENT)


def _alone(strays: Sequence[Finding]) -> frozenset[str]:
    """The findings that can be adopted without a choice: one object for an address, and one address for it."""
    by_address: dict[str, int] = {}
    for one in strays:
        if one.address:
            by_address[one.address] = by_address.get(one.address, 0) + 1
    return frozenset(
        one.id for one in strays if one.verdict in _ADOPTABLE and one.address and by_address[one.address] == 1
    )


def _unsettled(operation: Operation) -> Iterator[str]:
    errored = operation.result.errored_state if operation.result else None
    if operation.result is None:
        yield f"operation {operation.id} was cut short"
    if errored is not None and not errored.pushed:
        yield f"the state of operation {operation.id} is not pushed: {errored.path}"
    for step in operation.steps:
        if step.open and step.outcome is not None:
            yield f"{step.address} is {step.outcome.value}"


def _objects(
    state: StateSnapshot | None, operation: Operation | None, strays: Sequence[Finding], catalog: Catalog
) -> tuple[BlueprintObject, ...]:
    steps = {step.address: step for step in operation.steps} if operation else {}
    found = [
        managed_object(instance, steps.get(instance.address), catalog)
        for instance in (state.instances if state else ())
    ]
    return (*found, *(_stray(one, steps.get(one.address or "")) for one in strays if one.object is not None))


def managed_object(instance: StateInstance, step: Step | None, catalog: Catalog) -> BlueprintObject:
    """An object in the state, by the id that it has as a finding, too. `step` is what the newest operation did to it,
    where it did something."""
    seen = next((one for one in step.observed if one.in_state), None) if step else None
    kind = catalog.get(instance.type)
    own_id = (filled(kind.id, instance.identity) if kind else None) or (seen.id if seen else None)
    return BlueprintObject(
        address=instance.address,
        type=instance.type,
        desired=dict(step.desired) if step else {},
        observed_id=own_id or instance.identity.get("id") or next(iter(instance.identity.values()), None),
        created_at=seen.created_at if seen else None,
        stateful=bool(kind and kind.stateful),
    )


def _stray(finding: Finding, step: Step | None) -> BlueprintObject:
    found = finding.object
    assert found is not None
    return BlueprintObject(
        address=finding.address or "",
        type=found.type,
        desired=dict(step.desired) if step else {},
        observed_id=found.id,
        created_at=found.created_at,
        stateful=found.stateful,
        finding=finding.id,
        disposition=_disposition(finding.disposition),
    )


def _disposition(told: Disposition | None) -> str | None:
    if told is None:
        return None
    return StepStatus.DESTROYED.value if _is_destroyed(told) else told.kind.value
