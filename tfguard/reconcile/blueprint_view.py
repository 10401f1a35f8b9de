"""What the owner of a request sees: from the blueprint, the request's record and the decisions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath

from tfguard.model.blueprint import Blueprint, BlueprintStep, StepKind
from tfguard.model.blueprint_decision import Decision, DecisionKind
from tfguard.model.blueprint_request import UNSEEN, Activity, BlueprintObject, Request, RequestState, StepRecord
from tfguard.model.blueprint_view import BlueprintView, ObjectView, PlanOutline, ProbeView, StepView
from tfguard.model.config import format_duration
from tfguard.model.disposition import DispositionKind
from tfguard.model.durations import in_words
from tfguard.model.naming import first_of
from tfguard.model.operation import StepStatus
from tfguard.reconcile.blueprint_advice import blueprint_actions
from tfguard.reconcile.blueprint_objects import holds_data

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
    plans: Mapping[str, PlanOutline] | None = None,
    inputs: Mapping[str, object] | None = None,
) -> BlueprintView:
    """The view at the moment `now`; `request` is None where nothing is on record, as for a draft.

    `decisions` are those of the steps that were decided about, which may be none; `live` tells whether a tfguard is at
    work on the request. For the next commands `command` is how tfguard was called, `file` how the blueprint was named,
    and `folder` where it lies as seen from where the user stands (None: as `file` says, there is no `-chdir`). `owner`
    and `cost_owner` hold where neither the request nor the blueprint names one. `digest` is that of the file as it is;
    without it nobody asks whether it has changed. `plans` is what the engine would do, by step. `inputs` are the values
    that are meant to be applied (None: as the request has them).
    """
    beside = str(PurePath(file).parent) if folder is None else folder
    whose = (request.intent.owner if request else blueprint.owner) or owner
    pays = (request.intent.cost_owner if request else blueprint.cost_owner) or cost_owner
    steps = tuple(_steps(blueprint, request, decisions, now, plans or {}, live=live, owner=whose, cost_owner=pays))
    probes = tuple(_probes(blueprint, request))
    state = request.state if request else None
    seen = _last_seen(steps, probes, tuple(_left_out(blueprint, request)) if request is not None else ())
    repair_by = None
    if request is not None and state is _S.PARTIAL_FAILURE and request.failing_since is not None:
        repair_by = request.failing_since + blueprint.repair_within
    late = repair_by is not None and repair_by <= now
    # A destroy of single steps leaves the request in its state.
    cut_short = request is not None and any(r.status is StepStatus.RUNNING for r in request.steps.values())
    stuck = (state in _UNDER_WAY or cut_short) and not live and not (request is not None and request.terminal)
    edited = request is not None and bool(digest) and digest != request.blueprint_digest
    notes: list[str] = []
    if request is not None:
        window = format_duration(blueprint.repair_within) if late else ""
        notes += _about_time(request, now, stuck=stuck, window=window)
        notes += _notes(request, steps, seen)
        notes += ["the blueprint has changed since it was last applied"] if edited and not request.terminal else []
    actions = blueprint_actions(
        blueprint,
        request,
        steps,
        (*seen.failing, *seen.doubtful),
        file,
        beside,
        live=live,
        command=command,
        changed=bool(edited or seen.undone or seen.unasked),
        inputs=inputs,
    )
    return BlueprintView(
        blueprint=blueprint.name,
        file=file,
        now=now,
        request_id=request.id if request else None,
        state=state,
        created_at=request.intent.created_at if request else None,
        since=request.since if request else None,
        failing_since=request.failing_since if request else None,
        repair_by=repair_by,
        moved_at=_moved_at(request) if request else None,
        live=live,
        stuck=stuck,
        overdue=late or any(step.overdue for step in steps),
        ready_now=state is _S.READY and seen.as_it_was,
        failing_probes=seen.failing,
        changed_steps=(*seen.doubtful, *seen.undone) if state is _S.READY else (),
        owner=whose,
        cost_owner=pays,
        notes=tuple(notes),
        steps=steps,
        probes=probes,
        transitions=request.transitions if request else (),
        next_actions=tuple(actions),
    )


@dataclass(frozen=True, slots=True)
class _LastSeen:
    """What speaks against a request that is Ready: probes that failed, also where the file has them no more, or were
    never asked; steps that are not done; and `doubtful` ones, that are not as they were: an object has vanished, or a
    stack's record or state says something else."""

    failing: tuple[str, ...]
    unasked: tuple[str, ...]
    undone: tuple[str, ...]
    doubtful: tuple[str, ...]

    @property
    def as_it_was(self) -> bool:
        return not (self.failing or self.unasked or self.undone or self.doubtful)


def _last_seen(steps: Sequence[StepView], probes: Sequence[ProbeView], left_out: Sequence[str]) -> _LastSeen:
    asked = [step.id for step in steps if step.kind is StepKind.PROBE and step.status is StepStatus.ERROR]
    doubtful = [
        step.id
        for step in steps
        if step.kind in (StepKind.STACK, None) and (step.status is StepStatus.ERROR or step.decision in _DOUBTS)
    ]
    undone = [step.id for step in steps if step.status is not StepStatus.OK and step.id not in (*asked, *doubtful)]
    return _LastSeen(
        failing=(*(probe.name for probe in probes if probe.status is StepStatus.ERROR), *asked, *left_out),
        unasked=tuple(probe.name for probe in probes if probe.status is StepStatus.PENDING),
        undone=tuple(undone),
        doubtful=tuple(doubtful),
    )


def _steps(
    blueprint: Blueprint,
    request: Request | None,
    decisions: Mapping[str, Decision],
    now: datetime,
    plans: Mapping[str, PlanOutline],
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
    # A probe has made nothing that would stay behind.
    left = {name for name, record in records.items() if record.made and record.activity is not Activity.PROBE}
    lost = [name for name in records if name in left and name not in blueprint.steps]
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
            failure=record.failure,
            activity=record.activity,
            attempts=record.attempts,
            began_at=record.began_at,
            since=record.since,
            interrupted=record.status is StepStatus.RUNNING and not live,
            owner=whose,
            cost_owner=pays,
            until=record.until,
            overdue=record.overdue(now),
            stateful=holds_data(step, record.objects if step is None else record.standing),
            depth=depth.get(name, 0),
            objects=tuple(_object(found, record, whose, pays, step) for found in record.objects),
            plan=plans.get(name),
        )


def _object(
    found: BlueprintObject, record: StepRecord, owner: str, cost_owner: str, step: BlueprintStep | None
) -> ObjectView:
    disposition = found.disposition
    if (record.status in _GONE and disposition != UNSEEN) or found.gone:
        disposition = DispositionKind.DESTROY.value
    elif record.retained:
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
        stateful=holds_data(step, (found,)),
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


def _left_out(blueprint: Blueprint, request: Request) -> Iterator[str]:
    """The probes that failed and that the file has no more, though the request was last worked on with them: they were
    asked since its blueprint last changed."""
    told = [
        (name, record.status, record.since)
        for name, record in request.steps.items()
        if record.activity is Activity.PROBE and name not in blueprint.steps
    ]
    known = {probe.name for probe in blueprint.ready.probes}
    told += [(name, probe.status, probe.at) for name, probe in request.probes.items() if name not in known]
    for name, status, at in told:
        still_its_own = request.changed_at is None or (at is not None and at > request.changed_at)
        if status is StepStatus.ERROR and still_its_own:
            yield name


def _moved_at(request: Request) -> datetime:
    """When anything was last written about the request."""
    times = [request.since, request.changed_at, *(record.since for record in request.steps.values())]
    return max(at for at in (*times, *(probe.at for probe in request.probes.values())) if at is not None)


def _about_time(request: Request, now: datetime, *, stuck: bool, window: str) -> Iterator[str]:
    """What has taken too long; `window` is within what a partial failure was to be repaired, where that is over."""
    if window and request.failing_since is not None:
        yield f"it has failed for {in_words(now - request.failing_since)}, and was to be repaired within {window}"
    if stuck:
        yield f"no tfguard is at work on it; its last sign of life was {in_words(now - _moved_at(request))} ago"


def _notes(request: Request, steps: Sequence[StepView], seen: _LastSeen) -> Iterator[str]:
    ready = request.state is _S.READY
    if ready and seen.failing:
        yield f"it was Ready, and is not now: {_these(seen.failing, 'probe')} failed when last asked"
    if overdue := [step.id for step in steps if step.overdue]:
        yield f"{_these(overdue, 'step')} kept beyond the date: repair it, or dispose of it"
    if lost := [step.id for step in steps if step.kind is None]:
        yield f"{_these(lost, 'step')} made by this request, and not in the blueprint any more"
    if request.cut:
        yield f"{request.cut} lines of its journal were cut: something happened that is not known"
    # While it is Ready nothing else takes a step away.
    taken = [step.id for step in steps if step.id in seen.undone and step.status in _GONE]
    if ready and taken:
        yield f"{_these(taken, 'step')} taken away by `destroy --step`: `apply` makes that anew"
    if ready and (others := [name for name in seen.undone if name not in taken]):
        yield f"it was Ready without {_these(others, 'step')}, and is not now"
    if ready and seen.doubtful:
        yield f"it was Ready, and is not now: see {_these(seen.doubtful, 'step')}"
    if ready and seen.unasked:
        yield f"{_these(seen.unasked, 'probe')} was never asked: whether it is Ready is not known"


def _these(names: Sequence[str], what: str) -> str:
    return f"{what}{'s' if len(names) > 1 else ''} {first_of(names, 3)}"
