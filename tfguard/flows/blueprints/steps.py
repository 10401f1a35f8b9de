"""One step at a time: decide from record and evidence, do it, and write down what came of it.

What a call announces is in the journal before it is made, and what it answered after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from tfguard.blueprint_ports import CallEnd, StackCall, StackLook, StackPlace
from tfguard.errors import RecordError, TfguardError
from tfguard.flows.blueprints.asking import ask_until
from tfguard.flows.blueprints.context import BlueprintContext, Values
from tfguard.flows.blueprints.requests import Journal
from tfguard.flows.blueprints.stopping import Stopping
from tfguard.model.blueprint import StepKind
from tfguard.model.blueprint_decision import Decision, DecisionKind, Told
from tfguard.model.blueprint_request import Activity, BlueprintObject, RequestEvent, StepRecord
from tfguard.model.config import format_duration
from tfguard.model.operation import StepStatus
from tfguard.reconcile.blueprint_steps import (
    decide_command,
    decide_probe,
    decide_stack,
    holds_data,
)

_LOOKS = 6
"""Recover, adopt, undo and apply each lead to a new look; more than these never help."""

_WAIT_SECONDS = 1.0
_CHECK_DONE, _CHECK_NOT_DONE = 0, 1


@dataclass(slots=True)
class StepRunner:
    """Provides the steps of one request, and takes them away. Safe for several threads, each with its own step.

    `told` are a person's words about commands that may have done their work. With `takes_data` a stack that holds data
    may be destroyed.
    """

    context: BlueprintContext
    journal: Journal
    values: Values
    stopping: Stopping
    told: Mapping[str, Told] = field(default_factory=dict)
    takes_data: bool = False

    def provide(self, name: str) -> bool:
        """Bring a step, whose needs are done, to its end; whether it is done. Raises `RecordError` alone."""
        kind = self.context.blueprint.steps[name].kind
        work = {StepKind.STACK: self._provide_stack, StepKind.RUN: self._provide_command, StepKind.PROBE: self._probe}
        return self._truthfully(name, work[kind], Activity.APPLY if kind is StepKind.STACK else Activity.RUN)

    def stands(self, name: str) -> bool:
        """Whether something of a step is there, or may be: a stack that failed, and has nothing, is not in the way."""
        step, record = self.context.blueprint.steps[name], self._record(name)
        if not record.made or step.kind is not StepKind.STACK or record.status is not StepStatus.ERROR:
            return record.made and step.kind is not StepKind.PROBE
        look = self.context.stacks.look(self.values.place(name))
        return bool(look.failure or look.open or look.managed != 0)

    def compensate(self, name: str) -> bool:
        """Undo a step by its compensation; whether nothing of it is left. Raises `RecordError` alone."""
        return self._truthfully(name, self._compensate, Activity.COMPENSATE)

    def take_away(self, name: str) -> bool:
        """Take a step's work away, whatever stands behind it being gone; whether it is gone. Raises `RecordError`
        alone."""
        return self._truthfully(name, self._take_away, Activity.DESTROY)

    def _truthfully(self, name: str, work: Callable[[str], bool], activity: Activity) -> bool:
        try:
            return work(name)
        except RecordError:
            raise
        except TfguardError as error:
            self.note(name, StepStatus.ERROR, error.what, activity)
            self.say(name, f"{error.what}; {error.advice}")
            return False

    # Stacks

    def _provide_stack(self, name: str) -> bool:
        place, last = self.values.place(name), ""
        if not self._initialised(name, place, Activity.APPLY):
            return False
        for _ in range(_LOOKS):
            look = self.context.stacks.look(place)
            decision = decide_stack(self._record(name), look, self.journal.request)
            if decision.kind is not DecisionKind.WAIT or decision.reason != last:
                self.say(name, f"{decision.kind.value}: {decision.reason}")
            last = decision.reason
            match decision.kind:
                case DecisionKind.SKIP:
                    return self._done(name, decision.reason, look)
                case DecisionKind.WAIT:
                    if not self._wait_for_stack(name):
                        return False
                case DecisionKind.RUN:
                    return self._apply(name)
                case DecisionKind.UNDO:
                    if not self._compensate(name):
                        return False
                case _ if not self._settle(name, look, decision):
                    return False
        return self._failed(name, "what is open on its stack does not settle", Activity.RECOVER)

    def _initialised(self, name: str, place: StackPlace, activity: Activity) -> bool:
        end = self.context.stacks.initialise(place, name)
        return not end.exit_code or self._failed(name, f"init ended with {end.exit_code}", activity, end=end)

    def _apply(self, name: str) -> bool:
        call = self.values.call(name)
        self.note(name, StepStatus.RUNNING, "applying", Activity.APPLY)
        end = self.context.stacks.apply(call, name)
        self.values.forget(name)
        look = self.context.stacks.look(call.place)
        if end.exit_code == 0 and not look.open and not look.failure:
            return self._done(name, "applied, and what it made is in its state", look)
        why = f"the apply ended with {end.exit_code}" if end.exit_code else "the apply said 0, and left something open"
        return self._failed(name, f"{why}{_unsettled(look)}", Activity.APPLY, look, end)

    def _settle(self, name: str, look: StackLook, decision: Decision) -> bool:
        """Recover or adopt what is open on a step's stack; whether another look may find it settled."""
        if decision.asks:
            return self._failed(name, f"{decision.reason}; {decision.asks}", Activity.RECOVER, look)
        call = self.values.call(name)
        if decision.kind is DecisionKind.ADOPT:
            ids = tuple(found.observed_id or "" for found in look.objects if found.finding in look.adoptable)
            self.note(name, StepStatus.RUNNING, decision.reason, Activity.ADOPT, look, ids)
            end = self.context.stacks.adopt(call, look.adoptable, name)
            if end.exit_code:
                why = f"what operation {look.operation_id} left could not be adopted (exit code {end.exit_code})"
                return self._failed(name, why, Activity.ADOPT, self.context.stacks.look(call.place), end)
            return True
        self.note(name, StepStatus.RUNNING, decision.reason, Activity.RECOVER)
        end = self.context.stacks.recover(call, name)
        after = self.context.stacks.look(call.place)
        if after.open and not after.adoptable:
            why = f"operation {after.operation_id} does not settle{_unsettled(after)}"
            return self._failed(name, why, Activity.RECOVER, after, end)
        return True

    def _wait_for_stack(self, name: str) -> bool:
        """Wait while another run works on a step's stack; False when the user has had enough."""
        while self.context.stacks.look(self.values.place(name)).alive:
            if self.stopping.wanted:
                return False
            self.context.clock.sleep(_WAIT_SECONDS)
        return True

    # Commands

    def _provide_command(self, name: str) -> bool:
        step = self.context.blueprint.steps[name]
        while self.context.commands.still_runs(name):
            if self.stopping.wanted:
                return False
            self.context.clock.sleep(_WAIT_SECONDS)
        checked: bool | None = None
        for _ in range(_LOOKS):
            decision = decide_command(step, self._record(name), self.journal.request, checked, self.told.get(name))
            self.say(name, f"{decision.kind.value}: {decision.reason}")
            match decision.kind:
                case DecisionKind.SKIP:
                    return self._done(name, decision.reason)
                case DecisionKind.RUN:
                    return self._run(name)
                case DecisionKind.UNDO:
                    if not self._compensate(name):
                        return False
                case _ if decision.asks:
                    return self._failed(name, f"{decision.reason}; {decision.asks}", Activity.RUN)
                case _:
                    self.note(name, StepStatus.RUNNING, decision.reason, Activity.CHECK)
                    checked = self._check(name, step.check)
                    if checked is None:
                        return False
        raise AssertionError("a command that was checked and undone is run or skipped")

    def _run(self, name: str) -> bool:
        step = self.context.blueprint.steps[name]
        command = self.values.command(name, step.run)
        self.note(name, StepStatus.RUNNING, "running its command", Activity.RUN)
        end = self.context.commands.run(command, name)
        if end.timed_out:
            limit = format_duration(step.timeout or timedelta(0))
            why = f"its command did not end within {limit}: how much of its work is done is not known"
            return self._failed(name, why, Activity.RUN, end=end)
        if end.exit_code:
            return self._failed(name, f"its command ended with {end.exit_code}", Activity.RUN, end=end)
        if step.check and not (checked := self._check(name, step.check)):
            if checked is None:
                return False
            return self._failed(
                name, "its command ended with 0, and its check says that it is not done", Activity.CHECK
            )
        return self._done(name, "its command ended with 0")

    def _check(self, name: str, words: tuple[str, ...], activity: Activity = Activity.CHECK) -> bool | None:
        """What a check says; None, and the step is an error, where it cannot tell."""
        end = self.context.commands.run(self.values.command(name, words), name)
        if not end.timed_out and end.exit_code in (_CHECK_DONE, _CHECK_NOT_DONE):
            return end.exit_code == _CHECK_DONE
        what = "did not end in time" if end.timed_out else f"ended with {end.exit_code}"
        self._failed(name, f"its check {what}, which says neither done (0) nor not done (1)", activity, end=end)
        return None

    def _probe(self, name: str) -> bool:
        probe = self.context.blueprint.steps[name].probe
        assert probe is not None
        self.say(name, decide_probe(self._record(name)).reason)
        resolved = self.values.probe(probe, name)
        self.note(name, StepStatus.RUNNING, "asking", Activity.PROBE)
        answer = ask_until(self.context, resolved, lambda: self.stopping.wanted)
        if answer.ok:
            return self._done(name, answer.detail)
        return self._failed(name, answer.detail, Activity.PROBE)

    # Taking away

    def _compensate(self, name: str) -> bool:
        step, record = self.context.blueprint.steps[name], self._record(name)
        undo = step.compensate
        if undo is None:
            # A destroy of the whole request was begun, and did not come to its end.
            return self._take_away(name)
        if undo.destroy:
            if holds_data(step, record, self.context.stacks.look(self.values.place(name)).objects):
                why = "it holds data, which is never deleted as a compensation"
                self.note(name, record.status, why)
                self.say(name, why)
                return False
            return self._destroy_stack(name, Activity.COMPENSATE)
        self.note(name, StepStatus.RUNNING, "running its compensation", Activity.COMPENSATE)
        command = replace(self.values.command(name, undo.run), timeout=undo.timeout)
        end = self.context.commands.run(command, name)
        if end.timed_out or end.exit_code:
            what = "did not end in time" if end.timed_out else f"ended with {end.exit_code}"
            return self._failed(name, f"its compensation {what}", Activity.COMPENSATE, end=end)
        if undo.check:
            checked = self._check(name, undo.check, Activity.COMPENSATE)
            if checked is None:
                return False
            if not checked:
                why = "its compensation ended with 0, and the check of that says that it is not done"
                return self._failed(name, why, Activity.COMPENSATE)
        if step.kind is StepKind.STACK:
            look = self.context.stacks.look(self.values.place(name))
            if look.failure or look.open or look.managed != 0:
                why = "compensated by its command; its stack still has objects, which a destroy removes"
                self.note(name, StepStatus.ERROR, why, Activity.APPLY, look)
                return False
        return self._gone(name, "compensated")

    def _take_away(self, name: str) -> bool:
        step, record = self.context.blueprint.steps[name], self._record(name)
        owner = step.owned_by
        if step.kind is StepKind.PROBE:
            return self._gone(name, "a probe makes nothing", StepStatus.ABSENT)
        if step.kind is StepKind.STACK:
            return self._destroy_stack(name, Activity.DESTROY)
        if not record.made:
            return self._gone(name, "it was never begun", StepStatus.ABSENT)
        if step.compensate is not None:
            return self._compensate(name)
        if owner is not None:
            return self._gone(name, f"gone with {owner}, which is confirmed gone")
        return self._gone(name, "its blueprint declares nothing to undo", StepStatus.ABSENT)

    def _destroy_stack(self, name: str, activity: Activity) -> bool:
        place = self.values.place(name)
        if not self._initialised(name, place, activity):
            return False
        for _ in range(_LOOKS):
            look, record = self.context.stacks.look(place), self._record(name)
            if look.failure:
                return self._failed(name, f"its record cannot be read: {look.failure}", activity)
            if look.alive:
                self.say(name, f"wait: operation {look.operation_id} is running on it")
                if not self._wait_for_stack(name):
                    return False
                continue
            if look.open:
                kind = DecisionKind.ADOPT if look.adoptable else DecisionKind.INSPECT
                settled = Decision(kind, f"operation {look.operation_id} is not settled")
                if not self._settle(name, look, settled):
                    return self._still(name, activity)
                continue
            if look.managed == 0:
                if record.standing and look.command != "destroy":
                    why = "its state is empty, and no destroy has emptied it: where its objects are is not known"
                    return self._failed(name, why, activity, look)
                return self._gone(name, "its state is empty, and no operation on it is open", StepStatus.ABSENT, look)
            if not self.takes_data and holds_data(self.context.blueprint.steps[name], record, look.objects):
                self.say(name, "stays: it holds data; --stateful takes it away, too")
                return False
            return self._destroy_now(name, self.values.call(name), activity)
        return self._failed(name, "what is open on its stack does not settle", activity)

    def _destroy_now(self, name: str, call: StackCall, activity: Activity) -> bool:
        self.note(name, StepStatus.RUNNING, "destroying", activity)
        end = self.context.stacks.destroy(call, name)
        self.values.forget(name)
        look = self.context.stacks.look(call.place)
        if end.exit_code == 0 and not look.open and not look.failure and look.managed == 0:
            return self._gone(name, "destroyed, and verified to be gone", look=look)
        why = f"the destroy ended with {end.exit_code}" if end.exit_code else "the destroy said 0, and left something"
        return self._failed(name, f"{why}{_unsettled(look)}", activity, look, end)

    def _still(self, name: str, activity: Activity) -> bool:
        """Let the record say that it was to be taken away: a step that failed to settle is not to be provided."""
        record = self._record(name)
        self.note(name, StepStatus.ERROR, record.why, activity)
        return False

    # What came of it

    def note(
        self,
        name: str,
        status: StepStatus,
        why: str,
        activity: Activity | None = None,
        look: StackLook | None = None,
        provider_ids: tuple[str, ...] = (),
    ) -> None:
        """Write a step's status; with the objects that its stack has, where it was looked at. Raises `RecordError`."""
        before = self._record(name).objects
        if status in (StepStatus.DESTROYED, StepStatus.ABSENT):
            objects = tuple(replace(found, disposition=StepStatus.DESTROYED.value) for found in before)
        else:
            # A look that finds nothing is no reason to forget what was made (rule 2).
            seen = look.objects if look is not None and not look.failure else ()
            objects = tuple(_still_known(found, before) for found in seen) or before
        ids = provider_ids or tuple(found.observed_id for found in objects if found.observed_id and not found.gone)
        self.journal.write(
            lambda at, by: RequestEvent(
                at,
                by,
                why,
                step=name,
                status=status,
                activity=activity,
                operation_id=look.operation_id if look is not None else None,
                provider_ids=ids,
                objects=objects if objects != before else None,
            )
        )

    def say(self, name: str, text: str) -> None:
        """A line about a step to the user."""
        self.context.console.say(f"{name}: {text}")

    def _record(self, name: str) -> StepRecord:
        return self.journal.request.step(name)

    def _done(self, name: str, why: str, look: StackLook | None = None) -> bool:
        self.note(name, StepStatus.OK, why, look=look)
        self.say(name, f"ok: {why}")
        return True

    def _gone(
        self, name: str, why: str, status: StepStatus = StepStatus.DESTROYED, look: StackLook | None = None
    ) -> bool:
        before = self._record(name).status
        if status is StepStatus.ABSENT and before is StepStatus.DESTROYED:
            status = before  # it is known how it went
        self.note(name, status, why, look=look)
        self.say(name, f"{status.value}: {why}")
        return True

    def _failed(
        self,
        name: str,
        why: str,
        activity: Activity,
        look: StackLook | None = None,
        end: CallEnd | None = None,
    ) -> bool:
        """The step is an error. What the call said goes to the user alone, since it may hold a secret (rule 10)."""
        self.note(name, StepStatus.ERROR, why, activity, look)
        self.say(name, f"error: {why}")
        if end is not None:
            for line in end.tail:
                self.say(name, f"  {line}")
            if end.log is not None:
                self.say(name, f"  all of it is in {end.log}")
        return False


def _still_known(found: BlueprintObject, before: Sequence[BlueprintObject]) -> BlueprintObject:
    """An object with what was known of it earlier, where this look does not tell."""
    old = next((one for one in before if (one.address, one.type) == (found.address, found.type)), None)
    if old is None or old.gone or (old.observed_id and found.observed_id and old.observed_id != found.observed_id):
        return found
    return replace(found, desired=found.desired or old.desired, created_at=found.created_at or old.created_at)


def _unsettled(look: StackLook) -> str:
    if look.failure:
        return f"; its record cannot be read: {look.failure}"
    left = [*look.unsettled]
    if look.adoptable:
        left.insert(0, f"{len(look.adoptable)} object(s) exist that its state does not know")
    return f"; {left[0]}" if left else ""
