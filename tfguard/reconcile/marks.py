"""The conclusions that a step can end with, and objects as a record keeps them. Pure."""

from __future__ import annotations

from dataclasses import replace

from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import ObservedObject, Outcome, Step, StepStatus
from tfguard.model.state import StateInstance


def recorded(step: Step, held: StateInstance) -> Step:
    """The step's object is in state, perhaps tainted."""
    if held.tainted:
        evidence = Evidence(EvidenceKind.TAINTED, f"the state holds {name_of(held)}, tainted")
        return replace(step, outcome=Outcome.TAINTED, evidence=(evidence,))
    evidence = Evidence(EvidenceKind.IN_STATE, f"the state holds {name_of(held)}")
    return replace(step, outcome=Outcome.RECORDED, evidence=(evidence,))


def absent(step: Step, kind: EvidenceKind, detail: str) -> Step:
    """Nothing was made, or nothing is left of it, and this proves it."""
    return replace(step, outcome=Outcome.ABSENT, observed=(), evidence=(Evidence(kind, detail),))


def gone(step: Step, kind: EvidenceKind, detail: str) -> Step:
    """What was there is confirmed to be gone."""
    return replace(absent(step, kind, detail), status=StepStatus.DESTROYED)


def unknown_unless_seen(step: Step, kind: EvidenceKind, detail: str) -> Step:
    """Nothing is proved, for this reason; but a step for which an object was seen already keeps its outcome."""
    if step.outcome is not None and step.observed:
        return step
    return replace(step, outcome=Outcome.UNKNOWN, evidence=(*step.evidence, Evidence(kind, detail)))


def name_of(instance: StateInstance) -> str:
    """What to call an object of a state: its first key, or its address."""
    return next(iter(instance.identity.values()), instance.address)


def observe(found: CloudObject, *, in_state: bool, confidence: Confidence) -> ObservedObject:
    """An object of a listing as it is kept in a record; its tags are not, since anything may stand in them."""
    return ObservedObject(
        type=found.type,
        id=found.id,
        import_id=found.import_id,
        cloud=found.cloud,
        account=found.account,
        region=found.region,
        in_state=in_state,
        confidence=confidence,
        arn=found.arn,
        name=found.name,
        created_at=found.created_at,
        stateful=found.stateful,
        soft_deleted=found.soft_deleted,
        gone_after=found.gone_after,
    )


def with_finding(observed: ObservedObject) -> ObservedObject:
    """The object with the id of the finding that it is, derived from its identity as everywhere."""
    key = CloudObject(observed.cloud, observed.account, observed.region, observed.type, observed.id, observed.import_id)
    return replace(observed, finding_id=key.finding_id)


def leftover(step: Step, found: CloudObject) -> ObservedObject:
    """The very object that a step was about, which exists and has left the state."""
    what = "the object that this step was to delete" if step.action.deletes else "the object that this step is about"
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, what),)
    seen = observe(found, in_state=False, confidence=Confidence.CERTAIN)
    return with_finding(replace(seen, addresses=(step.address,), evidence=evidence))


def older(found: CloudObject) -> ObservedObject:
    """An object that was there before the run; it is shown and is no finding."""
    return observe(found, in_state=False, confidence=Confidence.CERTAIN)
