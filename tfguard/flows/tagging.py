"""The tags by which a retention travels with its object: put on it, moved with its date, taken away at its release.

The ledger decides, and has its line before any call is made: a tag that is refused changes nothing about a retention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tfguard.flows.context import StackContext
from tfguard.flows.stray_findings import OwnOperations, decided_object_of
from tfguard.flows.stray_look import NOBODY_TO_ASK, ProviderOf, object_now, provider_of
from tfguard.model.action import ActionAnswer
from tfguard.model.cloud import cloud_named
from tfguard.model.disposition import Disposition, DispositionKind, latest
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig
from tfguard.model.retention_tags import OWNER, UNTIL, are_own, is_kept_by, retention_tags, told_by
from tfguard.ports import CloudActions

_Call = Callable[[CloudActions, CloudObject, ProviderConfig], ActionAnswer]


_KEPT_WITHOUT = "it is kept all the same, by this ledger alone"


@dataclass(frozen=True, slots=True)
class Tagged:
    """What became of the tags of one retention: `failed` is why they are not as they should be."""

    finding_id: str
    failed: str = ""
    advice: str = ""


def tag_kept(
    context: StackContext,
    entries: Sequence[Disposition],
    known: Sequence[Finding],
    arguments: Sequence[str],
    elsewhere: ProviderOf,
) -> Sequence[Tagged]:
    """Put the tags of these retentions on their objects, or move them; those that are not to be tagged are left out.

    `arguments` are the engine's `-var` and `-var-file`; `elsewhere` tells whom to ask about what no operation here
    tells of.
    """
    by_id = {finding.id: finding for finding in known}
    done, own = [], OwnOperations(context.records)
    for entry in entries:
        if not entry.tagged or entry.until is None:
            continue
        tags = retention_tags(entry.until, entry.owner)
        answer = _made(
            context,
            own,
            by_id.get(entry.finding_id) or _finding(context, entry),
            arguments,
            elsewhere,
            partial(_tag, tags),
        )
        if answer.refused:
            ledger = context.records.dispositions()
            stands = latest(ledger).get(entry.finding_id) == entry  # a release takes no lease, and may have come since
            if stands and not answer.unanswered and not _was_tagged(ledger, entry):
                context.records.decide([replace(entry, at=context.clock.now(), tagged=False)])
            cloud = cloud_named(entry.object.cloud) if entry.object and not answer.blocked else None
            advice = "; ".join(filter(None, (_KEPT_WITHOUT, cloud.tag_it if cloud else "")))
            done.append(Tagged(entry.finding_id, f"the tag was not put on it: {answer.refused}", advice))
        else:
            done.append(Tagged(entry.finding_id))
    return done


def untag_released(
    context: StackContext, entries: Sequence[Disposition], arguments: Sequence[str], elsewhere: ProviderOf
) -> Sequence[Tagged]:
    """Take the tags away from what is not kept any longer; `entries` are the releases. See `tag_kept`."""
    done, own = [], OwnOperations(context.records)
    for entry in entries:
        if not entry.tagged:
            continue
        answer = _made(
            context,
            own,
            _finding(context, entry),
            arguments,
            elsewhere,
            _untag,
        )
        if answer.refused and not answer.absent:
            advice = f"where nobody else keeps it, take {UNTIL} and {OWNER} away at the provider"
            done.append(Tagged(entry.finding_id, f"its tags were not taken away: {answer.refused}", advice))
        else:
            done.append(Tagged(entry.finding_id))
    return done


def _tag(tags: Mapping[str, str], actions: CloudActions, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:
    return actions.tag(found, provider, tags)


def _untag(actions: CloudActions, found: CloudObject, provider: ProviderConfig) -> ActionAnswer:
    return actions.untag(found, provider, (UNTIL, OWNER))


def _was_tagged(ledger: Sequence[Disposition], entry: Disposition) -> bool:
    """Whether the retention that this one extends had put a tag on the object, which is there still."""
    before = [one for one in ledger if one.finding_id == entry.finding_id and one.at < entry.at]
    return bool(before) and before[-1].kind is DispositionKind.RETAIN and before[-1].tagged


def _made(
    context: StackContext,
    own: OwnOperations,
    finding: Finding,
    arguments: Sequence[str],
    elsewhere: ProviderOf,
    call: _Call,
) -> ActionAnswer:
    found = finding.object
    if found is None or context.actions is None:
        return ActionAnswer(refused="which object it is, is not known")
    provider = provider_of(context, own, finding, found, arguments, elsewhere)
    if provider is None:
        return ActionAnswer(refused=NOBODY_TO_ASK.what)
    if others := _kept_by_others(context, finding.id, found, provider):
        return ActionAnswer(refused=f"{others}, which is none of this ledger's", blocked=True)
    answer = call(context.actions, found, provider)
    return replace(answer, refused=f"{answer.refused}; nobody answered") if answer.unanswered else answer


def _kept_by_others(context: StackContext, finding_id: str, found: CloudObject, provider: ProviderConfig) -> str | None:
    """What a tag says by which another ledger keeps the object: there is one for all. None where none is seen, and
    where tfguard sets none."""
    cloud = cloud_named(found.cloud)
    if cloud is None or not cloud.tag_it:
        return None
    now = object_now(context.around, found, provider)
    if not isinstance(now, CloudObject) or not is_kept_by(now.tags, context.clock.now()):
        return None
    return None if are_own(now.tags, finding_id, context.records.dispositions()) else told_by(now.tags)


def _finding(context: StackContext, entry: Disposition) -> Finding:
    """The finding as the ledger alone tells it."""
    operation = entry.operation_id or None
    found = decided_object_of(entry, context.around.catalog)
    return Finding(entry.finding_id, Verdict.RETAINED, Confidence.CERTAIN, entry.address, operation, found)
