"""List what exists, subtract what every named state records, and explain the rest from the operations on record.

The order keeps a run that goes on meanwhile from looking like a leftover. The states are read before the lists and
again after them: what one reading claims is managed. The records are read again in between: whoever made an object that
was listed had written down its intent before, and what has ended since has its object in the second reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from tfguard.catalog.loader import Catalog
from tfguard.errors import ExitCode, InputError, InterruptedRunError
from tfguard.flows.scan_records import RecordPlace, StackRecord, StackRecords
from tfguard.model.config import IgnoreRule
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage, Gap, Listing
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Progress, ScanResult, Shard
from tfguard.ports import AuditLog, Clock, Host, Inventory, KnownState, ShardLister, StateSource
from tfguard.reconcile import strays
from tfguard.reconcile.explaining import Explainer, Explanation
from tfguard.reconcile.state_index import StateIndex, Unlisted
from tfguard.reconcile.verdicts import IgnoreRules, Judge, Makers, Ruling, kept_by, soft_deleted

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 8
_PATIENCE_SECONDS = 0.2
_TO_BE_SETTLED = (Verdict.ORPHANED, Verdict.DUPLICATED, Verdict.UNMANAGED)
_LEFT_OUT = (Verdict.IGNORED, Verdict.FOREIGN, Verdict.SOFT_DELETED)


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What to scan. `ignore` are the rules of tfguard.yaml; `grace` is for how long a list may lag behind a run.

    With `everything`, objects that a rule leaves out are findings too.
    """

    shards: tuple[Shard, ...]
    ignore: tuple[IgnoreRule, ...] = ()
    grace: timedelta = timedelta(minutes=2)
    everything: bool = False


@dataclass(frozen=True, slots=True)
class ScanPorts:
    """What a scan reaches the world through. `inventory` is asked for details of candidates alone, `audit` too."""

    states: tuple[StateSource, ...]
    lister: ShardLister
    inventory: Inventory
    catalog: Catalog
    clock: Clock
    host: Host
    audit: AuditLog | None = None


def scan(
    request: ScanRequest, ports: ScanPorts, progress: Callable[[Progress], None] = lambda _now: None
) -> ScanResult:
    """Scan. `progress` is told how far it is.

    Raises `InputError` for a pattern of states that matches nothing or cannot be listed, and `InterruptedRunError`.
    Whatever else is in the way is a gap in the result.
    """
    return _Scan(request, ports, progress).run()


def exit_code_of(result: ScanResult) -> int:
    """What a pipeline sees: something needs an action, or the look was incomplete, or all is well."""
    found = {finding.verdict for finding in result.findings if finding.disposition is None}
    if found.intersection(_TO_BE_SETTLED):
        return ExitCode.FOUND
    unclear = not result.coverage.complete or Verdict.UNKNOWN in found or result.summary.get(Verdict.UNKNOWN.value, 0)
    return ExitCode.INCOMPLETE if unclear else ExitCode.DONE


class _Scan:
    def __init__(self, request: ScanRequest, ports: ScanPorts, progress: Callable[[Progress], None]) -> None:
        self._request = request
        self._ports = ports
        self._tell = progress
        self._started_at = ports.clock.now()
        self._index = StateIndex(ports.catalog)
        self._explainer = Explainer(ports.catalog)
        self._makers = Makers(ports.catalog, self._index)
        self._rules = IgnoreRules(request.ignore, self._started_at)
        self._read: set[tuple[str, str]] = set()
        self._unread: dict[str, str] = {}
        self._places: dict[str, RecordPlace] = {}
        self._records: dict[str, StackRecord] = {}
        self._gaps: dict[Gap, None] = {}
        self._notes: dict[str, None] = {}
        self._complete: set[tuple[str, str | None, str, str]] = set()
        self._listed: set[tuple[str, str | None, str, str]] = set()
        self._summary: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._findings: list[Finding] = []

    def run(self) -> ScanResult:
        """Everything, in its order."""
        self._read_states("states")
        reader = StackRecords(self._ports.clock, self._ports.host)
        self._read_records(reader, again=False)
        judge = self._judge()
        candidates = [found for found in self._list(judge) if not self._ruled(found, judge.when_listed(found))]
        if candidates or self._unlisted():
            self._read_records(reader, again=True)
            self._index.begin_reading()
            self._read_states("states again")
            judge = self._judge()
        self._conclude(candidates, judge)
        lost = [strays.missing(one) for one in self._unlisted()]
        self._summary[Verdict.MISSING.value] += len(lost)
        return ScanResult(
            findings=(*self._findings, *lost),
            coverage=Coverage(len(self._read), len({kind for *_, kind in self._complete}), self._all_gaps()),
            summary={name: count for name, count in self._summary.items() if count},
            rules=dict(self._left_out),
            started_at=self._started_at,
            ended_at=self._ports.clock.now(),
            shards=self._request.shards,
            notes=tuple(self._notes),
            unused_rules=self._rules.unused,
            expired_rules=self._rules.expired,
            complete_listings=frozenset(self._complete),
        )

    def _go_on(self) -> None:
        if self._ports.clock.interrupted:
            raise InterruptedRunError("interrupted while scanning; nothing was changed", "run the command again")

    def _read_states(self, phase: str) -> None:
        done = 0
        for source in self._ports.states:
            try:
                for known in source.read():
                    self._go_on()
                    self._take(known)
                    done += 1
                    self._tell(Progress(phase, done, None, known.location))
            except InputError as error:
                if phase == "states":
                    raise
                self._unread[source.pattern] = error.what

    def _take(self, known: KnownState) -> None:
        name = known.location if known.workspace in ("", "default") else f"{known.location} ({known.workspace})"
        if known.snapshot is None:
            self._unread[name] = known.failure or "it cannot be read"
        else:
            self._unread.pop(name, None)  # the second reading is as good as the first
            self._index.add(known.location, known.workspace, known.snapshot)
            self._read.add((known.location, known.workspace))
        if known.records is None:
            self._notes[f"{name}: where its operations are recorded cannot be told"] = None
        else:
            place = RecordPlace(known.location, known.workspace, known.records)
            self._places.setdefault(known.records.location, place)

    def _read_records(self, reader: StackRecords, *, again: bool) -> None:
        def read(place: RecordPlace) -> StackRecord:
            before = self._records.get(place.store.location)
            return reader.read_again(place, before) if again and before else reader.read(place)

        places = list(self._places.values())
        found = self._in_parallel("records again" if again else "records", read, places)
        for place, record in zip(places, found, strict=True):
            if record is not self._records.get(place.store.location):
                self._records[place.store.location] = record
                self._explainer.take(record.stack, self._ports.clock.now())

    def _judge(self) -> Judge:
        kept = kept_by([entry for record in self._records.values() for entry in record.ledger])
        return Judge(self._index, self._makers, self._rules, kept, self._explainer.mentions)

    def _list(self, judge: Judge) -> list[CloudObject]:
        """List everything; what is left are candidates, of which more has to be known."""
        shards = self._request.shards
        candidates: list[CloudObject] = []
        done = answered = 0

        def one_more(shard: Shard) -> None:
            nonlocal done
            done += 1
            where = " ".join(part for part in (shard.provider.key, shard.region or "global", shard.service) if part)
            self._tell(Progress("listing", done, len(shards), where))

        self._tell(Progress("listing", 0, len(shards)))
        for listing in self._ports.lister.list(shards, one_more):
            self._go_on()
            answered += 1
            candidates += self._judged(listing, judge)
        self._go_on()
        left = sum(len(shard.types) for shard in shards) - answered
        if left > 0:
            self._gaps[Gap("scan", f"{left} lists were not answered")] = None
        return candidates

    def _judged(self, listing: Listing, judge: Judge) -> Iterable[CloudObject]:
        scope = listing.scope
        place = (scope.cloud, scope.account, scope.region, listing.type)
        if listing.gap is not None:
            self._gaps[listing.gap] = None
        if place in self._listed and scope.account is not None:
            return  # two provider configurations that lead to one place
        if listing.complete:
            self._listed.add(place)
            self._complete.add(place)
        self._makers.note(listing)
        for found in listing.soft_deleted:
            self._index.match(found)  # so that its instance is not missing
            self._ruled(found, soft_deleted())
        for found in listing.objects:
            if not self._ruled(found, judge.at_once(found)):
                yield found

    def _ruled(self, found: CloudObject, ruling: Ruling | None) -> bool:
        """Count a ruling; False where there is none yet."""
        if ruling is None:
            return False
        self._summary[ruling.verdict.value] += 1
        if ruling.rule:
            self._left_out[ruling.rule] += 1
        if ruling.verdict is Verdict.RETAINED or (self._request.everything and ruling.verdict in _LEFT_OUT):
            self._findings.append(strays.ruled(found, ruling))
        return True

    def _conclude(self, candidates: Sequence[CloudObject], judge: Judge) -> None:
        """Judge the candidates, with everything that can be known of them."""
        unclaimed = [found for found in _each_once(candidates) if not self._ruled(found, judge.claimed(found))]
        recognised = self._index.recognised(unclaimed)
        self._summary[Verdict.MANAGED.value] += len(recognised)
        rest = [found for position, found in enumerate(unclaimed) if position not in recognised]
        explained: list[tuple[CloudObject, tuple[Explanation, ...]]] = []
        findings: list[Finding] = []
        for found in self._in_parallel("details", self._detail, rest):
            told = self._explainer.explain(found)
            sure = any(one.named and not one.live and one.confidence is not Confidence.POSSIBLE for one in told)
            ruling = judge.in_detail(found, explained=sure)
            if ruling is not None and ruling.verdict is not Verdict.UNKNOWN:
                self._ruled(found, ruling)
            elif (unclear := self._unclear(found, told, ruling)) is not None:
                findings.append(unclear)
            elif told:
                explained.append((found, told))
            elif (made_by := judge.by_uncertain_maker(found)) is not None:
                self._ruled(found, made_by)
            else:
                findings.append(strays.unmanaged(found, len(self._read), self._damaged_records()))
        for finding in self._audited([*findings, *strays.explained(explained, self._index.held)]):
            self._summary[finding.verdict.value] += 1
            self._findings.append(finding)

    def _unclear(self, found: CloudObject, told: Sequence[Explanation], ruling: Ruling | None) -> Finding | None:
        """The finding for an object of which nothing may be said now; None where something may."""
        if live := next((one for one in told if one.live), None):
            runs = Evidence(EvidenceKind.OPERATION, f"operation {live.operation_id} runs now, and may be at work on it")
            return strays.unknown(found, (runs, *live.evidence), live.operation_id)
        if self._unread:
            why = (Evidence(EvidenceKind.GAP, f"{name}: {reason}") for name, reason in self._unread.items())
            return strays.unknown(found, tuple(why)[:3])
        if told and any(one.named for one in told):
            return None
        if (claim := self._index.doubt(found)) is not None:
            hidden = Evidence(EvidenceKind.GAP, f"it may be {claim}, whose name is marked sensitive")
            return strays.unknown(strays.without_secrets(found, self._index.secrets_of(claim)), (hidden,))
        if ruling is not None:
            return strays.unknown(found, (Evidence(EvidenceKind.GAP, ruling.reason),))
        if not told and (maker := self._explainer.may_be_making(found, self._started_at, self._request.grace)):
            young = f"it is younger than {self._request.grace}, and operation {maker} runs now"
            return strays.unknown(found, (Evidence(EvidenceKind.OPERATION, young),), maker)
        return None

    def _audited(self, findings: list[Finding]) -> list[Finding]:
        """The findings with what the audit log says of them, where one may be asked."""
        log = self._ports.audit
        if log is None:
            return findings
        asked = [one for one in findings if one.verdict in _TO_BE_SETTLED]
        asked.sort(key=lambda one: (not (one.object and one.object.stateful), _TO_BE_SETTLED.index(one.verdict)))
        pairs = [(one.object, self._provider(one.object)) for one in asked if one.object]
        answer = log.creations([(found, provider) for found, provider in pairs if provider])
        self._notes.update(dict.fromkeys(answer.notes))
        known = frozenset(one.id for record in self._records.values() for one in record.stack.operations)
        return [strays.with_creation(finding, answer.creations, known) for finding in findings]

    def _detail(self, found: CloudObject) -> CloudObject:
        provider = self._provider(found)
        return self._ports.inventory.detail(found, provider) if provider else found

    def _provider(self, found: CloudObject) -> ProviderConfig | None:
        """Through which configuration an object was listed: the one that may work in its account."""
        known = [shard.provider for shard in self._request.shards if shard.cloud == found.cloud]
        guarded = (one for one in known if one.settings.get("allowed_account_ids.0") == found.account)
        free = (one for one in known if "allowed_account_ids.0" not in one.settings)
        return next(guarded, None) or next(free, None)

    def _unlisted(self) -> list[Unlisted]:
        here = {(kind, account, region) for _, account, region, kind in self._complete if account is not None}
        return list(self._index.unlisted(here))

    def _damaged_records(self) -> tuple[str, ...]:
        return tuple(location for location, record in self._records.items() if record.gaps)

    def _all_gaps(self) -> tuple[Gap, ...]:
        states = [Gap(f"state {name}", reason) for name, reason in self._unread.items()]
        records = [gap for record in self._records.values() for gap in record.gaps]
        return (*states, *records, *self._gaps)

    def _in_parallel(self, phase: str, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The results of `work`, in the order of `items`; an interrupt does not wait for them."""
        if not items:
            return []
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            futures = [pool.submit(work, item) for item in items]
            waiting: set[Future[R]] = set(futures)
            while waiting:
                self._go_on()
                _, waiting = wait(waiting, _PATIENCE_SECONDS, FIRST_COMPLETED)
                self._tell(Progress(phase, len(futures) - len(waiting), len(futures)))
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _each_once(objects: Iterable[CloudObject]) -> list[CloudObject]:
    return list({found.key: found for found in objects}.values())
