"""What came of each step, written down and told to the user.

What a call announces is in the journal before it is made, and what it answered after it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from tfguard.blueprint_ports import CallEnd, StackLook
from tfguard.flows.blueprints.context import BlueprintContext, Values
from tfguard.flows.blueprints.requests import Journal
from tfguard.flows.blueprints.stopping import Stopping
from tfguard.model.blueprint import BlueprintStep
from tfguard.model.blueprint_decision import Decision, DecisionKind
from tfguard.model.blueprint_request import UNSEEN, Activity, RequestEvent, StepRecord
from tfguard.model.operation import StepStatus
from tfguard.reconcile.blueprint_objects import Key, merged
from tfguard.reconcile.blueprint_steps import UNREADABLE, told_when_begun, work_of

_GONE = (StepStatus.DESTROYED, StepStatus.ABSENT)
_LAST_OWN_CODE = 128
"""Beyond it a signal has ended the call, as a shell shows it: it did not say itself how far it came."""


@dataclass(frozen=True, slots=True)
class Notes:
    """Writes the statuses of one request's steps. Safe for several threads, each with its own step.

    Every method that writes raises `RecordError`. `asking` are the steps about which, as was last decided, nothing
    can be done before a person has looked.
    """

    context: BlueprintContext
    journal: Journal
    values: Values
    stopping: Stopping
    asking: set[str] = field(default_factory=set)

    def step(self, name: str) -> BlueprintStep:
        """What the blueprint says of a step."""
        return self.context.blueprint.steps[name]

    def record(self, name: str) -> StepRecord:
        """What the journal says of a step by now."""
        return self.journal.request.step(name)

    def say(self, name: str, text: str) -> None:
        """A line about a step to the user."""
        self.context.console.say(f"{name}: {text}")

    def decided(self, name: str, decision: Decision, *, aloud: bool = True) -> None:
        """Keep in mind what was decided about a step, and tell the user, if `aloud`."""
        if decision.kind is DecisionKind.INSPECT or decision.asks:
            self.asking.add(name)
        else:
            self.asking.discard(name)
        if aloud:
            self.say(name, told_when_begun(decision))

    def note(
        self,
        name: str,
        status: StepStatus,
        why: str,
        activity: Activity | None = None,
        look: StackLook | None = None,
        provider_ids: tuple[str, ...] = (),
        removed: Collection[Key] = (),
        *,
        worked: bool = False,
        missing: tuple[str, ...] = (),
        exit_code: int | None = None,
        operation_id: str | None = None,
        found: bool = False,
    ) -> None:
        """Write a step's status; with the objects that its stack has, where it was looked at. What is `removed` was
        taken away by a call that came to a good end. `worked`: its work has come to a good end by now; `missing` are
        addresses that the provider does not have; `exit_code` is how a call ended that says so itself. `operation_id`
        is the stack's newest operation, else that of the look. `found`: what begins here, or is called done, was there
        already, or some of it."""
        request = self.journal.request
        before = request.step(name).objects
        objects = before
        if look is not None and not look.failure and not look.alive:
            objects = merged(before, look.objects, removed)
        if status in _GONE:
            objects = tuple(
                found if found.disposition == UNSEEN else replace(found, disposition=StepStatus.DESTROYED.value)
                for found in objects
            )
        ids = provider_ids or tuple(found.observed_id for found in objects if found.observed_id and not found.gone)
        self.journal.write(
            lambda at, by: RequestEvent(
                at,
                by,
                why,
                step=name,
                status=status,
                activity=activity,
                operation_id=operation_id or (look.operation_id if look is not None else None),
                provider_ids=ids,
                objects=objects if objects != before else None,
                work=work_of(self.step(name), request) if worked else None,
                missing=missing,
                exit_code=exit_code,
                found=found,
            )
        )

    def stopped(self, name: str, look: StackLook | None = None, activity: Activity | None = None) -> bool:
        """Somebody wants to stop, so that nothing more is called for a step: what was called is on record."""
        record = self.record(name)
        if record.status is StepStatus.RUNNING:
            status = StepStatus.ERROR if record.made else StepStatus.PENDING
            self.note(name, status, "cancelled before all of it was done", activity, look)
        self.say(name, "cancelled: nothing more of it is begun")
        return False

    def done(
        self,
        name: str,
        why: str,
        look: StackLook | None = None,
        removed: Collection[Key] = (),
        *,
        worked: bool = False,
    ) -> bool:
        """The step is ok; True."""
        found = not self.record(name).made  # nothing of it was announced
        self.note(name, StepStatus.OK, why, look=look, removed=removed, worked=worked, found=found)
        self.say(name, f"ok: {why}")
        return True

    def gone(
        self,
        name: str,
        why: str,
        status: StepStatus = StepStatus.DESTROYED,
        look: StackLook | None = None,
        removed: Collection[Key] = (),
    ) -> bool:
        """Nothing of the step is there; True."""
        before = self.record(name).status
        if status is StepStatus.ABSENT and before is StepStatus.DESTROYED:
            status = before  # it is known how it went
        self.note(name, status, why, look=look, removed=removed)
        self.say(name, f"{status.value}: {why}")
        return True

    def failed(
        self,
        name: str,
        why: str,
        activity: Activity,
        look: StackLook | None = None,
        end: CallEnd | None = None,
        removed: Collection[Key] = (),
        *,
        advice: str = "",
    ) -> bool:
        """The step is an error; False. `end` is that of the call which was announced; `advice` is told to the user, and
        by each later look again."""
        told = end is not None and not end.timed_out and end.exit_code <= _LAST_OWN_CODE
        code = end.exit_code if end is not None and told else None
        self.note(name, StepStatus.ERROR, why, activity, look, removed=removed, exit_code=code)
        self.say(name, f"error: {why}{f'; {advice}' if advice else ''}")
        if end is not None:
            self.tell(name, end)
        return False

    def tell(self, name: str, end: CallEnd) -> None:
        """What a call said goes to the user alone, since it may hold a secret (rule 10)."""
        for line in end.tail:
            self.say(name, f"  {self.values.hidden(line)}")
        if end.log is not None:
            self.say(name, f"  all of it is in {end.log}")

    def unreadable(self, name: str, look: StackLook, activity: Activity) -> bool:
        """The step is an error, since its stack cannot be looked at; False. What the engine says of it may hold a
        secret, and goes to the user alone (rule 10)."""
        self.asking.add(name)
        self.say(name, look.failure)
        return self.failed(name, UNREADABLE, activity)
