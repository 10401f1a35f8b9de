"""From operations to findings: the stray objects that somebody has to decide about. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
                if seen.finding_id and not seen.in_state and step.outcome in _VERDICTS:
                    found[seen.finding_id] = _finding(operation, step, seen, decided.get(seen.finding_id), now)
    return tuple(found.values())


def decisions_since(operation: Operation, ledger: Sequence[Disposition]) -> Mapping[str, Disposition]:
    """The last decisions by finding id that were made after the operation began, whether or not they still hold.

    An id comes from the object's identity alone: an object that is made again under an old name needs a decision anew.
    """
    return latest(entry for entry in ledger if entry.at >= operation.intent.started_at)


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
        case _:
            stage = entry.stage.value if entry.stage else "unknown"
            at = f"{entry.at:%Y-%m-%d %H:%M}Z"
            return (
                Evidence(EvidenceKind.DELETION, f"its deletion is {stage} since {at} by {entry.actor}: {entry.reason}"),
            )


def _finding(
    operation: Operation, step: Step, seen: ObservedObject, decided: Disposition | None, now: datetime
) -> Finding:
    addresses = seen.addresses or (step.address,)
    when = Evidence(EvidenceKind.OPERATION, f"planned by operation {operation.id} ({operation.intent.command})")
    return Finding(
        id=seen.finding_id or "",
        verdict=_VERDICTS[step.outcome or Outcome.UNKNOWN],
        confidence=seen.confidence,
        address=addresses[0] if len(addresses) == 1 else None,
        operation_id=operation.id,
        object=_object(seen),
        evidence=(*(seen.evidence or step.evidence), when, *lapsed(decided, now)),
        disposition=decided if decided and decided.holds(now) else None,
        addresses=addresses,
        provider_key=step.provider_key,
    )


def _object(seen: ObservedObject) -> CloudObject:
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
    )


def coverage_of(operations: Sequence[Operation]) -> Coverage:
    """How far the looks of these operations reached: refused lists, and open steps that no finding stands for."""
    gaps: dict[str, Gap] = {}
    for operation in operations:
        if operation.result is None:
            gaps[operation.id] = Gap(f"operation {operation.id}", "it was not looked up yet: `tfguard recover`")
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
