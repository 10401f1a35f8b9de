"""One blueprint with everything that its flows need around it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from tfguard.blueprint_ports import Command, Commands, Output, Prober, StackCall, StackPlace, Stacks
from tfguard.errors import InputError
from tfguard.flows.blueprints.requests import Requests
from tfguard.model.blueprint import Blueprint, BlueprintStep, Probe, StepKind, probe_texts
from tfguard.model.blueprint_request import Request
from tfguard.model.config import Config
from tfguard.model.reference import Reference, as_text, resolve
from tfguard.ports import Clock, Console


@dataclass(frozen=True, slots=True)
class BlueprintContext:
    """A blueprint, its folder, its requests, and the ports.

    `secret` gives the value that a reference such as `env:NAME` stands for, and raises `InputError`. `intents` counts
    how often the user has asked this process to stop.
    """

    blueprint: Blueprint
    text: str
    file: Path
    requests: Requests
    stacks: Stacks
    commands: Commands
    prober: Prober
    config: Config
    console: Console
    secret: Callable[[str], str]
    intents: Callable[[], int] = lambda: 0

    @property
    def clock(self) -> Clock:
        """Time."""
        return self.requests.clock

    @property
    def folder(self) -> Path:
        """What the blueprint's paths count from."""
        return self.file.absolute().parent

    @property
    def file_word(self) -> str:
        """The blueprint's file as a word of a command."""
        return shlex.quote(str(self.file))

    @property
    def owner(self) -> str:
        """Who owns what a request makes."""
        return self.blueprint.owner or self.config.owner or ""

    @property
    def cost_owner(self) -> str:
        """Who pays."""
        return self.blueprint.cost_owner or self.config.cost_owner or ""


_SHORTEST_SECRET = 4
"""What is shorter stands in every text, and hides nothing."""


@dataclass(slots=True)
class Values:
    """The values behind a request's references. Outputs are read from the stacks' states when they are first needed,
    and kept in memory alone."""

    context: BlueprintContext
    inputs: Mapping[str, object]
    _outputs: dict[str, Mapping[str, Output]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _sensitive: set[str] = field(default_factory=set)

    def place(self, name: str) -> StackPlace:
        """Where a step's stack lies. Raises `InputError`."""
        step = self.context.blueprint.steps[name]
        workspace = self._word(step.workspace, name) if step.workspace else None
        return StackPlace(self.context.folder / (step.stack or ""), workspace, self._environment(step, name))

    def call(self, name: str) -> StackCall:
        """A step's stack with the values of its variables. Raises `InputError`."""
        step = self.context.blueprint.steps[name]
        found = self._resolved(step.vars, name)
        assert isinstance(found, dict)
        variables = {key: _variable(value) for key, value in found.items() if value is not None}
        files = tuple(str((self.context.folder / path).absolute()) for path in step.var_files)
        return StackCall(self.place(name), variables, files)

    def command(self, name: str, words: Sequence[str]) -> Command:
        """A command of a step, as it is run. Raises `InputError`."""
        step = self.context.blueprint.steps[name]
        resolved = [self._word(word, name) for word in words]
        return Command(
            tuple(resolved), self.context.folder / (step.directory or ""), self._environment(step, name), step.timeout
        )

    def probe(self, probe: Probe, where: str) -> Probe:
        """A probe without references. Raises `InputError`."""
        values = {}
        for (field_name, *_), text in probe_texts(probe):
            # Where a service is asked is told in its answer.
            value = self._resolved(text, where, seen_by_all=field_name in ("tcp", "dns"))
            if field_name == "command" and isinstance(value, list):
                value = tuple(self._word(word, where) for word in probe.command)
            elif field_name in ("environment", "headers") and isinstance(value, dict):
                value = {key: _text(item, where) for key, item in value.items()}
            elif isinstance(text, str):
                value = _text(value, where)
            values[str(field_name)] = value
        try:
            return replace(probe, **values)  # type: ignore[arg-type]
        except ValueError as error:
            raise InputError(f"{where}: {error}", "correct what it refers to") from None

    def forget(self, name: str) -> None:
        """Read a step's outputs anew when they are next needed: it has been applied."""
        with self._lock:
            self._outputs.pop(name, None)

    def _environment(self, step: BlueprintStep, name: str) -> Mapping[str, str]:
        found = self._resolved(step.environment, name)
        assert isinstance(found, dict)
        return {key: _text(value, name) for key, value in found.items()}

    def _word(self, word: str, name: str) -> str:
        return _text(self._resolved(word, name, seen_by_all=True), name)

    def _resolved(self, value: object, name: str, *, seen_by_all: bool = False) -> object:
        try:
            return resolve(value, lambda reference: self._value_of(reference, seen_by_all))
        except ValueError as error:
            raise InputError(f"{name}: {error}", "correct the blueprint") from None

    def _value_of(self, reference: Reference, seen_by_all: bool) -> object:
        if reference.step is None:
            return self._input(reference, seen_by_all)
        output = self._outputs_of(reference.step).get(reference.name)
        if output is None:
            raise InputError(
                f"${{{reference}}}: the state of {reference.step} has no such output",
                f"apply {reference.step} again, or declare the output there",
            )
        if output.sensitive and seen_by_all:
            raise InputError(
                f"${{{reference}}} is sensitive, and would be seen by all",
                "pass it in `environment:`",
            )
        if output.sensitive:
            self._hide(output.value)
        return output.value

    def hidden(self, text: str) -> str:
        """`text` without the sensitive values that were handed out until now."""
        for value in sorted(self._sensitive, key=len, reverse=True):
            text = text.replace(value, "(sensitive)")
        return text

    def _hide(self, value: object) -> None:
        if isinstance(value, str | int | float):
            # What is shown of a call comes line by line, and without what cannot be printed.
            lines = "".join(char if char.isprintable() else "\n" for char in str(value)).splitlines()
            self._sensitive.update(line.strip() for line in lines if len(line.strip()) >= _SHORTEST_SECRET)
        elif isinstance(value, Mapping):
            for item in value.values():
                self._hide(item)
        elif isinstance(value, list | tuple):
            for item in value:
                self._hide(item)

    def _input(self, reference: Reference, seen_by_all: bool) -> object:
        value, kind = self.inputs.get(reference.name), self.context.blueprint.inputs[reference.name]
        if not kind.sensitive or value is None:
            return value
        if seen_by_all:
            raise InputError(
                f"${{{reference}}} is sensitive, and would be seen by all",
                "pass it in `environment:`",
            )
        try:
            secret = kind.read(self.context.secret(str(value)))
            self._hide(secret)
            return secret
        except ValueError as error:
            raise InputError(f"the input {reference.name} {error}", "correct what it refers to") from None

    def _outputs_of(self, step: str) -> Mapping[str, Output]:
        place = self.place(step)
        with self._lock:
            if step not in self._outputs:
                self._outputs[step] = self.context.stacks.outputs(place)
            return self._outputs[step]


def values_of(context: BlueprintContext, request: Request) -> Values:
    """The values that a request's references stand for."""
    return Values(context, request.inputs)


def stack_steps(blueprint: Blueprint) -> Sequence[str]:
    """The steps that are stacks, each behind what it needs."""
    return tuple(name for name in blueprint.order() if blueprint.steps[name].kind is StepKind.STACK)


def _variable(value: object) -> str:
    """A value as the engine reads it from `TF_VAR_name`."""
    try:
        return as_text(value)
    except ValueError:
        return json.dumps(value)


def _text(value: object, where: str) -> str:
    try:
        return as_text(value)
    except ValueError as error:
        raise InputError(f"{where}: {error}", "refer to a part of it, or pass it as a variable of a stack") from None
