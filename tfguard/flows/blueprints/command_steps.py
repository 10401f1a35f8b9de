"""The steps that are commands, and the commands that undo a step: run once, unless something tells that it does no harm
to run them again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta

from tfguard.blueprint_ports import CallEnd
from tfguard.flows.blueprints.notes import Notes
from tfguard.flows.blueprints.patience import Patience
from tfguard.flows.blueprints.stack_steps import LOOKS, WAIT_SECONDS
from tfguard.flows.blueprints.words import Words
from tfguard.model.blueprint import Compensation
from tfguard.model.blueprint_decision import DecisionKind, Told
from tfguard.model.blueprint_request import Activity
from tfguard.model.config import format_duration
from tfguard.model.operation import StepStatus
from tfguard.reconcile.blueprint_steps import decide_command, decide_undo

_CHECK_DONE, _CHECK_NOT_DONE = 0, 1


@dataclass(frozen=True, slots=True)
class CommandSteps:
    """Runs commands. Safe for several threads, each with its own step.

    `undo` brings a compensation that was begun to its end; `calling` surrounds each call that may change something.
    """

    notes: Notes
    words: Words
    undo: Callable[[str], bool]
    calling: Callable[[], AbstractContextManager[None]]

    def provide(self, name: str) -> bool:
        """Bring a command to its end; whether it is done. Raises `TfguardError`."""
        notes = self.notes
        step = notes.step(name)
        if not self.wait_for(name):
            return False
        checked: bool | None = None
        was_done = notes.record(name).done
        for _ in range(LOOKS):
            record, told = notes.record(name), self._word(name)
            decision = decide_command(step, record, notes.journal.request, checked, told).about(name)
            notes.decided(name, decision)
            match decision.kind:
                case DecisionKind.SKIP:
                    return notes.done(name, decision.reason, worked=told is not None or not was_done)
                case _ if notes.stopping.wanted:
                    return notes.stopped(name)
                case DecisionKind.RUN:
                    return self._run(name)
                case DecisionKind.UNDO:
                    if not self.undo(name):
                        return False
                case _ if decision.asks:
                    return notes.failed(name, decision.reason, Activity.RUN, advice=decision.asks)
                case _:
                    notes.note(name, StepStatus.RUNNING, decision.reason, Activity.CHECK)
                    checked = self.check(name, step.check)
                    if checked is None:
                        return False
        raise AssertionError("a command that was checked and undone is run or skipped")

    def wait_for(self, name: str) -> bool:
        """Wait while something that an earlier tfguard has started for a step runs; False when the user has had
        enough."""
        waiting: Patience | None = None
        while self.notes.context.commands.still_runs(name):
            if waiting is None:
                what = "its command of an earlier run, or something that it has started, still runs"
                self.notes.say(name, f"wait: {what}")
                waiting = Patience(self.notes.context, f"{name}: {what}")
            waiting.tell()
            if self.notes.stopping.wanted:
                return False
            self.notes.context.clock.sleep(WAIT_SECONDS)
        return True

    def stands(self, name: str) -> bool:
        """Whether the work of a command that has failed is there, or may be. Raises `TfguardError`."""
        check = self.notes.step(name).check
        return not check or self._asked(name, check).exit_code != _CHECK_NOT_DONE

    def leave(self, name: str) -> bool:
        """A command whose work nothing undoes: it is gone only where its check or a person says so. Until then it is in
        nobody's way, where it has no check. Raises `TfguardError`."""
        notes, step = self.notes, self.notes.step(name)
        if not step.check:
            why = "its blueprint declares nothing that undoes it"
            notes.say(name, f"stays: {why}; where nothing of it is there: `destroy --gone {name} --reason TEXT`")
            return True
        checked = self.check(name, step.check)
        if checked is None:
            return False
        if checked:
            why = "its check says that its work is still there, and its blueprint declares nothing that undoes it"
            return notes.failed(name, why, Activity.CHECK)
        return notes.gone(name, "its check says that its work is not there", StepStatus.ABSENT)

    def compensate(self, name: str, undo: Compensation) -> bool:
        """Undo a step by a command, unless that was done already; whether it is undone. Raises `TfguardError`."""
        notes, record = self.notes, self.notes.record(name)
        if not self.wait_for(name):
            return False
        told = self.words.told.pop(name, None) if record.undoing else None
        undone: bool | None = told is not None and told.done
        if record.undoing and told is None:
            # It was begun before, and may have come to its end since.
            if (decision := decide_undo(notes.step(name), record, None).about(name)).asks:
                return notes.failed(name, decision.reason, Activity.COMPENSATE, advice=decision.asks)
            undone = bool(undo.check) and self.check(name, undo.check, Activity.COMPENSATE, undo.timeout)
            if undone is None:
                return False
        if undone:
            return True
        if notes.stopping.wanted:
            return notes.stopped(name, activity=Activity.COMPENSATE)
        return self._run_compensation(name, undo)

    def check(
        self,
        name: str,
        words: tuple[str, ...],
        activity: Activity = Activity.CHECK,
        timeout: timedelta | None = None,
    ) -> bool | None:
        """What a check says within `timeout`, else the step's; None, and the step is an error, where it cannot tell.
        Raises `TfguardError`."""
        end = self._asked(name, words, timeout)
        if not end.timed_out and end.exit_code in (_CHECK_DONE, _CHECK_NOT_DONE):
            return end.exit_code == _CHECK_DONE
        what = "did not end in time" if end.timed_out else f"ended with {end.exit_code}"
        self.notes.failed(name, f"its check {what}, which says neither done (0) nor not done (1)", activity)
        self.notes.tell(name, end)
        return None

    def take_stock(self, name: str) -> None:
        """Write down how a command stands whose end nobody has seen: as its check says. Raises `TfguardError`."""
        notes, step, record = self.notes, self.notes.step(name), self.notes.record(name)
        undoing = record.undo is Activity.COMPENSATE
        why = "it was cut short: how much of its work is done is not known"
        check = (step.compensate.check if step.compensate else ()) if undoing else step.check
        if check:
            timeout = step.compensate.timeout if undoing and step.compensate else None
            activity = Activity.COMPENSATE if undoing else record.activity or Activity.CHECK
            checked = self.check(name, check, activity, timeout)
            if checked is None:
                return
            if checked and undoing:
                notes.gone(name, "compensated: the check of that says so")
                return
            if checked:
                notes.done(name, "its check says that it is done", worked=True)
                return
            why = "it was cut short, and its check says that it is not done"
        notes.note(name, StepStatus.ERROR if record.made else StepStatus.PENDING, why, record.activity)

    def _word(self, name: str) -> Told | None:
        """What a person says of a command. That it is done says nothing of an owner that was made anew since."""
        notes, told, owner = self.notes, self.words.told.get(name), self.notes.step(name).owned_by
        if told is None or not told.done or owner is None or notes.record(name).undoing:
            return told
        renewed = notes.record(owner).renewed_at
        if renewed is None or renewed <= self.words.at:
            return told
        notes.say(name, f"{owner} was made anew since you said that it is done: that does not count")
        del self.words.told[name]
        return None

    def _run(self, name: str) -> bool:
        notes, step = self.notes, self.notes.step(name)
        command = notes.values.command(name, step.run)
        notes.note(name, StepStatus.RUNNING, "running its command", Activity.RUN)
        with self.calling():
            end = notes.context.commands.run(command, name)
        if end.timed_out:
            limit = format_duration(step.timeout or timedelta(0))
            why = f"its command did not end within {limit}: how much of its work is done is not known"
            return notes.failed(name, why, Activity.RUN, end=end)
        if end.exit_code:
            return notes.failed(name, f"its command ended with {end.exit_code}", Activity.RUN, end=end)
        if step.check and not (checked := self.check(name, step.check)):
            if checked is None:
                return False
            why = "its command ended with 0, and its check says that it is not done"
            return notes.failed(name, why, Activity.CHECK)
        return notes.done(name, "its command ended with 0", worked=True)

    def _run_compensation(self, name: str, undo: Compensation) -> bool:
        notes = self.notes
        command = replace(notes.values.command(name, undo.run), timeout=undo.timeout)
        notes.note(name, StepStatus.RUNNING, "running its compensation", Activity.COMPENSATE)
        with self.calling():
            end = notes.context.commands.run(command, name)
        if end.timed_out or end.exit_code:
            what = "did not end in time" if end.timed_out else f"ended with {end.exit_code}"
            return notes.failed(name, f"its compensation {what}", Activity.COMPENSATE, end=end)
        if undo.check:
            checked = self.check(name, undo.check, Activity.COMPENSATE, undo.timeout)
            if checked is None:
                return False
            if not checked:
                why = "its compensation ended with 0, and the check of that says that it is not done"
                return notes.failed(name, why, Activity.COMPENSATE)
        return True

    def _asked(self, name: str, words: tuple[str, ...], timeout: timedelta | None = None) -> CallEnd:
        command = self.notes.values.command(name, words)
        return self.notes.context.commands.run(replace(command, timeout=timeout or command.timeout), name)
