"""From operations to findings: the stray objects that somebody has to decide about. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from tfguard.model.disposition import Disposition, DispositionKind, latest
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage, Gap
from tfguard.model.operation import ObservedObject, Operation, Outcome, Step

_VERDICTS: Mapping[Outcome, Verdict] = {
    Outcome.ORPHANED: Verdict.ORPHANED,
    Outcome.DUPLICATED: Verdict.DUPLICATED,
    Outcome.UNKNOWN: Verdict.UNKNOWN,
}


def findings_of(operations: Iterable[Operation], ledger: Sequence[Disposition], now: datetime) -> tuple[Finding, ...]:
    """Each stray object once, newest operation last; decided ones carry the disposition that holds `now`."""
    found: dict[str, Finding] = {}
    for operation in operations:
        decided = decisions_since(operation, ledger)
        for step in operation.steps:
            for seen in step.observed:
                if not seen.finding_id or seen.in_state:
                    continue
                decision = decided.get(seen.finding_id)
                if step.outcome in _VERDICTS or waits(seen, now) or (seen.soft_deleted and came_back(decision)):
                    found[seen.finding_id] = _finding(operation, step, seen, decision, now)
    return tuple(found.values())


def waits(seen: ObservedObject, now: datetime) -> bool:
    """Whether an object was deleted when it was seen, and may be there still: its waiting time is not over."""
    return seen.soft_deleted and (seen.gone_after is None or now < seen.gone_after)


def came_back(decision: Disposition | None) -> bool:
    """Whether the last word about an object is that it was restored: it does not wait for its end any more."""
    return decision is not None and decision.kind is DispositionKind.RESTORE and decision.stage is None


def decisions_since(operation: Operation, ledger: Sequence[Disposition]) -> Mapping[str, Disposition]:
    """The last decisions by finding id that are about what the operation left, whether or not they still hold."""
    began = operation.intent.started_at
    return {name: entry for name, entry in latest(ledger).items() if is_about(entry, began, began)}


def is_about(entry: Disposition, first_seen: datetime, last_seen: datetime) -> bool:
    """Whether a last decision is about the object that was seen from `first_seen` to `last_seen`.

    An id comes from the object's identity alone: an object that is made again under an old name needs a decision anew.
    So a verified deletion, and an import, say nothing of what was seen since. No clock ends a retention, though: it
    may be the one of another host, and wrong. Its own date does, or a release.
    """
    if entry.kind is DispositionKind.RELEASE or (entry.kind is DispositionKind.RETAIN and entry.until is not None):
        return True
    is_no_stray_then = entry.kind is not DispositionKind.RETAIN and entry.holds(entry.at)
    return entry.at >= (last_seen if is_no_stray_then else first_seen)


def holding(decided: Mapping[str, Disposition], now: datetime) -> Mapping[str, Disposition]:
    """Those of the decisions that settle their finding `now`."""
    return {name: entry for name, entry in decided.items() if entry.holds(now)}


def lapsed(entry: Disposition | None, now: datetime) -> tuple[Evidence, ...]:
    """What is to be told of a finding whose last decision does not hold (any more); nothing where one does."""
    if entry is None or entry.holds(now):
        return ()
    by = f"{entry.owner or entry.actor}: {entry.reason}"
    match entry.kind:
        case DispositionKind.RETAIN:
            return (Evidence(EvidenceKind.OVERDUE, f"overdue: kept until {entry.until:%Y-%m-%d %H:%M}Z by {by}"),)
        case DispositionKind.RELEASE:
            return (Evidence(EvidenceKind.RELEASED, f"was kept, and released by {by}"),)
        case DispositionKind.RESTORE:
            return (Evidence(EvidenceKind.RESTORED, restored(entry)),)
        case _:
            stage = entry.stage.value if entry.stage else "unknown"
            at = f"{entry.at:%Y-%m-%d %H:%M}Z"
            return (
                Evidence(EvidenceKind.DELETION, f"its deletion is {stage} since {at} by {entry.actor}: {entry.reason}"),
            )


def restored(entry: Disposition) -> str:
    """What the ledger tells of a restoration after which nothing else was decided."""
    what = "it was restored" if entry.stage is None else f"its restoration is {entry.stage.value}"
    return f"{what} at {entry.at:%Y-%m-%d %H:%M}Z by {entry.actor}, and not imported since: {entry.reason}"


def _finding(
    operation: Operation, step: Step, seen: ObservedObject, decided: Disposition | None, now: datetime
) -> Finding:
    addresses = seen.addresses or (step.address,)
    verdict, told = _VERDICTS.get(step.outcome or Outcome.UNKNOWN, Verdict.SOFT_DELETED), seen.evidence or step.evidence
    if seen.soft_deleted and came_back(decided):
        verdict, seen = Verdict.ORPHANED, replace(seen, soft_deleted=False, gone_after=None)
        told = tuple(item for item in told if item.kind is not EvidenceKind.SOFT_DELETED)
    when = Evidence(EvidenceKind.OPERATION, f"planned by operation {operation.id} ({operation.intent.command})")
    return Finding(
        id=seen.finding_id or "",
        verdict=verdict,
        confidence=seen.confidence,
        address=addresses[0] if len(addresses) == 1 else None,
        operation_id=operation.id,
        object=object_of(seen),
        evidence=(*told, when, *lapsed(decided, now)),
        disposition=decided if decided and decided.holds(now) else None,
        addresses=addresses,
        provider_key=step.provider_key,
    )


def object_of(seen: ObservedObject) -> CloudObject:
    """What a record keeps of an object, as one."""
    return CloudObject(
        cloud=seen.cloud,
        account=seen.account,
        region=seen.region,
        type=seen.type,
        id=seen.id,
        import_id=seen.import_id,
        arn=seen.arn,
        name=seen.name,
        created_at=seen.created_at,
        tags=seen.tags,
        stateful=seen.stateful,
        soft_deleted=seen.soft_deleted,
        gone_after=seen.gone_after,
    )


def coverage_of(operations: Sequence[Operation], live: str | None = None) -> Coverage:
    """How far the looks of these operations reached: refused lists, and open steps that no finding stands for.

    `live` is the id of the operation that runs now, which nobody can look up before it ends.
    """
    gaps: dict[str, Gap] = {}
    for operation in operations:
        if operation.result is None:
            running = "it is running: look again when it has ended"
            reason = running if operation.id == live else "it was not looked up yet: `tfguard recover`"
            gaps[operation.id] = Gap(f"operation {operation.id}", reason)
            continue
        for text in operation.result.gaps:
            scope, _, reason = text.partition(": ")
            gaps[text] = Gap(scope, reason or "not looked at")
        for step in operation.steps:
            if step.open and not any(seen.finding_id and not seen.in_state for seen in step.observed):
                reason = step.evidence[0].detail if step.evidence else "not looked up"
                gaps[f"{operation.id} {step.address}"] = Gap(step.address, reason)
    types = {entry.type for operation in operations for entry in operation.intent.baseline}
    return Coverage(states_read=1, types_listed=len(types), gaps=tuple(gaps.values()))


def summary_of(findings: Sequence[Finding]) -> Mapping[str, int]:
    """How many findings there are of each verdict; decided ones are not counted."""
    return dict(Counter(finding.verdict.value for finding in findings if finding.disposition is None))
