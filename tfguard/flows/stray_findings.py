"""The findings that a person can decide about: those of this stack's operations, and those that a scan kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from tfguard.errors import UsageError
from tfguard.flows.history import that_tell
from tfguard.flows.records import Records
from tfguard.flows.tainted import ReadState, tainted
from tfguard.model.disposition import Disposition, DispositionKind, latest
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage
from tfguard.model.retention_tags import told_by
from tfguard.model.since import KeptScan
from tfguard.reconcile.findings import findings_of, is_about, lapsed
from tfguard.reconcile.waiting import said_of

_PREFIX = "o-"


def decidable(
    records: Records, kept: KeptScan | None, read_state: ReadState | None = None
) -> tuple[tuple[Finding, ...], Coverage]:
    """All findings, each with the decision that holds now, and how far the looks reached.

    What a stack's own operations tell of an object says more than a scan's finding of the same id, which it replaces.
    With `read_state` what the stack's state marks as tainted is among them.
    """
    operations, coverage = that_tell(records)
    own = findings_of(operations, records.dispositions(), records.now())
    if read_state is not None:
        marked, gaps = tainted(records, operations, read_state)
        own, coverage = (*own, *marked), replace(coverage, gaps=(*coverage.gaps, *gaps))
    last, now = latest(records.dispositions()), records.now()
    own = (*own, *_told_by_ledger(last.values(), {finding.id for finding in own}, now))
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
                verdict=found.verdict,
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


def _told_by_ledger(entries: Iterable[Disposition], told: Collection[str], now: datetime) -> Iterator[Finding]:
    """What was deleted and can still be brought back, and what was brought back and not adopted, where nothing else
    tells of it."""
    for entry in entries:
        found = decided_object_of(entry)
        if entry.finding_id in told or found is None:
            continue
        operation, address = entry.operation_id or None, entry.address
        if entry.kind is DispositionKind.RESTORE:
            verdict = Verdict.ORPHANED if operation else Verdict.UNMANAGED
            why = lapsed(entry, now)
            yield Finding(
                entry.finding_id, verdict, Confidence.CERTAIN, address, operation, found, why, first_seen=entry.at
            )
        elif (
            entry.kind is DispositionKind.DESTROY and entry.holds(now) and entry.until is not None and now < entry.until
        ):
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


def decided_object_of(entry: Disposition) -> CloudObject | None:
    """The object as the ledger has it: what a scan found stands in no operation. None where it has none."""
    kept = entry.object
    if kept is None or entry.import_id is None:
        return None
    return CloudObject(
        kept.cloud, kept.account, kept.region, kept.type, entry.import_id, entry.import_id, arn=kept.arn, name=kept.name
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
