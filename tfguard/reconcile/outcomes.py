"""From evidence to outcomes: what became of each planned step. Pure; nothing is looked up here.

The rules are docs/design.md's 3, 4, 5, 11, 12 and 16: an outcome needs evidence, an incomplete look proves no absence,
several candidates stay several, and a child is gone only with its parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tfguard.catalog.loader import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.failure import Failure, FailureKind
from tfguard.model.inventory import CloudObject, Listing
from tfguard.model.operation import BaselineEntry, ObservedObject, Outcome, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.ports import ImportProbe
from tfguard.reconcile.matching import Match, Window, candidate, same_object

ListingKey = tuple[str, str, str]


def listings_for(step: Step, catalog: Catalog) -> tuple[ListingKey, ...]:
    """The listings that a conclusion about this step needs: its own type's, or its parent's where it has none."""
    kind = catalog.get(step.type)
    if kind is None or step.action is Action.FORGET:
        return ()
    if kind.list is not None:
        return (listing_key(step),)
    return ((kind.parent.type, step.provider_key, step.region or ""),) if kind.parent else ()


def listing_key(step: Step) -> ListingKey:
    """Which listing answers for a step: its type, provider configuration and own region."""
    return (step.type, step.provider_key, step.region or "")


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that is known at one moment.

    `errored` is the state in an `errored.tfstate` that nobody has pushed. `stream_whole` tells whether every event that
    the engine wrote was read; only then does "never started" follow from silence. `quiet_since` is when the engine was
    last seen doing something; the consistency grace counts from it.
    """

    state: StateSnapshot
    listings: Mapping[ListingKey, Listing]
    baseline: Sequence[BaselineEntry]
    started_at: datetime
    quiet_since: datetime
    now: datetime
    grace: timedelta
    stream_whole: bool = True
    errored: StateSnapshot | None = None
    failures: Mapping[str, Failure] = field(default_factory=dict)
    probes: Mapping[str, ImportProbe] = field(default_factory=dict)

    @property
    def grace_over(self) -> bool:
        """Whether "not listed" may by now mean "not there"."""
        return self.now >= self.quiet_since + self.grace

    @property
    def grace_ends(self) -> datetime:
        """The moment from which "not listed" means "not there"."""
        return self.quiet_since + self.grace

    def window(self, key: ListingKey) -> Window:
        """The operation's window for one listing."""
        entries = [entry for entry in self.baseline if (entry.type, entry.provider_key, entry.asked_region) == key]
        return Window(
            started_at=self.started_at,
            ended_at=self.quiet_since,
            before=frozenset(found for entry in entries for found in entry.object_ids),
            baseline_complete=bool(entries) and all(entry.complete for entry in entries),
        )


def conclude(steps: Sequence[Step], look: Look, catalog: Catalog) -> tuple[Step, ...]:
    """Each step with the outcome that the evidence gives, and the objects that were seen for it."""
    claims = _Claims(steps, look, catalog)
    return tuple(_conclude(step, look, catalog, claims) for step in steps)


class _Claims:
    """Which unrecorded objects could belong to which steps.

    An object that fits a step without an object in state is not held against a step that has one: a missing create
    explains it better than a duplicate does.
    """

    def __init__(self, steps: Sequence[Step], look: Look, catalog: Catalog) -> None:
        self._found: dict[str, list[Match]] = {}
        self._claimants: dict[str, list[str]] = {}
        creating = [step for step in steps if step.action.creates]
        for missing in (True, False):
            for step in creating:
                if (look.state.at(step.address) is None) is missing:
                    self._claim(step, look, catalog, taken=set() if missing else set(self._claimants))

    def _claim(self, step: Step, look: Look, catalog: Catalog, taken: set[str]) -> None:
        kind = catalog.get(step.type)
        listing = look.listings.get(listing_key(step))
        if kind is None or listing is None:
            return
        window = look.window(listing_key(step))
        for found in listing.objects:
            if found.finding_id in taken or _in_state(kind, found, look.state):
                continue
            match = candidate(kind, step.desired, found, window)
            # What a service usually makes by itself can be what this step wanted; then only its own name will do.
            if match and not (found.ignored_because and match.confidence is not Confidence.CERTAIN):
                self._found.setdefault(step.address, []).append(match)
                self._claimants.setdefault(found.finding_id, []).append(step.address)

    def of(self, step: Step) -> list[Match]:
        """The candidates for a step."""
        return self._found.get(step.address, [])

    def claimants(self, found: CloudObject) -> tuple[str, ...]:
        """The addresses that an object could belong to."""
        return tuple(self._claimants.get(found.finding_id, ()))


def _in_state(kind: ResourceType, found: CloudObject, state: StateSnapshot) -> bool:
    return any(i.type == kind.type and same_object(kind, i.identity, found) for i in state.instances)


def _conclude(step: Step, look: Look, catalog: Catalog, claims: _Claims) -> Step:
    if step.status is StepStatus.RUNNING:
        step = replace(step, status=StepStatus.ERROR)  # attempted and not finished
    held = look.state.at(step.address)
    if step.action is Action.FORGET:
        return replace(step, evidence=(Evidence(EvidenceKind.REMOVED_FROM_STATE, "removed from state on purpose"),))
    if step.action is Action.DELETE:
        return _deleted(step, look, catalog, held)
    if held is not None:
        return _held(step, held, look, catalog, claims.of(step), claims)
    if look.errored is not None and (lost := look.errored.at(step.address)):
        detail = f"in errored.tfstate as {_name(lost)}, which has not been pushed"
        return replace(step, outcome=Outcome.ORPHANED, evidence=(Evidence(EvidenceKind.ERRORED_STATE, detail),))
    if not step.action.creates:
        return _deleted(step, look, catalog, held)
    return _missing(step, look, catalog, claims)


def _name(instance: StateInstance) -> str:
    return next(iter(instance.identity.values()), instance.address)


def _held(
    step: Step, held: StateInstance, look: Look, catalog: Catalog, extra: Sequence[Match], claims: _Claims
) -> Step:
    """A step whose address has an object in state: recorded or tainted, and duplicated when there is one more."""
    kind_of_evidence = EvidenceKind.TAINTED if held.tainted else EvidenceKind.IN_STATE
    evidence = [Evidence(kind_of_evidence, f"the state holds {_name(held)}")]
    extra = [match for match in extra if match.confidence is not Confidence.POSSIBLE]
    observed = [*_state_objects(step, held, look, catalog), *(_observed(match, claims) for match in extra)]
    outcome = Outcome.TAINTED if held.tainted else Outcome.RECORDED
    if extra:
        outcome = Outcome.DUPLICATED
        names = ", ".join(match.found.id for match in extra)
        evidence.append(Evidence(EvidenceKind.SEVERAL_CANDIDATES, f"the state does not know {names}"))
    if step.action is Action.REPLACE and (old := _still_listed(step, look, catalog, held)):
        outcome = Outcome.DUPLICATED
        observed.append(_leftover(step, old))
        evidence.append(Evidence(EvidenceKind.SEVERAL_CANDIDATES, f"the replaced object {old.id} is still listed"))
    return replace(step, outcome=outcome, observed=tuple(observed), evidence=tuple(evidence))


def _state_objects(step: Step, held: StateInstance, look: Look, catalog: Catalog) -> list[ObservedObject]:
    kind, listing = catalog.get(step.type), look.listings.get(listing_key(step))
    if kind is None or listing is None:
        return []
    same = [found for found in listing.objects if same_object(kind, held.identity, found)]
    return [observe(found, in_state=True, confidence=Confidence.CERTAIN) for found in same]


def _missing(step: Step, look: Look, catalog: Catalog, claims: _Claims) -> Step:
    """A planned create without an object in state."""
    matches = claims.of(step)
    strong = [match for match in matches if match.confidence is not Confidence.POSSIBLE]
    observed = tuple(_observed(match, claims) for match in strong or matches)
    if strong:
        return _orphaned(step, strong, observed, claims)
    if matches:
        detail = f"{len(matches)} new objects of the type, and nothing that ties one of them to this address"
        evidence = (Evidence(EvidenceKind.SEVERAL_CANDIDATES, detail),)
        return replace(step, outcome=Outcome.UNKNOWN, observed=observed, evidence=evidence)
    return _not_found(step, look, catalog)


def _orphaned(step: Step, strong: Sequence[Match], observed: tuple[ObservedObject, ...], claims: _Claims) -> Step:
    evidence = list(strong[0].evidence) if len(strong) == 1 else []
    rivals = {address for match in strong for address in claims.claimants(match.found)}
    outcome = Outcome.ORPHANED
    if len(strong) > len(rivals):
        outcome = Outcome.DUPLICATED
    if len(strong) > 1 or len(rivals) > 1:
        detail = f"{len(strong)} objects fit {len(rivals)} addresses: {', '.join(sorted(rivals))}"
        evidence.append(Evidence(EvidenceKind.SEVERAL_CANDIDATES, detail))
    return replace(step, outcome=outcome, observed=observed, evidence=tuple(evidence))


def _not_found(step: Step, look: Look, catalog: Catalog) -> Step:
    """Nothing new that fits: absent when that is proved, else unknown."""
    if step.status is StepStatus.PENDING and look.stream_whole:
        return _absent(step, EvidenceKind.NEVER_STARTED, "the engine never started this step")
    if catalog.state_only(step.provider):
        return _absent(step, EvidenceKind.NOT_LISTED, "this provider keeps objects in the state alone")
    listing, kind = look.listings.get(listing_key(step)), catalog.get(step.type)
    if kind is not None and kind.parent is not None and listing is None:
        return _child(step, look, kind)
    if listing is None or kind is None:
        return _by_probe(step, look)
    if listing.gap is not None:
        return _unknown(_with_probe(step, look), EvidenceKind.GAP, f"{listing.gap.scope}: {listing.gap.reason}")
    if before := _older_namesake(step, kind, listing, look):
        detail = f"{before.id} existed before the run; this run did not make it"
        return replace(_absent(step, EvidenceKind.EXISTED_BEFORE, detail), observed=(_older(before),))
    failure = look.failures.get(step.address)
    if failure and failure.kind is FailureKind.REFUSED and failure.operation == kind.create:
        return _absent(step, EvidenceKind.ENGINE_REFUSAL, f"{failure.detail}, and it is not listed")
    if look.grace_over:
        return _absent(
            step, EvidenceKind.NOT_LISTED, f"not among the {len(listing.objects)} objects in {listing.scope}"
        )
    return _unknown(
        step, EvidenceKind.NOT_LISTED, f"not listed yet; that proves absence from {look.grace_ends:%H:%M:%SZ} on"
    )


def _older_namesake(step: Step, kind: ResourceType, listing: Listing, look: Look) -> CloudObject | None:
    """An object of the wanted unique name that was there before the run: the create met it, and did not make it."""
    window = look.window(listing_key(step))
    wanted = {name: step.desired[name] for name in kind.unique if name in step.desired}
    if not wanted:
        return None
    return next((o for o in listing.objects if same_object(kind, wanted, o) and window.existed_before(o)), None)


def _by_probe(step: Step, look: Look) -> Step:
    """A type that nobody can list: the engine's own read is all there is (the ladder's third step)."""
    probed = _with_probe(step, look)
    if probed.outcome is not None:
        return probed
    return _unknown(step, EvidenceKind.GAP, f"the catalogue cannot list {step.type}")


def _with_probe(step: Step, look: Look) -> Step:
    probe = look.probes.get(step.address)
    if probe is None or probe.exists is None:
        return step
    evidence = (Evidence(EvidenceKind.ENGINE_READ, probe.detail),)
    if probe.exists and probe.import_id:
        observed = ObservedObject(
            type=step.type,
            id=probe.import_id,
            import_id=probe.import_id,
            cloud=step.cloud,
            account=step.account,
            region=step.region or "",
            in_state=False,
            confidence=Confidence.LIKELY,
            addresses=(step.address,),
            evidence=evidence,
        )
        return replace(step, outcome=Outcome.ORPHANED, observed=(with_finding(observed),), evidence=evidence)
    if look.grace_over:
        return replace(step, outcome=Outcome.ABSENT, evidence=evidence)
    return step


def _deleted(step: Step, look: Look, catalog: Catalog, held: StateInstance | None) -> Step:
    """A step whose object should be gone, or whose object left the state."""
    if held is not None:
        outcome = Outcome.TAINTED if held.tainted else Outcome.RECORDED
        return replace(
            step, outcome=outcome, evidence=(Evidence(EvidenceKind.IN_STATE, f"the state holds {_name(held)}"),)
        )
    if catalog.state_only(step.provider):
        return _gone(step, EvidenceKind.NOT_LISTED, "this provider keeps objects in the state alone")
    listing, kind = look.listings.get(listing_key(step)), catalog.get(step.type)
    if kind is not None and kind.parent is not None and listing is None:
        return _child(step, look, kind)
    if listing is None or kind is None:
        if step.status is StepStatus.OK:
            return _gone(step, EvidenceKind.ENGINE_EVENT, "the engine deleted it; the catalogue cannot list the type")
        return _unknown(step, EvidenceKind.GAP, f"the catalogue cannot list {step.type}")
    if (left := _still_listed(step, look, catalog, None)) is not None:
        return _left_over(step, left, look)
    if listing.gap is not None:
        return _unknown(step, EvidenceKind.GAP, f"{listing.gap.scope}: {listing.gap.reason}")
    return _gone(step, EvidenceKind.NOT_LISTED, f"not among the {len(listing.objects)} objects in {listing.scope}")


def _left_over(step: Step, left: CloudObject, look: Look) -> Step:
    """Out of the state and still listed: a listing may lag behind a delete that went through, but not for ever."""
    if step.status is StepStatus.OK and not look.grace_over:
        detail = f"deleted, and still listed; that proves a leftover from {look.grace_ends:%H:%M:%SZ} on"
        return _unknown(step, EvidenceKind.ENGINE_EVENT, detail)
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, f"{left.id} left the state and is still listed"),)
    return replace(step, outcome=Outcome.ORPHANED, observed=(_leftover(step, left),), evidence=evidence)


def _child(step: Step, look: Look, kind: ResourceType) -> Step:
    """A child that cannot be listed itself: gone only when its parent is confirmed gone (rule 16)."""
    if step.status is StepStatus.OK and step.action is Action.DELETE:
        return _gone(step, EvidenceKind.ENGINE_EVENT, "the engine deleted it")
    rule = kind.parent
    name = (step.before or step.desired).get(rule.attribute) if rule else None
    listing = look.listings.get((rule.type, step.provider_key, step.region or "")) if rule else None
    if rule is None or name is None or listing is None:
        return _unknown(step, EvidenceKind.GAP, f"the parent of this {step.type} is not known")
    if any(found.identity.get(rule.parent_attribute) == name for found in listing.objects):
        return _unknown(step, EvidenceKind.GAP, f"its parent {rule.type} {name} still exists")
    if listing.gap is not None:
        return _unknown(step, EvidenceKind.GAP, f"{listing.gap.scope}: {listing.gap.reason}")
    return _gone(step, EvidenceKind.NOT_LISTED, f"its parent {rule.type} {name} is gone, and took it along")


def _still_listed(step: Step, look: Look, catalog: Catalog, held: StateInstance | None) -> CloudObject | None:
    kind, listing = catalog.get(step.type), look.listings.get(listing_key(step))
    if kind is None or listing is None or not step.before:
        return None
    for found in listing.objects:
        known = same_object(kind, held.identity, found) if held else _in_state(kind, found, look.state)
        if same_object(kind, step.before, found) and not known:
            return found
    return None


def _absent(step: Step, kind: EvidenceKind, detail: str) -> Step:
    return replace(step, outcome=Outcome.ABSENT, observed=(), evidence=(Evidence(kind, detail),))


def _gone(step: Step, kind: EvidenceKind, detail: str) -> Step:
    return replace(_absent(step, kind, detail), status=StepStatus.DESTROYED)


def _unknown(step: Step, kind: EvidenceKind, detail: str) -> Step:
    if step.outcome is not None and step.observed:
        return step
    return replace(step, outcome=Outcome.UNKNOWN, evidence=(*step.evidence, Evidence(kind, detail)))


def observe(found: CloudObject, *, in_state: bool, confidence: Confidence) -> ObservedObject:
    """An object of a listing as it is kept in a record."""
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
    )


def with_finding(observed: ObservedObject) -> ObservedObject:
    """The object with the id of the finding that it is, derived from its identity as everywhere."""
    key = CloudObject(observed.cloud, observed.account, observed.region, observed.type, observed.id, observed.import_id)
    return replace(observed, finding_id=key.finding_id)


def _observed(match: Match, claims: _Claims) -> ObservedObject:
    seen = observe(match.found, in_state=False, confidence=match.confidence)
    return with_finding(replace(seen, addresses=claims.claimants(match.found), evidence=match.evidence))


def _leftover(step: Step, found: CloudObject) -> ObservedObject:
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, "the object that this step was to delete"),)
    seen = observe(found, in_state=False, confidence=Confidence.CERTAIN)
    return with_finding(replace(seen, addresses=(step.address,), evidence=evidence))


def _older(found: CloudObject) -> ObservedObject:
    return observe(found, in_state=False, confidence=Confidence.CERTAIN)
