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
from tfguard.model.inventory import CloudObject, Gap, Listing, Scope
from tfguard.model.operation import BaselineEntry, ObservedObject, Outcome, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.ports import ImportProbe
from tfguard.reconcile.matching import Match, Window, candidate, lies_elsewhere, same_object

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
    last seen doing something; the consistency grace counts from it. `open_creates` are the addresses of which the
    engine began a create that it did not report the end of.
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
    open_creates: frozenset[str] = frozenset()

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
        entries = self._before(key)
        return Window(
            started_at=self.started_at,
            ended_at=self.quiet_since,
            before=frozenset(found for entry in entries for found in entry.object_ids),
            baseline_complete=bool(entries) and all(entry.complete for entry in entries),
            accounts=frozenset(entry.account for entry in entries),
        )

    def listing(self, key: ListingKey) -> Listing | None:
        """The answer of a listing. One that comes from another place than the run worked in says nothing, which is a
        gap: a later look may be made with other credentials."""
        answer = self.listings.get(key)
        if answer is None:
            return None
        moved = next((entry for entry in self._before(key) if _elsewhere(entry, answer.scope)), None)
        if moved is None:
            return answer
        reason = f"the run worked in {moved.cloud} {moved.account or 'unknown-account'} {moved.region}: ask there"
        return replace(answer, objects=(), gap=Gap(f"{answer.scope} {answer.type}", reason))

    def _before(self, key: ListingKey) -> list[BaselineEntry]:
        return [entry for entry in self.baseline if (entry.type, entry.provider_key, entry.asked_region) == key]


def _elsewhere(entry: BaselineEntry, scope: Scope) -> bool:
    """Whether a list came from another account or region than the one before the run; an unknown one is no other."""
    if entry.account and scope.account and entry.account != scope.account:
        return True
    return entry.complete and bool(entry.region and scope.region) and entry.region != scope.region


def _never_started(step: Step, look: Look) -> bool:
    return step.status is StepStatus.PENDING and look.stream_whole


def conclude(steps: Sequence[Step], look: Look, catalog: Catalog) -> tuple[Step, ...]:
    """Each step with the outcome that the evidence gives, and the objects that were seen for it."""
    claims = _Claims(steps, look, catalog)
    return tuple(_conclude(step, look, catalog, claims) for step in steps)


class _Claims:
    """Which unrecorded objects could belong to which steps.

    An object that fits a step without an object in state is not held against a step that has one: a missing create
    explains it better than a duplicate does. A step that the engine never started has made nothing, and claims nothing.
    """

    def __init__(self, steps: Sequence[Step], look: Look, catalog: Catalog) -> None:
        self._steps = steps
        self._found: dict[str, list[Match]] = {}
        self._claimants: dict[str, list[str]] = {}
        self._strays: dict[ListingKey, list[CloudObject]] = {}
        creating = [step for step in steps if step.action.creates and not _never_started(step, look)]
        self._reported = {(listing_key(step), step.reported_id): step.address for step in creating if step.reported_id}
        for missing in (True, False):
            for step in creating:
                if (look.state.at(step.address) is None) is missing:
                    self._claim(step, look, catalog, taken=set() if missing else set(self._claimants))

    def _claim(self, step: Step, look: Look, catalog: Catalog, taken: set[str]) -> None:
        kind, key = catalog.get(step.type), listing_key(step)
        if kind is None:
            return
        window = look.window(key)
        for found in self._strays_of(key, kind, look):
            if found.finding_id in taken:
                continue
            match = self._match(step, kind, found, window)
            # What a service usually makes by itself can be what this step wanted; then only its own name will do.
            if match and (match.named or not found.ignored_because):
                self._found.setdefault(step.address, []).append(match)
                self._claimants.setdefault(found.finding_id, []).append(step.address)

    def _strays_of(self, key: ListingKey, kind: ResourceType, look: Look) -> list[CloudObject]:
        if key not in self._strays:
            listing = look.listing(key)
            objects = listing.objects if listing else ()
            self._strays[key] = [found for found in objects if not _known(kind, found, look)]
        return self._strays[key]

    def _match(self, step: Step, kind: ResourceType, found: CloudObject, window: Window) -> Match | None:
        """The object as a candidate; an id that the engine reported at the end of a create settles whose it is."""
        owner = self._reported.get((listing_key(step), found.id))
        if owner is None:
            return candidate(kind, step.desired, found, window)
        if owner != step.address:
            return None
        evidence = Evidence(EvidenceKind.ENGINE_EVENT, f"the engine reported {found.id} when it had made it")
        return Match(found, Confidence.CERTAIN, (evidence,), named=True)

    def of(self, step: Step) -> list[Match]:
        """The candidates for a step."""
        return self._found.get(step.address, [])

    def claimants(self, found: CloudObject) -> tuple[str, ...]:
        """The addresses that an object could belong to."""
        return tuple(self._claimants.get(found.finding_id, ()))

    def given_up_by(self, step: Step, kind: ResourceType, found: CloudObject) -> str | None:
        """The address whose object this run deleted or was deleting, where `found` lies under that object's name."""
        for other in self._steps:
            begun = other.action.deletes and other.status is not StepStatus.PENDING
            if begun and listing_key(other) == listing_key(step) and same_object(kind, other.before, found):
                return other.address
        return None


def _known(kind: ResourceType, found: CloudObject, look: Look) -> bool:
    """Whether the state has the object, at whatever address; or the errored state, which a push brings back."""
    states = (look.state,) if look.errored is None else (look.state, look.errored)
    return any(
        instance.type == kind.type and same_object(kind, instance.identity, found)
        for state in states
        for instance in state.instances
    )


def _conclude(step: Step, look: Look, catalog: Catalog, claims: _Claims) -> Step:
    if step.status is StepStatus.RUNNING:
        step = replace(step, status=StepStatus.ERROR)  # attempted and not finished
    held = look.state.at(step.address)
    if step.action is Action.FORGET:
        return replace(step, evidence=(Evidence(EvidenceKind.REMOVED_FROM_STATE, "removed from state on purpose"),))
    if step.action is Action.DELETE:
        return _deleted(step, look, catalog, _held_for_delete(step, held, look, catalog))
    if held is not None:
        return _held(step, held, look, catalog, claims.of(step), claims)
    if look.errored is not None and (lost := look.errored.at(step.address)):
        detail = f"in errored.tfstate as {_name(lost)}, which has not been pushed"
        return replace(step, outcome=Outcome.ORPHANED, evidence=(Evidence(EvidenceKind.ERRORED_STATE, detail),))
    if not step.action.creates:
        return _deleted(step, look, catalog, held)
    return _missing(step, look, catalog, claims)


def _held_for_delete(step: Step, held: StateInstance | None, look: Look, catalog: Catalog) -> StateInstance | None:
    """The instance that a delete is about: the current one, or a deposed one of the same address."""
    kind = catalog.get(step.type)
    if kind is None or held is None or not (_tells(kind, step.before) and _tells(kind, held.identity)):
        return held
    here = (instance for instance in look.state.instances if instance.address == step.address)
    return next((instance for instance in here if _same_identity(kind, step.before, instance.identity)), None)


def _tells(kind: ResourceType, identity: Mapping[str, str]) -> bool:
    """Whether an identity holds anything that tells one object of this type from another."""
    return any(key in identity for key in kind.keys)


def _same_identity(kind: ResourceType, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    bare = CloudObject(kind.cloud, None, "", kind.type, "", "", identity=other)
    return same_object(kind, one, bare)


def _name(instance: StateInstance) -> str:
    return next(iter(instance.identity.values()), instance.address)


def _held(
    step: Step, held: StateInstance, look: Look, catalog: Catalog, extra: Sequence[Match], claims: _Claims
) -> Step:
    """A step whose address has an object in state: recorded or tainted, and duplicated when there is one more."""
    kind_of_evidence = EvidenceKind.TAINTED if held.tainted else EvidenceKind.IN_STATE
    evidence = [Evidence(kind_of_evidence, f"the state holds {_name(held)}")]
    extra = [match for match in extra if match.confidence is not Confidence.POSSIBLE]
    if not extra and _lost_half(step, held, look, catalog):
        made = _not_found(step, look, catalog, claims)
        if made.outcome is Outcome.UNKNOWN:
            return replace(made, evidence=(*evidence, *made.evidence))
        if made.outcome is Outcome.ORPHANED:
            return replace(made, outcome=Outcome.DUPLICATED, evidence=(*evidence, *made.evidence))
    observed = [*_state_objects(step, held, look, catalog), *(_observed(match, claims) for match in extra)]
    outcome = Outcome.TAINTED if held.tainted else Outcome.RECORDED
    if extra:
        outcome = Outcome.DUPLICATED
        names = ", ".join(match.found.id for match in extra)
        evidence.append(Evidence(EvidenceKind.SEVERAL_CANDIDATES, f"the state does not know {names}"))
    if step.action is Action.REPLACE and (old := _still_listed(step, look, catalog)):
        if step.status is StepStatus.OK and not extra and not look.grace_over:
            return _lagging(step, look)
        outcome = Outcome.DUPLICATED
        observed.append(_leftover(step, old))
        evidence.append(Evidence(EvidenceKind.SEVERAL_CANDIDATES, f"the replaced object {old.id} is still listed"))
    return replace(step, outcome=outcome, observed=tuple(observed), evidence=tuple(evidence))


def _lost_half(step: Step, held: StateInstance, look: Look, catalog: Catalog) -> bool:
    """Whether the state still holds what a replacement was to take away, while its create may have gone through."""
    if step.action is not Action.REPLACE or step.status is not StepStatus.ERROR:
        return False
    if step.address in look.open_creates:
        return True
    kind = catalog.get(step.type)
    return not look.stream_whole and kind is not None and _same_identity(kind, step.before, held.identity)


def _state_objects(step: Step, held: StateInstance, look: Look, catalog: Catalog) -> list[ObservedObject]:
    kind, listing = catalog.get(step.type), look.listing(listing_key(step))
    if kind is None or listing is None:
        return []
    same = [found for found in listing.objects if same_object(kind, held.identity, found)]
    return [observe(found, in_state=True, confidence=Confidence.CERTAIN) for found in same]


def _missing(step: Step, look: Look, catalog: Catalog, claims: _Claims) -> Step:
    """A planned create without an object in state."""
    matches = claims.of(step)
    strong = [match for match in matches if match.confidence is not Confidence.POSSIBLE]
    observed = tuple(_observed(match, claims) for match in strong or matches)
    old = _still_listed(step, look, catalog) if step.action is Action.REPLACE else None
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
        return replace(orphaned, outcome=Outcome.DUPLICATED, observed=(*observed, _leftover(step, old)))
    if old is not None:
        return _left_over(step, old, look)
    if matches:
        detail = f"{len(matches)} new objects of the type, and nothing that ties one of them to this address"
        evidence = (Evidence(EvidenceKind.SEVERAL_CANDIDATES, detail),)
        return replace(step, outcome=Outcome.UNKNOWN, observed=observed, evidence=evidence)
    return _not_found(step, look, catalog, claims)


def _timely(match: Match) -> bool:
    kinds = {evidence.kind for evidence in match.evidence}
    return bool(kinds & {EvidenceKind.BASELINE_DIFFERENCE, EvidenceKind.CREATED_IN_WINDOW, EvidenceKind.ENGINE_EVENT})


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


def _not_found(step: Step, look: Look, catalog: Catalog, claims: _Claims) -> Step:
    """Nothing new that fits: absent when that is proved, else unknown."""
    if _never_started(step, look):
        return _absent(step, EvidenceKind.NEVER_STARTED, "the engine never started this step")
    if catalog.state_only(step.provider):
        return _absent(step, EvidenceKind.NOT_LISTED, "this provider keeps objects in the state alone")
    listing, kind = look.listing(listing_key(step)), catalog.get(step.type)
    if kind is not None and kind.parent is not None and listing is None:
        return _child(step, look, kind)
    if listing is None or kind is None:
        return _by_probe(step, look)
    if listing.gap is not None:
        return _unknown(_with_probe(step, look), EvidenceKind.GAP, f"{listing.gap.scope}: {listing.gap.reason}")
    before = _older_namesake(step, kind, listing, look)
    if before and (giver := claims.given_up_by(step, kind, before)):
        return _renamed(step, before, giver, look)
    if before:
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


def _renamed(step: Step, found: CloudObject, giver: str, look: Look) -> Step:
    """An object under a name that the run itself gave up: the old one, or what this step made under its name."""
    detail = f"{giver} gives up the name of {found.id} in this run: it is the old object, or the new one"
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, detail),)
    if not look.grace_over and not look.window(listing_key(step)).made_after_start(found):
        return _unknown(step, EvidenceKind.DESIRED_IDENTITY, detail)
    seen = observe(found, in_state=False, confidence=Confidence.LIKELY)
    addresses = tuple(dict.fromkeys((step.address, giver)))
    seen = with_finding(replace(seen, addresses=addresses, evidence=evidence))
    return replace(step, outcome=Outcome.ORPHANED, observed=(seen,), evidence=evidence)


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
    if probe.exists:
        return step
    if look.grace_over:
        return replace(step, outcome=Outcome.ABSENT, evidence=evidence)
    detail = f"{probe.detail} yet; that proves absence from {look.grace_ends:%H:%M:%SZ} on"
    return _unknown(step, EvidenceKind.ENGINE_READ, detail)


def _deleted(step: Step, look: Look, catalog: Catalog, held: StateInstance | None) -> Step:
    """A step whose object should be gone, or whose object left the state."""
    if held is not None:
        outcome = Outcome.TAINTED if held.tainted else Outcome.RECORDED
        return replace(
            step, outcome=outcome, evidence=(Evidence(EvidenceKind.IN_STATE, f"the state holds {_name(held)}"),)
        )
    if catalog.state_only(step.provider):
        return _gone(step, EvidenceKind.NOT_LISTED, "this provider keeps objects in the state alone")
    listing, kind = look.listing(listing_key(step)), catalog.get(step.type)
    if kind is not None and kind.parent is not None and listing is None:
        return _child(step, look, kind)
    if listing is None or kind is None:
        if step.status is StepStatus.OK:
            return _gone(step, EvidenceKind.ENGINE_EVENT, "the engine deleted it; the catalogue cannot list the type")
        return _unknown(step, EvidenceKind.GAP, f"the catalogue cannot list {step.type}")
    if (left := _still_listed(step, look, catalog)) is not None:
        return _left_over(step, left, look)
    if listing.gap is not None:
        return _unknown(step, EvidenceKind.GAP, f"{listing.gap.scope}: {listing.gap.reason}")
    if lies_elsewhere(step.before, listing.scope.account, listing.scope.region):
        return _unknown(step, EvidenceKind.GAP, f"{listing.scope}: the object lies elsewhere ({step.before['arn']})")
    if not _tells(kind, step.before):
        if step.status is StepStatus.OK:
            return _gone(step, EvidenceKind.ENGINE_EVENT, "the engine deleted it; its name may not be kept")
        return _unknown(step, EvidenceKind.GAP, "which object this is may not be kept, so it cannot be looked for")
    return _gone(step, EvidenceKind.NOT_LISTED, f"not among the {len(listing.objects)} objects in {listing.scope}")


def _left_over(step: Step, left: CloudObject, look: Look) -> Step:
    """Out of the state and still listed: a listing may lag behind a delete that went through, but not for ever."""
    may_be_done = step.status is StepStatus.OK or step.action is Action.REPLACE
    if may_be_done and not look.grace_over and not look.window(listing_key(step)).made_after_start(left):
        return _lagging(step, look)
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, f"{left.id} is listed, and left the state"),)
    return replace(step, outcome=Outcome.ORPHANED, observed=(_leftover(step, left),), evidence=evidence)


def _lagging(step: Step, look: Look) -> Step:
    detail = f"deleted, and still listed; that proves a leftover from {look.grace_ends:%H:%M:%SZ} on"
    return _unknown(step, EvidenceKind.ENGINE_EVENT, detail)


def _child(step: Step, look: Look, kind: ResourceType) -> Step:
    """A child that cannot be listed itself: gone only when its parent is confirmed gone (rule 16)."""
    if step.status is StepStatus.OK and step.action is Action.DELETE:
        return _gone(step, EvidenceKind.ENGINE_EVENT, "the engine deleted it")
    probed = _with_probe(step, look)
    if probed.outcome is not None:
        return probed
    rule = kind.parent
    name = (step.before or step.desired).get(rule.attribute) if rule else None
    listing = look.listing((rule.type, step.provider_key, step.region or "")) if rule else None
    if rule is None or name is None or listing is None:
        return _unknown(step, EvidenceKind.GAP, f"the parent of this {step.type} is not known")
    if any(found.identity.get(rule.parent_attribute) == name for found in listing.objects):
        return _unknown(step, EvidenceKind.GAP, f"its parent {rule.type} {name} still exists")
    if listing.gap is not None:
        return _unknown(step, EvidenceKind.GAP, f"{listing.gap.scope}: {listing.gap.reason}")
    if not look.grace_over:
        detail = f"its parent {rule.type} {name} is not listed; that proves it gone from {look.grace_ends:%H:%M:%SZ} on"
        return _unknown(step, EvidenceKind.NOT_LISTED, detail)
    detail = f"its parent {rule.type} {name} is gone, and takes it along"
    return (_gone if step.action is Action.DELETE else _absent)(step, EvidenceKind.NOT_LISTED, detail)


def _still_listed(step: Step, look: Look, catalog: Catalog) -> CloudObject | None:
    """What a step was to take away, where it is listed and no state knows it."""
    kind, listing = catalog.get(step.type), look.listing(listing_key(step))
    if kind is None or listing is None or not step.before:
        return None
    same = (found for found in listing.objects if same_object(kind, step.before, found))
    return next((found for found in same if not _known(kind, found, look)), None)


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
    what = "the object that this step was to delete" if step.action.deletes else "the object that this step is about"
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, what),)
    seen = observe(found, in_state=False, confidence=Confidence.CERTAIN)
    return with_finding(replace(seen, addresses=(step.address,), evidence=evidence))


def _older(found: CloudObject) -> ObservedObject:
    return observe(found, in_state=False, confidence=Confidence.CERTAIN)
