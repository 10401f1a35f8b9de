"""Builds what is behind the ports of a blueprint's flows."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.blueprint_ports import StackFacts, StackPlace
from tfguard.cli.blueprint_stacks import GuardedStacks, sweep_plans
from tfguard.cli.console import StderrConsole, SystemClock
from tfguard.cli.engine_choice import read_config
from tfguard.cli.invocation import Invocation
from tfguard.engine.commands import Calls, StepCommands
from tfguard.engine.host import LocalHost
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.signals import signals_let_through
from tfguard.errors import ConfigError, InputError, TfguardError
from tfguard.flows.blueprints.context import BlueprintContext, stack_steps
from tfguard.flows.blueprints.kept import by_kept, kept_blueprint, left_behind
from tfguard.flows.blueprints.requests import Requests
from tfguard.model.blueprint import Blueprint, BlueprintStep
from tfguard.model.blueprint_request import Request
from tfguard.model.config import BESIDE_STATE, Config, format_duration
from tfguard.model.reference import references_in
from tfguard.ports import RecordStore
from tfguard.probes.prober import ServiceProber
from tfguard.schemas.authored import Authored
from tfguard.schemas.blueprint_file import parse_blueprint, read_blueprint
from tfguard.stores.local import LocalStore

_ENV, _FILE = "env:", "file:"
_VARIABLE = "TF_VAR_"


@dataclass(slots=True)
class Intents:
    """Counts how often the user has asked this process to stop."""

    count: int = 0
    _follow: Callable[[], None] | None = None

    def hear(self) -> bool:
        """One more intent; it is not passed on at once, since what runs is to end by itself: unless it only looks."""
        self.count += 1
        if self._follow is not None:
            self._follow()
        return False

    @contextmanager
    def followed(self, by: Callable[[], None]) -> Iterator[None]:
        """While open, nothing is changed, and each intent is followed at once."""
        self._follow = by
        try:
            yield
        finally:
            self._follow = None


def blueprint_context(
    invocation: Invocation, gate: SignalGate, file: Path, intents: Intents | None = None
) -> tuple[BlueprintContext, Authored[Blueprint]]:
    """Everything around a blueprint, and the file with the line of each of its parts.

    Raises `ConfigError` for a file that is no blueprint.
    """
    text = read_blueprint(path := _path(invocation, file))
    parsed = parse_blueprint(text, str(path))
    return _around(invocation, gate, file, intents, parsed.value, text), parsed


def standing_context(
    invocation: Invocation, gate: SignalGate, file: Path, intents: Intents | None = None
) -> BlueprintContext:
    """Everything around a blueprint whose request has to be told of and taken away whatever has become of the file:
    where that cannot be read, by the blueprint that the newest request keeps, which is said.

    Raises `ConfigError` where there is none, either, and `RecordError`.
    """
    path = _path(invocation, file)
    try:
        text = read_blueprint(path)
        blueprint = parse_blueprint(text, str(path)).value
    except ConfigError as error:
        requests = open_requests(invocation, file, gate)
        request = requests.current()
        if request is None:
            raise
        try:
            blueprint, text = kept_blueprint(requests, request)
        except ConfigError as lost:
            raise ConfigError(f"{error.what}; and {lost.what}", error.advice) from None
        StderrConsole(gate).warn(f"{error.what}; {told_of_kept(request)} is used")
    return _around(invocation, gate, file, intents, blueprint, text)


def removing_context(
    invocation: Invocation, gate: SignalGate, file: Path, intents: Intents | None = None, *, kept: bool = False
) -> BlueprintContext:
    """As `standing_context`, by the blueprint that the request keeps also where the file does not have any more what
    was made, or has it elsewhere; with `kept` always."""
    context = standing_context(invocation, gate, file, intents)
    request = context.requests.current()
    if request is None or request.terminal:
        return context
    behind = left_behind(context, request)
    if behind:
        told = "; ".join(f"{name}: {why}" for name, why in behind.items())
        context.console.warn(f"{told}; {told_of_kept(request)} is used")
    return by_kept(context, request) if behind or kept else context


def told_of_kept(request: Request) -> str:
    """The blueprint that a request keeps, in words."""
    at = request.changed_at or request.intent.created_at
    return f"the blueprint that request {request.id} keeps, of {at:%Y-%m-%d %H:%M:%SZ},"


def _around(
    invocation: Invocation, gate: SignalGate, file: Path, intents: Intents | None, blueprint: Blueprint, text: str
) -> BlueprintContext:
    path, heard = _path(invocation, file), intents or Intents()
    beside = _beside(invocation, path)
    config, _ = read_config(beside)
    console = StderrConsole(gate)
    calls, environ = Calls(path.absolute().parent / ".tfguard" / path.stem, console.say), dict(os.environ)
    sweep_plans(calls.folder)
    return BlueprintContext(
        blueprint=blueprint,
        text=text,
        file=path,
        requests=open_requests(invocation, file, gate),
        stacks=GuardedStacks(beside, gate, calls, environ),
        commands=StepCommands(calls, environ),
        prober=ServiceProber(path.absolute().parent, environ, signals_let_through),
        config=config,
        console=console,
        secret=lambda reference: secret(reference, environ, path.parent),
        intents=lambda: heard.count,
    )


def open_requests(invocation: Invocation, file: Path, gate: SignalGate | None = None) -> Requests:
    """The requests of the blueprint in a file: beside it, or below `records:`. Raises `ConfigError`."""
    path = _path(invocation, file)
    config, config_path = read_config(_beside(invocation, path))
    gate = gate or SignalGate()
    return Requests(
        _store(path, config, config_path), SystemClock(gate), LocalHost(), StderrConsole(gate), shlex.quote(str(path))
    )


def check_stacks(context: BlueprintContext, parsed: Authored[Blueprint]) -> None:
    """Look into the folders of the stacks: each is one, no two steps share a state as far as that can be told before
    they are set up, every output that is used is declared, and no stack prints what is sensitive. Nothing is kept
    for longer than the configuration allows. Raises `ConfigError` with file, line and key.
    """
    blueprint, owners, found = context.blueprint, dict[str, str](), dict[str, StackFacts]()
    longest = context.config.retention.max
    for name, step in blueprint.steps.items():
        if step.retain_for is not None and step.retain_for > longest:
            parsed.refuse(("steps", name, "retain_for"), f"is more than retention.max: {format_duration(longest)}")
    for name in stack_steps(blueprint):
        try:
            facts = context.stacks.facts(_literal_place(context, blueprint.steps[name]))
        except TfguardError as error:
            parsed.refuse(("steps", name, "stack"), error.what, error.advice)
        # A workspace that comes from an input is known when a request has one; the preflight looks again then.
        state = f"{facts.location} {_if_refers(blueprint.steps[name].workspace)}".strip()
        if (other := owners.get(state)) is not None:
            parsed.refuse(("steps", name, "stack"), f"has the same state as the step {other}: {facts.location}")
        owners[state] = name
        found[name] = facts
    for where, value in blueprint.texts():
        for reference in references_in(value):
            if reference.step is not None and reference.name not in (found[reference.step].outputs or ()):
                parsed.refuse(where, f"the stack of {reference.step} declares no output {reference.name}")
    for name in found:
        _refuse_open_secrets(parsed, name, found)


def _refuse_open_secrets(parsed: Authored[Blueprint], name: str, found: Mapping[str, StackFacts]) -> None:
    """Raise `ConfigError` where a stack would be given something sensitive in a variable that its engine prints: all
    that it prints is kept."""
    blueprint = parsed.value
    step = blueprint.steps[name]
    given = [(("vars", key), key, value) for key, value in step.vars.items()]
    given += [
        (("environment", key), key.removeprefix(_VARIABLE), value)
        for key, value in step.environment.items()
        if key.startswith(_VARIABLE)
    ]
    for where, variable, value in given:
        for reference in references_in(value):
            if reference.step is None:
                sensitive = blueprint.inputs[reference.name].sensitive
            else:
                sensitive = (found[reference.step].outputs or {}).get(reference.name, False)
            if sensitive and found[name].variables.get(variable) is False:
                parsed.refuse(
                    ("steps", name, *where),
                    f"${{{reference}}} is sensitive, and would be seen in what the engine prints",
                    f"declare the variable {variable} in {step.stack} with `sensitive = true`",
                )


def _literal_place(context: BlueprintContext, step: BlueprintStep) -> StackPlace:
    """Where a step's stack lies, as far as the file alone tells."""
    known = {key: value for key, value in step.environment.items() if not _if_refers(value)}
    workspace = None if _if_refers(step.workspace) else step.workspace
    return StackPlace(context.folder / (step.stack or ""), workspace, known)


def _if_refers(text: str | None) -> str:
    """A text that has a reference in it; of any other nothing."""
    return text if text and "${" in text else ""


def secret(reference: str, environ: Mapping[str, str], base: Path) -> str:
    """The value that `env:NAME` or `file:PATH` stands for; a relative path starts at `base`. Raises `InputError`."""
    if reference.startswith(_ENV):
        name = reference.removeprefix(_ENV)
        if not (value := environ.get(name)):
            raise InputError(f"the environment variable {name} is not set", "set it to what the input needs")
        return value
    path = base / reference.removeprefix(_FILE)
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"{path} cannot be read: {why}", "correct the reference of the input") from None


def _path(invocation: Invocation, file: Path) -> Path:
    return (invocation.directory / file).resolve()  # under whatever name, it is one blueprint with one record


def _beside(invocation: Invocation, path: Path) -> Invocation:
    """The invocation as if the user stood in the blueprint's folder: tfguard.yaml is looked for from there."""
    return replace(invocation, engine_arguments=(f"-chdir={path.absolute().parent}",))


def _store(path: Path, config: Config, config_path: Path | None) -> RecordStore:
    if config.records == BESIDE_STATE:
        return LocalStore(path.absolute().with_name(f"{path.stem}.tfguard"))
    from tfguard.stores.urls import below, open_store

    # The same from every machine: by where the blueprint lies below the configuration that names the records.
    base = config_path.parent.resolve() if config_path else Path.cwd()
    place = path.resolve()
    told = place.relative_to(base) if place.is_relative_to(base) else place
    digest = hashlib.sha256(os.fsencode(told)).hexdigest()[:10]
    return open_store(below(config.records, f"blueprint-{path.stem}-{digest}"), base)
