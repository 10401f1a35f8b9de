"""From operations to findings: the stray objects that somebody has to decide about. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tfguard.model.disposition import Disposition
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage, Gap
from tfguard.model.operation import ObservedObject, Operation, Outcome, Step

_VERDICTS: Mapping[Outcome, Verdict] = {
    Outcome.ORPHANED: Verdict.ORPHANED,
    Outcome.DUPLICATED: Verdict.DUPLICATED,
    Outcome.UNKNOWN: Verdict.UNKNOWN,
}


def findings_of(operations: Iterable[Operation], ledger: Sequence[Disposition]) -> tuple[Finding, ...]:
    """Each stray object once, newest operation last; decided ones carry their disposition."""
    found: dict[str, Finding] = {}
    for operation in operations:
        decided = decisions_since(operation, ledger)
        for step in operation.steps:
            for seen in step.observed:
                if seen.finding_id and not seen.in_state and step.outcome in _VERDICTS:
                    found[seen.finding_id] = _finding(operation, step, seen, decided.get(seen.finding_id))
    return tuple(found.values())


def decisions_since(operation: Operation, ledger: Sequence[Disposition]) -> Mapping[str, Disposition]:
    """The decisions by finding id that were made after the operation began.

    An id comes from the object's identity alone: an object that is made again under an old name needs a decision anew.
    """
    return {entry.finding_id: entry for entry in ledger if entry.at >= operation.intent.started_at}


def _finding(operation: Operation, step: Step, seen: ObservedObject, decided: Disposition | None) -> Finding:
    addresses = seen.addresses or (step.address,)
    when = Evidence(EvidenceKind.OPERATION, f"planned by operation {operation.id} ({operation.intent.command})")
    return Finding(
        id=seen.finding_id or "",
        verdict=_VERDICTS[step.outcome or Outcome.UNKNOWN],
        confidence=seen.confidence,
        address=addresses[0] if len(addresses) == 1 else None,
        operation_id=operation.id,
        object=_object(seen),
        evidence=(*(seen.evidence or step.evidence), when),
        disposition=decided,
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
