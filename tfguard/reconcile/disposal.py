"""What may be deleted, in which order, and what hangs on it. Pure (docs/design.md, rule 13)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import JOINT, ResourceType
from tfguard.model.cloud import cloud_named
from tfguard.model.disposition import DispositionKind
from tfguard.model.durations import in_words
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.retention_tags import OWNER, UNTIL, is_kept_by, told_by

_DELETABLE = (Verdict.ORPHANED, Verdict.DUPLICATED, Verdict.UNMANAGED)
_SHARED = "shared"


@dataclass(frozen=True, slots=True)
class DestroyRules:
    """What has to hold before anything is deleted: `accounts` are patterns of the configured ones of each cloud (none:
    none is configured), `grace` the age below which an object may belong to a run that is not over. `kept_types` are
    types of which nothing is ever deleted, and why."""

    stateful: bool
    grace: timedelta
    accounts: Mapping[str, Collection[str]] = field(default_factory=dict)
    kept_types: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an object is not deleted, and what to do about it.

    `kept` is what a record may keep of it, where `what` quotes the words of an engine (rule 10); empty: `what` itself.
    """

    what: str
    advice: str
    kept: str = ""

    @property
    def for_record(self) -> str:
        """Why, without anybody else's words."""
        return self.kept or self.what


def refusal(
    finding: Finding,
    found: CloudObject,
    rules: DestroyRules,
    now: datetime,
    seen_at: datetime | None = None,
    *,
    released: bool = False,
) -> Refusal | None:
    """Why this finding's object, as it is `found` now, must not be deleted; None where nothing speaks against it.

    `seen_at` is when it was there at the latest: of an object without a creation time nothing else tells the age.
    `released`: the retention that its tags tell of is this ledger's own, and was ended there.
    """
    decided = finding.disposition
    name = f"{found.type} {found.import_id}"
    if decided is not None:
        is_kept = decided.kind is DispositionKind.RETAIN
        return Refusal(
            f"{name} was settled: {decided.kind.value} by {decided.actor} ({decided.reason})",
            f"end the retention first: {_release(finding)}" if is_kept else "see `tfguard orphans list --all`",
        )
    if finding.verdict not in _DELETABLE:
        return Refusal(
            f"{name} is {finding.verdict.value}, and only what is known to be stray may be deleted",
            "look again with `tfguard recover` or a scan that can read every state",
        )
    if finding.is_withheld:
        return Refusal(
            f"{finding.id} is told without its id, which repeats a value that is marked as sensitive",
            "look it up at the provider, and delete it there",
        )
    if why := rules.kept_types.get(found.type):
        return Refusal(f"{name} is never deleted by tfguard: {why}", "look at it, and delete it at the provider")
    cloud = cloud_named(found.cloud)
    word = cloud.account_word if cloud else "account"
    if found.account is None:
        return Refusal(f"the {word} of {name} is not known", cloud.tell_it if cloud else "let the provider tell it")
    if found.owner is not None and found.owner != found.account:
        return Refusal(f"{name} belongs to the {word} {found.owner}", "ask its owner")
    configured = rules.accounts.get(found.cloud, ())
    if configured and not any(fnmatchcase(found.account, pattern) for pattern in configured):
        return Refusal(
            f"{name} is in the {word} {found.account}, which is not a configured one ({', '.join(configured)})",
            cloud.name_it if cloud else "configure it, if it is yours",
        )
    if not released and is_kept_by(found.tags, now):
        return Refusal(
            f"{name} is kept: {told_by(found.tags)}",
            f"ask whoever keeps it to take the tag {UNTIL} away, with {_release(finding)} where it was kept",
        )
    if found.stateful and not rules.stateful:
        return Refusal(f"{name} holds data", "look at what it holds, then add --stateful")
    born = found.created_at or seen_at
    if born is not None and now - born < rules.grace:
        age = f"{in_words(now - born)} old" if found.created_at else f"known for {in_words(now - born)} only"
        return Refusal(
            f"{name} is {age}, less than the consistency grace of {in_words(rules.grace)}",
            "wait: a run that is not over yet may have made it",
        )
    return None


def _release(finding: Finding) -> str:
    return f"`tfguard orphans release {finding.id} --reason TEXT`"


def changed_since(finding: Finding, now: CloudObject) -> Sequence[str]:
    """What is different about the object since it was found; nothing where it is the same in all that both tell."""
    before = finding.object
    if before is None:
        return ("it is not known what was found",)
    # What a record tells has neither attributes nor all tags: there, none may mean that they were left out.
    bare = not before.identity
    # The ledger tells only what it is imported by, which the look went by: its id may be another.
    told_id = None if bare and before.id == before.import_id else before.id
    pairs = (
        ("id", told_id, now.id),
        ("ARN", before.arn, now.arn),
        ("name", before.name, now.name),
        ("creation time", before.created_at, now.created_at),
        ("tags", _others(before.tags, bare), _others(now.tags, bare)),
    )
    # What one side does not tell was left out by the record or by the list, and is no change.
    return tuple(label for label, old, new in pairs if old is not None and new is not None and old != new)


def _others(tags: Mapping[str, str], bare: bool) -> Mapping[str, str] | None:
    """Tags without those that a retention puts on what it keeps, and takes away again. None where it is not told which
    there are."""
    others = {name: value for name, value in tags.items() if name not in (UNTIL, OWNER)}
    return None if bare and not others else others


def dependant_types(catalog: Catalog, kind: ResourceType) -> Sequence[str]:
    """The listable types whose objects can hang on one of this type: those that name it as their parent or maker, and
    those with an attribute that is called after it (`vpc_id`)."""
    return tuple(sorted(entry.type for entry in catalog if entry.list is not None and _names(entry, kind)))


def hangs_on(catalog: Catalog, child: CloudObject, parent: CloudObject) -> bool:
    """Whether `child` names `parent`, so that the parent cannot go, or would take it along."""
    of_child, of_parent = catalog.get(child.type), catalog.get(parent.type)
    if of_child is None or of_parent is None or child.key == parent.key or child.account != parent.account:
        return False
    known = {value for value in (parent.id, parent.import_id, parent.arn, parent.name) if value}
    attributes = _names(of_child, of_parent)
    named = {child.identity[name] for name in attributes if name in child.identity}
    if of_child.parent and of_child.parent.type == of_parent.type:
        wanted = parent.identity.get(of_child.parent.parent_attribute)
        return child.identity.get(of_child.parent.attribute) in {wanted, *known} - {None}
    return bool(named & known)


def left_by(catalog: Catalog, child: CloudObject, parent: CloudObject) -> bool:
    """Whether a tag says that `parent`, or what runs in it, made `child`: such an object may stay when the parent goes.

    What a cluster only shares (`kubernetes.io/cluster/NAME` = `shared`) is none of its own.
    """
    kind = catalog.get(child.type)
    for rule in kind.ignore_tags.values() if kind else ():
        value = parent.identity.get(rule.parent_attribute)
        if rule.type != parent.type or value is None or child.account != parent.account:
            continue
        for name in rule.named_by:
            if name.endswith("*"):
                if child.tags.get(name[:-1] + value, _SHARED) != _SHARED:
                    return True
            elif child.tags.get(name) == value:
                return True
    return False


def goes_along(catalog: Catalog, child: CloudObject) -> CloudObject:
    """The object with only those of its possible makers that take it along when they go: tags tell of others too."""
    kind = catalog.get(child.type)
    rules = {(rule.type, rule.reason) for rule in kind.made_by} if kind else set()
    return replace(child, made_by=tuple(maker for maker in child.made_by if (maker.type, maker.reason) in rules))


def in_order(catalog: Catalog, objects: Sequence[CloudObject]) -> Sequence[CloudObject]:
    """What hangs on others comes before them; else as given. A circle is left as it is given."""
    left, ordered = list(objects), list[CloudObject]()
    while left:
        free = [one for one in left if not any(hangs_on(catalog, other, one) for other in left if other is not one)]
        ordered += free or left
        left = [one for one in left if one not in free] if free else []
    return ordered


def named_attributes(kind: ResourceType, service: str) -> Collection[str]:
    """What an attribute of another type is called that names one of this type: `vpc_id` for `aws_vpc`. Types of one
    `service` leave that out: `cluster_name` for `aws_eks_cluster`."""
    bare = kind.type.removeprefix(f"{kind.cloud}_")
    short = bare.removeprefix(f"{kind.service}_") if service == kind.service else bare
    return {f"{name}{end}" for name in (bare, short) for end in ("_id", "_arn", "_name", "")}


def _names(child: ResourceType, parent: ResourceType) -> Sequence[str]:
    """The attributes of `child` that can name a `parent`."""
    if child.cloud != parent.cloud:
        return ()
    own = [name for name in (*child.keys, *child.traits, *child.handles) if JOINT not in name]
    found = [name for name in own if name in named_attributes(parent, child.service) and child.type != parent.type]
    if child.parent and child.parent.type == parent.type:
        found.append(child.parent.attribute)
    return tuple(dict.fromkeys(found))
