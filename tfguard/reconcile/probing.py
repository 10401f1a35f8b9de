"""What the engine's own read adds where no list answers (the ladder's third step). Pure."""

from __future__ import annotations

from dataclasses import replace

from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.failure import FailureKind
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Outcome, Step
from tfguard.reconcile.look import Look, listing_key
from tfguard.reconcile.marks import observe, older, unknown_unless_seen, with_finding


def by_probe(step: Step, look: Look) -> Step:
    """A type that nobody can list: the engine's own read is all there is (the ladder's third step)."""
    probed = with_probe(step, look)
    if probed.outcome is not None:
        return probed
    return unknown_unless_seen(step, EvidenceKind.NOT_LOOKED_FOR, f"the catalogue cannot list {step.type}")


def with_probe(step: Step, look: Look) -> Step:
    """The step with the engine's answer, where it gave one: that an object exists does not say who made it."""
    probe = look.probes.get(step.address)
    if probe is None or probe.exists is None or (probe.exists and not probe.import_id):
        return step
    evidence = Evidence(EvidenceKind.ENGINE_READ, probe.detail)
    if probe.exists:
        return _exists(step, look, probe.import_id, evidence)
    if look.grace_over:
        return replace(step, outcome=Outcome.ABSENT, evidence=(evidence,))
    detail = f"{probe.detail} yet; that proves absence from {look.grace_ends:%H:%M:%SZ} on"
    return unknown_unless_seen(step, EvidenceKind.ENGINE_READ, detail)


def _exists(step: Step, look: Look, import_id: str, evidence: Evidence) -> Step:
    listing, window = look.listing(listing_key(step)), look.window(listing_key(step))
    found = CloudObject(
        cloud=listing.scope.cloud if listing else step.cloud,
        account=listing.scope.account if listing else step.own_account or step.account,
        region=listing.scope.region if listing else step.region or "",
        type=step.type,
        id=import_id,
        import_id=import_id,
    )
    if window.existed_before(found):
        before = Evidence(EvidenceKind.EXISTED_BEFORE, f"{import_id} existed before the run; this run did not make it")
        return replace(step, outcome=Outcome.ABSENT, observed=(older(found),), evidence=(evidence, before))
    failure = look.failures.get(step.address)
    met = failure is not None and failure.kind is FailureKind.ALREADY_EXISTS and not window.baseline_complete
    seen = observe(found, in_state=False, confidence=Confidence.POSSIBLE if met else Confidence.LIKELY)
    seen = with_finding(replace(seen, addresses=(step.address,), evidence=(evidence,)))
    if met:
        what = "the create met an object of that name, and nothing tells who made it"
        doubt = Evidence(EvidenceKind.SEVERAL_CANDIDATES, what)
        return replace(step, outcome=Outcome.UNKNOWN, observed=(seen,), evidence=(evidence, doubt))
    return replace(step, outcome=Outcome.ORPHANED, observed=(seen,), evidence=(evidence,))
