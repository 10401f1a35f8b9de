"""The steps that are stacks: applied and destroyed by a tfguard of their own, and looked at before and after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from tfguard.blueprint_ports import StackCall, StackLook, StackPlace
from tfguard.errors import RecordError, TfguardError
from tfguard.flows.blueprints.notes import Notes
from tfguard.flows.blueprints.patience import Patience
from tfguard.flows.blueprints.seen import Seen
from tfguard.flows.blueprints.words import Words
from tfguard.model.blueprint_decision import Decision, DecisionKind
from tfguard.model.blueprint_request import Activity
from tfguard.model.operation import StepStatus
from tfguard.model.preflight import CheckName
from tfguard.reconcile.blueprint_objects import Key, holds_data, managed_of, taken_by, vanished_data
from tfguard.reconcile.blueprint_steps import UNREADABLE, decide_stack, ended_well

LOOKS = 6
"""Recover, adopt, undo and apply each lead to a new look; more than these never help."""

WAIT_SECONDS = 1.0
_CUT_UNSEEN = "it was cut short, and could not be looked up"
_THERE_AGAIN = "what it is to have is there again"


@dataclass(frozen=True, slots=True)
class StackSteps:
    """Works on the steps that are stacks. Safe for several threads, each with its own step.

    `undo` brings a compensation that was begun to its end. `verified` are the steps whose objects were all seen at
    their providers since something was last called.
    """

    notes: Notes
    words: Words
    undo: Callable[[str], bool]
    verified: Seen = field(default_factory=Seen)

    def provide(self, name: str) -> bool:
        """Bring a stack to its end; whether it is done. Raises `TfguardError`."""
        notes, stacks = self.notes, self.notes.context.stacks
        place, last, looked_up = notes.values.place(name), "", False
        if not self._initialised(name, place, Activity.APPLY):
            return False
        for _ in range(LOOKS):
            look = stacks.look(place)
            if look.failure:
                return notes.unreadable(name, look, Activity.APPLY)
            step, record, told = notes.step(name), notes.record(name), self.words.told.get(name)
            if record.missing and told is None and not looked_up and not look.open and not notes.stopping.wanted:
                looked_up = True
                if self._is_there_again(name):
                    continue
            decision = decide_stack(step, record, look, notes.journal.request, told).about(name)
            notes.decided(name, decision, aloud=decision.kind is not DecisionKind.WAIT or decision.reason != last)
            last = decision.reason
            match decision.kind:
                case DecisionKind.SKIP if not looked_up and self._has_vanished(name):
                    looked_up = True  # decided again, by what is known now
                case DecisionKind.SKIP:
                    return notes.done(name, decision.reason, look)
                case _ if notes.stopping.wanted:
                    return notes.stopped(name, look)
                case DecisionKind.WAIT:
                    if not self._wait_for(name):
                        return False
                case DecisionKind.RUN:
                    return self._apply(name, look)
                case DecisionKind.UNDO:
                    if not self.undo(name):
                        return False
                case _ if not self._settle(name, look, decision):
                    return False
        return notes.failed(name, "what is open on its stack does not settle", Activity.RECOVER)

    def verify(self, name: str) -> str:
        """Look all objects of a step up at their providers; why they were not all seen, which is an error of the step
        then. Raises `RecordError`."""
        turn = self.verified.turn
        missing, why = self._missing(name)
        if why:
            if not missing:
                self.notes.asking.add(name)  # it may all be there
            self.notes.note(name, StepStatus.ERROR, why, Activity.VERIFY, missing=missing)
            self.notes.say(name, f"error: {why}")
        else:
            self.verified.add(name, turn)
        return why

    def look_again(self, name: str) -> str:
        """Look the objects of a step up that was done, or is kept, and write down what has changed but of what is kept.

        Why it is not as it was, or why that cannot be told: then nothing is written, since whoever looks may have less
        than who provides. Raises `RecordError`.
        """
        notes, record = self.notes, self.notes.record(name)
        try:
            look = notes.context.stacks.look(notes.values.place(name))
        except RecordError:
            raise
        except TfguardError as error:
            look = StackLook(failure=error.what)
        if look.alive:
            return ""
        gone = not look.failure and not look.open and look.managed == 0
        made = tuple(found.address for found in managed_of(record))
        if gone and made:
            missing, why = made, "its state has none of its objects any more"
        else:
            missing, why = self._missing(name)
            if missing:
                # What was never made is only in the stack's own files until now.
                missing = tuple(address for address in missing if address in made)
                why = _not_there(missing)
        if record.status is StepStatus.RETAINED:
            pass  # whoever repairs or disposes of it finds the same
        elif missing:
            notes.note(name, StepStatus.ERROR, why, Activity.VERIFY, missing=missing)
        elif not why and record.at_its_end and record.missing:
            notes.done(name, _THERE_AGAIN)
        if why:
            notes.say(name, f"error: {why}")
        return why

    def take_stock(self, name: str) -> None:
        """Write down how a stack stands that was not brought to its end. Raises `RecordError`."""
        notes, record = self.notes, self.notes.record(name)
        look, why, status = None, "it was cut short; looked up", None
        try:
            look = notes.context.stacks.look(notes.values.place(name))
            status = ended_well(record, look)
            why = _CUT_UNSEEN if look.failure else why
        except RecordError:
            raise
        except TfguardError as error:
            # What the engine says may hold a secret, and goes to the user alone (rule 10).
            why = _CUT_UNSEEN
            notes.context.console.warn(f"{name}: {error.what}; {error.advice}")
        if status is not None and look is not None:
            why = f"operation {look.operation_id} has come to a good end, behind the back of its tfguard"
            notes.note(name, status, why, look=look, removed=taken_by(record.standing, look))
        else:
            failed = StepStatus.ERROR if record.made else StepStatus.PENDING
            notes.note(name, failed, why, record.activity, look)

    def stands(self, name: str) -> bool:
        """Whether something of a stack is there, or may be: also where its state is lost, or what no state knows is
        kept. Raises `TfguardError`."""
        look = self.notes.context.stacks.look(self.notes.values.place(name))
        lost = bool(managed_of(self.notes.record(name))) and not look.emptied
        kept = any(not found.gone for found in look.objects)
        return bool(look.failure or look.open or look.managed != 0 or lost or kept)

    def leave(self, name: str) -> bool:
        """A stack on which this request has called nothing: what it holds is somebody else's, and stays. It is in
        nobody's way. Raises `RecordError`."""
        notes, why = self.notes, "whether its stack holds anything cannot be told"
        try:
            place = notes.values.place(name)
            failed = notes.context.stacks.initialise(place, name).exit_code
            look = StackLook(failure=f"init ended with {failed}") if failed else notes.context.stacks.look(place)
        except RecordError:
            raise
        except TfguardError as error:
            # It may name what is made no more, or was never made.
            look = StackLook(failure=error.what)
        if look.failure:
            notes.say(name, look.failure)
        elif not look.open and look.managed == 0:
            return notes.gone(name, "it was never begun, and its state is empty", StepStatus.ABSENT, look)
        else:
            why = "what its stack holds was not made by this request, and stays"
        notes.note(name, StepStatus.PENDING, f"it was never begun; {why}")
        notes.say(name, f"is left as it is: it was never begun; {why}")
        return True

    def destroy(self, name: str, activity: Activity) -> bool:
        """Destroy a stack, unless it holds data that may not go; whether it is gone. Raises `TfguardError`."""
        notes = self.notes
        place = notes.values.place(name)
        if not self._initialised(name, place, activity):
            return False
        for _ in range(LOOKS):
            look = notes.context.stacks.look(place)
            if look.failure:
                return notes.unreadable(name, look, activity)
            if look.alive:
                notes.say(name, f"wait: operation {look.operation_id} is running on it")
                if not self._wait_for(name):
                    return False
                continue
            if notes.stopping.wanted and (look.open or look.managed != 0):
                return notes.stopped(name, look, activity)
            if look.open:
                kind = DecisionKind.ADOPT if look.adoptable else DecisionKind.INSPECT
                settled = Decision(kind, f"operation {look.operation_id} is not settled")
                if not self._settle(name, look, settled):
                    # Let the record say that it was to be taken away: it is not to be provided.
                    notes.note(name, StepStatus.ERROR, notes.record(name).why, activity)
                    return False
                continue
            if look.managed == 0:
                return self._empty(name, look, activity)
            if name in self.words.gone:
                why = "somebody says that nothing of it is there, and its state is not empty"
                return notes.failed(name, why, activity, look, advice=f"leave --gone {name} out to destroy it")
            if not self.words.takes_data and self.holds_data(name, look):
                return self._data_stays(name, look, activity)
            return self._destroy_now(name, notes.values.call(name), activity, look)
        return notes.failed(name, "what is open on its stack does not settle", activity)

    def holds_data(self, name: str, look: StackLook) -> bool:
        """Whether a step holds data, by the blueprint, the record and the stack itself."""
        return holds_data(self.notes.step(name), (*self.notes.record(name).standing, *look.objects))

    # Providing

    def _initialised(self, name: str, place: StackPlace, activity: Activity) -> bool:
        end = self.notes.context.stacks.initialise(place, name)
        return not end.exit_code or self.notes.failed(name, f"init ended with {end.exit_code}", activity, end=end)

    def _has_vanished(self, name: str) -> bool:
        """Whether what was done is to have objects that its provider does not have: then that is on record. Where it
        cannot be told, it is asked again at the end."""
        if self.notes.stopping.wanted or not self.notes.context.blueprint.ready.inventory:
            return False
        turn = self.verified.turn
        missing, why = self._missing(name, aloud=False)
        if missing:
            self.notes.note(name, StepStatus.ERROR, why, Activity.VERIFY, missing=missing)
        elif not why:
            self.verified.add(name, turn)
        return bool(missing)

    def _is_there_again(self, name: str) -> bool:
        """Whether a step that was done has all again that was missing when it was last looked at: then that is on
        record."""
        turn = self.verified.turn
        if not self.notes.record(name).at_its_end or self._missing(name, aloud=False)[1]:
            return False
        self.verified.add(name, turn)
        return self.notes.done(name, _THERE_AGAIN)

    def _missing(self, name: str, *, aloud: bool = True) -> tuple[tuple[str, ...], str]:
        """The addresses that a step's provider does not have; and why not all were seen, where they were not."""
        try:
            seen = self.notes.context.stacks.verify(self.notes.values.call(name))
        except TfguardError as error:
            return (), error.what
        if seen.failure:
            # What the engine says may hold a secret, and goes to the user alone (rule 10).
            if aloud:
                self.notes.say(name, seen.failure)
            return (), "whether its objects exist cannot be told: the engine could not look"
        return seen.missing, _not_there(seen.missing)

    def _apply(self, name: str, before: StackLook) -> bool:
        notes = self.notes
        call = notes.values.call(name)
        if lost := self._data_that_would_go(name, call, before):
            notes.asking.add(name)
            return notes.failed(name, lost, Activity.VERIFY, before)
        # By the newest operation until now the one that is begun here is told from it.
        last, found = before.operation_id, bool(before.managed)
        notes.note(name, StepStatus.RUNNING, "applying", Activity.APPLY, operation_id=last, found=found)
        with self.verified.calling():
            end = notes.context.stacks.apply(call, name)
        notes.values.forget(name)
        look = notes.context.stacks.look(call.place)
        removed = taken_by(before.objects, look)
        if end.exit_code == 0 and not look.open and not look.failure:
            return notes.done(name, "applied, and what it made is in its state", look, removed, worked=True)
        why = f"the apply ended with {end.exit_code}" if end.exit_code else "the apply said 0, and left something open"
        return notes.failed(name, f"{why}{_unsettled(look)}", Activity.APPLY, look, end, removed)

    def _data_that_would_go(self, name: str, call: StackCall, look: StackLook) -> str:
        """Why an apply would leave an object without its data, or may: it would be replaced or deleted, or it has
        vanished and would be made anew without a person's word, or nobody can tell; empty where there is none.

        The preflight has looked, but not at what an earlier step of this run has changed since.
        """
        step, record = self.notes.step(name), self.notes.record(name)
        known = {found.address: found for found in (*record.standing, *look.objects)}
        holding = {address for address, found in known.items() if holds_data(step, (found,))}
        if not holding or CheckName.DATA in self.notes.journal.request.skipped:
            return ""
        plan = self.notes.context.stacks.plan(call)
        if isinstance(plan, str) or plan.errored:
            # What the engine says may hold a secret, and goes to the user alone (rule 10).
            if isinstance(plan, str) and plan:
                self.notes.say(name, self.notes.values.hidden(plan))
            way = "mend that and run it again, or go on with --skip-check data=REASON"
            return f"it cannot be planned, so that what becomes of its data is not known; {way}"
        again, told = vanished_data(record, holding), self.words.told.get(name)
        for change in plan.changing:
            if change.action.deletes and change.address in holding:
                way = "undo what leads to that, or go on with --skip-check data=REASON"
                return f"{change.address}, which holds data, would be replaced or deleted; {way}"
            if change.action.creates and change.address in again and (told is None or told.done):
                way = f"restore it, or go on with `resume --again {name} --reason TEXT`"
                return f"{change.address}, which holds data, would be made anew without it; {way}"
        return ""

    def _settle(self, name: str, look: StackLook, decision: Decision) -> bool:
        """Recover or adopt what is open on a step's stack; whether another look may find it settled."""
        notes, stacks = self.notes, self.notes.context.stacks
        if decision.asks:
            return notes.failed(name, decision.reason, Activity.RECOVER, look, advice=decision.asks)
        call = notes.values.call(name)
        if decision.kind is DecisionKind.ADOPT:
            ids = tuple(found.observed_id or "" for found in look.objects if found.finding in look.adoptable)
            notes.note(name, StepStatus.RUNNING, decision.reason, Activity.ADOPT, look, ids)
            with self.verified.calling():
                end = stacks.adopt(call, look.adoptable, name)
            if end.exit_code:
                why = f"what operation {look.operation_id} left could not be adopted (exit code {end.exit_code})"
                return notes.failed(name, why, Activity.ADOPT, stacks.look(call.place), end)
            return True
        notes.note(name, StepStatus.RUNNING, decision.reason, Activity.RECOVER)
        with self.verified.calling():
            end = stacks.recover(call, name)
        after = stacks.look(call.place)
        if after.open and not after.adoptable:
            why = f"operation {after.operation_id} does not settle{_unsettled(after)}"
            return notes.failed(name, why, Activity.RECOVER, after, end)
        return True

    def _wait_for(self, name: str) -> bool:
        """Wait while another run works on a step's stack; False when the user has had enough."""
        context = self.notes.context
        waiting = Patience(context, f"{name}: another run still works on its stack")
        while context.stacks.look(self.notes.values.place(name)).alive:
            waiting.tell()
            if self.notes.stopping.wanted:
                return False
            context.clock.sleep(WAIT_SECONDS)
        return True

    # Taking away

    def _empty(self, name: str, look: StackLook, activity: Activity) -> bool:
        """A stack whose state is empty: gone, where an operation of its own has emptied it, or a person says so."""
        notes = self.notes
        if not managed_of(notes.record(name)) or look.emptied:
            why = "its state is empty, and no operation on it is open"
            return self._gone_unless_kept(name, why, StepStatus.ABSENT, look, activity)
        if name in self.words.gone:
            why = f"gone, by a person's word: {self.words.gone[name]}"
            return notes.gone(name, why, StepStatus.ABSENT, look)
        one = f" --step {name}" if activity is Activity.COMPENSATE else ""
        why = (
            "its state is empty, and no destroy has emptied it: where its objects are is not known; "
            f"restore the state, or remove them by hand and say `destroy{one} --gone {name} --reason TEXT`"
        )
        notes.asking.add(name)
        return notes.failed(name, why, activity, look)

    def _data_stays(self, name: str, look: StackLook, activity: Activity) -> bool:
        """A stack that holds data stays without a word; a `resume`, which finishes a destroy, takes no such word."""
        notes, record = self.notes, self.notes.record(name)
        why = "it holds data; --stateful takes it away, too"
        if record.undoing:
            notes.asking.add(name)
            why = f"it holds data; `destroy --step {name} --stateful` takes it away, `cancel --retain` keeps it"
        if record.status is StepStatus.RUNNING:
            return notes.failed(name, f"its destroy did not come to its end: {why}", activity, look)
        notes.say(name, f"stays: {why}")
        return False

    def _destroy_now(self, name: str, call: StackCall, activity: Activity, before: StackLook) -> bool:
        notes = self.notes
        notes.note(name, StepStatus.RUNNING, "destroying", activity, operation_id=before.operation_id)
        with self.verified.calling():
            end = notes.context.stacks.destroy(call, name)
        notes.values.forget(name)
        look = notes.context.stacks.look(call.place)
        removed = taken_by(before.objects, look)
        if end.exit_code == 0 and not look.open and not look.failure and look.managed == 0:
            why = "destroyed, and verified to be gone"
            return self._gone_unless_kept(name, why, StepStatus.DESTROYED, look, activity, removed)
        why = f"the destroy ended with {end.exit_code}" if end.exit_code else "the destroy said 0, and left something"
        return notes.failed(name, f"{why}{_unsettled(look)}", activity, look, end, removed)

    def _gone_unless_kept(
        self,
        name: str,
        why: str,
        status: StepStatus,
        look: StackLook,
        activity: Activity,
        removed: Collection[Key] = (),
    ) -> bool:
        """A stack whose state is empty is gone; not while an object stands that no state knows, and somebody keeps."""
        kept = [found for found in look.objects if not found.gone]
        if not kept:
            return self.notes.gone(name, why, status, look, removed)
        told = ", ".join(f"{found.type} {found.observed_id}" for found in kept[:3])
        why = f"its state is empty, and {told} still stands, which no state knows"
        self.notes.note(name, StepStatus.ERROR, why, activity, look, removed=removed)
        self.notes.say(name, f"error: {why}; see `tfguard orphans` in its folder")
        return False


def _not_there(missing: Sequence[str]) -> str:
    return f"it is to have {', '.join(missing[:3])}, which the provider does not have" if missing else ""


def _unsettled(look: StackLook) -> str:
    if look.failure:
        return f"; {UNREADABLE}"
    left = [*look.unsettled]
    if look.adoptable:
        left.insert(0, f"{len(look.adoptable)} object(s) exist that its state does not know")
    return f"; {left[0]}" if left else ""
