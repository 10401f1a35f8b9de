"""What the engine's own read adds where no list answers (the ladder's third step). Pure."""

from __future__ import annotations

from dataclasses import replace

from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.operation import ObservedObject, Outcome, Step
from tfguard.reconcile.look import Look, listing_key
from tfguard.reconcile.marks import unknown_unless_seen, with_finding


def by_probe(step: Step, look: Look) -> Step:
    """A type that nobody can list: the engine's own read is all there is (the ladder's third step)."""
    probed = with_probe(step, look)
    if probed.outcome is not None:
        return probed
    return unknown_unless_seen(step, EvidenceKind.NOT_LOOKED_FOR, f"the catalogue cannot list {step.type}")


def with_probe(step: Step, look: Look) -> Step:
    probe = look.probes.get(step.address)
    if probe is None or probe.exists is None:
        return step
    evidence = (Evidence(EvidenceKind.ENGINE_READ, probe.detail),)
    listing = look.listing(listing_key(step))
    scope = listing.scope if listing else None
    if probe.exists and probe.import_id:
        observed = ObservedObject(
            type=step.type,
            id=probe.import_id,
            import_id=probe.import_id,
            cloud=scope.cloud if scope else step.cloud,
            account=scope.account if scope else step.account,
            region=scope.region if scope else step.region or "",
            in_state=False,
            confidence=Confidence.LIKELY,
            addresses=(step.address,),
            evidence=evidence,
        )
        return replace(step, outcome=Outcome.ORPHANED, observed=(with_finding(observed),), evidence=evidence)
    if probe.exists:
        return step
    if look.grace_over:
        return replace(step, outcome=Outcome.ABSENT, evidence=evidence)
    detail = f"{probe.detail} yet; that proves absence from {look.grace_ends:%H:%M:%SZ} on"
    return unknown_unless_seen(step, EvidenceKind.ENGINE_READ, detail)
