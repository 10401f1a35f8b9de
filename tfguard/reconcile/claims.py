"""Which unrecorded objects could belong to which steps. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import ObservedObject, Step, StepStatus
from tfguard.model.state import StateInstance
from tfguard.reconcile.look import ListingKey, Look, listing_key, never_started
from tfguard.reconcile.marks import observe, with_finding
from tfguard.reconcile.matching import Match, Window, candidate, same_object


class Claims:
    """Which unrecorded objects could belong to which steps.

    An object that fits a step without an object in state is not held against a step that has one: a missing create
    explains it better than a duplicate does. A step that the engine never started has made nothing, and claims nothing.
    """

    def __init__(self, steps: Sequence[Step], look: Look, catalog: Catalog) -> None:
        self._steps = steps
        self._found: dict[str, list[Match]] = {}
        self._claimants: dict[str, list[str]] = {}
        self._strays: dict[ListingKey, list[CloudObject]] = {}
        creating = [step for step in steps if step.action.creates and not never_started(step, look)]
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
            if match and (match.named or not found.made_by_a_service):
                self._found.setdefault(step.address, []).append(match)
                self._claimants.setdefault(found.finding_id, []).append(step.address)

    def _strays_of(self, key: ListingKey, kind: ResourceType, look: Look) -> list[CloudObject]:
        if key not in self._strays:
            listing = look.listing(key)
            objects = listing.objects if listing else ()
            self._strays[key] = [found for found in objects if not known_to_state(kind, found, look)]
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


def known_to_state(kind: ResourceType, found: CloudObject, look: Look) -> bool:
    """Whether the state has the object, at whatever address; or the errored state, which a push brings back."""
    states = (look.state, *((look.errored,) if look.errored else ()), *look.elsewhere)
    return any(
        instance.type == kind.type and same_object(kind, instance.identity, found)
        for state in states
        for instance in state.instances
    )


def observed_match(match: Match, claims: Claims) -> ObservedObject:
    """A candidate as a record keeps it, with every address that it could belong to."""
    seen = observe(match.found, in_state=False, confidence=match.confidence)
    return with_finding(replace(seen, addresses=claims.claimants(match.found), evidence=match.evidence))


def tells_apart(kind: ResourceType, identity: Mapping[str, str]) -> bool:
    """Whether an identity holds anything that tells one object of this type from another."""
    return any(key in identity for key in kind.keys)


def is_same(step: Step, held: StateInstance, catalog: Catalog) -> bool:
    """Whether an address still has the object that a step is about; where nothing tells objects apart, it has."""
    kind = catalog.get(step.type)
    if kind is not None and tells_apart(kind, step.before) and tells_apart(kind, held.identity):
        return same_identity(kind, step.before, held.identity)
    return not (step.fingerprint and held.fingerprint) or step.fingerprint == held.fingerprint


def same_identity(kind: ResourceType, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two identities of one type mean one object."""
    bare = CloudObject(kind.cloud, None, "", kind.type, "", "", identity=other)
    return same_object(kind, one, bare)
