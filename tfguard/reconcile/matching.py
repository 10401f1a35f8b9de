"""Does this object look like what that step wanted? Pure, on the catalogue's identity attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum

from tfguard.catalog.types import ResourceType
from tfguard.model.arn import differ_by_number, names_elsewhere
from tfguard.model.cloud import cloud_named, provisioned_label_of
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.inventory import CloudObject

# Hosts' and providers' clocks differ, and creation times are often whole seconds.
CLOCK_SKEW = timedelta(seconds=60)

# How wrong a clock may be before it is believed against a complete list that did not have the object.
_WRONG_CLOCK = timedelta(days=1)


class Likeness(IntEnum):
    """How much an object looks like what was wanted, weakest first."""

    CONFLICT = 0
    NOTHING_TO_COMPARE = 1
    TRAITS = 2
    PREFIX = 3
    KEY = 4


@dataclass(frozen=True, slots=True)
class Match:
    """An object as a candidate for a step, with what speaks for it.

    `named` tells that it has the very key that was wanted, and not just the looks.
    """

    found: CloudObject
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    named: bool = False


def same_object(kind: ResourceType, identity: Mapping[str, str], found: CloudObject) -> bool:
    """Whether a state's or a record's identity means this very object: keys are compared, not `id` (docs/facts).

    An ARN is unique in the world: where both sides know it, nothing else is asked. (A queue's url is not: its host part
    varies.) A project's id and another's number may be one project: then nothing may be made or deleted in its place.
    """
    arn = kind.arn_key
    if arn is not None and arn in identity:
        if arn in found.identity:
            return _may_be_equal(kind, arn, identity[arn], found.identity[arn])
        if names_elsewhere(identity[arn], found.account, found.region):
            return False
    both = [key for key in kind.keys if key in identity and key in found.identity]
    return any(_may_be_equal(kind, key, identity[key], found.identity[key]) for key in both)


def _is_equal(kind: ResourceType, key: str, one: str, other: str) -> bool:
    return kind.comparable(key, one) == kind.comparable(key, other)


def _may_be_equal(kind: ResourceType, key: str, one: str, other: str) -> bool:
    """Whether two values of an attribute are one, or may be: a project has a number and an id."""
    if _is_equal(kind, key, one, other):
        return True
    cloud = cloud_named(kind.cloud)
    if cloud is None or not cloud.place_is_account:
        return False
    return (key == cloud.own_place or "/" in one) and differ_by_number(one, other)


def lies_elsewhere(kind: ResourceType | None, identity: Mapping[str, str], account: str | None, region: str) -> bool:
    """Whether an identity's ARN names another account or region; what either side leaves out is no difference."""
    arn = kind.arn_key if kind else None
    return arn is not None and names_elsewhere(identity.get(arn, ""), account, region)


def likeness(kind: ResourceType, desired: Mapping[str, str], found: CloudObject) -> tuple[Likeness, str]:
    """How well the object fits, and the attributes that say so. One attribute that differs is a conflict."""
    known = {name: value for name, value in desired.items() if name in kind.keys or name in kind.traits}
    present = {name: found.identity[name] for name in known if name in found.identity}
    if not all(_may_be_equal(kind, name, known[name], value) for name, value in present.items()):
        return Likeness.CONFLICT, ""
    starts = {name: desired[name] for name in kind.prefixes if name in desired}
    for name, start in starts.items():
        if not found.identity.get(kind.prefixes[name], "").startswith(start):
            return Likeness.CONFLICT, ""
    said = ", ".join(f"{name} = {value}" for name, value in present.items())
    if any(name in kind.keys and _is_equal(kind, name, known[name], value) for name, value in present.items()):
        return Likeness.KEY, said
    if starts:
        return Likeness.PREFIX, ", ".join(f"{name} = {value}" for name, value in starts.items())
    return (Likeness.TRAITS, said) if present else (Likeness.NOTHING_TO_COMPARE, "")


@dataclass(frozen=True, slots=True)
class Window:
    """When the operation ran, and which objects were there before it.

    `before` holds finding ids; `baseline_complete` tells whether an object that is not among them was really absent.
    `accounts` are those under which the ids were made: None where the account could not be asked for then. Without
    `end_seen` it was killed, and others may have made things between its end and the look.
    """

    started_at: datetime
    ended_at: datetime
    before: frozenset[str]
    baseline_complete: bool
    accounts: frozenset[str | None] = frozenset()
    end_seen: bool = True

    def existed_before(self, found: CloudObject) -> bool:
        """Whether the object is older than the operation."""
        if any(replace(found, account=known).finding_id in self.before for known in {found.account, *self.accounts}):
            return True
        # Where the list was complete before the run, an age of minutes is more likely a wrong clock of this host.
        doubt = _WRONG_CLOCK if self.baseline_complete else CLOCK_SKEW
        return found.created_at is not None and found.created_at < self.started_at - doubt

    def made_after_start(self, found: CloudObject) -> bool:
        """Whether the provider says that the object is younger than the operation's beginning."""
        return found.created_at is not None and found.created_at >= self.started_at

    def made_inside(self, found: CloudObject) -> bool:
        """Whether the provider says that the object was created while the operation ran."""
        if found.created_at is None:
            return False
        return self.started_at - CLOCK_SKEW <= found.created_at <= self.ended_at + CLOCK_SKEW


def candidate(kind: ResourceType, desired: Mapping[str, str], found: CloudObject, window: Window) -> Match | None:
    """The object as a candidate for a step that wanted `desired`, or None when something rules it out."""
    if window.existed_before(found):
        return None
    like, said = likeness(kind, desired, found)
    if like is Likeness.CONFLICT:
        return None
    evidence: list[Evidence] = []
    if like > Likeness.NOTHING_TO_COMPARE:
        evidence.append(Evidence(EvidenceKind.DESIRED_IDENTITY, said))
    if window.baseline_complete:
        evidence.append(Evidence(EvidenceKind.BASELINE_DIFFERENCE, "listed now, and not before the run"))
    if window.made_inside(found) and found.created_at is not None:
        detail = f"created at {found.created_at.isoformat()}, inside the run's window"
        evidence.append(Evidence(EvidenceKind.CREATED_IN_WINDOW, detail))
    if (label := provisioned_label_of(found)) is not None:
        evidence.append(Evidence(EvidenceKind.PROVISIONED, f"its label {label} says that some Terraform made it"))
    # A creation time says more than the lists: between them others have made things too.
    in_time = window.made_inside(found) if found.created_at else window.baseline_complete
    confidence = _confidence(like, in_time)
    if found.created_at is None and not window.end_seen and confidence is Confidence.CERTAIN:
        confidence = Confidence.LIKELY
    return Match(found, confidence, tuple(evidence), like is Likeness.KEY)


def _confidence(like: Likeness, in_time: bool) -> Confidence:
    if like is Likeness.KEY:
        return Confidence.CERTAIN if in_time else Confidence.LIKELY
    if like in (Likeness.PREFIX, Likeness.TRAITS):
        return Confidence.LIKELY if in_time else Confidence.POSSIBLE
    return Confidence.POSSIBLE
