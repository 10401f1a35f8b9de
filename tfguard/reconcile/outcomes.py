"""From evidence to outcomes: what became of each planned step. Pure; nothing is looked up here.

The rules are docs/design.md's 3, 4, 5, 11, 12 and 16: an outcome needs evidence, an incomplete look proves no absence,
several candidates stay several, and a child is gone only with its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.failure import CREATES, FailureKind
from tfguard.model.inventory import CloudObject, Listing
from tfguard.model.operation import ObservedObject, Outcome, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.secrets import is_withheld
from tfguard.model.state import StateInstance
from tfguard.reconcile.claims import Claims, observed_match, same_identity
from tfguard.reconcile.look import Look, listing_key, never_started, why_not_all
from tfguard.reconcile.marks import (
    absent,
    leftover,
    name_of,
    observe,
    older,
    recorded,
    unknown_unless_seen,
    with_finding,
)
from tfguard.reconcile.matching import Match, same_object
from tfguard.reconcile.probing import by_probe, with_probe
from tfguard.reconcile.removals import (
    child_of_parent,
    deleted,
    dropped,
    forgotten,
    held_for_delete,
    held_for_keep,
    lagging,
    left_over,
    still_listed,
)
from tfguard.reconcile.waiting import with_waiting

MASKED = "a key of its address is withheld, and the folder that could tell which one it is is not here"
"""Why nothing is known of a step whose address in the record is masked."""


def conclude(steps: Sequence[Step], look: Look, catalog: Catalog) -> tuple[Step, ...]:
    """Each step with the outcome that the evidence gives, and the objects that were seen for it."""
    claims = Claims(steps, look, catalog)
    concluded = [_as_far_as_told(step, _conclude(step, look, catalog, claims), look) for step in steps]
    return tuple(with_waiting(step, look, catalog) for step in concluded)


def _as_far_as_told(step: Step, concluded: Step, look: Look) -> Step:
    """What was concluded, unless it rests on a masked address that nobody can tell again: that proves no absence."""
    seen = concluded.outcome in (Outcome.ORPHANED, Outcome.DUPLICATED)
    if look.masks_known or seen or not is_withheld(step.address):
        return concluded
    evidence = Evidence(EvidenceKind.NOT_LOOKED_FOR, MASKED)
    return replace(step, outcome=Outcome.UNKNOWN, observed=concluded.observed, evidence=(evidence,))


def _conclude(step: Step, look: Look, catalog: Catalog, claims: Claims) -> Step:
    if step.status is StepStatus.RUNNING:
        step = replace(step, status=StepStatus.ERROR)  # attempted and not finished
    held = look.state.at(step.address)
    if step.action is Action.FORGET:
        return forgotten(step, look, catalog, held_for_keep(step, look, catalog))
    if step.action is Action.NOOP and held_for_keep(step, look, catalog) is None:
        return dropped(step, look, catalog)
    if step.action is Action.DELETE:
        return deleted(step, look, catalog, held_for_delete(step, held, look, catalog))
    if held is not None:
        return _held(step, held, look, catalog, claims.of(step), claims)
    if look.errored is not None and (lost := look.errored.at(step.address)):
        detail = f"in errored.tfstate as {name_of(lost)}, which has not been pushed"
        return replace(step, outcome=Outcome.ORPHANED, evidence=(Evidence(EvidenceKind.ERRORED_STATE, detail),))
    if not step.action.creates:
        return deleted(step, look, catalog, held)
    return _missing(step, look, catalog, claims)


def _held(
    step: Step, held: StateInstance, look: Look, catalog: Catalog, extra: Sequence[Match], claims: Claims
) -> Step:
    """A step whose address has an object in state: recorded or tainted, and duplicated when there is one more."""
    plain = recorded(step, held)
    evidence = list(plain.evidence)
    extra = [match for match in extra if match.confidence is not Confidence.POSSIBLE]
    if not extra and _lost_half(step, held, look, catalog):
        made = _not_found(step, look, catalog, claims)
        if made.outcome is Outcome.UNKNOWN:
            return replace(made, evidence=(*evidence, *made.evidence))
        if made.outcome is Outcome.ORPHANED:
            return replace(made, outcome=Outcome.DUPLICATED, evidence=(*evidence, *made.evidence))
    observed = [*_state_objects(step, held, look, catalog), *(observed_match(match, claims) for match in extra)]
    outcome = plain.outcome
    if extra:
        outcome = Outcome.DUPLICATED
        names = ", ".join(match.found.id for match in extra)
        evidence.append(Evidence(EvidenceKind.SEVERAL_CANDIDATES, f"the state does not know {names}"))
    if step.action is Action.REPLACE and (old := still_listed(step, look, catalog)):
        if step.status is StepStatus.OK and not extra and not look.grace_over:
            return lagging(step, look)
        outcome = Outcome.DUPLICATED
        observed.append(leftover(step, old))
        evidence.append(Evidence(EvidenceKind.SEVERAL_CANDIDATES, f"the replaced object {old.id} is still listed"))
    return replace(step, outcome=outcome, observed=tuple(observed), evidence=tuple(evidence))


def _lost_half(step: Step, held: StateInstance, look: Look, catalog: Catalog) -> bool:
    """Whether the state still holds what a replacement was to take away, while its create may have gone through."""
    if step.action is not Action.REPLACE or step.status is not StepStatus.ERROR:
        return False
    if step.address in look.open_creates:
        return True
    kind = catalog.get(step.type)
    return not look.stream_whole and kind is not None and same_identity(kind, step.before, held.identity)


def _state_objects(step: Step, held: StateInstance, look: Look, catalog: Catalog) -> list[ObservedObject]:
    kind, listing = catalog.get(step.type), look.listing(listing_key(step))
    if kind is None or listing is None:
        return []
    same = [found for found in listing.objects if same_object(kind, held.identity, found)]
    return [observe(found, in_state=True, confidence=Confidence.CERTAIN) for found in same]


def _missing(step: Step, look: Look, catalog: Catalog, claims: Claims) -> Step:
    """A planned create without an object in state."""
    matches = claims.of(step)
    strong = [match for match in matches if match.confidence is not Confidence.POSSIBLE]
    observed = tuple(observed_match(match, claims) for match in strong or matches)
    old = still_listed(step, look, catalog) if step.action is Action.REPLACE else None
    if old is not None and any(match.found is old for match in matches):
        old = None
    failure = look.failures.get(step.address)
    if failure and failure.kind is FailureKind.ALREADY_EXISTS and strong and not any(map(_timely, strong)):
        evidence = (
            Evidence(EvidenceKind.SEVERAL_CANDIDATES, f"{failure.detail}; whether this run made it is not known"),
        )
        return replace(step, outcome=Outcome.UNKNOWN, observed=observed, evidence=evidence)
    if strong:
        orphaned = _orphaned(step, strong, observed, claims)
        if old is None or not look.grace_over:
            return orphaned
        return replace(orphaned, outcome=Outcome.DUPLICATED, observed=(*observed, leftover(step, old)))
    if old is not None:
        return left_over(step, old, look)
    if matches:
        detail = f"{len(matches)} new objects of the type, and nothing that ties one of them to this address"
        evidence = (Evidence(EvidenceKind.SEVERAL_CANDIDATES, detail),)
        return replace(step, outcome=Outcome.UNKNOWN, observed=observed, evidence=evidence)
    return _not_found(step, look, catalog, claims)


def _timely(match: Match) -> bool:
    kinds = {evidence.kind for evidence in match.evidence}
    return bool(kinds & {EvidenceKind.BASELINE_DIFFERENCE, EvidenceKind.CREATED_IN_WINDOW, EvidenceKind.ENGINE_EVENT})


def _orphaned(step: Step, strong: Sequence[Match], observed: tuple[ObservedObject, ...], claims: Claims) -> Step:
    evidence = list(strong[0].evidence) if len(strong) == 1 else []
    rivals = {address for match in strong for address in claims.claimants(match.found)}
    outcome = Outcome.ORPHANED
    if len(strong) > len(rivals):
        outcome = Outcome.DUPLICATED
    if len(strong) > 1 or len(rivals) > 1:
        detail = f"{len(strong)} objects fit {len(rivals)} addresses: {', '.join(sorted(rivals))}"
        evidence.append(Evidence(EvidenceKind.SEVERAL_CANDIDATES, detail))
    return replace(step, outcome=outcome, observed=observed, evidence=tuple(evidence))


def _not_found(step: Step, look: Look, catalog: Catalog, claims: Claims) -> Step:
    """Nothing new that fits: absent when that is proved, else unknown."""
    if never_started(step, look):
        return absent(step, EvidenceKind.NEVER_STARTED, "the engine never started this step")
    if catalog.state_only(step.provider):
        return absent(step, EvidenceKind.NOT_LISTED, "this provider keeps objects in the state alone")
    listing, kind = look.listing(listing_key(step)), catalog.get(step.type)
    if kind is not None and kind.parent is not None and listing is None:
        return child_of_parent(step, look, kind)
    if listing is None or kind is None:
        return by_probe(step, look)
    if (why := why_not_all(listing)) is not None:
        return unknown_unless_seen(with_probe(step, look), EvidenceKind.GAP, why)
    before = _older_namesake(step, kind, listing, look)
    if before and (giver := claims.given_up_by(step, kind, before)):
        return _renamed(step, before, giver, look)
    if before:
        detail = f"{before.id} existed before the run; this run did not make it"
        return replace(absent(step, EvidenceKind.EXISTED_BEFORE, detail), observed=(older(before),))
    failure = look.failures.get(step.address)
    if failure and failure.kind is FailureKind.REFUSED and failure.operation in (kind.create, CREATES):
        return absent(step, EvidenceKind.ENGINE_REFUSAL, f"{failure.detail}, and it is not listed")
    if look.grace_over:
        return absent(step, EvidenceKind.NOT_LISTED, f"not among the {len(listing.objects)} objects in {listing.scope}")
    return unknown_unless_seen(
        step, EvidenceKind.NOT_LISTED, f"not listed yet; that proves absence from {look.grace_ends:%H:%M:%SZ} on"
    )


def _older_namesake(step: Step, kind: ResourceType, listing: Listing, look: Look) -> CloudObject | None:
    """An object of the wanted unique name that was there before the run: the create met it, and did not make it."""
    window = look.window(listing_key(step))
    wanted = {name: step.desired[name] for name in kind.unique if name in step.desired}
    if not wanted:
        return None
    return next((o for o in listing.objects if same_object(kind, wanted, o) and window.existed_before(o)), None)


def _renamed(step: Step, found: CloudObject, giver: str, look: Look) -> Step:
    """An object under a name that the run itself gave up: the old one, or what this step made under its name."""
    detail = f"{giver} gives up the name of {found.id} in this run: it is the old object, or the new one"
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, detail),)
    if not look.grace_over and not look.window(listing_key(step)).made_after_start(found):
        return unknown_unless_seen(step, EvidenceKind.DESIRED_IDENTITY, detail)
    seen = observe(found, in_state=False, confidence=Confidence.LIKELY)
    addresses = tuple(dict.fromkeys((step.address, giver)))
    seen = with_finding(replace(seen, addresses=addresses, evidence=evidence))
    return replace(step, outcome=Outcome.ORPHANED, observed=(seen,), evidence=evidence)
