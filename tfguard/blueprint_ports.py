"""What the flows of a blueprint need from outside, as Protocols; `cli/` builds what is behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from tfguard.model.blueprint import Probe
from tfguard.model.blueprint_request import BlueprintObject
from tfguard.model.inventory import Scope
from tfguard.model.plan import Plan, ProviderConfig
from tfguard.model.preflight import Limit, Quota


@dataclass(frozen=True, slots=True)
class StackPlace:
    """A stack's folder, its workspace (None: the one that is selected), and what is added to the environment in which
    it is looked at and changed."""

    directory: Path
    workspace: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class StackCall:
    """A stack with the values of its variables, as the engine reads them from the environment, and variable files."""

    place: StackPlace
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    var_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StackFacts:
    """What a stack's configuration tells without a run: where its state lies, and the outputs it declares (None: that
    cannot be told) and the variables, each with whether the engine hides its value."""

    location: str
    outputs: Mapping[str, bool] | None
    variables: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StackLook:
    """What a stack's own record and state say now.

    `operation_id` is its newest operation, or the one that is not settled. `adoptable` are findings that can be adopted
    without a choice, `unsettled` says for a person what else keeps it open. `managed` counts the objects in the state
    (None: it could not be read). `emptied`: that operation is a destroy, the state is as empty as it left it, and what
    changed last was a destroy of the same state. With a `failure` nothing else is known.
    """

    operation_id: str | None = None
    alive: bool = False
    open: bool = False
    adoptable: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    objects: tuple[BlueprintObject, ...] = ()
    managed: int | None = None
    emptied: bool = False
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """The value of a stack's output, and whether it may be seen."""

    value: object = field(repr=False)
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a called process ended. `exit_code` is as a shell shows it. `tail` are its last words, for a person, and
    `log` the file with all of them."""

    exit_code: int
    timed_out: bool = False
    tail: tuple[str, ...] = ()
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether a stack's objects were all seen at their providers: `missing` are addresses of those that were not,
    `failure` is why it cannot be told."""

    missing: tuple[str, ...] = ()
    failure: str = ""


class Stacks(Protocol):
    """The stacks of a blueprint, each guarded by a tfguard of its own, which outlives this one."""

    def facts(self, place: StackPlace) -> StackFacts:
        """What its configuration tells. Raises `ConfigError` or `InputError` for a folder that holds no stack."""
        ...

    def initialise(self, place: StackPlace, step: str) -> CallEnd:
        """`init`, where it was not run yet, or did not come to a good end."""
        ...

    def look(self, place: StackPlace) -> StackLook:
        """Its record and its state; never an exception."""
        ...

    def outputs(self, place: StackPlace) -> Mapping[str, Output]:
        """Its outputs, from its state. Raises `InputError` when they cannot be read."""
        ...

    def plan(self, call: StackCall) -> Plan | str:
        """What an apply would do, or why that cannot be told; nothing is shown or changed."""
        ...

    def verify(self, call: StackCall) -> Verified:
        """Look every object of the state up at its provider; nothing is changed."""
        ...

    def apply(self, call: StackCall, step: str) -> CallEnd:
        """A guarded apply, approved."""
        ...

    def destroy(self, call: StackCall, step: str) -> CallEnd:
        """A guarded destroy, approved."""
        ...

    def recover(self, call: StackCall, step: str) -> CallEnd:
        """Settle what is open, by looking it up."""
        ...

    def adopt(self, call: StackCall, findings: Sequence[str], step: str) -> CallEnd:
        """Import these findings."""
        ...

    def interrupt(self) -> None:
        """Pass one interrupt on to every call that runs now."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, with what is added to its environment, and how long it may take (None: any time)."""

    words: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: timedelta | None = None


class Commands(Protocol):
    """Runs the commands of steps."""

    def run(self, command: Command, step: str) -> CallEnd:
        """Run it to its end, or to its timeout. Raises `InputError` when it cannot be started at all."""
        ...

    def still_runs(self, step: str) -> bool:
        """Whether a command of this step that an earlier tfguard started is still running on this machine."""
        ...

    def interrupt(self) -> None:
        """Pass one interrupt on to every command that runs now."""
        ...


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """Whether a service answered as expected, and what it said, without a secret."""

    ok: bool
    detail: str


class Prober(Protocol):
    """Asks a service once."""

    def ask(self, probe: Probe) -> ProbeAnswer:
        """The answer to a probe whose references are resolved. A service that does not answer is an answer, too."""
        ...


class Quotas(Protocol):
    """What clouds let an account have. A refusal is a limit that is not known, never an exception."""

    def limit(self, quota: Quota, provider: ProviderConfig, scope: Scope) -> Limit:
        """A limit of the account and region that `scope` names, asked through a provider configuration."""
        ...
