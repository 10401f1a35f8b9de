"""One step at a time: decide from record and evidence, do it, and write down what came of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from tfguard.errors import RecordError, TfguardError
from tfguard.flows.blueprints.asking import ask_until
from tfguard.flows.blueprints.command_steps import CommandSteps
from tfguard.flows.blueprints.context import BlueprintContext, Values
from tfguard.flows.blueprints.deciding import decision_about
from tfguard.flows.blueprints.notes import Notes
from tfguard.flows.blueprints.requests import Journal
from tfguard.flows.blueprints.stack_steps import StackSteps
from tfguard.flows.blueprints.stopping import Stopping
from tfguard.flows.blueprints.words import Words
from tfguard.model.blueprint import StepKind
from tfguard.model.blueprint_decision import DecisionKind, Told
from tfguard.model.blueprint_request import Activity
from tfguard.model.operation import StepStatus
from tfguard.reconcile.blueprint_steps import decide_probe, decide_undo

_GONE = (StepStatus.DESTROYED, StepStatus.ABSENT)


@dataclass(slots=True)
class StepRunner:
    """Provides the steps of one request, and takes them away. Safe for several threads, each with its own step.

    `told` are a person's words about commands that may have done their work. With `takes_data` a stack that holds data
    may be destroyed. `gone` are a person's words about commands, and about stacks whose state is lost: that nothing of
    them is there.
    """

    context: BlueprintContext
    journal: Journal
    values: Values
    stopping: Stopping
    told: Mapping[str, Told] = field(default_factory=dict)
    takes_data: bool = False
    gone: Mapping[str, str] = field(default_factory=dict)
    notes: Notes = field(init=False)
    _words: Words = field(init=False)
    _stacks: StackSteps = field(init=False)
    _commands: CommandSteps = field(init=False)

    def __post_init__(self) -> None:
        self.notes = Notes(self.context, self.journal, self.values, self.stopping)
        self._words = Words(self.context.clock.now(), dict(self.told), self.gone, self.takes_data)
        self._stacks = StackSteps(self.notes, self._words, self._compensate)
        self._commands = CommandSteps(self.notes, self._words, self._compensate, self._stacks.verified.calling)

    @property
    def verified(self) -> Collection[str]:
        """The steps whose objects were all seen at their providers since something was last called."""
        return self._stacks.verified.names

    @property
    def unused(self) -> Collection[str]:
        """The steps about which a word was given that none of what was done here has come to."""
        return tuple(self._words.told)

    @property
    def asking(self) -> Collection[str]:
        """The steps about which nothing can be done before a person has looked."""
        return frozenset(self.notes.asking)

    def provide(self, name: str) -> bool:
        """Bring a step, whose needs are done, to its end; whether it is done. Raises `RecordError` alone."""
        kind = self.notes.step(name).kind
        work = {
            StepKind.STACK: self._stacks.provide,
            StepKind.RUN: self._commands.provide,
            StepKind.PROBE: self._probe,
        }
        activity = {
            StepKind.STACK: Activity.APPLY,
            StepKind.RUN: Activity.RUN,
            StepKind.PROBE: Activity.PROBE,
        }
        try:
            return self._truthfully(name, work[kind], activity[kind])
        finally:
            self._words.told.pop(name, None)  # a word counts once

    def verify(self, name: str) -> str:
        """Look all objects of a stack up at their providers; why they were not all seen. Raises `RecordError`."""
        return self._stacks.verify(name)

    def look_again(self, name: str) -> str:
        """Look the objects of a stack that was done up, and write down what has changed; why it is not as it was, or
        why that cannot be told. Raises `RecordError`."""
        return self._stacks.look_again(name)

    def take_stock(self, name: str) -> None:
        """Write down how a step stands that was cut short. Raises `RecordError`."""
        kind, record = self.notes.step(name).kind, self.notes.record(name)
        if kind is StepKind.STACK:
            self._stacks.take_stock(name)
            return
        why, known = "it was cut short: how much of its work is done is not known", record.activity
        try:
            if kind is StepKind.RUN:
                self._commands.take_stock(name)
                return
        except RecordError:
            raise
        except TfguardError as error:
            self.context.console.warn(f"{name}: {error.what}; {error.advice}")
        self.notes.note(name, StepStatus.ERROR if record.made else StepStatus.PENDING, why, known)

    def stands(self, name: str) -> bool:
        """Whether something of a step is there, or may be: a stack that failed and has nothing, or a command that
        failed and whose check says so, is not in the way. What cannot be asked may be there. Raises `RecordError`
        alone."""
        kind, record = self.notes.step(name).kind, self.notes.record(name)
        if not record.made or record.status is not StepStatus.ERROR or kind is StepKind.PROBE:
            return record.made and kind is not StepKind.PROBE
        try:
            return self._commands.stands(name) if kind is StepKind.RUN else self._stacks.stands(name)
        except RecordError:
            raise
        except TfguardError:
            return True

    def in_doubt(self, name: str) -> bool:
        """Whether a step that was begun earlier waits for a person, or something of it may still run. What cannot be
        asked is in doubt; what is being undone is settled by that. Raises `RecordError` alone."""
        step, record = self.notes.step(name), self.notes.record(name)
        if step.kind is StepKind.PROBE:
            return False
        if record.undoing:
            return bool(decide_undo(step, record, None).asks)
        if record.status is StepStatus.RUNNING:
            return True
        if not record.made or record.done:
            return False
        try:
            decision = decision_about(self.context, self.journal.request, name)
        except RecordError:
            raise
        except TfguardError:
            return True
        if decision.asks or decision.kind is DecisionKind.WAIT:
            return True
        return decision.kind in (DecisionKind.INSPECT, DecisionKind.ADOPT) and self.stands(name)

    def compensate(self, name: str) -> bool:
        """Undo a step by its compensation; whether nothing of it is left. Raises `RecordError` alone."""
        return self._truthfully(name, self._compensate, Activity.COMPENSATE)

    def take_away(self, name: str) -> bool:
        """Take a step's work away, whatever stands behind it being gone; whether it is gone. Raises `RecordError`
        alone."""
        return self._truthfully(name, self._take_away, Activity.DESTROY)

    def say(self, name: str, text: str) -> None:
        """A line about a step to the user."""
        self.notes.say(name, text)

    def _truthfully(self, name: str, work: Callable[[str], bool], activity: Activity) -> bool:
        try:
            return work(name)
        except RecordError:
            raise
        except TfguardError as error:
            if activity is Activity.COMPENSATE and self.notes.record(name).status is StepStatus.OK:
                # Nothing was called: what is done stays done.
                self.notes.note(name, StepStatus.OK, f"not compensated: {error.what}")
            else:
                self.notes.note(name, StepStatus.ERROR, error.what, activity)
            self.say(name, f"{error.what}; {error.advice}")
            return False

    def _probe(self, name: str) -> bool:
        probe = self.notes.step(name).probe
        assert probe is not None
        self.say(name, decide_probe(self.notes.record(name)).reason)
        resolved = self.values.probe(probe, name)
        self.notes.note(name, StepStatus.RUNNING, "asking", Activity.PROBE)
        answer = ask_until(self.context, name, resolved, lambda: self.stopping.wanted)
        if answer.ok:
            return self.notes.done(name, answer.detail)
        return self.notes.failed(name, answer.detail, Activity.PROBE)

    def _compensate(self, name: str) -> bool:
        notes, undo = self.notes, self.notes.step(name).compensate
        if undo is None:
            # A destroy of the whole request was begun, and did not come to its end.
            return self._take_away(name)
        if undo.destroy:
            if self._stacks.holds_data(name, self.context.stacks.look(self.values.place(name))):
                why = "it holds data, which is never deleted as a compensation"
                status = notes.record(name).status
                # One that was announced, and cut short, runs no more.
                notes.note(name, StepStatus.ERROR if status is StepStatus.RUNNING else status, why)
                self.say(name, f"{why}; `destroy --step {name} --stateful` takes it away")
                return False
            return self._stacks.destroy(name, Activity.COMPENSATE)
        if not self._commands.compensate(name, undo):
            return False
        if notes.step(name).kind is StepKind.STACK:
            look = self.context.stacks.look(self.values.place(name))
            if look.failure or look.open or look.managed != 0:
                why = "compensated by its command; its stack still has objects, which a destroy removes"
                notes.note(name, StepStatus.ERROR, why, Activity.COMPENSATE, look, exit_code=0)
                return False
        return notes.gone(name, "compensated")

    def _take_away(self, name: str) -> bool:
        notes, step, record = self.notes, self.notes.step(name), self.notes.record(name)
        owner = step.owned_by
        if record.status in _GONE:
            return True
        if step.kind is StepKind.PROBE:
            return notes.gone(name, "a probe makes nothing", StepStatus.ABSENT)
        if step.kind is StepKind.STACK:
            return self._stacks.destroy(name, Activity.DESTROY) if record.made else self._stacks.leave(name)
        if not record.made:
            return notes.gone(name, "it was never begun", StepStatus.ABSENT)
        if name in self.gone:
            return notes.gone(name, f"gone, by a person's word: {self.gone[name]}", StepStatus.ABSENT)
        if not self._commands.wait_for(name):
            return False
        if owner is not None and notes.record(owner).status in _GONE:
            return notes.gone(name, f"gone with {owner}, which is confirmed gone")
        return self._compensate(name) if step.compensate is not None else self._commands.leave(name)
