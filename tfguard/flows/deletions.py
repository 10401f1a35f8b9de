"""Deletions that were asked for and did not come to their end: a killed `orphans destroy` leaves them in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfguard.errors import CorruptRecordError, NewerRecordError
from tfguard.flows.context import StackContext
from tfguard.flows.history import findings
from tfguard.flows.records import Records
from tfguard.flows.run_folder import sweep_run_folders
from tfguard.flows.stray_findings import OwnOperations, decided_object_of
from tfguard.flows.stray_look import NOBODY_TO_ASK, ProviderOf, Waits, provider_of, surely_now
from tfguard.flows.upkeep import holding
from tfguard.model.disposition import DestroyStage, Disposition, DispositionKind, latest
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.ids import new_operation_id
from tfguard.reconcile.disposal import Refusal

_BEGUN = (DestroyStage.REQUESTED, DestroyStage.IN_PROGRESS)
_VERIFIED = "verified to be gone by recover"


@dataclass(frozen=True, slots=True)
class LookedAfter:
    """What a look says of a deletion that had no end: `gone` where it is verified by now, else `what` is in the way."""

    entry: Disposition
    gone: bool
    what: str

    @property
    def in_the_way(self) -> bool:
        """Whether somebody has to go on with it; one that was stopped for a reason is a finding like any other."""
        return not self.gone and self.entry.stage in _BEGUN


def under_way(records: Records) -> tuple[Disposition, ...]:
    """The last word about each deletion that was begun, and of which no end is on record."""
    return tuple(entry for entry in _unverified(records) if entry.stage in _BEGUN)


def _unverified(records: Records) -> list[Disposition]:
    last = latest(records.dispositions()).values()
    return [entry for entry in last if entry.kind is DispositionKind.DESTROY and entry.stage is not DestroyStage.ABSENT]


def look_after_deletions(
    context: StackContext, arguments: Sequence[str], elsewhere: ProviderOf, folder: Path
) -> tuple[LookedAfter, ...]:
    """Look for every object whose deletion is not verified; one that is surely gone gets its last entry in the ledger.

    Deletes nothing at the provider, and sweeps `folder`, where killed runs leave their own folders. `arguments` are the
    engine's `-var` and `-var-file`; `elsewhere` tells whom to ask about an object that no operation here tells of.
    Raises `OperationAliveError` while a run holds the stack.
    """
    if not _unverified(context.records):
        return ()
    with holding(context, new_operation_id(context.clock.now()), None):
        sweep_run_folders(folder, context.host, context.records.head().open_operations)
        known, own = _known(context.records), OwnOperations(context.records)
        return tuple(
            _looked_after(context, own, entry, known.get(entry.finding_id), arguments, elsewhere)
            for entry in _unverified(context.records)
            if not context.clock.interrupted
        )


def _known(records: Records) -> dict[str, Finding]:
    try:
        return {finding.id: finding for finding in findings(records)[0]}
    except (CorruptRecordError, NewerRecordError):
        return {}  # the damage is told elsewhere; the ledger alone has what a look needs


def _looked_after(
    context: StackContext,
    own: OwnOperations,
    entry: Disposition,
    finding: Finding | None,
    arguments: Sequence[str],
    elsewhere: ProviderOf,
) -> LookedAfter:
    found = finding.object if finding and finding.object else decided_object_of(entry, context.around.catalog)
    if found is None:
        return LookedAfter(entry, False, "the ledger does not tell which object it is")
    operation = entry.operation_id or None
    finding = finding or Finding(
        entry.finding_id, Verdict.UNKNOWN, Confidence.POSSIBLE, entry.address, operation, found, first_seen=entry.at
    )
    provider = provider_of(context, own, finding, found, arguments, elsewhere)
    now = surely_now(context, own, finding, found, provider) if provider else NOBODY_TO_ASK
    if now is None or isinstance(now, Waits):
        reason, until = (f"{_VERIFIED}: {now.what}", now.found.gone_after) if now else (_VERIFIED, None)
        actor = context.host.actor().signature
        verified = replace(
            entry, at=context.clock.now(), actor=actor, reason=reason, stage=DestroyStage.ABSENT, until=until
        )
        context.records.decide([verified])
        return LookedAfter(entry, True, reason)
    if isinstance(now, Refusal):
        return LookedAfter(entry, False, now.what)
    return LookedAfter(entry, False, "it is still there")
