"""What an alert asks of a blueprint's request. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from tfguard.model.blueprint_request import UNSEEN, RequestState
from tfguard.model.blueprint_view import BlueprintCounts, BlueprintView, ObjectView, StepView
from tfguard.model.disposition import DispositionKind
from tfguard.model.operation import StepStatus

_Identity = tuple[str, tuple[tuple[str, str], ...]]
_GONE = (StepStatus.DESTROYED, StepStatus.ABSENT)


def blueprint_counts(view: BlueprintView) -> BlueprintCounts:
    """Count in what the owner sees. The overdue age is since the window of the partial failure ended, or since the date
    of a retained step passed, whichever is longer ago."""
    now = view.now
    failure_late = view.repair_by is not None and view.repair_by <= now
    late = [step.until for step in view.steps if step.overdue and step.until is not None]
    late += [view.repair_by] if failure_late and view.repair_by is not None else []
    return BlueprintCounts(
        blueprint=view.blueprint,
        file=view.file,
        state=view.state,
        state_age=(now - view.since).total_seconds() if view.since else 0,
        stuck=view.stuck,
        stuck_age=(now - view.moved_at).total_seconds() if view.stuck and view.moved_at else 0,
        duplicates=len(list(duplicates(view.steps))),
        partial_failure_overdue=failure_late,
        overdue_age=(now - min(late)).total_seconds() if late else 0,
        retained_overdue=sum(step.overdue for step in view.steps),
        ready_probes_failing=len(view.failing_probes) if view.state is RequestState.READY else 0,
        ready_not_now=view.state is RequestState.READY and not view.ready_now,
        steps=Counter(step.status for step in view.steps),
    )


def duplicates(steps: Iterable[StepView]) -> Iterator[str]:
    """What exists more than once, as far as the record tells, a line each: an id that two steps or addresses have, and
    an address, or else a planned identity, with several ids. What is gone, and what was given up, does not count."""
    owners: dict[tuple[str, str], set[str]] = defaultdict(set)
    by_address: dict[str, set[str]] = defaultdict(set)
    by_identity: dict[_Identity, set[str]] = defaultdict(set)
    named: dict[_Identity, str] = {}
    for step, found in _standing(steps):
        where = f"{step.id}: {found.address}"
        observed = found.observed_id or ""
        owners[found.type, observed].add(where)
        by_address[where].add(observed)
        if found.desired:
            identity = (found.type, tuple(sorted(found.desired.items())))
            by_identity[identity].add(observed)
            named.setdefault(identity, where)
    for (kind, observed), places in sorted(owners.items()):
        if len(places) > 1:
            yield f"{kind} {observed} is an object of {' and of '.join(sorted(places))}"
    several = {where for where, ids in by_address.items() if len(ids) > 1}
    for where, ids in by_address.items():
        if where in several:
            yield f"{where} has {len(ids)} objects: {', '.join(sorted(ids))}"
    for identity, ids in by_identity.items():
        if len(ids) > 1 and named[identity] not in several:
            yield f"{named[identity]} and another address want one identity: {', '.join(sorted(ids))}"


def _standing(steps: Iterable[StepView]) -> Iterator[tuple[StepView, ObjectView]]:
    for step in steps:
        for found in step.objects:
            given_up = found.disposition in (DispositionKind.DESTROY.value, StepStatus.DESTROYED.value, UNSEEN)
            if found.observed_id and step.status not in _GONE and not given_up:
                yield step, found
