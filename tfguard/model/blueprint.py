"""What a blueprint file says: a graph of stacks, commands and probes, and what makes it ready."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from ipaddress import ip_address
from itertools import pairwise

from tfguard.model.reference import references_in
from tfguard.model.service import DATABASE_SCHEMES, tcp_place, web_place

API_VERSION = "tfguard/v1"
KIND = "Blueprint"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?", re.ASCII)
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,100}", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
_DNS_NAME = re.compile(r"[\w-]+(\.[\w-]+)*\.?")
_PERCENT = re.compile(r"(\d{1,2})%", re.ASCII)

_IN_PROCESSES = "in the list of processes: pass it in environment"

Where = tuple[str | int, ...]
Mistake = tuple[Where, str]
"""Where in the file something is wrong (keys and list positions), and what."""


class InputType(StrEnum):
    """What the value of an input is."""

    STRING = "string"
    NUMBER = "number"
    BOOL = "bool"


class OnFailure(StrEnum):
    """What becomes of a step's objects when the request fails."""

    STOP = "stop"
    RETAIN = "retain"
    COMPENSATE = "compensate"


class StepKind(StrEnum):
    """What a step does."""

    STACK = "stack"
    RUN = "run"
    PROBE = "probe"


class ProbeKind(StrEnum):
    """How a probe asks whether a service answers."""

    TCP = "tcp"
    HTTP = "http"
    SQL = "sql"
    DNS = "dns"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class BlueprintInput:
    """A value that the request has to bring. A sensitive one is given as a reference: `env:NAME` or `file:PATH`."""

    type: InputType = InputType.STRING
    required: bool = False
    default: object = None
    sensitive: bool = False
    description: str = ""

    def __post_init__(self) -> None:
        if self.sensitive and self.default is not None:
            raise ValueError("default: a sensitive input has none, since it would stand in the file")
        if self.default is not None:
            try:
                self.read(self.default)
            except ValueError as error:
                raise ValueError(f"default {error}") from None

    def read(self, value: object) -> str | int | float | bool:
        """`value`, from a file or a command line, as this input's type. Raises `ValueError`."""
        match self.type:
            case InputType.STRING if isinstance(value, str | int | float) and not isinstance(value, bool):
                return str(value)
            case InputType.BOOL if isinstance(value, bool):
                return value
            case InputType.BOOL if value in ("true", "false"):
                return value == "true"
            case InputType.NUMBER if isinstance(value, int | float) and not isinstance(value, bool):
                return value
            case InputType.NUMBER if isinstance(value, str) and _NUMBER.fullmatch(value):
                return float(value) if "." in value else int(value)
        raise ValueError(f"is not a {self.type.value}")


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to a running service; exactly one of `tcp`, `http`, `sql`, `dns`, `command` says which.

    `tcp` is HOST:PORT, `http` a URL, `sql` the URL of a PostgreSQL database, `dns` a name, `command` a command line. It
    is asked again until it is answered as expected or `within` has passed; each try may take `timeout`. `expect` is the
    HTTP status (else any 2xx; a redirect is not followed), the first value of the query's first row (else any row), or
    one of the name's addresses (else any). A command has to end with 0.
    """

    name: str = ""
    tcp: str | None = None
    http: str | None = None
    sql: str | None = None
    dns: str | None = None
    command: tuple[str, ...] = ()
    query: str | None = None
    expect: object = None
    contains: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    within: timedelta = timedelta(minutes=1)
    timeout: timedelta = timedelta(seconds=10)

    def __post_init__(self) -> None:
        named = [kind.value for kind in ProbeKind if getattr(self, kind.value)]
        if len(named) != 1:
            raise ValueError(
                f"needs exactly one of {', '.join(kind.value for kind in ProbeKind)}; "
                f"there {'are ' + ' and '.join(named) if named else 'is none'}"
            )
        if self.query is not None and not self.sql:
            raise ValueError("query belongs to sql")
        if self.contains is not None and not self.http:
            raise ValueError("contains belongs to http")
        if self.headers and not self.http:
            raise ValueError("headers belong to http")
        if self.environment and not self.command:
            raise ValueError("environment belongs to command")
        if not self.within or not self.timeout:
            raise ValueError("within and timeout must be longer than nothing")
        self._check_target()
        self._check_expect()

    def _check_target(self) -> None:
        """What can be told before references have values, and is told again then. Nothing is quoted: a URL may hold a
        password."""
        for name, read in (("tcp", tcp_place), ("http", web_place), ("sql", _database), ("dns", _host_name)):
            value = getattr(self, name)
            if value and not _refers(value):
                try:
                    read(value)
                except ValueError as error:
                    raise ValueError(f"{name} {error}") from None
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError("headers: a name is made of letters, digits and -")
            if not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"headers: the value of {name} has a character that no header may have")

    def _check_expect(self) -> None:
        if self.expect is None:
            return
        if not (self.http or self.sql or self.dns):
            raise ValueError("expect belongs to http, sql and dns")
        if self.http and (type(self.expect) is not int or not 100 <= self.expect <= 599):
            raise ValueError("expect is not an HTTP status")
        if not isinstance(self.expect, str | int | float):
            raise ValueError("expect is a list or a mapping")
        if self.dns and not _refers(str(self.expect)):
            try:
                ip_address(str(self.expect))
            except ValueError:
                raise ValueError("expect is not an IP address") from None

    @property
    def kind(self) -> ProbeKind:
        """How it asks."""
        return next(kind for kind in ProbeKind if getattr(self, kind.value))


@dataclass(frozen=True, slots=True)
class Compensation:
    """How the work of a step is undone: a command, or the destroy of its stack.

    `check` ends with 0 where the command has undone it already. With neither that nor `idempotent` a command of which
    the end is not known runs again on a person's word alone.
    """

    run: tuple[str, ...] = ()
    destroy: bool = False
    check: tuple[str, ...] = ()
    idempotent: bool = False
    timeout: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        if bool(self.run) == self.destroy:
            raise ValueError("needs either run or destroy")
        if self.timeout <= timedelta(0):
            raise ValueError("timeout must be longer than nothing")
        if self.check and not self.run:
            raise ValueError("check belongs to run: a destroy is verified anyway")
        if self.idempotent and not self.run:
            raise ValueError("idempotent belongs to run: a destroy can always be repeated")


@dataclass(frozen=True, slots=True)
class BlueprintStep:
    """One step: a `stack` to apply (a folder), a command to `run`, or a `probe` that has to pass.

    All paths count from the blueprint's folder. `needs` come before it. `owned_by` is a step whose removal takes this
    one's work along. `check` ends with 0 where the command's work is done already, with 1 where it is not. `stateful`
    says whether its objects hold data; None: what their types are known for.
    """

    stack: str | None = None
    run: tuple[str, ...] = ()
    probe: Probe | None = None
    needs: tuple[str, ...] = ()
    vars: Mapping[str, object] = field(default_factory=dict)
    var_files: tuple[str, ...] = ()
    workspace: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: str | None = None
    timeout: timedelta | None = None
    check: tuple[str, ...] = ()
    idempotent: bool = False
    stateful: bool | None = None
    owned_by: str | None = None
    owner: str | None = None
    cost_owner: str | None = None
    on_failure: OnFailure | None = None
    retain_for: timedelta | None = None
    compensate: Compensation | None = None

    def __post_init__(self) -> None:
        named = [name for name, value in (("stack", self.stack), ("run", self.run), ("probe", self.probe)) if value]
        if len(named) != 1:
            raise ValueError(f"needs exactly one of stack, run, probe; there {_are(named)}")
        for entry in ("timeout", "retain_for"):
            if (time := getattr(self, entry)) is not None and time <= timedelta(0):
                raise ValueError(f"{entry} must be longer than nothing")
        misplaced = {
            StepKind.STACK: ("directory", "timeout", "check", "idempotent"),
            StepKind.RUN: ("vars", "var_files", "workspace", "stateful"),
            StepKind.PROBE: tuple(
                entry.name for entry in fields(self) if entry.name not in ("probe", "needs", "owner", "cost_owner")
            ),
        }[self.kind]
        for name in misplaced:
            if name not in (named[0],) and getattr(self, name):
                raise ValueError(f"{name} does not belong to a step that is a {named[0]}")
        self._check_failing()

    def _check_failing(self) -> None:
        if self.on_failure is OnFailure.COMPENSATE and self.compensate is None:
            raise ValueError("on_failure: compensate needs a compensate")
        if self.retain_for is not None and self.failing is not OnFailure.RETAIN:
            raise ValueError("retain_for belongs to on_failure: retain")
        if self.compensate is not None and self.compensate.destroy:
            if self.kind is not StepKind.STACK:
                raise ValueError("compensate: only a stack can be destroyed")
            if self.stateful:
                raise ValueError("compensate: a stateful step is never deleted as a compensation")

    @property
    def kind(self) -> StepKind:
        """What it does."""
        if self.stack:
            return StepKind.STACK
        return StepKind.RUN if self.run else StepKind.PROBE

    @property
    def failing(self) -> OnFailure:
        """What becomes of its objects when the request fails: compensated where a compensation is given."""
        return self.on_failure or (OnFailure.COMPENSATE if self.compensate else OnFailure.STOP)

    def texts(self) -> Iterator[tuple[Where, object]]:
        """What may refer to inputs and outputs, and where it stands."""
        for name in ("workspace", "environment", "vars", "run", "check"):
            yield (name,), getattr(self, name)
        if self.compensate:
            yield ("compensate",), (*self.compensate.run, *self.compensate.check)
        if self.probe:
            yield from ((("probe", *where), value) for where, value in probe_texts(self.probe))


@dataclass(frozen=True, slots=True)
class Ready:
    """When a request is ready: every step's objects verified at their providers, and each probe passed."""

    inventory: bool = True
    probes: tuple[Probe, ...] = ()


@dataclass(frozen=True, slots=True)
class Preflight:
    """What has to be left before the first step: of each quota `reserve` stays free, for rollback and recovery.

    It is a part of the limit (`10%`), one object at least, or a number of objects; `0` asks for nothing.
    """

    reserve: object = "10%"

    def __post_init__(self) -> None:
        if isinstance(self.reserve, str) and _PERCENT.fullmatch(self.reserve):
            return
        if not isinstance(self.reserve, int) or isinstance(self.reserve, bool) or self.reserve < 0:
            raise ValueError("reserve is neither a part below all, such as 10%, nor a number of objects")

    def kept_free(self, limit: int) -> int:
        """How many objects of a limit have to stay free."""
        match = _PERCENT.fullmatch(str(self.reserve))
        if match is None:
            return int(str(self.reserve))
        part = int(match[1])
        return max(1, -(-limit * part // 100)) if part else 0


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A blueprint: what one request makes, step by step, for whom and at whose cost.

    `parallel` is how many steps run at once. `repair_within` is how long a partial failure may stand before it counts
    as forgotten.
    """

    apiVersion: str
    kind: str
    name: str
    steps: Mapping[str, BlueprintStep]
    owner: str = ""
    cost_owner: str = ""
    description: str = ""
    inputs: Mapping[str, BlueprintInput] = field(default_factory=dict)
    preflight: Preflight = field(default_factory=Preflight)
    ready: Ready = field(default_factory=Ready)
    parallel: int = 4
    repair_within: timedelta = timedelta(days=1)

    def __post_init__(self) -> None:
        if self.apiVersion != API_VERSION:
            raise ValueError(f"apiVersion is not {API_VERSION}")
        if self.kind != KIND:
            raise ValueError(f"kind is not {KIND}")
        if not _NAME.fullmatch(self.name):
            raise ValueError("name is not made of letters, digits, _ and -, with a letter first, 63 at most")
        if not self.steps:
            raise ValueError("steps is empty")
        if not 1 <= self.parallel <= 64:
            raise ValueError("parallel is not between 1 and 64")

    def order(self) -> Sequence[str]:
        """The steps, each behind those that it needs; else as they are written. The graph must have no cycle."""
        return tuple(TopologicalSorter({name: step.needs for name, step in self.steps.items()}).static_order())

    def behind(self, name: str) -> Collection[str]:
        """All the steps that come before one, however far. Every need must be a step."""
        found: set[str] = set()
        left = [*self.steps[name].needs]
        while left:
            need = left.pop()
            if need not in found:
                found.add(need)
                left += self.steps[need].needs
        return found

    def dependants(self) -> Mapping[str, Sequence[str]]:
        """By step: those that name it as a need."""
        found: dict[str, list[str]] = {name: [] for name in self.steps}
        for name, step in self.steps.items():
            for need in step.needs:
                found[need].append(name)
        return found

    def texts(self) -> Iterator[tuple[Where, object]]:
        """What may refer to inputs and outputs, and where it stands."""
        for name, step in self.steps.items():
            yield from ((("steps", name, *where), value) for where, value in step.texts())
        for number, probe in enumerate(self.ready.probes):
            yield from ((("ready", "probes", number, *where), value) for where, value in probe_texts(probe))

    def mistakes(self) -> Iterator[Mistake]:
        """What is wrong with the graph and with what it refers to, beyond the form of each part."""
        yield from self._wrong_names()
        broken = list(self._wrong_edges())
        yield from broken
        if not broken:
            yield from self._wrong_removal()
            yield from self._wrong_references()

    def _wrong_names(self) -> Iterator[Mistake]:
        for place, names in (("steps", self.steps), ("inputs", self.inputs)):
            for name in names:
                if not _NAME.fullmatch(name):
                    yield (place, name), "a name is made of letters, digits, _ and -, with a letter first, 63 at most"
        told: set[str] = set()
        for number, probe in enumerate(self.ready.probes):
            if not probe.name:
                yield ("ready", "probes", number), "needs a name"
            elif probe.name in told:
                yield ("ready", "probes", number, "name"), f"another probe is called {probe.name}"
            told.add(probe.name)

    def _wrong_edges(self) -> Iterator[Mistake]:
        for name, step in self.steps.items():
            for number, need in enumerate(step.needs):
                if need not in self.steps:
                    yield ("steps", name, "needs", number), f"there is no step {need}"
                elif step.needs.index(need) != number:
                    yield ("steps", name, "needs", number), f"{need} is named twice"
            owner = step.owned_by
            if owner is not None and owner not in self.steps:
                yield ("steps", name, "owned_by"), f"there is no step {owner}"
            elif owner is not None and owner not in step.needs:
                yield ("steps", name, "owned_by"), f"must be one of the step's needs: {name} cannot come before {owner}"
        known = {name: [need for need in step.needs if need in self.steps] for name, step in self.steps.items()}
        try:
            TopologicalSorter(known).prepare()
        except CycleError as error:
            circle = [str(name) for name in reversed(error.args[1])]
            yield ("steps", circle[0], "needs"), f"the steps need each other in a circle: {' needs '.join(circle)}"

    def _wrong_removal(self) -> Iterator[Mistake]:
        """Steps of which none could be taken away first."""
        try:
            TopologicalSorter(stands_behind(self)).prepare()
        except CycleError as error:
            circle = [str(name) for name in reversed(error.args[1])]
            child = next(one for one, other in pairwise(circle) if self.steps[one].owned_by == other)
            yield (
                ("steps", child, "owned_by"),
                f"nothing of this could ever be taken away: {' goes after '.join(circle)}",
            )

    def _wrong_references(self) -> Iterator[Mistake]:
        for name, step in self.steps.items():
            # What comes before a step is of no interest where it takes no output: of a long chain it would be a lot.
            before = self.behind(name) if any("steps." in str(value) for _, value in step.texts()) else ()
            for where, value in step.texts():
                for reason in self._wrong_in(value, before, f"it is not among the needs of {name}"):
                    yield ("steps", name, *where), reason
            undo, asked = step.compensate or Compensation(destroy=True), step.probe.command if step.probe else ()
            for where, words in (
                (("run",), step.run),
                (("check",), step.check),
                (("compensate", "run"), undo.run),
                (("compensate", "check"), undo.check),
                (("probe", "command"), asked),
            ):
                yield from self._open_secrets(("steps", name, *where), words, _IN_PROCESSES)
            yield from self._open_secrets(("steps", name, "workspace"), step.workspace, "in records and states")
            if step.probe:
                yield from self._open_places(("steps", name, "probe"), step.probe)
        for number, probe in enumerate(self.ready.probes):
            yield from self._open_secrets(("ready", "probes", number, "command"), probe.command, _IN_PROCESSES)
            yield from self._open_places(("ready", "probes", number), probe)
            for where, value in probe_texts(probe):
                for reason in self._wrong_in(value, tuple(self.steps), ""):
                    yield ("ready", "probes", number, *where), reason

    def _wrong_in(self, value: object, allowed: Collection[str], otherwise: str) -> Iterator[str]:
        try:
            for reference in references_in(value):
                if reference.step is None:
                    if reference.name not in self.inputs:
                        yield f"there is no input {reference.name}"
                elif reference.step not in self.steps:
                    yield f"there is no step {reference.step}"
                elif self.steps[reference.step].kind is not StepKind.STACK:
                    yield f"{reference.step} is no stack, and has no outputs"
                elif reference.step not in allowed:
                    yield f"${{{reference}}} is used, and {otherwise}"
        except ValueError as error:
            yield str(error)

    def _open_places(self, where: Where, probe: Probe) -> Iterator[Mistake]:
        for name, place in (("tcp", probe.tcp), ("dns", probe.dns)):
            yield from self._open_secrets((*where, name), place, "in its answer, which tells where it was asked")

    def _open_secrets(self, where: Where, value: object, seen: str) -> Iterator[Mistake]:
        try:
            named = [reference.name for reference in references_in(value) if reference.step is None]
        except ValueError:
            return
        for name in named:
            if name in self.inputs and self.inputs[name].sensitive:
                yield where, f"the sensitive input {name} would be seen {seen}"


def stands_behind(blueprint: Blueprint) -> Mapping[str, Collection[str]]:
    """By step: those that have to be gone before it is taken away. The graph of needs must have no cycle.

    Whatever needs it goes first; but what it owns goes after it, and what needs that goes before it (rule 16).
    """
    dependants = blueprint.dependants()
    found: dict[str, set[str]] = {}
    for name in reversed(blueprint.order()):
        found[name] = set()
        for child in dependants[name]:
            found[name] |= found[child] - {name} if blueprint.steps[child].owned_by == name else {child}
    for name, step in blueprint.steps.items():
        if step.owned_by is not None:
            found[name].add(step.owned_by)
    return found


def however_far(graph: Mapping[str, Collection[str]], name: str) -> Collection[str]:
    """All that a graph leads to from one node, over however many others."""
    found: set[str] = set()
    left = [*graph[name]]
    while left:
        if (one := left.pop()) not in found:
            found.add(one)
            left += graph[one]
    return found


def probe_texts(probe: Probe) -> Iterator[tuple[Where, object]]:
    """What of a probe may refer to inputs and outputs, and where it stands."""
    for name in ("tcp", "http", "sql", "dns", "command", "query", "expect", "contains", "headers", "environment"):
        if (value := getattr(probe, name)) is not None:
            yield (name,), value


def _refers(text: str) -> bool:
    return "${" in text


def _database(url: str) -> None:
    if not url.startswith(DATABASE_SCHEMES):
        raise ValueError("is not a postgresql:// URL")


def _host_name(name: str) -> None:
    try:
        ip_address(name)
    except ValueError:
        if not _DNS_NAME.fullmatch(name):
            raise ValueError("is not a name") from None
    else:
        raise ValueError("is an address already, which always resolves")


def _are(named: Sequence[str]) -> str:
    return f"are {' and '.join(named)}" if named else "is none"
