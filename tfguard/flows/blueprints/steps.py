"""One step at a time: decide from record and evidence, do it, and write down what came of it.

What a call announces is in the journal before it is made, and what it answered after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from tfguard.blueprint_ports import CallEnd, StackCall, StackLook, StackPlace
from tfguard.errors import RecordError, TfguardError
from tfguard.flows.blueprints.asking import ask_until
from tfguard.flows.blueprints.context import BlueprintContext, Values
from tfguard.flows.blueprints.requests import Journal
from tfguard.flows.blueprints.stopping import Stopping
from tfguard.model.blueprint import BlueprintStep, Compensation, StepKind
from tfguard.model.blueprint_decision import Decision, DecisionKind, Told
from tfguard.model.blueprint_request import UNSEEN, Activity, BlueprintObject, RequestEvent, StepRecord
from tfguard.model.config import format_duration
from tfguard.model.operation import StepStatus
from tfguard.model.preflight import CheckName
from tfguard.reconcile.blueprint_steps import (
    decide_command,
    decide_probe,
    decide_stack,
    holds_data,
    work_of,
)

_LOOKS = 6
"""Recover, adopt, undo and apply each lead to a new look; more than these never help."""

_WAIT_SECONDS = 1.0
_CHECK_DONE, _CHECK_NOT_DONE = 0, 1
_GONE = (StepStatus.DESTROYED, StepStatus.ABSENT)
_UNREADABLE = "its record or its state cannot be read"


_Key = tuple[str, str | None]
"""What tells one object of a step from another: its address, and its id."""


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

    def provide(self, name: str) -> bool:
        """Bring a step, whose needs are done, to its end; whether it is done. Raises `RecordError` alone."""
        kind = self.context.blueprint.steps[name].kind
        work = {StepKind.STACK: self._provide_stack, StepKind.RUN: self._provide_command, StepKind.PROBE: self._probe}
        return self._truthfully(name, work[kind], Activity.APPLY if kind is StepKind.STACK else Activity.RUN)

    def stands(self, name: str) -> bool:
        """Whether something of a step is there, or may be: a stack that failed and has nothing, or a command that
        failed and whose check says so, is not in the way. What cannot be asked may be there. Raises `RecordError`
        alone."""
        step, record = self.context.blueprint.steps[name], self._record(name)
        if not record.made or record.status is not StepStatus.ERROR or step.kind is StepKind.PROBE:
            return record.made and step.kind is not StepKind.PROBE
        try:
            if step.kind is StepKind.RUN:
                return not step.check or self._asked(name, step.check).exit_code != _CHECK_NOT_DONE
            look = self.context.stacks.look(self.values.place(name))
        except RecordError:
            raise
        except TfguardError:
            return True
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
            if look.failure:
                return self._unreadable(name, look, Activity.APPLY)
            step, record = self.context.blueprint.steps[name], self._record(name)
            decision = decide_stack(step, record, look, self.journal.request, self.told.get(name))
            if decision.kind is not DecisionKind.WAIT or decision.reason != last:
                self.say(name, f"{decision.kind.value}: {decision.reason}")
            last = decision.reason
            match decision.kind:
                case DecisionKind.SKIP:
                    return self._done(name, decision.reason, look)
                case _ if self.stopping.wanted:
                    return self._stopped(name, look)
                case DecisionKind.WAIT:
                    if not self._wait_for_stack(name):
                        return False
                case DecisionKind.RUN:
                    return self._apply(name, look)
                case DecisionKind.UNDO:
                    if not self._compensate(name):
                        return False
                case _ if not self._settle(name, look, decision):
                    return False
        return self._failed(name, "what is open on its stack does not settle", Activity.RECOVER)

    def _initialised(self, name: str, place: StackPlace, activity: Activity) -> bool:
        end = self.context.stacks.initialise(place, name)
        return not end.exit_code or self._failed(name, f"init ended with {end.exit_code}", activity, end=end)

    def _apply(self, name: str, before: StackLook) -> bool:
        call = self.values.call(name)
        if lost := self._data_that_would_go(name, call, before):
            why = (
                f"{lost}, which holds data, would be replaced or deleted; undo what leads to that, or go on with "
                "--skip-check data=REASON"
            )
            return self._failed(name, why, Activity.VERIFY, before)
        self.note(name, StepStatus.RUNNING, "applying", Activity.APPLY)
        end = self.context.stacks.apply(call, name)
        self.values.forget(name)
        look = self.context.stacks.look(call.place)
        removed = _taken_by(before, look)
        if end.exit_code == 0 and not look.open and not look.failure:
            return self._done(name, "applied, and what it made is in its state", look, removed, worked=True)
        why = f"the apply ended with {end.exit_code}" if end.exit_code else "the apply said 0, and left something open"
        return self._failed(name, f"{why}{_unsettled(look)}", Activity.APPLY, look, end, removed)

    def _data_that_would_go(self, name: str, call: StackCall, look: StackLook) -> str:
        """The address of an object with data that an apply would replace or delete; empty where there is none.

        The preflight has looked, but not at what an earlier step of this run has changed since.
        """
        step, record = self.context.blueprint.steps[name], self._record(name)
        known = {found.address: found for found in (*record.standing, *look.objects)}
        holding = {address for address, found in known.items() if holds_data(step, StepRecord(), (found,))}
        if not holding or CheckName.DATA in self.journal.request.skipped:
            return ""
        plan = self.context.stacks.plan(call)
        changes = () if isinstance(plan, str) else plan.changing
        return next((change.address for change in changes if change.action.deletes and change.address in holding), "")

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
        if not self._wait_for_command(name):
            return False
        checked: bool | None = None
        was_done = self._record(name).done
        for _ in range(_LOOKS):
            decision = decide_command(step, self._record(name), self.journal.request, checked, self.told.get(name))
            self.say(name, f"{decision.kind.value}: {decision.reason}")
            match decision.kind:
                case DecisionKind.SKIP:
                    return self._done(name, decision.reason, worked=name in self.told or not was_done)
                case _ if self.stopping.wanted:
                    return self._stopped(name)
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

    def _wait_for_command(self, name: str) -> bool:
        """Wait while something that an earlier tfguard has started for a step runs; False when the user has had
        enough."""
        told = False
        while self.context.commands.still_runs(name):
            if not told:
                self.say(name, "wait: its command of an earlier run, or something that it has started, still runs")
            told = True
            if self.stopping.wanted:
                return False
            self.context.clock.sleep(_WAIT_SECONDS)
        return True

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
        return self._done(name, "its command ended with 0", worked=True)

    def _check(
        self,
        name: str,
        words: tuple[str, ...],
        activity: Activity = Activity.CHECK,
        timeout: timedelta | None = None,
    ) -> bool | None:
        """What a check says within `timeout`, else the step's; None, and the step is an error, where it cannot tell."""
        end = self._asked(name, words, timeout)
        if not end.timed_out and end.exit_code in (_CHECK_DONE, _CHECK_NOT_DONE):
            return end.exit_code == _CHECK_DONE
        what = "did not end in time" if end.timed_out else f"ended with {end.exit_code}"
        self._failed(name, f"its check {what}, which says neither done (0) nor not done (1)", activity, end=end)
        return None

    def _asked(self, name: str, words: tuple[str, ...], timeout: timedelta | None = None) -> CallEnd:
        command = self.values.command(name, words)
        return self.context.commands.run(replace(command, timeout=timeout or command.timeout), name)

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
        if not self._wait_for_command(name):
            return False
        undone: bool | None = False
        if record.undoing and undo.check:
            # It was begun before, and may have come to its end since.
            undone = self._check(name, undo.check, Activity.COMPENSATE, undo.timeout)
            if undone is None:
                return False
        if not undone and self.stopping.wanted:
            return self._stopped(name, activity=Activity.COMPENSATE)
        if not undone and not self._run_compensation(name, undo):
            return False
        if step.kind is StepKind.STACK:
            look = self.context.stacks.look(self.values.place(name))
            if look.failure or look.open or look.managed != 0:
                why = "compensated by its command; its stack still has objects, which a destroy removes"
                self.note(name, StepStatus.ERROR, why, Activity.APPLY, look)
                return False
        failed = record.status is StepStatus.ERROR and not record.undoing
        return self._gone(name, f"compensated; before, {record.why}" if failed else "compensated")

    def _run_compensation(self, name: str, undo: Compensation) -> bool:
        self.note(name, StepStatus.RUNNING, "running its compensation", Activity.COMPENSATE)
        command = replace(self.values.command(name, undo.run), timeout=undo.timeout)
        end = self.context.commands.run(command, name)
        if end.timed_out or end.exit_code:
            what = "did not end in time" if end.timed_out else f"ended with {end.exit_code}"
            return self._failed(name, f"its compensation {what}", Activity.COMPENSATE, end=end)
        if undo.check:
            checked = self._check(name, undo.check, Activity.COMPENSATE, undo.timeout)
            if checked is None:
                return False
            if not checked:
                why = "its compensation ended with 0, and the check of that says that it is not done"
                return self._failed(name, why, Activity.COMPENSATE)
        return True

    def _take_away(self, name: str) -> bool:
        step, record = self.context.blueprint.steps[name], self._record(name)
        owner = step.owned_by
        if record.status in _GONE:
            return True
        if step.kind is StepKind.PROBE:
            return self._gone(name, "a probe makes nothing", StepStatus.ABSENT)
        if step.kind is StepKind.STACK:
            return self._destroy_stack(name, Activity.DESTROY) if record.made else self._leave_stack(name)
        if not record.made:
            return self._gone(name, "it was never begun", StepStatus.ABSENT)
        if name in self.gone:
            return self._gone(name, f"gone, by a person's word: {self.gone[name]}", StepStatus.ABSENT)
        if not self._wait_for_command(name):
            return False
        if owner is not None and self._record(owner).status in _GONE:
            return self._gone(name, f"gone with {owner}, which is confirmed gone")
        if step.compensate is not None:
            return self._compensate(name)
        return self._leave_command(name, step)

    def _leave_command(self, name: str, step: BlueprintStep) -> bool:
        """A command whose work nothing undoes: it is gone only where its check says so. Without a check nothing is
        known, which is said, and is in nobody's way."""
        if not step.check:
            self.say(name, "is left as it is: its blueprint declares nothing that undoes it")
            return True
        checked = self._check(name, step.check)
        if checked is None:
            return False
        if checked:
            why = "its check says that its work is still there, and its blueprint declares nothing that undoes it"
            return self._failed(name, why, Activity.CHECK)
        return self._gone(name, "its check says that its work is not there", StepStatus.ABSENT)

    def _leave_stack(self, name: str) -> bool:
        """A stack on which this request has called nothing: what it holds is somebody else's, and stays. It is in
        nobody's way."""
        why = "whether its stack holds anything cannot be told"
        try:
            place = self.values.place(name)
            failed = self.context.stacks.initialise(place, name).exit_code
            look = StackLook(failure=f"init ended with {failed}") if failed else self.context.stacks.look(place)
        except RecordError:
            raise
        except TfguardError as error:
            # It may name what is made no more, or was never made.
            look = StackLook(failure=error.what)
        if look.failure:
            self.say(name, look.failure)
        elif not look.open and look.managed == 0:
            return self._gone(name, "it was never begun, and its state is empty", StepStatus.ABSENT, look)
        else:
            why = "what its stack holds was not made by this request, and stays"
        self.note(name, StepStatus.PENDING, f"it was never begun; {why}")
        self.say(name, f"is left as it is: it was never begun; {why}")
        return True

    def _destroy_stack(self, name: str, activity: Activity) -> bool:
        place = self.values.place(name)
        if not self._initialised(name, place, activity):
            return False
        for _ in range(_LOOKS):
            look, record = self.context.stacks.look(place), self._record(name)
            if look.failure:
                return self._unreadable(name, look, activity)
            if look.alive:
                self.say(name, f"wait: operation {look.operation_id} is running on it")
                if not self._wait_for_stack(name):
                    return False
                continue
            if self.stopping.wanted and (look.open or look.managed != 0):
                return self._stopped(name, look, activity)
            if look.open:
                kind = DecisionKind.ADOPT if look.adoptable else DecisionKind.INSPECT
                settled = Decision(kind, f"operation {look.operation_id} is not settled")
                if not self._settle(name, look, settled):
                    return self._still(name, activity)
                continue
            if look.managed == 0:
                if _managed_of(record) and look.command != "destroy":
                    if name in self.gone:
                        why = f"gone, by a person's word: {self.gone[name]}"
                        return self._gone(name, why, StepStatus.ABSENT, look)
                    why = (
                        "its state is empty, and no destroy has emptied it: where its objects are is not known; "
                        "restore the state, or remove them by hand and give --gone STEP --reason TEXT"
                    )
                    return self._failed(name, why, activity, look)
                why = "its state is empty, and no operation on it is open"
                return self._gone_unless_kept(name, why, StepStatus.ABSENT, look, activity)
            if not self.takes_data and holds_data(self.context.blueprint.steps[name], record, look.objects):
                self.say(name, "stays: it holds data; --stateful takes it away, too")
                return False
            return self._destroy_now(name, self.values.call(name), activity, look)
        return self._failed(name, "what is open on its stack does not settle", activity)

    def _destroy_now(self, name: str, call: StackCall, activity: Activity, before: StackLook) -> bool:
        self.note(name, StepStatus.RUNNING, "destroying", activity)
        end = self.context.stacks.destroy(call, name)
        self.values.forget(name)
        look = self.context.stacks.look(call.place)
        if end.exit_code == 0 and not look.open and not look.failure and look.managed == 0:
            why = "destroyed, and verified to be gone"
            return self._gone_unless_kept(name, why, StepStatus.DESTROYED, look, activity, _taken_by(before, look))
        why = f"the destroy ended with {end.exit_code}" if end.exit_code else "the destroy said 0, and left something"
        return self._failed(name, f"{why}{_unsettled(look)}", activity, look, end, _taken_by(before, look))

    def _gone_unless_kept(
        self,
        name: str,
        why: str,
        status: StepStatus,
        look: StackLook,
        activity: Activity,
        removed: Collection[_Key] = (),
    ) -> bool:
        """A stack whose state is empty is gone; not while an object stands that no state knows, and somebody keeps."""
        kept = [found for found in look.objects if not found.gone]
        if not kept:
            return self._gone(name, why, status, look, removed)
        told = ", ".join(f"{found.type} {found.observed_id}" for found in kept[:3])
        why = f"its state is empty, and {told} still stands, which no state knows"
        self.note(name, StepStatus.ERROR, why, activity, look, removed=removed)
        self.say(name, f"error: {why}; see `tfguard orphans` in its folder")
        return False

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
        removed: Collection[_Key] = (),
        *,
        worked: bool = False,
        missing: tuple[str, ...] = (),
    ) -> None:
        """Write a step's status; with the objects that its stack has, where it was looked at. What is `removed` was
        taken away by a call that came to a good end. `worked`: its work has come to a good end by now; `missing` are
        addresses that the provider does not have. Raises `RecordError`."""
        request = self.journal.request
        before = request.step(name).objects
        objects = before
        if look is not None and not look.failure and not look.alive:
            objects = _merged(before, look.objects, removed)
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
                operation_id=look.operation_id if look is not None else None,
                provider_ids=ids,
                objects=objects if objects != before else None,
                work=work_of(self.context.blueprint.steps[name], request) if worked else None,
                missing=missing,
            )
        )

    def say(self, name: str, text: str) -> None:
        """A line about a step to the user."""
        self.context.console.say(f"{name}: {text}")

    def _record(self, name: str) -> StepRecord:
        return self.journal.request.step(name)

    def _stopped(self, name: str, look: StackLook | None = None, activity: Activity | None = None) -> bool:
        """Somebody wants to stop, so that nothing more is called for a step: what was called is on record."""
        record = self._record(name)
        if record.status is StepStatus.RUNNING:
            status = StepStatus.ERROR if record.made else StepStatus.PENDING
            self.note(name, status, "cancelled before all of it was done", activity, look)
        self.say(name, "cancelled: nothing more of it is begun")
        return False

    def _unreadable(self, name: str, look: StackLook, activity: Activity) -> bool:
        """What the engine says of it may hold a secret, and goes to the user alone (rule 10)."""
        self.say(name, look.failure)
        return self._failed(name, _UNREADABLE, activity)

    def _done(
        self,
        name: str,
        why: str,
        look: StackLook | None = None,
        removed: Collection[_Key] = (),
        *,
        worked: bool = False,
    ) -> bool:
        self.note(name, StepStatus.OK, why, look=look, removed=removed, worked=worked)
        self.say(name, f"ok: {why}")
        return True

    def _gone(
        self,
        name: str,
        why: str,
        status: StepStatus = StepStatus.DESTROYED,
        look: StackLook | None = None,
        removed: Collection[_Key] = (),
    ) -> bool:
        before = self._record(name).status
        if status is StepStatus.ABSENT and before is StepStatus.DESTROYED:
            status = before  # it is known how it went
        self.note(name, status, why, look=look, removed=removed)
        self.say(name, f"{status.value}: {why}")
        return True

    def _failed(
        self,
        name: str,
        why: str,
        activity: Activity,
        look: StackLook | None = None,
        end: CallEnd | None = None,
        removed: Collection[_Key] = (),
    ) -> bool:
        """The step is an error. What the call said goes to the user alone, since it may hold a secret (rule 10)."""
        self.note(name, StepStatus.ERROR, why, activity, look, removed=removed)
        self.say(name, f"error: {why}")
        if end is not None:
            for line in end.tail:
                self.say(name, f"  {self.values.hidden(line)}")
            if end.log is not None:
                self.say(name, f"  all of it is in {end.log}")
        return False


def _still_known(found: BlueprintObject, before: Sequence[BlueprintObject]) -> BlueprintObject:
    """An object with what was known of it earlier, where this look does not tell."""
    old = next((one for one in before if (one.address, one.type) == (found.address, found.type)), None)
    if old is None or old.gone or (old.observed_id and found.observed_id and old.observed_id != found.observed_id):
        return found
    return replace(found, desired=found.desired or old.desired, created_at=found.created_at or old.created_at)


def _merged(
    before: Sequence[BlueprintObject], seen: Sequence[BlueprintObject], removed: Collection[_Key]
) -> tuple[BlueprintObject, ...]:
    """All that a step has made, by what a look has seen of it: nothing is forgotten since it was not seen (rule 2)."""
    found = {_key(one): one for one in seen}
    addresses = {one.address for one in seen}
    for old in before:
        key = _key(old)
        if key in found or (old.observed_id is None and old.address in addresses):
            continue
        gone = old.gone or key in removed
        found[key] = replace(old, disposition=StepStatus.DESTROYED.value if gone else UNSEEN)
    return tuple(_still_known(one, before) for one in found.values())


def _key(found: BlueprintObject) -> _Key:
    return found.address, found.observed_id


def _taken_by(before: StackLook, after: StackLook) -> frozenset[_Key]:
    """What an operation has taken away, where it was settled: what the state had before, and has no more."""
    if after.open or after.failure:
        return frozenset()
    return frozenset(_key(found) for found in before.objects if found.finding is None)


def _managed_of(record: StepRecord) -> list[BlueprintObject]:
    """The objects that stand, by the record, and that no finding tells of: a state had them."""
    return [found for found in record.standing if found.finding is None]


def _unsettled(look: StackLook) -> str:
    if look.failure:
        return f"; {_UNREADABLE}"
    left = [*look.unsettled]
    if look.adoptable:
        left.insert(0, f"{len(look.adoptable)} object(s) exist that its state does not know")
    return f"; {left[0]}" if left else ""
