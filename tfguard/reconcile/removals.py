"""Objects that should be gone: deleted, left over, lagging, or taken along by a parent. Pure."""

from __future__ import annotations

from dataclasses import replace

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.model.disposition import DispositionKind
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Outcome, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.state import StateInstance
from tfguard.reconcile.claims import is_same, known_to_state, same_identity, tells_apart
from tfguard.reconcile.look import Look, listing_key, why_not_all
from tfguard.reconcile.marks import absent, gone, leftover, recorded, unknown_unless_seen
from tfguard.reconcile.matching import lies_elsewhere, same_object
from tfguard.reconcile.probing import with_probe


def deleted(step: Step, look: Look, catalog: Catalog, held: StateInstance | None) -> Step:
    """A step whose object should be gone, or whose object left the state."""
    if held is not None:
        return recorded(step, held)
    if catalog.state_only(step.provider):
        return gone(step, EvidenceKind.NOT_LISTED, "this provider keeps objects in the state alone")
    listing, kind = look.listing(listing_key(step)), catalog.get(step.type)
    if kind is not None and kind.parent is not None and listing is None:
        return child_of_parent(step, look, kind)
    if kind is None or (listing is None and step.action.deletes):
        if step.status is StepStatus.OK:
            return gone(step, EvidenceKind.ENGINE_EVENT, f"{_by_engine(step)}; the catalogue cannot list the type")
        return unknown_unless_seen(step, EvidenceKind.NOT_LOOKED_FOR, f"the catalogue cannot list {step.type}")
    if listing is None:
        return unknown_unless_seen(step, EvidenceKind.GAP, f"no list of {step.type} was made")
    if (left := still_listed(step, look, catalog)) is not None:
        return left_over(step, left, look)
    if (why := why_not_all(listing)) is not None:
        if listing.gap is None and step.status is StepStatus.OK:  # no look could tell more than the engine did
            return gone(step, EvidenceKind.ENGINE_EVENT, f"{_by_engine(step)}; {why}")
        return unknown_unless_seen(step, EvidenceKind.GAP, why)
    if lies_elsewhere(kind, step.before, listing.scope.account, listing.scope.region):
        return unknown_unless_seen(
            step, EvidenceKind.GAP, f"{listing.scope}: the object lies elsewhere ({step.before[kind.arn_key or 'arn']})"
        )
    if not tells_apart(kind, step.before):
        if step.status is StepStatus.OK:
            return gone(step, EvidenceKind.ENGINE_EVENT, f"{_by_engine(step)}; its name may not be kept")
        return unknown_unless_seen(step, EvidenceKind.NOT_LOOKED_FOR, "which object this is may not be kept")
    return gone(step, EvidenceKind.NOT_LISTED, f"not among the {len(listing.objects)} objects in {listing.scope}")


def _by_engine(step: Step) -> str:
    return "the engine deleted it" if step.action.deletes else "the engine's own read did not find it"


def forgotten(step: Step, look: Look, catalog: Catalog, held: StateInstance | None) -> Step:
    """An object that left the state on purpose and stays at the provider: a decision, named with its finding.

    That a list does not have it proves nothing here, since nobody waits for the list to catch up.
    """
    if held is not None:
        return recorded(step, held)
    if catalog.state_only(step.provider):
        return gone(step, EvidenceKind.NOT_LISTED, "this provider keeps objects in the state alone")
    left, listing = still_listed(step, look, catalog), look.listing(listing_key(step))
    evidence = [Evidence(EvidenceKind.REMOVED_FROM_STATE, "it was given up on purpose, and left as it is")]
    if listing is None or (left is None and not listing.complete):
        evidence.append(Evidence(EvidenceKind.NOT_LOOKED_FOR, "whether it still exists could not be looked up"))
    elif left is None:
        evidence.append(Evidence(EvidenceKind.NOT_LISTED, f"not among the objects in {listing.scope} now"))
    return replace(
        step,
        status=StepStatus.RETAINED,
        outcome=Outcome.ORPHANED if left else Outcome.UNKNOWN,
        disposition=DispositionKind.RETAIN.value,
        observed=(leftover(step, left),) if left else (),
        evidence=tuple(evidence),
    )


def dropped(step: Step, look: Look, catalog: Catalog) -> Step:
    """An object that a refresh or another state dropped from the state, though nobody asked for that.

    A refresh has read it itself. What a pushed state lacks nobody has read: a list may be late for it.
    """
    found = deleted(step, look, catalog, None)
    if found.outcome is not Outcome.ABSENT:
        return found
    if step.status is not StepStatus.OK and not look.grace_over and not catalog.state_only(step.provider):
        detail = f"not listed; that proves it gone from {look.grace_ends:%H:%M:%SZ} on"
        return unknown_unless_seen(step, EvidenceKind.NOT_LISTED, detail)
    return replace(found, status=StepStatus.ABSENT)


def held_for_keep(step: Step, look: Look, catalog: Catalog) -> StateInstance | None:
    """What the state still has of the object that was to stay, or to leave on purpose: at its address, and the same."""
    here = (held for held in look.state.instances if (held.address, held.deposed) == (step.address, step.deposed))
    return next((held for held in here if is_same(step, held, catalog)), None)


def held_for_delete(step: Step, held: StateInstance | None, look: Look, catalog: Catalog) -> StateInstance | None:
    """The instance that a delete is about: the current one, or a deposed one of the same address."""
    kind = catalog.get(step.type)
    if kind is None or held is None or not (tells_apart(kind, step.before) and tells_apart(kind, held.identity)):
        return held
    here = (instance for instance in look.state.instances if instance.address == step.address)
    return next((instance for instance in here if same_identity(kind, step.before, instance.identity)), None)


def left_over(step: Step, left: CloudObject, look: Look) -> Step:
    """Out of the state and still listed: a listing may lag behind a delete that went through, but not for ever."""
    may_be_done = step.status is StepStatus.OK or step.action is Action.REPLACE
    if may_be_done and not look.grace_over and not look.window(listing_key(step)).made_after_start(left):
        return lagging(step, look)
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, f"{left.id} is listed, and left the state"),)
    return replace(step, outcome=Outcome.ORPHANED, observed=(leftover(step, left),), evidence=evidence)


def lagging(step: Step, look: Look) -> Step:
    """Deleted as the engine says, and still listed within the grace: a list may be late."""
    what = "deleted" if step.action.deletes else "out of the state"
    detail = f"{what}, and still listed; that proves a leftover from {look.grace_ends:%H:%M:%SZ} on"
    return unknown_unless_seen(step, EvidenceKind.ENGINE_EVENT, detail)


def child_of_parent(step: Step, look: Look, kind: ResourceType) -> Step:
    """A child that a run does not list: gone only when its parent is confirmed gone (rule 16)."""
    if step.status is StepStatus.OK and step.action is Action.DELETE:
        return gone(step, EvidenceKind.ENGINE_EVENT, "the engine deleted it")
    probed = with_probe(step, look)
    if probed.outcome is not None:
        return probed
    rule = kind.parent
    name = (step.before or step.desired).get(rule.attribute) if rule else None
    listing = look.listing((rule.type, step.provider_key, step.own_place or "")) if rule else None
    if rule is None or name is None or listing is None:
        return unknown_unless_seen(step, EvidenceKind.GAP, f"the parent of this {step.type} is not known")
    if any(found.identity.get(rule.parent_attribute) == name for found in listing.objects):
        return unknown_unless_seen(step, EvidenceKind.GAP, f"its parent {rule.type} {name} still exists")
    if (why := why_not_all(listing)) is not None:
        return unknown_unless_seen(step, EvidenceKind.GAP, why)
    if not look.grace_over:
        detail = f"its parent {rule.type} {name} is not listed; that proves it gone from {look.grace_ends:%H:%M:%SZ} on"
        return unknown_unless_seen(step, EvidenceKind.NOT_LISTED, detail)
    detail = f"its parent {rule.type} {name} is gone, and takes it along"
    return (gone if step.action is Action.DELETE else absent)(step, EvidenceKind.NOT_LISTED, detail)


def still_listed(step: Step, look: Look, catalog: Catalog) -> CloudObject | None:
    """What a step was to take away, where it is listed and no state knows it."""
    kind, listing = catalog.get(step.type), look.listing(listing_key(step))
    if kind is None or listing is None or not step.before:
        return None
    same = (found for found in listing.objects if same_object(kind, step.before, found))
    return next((found for found in same if not known_to_state(kind, found, look)), None)
