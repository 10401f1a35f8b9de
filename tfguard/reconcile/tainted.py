"""Objects that a state marks for replacement: no strays, since it knows them, and gone with the next apply. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict, tainted_id
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Operation, Step
from tfguard.model.secrets import Withholding
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.reconcile.findings import decisions_since, object_of
from tfguard.reconcile.marks import name_of


@dataclass(frozen=True, slots=True)
class _Told:
    """The newest step that concluded something about an address."""

    operation: Operation
    step: Step


def tainted_findings(
    operations: Sequence[Operation], state: StateSnapshot | None, ledger: Sequence[Disposition], hidden: Withholding
) -> tuple[Finding, ...]:
    """A finding for each tainted object; one that a person has kept since carries that decision.

    The state says what is tainted, `operations` (oldest first) how that came to be; without a state (None: it could
    not be read) they alone tell, and others may have changed it since. `hidden` makes addresses of the state be told as
    the record tells them.
    """
    told = _newest_steps(operations)
    if state is None:
        marked = [address for address, one in told.items() if one.step.tainted]
        kept = _kept(operations, marked, ledger)
        return (*(_of_record(address, told[address], ledger) for address in marked), *kept)
    held = {hidden.address(one.address): one for one in tainted_in(state)}
    found = [_of_state(address, one, state, told.get(address), ledger, hidden) for address, one in held.items()]
    return (*found, *_kept(operations, held.keys(), ledger))


def tainted_in(state: StateSnapshot) -> Iterator[StateInstance]:
    """What the next apply would replace since it is marked; a deposed object it deletes in any case."""
    return (held for held in state.instances if held.tainted and held.deposed is None)


def _newest_steps(operations: Sequence[Operation]) -> Mapping[str, _Told]:
    return {
        step.address: _Told(operation, step)
        for operation in operations
        for step in operation.steps
        if step.outcome is not None and step.deposed is None
    }


def _of_state(
    address: str,
    held: StateInstance,
    state: StateSnapshot,
    told: _Told | None,
    ledger: Sequence[Disposition],
    hidden: Withholding,
) -> Finding:
    finding_id = tainted_id(state.lineage, address)
    if told is None or not told.step.tainted:
        name = hidden.text(name_of(held), "an object")
        evidence = [
            Evidence(EvidenceKind.TAINTED, f"the state holds {name}, tainted"),
            Evidence(EvidenceKind.UNEXPLAINED, "none of the operations that were read tells why"),
        ]
    else:
        evidence = [*_why(told)]
        if again := _untainted(finding_id, told.operation, ledger):
            said = f"untainted at {again.at:%Y-%m-%d %H:%M}Z by {again.actor}, and tainted again since"
            evidence.append(Evidence(EvidenceKind.OPERATION, said))
    seen = _seen(told.step) if told else None
    if seen and not (told and told.step.tainted) and seen.import_id not in held.identity.values():
        seen = None  # that may be one that was replaced since
    return _finding(finding_id, address, Confidence.CERTAIN, told, seen, tuple(evidence))


def _of_record(address: str, told: _Told, ledger: Sequence[Disposition]) -> Finding:
    finding_id = tainted_id(told.operation.lineage, address)
    decided = _untainted(finding_id, told.operation, ledger)
    return _finding(finding_id, address, Confidence.LIKELY, told, _seen(told.step), _why(told), decided)


def _kept(operations: Sequence[Operation], marked: Collection[str], ledger: Sequence[Disposition]) -> Iterator[Finding]:
    """What an operation left tainted, and what somebody has kept since: the untaint itself is a later operation."""
    left = {
        step.address: _Told(operation, step) for operation in operations for step in operation.steps if step.tainted
    }
    for address, one in left.items():
        finding = _of_record(address, one, ledger)
        if address not in marked and finding.disposition is not None:
            yield finding


def _untainted(finding_id: str, operation: Operation, ledger: Sequence[Disposition]) -> Disposition | None:
    entry = decisions_since(operation, ledger).get(finding_id)
    return entry if entry and entry.kind is DispositionKind.UNTAINT else None


def _why(told: _Told) -> tuple[Evidence, ...]:
    operation, step = told.operation, told.step
    failure = [Evidence(EvidenceKind.ENGINE_EVENT, step.error)] if step.error else []
    by = Evidence(EvidenceKind.OPERATION, f"left so by operation {operation.id} ({operation.intent.command})")
    marks = [item for item in step.evidence if item.kind is EvidenceKind.TAINTED] or step.evidence
    return (*marks, *failure, by)


def _seen(step: Step) -> CloudObject | None:
    """The object of the state as a list told it."""
    return next((object_of(seen) for seen in step.observed if seen.in_state), None)


def _finding(
    finding_id: str,
    address: str,
    confidence: Confidence,
    told: _Told | None,
    seen: CloudObject | None,
    evidence: tuple[Evidence, ...],
    decided: Disposition | None = None,
) -> Finding:
    return Finding(
        id=finding_id,
        verdict=Verdict.TAINTED,
        confidence=confidence,
        address=address,
        operation_id=told.operation.id if told and told.step.tainted else None,
        object=seen,
        evidence=evidence,
        disposition=decided,
        addresses=(address,),
        provider_key=told.step.provider_key if told else "",
    )
