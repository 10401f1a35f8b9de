"""What a run made and somebody has deleted since, where the provider keeps it for a time. Pure.

Such an object is absent: nothing is left to be settled. But it can be brought back, and its name is taken till then.
"""

from __future__ import annotations

from dataclasses import replace

from tfguard.catalog.catalog import Catalog
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Outcome, Step
from tfguard.reconcile.look import Look, listing_key
from tfguard.reconcile.marks import observe, with_finding
from tfguard.reconcile.matching import candidate


def with_waiting(step: Step, look: Look, catalog: Catalog) -> Step:
    """A concluded step with the objects that it made and that are deleted by now, and wait for their end."""
    kind, listing = catalog.get(step.type), look.listing(listing_key(step))
    if kind is None or listing is None or step.outcome is not Outcome.ABSENT or not step.action.creates:
        return step
    window = look.window(listing_key(step))
    matches = [(found, candidate(kind, step.desired, found, window)) for found in listing.soft_deleted]
    surely = [(found, match) for found, match in matches if match and match.confidence is not Confidence.POSSIBLE]
    seen = tuple(
        with_finding(
            replace(
                observe(found, in_state=False, confidence=match.confidence),
                addresses=(step.address,),
                evidence=(said_of(found), *match.evidence),
            )
        )
        for found, match in surely
    )
    told = tuple(said_of(found) for found, _ in surely)
    return replace(step, observed=(*step.observed, *seen), evidence=(*told, *step.evidence))


def said_of(found: CloudObject) -> Evidence:
    """That an object is deleted and waits, with the date where it is told."""
    end = f"gone after {found.gone_after:%Y-%m-%d %H:%M}Z" if found.gone_after else "not gone yet"
    return Evidence(EvidenceKind.SOFT_DELETED, f"{found.import_id} is deleted, and {end}")
