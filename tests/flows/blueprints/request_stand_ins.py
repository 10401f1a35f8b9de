"""A blueprint's surroundings without an engine: stacks, commands and services that tests tell what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock

from tfguard.blueprint_ports import (
    CallEnd,
    Command,
    Output,
    ProbeAnswer,
    StackCall,
    StackFacts,
    StackLook,
    StackPlace,
    Verified,
)
from tfguard.flows.blueprints.context import BlueprintContext
from tfguard.flows.blueprints.provide import ProvideOptions, provide
from tfguard.flows.blueprints.requests import Requests
from tfguard.flows.blueprints.take_away import TakeAwayOptions, take_away
from tfguard.model.blueprint import Probe
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import BlueprintObject, Request
from tfguard.model.config import Config
from tfguard.model.lease import Lease, Liveness, ProcessIdentity
from tfguard.model.operation import Actor
from tfguard.model.plan import Action, Plan, PlannedChange
from tfguard.schemas.blueprint_file import parse_blueprint
from tfguard.stores.local import LocalStore

HEAD = "apiVersion: tfguard/v1\nkind: Blueprint\nname: b\nowner: team\n"
FIVE = (
    HEAD
    + """
steps:
  network:  {stack: network}
  database: {stack: database, needs: [network], stateful: true, on_failure: retain, retain_for: 7d}
  migrate:  {run: [migrate], needs: [database], owned_by: database, idempotent: true}
  binding:  {stack: binding, needs: [migrate], compensate: {run: [unbind], idempotent: true}}
  probe:    {probe: {tcp: "x:1", within: 5s}, needs: [binding]}
ready:
  probes: [{name: sql, sql: "postgresql://x", within: 5s}]
"""
)


class Crash(BaseException):
    """The process is gone."""


@dataclass
class Clock:
    """A clock that goes on by itself, a little with every look."""

    time: datetime = datetime(2026, 1, 20, tzinfo=UTC)
    interrupted: bool = False
    step: timedelta = timedelta(milliseconds=1)

    def now(self) -> datetime:
        self.time += self.step
        return self.time

    def sleep(self, seconds: float) -> bool:
        self.time += timedelta(seconds=seconds)
        return not self.interrupted


class Host:
    """A host on which whoever held a lease has died."""

    def actor(self) -> Actor:
        return Actor("me", "here")

    def lease(self, operation_id: str, run_directory: str | None, now: datetime, expires_at: datetime) -> Lease:
        return Lease(operation_id, "me", "here", "", ProcessIdentity(1, 1), None, None, now, expires_at, run_directory)

    def liveness(self, lease: Lease, now: Callable[[], datetime]) -> Liveness:  # noqa: ARG002 (the port's)
        return Liveness.GONE


@dataclass
class Console:
    """Keeps what it was told."""

    lines: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.lines.append(text)

    def ask(self, question: str) -> str | None:  # noqa: ARG002 (the port's)
        return None

    def confirm(self, question: str) -> bool:  # noqa: ARG002 (the port's)
        return False


@dataclass
class StandInStack:
    """What a provider, a state and a record hold for one stack. `exists` counts how often it was made; `emptied` tells
    that a destroy has left its state as it is.

    `others` are objects beside the one that it makes: a stray has a finding, all others are in the state. It is at work
    for the next `alive` looks.
    """

    exists: int = 0
    in_state: bool = False
    lost: bool = False
    operations: int = 0
    stateful: bool = False
    others: list[BlueprintObject] = field(default_factory=list)
    alive: int = 0
    emptied: bool = False

    def look(self) -> StackLook:
        operation = f"op-{self.operations}" if self.operations else None
        if self.alive:
            self.alive -= 1
            return StackLook(operation_id=operation, alive=True, open=True)
        stray = self.lost
        known = BlueprintObject("x.y", "x", observed_id="x-1", stateful=self.stateful, finding="o-1" if stray else None)
        managed = [one for one in self.others if one.finding is None]
        return StackLook(
            operation_id=operation,
            open=stray,
            adoptable=("o-1",) if stray else (),
            objects=((known,) if self.in_state or stray else ()) + tuple(self.others),
            managed=int(self.in_state) + len(managed),
            emptied=self.emptied,
        )


@dataclass
class StandIn:
    """Stacks, commands and services, by the name of their step.

    `faults` tells by step what the next calls end with (a lost reply: `lost`); `crash_at` kills the process, as it
    were, at the call of this number, before it (False) or after it (True). A command is still at work for the next
    looks that `running` counts by step; `inits` tells by step what the next of them end with.
    """

    stacks: dict[str, StandInStack] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    services: dict[str, bool] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    crash_at: tuple[int, bool] | None = None
    running: dict[str, int] = field(default_factory=dict)
    inits: dict[str, list[int]] = field(default_factory=dict)
    outputs_of: dict[str, Mapping[str, Output]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, place: StackPlace) -> StandInStack:
        return self.stacks.setdefault(place.directory.name, StandInStack())

    def facts(self, place: StackPlace) -> StackFacts:
        workspace = place.workspace or place.environment.get("TF_WORKSPACE") or "default"
        return StackFacts(f"{place.directory} {workspace}", None)

    def initialise(self, place: StackPlace, step: str) -> CallEnd:  # noqa: ARG002 (the port's)
        planned = self.inits.get(step, [])
        return CallEnd(planned.pop(0) if planned else 0)

    def look(self, place: StackPlace) -> StackLook:
        return self.of(place).look()

    def outputs(self, place: StackPlace) -> Mapping[str, Output]:
        return self.outputs_of.get(place.directory.name, {})

    def plan(self, call: StackCall) -> Plan | str:
        gone = self.verify(call).missing
        changes = tuple(PlannedChange(address, "x", "p", Action.CREATE) for address in gone)
        return Plan("1.11", changes)

    def verify(self, call: StackCall) -> Verified:
        stack = self.of(call.place)
        return Verified(missing=("x.y",) if stack.in_state and not stack.exists else ())

    def apply(self, call: StackCall, step: str) -> CallEnd:
        def work(fault: str) -> int:
            stack = self.of(call.place)
            stack.operations, stack.emptied = stack.operations + 1, False
            if fault == "refused":
                return 1
            if not stack.in_state or not stack.exists:
                stack.exists += 1
            if fault == "lost":
                stack.lost = True
                return 1
            stack.in_state = True
            return 0

        return self._call("apply", step, work)

    def destroy(self, call: StackCall, step: str) -> CallEnd:
        def work(fault: str) -> int:
            stack = self.of(call.place)
            stack.operations, stack.emptied = stack.operations + 1, not fault
            if fault:
                return 1
            stack.exists, stack.in_state = 0, False
            stack.others = [one for one in stack.others if one.finding is not None]
            return 0

        return self._call("destroy", step, work)

    def recover(self, call: StackCall, step: str) -> CallEnd:  # noqa: ARG002 (the port's)
        return self._call("recover", step, lambda _: 0)

    def adopt(self, call: StackCall, findings: Sequence[str], step: str) -> CallEnd:  # noqa: ARG002 (the port's)
        def work(fault: str) -> int:
            if fault:
                return 1
            stack = self.of(call.place)
            stack.lost, stack.in_state = False, True
            return 0

        return self._call("adopt", step, work)

    def run(self, command: Command, step: str) -> CallEnd:
        return self._call(
            " ".join(command.words), step, lambda fault: int(fault) if fault.isdigit() else int(bool(fault))
        )

    def still_runs(self, step: str) -> bool:
        left = self.running.get(step, 0)
        self.running[step] = max(0, left - 1)
        return left > 0

    def ask(self, probe: Probe) -> ProbeAnswer:
        ok = self.services.get(probe.name, True)
        return ProbeAnswer(ok, "answered" if ok else "refused")

    def interrupt(self) -> None:
        self.calls.append(("interrupt", ""))

    def _call(self, what: str, step: str, work: Callable[[str], int]) -> CallEnd:
        with self._lock:
            self.calls.append((what, step))
            here = self.crash_at is not None and len(self.calls) == self.crash_at[0]
            if here and self.crash_at is not None and not self.crash_at[1]:
                raise Crash
            planned = self.faults.get(step, [])
            code = work(planned.pop(0) if planned else "")
            if here:
                raise Crash
        return CallEnd(code)


class Desk:
    """One blueprint in a folder, worked on by one process after the other."""

    def __init__(self, folder: Path, text: str, config: Config | None = None) -> None:
        self.text, self.folder, self.config = text, folder, config or Config()
        self.clock, self.console, self.world = Clock(), Console(), StandIn()
        self.intents = 0

    @property
    def context(self) -> BlueprintContext:
        """As a new process would build it."""
        store = LocalStore(self.folder / "b.tfguard")
        return BlueprintContext(
            blueprint=parse_blueprint(self.text).value,
            text=self.text,
            file=self.folder / "b.yaml",
            requests=Requests(store, self.clock, Host(), self.console),  # type: ignore[arg-type]
            stacks=self.world,
            commands=self.world,
            prober=self.world,
            config=self.config,
            console=self.console,
            secret=lambda reference: f"secret of {reference}",
            intents=lambda: self.intents,
        )

    def provide(self, told: Mapping[str, Told] | None = None, **inputs: object) -> Request:
        return provide(self.context, ProvideOptions(inputs, told or {}), lambda _: (), lambda _: None)

    def destroy(
        self, *, stateful: bool = False, dispose: bool = False, gone: Mapping[str, str] | None = None
    ) -> Request | None:
        return take_away(self.context, TakeAwayOptions("over", stateful, dispose, gone or {}), lambda _: None)

    @property
    def request(self) -> Request:
        found = self.context.requests.current()
        assert found is not None
        return found

    def interrupt_at(self, call: str) -> None:
        """A Ctrl-C comes during each such call (`apply`, `adopt`, ...)."""
        made = getattr(self.world, call)

        def interrupted(*given: object) -> object:
            self.intents = 1
            return made(*given)

        setattr(self.world, call, interrupted)

    def statuses(self) -> dict[str, str]:
        return {name: self.request.step(name).status.value for name in self.context.blueprint.steps}
