"""Take a request's work away, in reverse: what was confirmed gone is gone, what is kept stays, a child goes after its
parent (rules 13, 14 and 16). Also its cancel, which is the first half of that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from tfguard.errors import RecordError, TfguardError, UsageError
from tfguard.flows.blueprints.context import BlueprintContext, values_of
from tfguard.flows.blueprints.graph import work_through
from tfguard.flows.blueprints.keeping import retention
from tfguard.flows.blueprints.kept import refuse_left_behind
from tfguard.flows.blueprints.requests import Journal
from tfguard.flows.blueprints.settling import come_to_rest, settle
from tfguard.flows.blueprints.steps import StepRunner
from tfguard.flows.blueprints.stopping import Stopping, refuse_interrupted
from tfguard.model.blueprint import StepKind, however_far, stands_behind
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import Request, RequestEvent, RequestState
from tfguard.model.naming import first_of
from tfguard.model.operation import StepStatus
from tfguard.reconcile.blueprint_objects import holds_data
from tfguard.reconcile.blueprint_steps import decide_undo

_S = RequestState
_NAMED = 10
_GONE = (StepStatus.DESTROYED, StepStatus.ABSENT)


@dataclass(frozen=True, slots=True)
class TakeAwayOptions:
    """`stateful`: also what holds data; `dispose`: also what is retained; `gone`: the steps of which somebody says that
    nothing is there any more, where no state can tell, and how they know. `steps`: these alone (none: the whole
    request). `again`: the steps whose compensation is to run again by somebody's word, though it may have done its
    work, and why."""

    reason: str
    stateful: bool = False
    dispose: bool = False
    gone: Mapping[str, str] = field(default_factory=dict)
    steps: Collection[str] = ()
    again: Mapping[str, str] = field(default_factory=dict)


def take_away(
    context: BlueprintContext, options: TakeAwayOptions, approve: Callable[[Request], None]
) -> Request | None:
    """Destroy what the current request has made; how it stands then, None where there is none.

    Raises `OperationAliveError` when another tfguard is at work, `UsageError` where the blueprint does not have a step
    any more that made something, where a step that stays needs one that is to go or owns it, and for a word of which
    nothing would come; `InterruptedRunError` for a signal before anything is written, and what `approve` raises.
    """
    found = context.requests.current()
    _refuse_unknown(context, options)
    if found is None or found.terminal:
        return found
    with context.requests.holding():
        request = context.requests.read(found.id)
        if request.terminal:
            return request  # somebody has taken it away meanwhile
        refuse_left_behind(context, request)
        _refuse_needed(context, request, options)
        _refuse_idle_words(context, request, options)
        approve(request)
        refuse_interrupted(context)
        journal = Journal(context.requests, request)
        try:
            if options.steps:
                # The request goes on without them: only what of it was cut short has to end before.
                if come_to_rest(context, journal) is not None:
                    _TakeAway(context, journal, options).some()
                return journal.request
            if not settle(context, journal, options.reason):
                return journal.request
            return _TakeAway(context, journal, options).run()
        finally:
            context.requests.forget_cancel(request.id)


def keep(context: BlueprintContext, journal: Journal, time: timedelta, owner: str, reason: str) -> Request:
    """Keep all that a settled or partly failed request has made, for a review; what is kept for longer stays so."""
    for name, step in context.blueprint.steps.items():
        if journal.request.step(name).made and step.kind is not StepKind.PROBE:
            until = max(context.clock.now() + time, journal.request.step(name).until or context.clock.now())
            journal.write(retention(name, journal.request.step(name), reason, until, owner))
    if journal.request.state is not _S.RETAINED_FOR_REVIEW:
        journal.write(lambda at, by: RequestEvent(at, by, reason, state=_S.RETAINED_FOR_REVIEW))
    return journal.request


class _TakeAway:
    """One `destroy`."""

    def __init__(self, context: BlueprintContext, journal: Journal, options: TakeAwayOptions) -> None:
        self._context = context
        self._journal = journal
        self._options = options
        self._stopping = Stopping(context, journal)
        values = values_of(context, journal.request)
        told = {name: Told(False, why) for name, why in options.again.items()}
        self._steps = StepRunner(
            context, journal, values, self._stopping, told, takes_data=options.stateful, gone=options.gone
        )
        self._behind = stands_behind(context.blueprint)

    def run(self) -> Request:
        """Take away what may go; how the request stands then."""
        blueprint = self._context.blueprint
        gone = work_through(
            self._behind,
            self._one,
            at_once=blueprint.parallel,
            may_start=lambda: not self._stopping.wanted,
        )
        self._tell_unused()
        left = [name for name in blueprint.steps if name not in gone]
        request = self._journal.request
        # What nothing undoes is in nobody's way, and stays until a person says that it is gone.
        undone = [name for name in blueprint.steps if name in gone and request.step(name).made]
        if not left and not undone:
            return self._become(_S.CLEANED, self._told_of_the_end())
        behind = self._left(gone)
        for name in left:
            if request.step(name).made and (waits := self._waits(name, behind)):
                self._steps.say(name, f"stays: {waits}")
        kept = [name for name in left if request.step(name).retained]
        broken = [name for name in left if request.step(name).status in (StepStatus.ERROR, StepStatus.RUNNING)]
        if kept and not broken and not self._stopping.wanted and request.state is _S.SETTLED:
            told = f"{first_of(kept, _NAMED)} is kept; all else that may go is gone"
            return self._become(_S.RETAINED_FOR_REVIEW, told)
        return request

    def some(self) -> None:
        """Take away what may go of the chosen steps; the state of the request stays."""
        chosen = {name for name in self._options.steps if self._journal.request.step(name).made}
        for name in self._options.steps:
            if name not in chosen:
                self._steps.say(name, "nothing of it is on record that could be taken away")
        gone = work_through(
            {name: chosen.intersection(however_far(self._behind, name)) for name in self._behind if name in chosen},
            self._one,
            at_once=self._context.blueprint.parallel,
            may_start=lambda: not self._stopping.wanted,
        )
        self._tell_unused()
        behind = self._left(gone | (set(self._behind) - chosen))
        for name in sorted(chosen - gone):
            if waits := self._waits(name, behind):
                self._steps.say(name, f"stays: {waits}")
        for name in sorted(gone):
            if self._journal.request.step(name).made:
                self._steps.say(name, f"where nobody can tell, `--gone {name} --reason TEXT` says that it is gone")

    def _tell_unused(self) -> None:
        for name in self._steps.unused:
            self._steps.say(name, "your word that its compensation can run again was not needed")

    def _told_of_the_end(self) -> str:
        """What is confirmed gone, and what stays behind though it is in nobody's way."""
        request = self._journal.request
        records = {name: request.step(name) for name in self._context.blueprint.steps}
        others = [name for name, record in records.items() if not record.made and record.status not in _GONE]
        unseen = [found.address for record in records.values() for found in record.standing]
        told = [f"{first_of(others, _NAMED)} was never begun, and its stack is left as it is"] if others else []
        told += [f"what became of {first_of(unseen, _NAMED)} was not seen"] if unseen else []
        return "; ".join(["all else is confirmed gone" if told else "everything is confirmed gone", *told])

    def _one(self, name: str) -> bool:
        if name not in self._options.gone and (kept := self._retained(name)):
            self._steps.say(name, f"stays: {kept}")
            return False
        return self._steps.take_away(name)

    def _retained(self, name: str) -> str:
        record = self._journal.request.step(name)
        if not record.retained or self._options.dispose:
            return ""
        until = f" until {record.until:%Y-%m-%d}" if record.until else ""
        return f"it is retained{until}; --dispose takes it away, too"

    def _left(self, gone: Collection[str]) -> Mapping[str, Sequence[str]]:
        """By step: those that would have to go before it, and are not gone."""
        return {name: sorted(other for other in before if other not in gone) for name, before in self._behind.items()}

    def _waits(self, name: str, left: Mapping[str, Sequence[str]]) -> str:
        """Why a step was not come to: what of it would stay anyway, what has to go before it, and what that hangs on.
        Empty where nothing is in its way."""
        if not left[name]:
            return ""
        told = [self._retained(name)]
        step, record = self._context.blueprint.steps[name], self._journal.request.step(name)
        if step.kind is StepKind.STACK and not self._options.stateful and holds_data(step, record.standing):
            told.append("it holds data; --stateful takes it away, too")
        further, seen = [*left[name]], set(left[name])
        while further:
            new = [one for one in left[further.pop()] if one not in seen]
            seen.update(new)
            further += new
        roots = sorted(one for one in seen if not left[one])
        hangs = f", since {first_of(roots, _NAMED)} stays" if set(roots) - set(left[name]) else ""
        return "; ".join([*filter(None, told), f"{first_of(left[name], _NAMED)} is not gone{hangs}"])

    def _become(self, state: RequestState, why: str) -> Request:
        self._context.console.say(f"{state.value}: {why}")
        return self._journal.write(lambda at, by: RequestEvent(at, by, why, state=state))


def _refuse_unknown(context: BlueprintContext, options: TakeAwayOptions) -> None:
    """Raise `UsageError` for a word about a step that there is not."""
    named = (*options.steps, *options.gone, *options.again)
    if unknown := [name for name in named if name not in context.blueprint.steps]:
        raise UsageError(f"there is no step {unknown[0]}", f"see `tfguard blueprint status {context.file_word}`")


def _refuse_needed(context: BlueprintContext, request: Request, options: TakeAwayOptions) -> None:
    """Raise `UsageError` where a step that stays needs one that is to go, however far, or owns it."""
    steps, dependants = context.blueprint.steps, context.blueprint.dependants()

    def stays(name: str) -> bool:
        return name not in options.steps and steps[name].kind is not StepKind.PROBE and request.step(name).made

    for name in [name for name in steps if name in options.steps and request.step(name).made]:
        needing = however_far(dependants, name)  # what it owns is among them
        for other in [one for one in steps if one in needing and stays(one)]:
            word = "is owned by" if steps[other].owned_by == name else "needs"
            raise UsageError(
                f"{other} {word} {name}, and stays",
                f"add --step {other}; or first apply a blueprint in which {other} does without {name}",
            )
        owner = steps[name].owned_by
        if owner is not None and stays(owner) and name not in options.gone:
            raise UsageError(
                f"{name} is owned by {owner}, which stays: it goes with that alone",
                f"add --step {owner}; or say --gone {name} --reason TEXT where nothing of it is there any more",
            )


def _refuse_idle_words(context: BlueprintContext, request: Request, options: TakeAwayOptions) -> None:
    """Raise `UsageError` for a word about a step that nothing would come of, or that its state speaks against."""
    for option, names in (("--gone", options.gone), ("--again", options.again)):
        for name in names:
            if why := _idle(context, request, name, options) or (
                _not_gone(context, request, name) if option == "--gone" else _not_in_doubt(context, request, name)
            ):
                raise UsageError(why, f"leave {option} {name} out")


def _idle(context: BlueprintContext, request: Request, name: str, options: TakeAwayOptions) -> str:
    """Why no word about a step counts; empty where one may."""
    if options.steps and name not in options.steps:
        return f"{name} is none of the steps that are to go"
    if context.blueprint.steps[name].kind is StepKind.PROBE:
        return f"{name} is a probe, which makes nothing"
    if not request.step(name).made:
        return f"nothing of {name} was begun, or it was taken away: there is nothing to say of it"
    return ""


def _not_gone(context: BlueprintContext, request: Request, name: str) -> str:
    """Why the word that nothing of a step is there does not count: its state has something. Empty where it may."""
    if context.blueprint.steps[name].kind is not StepKind.STACK:
        return ""
    try:
        look = context.stacks.look(values_of(context, request).place(name))
    except RecordError:
        raise
    except TfguardError:
        return ""  # it is looked at again before anything is called gone
    return f"the state of {name} is not empty: {look.managed} in it" if not look.failure and look.managed else ""


def _not_in_doubt(context: BlueprintContext, request: Request, name: str) -> str:
    """Why the word that a compensation can run again does not count; empty where it does."""
    step, record = context.blueprint.steps[name], request.step(name)
    if step.kind is StepKind.STACK:
        return f"{name} is a stack, which is destroyed without its compensation"
    return "" if record.undoing and decide_undo(step, record, None).asks else f"no compensation of {name} is in doubt"
