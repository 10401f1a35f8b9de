"""The findings that a person can decide about: those of this stack's operations, and those that a scan kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from tfguard.catalog.catalog import Catalog
from tfguard.errors import UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.history import MAY_COME_BACK, that_tell
from tfguard.flows.known_states import is_held
from tfguard.flows.records import Records
from tfguard.flows.tainted import state_or_gap, tainted
from tfguard.model.disposition import Disposition, DispositionKind, latest
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage
from tfguard.model.operation import Operation
from tfguard.model.retention_tags import told_by
from tfguard.model.since import KeptFinding, KeptScan
from tfguard.model.state import StateSnapshot
from tfguard.reconcile.findings import findings_of, is_about, lapsed
from tfguard.reconcile.waiting import said_of

_PREFIX = "o-"


def decidable(context: StackContext, kept: KeptScan | None) -> tuple[tuple[Finding, ...], Coverage]:
    """All findings, each with the decision that holds now, and how far the looks reached.

    What a stack's own operations tell of an object says more than a scan's finding of the same id, which it replaces.
    What the stack's state marks as tainted is among them, and so is what the ledger alone tells of.
    """
    records, ledger, now = context.records, context.records.dispositions(), context.records.now()
    operations, coverage = that_tell(records)
    state, gaps = state_or_gap(context.state_before)
    own = (*findings_of(operations, ledger, now), *tainted(records, operations, state))
    coverage = replace(coverage, gaps=(*coverage.gaps, *gaps))
    last = latest(ledger)
    scan_has = {finding.id for finding in kept.findings} if kept else set[str]()
    own = (*own, *_told_by_ledger(context, {finding.id for finding in own}, operations, state, scan_has))
    if kept is None:
        return own, coverage
    told = {finding.id for finding in own}
    scanned = []
    for found in kept.findings:
        if found.id in told:
            continue
        entry = last.get(found.id)
        first, seen = found.first_seen or kept.scan.ended_at, found.last_seen or kept.scan.ended_at
        entry = entry if entry and is_about(entry, first, seen) else None
        scanned.append(
            Finding(
                id=found.id,
                verdict=_stray(found.operation_id) if _has_lapsed(found, entry, seen, now) else found.verdict,
                confidence=found.confidence,
                address=found.address,
                operation_id=found.operation_id,
                object=found.object,
                evidence=tuple(dict.fromkeys((*found.evidence, *_of_scan(found.object), *lapsed(entry, now)))),
                disposition=entry if entry and entry.holds(now) else None,
                addresses=(found.address,) if found.address else (),
                first_seen=found.first_seen,
            )
        )
    gaps = (*coverage.gaps, *kept.coverage.gaps)
    whole = Coverage(
        coverage.states_read + kept.coverage.states_read, coverage.types_listed + kept.coverage.types_listed, gaps
    )
    return (*own, *scanned), whole


def _told_by_ledger(
    context: StackContext,
    told: Collection[str],
    operations: Iterable[Operation],
    state: StateSnapshot | None,
    scan_has: Collection[str],
) -> Iterator[Finding]:
    """What only the ledger tells of: what was deleted and can still be brought back, what was brought back, and what a
    scan found that was kept, released, or not deleted to the end. Without what the stack's `state` has by now, and what
    a kept scan tells itself. That it tells nothing of an object proves nothing: it may not have looked for it."""
    ledger, now, catalog = context.records.dispositions(), context.records.now(), context.around.catalog
    since, read = _known_since(ledger), {operation.id for operation in operations}
    for entry in latest(ledger).values():
        found = decided_object_of(entry, catalog)
        if entry.finding_id in told or entry.kind not in MAY_COME_BACK or found is None:
            continue
        operation, holds = entry.operation_id or None, entry.holds(now)
        address = entry.address if operation else None  # a scan may have told one of another stack
        if entry.kind is DispositionKind.DESTROY and holds:
            if entry.until is not None and now < entry.until:
                waiting = replace(found, soft_deleted=True, gone_after=entry.until)
                yield Finding(
                    entry.finding_id,
                    Verdict.SOFT_DELETED,
                    Confidence.CERTAIN,
                    address,
                    operation,
                    waiting,
                    (said_of(waiting),),
                    entry,
                )
            continue
        # What an operation does not tell (any more), though it has looked, is no stray.
        if entry.kind is not DispositionKind.RESTORE and (operation in read or entry.finding_id in scan_has):
            continue
        if state is None or not is_held(catalog, state, found):
            yield Finding(
                entry.finding_id,
                _stray(operation),
                Confidence.CERTAIN,
                address,
                operation,
                found,
                lapsed(entry, now),
                entry if holds else None,
                first_seen=since.get(entry.finding_id, entry.at),
            )


def _stray(operation_id: str | None) -> Verdict:
    return Verdict.ORPHANED if operation_id else Verdict.UNMANAGED


def _has_lapsed(found: KeptFinding, entry: Disposition | None, seen: datetime, now: datetime) -> bool:
    """Whether it was retained when a scan had last `seen` it, and this ledger has it as such no more. What was over
    here before that is kept by another ledger."""
    if found.verdict is not Verdict.RETAINED or entry is None or entry.holds(now):
        return False
    return (entry.until or entry.at) >= seen


def _known_since(ledger: Iterable[Disposition]) -> Mapping[str, datetime]:
    """When each finding was decided about first, since it was last settled for good: it was there then."""
    first: dict[str, datetime] = {}
    for entry in ledger:
        if entry.kind is not DispositionKind.RETAIN and entry.holds(entry.at):
            first.pop(entry.finding_id, None)
        else:
            first.setdefault(entry.finding_id, entry.at)
    return first


def decided_object_of(entry: Disposition, catalog: Catalog) -> CloudObject | None:
    """The object as the ledger has it: what a scan found stands in no operation. None where it has none."""
    known = entry.object
    if known is None or entry.import_id is None:
        return None
    kind = catalog.get(known.type)
    return CloudObject(
        known.cloud,
        known.account,
        known.region,
        known.type,
        entry.import_id,
        entry.import_id,
        arn=known.arn,
        name=known.name,
        stateful=kind is not None and kind.stateful,
    )


def _of_scan(found: CloudObject | None) -> tuple[Evidence, ...]:
    """What a kept scan's object tells of itself."""
    if found is None:
        return ()
    waits = (said_of(found),) if found.soft_deleted else ()
    tagged = told_by(found.tags)
    return (*waits, *((Evidence(EvidenceKind.RETENTION_TAG, tagged),) if tagged else ()))


def findings_with(ids: Iterable[str], known: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings with these ids, each once, in the order of the ids.

    Raises `UsageError` that names every id which is none of `known`, and the one that may be meant by its beginning.
    """
    by_id = {finding.id: finding for finding in known}
    wanted = tuple(dict.fromkeys(ids))
    if missing := [name for name in wanted if name not in by_id]:
        meant = [one for name in missing for one in _beginning_with(name, by_id)]
        raise UsageError(
            f"there is no finding {' or '.join(name if name.strip() else repr(name) for name in missing)} here",
            f"{f'is {meant[0]} meant? ' if meant else ''}see `tfguard orphans list`, with --findings FILE for those "
            "that `scan --state-file FILE` kept",
        )
    return tuple(by_id[name] for name in wanted)


def warn_of_less_searched(context: StackContext, ids: Collection[str], known: Iterable[Finding]) -> None:
    """Without the file of the scan it is not known which states that looked into: said of each finding of a scan."""
    for finding in known:
        if finding.id in ids and finding.operation_id is None and finding.verdict is not Verdict.TAINTED:
            context.console.warn(
                f"{finding.id} was found by a scan, and the states that were named to that alone are not searched for "
                "it: give --findings FILE where there are any"
            )


def refuse_tainted(findings: Iterable[Finding]) -> None:
    """Raise `UsageError` for one that is tainted: the state has it, so that it can be neither adopted nor deleted."""
    for finding in findings:
        if finding.verdict is Verdict.TAINTED:
            raise UsageError(
                f"{finding.id} is no stray object: the state has it at {finding.address}",
                f"`tfguard orphans retain {finding.id} --reason TEXT` keeps a tainted one, the next apply replaces it; "
                "to delete it, take it out of the configuration and apply; or take it out of the state with "
                "`tfguard state rm`, which makes it a stray object, and then `tfguard orphans destroy` deletes that",
            )


def _beginning_with(name: str, ids: Iterable[str]) -> Sequence[str]:
    """The only id that begins so, with or without the `o-` that all begin with."""
    start = name.removeprefix(_PREFIX)
    found = [one for one in ids if start and one.removeprefix(_PREFIX).startswith(start)]
    return found if len(found) == 1 else ()


class OwnOperations:
    """Which operations a record has, with its archive: a scan can tell of other stacks' ones. The ids are read once."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def of(self, finding: Finding) -> str:
        """The operation that a finding comes from, empty where the record does not have it."""
        name = finding.operation_id
        if not name:
            return ""
        return name if name in self._live or name in self._records.archive.beginning_with(name) else ""

    @cached_property
    def _live(self) -> frozenset[str]:
        return frozenset(self._records.operation_ids())
