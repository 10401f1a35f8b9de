"""Provide what a blueprint asks for, or repair it: step by step, to `Ready` or to a partial failure that says what is
there, what is not, and what can be done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path

from tfguard.errors import OpenOperationError, OperationAliveError, TfguardError, UsageError
from tfguard.flows.blueprints.asking import ask_probes
from tfguard.flows.blueprints.context import BlueprintContext, Values, stack_steps, values_of
from tfguard.flows.blueprints.graph import work_through
from tfguard.flows.blueprints.keeping import retention
from tfguard.flows.blueprints.kept import refuse_left_behind
from tfguard.flows.blueprints.preflight import skipped_checks
from tfguard.flows.blueprints.requests import Journal, absolute
from tfguard.flows.blueprints.settling import settle
from tfguard.flows.blueprints.steps import StepRunner
from tfguard.flows.blueprints.stopping import Stopping, refuse_interrupted
from tfguard.model.blueprint import OnFailure, StepKind, however_far, stands_behind
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import Request, RequestEvent, RequestIntent, RequestState, fold
from tfguard.model.naming import first_of
from tfguard.model.operation import StepStatus
from tfguard.model.preflight import CheckResult
from tfguard.reconcile.blueprint_objects import managed_of
from tfguard.reconcile.blueprint_steps import undone_by_compensation

_S = RequestState
_NAMED = 10
_BEGINS_WITH_REPAIR = (_S.READY, _S.PARTIAL_FAILURE, _S.RETAINED_FOR_REVIEW)
_GONE = (StepStatus.DESTROYED, StepStatus.ABSENT)


@dataclass(frozen=True, slots=True)
class ProvideOptions:
    """What the user says: values of inputs, and words about commands that may have done their work."""

    inputs: Mapping[str, object] = field(default_factory=dict)
    told: Mapping[str, Told] = field(default_factory=dict)


def provide(
    context: BlueprintContext,
    options: ProvideOptions,
    preflight: Callable[[Request], Sequence[CheckResult]],
    approve: Callable[[Request], None],
) -> Request:
    """Make a new request, or go on with the one that stands, and bring it to its end; how it stands then.

    `preflight` looks before the first step, at the request with its new inputs, and raises what it finds; `approve`
    asks the user, and raises when the answer is no. Before both nothing is written for a new request. Raises
    `OperationAliveError` when another tfguard is at work, `OpenOperationError` for a request that has to be cleaned up
    first, `InterruptedRunError` for a signal before anything is written, `RecordError` when it cannot be written.
    """
    before = _standing(context)
    with context.requests.holding():
        # Somebody may have worked on it until now.
        standing = _standing(context)
        if (standing.id if standing else None) != (before.id if before else None):
            raise OperationAliveError("another tfguard has begun or ended a request meanwhile", "run the command again")
        if standing is not None:
            _refuse_cancelled(context, standing)
        request = standing or draft(context, context.requests.new_id(), options)
        _refuse_idle_words(context, request, options.told)
        changed = _inputs(context, request, options) if standing else None
        if standing is not None:
            refuse_left_behind(context, standing, changed)
        planned = _with_changes(context, request, changed)
        checks = preflight(planned)
        refuse_interrupted(context)
        approve(planned)
        refuse_interrupted(context)
        if standing is None:
            pack_over(context)
            request = context.requests.create(request.intent, context.text)
        journal = Journal(context.requests, request)
        _note_changes(context, journal, changed)
        _note_skipped(journal, skipped_checks(checks))
        try:
            return _Provision(context, journal, options.told).run()
        finally:
            context.requests.forget_cancel(request.id)


def _refuse_cancelled(context: BlueprintContext, request: Request) -> None:
    if request.state in (_S.CANCEL_PENDING, _S.SETTLED):
        raise OpenOperationError(
            f"request {request.id} was cancelled, and what it made is still there",
            f"to go on with it: `tfguard blueprint cancel --retain {context.file_word}`, then `resume`; "
            f"to take it away: `tfguard blueprint destroy {context.file_word}`",
        )


def _refuse_idle_words(context: BlueprintContext, request: Request, told: Mapping[str, Told]) -> None:
    """Raise `UsageError` for a word about a step that nothing would come of."""
    for name, word in told.items():
        step, record = context.blueprint.steps[name], request.step(name)
        if not record.made and (word.done or not managed_of(record)):
            why = f"nothing of {name} was begun, or it was taken away: there is nothing to say of its work"
        elif word.done and step.owned_by is not None and not request.step(step.owned_by).made:
            why = f"{step.owned_by} is gone, and its work with it: {name} is done anew behind it"
        elif step.kind is StepKind.PROBE:
            why = f"{name} is a probe, which is asked anew each time"
        elif step.kind is StepKind.STACK and word.done and not record.missing and not record.undoing:
            why = f"{name} is a stack: its own record tells what is done"
        else:
            continue
        raise UsageError(why, f"leave --done {name} or --again {name} out")


def _standing(context: BlueprintContext) -> Request | None:
    """The request that is not over; None where there is none."""
    found = context.requests.current()
    return found if found is not None and not found.terminal else None


def pack_over(context: BlueprintContext) -> None:
    """Pack the last request away, which is over; where that fails it stays as it is, which is said aloud."""
    request = context.requests.current()
    if request is None or request.id not in context.requests.ids():
        return
    try:
        context.requests.pack(request.id)
    except TfguardError as error:
        context.console.warn(f"{error.what}; request {request.id} is packed away another time")


def draft(context: BlueprintContext, request_id: str, options: ProvideOptions) -> Request:
    """The request that would be made; nothing is written. Raises `UsageError` for its inputs."""
    intent = RequestIntent(
        request_id=request_id,
        blueprint=context.blueprint.name,
        blueprint_file=absolute(Path(context.file)),
        blueprint_digest=context.requests.digest(context.text),
        created_at=context.clock.now(),
        actor=context.requests.actor,
        owner=context.owner,
        cost_owner=context.cost_owner,
        inputs=read_inputs(context, options.inputs, {}),
    )
    return fold(intent, ())


def upcoming(context: BlueprintContext, options: ProvideOptions) -> Request:
    """The request that `provide` would make or go on with, as it would be worked on; nothing is written. Raises
    `UsageError` for its inputs."""
    request = _standing(context)
    if request is None:
        return draft(context, context.requests.new_id(), options)
    return _with_changes(context, request, _inputs(context, request, options))


def _inputs(context: BlueprintContext, request: Request, options: ProvideOptions) -> Mapping[str, object]:
    return read_inputs(context, options.inputs, request.inputs)


def _with_changes(context: BlueprintContext, request: Request, inputs: Mapping[str, object] | None) -> Request:
    """The request as it will be worked on; nothing is written."""
    inputs = request.inputs if inputs is None else inputs
    if inputs == request.inputs and context.requests.digest(context.text) == request.blueprint_digest:
        return request
    return replace(request, inputs=inputs, changed_at=context.clock.now())


def _note_skipped(journal: Journal, skipped: Mapping[str, str]) -> None:
    """Write down which checks were left out, and why; also that none is any more."""
    if skipped == journal.request.skipped:
        return
    why = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
    told = f"skipped of the preflight: {why}" if why else "no check of the preflight is skipped any more"
    journal.write(lambda at, by: RequestEvent(at, by, told, skipped=skipped))


def _note_changes(context: BlueprintContext, journal: Journal, inputs: Mapping[str, object] | None) -> None:
    request, digest = journal.request, context.requests.digest(context.text)
    new_inputs = inputs if inputs is not None and inputs != request.inputs else None
    new_digest = digest if digest != request.blueprint_digest else None
    if new_inputs is None and new_digest is None:
        return
    context.requests.keep_blueprint(request.id, context.text)
    what = " and ".join(
        word for word, new in (("the inputs", new_inputs), ("the blueprint", new_digest)) if new is not None
    )
    journal.write(
        lambda at, by: RequestEvent(at, by, f"{what} changed", inputs=new_inputs, blueprint_digest=new_digest)
    )


def read_inputs(
    context: BlueprintContext, given: Mapping[str, object], before: Mapping[str, object]
) -> Mapping[str, object]:
    """The values of all inputs: as given, else as before, else as the blueprint says. Sensitive ones stay references.

    Raises `UsageError` for one that is not known, missing, of another type, or sensitive and not a reference.
    """
    known = context.blueprint.inputs
    for name in given:
        if name not in known:
            raise UsageError(f"there is no input {name}", f"the blueprint has {', '.join(known) or 'none'}")
    values: dict[str, object] = {}
    for name, kind in known.items():
        value = given.get(name, before.get(name, kind.default))
        if value is None:
            if kind.required:
                raise UsageError(f"the input {name} is missing", f"give --input {name}=VALUE")
            continue
        if kind.sensitive:
            reference = str(value)
            if not reference.startswith(("env:", "file:")):
                raise UsageError(
                    f"the input {name} is sensitive, and is kept as a reference alone",
                    f"give --input {name}=env:NAME or {name}=file:PATH",
                )
            context.secret(reference)
            values[name] = reference
            continue
        try:
            values[name] = kind.read(value)
        except ValueError as error:
            raise UsageError(f"the input {name} {error}", f"give --input {name}=VALUE") from None
    return values


class _Provision:
    """One `apply` or `resume`."""

    def __init__(self, context: BlueprintContext, journal: Journal, told: Mapping[str, Told]) -> None:
        self._context = context
        self._journal = journal
        self._values: Values = values_of(context, journal.request)
        self._stopping = Stopping(context, journal)
        self._steps = StepRunner(context, journal, self._values, self._stopping, told)
        self._began = context.clock.now()

    def run(self) -> Request:
        """Bring the request to its end."""
        self._begin()
        blueprint = self._context.blueprint
        done = work_through(
            {name: step.needs for name, step in blueprint.steps.items()},
            self._steps.provide,
            at_once=blueprint.parallel,
            may_start=lambda: not self._stopping.wanted,
            stop_at_failure=True,
        )
        for name in self._steps.unused:
            self._steps.say(name, "what you said of it was not needed: it was not come to; say it again then")
        if self._stopping.wanted:
            return self._settle()
        failed = [name for name in blueprint.steps if name not in done]
        if not failed:
            failed = [*self._unverified(), *self._not_answering()]
            if self._stopping.wanted:
                return self._settle()
        if not failed:
            return self._become(_S.READY, "every step is done and verified, and each probe passed")
        errors = [name for name in failed if self._journal.request.step(name).status is StepStatus.ERROR]
        doubtful = [name for name in blueprint.steps if self._in_doubt(name)]
        self._fail(f"not done: {first_of(failed, _NAMED)}", errors[0] if errors else None)
        self._compensate(doubtful)
        return self._journal.request

    def _begin(self) -> None:
        state = self._journal.request.state
        if state is _S.REQUESTED:
            skipped = ", ".join(self._journal.request.skipped)
            but = f"; skipped: {skipped}" if skipped else ""
            self._become(_S.VALIDATED, f"the preflight found nothing in the way{but}")
        if self._journal.request.state is _S.VALIDATED:
            self._become(_S.PROVISIONING, "the first step may begin")
        elif state in _BEGINS_WITH_REPAIR:
            self._become(_S.REPAIRING, "asked to go on")

    def _settle(self) -> Request:
        """Everything has ended: each step says what it has made."""
        settle(self._context, self._journal, "cancelled")
        return self._journal.request

    def _unverified(self) -> Sequence[str]:
        """The steps whose objects were not all seen at their providers; each is an error from then on. What was seen
        and nothing was called since is not looked up again."""
        if not self._context.blueprint.ready.inventory:
            return ()
        names = [name for name in stack_steps(self._context.blueprint) if name not in self._steps.verified]
        seen = self._listening(names, lambda name: not self._steps.verify(name))
        return [name for name in names if name not in seen]

    def _listening(self, names: Collection[str], work: Callable[[str], bool]) -> Collection[str]:
        """Those of the steps of which `work` says yes; meanwhile it is heard whether somebody wants it to stop."""
        at_once, may_start = self._context.blueprint.parallel, lambda: not self._stopping.wanted
        return work_through(dict.fromkeys(names, ()), work, at_once=at_once, may_start=may_start)

    def _not_answering(self) -> Sequence[str]:
        return ask_probes(self._context, self._journal, self._values, lambda: self._stopping.wanted)

    def _fail(self, why: str, step: str | None) -> None:
        """Write the failure, and of what is kept until when and for whom. In one: whoever dies in between would leave
        something to be kept without a date and an owner."""
        request = self._journal.request
        kept = [
            name
            for name, one in self._context.blueprint.steps.items()
            if request.step(name).made
            # What somebody has begun to destroy is kept by nobody's word.
            and not request.step(name).undoing
            and (one.failing is OnFailure.RETAIN or request.step(name).retained)
        ]
        self._context.console.say(f"{_S.PARTIAL_FAILURE.value}: {why}")

        def make(at: datetime, by: str) -> Sequence[RequestEvent]:
            # A repair that fails again moves no date: else what is kept for a time would be kept for ever (rule 14).
            since = request.failing_since or at
            failed = RequestEvent(at, by, why, state=_S.PARTIAL_FAILURE, step=step)
            return (*(self._retention(name, request, since)(at, by) for name in kept), failed)

        after = self._journal.write_all(make)
        for name in kept:
            record = after.step(name)
            self._steps.say(name, f"retained until {record.until:%Y-%m-%d} for {record.owner or 'nobody'}")

    def _compensate(self, doubtful: Sequence[str]) -> None:
        """Undo each step that says so, unless something stands that needs it, however far, or a person has to look
        first at what was not done: that is no failure of it. Of the `doubtful` steps nobody can tell how they stand."""
        blueprint, stands = self._context.blueprint, cache(self._steps.stands)
        # The owner takes what it owns along where it is destroyed; it is needed where the work itself is undone.
        behind = {name: {*them} - {blueprint.steps[name].owned_by} for name, them in stands_behind(blueprint).items()}
        asking = sorted(self._steps.asking)
        for name in undone_by_compensation(blueprint, self._journal.request):
            step = blueprint.steps[name]
            if step.failing is not OnFailure.COMPENSATE:
                continue
            record = self._journal.request.step(name)
            if record.undoing and record.since is not None and record.since > self._began:
                continue  # before it could have been made anew, and that was told
            standing = sorted(filter(stands, however_far(behind, name)))
            if self._stopping.wanted:
                self._steps.say(name, "not compensated: cancelled")
            elif asking:
                self._steps.say(name, f"not compensated: {', '.join(asking)} waits for a person")
            elif doubtful:
                self._steps.say(name, f"not compensated: how {', '.join(doubtful)} stands is not known")
            elif record.found:
                self._steps.say(name, "not compensated: it stood before this request")
            elif standing:
                self._steps.say(name, f"not compensated: {', '.join(standing)} needs it")
            else:
                self._listening([name], self._steps.compensate)
                stands.cache_clear()

    def _in_doubt(self, name: str) -> bool:
        """Whether this run has not come to a step of which nobody can tell how it stands."""
        since = self._journal.request.step(name).since
        return since is not None and since < self._began and self._steps.in_doubt(name)

    def _retention(self, name: str, request: Request, since: datetime) -> Callable[[datetime, str], RequestEvent]:
        step, config, before = self._context.blueprint.steps[name], self._context.config, request.step(name)
        time = min(step.retain_for or config.retention.default, config.retention.max)
        # What somebody keeps for longer stays so, and theirs.
        dates = [since + time] if step.failing is OnFailure.RETAIN else []
        dates += [before.until] if before.until is not None else []
        owner = before.owner or step.owner or request.intent.owner
        why = "kept, since the request failed: repair it, or dispose of it"
        return retention(name, before, why, max(dates), owner)

    def _become(self, state: RequestState, why: str, step: str | None = None) -> Request:
        self._context.console.say(f"{state.value}: {why}")
        return self._journal.write(lambda at, by: RequestEvent(at, by, why, state=state, step=step))
