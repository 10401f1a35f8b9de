"""From the objects that no state knows to findings: which address each belongs to, if it is only one. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from tfguard.model.audit import Creation
from tfguard.model.cloud import provisioned_label_of
from tfguard.model.disposition import Disposition
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, MadeBy
from tfguard.model.retention_tags import told_by
from tfguard.model.secrets import WITHHELD_WORD, Withholding, is_secret
from tfguard.reconcile.explaining import Explanation
from tfguard.reconcile.findings import lapsed
from tfguard.reconcile.state_index import Claim, Rivals, Unlisted
from tfguard.reconcile.verdicts import Ruling, is_newer

_WITHHELD = "what is told of it repeats a value that is marked as sensitive, and is withheld"

Explained = tuple[CloudObject, tuple[Explanation, ...]]


def explained(
    objects: Sequence[Explained], held: Callable[[Collection[Claim]], frozenset[Claim]]
) -> tuple[Finding, ...]:
    """The findings for objects that operations explain; `held` tells which addresses have an object in their state.

    An address stands in a finding only where there is no other one that the object could belong to. Where an address
    has several objects, each is a duplicate: none is picked (rule 11).
    """
    chosen = [(found, _chosen(told)) for found, told in objects]
    places = [tuple(dict.fromkeys(place for one in told for place in one.places)) for _, told in chosen]
    makes = [all(one.made for one in told) for _, told in chosen]
    wanted = [only[0] for only, made in zip(places, makes, strict=True) if len(only) == 1 and made]
    several = Counter(wanted)
    taken = held(several.keys())
    findings: list[Finding] = []
    for (found, told), (_, every), only, made in zip(chosen, objects, places, makes, strict=True):
        finding = _finding(found, told, every, only)
        if made and len(only) == 1 and (several[only[0]] > 1 or only[0] in taken):
            others = several[only[0]] + (only[0] in taken)
            inside = ", one of them in its state" if only[0] in taken else ""
            said = Evidence(EvidenceKind.SEVERAL_CANDIDATES, f"{others} objects for {only[0]}{inside}")
            finding = replace(finding, verdict=Verdict.DUPLICATED, evidence=(*finding.evidence, said))
        findings.append(finding)
    return tuple(findings)


def _chosen(told: Sequence[Explanation]) -> tuple[Explanation, ...]:
    """Of each stack the surest and newest operation that explains the object; `told` are in that order."""
    best: dict[tuple[str, str], tuple[str, Confidence]] = {}
    for one in told:
        for place in one.places:
            best.setdefault((place.location, place.workspace), (one.operation_id, one.confidence))
    kept = set(best.values())
    return tuple(one for one in told if (one.operation_id, one.confidence) in kept)


def _finding(
    found: CloudObject, told: Sequence[Explanation], every: Sequence[Explanation], places: Sequence[Claim]
) -> Finding:
    first = told[0]
    stacks = {(place.location, place.workspace) for place in places}
    confidence = first.confidence
    if len(stacks) > 1 and confidence is Confidence.CERTAIN:
        confidence = Confidence.LIKELY  # one of them is wrong
    duplicated = any(one.verdict is Verdict.DUPLICATED for one in told)
    return Finding(
        id=found.finding_id,
        verdict=Verdict.DUPLICATED if duplicated else Verdict.ORPHANED,
        confidence=confidence,
        address=places[0].address if len(places) == 1 else None,
        operation_id=first.operation_id,
        object=found,
        evidence=tuple(dict.fromkeys(item for one in every for item in one.evidence)),
        addresses=tuple(dict.fromkeys(place.address for place in places)),
        provider_key=first.provider_key,
    )


def unmanaged(
    found: CloudObject,
    states: int,
    unread: Sequence[str],
    cut: Sequence[str] = (),
    added_to: MadeBy | None = None,
) -> Finding:
    """The finding for an object that nothing explains; `unread` are records that could, and cannot be read, and `cut`
    those of which only the newest operations were read. `added_to` is what a state has with others and without it."""
    known = f"in none of {states} states" if states != 1 else "not in the only state that was read"
    evidence = [Evidence(EvidenceKind.UNEXPLAINED, f"{known}, and no recorded operation explains it")]
    if (label := provisioned_label_of(found)) is not None:
        evidence.append(Evidence(EvidenceKind.PROVISIONED, f"its label {label} says that some Terraform made it"))
    evidence += [Evidence(EvidenceKind.GAP, f"the record at {where} cannot be read") for where in unread]
    evidence += [Evidence(EvidenceKind.GAP, f"older operations recorded at {where} were not read") for where in cut]
    confidence = Confidence.LIKELY if unread or cut else Confidence.CERTAIN
    if added_to is not None:
        said = f"what the states tell of {added_to.type} {added_to.value} has others of its kind, and not this one"
        evidence.append(Evidence(EvidenceKind.UNEXPLAINED, said))
        if not set(added_to.held) & set(found.identity.values()):  # it was known by its looks, and not by a key
            confidence = Confidence.POSSIBLE
    return Finding(found.finding_id, Verdict.UNMANAGED, confidence, None, None, found, tuple(evidence))


def unknown(found: CloudObject, why: Sequence[Evidence], operation_id: str | None = None) -> Finding:
    """The finding for an object about which nothing may be concluded."""
    return Finding(found.finding_id, Verdict.UNKNOWN, Confidence.POSSIBLE, None, operation_id, found, tuple(why))


def of_equal_name(rivals: Rivals) -> Evidence:
    """Why an object that has the name of a state's instance may be another one."""
    untold = f"it may be {rivals.claim}, and nothing tells in which account and region that one is"
    several = f"; the name exists in {', '.join(rivals.places)}" if len(rivals.places) > 1 else ""
    return Evidence(EvidenceKind.GAP, untold + several)


def withheld(finding: Finding, secrets: frozenset[str]) -> Finding:
    """The finding without what repeats a value that a state marks. Where that is in what names the object, nobody can
    act on it, and it has another id: one that is made of the name would tell it to whoever guesses."""
    if not secrets:
        return finding
    hidden, found = Withholding(secrets), finding.object
    shown = without_secrets(found, secrets) if found else None
    evidence = tuple(replace(one, detail=hidden.text(one.detail, _WITHHELD)) for one in finding.evidence)
    anew = found is not None and shown is not None and shown.import_id != found.import_id
    return replace(
        finding,
        id=shown.finding_id if shown is not None and anew and finding.disposition is None else finding.id,
        object=shown,
        evidence=evidence,
    )


def without_secrets(found: CloudObject, secrets: frozenset[str]) -> CloudObject:
    """The object without what repeats a value that is marked: all tags where one does, and all names where one does,
    for it may be the one whose name a state withholds."""
    if any(is_secret(text, secrets) for text in (*found.tags, *found.tags.values())):
        found = replace(found, tags={})
    if not any(text and is_secret(text, secrets) for text in (found.id, found.import_id, found.arn, found.name)):
        # What the object is attached to may stand in a parameter that is marked; it is known by its own names still.
        told = {name: text for name, text in found.identity.items() if not is_secret(text, secrets)}
        return found if len(told) == len(found.identity) else replace(found, identity=told)
    told_apart = f"{WITHHELD_WORD} {Withholding(secrets).digest(found.import_id)}"
    return replace(found, id=told_apart, import_id=told_apart, arn=None, name=None, identity={}, tags={}, parent=None)


def ruled(found: CloudObject, ruling: Ruling) -> Finding:
    """The finding for an object that a rule leaves out."""
    kind = EvidenceKind.SOFT_DELETED if ruling.verdict is Verdict.SOFT_DELETED else EvidenceKind.RULE
    evidence = (Evidence(kind, ruling.reason),)
    address = ruling.disposition.address if ruling.disposition else None
    operation = (ruling.disposition.operation_id or None) if ruling.disposition else None
    return Finding(
        found.finding_id, ruling.verdict, Confidence.CERTAIN, address, operation, found, evidence, ruling.disposition
    )


def with_lapsed(finding: Finding, decided: Mapping[str, Disposition], now: datetime) -> Finding:
    """The finding with what became of the last decision about its object, where that does not hold `now`; `decided` are
    the last ones, by finding id."""
    found = finding.object
    if found is None or finding.disposition is not None:
        return finding
    entry = decided.get(finding.id) or decided.get(replace(found, account=None).finding_id)
    if entry is None or is_newer(found, entry):
        return finding
    return replace(finding, evidence=(*finding.evidence, *lapsed(entry, now)))


def with_tag(finding: Finding) -> Finding:
    """The finding with what a tag says of who keeps its object: evidence for a person, and no decision of anybody."""
    told = told_by(finding.object.tags) if finding.object else None
    if told is None:
        return finding
    return replace(finding, evidence=(*finding.evidence, Evidence(EvidenceKind.RETENTION_TAG, told)))


def missing(lost: Unlisted) -> Finding:
    """The finding for what a state has and the provider has not; it is no object, so that it has an id of its own."""
    told = "\x1f".join(("missing", lost.type, lost.arn, str(lost.claim)))
    digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
    where = f"{lost.arn}, which is {lost.claim}, is not among the {lost.type} of {lost.account} {lost.region}"
    evidence = (Evidence(EvidenceKind.NOT_LISTED, where),)
    return Finding(f"o-{digest[:8]}", Verdict.MISSING, Confidence.CERTAIN, lost.claim.address, None, None, evidence)


def with_creation(finding: Finding, creations: Mapping[str, Creation], known: Collection[str]) -> Finding:
    """The finding with what the audit log says of who made the object; `known` are the operations that were read.

    Where the object does not tell when it was made, the call may have made another one of its name: no verdict.
    """
    made = creations.get(finding.id)
    if made is None:
        return finding
    dated = finding.object is not None and finding.object.created_at is not None
    if dated and made.operation_id in known and finding.verdict is Verdict.UNMANAGED:
        # Its own user agent: evidence, though a client may say what it likes.
        finding = replace(
            finding, verdict=Verdict.ORPHANED, confidence=Confidence.LIKELY, operation_id=made.operation_id, evidence=()
        )
    by = f"{made.call} at {made.at.isoformat()} by {made.actor or 'somebody'}"
    if made.operation_id:
        here = "" if made.operation_id in known else ", whose record was not read"
        by += f", in operation {made.operation_id}{here}"
    elif made.engine:
        by += f", with {made.engine}"
    evidence = Evidence(EvidenceKind.AUDIT_LOG, by)
    return replace(finding, evidence=(*finding.evidence, evidence))
