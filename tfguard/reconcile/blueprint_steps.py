"""What to do about each step of a blueprint: decided from its record and from the evidence, never from a guess."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from datetime import datetime

from tfguard.blueprint_ports import StackLook
from tfguard.model.blueprint import Blueprint, BlueprintStep, StepKind
from tfguard.model.blueprint_decision import Decision, DecisionKind, Told
from tfguard.model.blueprint_request import Activity, Request, StepRecord
from tfguard.model.operation import StepStatus
from tfguard.model.reference import references_in
from tfguard.reconcile.blueprint_objects import holds_data, managed_of

UNREADABLE = "its record or its state cannot be read"
_GONE = (StepStatus.DESTROYED, StepStatus.ABSENT)
_NOT_BEGUN = "not begun"
_WORK = ("stack", "run", "vars", "var_files", "workspace", "environment", "directory")


def waits_for(blueprint: Blueprint, request: Request, name: str) -> tuple[str, ...]:
    """The needs of a step that are not done yet."""
    return tuple(need for need in blueprint.steps[name].needs if not request.step(need).done)


def work_of(step: BlueprintStep, request: Request) -> str:
    """What tells one work of a step from another: what its part of the blueprint says of it, and the inputs in that.
    Comments, limits, and what other steps say are no part of it."""
    said = {name: getattr(step, name) for name in _WORK}
    taken = {one.name: request.inputs.get(one.name) for one in references_in(list(said.values())) if one.step is None}
    return hashlib.sha256(json.dumps([said, taken], sort_keys=True).encode()).hexdigest()[:16]


def decide_stack(
    step: BlueprintStep, record: StepRecord, look: StackLook, request: Request, told: Told | None = None
) -> Decision:
    """The way on with a stack whose needs are all done."""
    if look.failure:
        # Why may be in the engine's own words, which no document has (rule 10).
        folder = shlex.quote(f"-chdir={step.stack}")
        return Decision(
            DecisionKind.INSPECT, UNREADABLE, asks=f"see what `tfguard {folder} status` says, and mend that"
        )
    if look.alive:
        return Decision(DecisionKind.WAIT, f"operation {look.operation_id} is running on it")
    if look.open and look.adoptable:
        many = f"{len(look.adoptable)} objects" if len(look.adoptable) > 1 else "an object"
        return Decision(DecisionKind.ADOPT, f"operation {look.operation_id} left {many} that its state does not know")
    if look.open:
        what = f": {look.unsettled[0]}" if look.unsettled else ""
        return Decision(DecisionKind.INSPECT, f"operation {look.operation_id} is not settled{what}")
    if record.undoing:
        return decide_undo(step, record, told)
    if record.status in _GONE:
        return Decision(DecisionKind.RUN, f"it was taken away ({record.why}), and is made anew")
    if look.managed == 0 and (known := managed_of(record)):
        if not record.made and told is not None and not told.done:
            return Decision(DecisionKind.RUN, f"to be made anew, by a person's word: {told.reason}")
        # What was adopted alone is nothing that this request takes away.
        word = "destroy --step STEP --gone STEP" if record.made else "resume --again STEP"
        return Decision(
            DecisionKind.INSPECT,
            f"its state is empty, and this request {'has made' if record.made else 'knows'} {len(known)} objects by it",
            asks=f"restore the state; or, where nothing of it is there any more, `{word} --reason TEXT`",
        )
    if record.done and told is not None and not told.done:
        return Decision(DecisionKind.RUN, f"to be applied again, by a person's word: {told.reason}")
    if record.done and _changed(step, record, request):
        return Decision(DecisionKind.RUN, "its inputs, or its part of the blueprint, have changed since")
    if record.done and (newer := _newer(step.needs, record, request)):
        return Decision(DecisionKind.RUN, f"{', '.join(newer)} came to an end anew since, and it builds on that")
    if record.done:
        return Decision(DecisionKind.SKIP, f"done by operation {record.operation_id}, and its state is there")
    if record.missing:
        return _vanished(step, record, look, told)
    if record.attempts and look.operation_id:
        return Decision(DecisionKind.RUN, f"operation {look.operation_id} is settled: what it did not make is made now")
    return Decision(DecisionKind.RUN, "it was begun before the engine was started" if record.attempts else _NOT_BEGUN)


def _vanished(step: BlueprintStep, record: StepRecord, look: StackLook, told: Told | None) -> Decision:
    """The way on with a stack that is to have what its provider does not have: data that is gone comes back with no
    apply."""
    gone = [found for found in (*record.standing, *look.objects) if found.address in record.missing]
    what = f"its provider does not have {', '.join(sorted(record.missing)[:3])}"
    if not gone:
        return Decision(DecisionKind.RUN, f"{what}, which was never made: it is in the stack's own files by now")
    if not holds_data(step, gone):
        return Decision(DecisionKind.RUN, f"{what}: it is made anew")
    if told is not None:
        kind = DecisionKind.SKIP if told.done else DecisionKind.RUN
        return Decision(kind, f"{'there again' if told.done else 'to be made anew'}, by a person's word: {told.reason}")
    return Decision(
        DecisionKind.INSPECT,
        f"{what}, and it holds data, which would be made anew without it",
        asks="restore it, then `resume --done STEP --reason TEXT`, or `resume --again STEP --reason TEXT`",
    )


def decide_command(
    step: BlueprintStep, record: StepRecord, request: Request, checked: bool | None, told: Told | None
) -> Decision:
    """The way on with a command whose needs are all done.

    `checked` is what its check says of its work: done, not done; None where there is no check, or it was not asked.
    """
    if record.undoing:
        return decide_undo(step, record, told)
    if told is not None:
        kind = DecisionKind.SKIP if told.done else DecisionKind.RUN
        return Decision(kind, f"{'done' if told.done else 'to run again'}, by a person's word: {told.reason}")
    if step.check and checked is None:
        return Decision(DecisionKind.INSPECT, "its check is asked whether it is done")
    if checked:
        return Decision(DecisionKind.SKIP, "its check says that it is done")
    if checked is False:
        return Decision(DecisionKind.RUN, "its check says that it is not done")
    if record.status in _GONE:
        return Decision(DecisionKind.RUN, "it was taken away, and is done anew")
    if not record.made:
        return Decision(DecisionKind.RUN, _NOT_BEGUN)
    if step.owned_by is not None and _after(request.step(step.owned_by).remade_at, record.worked_at, record.began_at):
        return Decision(DecisionKind.RUN, f"{step.owned_by} was made anew since, and its work was gone with that")
    changed = _changed(step, record, request) or bool(_renewed(step, record, request))
    newer = _newer(step.needs, record, request)
    if record.done and not changed and not (step.idempotent and newer):
        return Decision(DecisionKind.SKIP, "it has run to its end")
    if step.idempotent:
        why = f"; {', '.join(newer)} came to an end anew since" if record.done and newer else ""
        return Decision(DecisionKind.RUN, f"it may be run again (idempotent){why}")
    what = "was begun, and did not come to a good end"
    if record.done:
        others = _renewed(step, record, request)
        what = f"has run, and {', '.join(others) or 'its part of the blueprint, or its inputs,'} changed since"
    return Decision(
        DecisionKind.INSPECT,
        f"it {what}, and nothing tells whether running it again does harm",
        asks="find out, then `resume --done STEP --reason TEXT` or `resume --again STEP --reason TEXT`; "
        "a `check:` or `idempotent: true` in the blueprint decides it for good",
    )


def decide_undo(step: BlueprintStep, record: StepRecord, told: Told | None) -> Decision:
    """The way on with a compensation or a destroy that was begun, and is not known to have come to a good end.

    What a destroy has left, its stack tells, and a check tells it of a compensation. Of any other, one that has failed
    by its own word is finished; one whose end is not known may have done its work, as a step's command may.
    """
    undo = step.compensate
    if record.undo is not Activity.COMPENSATE or undo is None or undo.destroy:
        return Decision(DecisionKind.UNDO, f"its {_word(record)} was begun, and did not come to its end")
    if told is not None:
        word = "is done" if told.done else "is to run again"
        return Decision(DecisionKind.UNDO, f"its compensation {word}, by a person's word: {told.reason}")
    if undo.check or undo.idempotent or record.exit_code is not None:
        return Decision(DecisionKind.UNDO, "its compensation was begun, and did not come to its end")
    return Decision(
        DecisionKind.UNDO,
        "its compensation was begun, how it ended is not known, and nothing tells whether running it again does harm",
        asks="find out, then `resume --done STEP --reason TEXT` where it has done its work, else "
        "`resume --again STEP --reason TEXT`; before a destroy `destroy --gone STEP` or `destroy --again STEP`; "
        "a `check:` or `idempotent: true` of the compensation decides it for good",
    )


def ended_well(record: StepRecord, look: StackLook) -> StepStatus | None:
    """What a stack has come to whose tfguard was cut short, where the operation that was begun has ended well all the
    same; None where it has not, or where that cannot be told. `record` names the newest operation before that.

    An apply tells nothing: somebody else's, with other values, looks the same. Made once more it does no harm.
    """
    begun = look.operation_id is not None and look.operation_id != record.operation_id
    if not begun or look.alive or look.open or look.failure:
        return None
    kept = any(not found.gone for found in look.objects)
    undoes = record.activity is not None and record.activity.undoes
    return StepStatus.DESTROYED if undoes and look.emptied and not kept else None


def decide_probe(record: StepRecord) -> Decision:
    """The way on with a probe whose needs are all done: it is asked again, since only the answer of now counts."""
    return Decision(DecisionKind.RUN, "asked again" if record.attempts else "not asked yet")


def waiting(behind: Sequence[str]) -> Decision:
    """The way on with a step whose needs are not all done."""
    return Decision(DecisionKind.WAIT, f"waits for {', '.join(behind)}", tuple(behind))


def told_when_begun(decision: Decision) -> str:
    """What the user is told of a decision at the moment when it is followed."""
    if decision.kind is DecisionKind.RUN and decision.reason == _NOT_BEGUN:
        return "begins"
    return f"{decision.kind.value}: {decision.reason}"


def undone_by_compensation(blueprint: Blueprint, request: Request) -> Sequence[str]:
    """The steps that a failed request compensates: what was begun and has a compensation.

    What stood when the request was last Ready, or was kept for a review, is no work of what failed, and stays, also
    where it was repaired or applied again since.
    """
    return tuple(
        name
        for name in reversed(blueprint.order())
        for step in (blueprint.steps[name],)
        if step.kind is not StepKind.PROBE and step.compensate is not None
        if request.step(name).made and name not in request.stood
    )


def _changed(step: BlueprintStep, record: StepRecord, request: Request) -> bool:
    return record.work is not None and record.work != work_of(step, request)


def _newer(needs: Sequence[str], record: StepRecord, request: Request) -> Sequence[str]:
    """The needs whose work came to its end after the step's own did."""
    return [need for need in needs if _after(request.step(need).worked_at, record.worked_at)]


def _renewed(step: BlueprintStep, record: StepRecord, request: Request) -> Sequence[str]:
    """The owner, and the steps whose outputs a command takes, of which something was made anew since."""
    taken = (one.step for _, text in step.texts() for one in references_in(text))
    sources = dict.fromkeys(name for name in (step.owned_by, *taken) if name is not None)
    return [name for name in sources if _after(request.step(name).renewed_at, record.worked_at)]


def _after(at: datetime | None, *others: datetime | None) -> bool:
    known = [other for other in others if other is not None]
    return at is not None and bool(known) and at > max(known)


def _word(record: StepRecord) -> str:
    return "destroy" if record.undo is Activity.DESTROY else "compensation"
