"""Keep a stray object on purpose, for a time: the ledger says who keeps it, who pays, why, and until when (rule 14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tfguard.errors import UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.settle import settle_those_that_saw
from tfguard.flows.stray_findings import OwnOperations, findings_with
from tfguard.flows.upkeep import holding
from tfguard.model.address import module_path
from tfguard.model.config import Config, format_duration
from tfguard.model.disposition import DecidedObject, Disposition, DispositionKind, latest
from tfguard.model.finding import Finding, Verdict
from tfguard.model.ids import new_operation_id
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Step
from tfguard.model.plan import Action
from tfguard.model.secrets import is_withheld

_FINDING = re.compile(r"o-[0-9a-f]{8}")
_KEEPABLE = (Verdict.ORPHANED, Verdict.DUPLICATED, Verdict.UNMANAGED, Verdict.RETAINED)


@dataclass(frozen=True, slots=True)
class Keeping:
    """For how long (None: as the configuration says), by whom, at whose cost, and why; with `tag` a tag on the object
    is to say so. `arguments` are the engine's `-var` and `-var-file`, by which an operation is settled."""

    reason: str
    time: timedelta | None = None
    owner: str = ""
    cost_owner: str = ""
    tag: bool = False
    arguments: tuple[str, ...] = ()


def retain(
    context: StackContext, ids: Sequence[str], known: Sequence[Finding], keeping: Keeping
) -> Sequence[Disposition]:
    """Put a bounded retention of each finding into the ledger, and settle the operations that saw one of them.

    `known` are the findings that can be meant; one that is retained already is extended, or shortened. Raises
    `UsageError` for an id that is none of them, a time beyond `retention.max`, and where nobody owns it, and
    `OperationAliveError` when a run holds the stack.
    """
    time, owner = check_keeping(keeping, context.around.config)
    now, actor = context.clock.now(), context.host.actor()
    own = OwnOperations(context.records)
    last = latest(context.records.dispositions())
    entries = [
        Disposition(
            finding_id=finding.id,
            kind=DispositionKind.RETAIN,
            at=now,
            actor=actor.signature,
            reason=keeping.reason,
            operation_id=own.of(finding),
            address=finding.address,
            import_id=found.import_id,
            until=now + time,
            owner=owner,
            cost_owner=keeping.cost_owner or context.around.config.cost_owner or "",
            object=decided_object(found),
            tagged=keeping.tag or _is_tagged(last.get(finding.id)),  # a tag that is there moves with the date
        )
        for finding in findings_with(ids, known)
        for found in [_keepable(finding)]
    ]
    with holding(context, new_operation_id(now), None):
        context.records.decide(entries)
        settle_those_that_saw(context, {entry.finding_id for entry in entries}, keeping.arguments)
    return entries


def made_again(context: StackContext, findings: Iterable[Finding]) -> Iterator[str]:
    """A line for each finding that is kept and of which the next apply makes another one: its address is configured."""
    for finding in findings:
        address = finding.address
        if address is None or is_withheld(address) or finding.verdict is Verdict.DUPLICATED:
            continue  # of two objects for one address the state has one
        if module_path(address):
            yield f"if {address} is still in the configuration, the next apply makes another one"
        elif context.engine.declares(address):
            yield f"{address} is still in the configuration: the next apply makes another one"


def kept_for(context: StackContext, steps: Iterable[Step]) -> Iterator[str]:
    """A line for each step that creates an object for an address whose earlier one is kept until a date."""
    created = {step.address for step in steps if step.action is Action.CREATE and not is_withheld(step.address)}
    for entry in retained(context.records.dispositions()):
        if entry.address in created and entry.until and entry.holds(context.clock.now()):
            what = f"{entry.object.type} {entry.import_id}" if entry.object else entry.import_id
            name, kept = entry.finding_id, f"kept until {entry.until:%Y-%m-%d %H:%M}Z by {entry.owner or entry.actor}"
            yield (
                f"{entry.address} is to be created, and {what} ({name}), which was made for it, is {kept}: there would "
                f"be two; to adopt it instead, `tfguard orphans release {name} --reason TEXT`, then "
                f"`tfguard import --orphan {name}`"
            )


def check_keeping(keeping: Keeping, config: Config) -> tuple[timedelta, str]:
    """For how long and by whom. Raises `UsageError` for a time beyond `retention.max`, and where nobody owns it."""
    time = config.retention.default if keeping.time is None else keeping.time
    check_time(time, config)
    owner = keeping.owner or config.owner or ""
    if not owner:
        raise UsageError("nobody would own what is kept", "give --owner TEAM, or set `owner:` in tfguard.yaml")
    return time, owner


def check_time(time: timedelta, config: Config) -> None:
    """Raise `UsageError` for a time of a retention beyond `retention.max`, or none at all."""
    most = config.retention.max
    if not timedelta(0) < time <= most:
        raise UsageError(
            f"--for {format_duration(time)} is nothing, or more than retention.max: {format_duration(most)}",
            "keep it for less, and again later; or raise `retention: {max: ...}` in tfguard.yaml",
        )


def release(context: StackContext, ids: Sequence[str], reason: str) -> Sequence[Disposition]:
    """End the retention of findings before their time: each is a finding again.

    Where the ledger has lines that nobody can read, that is also a person's word that none of them keeps it. Raises
    `UsageError` for one that is not retained.
    """
    now, actor = context.clock.now(), context.host.actor()
    damage = context.records.ledger_damage()
    last = latest(context.records.dispositions())
    entries = []
    for finding_id in dict.fromkeys(ids):
        kept = last.get(finding_id)
        hidden = damage is not None and finding_id not in damage.since and _FINDING.fullmatch(finding_id)
        if not hidden and (kept is None or kept.kind is not DispositionKind.RETAIN):
            raise UsageError(f"{finding_id} is not retained here", "see `tfguard orphans list --retained`")
        entries.append(
            Disposition(
                finding_id=finding_id,
                kind=DispositionKind.RELEASE,
                at=now,
                actor=actor.signature,
                reason=reason,
                operation_id=kept.operation_id if kept else "",
                address=kept.address if kept else None,
                import_id=kept.import_id if kept else None,
                object=kept.object if kept else None,
                tagged=kept is not None and kept.tagged,
            )
        )
    context.records.decide(entries)
    return entries


def _is_tagged(entry: Disposition | None) -> bool:
    return entry is not None and entry.kind is DispositionKind.RETAIN and entry.tagged


def retained(ledger: Sequence[Disposition]) -> Sequence[Disposition]:
    """The last word about everything that is kept, the soonest date first; without a date it belongs elsewhere."""
    kept = [entry for entry in latest(ledger).values() if entry.kind is DispositionKind.RETAIN]
    return sorted(kept, key=lambda entry: (entry.until is None, entry.until or entry.at, entry.finding_id))


def decided_object(found: CloudObject) -> DecidedObject:
    """What the ledger keeps of an object."""
    return DecidedObject(found.type, found.cloud, found.account, found.region, found.name, found.arn)


def _keepable(finding: Finding) -> CloudObject:
    """The object of a finding that may be kept. Raises `UsageError` for any other."""
    if finding.verdict not in _KEEPABLE or finding.object is None:
        raise UsageError(
            f"{finding.id} is {finding.verdict.value}: whether it is stray is not known",
            "run `tfguard recover`, or scan again, so that everything is looked at",
        )
    if finding.disposition and finding.disposition.kind is not DispositionKind.RETAIN:
        decided = finding.disposition
        raise UsageError(
            f"{finding.id} was settled: {decided.kind.value} by {decided.actor} at {decided.at:%Y-%m-%d %H:%M}Z",
            "see `tfguard orphans list --all`",
        )
    return finding.object
