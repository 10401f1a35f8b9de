"""What the owner of a request sees: from the blueprint, the request's record and the decisions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath

from tfguard.model.blueprint import Blueprint, BlueprintStep, StepKind
from tfguard.model.blueprint_decision import Decision, DecisionKind
from tfguard.model.blueprint_request import UNSEEN, BlueprintObject, Request, RequestState, StepRecord
from tfguard.model.blueprint_view import BlueprintView, ObjectView, ProbeView, StepView
from tfguard.model.config import format_duration
from tfguard.model.disposition import DispositionKind
from tfguard.model.durations import in_words
from tfguard.model.operation import StepStatus
from tfguard.reconcile.blueprint_advice import blueprint_actions
from tfguard.reconcile.blueprint_steps import holds_data

_S = RequestState
_DOUBTS = (DecisionKind.INSPECT, DecisionKind.ADOPT, DecisionKind.UNDO)
_UNDER_WAY = (_S.REQUESTED, _S.VALIDATED, _S.PROVISIONING, _S.REPAIRING, _S.CANCEL_PENDING)
_GONE = (StepStatus.DESTROYED, StepStatus.ABSENT)


def blueprint_view(
    blueprint: Blueprint,
    request: Request | None,
    decisions: Mapping[str, Decision],
    now: datetime,
    *,
    file: str,
    live: bool = False,
    command: str = "tfguard",
    folder: str | None = None,
    owner: str = "",
    cost_owner: str = "",
    digest: str = "",
) -> BlueprintView:
    """The view at the moment `now`; `request` is None where nothing is on record, as for a draft.

    `decisions` are those of the steps that were decided about, which may be none; `live` tells whether a tfguard is at
    work on the request. For the next commands `command` is how tfguard was called, `file` how the blueprint was named,
    and `folder` where it lies as seen from where the user stands (None: as `file` says, there is no `-chdir`). `owner`
    and `cost_owner` hold where neither the request nor the blueprint names one. `digest` is that of the file as it is;
    without it nobody asks whether it has changed.
    """
    beside = str(PurePath(file).parent) if folder is None else folder
    whose = (request.intent.owner if request else blueprint.owner) or owner
    pays = (request.intent.cost_owner if request else blueprint.cost_owner) or cost_owner
    steps = tuple(_steps(blueprint, request, decisions, now, live=live, owner=whose, cost_owner=pays))
    probes = tuple(_probes(blueprint, request))
    state = request.state if request else None
    failing = (
        *(probe.name for probe in probes if probe.status is StepStatus.ERROR),
        *(step.id for step in steps if step.kind is StepKind.PROBE and step.status is StepStatus.ERROR),
    )
    # A stack whose record or state says something else by now than when the request became ready.
    doubtful = [
        name
        for name, decision in decisions.items()
        if blueprint.steps[name].kind is StepKind.STACK and decision.kind in _DOUBTS
    ]
    undone = [step.id for step in steps if step.kind is not None and step.status is not StepStatus.OK]
    unasked = [probe.name for probe in probes if probe.status is StepStatus.PENDING]
    changed = request is not None and bool(digest) and digest != request.blueprint_digest
    failing_since = request.failing_since if request else None
    repair_by = None
    if state is _S.PARTIAL_FAILURE and failing_since is not None:
        repair_by = failing_since + blueprint.repair_within
    late = repair_by is not None and repair_by <= now
    stuck = state in _UNDER_WAY and not live
    moved_at = _moved_at(request) if request else None
    notes = _notes(request, steps, failing)
    if state is _S.READY:
        if new := [name for name in undone if name not in failing]:
            notes.append(f"it was Ready without {_these(new, 'step')}, and is not now")
        if doubtful:
            notes.append(f"it was Ready, and is not now: see {_these(doubtful, 'step')}")
        if unasked:
            notes.append(f"{_these(unasked, 'probe')} was never asked: whether it is Ready is not known")
    if changed and request is not None and not request.terminal:
        notes.append("the blueprint has changed since it was last applied")
    if stuck and moved_at is not None:
        notes.insert(0, f"no tfguard is at work on it; its last sign of life was {in_words(now - moved_at)} ago")
    if late and failing_since is not None:
        window = format_duration(blueprint.repair_within)
        notes.insert(0, f"it has failed for {in_words(now - failing_since)}, and was to be repaired within {window}")
    return BlueprintView(
        blueprint=blueprint.name,
        file=file,
        now=now,
        request_id=request.id if request else None,
        state=state,
        created_at=request.intent.created_at if request else None,
        since=request.since if request else None,
        failing_since=failing_since,
        repair_by=repair_by,
        moved_at=moved_at,
        live=live,
        stuck=stuck,
        overdue=late or any(step.overdue for step in steps),
        ready_now=state is _S.READY and not (failing or undone or unasked or doubtful),
        failing_probes=failing,
        owner=whose,
        cost_owner=pays,
        notes=tuple(notes),
        steps=steps,
        probes=probes,
        transitions=request.transitions if request else (),
        next_actions=tuple(
            blueprint_actions(
                blueprint,
                request,
                steps,
                failing,
                file,
                beside,
                live=live,
                command=command,
                changed=bool(changed or undone or unasked),
            )
        ),
    )


def _steps(
    blueprint: Blueprint,
    request: Request | None,
    decisions: Mapping[str, Decision],
    now: datetime,
    *,
    live: bool,
    owner: str,
    cost_owner: str,
) -> Iterator[StepView]:
    order = blueprint.order()
    records = dict(request.steps) if request else {}
    depth: dict[str, int] = {}
    blocked: dict[str, tuple[str, ...]] = {}
    roots: dict[str, tuple[str, ...]] = {}
    for name in order:
        needs = blueprint.steps[name].needs
        depth[name] = max((depth[need] + 1 for need in needs), default=0)
        pending = records.get(name, StepRecord()).status is StepStatus.PENDING
        blocked[name] = tuple(n for n in needs if not records.get(n, StepRecord()).done) if pending else ()
        roots[name] = tuple(dict.fromkeys(root for need in blocked[name] for root in roots[need] or (need,)))
    lost = [name for name, record in records.items() if name not in blueprint.steps and record.made]
    for name in (*order, *lost):
        step, record, decision = blueprint.steps.get(name), records.get(name, StepRecord()), decisions.get(name)
        whose = record.owner or (step.owner if step else None) or owner
        pays = (step.cost_owner if step else None) or cost_owner
        # Of what nothing was decided and nothing is on record, the graph alone tells why it stands where it does.
        otherwise = record.why or (f"waits for {', '.join(blocked.get(name, ()))}" if blocked.get(name) else "")
        yield StepView(
            id=name,
            kind=step.kind if step else None,
            status=record.status,
            needs=step.needs if step else (),
            blocked_by=blocked.get(name, ()),
            held_up_by=roots.get(name, ()),
            owned_by=step.owned_by if step else None,
            operation_id=record.operation_id,
            decision=decision.kind if decision else None,
            reason=decision.reason if decision else otherwise,
            asks=decision.asks if decision else "",
            why=record.why,
            activity=record.activity,
            attempts=record.attempts,
            began_at=record.began_at,
            since=record.since,
            interrupted=record.status is StepStatus.RUNNING and not live,
            owner=whose,
            cost_owner=pays,
            until=record.until,
            overdue=record.overdue(now),
            stateful=_stateful(step, record),
            depth=depth.get(name, 0),
            objects=tuple(
                _object(found, record, whose, pays, step.stateful if step else None) for found in record.objects
            ),
        )


def _stateful(step: BlueprintStep | None, record: StepRecord) -> bool:
    if step is None:
        return any(found.stateful for found in record.objects)
    return holds_data(step, record, ())


def _object(found: BlueprintObject, record: StepRecord, owner: str, cost_owner: str, said: bool | None) -> ObjectView:
    """One object; `said` is what the blueprint says of whether its step holds data, which goes before what its type is
    known for."""
    disposition = found.disposition
    if (record.status in _GONE and disposition != UNSEEN) or found.gone:
        disposition = DispositionKind.DESTROY.value
    elif record.status is StepStatus.RETAINED:
        disposition = DispositionKind.RETAIN.value
    return ObjectView(
        address=found.address,
        type=found.type,
        desired=found.desired,
        observed_id=found.observed_id,
        created_at=found.created_at,
        cost_owner=cost_owner,
        disposition=disposition,
        owner=owner,
        until=record.until,
        stateful=found.stateful if said is None else said,
        finding=found.finding,
    )


def _probes(blueprint: Blueprint, request: Request | None) -> Iterator[ProbeView]:
    for probe in blueprint.ready.probes:
        seen = request.probes.get(probe.name) if request else None
        yield ProbeView(
            name=probe.name,
            kind=probe.kind,
            status=seen.status if seen else StepStatus.PENDING,
            detail=seen.detail if seen else "not asked yet",
            at=seen.at if seen else None,
        )


def _moved_at(request: Request) -> datetime:
    """When anything was last written about the request."""
    times = [request.since, request.changed_at, *(record.since for record in request.steps.values())]
    return max(at for at in (*times, *(probe.at for probe in request.probes.values())) if at is not None)


def _notes(request: Request | None, steps: Sequence[StepView], failing: Sequence[str]) -> list[str]:
    notes: list[str] = []
    if request is None:
        return notes
    if request.state is _S.READY and failing:
        notes.append(f"it was Ready, and is not now: {_these(failing, 'probe')} failed when last asked")
    if overdue := [step.id for step in steps if step.overdue]:
        notes.append(f"{_these(overdue, 'step')} kept beyond the date: repair it, or dispose of it")
    if lost := [step.id for step in steps if step.kind is None]:
        notes.append(f"{_these(lost, 'step')} made by this request, and not in the blueprint any more")
    if request.cut:
        notes.append(f"{request.cut} lines of its journal were cut: something happened that is not known")
    return notes


def _these(names: Sequence[str], what: str) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{what}{'s' if len(names) > 1 else ''} {', '.join(names[:3])}{more}"
