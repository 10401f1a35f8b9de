"""List what exists, subtract what every named state records, and explain the rest from the operations on record.

The order keeps a run that goes on meanwhile from looking like a leftover. The states are read before the lists and
again after them: what one reading claims is managed. The records are read again in between: whoever made an object that
was listed had written down its intent before, and what has ended since has its object in the second reading.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from tfguard.catalog.catalog import Catalog
from tfguard.errors import ExitCode, InputError, InterruptedRunError
from tfguard.flows.looking import listed_detail
from tfguard.flows.parallel import Parallel
from tfguard.flows.scan_records import ScannedRecords
from tfguard.flows.scan_states import ScannedStates
from tfguard.model.cloud import cloud_named, is_nameless
from tfguard.model.config import IgnoreRule
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage, Detail, Gap, Listing, Scope
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Progress, ScanResult, Shard
from tfguard.ports import AuditLog, Clock, Host, Inventory, ShardLister, StateSource
from tfguard.reconcile import strays
from tfguard.reconcile.explaining import Explainer, Explanation
from tfguard.reconcile.scopes import Place, looked_at, scope_of
from tfguard.reconcile.state_index import StateIndex, Unlisted
from tfguard.reconcile.verdicts import IgnoreRules, Judge, Makers, Ruling, kept_by, last_decisions, soft_deleted
from tfguard.reconcile.wanted import lists_lag, named_object

_TO_BE_SETTLED = (Verdict.ORPHANED, Verdict.DUPLICATED, Verdict.UNMANAGED)
_NOBODY_ASKED = (
    "install what is missing, or check the credentials, and whom `scan:` and `providers:` of tfguard.yaml, --region "
    "and --account say to ask; then scan again"
)
_MOST_NAMED = 3
_LEFT_OUT = (Verdict.IGNORED, Verdict.FOREIGN, Verdict.SOFT_DELETED)


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """What to scan. `ignore` are the rules of tfguard.yaml; `grace` is for how long a list may lag behind a run.

    With `everything`, objects that a rule leaves out are findings too. `states` are the patterns of states, spelled so
    that another scan's can be compared with them. `left_out` are lists of the configured scan that this one was told to
    leave out: what rules are for may be there. `notes` say what the places that are asked do not tell.
    """

    shards: tuple[Shard, ...]
    ignore: tuple[IgnoreRule, ...] = ()
    grace: timedelta = timedelta(minutes=2)
    everything: bool = False
    states: tuple[str, ...] = ()
    left_out: frozenset[Place] = frozenset()
    notes: tuple[str, ...] = ()


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

    Raises `InputError` for a pattern of states that matches nothing or cannot be listed, and where one reason is in the
    way of asking anybody at all; and `InterruptedRunError`. Whatever else is in the way is a gap in the result.
    """
    return _Scan(request, ports, progress).run()


def exit_code_of(result: ScanResult) -> int:
    """What a pipeline sees: something needs an action, or the look was incomplete, or all is well."""
    found = {finding.verdict for finding in result.findings if finding.disposition is None}
    if found.intersection((*_TO_BE_SETTLED, Verdict.MISSING)):
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
        self._rules = IgnoreRules(request.ignore, self._started_at, ports.catalog)
        self._parallel = Parallel(self._go_on, progress)
        self._states = ScannedStates(ports.states, self._index, self._go_on, progress)
        self._records = ScannedRecords(ports.clock, ports.host, self._explainer, self._parallel)
        self._gaps: dict[Gap, None] = {}
        self._notes: dict[str, None] = dict.fromkeys(request.notes)
        self._complete: set[tuple[str, str | None, str, str]] = set()
        self._listed: set[tuple[str, str | None, str, str]] = set()
        self._cut: set[Place] = set()
        self._asked_as: dict[tuple[str, str | None], str] = {}
        self._from_parts: dict[tuple[str, str | None, str, str], set[tuple[str, ...]]] = {}
        self._summary: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._findings: list[Finding] = []
        self._waiting: list[CloudObject] = []

    def run(self) -> ScanResult:
        """Everything, in its order."""
        self._states.read()
        self._records.read(self._states.record_places)
        judge = self._judge()
        candidates = [found for found in self._list(judge) if not self._ruled(found, judge.when_listed(found))]
        if candidates or self._unlisted():
            self._records.read_again()
            self._states.read_again()
            self._records.read(self._states.record_places)  # those of stacks that are there since then
            judge = self._judge()
        self._conclude(candidates, judge)
        unlisted = self._unlisted()
        there = self._parallel.results("details", self._is_there, unlisted)
        lost = [strays.missing(one) for one, is_there in zip(unlisted, there, strict=True) if not is_there]
        self._summary[Verdict.MISSING.value] += len(lost)
        gaps = (*self._states.gaps, *self._records.gaps, *self._gaps)
        secrets = self._index.secrets
        return ScanResult(
            findings=tuple(strays.withheld(finding, secrets) for finding in (*self._findings, *lost)),
            coverage=Coverage(len(self._states), len({kind for *_, kind in self._listed}), gaps),
            summary={name: count for name, count in sorted(self._summary.items()) if count},
            rules=dict(sorted(self._left_out.items())),
            started_at=self._started_at,
            ended_at=self._ports.clock.now(),
            shards=self._request.shards,
            notes=tuple({**self._states.notes, **self._records.notes, **self._notes}),
            unused_rules=self._rules.unused(self._untested()),
            expired_rules=self._rules.expired,
            complete_listings=frozenset(self._complete),
            scope=scope_of(self._request.shards, self._request.states, self._complete),
            places=looked_at(self._listed),
            stacks={
                one.operation_id: self._records.stacks[one.operation_id]
                for one in self._findings
                if one.operation_id in self._records.stacks
            },
        )

    def _untested(self) -> set[Place]:
        """The lists in which a rule could have found its objects, had anybody looked to the end."""
        return {*self._cut, *self._request.left_out}

    def _go_on(self) -> None:
        if self._ports.clock.interrupted:
            raise InterruptedRunError("interrupted while scanning; nothing was changed", "run the command again")

    def _judge(self) -> Judge:
        kept = kept_by(self._records.ledgers, self._ports.clock.now())
        return Judge(self._index, self._makers, self._rules, kept, self._explainer.mentions)

    def _list(self, judge: Judge) -> list[CloudObject]:
        """List everything; what is left are candidates, of which more has to be known."""
        shards = self._request.shards
        candidates: list[CloudObject] = []
        done = answered = asked = 0
        # Of an organization there are as many listings of a type as it has projects.
        wide = {(shard.provider.key, kind) for shard in shards if shard.wide for kind in shard.types}
        by_account = set[tuple[str, str]]()
        places: dict[str, None] = {}

        def one_more(_: Shard) -> None:
            nonlocal done
            done += 1
            self._tell(Progress("listing", done, len(shards)))

        self._tell(Progress("listing", 0, len(shards)))
        for listing in self._ports.lister.list(shards, one_more):
            self._go_on()
            if (several := (listing.scope.provider_key, listing.type)) in wide:
                by_account.add(several)
            else:
                answered += bool(listing.type)  # without one it tells what is wrong with the whole
            asked += listing.asked
            if listing.scope.account:
                places[listing.scope.account] = None
            candidates += self._judged(listing, judge)
        self._go_on()
        left = sum(len(shard.types) for shard in shards if not shard.wide) - answered
        left = max(left, 0) + len(wide - by_account)
        if left > 0:
            self._gaps[Gap("scan", f"{left} lists were not answered")] = None
        reasons = {gap.reason for gap in self._gaps}
        if (answered or by_account) and not asked and len(reasons) == 1:
            named = ", ".join([*places][:_MOST_NAMED]) + (", ..." if len(places) > _MOST_NAMED else "")
            where = f" ({named})" if named else ""
            raise InputError(f"nothing could be listed anywhere{where}: {reasons.pop()}", _NOBODY_ASKED)
        return candidates

    def _judged(self, listing: Listing, judge: Judge) -> Iterable[CloudObject]:
        scope = listing.scope
        place = (scope.cloud, scope.account, scope.region, listing.type)
        for account in {scope.account, *(found.account for found in listing.objects)}:
            self._asked_as.setdefault((scope.cloud, account), scope.provider_key)
        if listing.gap is not None:
            self._gaps[listing.gap] = None
            self._cut.add(place)
        if place in self._complete and scope.account is not None:
            return  # two provider configurations that lead to one place
        listing = self._without_known(listing, place)
        if listing.gap is None:
            self._listed.add(place)
        if listing.complete:
            self._complete.add(place)
        self._makers.note(listing)
        for found in listing.soft_deleted:
            self._index.match(found)  # so that its instance is not missing
            if self._request.everything:
                self._waiting.append(found)  # until when has to be asked for
            else:
                self._ruled(found, soft_deleted(found))
        for found in listing.objects:
            if not self._ruled(found, judge.at_once(found)):
                yield found

    def _without_known(self, listing: Listing, place: tuple[str, str | None, str, str]) -> Listing:
        """The listing without what earlier ones of the same place had, that were not complete."""
        if listing.scope.account is None:
            return listing  # whether it is the same place is not known
        known = self._from_parts.get(place, set())
        if known:
            listing = replace(
                listing,
                objects=tuple(found for found in listing.objects if found.key not in known),
                soft_deleted=tuple(found for found in listing.soft_deleted if found.key not in known),
            )
        if not listing.complete:
            known.update(found.key for found in (*listing.objects, *listing.soft_deleted))
            self._from_parts[place] = known
        return listing

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
        for detail in self._parallel.results("details", self._detail, self._waiting):
            if not detail.gone:
                self._ruled(detail.found, soft_deleted(detail.found))
        unclaimed = _each_once(candidates)
        for claimed in (judge.claimed, judge.claimed_alone):
            unclaimed = [found for found in unclaimed if not self._ruled(found, claimed(found))]
        recognised = self._index.recognised(unclaimed)
        self._summary[Verdict.MANAGED.value] += len(recognised)
        rest = [found for position, found in enumerate(unclaimed) if position not in recognised]
        explained: list[tuple[CloudObject, tuple[Explanation, ...]]] = []
        findings: list[Finding] = []
        looked = self._parallel.results("details", self._detail, rest)
        details = [detail for detail in looked if not detail.gone]  # an index of them lags behind what there is
        self._records.read_older([detail.found for detail in details])
        for detail in details:
            found, told = detail.found, self._explainer.explain(detail.found)
            if detail.gap is not None:
                self._gaps[detail.gap] = None
            sure = any(one.named and not one.live and one.confidence is not Confidence.POSSIBLE for one in told)
            ruling = judge.in_detail(found, explained=sure)
            if ruling is not None and ruling.verdict is not Verdict.UNKNOWN:
                self._ruled(found, ruling)
            elif (unclear := self._unclear(detail, told, ruling)) is not None:
                findings.append(unclear)
            elif told:
                explained.append((found, told))
            elif (made_by := judge.by_uncertain_maker(found)) is None:
                cut = self._records.cut(found)
                added = judge.added_to(found)
                findings.append(strays.unmanaged(found, len(self._states), self._records.damaged, cut, added))
            elif made_by.verdict is Verdict.UNKNOWN:
                findings.append(self._of_unknown_maker(found, made_by))
            else:
                self._ruled(found, made_by)
        decided = last_decisions(self._records.ledgers)
        for finding in self._audited([*findings, *strays.explained(explained, self._index.held)]):
            self._summary[finding.verdict.value] += 1
            self._findings.append(strays.with_tag(strays.with_lapsed(finding, decided, self._started_at)))

    def _unclear(self, detail: Detail, told: Sequence[Explanation], ruling: Ruling | None) -> Finding | None:
        """The finding for an object of which nothing may be said now; None where something may."""
        found = detail.found
        if is_nameless(found):
            why_not = "the id of its project is not known, under which a state would have it"
            self._untold(found, why_not)
            return strays.unknown(found, (Evidence(EvidenceKind.GAP, why_not),))
        if live := next((one for one in told if one.live), None):
            runs = Evidence(EvidenceKind.OPERATION, f"operation {live.operation_id} runs now, and may be at work on it")
            self._untold(found, f"operation {live.operation_id} runs now")
            return strays.unknown(found, (runs, *live.evidence), live.operation_id)
        if unread := self._states.unread:
            why = (Evidence(EvidenceKind.GAP, f"{name}: {reason}") for name, reason in unread.items())
            return strays.unknown(found, tuple(why)[:3])
        if (rivals := self._index.rivals(found)) is not None:
            explained = [item for one in told for item in one.evidence]
            shown = strays.without_secrets(found, self._index.secrets_of(rivals.claim))
            self._untold(found, "whether some of them are what a state has cannot be told")
            return strays.unknown(shown, (strays.of_equal_name(rivals), *explained))
        if told and any(one.named for one in told):
            return None
        if (claim := self._index.doubt(found)) is not None:
            hidden = Evidence(EvidenceKind.GAP, f"it may be {claim}, whose name is marked sensitive")
            self._untold(found, "whether some of them are what a state has cannot be told")
            return strays.unknown(strays.without_secrets(found, self._index.secrets_of(claim)), (hidden,))
        if ruling is not None:
            return self._of_unknown_maker(found, ruling)
        if not told and detail.gap is not None:  # its tags could tell that a service made it, or that it is ignored
            return strays.unknown(found, (Evidence(EvidenceKind.GAP, f"{detail.gap.scope}: {detail.gap.reason}"),))
        if not told and (maker := self._explainer.may_be_making(found, self._started_at, self._request.grace)):
            young = f"it is younger than {self._request.grace}, and operation {maker} runs now"
            self._untold(found, f"operation {maker} runs now")
            return strays.unknown(found, (Evidence(EvidenceKind.OPERATION, young),), maker)
        return None

    def _of_unknown_maker(self, found: CloudObject, ruling: Ruling) -> Finding:
        self._untold(found, "what makes some of them by itself was not looked up")
        return strays.unknown(found, (Evidence(EvidenceKind.GAP, ruling.reason),))

    def _untold(self, found: CloudObject, why: str) -> None:
        """Note that the look was incomplete where an object is that nothing can be said of, as the exit code tells."""
        self._gaps[Gap(f"{Scope(found.cloud, found.account, found.region)} {found.type}", why)] = None

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
        known = self._records.operations
        return [strays.with_creation(finding, answer.creations, known) for finding in findings]

    def _detail(self, found: CloudObject) -> Detail:
        provider = self._provider(found)
        if provider is not None:
            return listed_detail(found, provider, self._ports.inventory, self._ports.catalog)
        kind = self._ports.catalog.get(found.type)
        if kind is None or kind.get is None:
            return Detail(found)
        where = f"{Scope(found.cloud, found.account, found.region)} {found.type}"
        return Detail(found, Gap(where, "whom to ask whether it is there is not known"))

    def _provider(self, found: CloudObject) -> ProviderConfig | None:
        """Through which configuration an object was listed: the one that may work in its account, else the one that
        told of that account, which may call it otherwise (by a number)."""
        cloud = cloud_named(found.cloud)
        if cloud is None:
            return None
        known = [shard.provider for shard in self._request.shards if shard.cloud == found.cloud]
        guarded = (one for one in known if cloud.guarded_account(one.settings) == found.account)
        free = (one for one in known if cloud.guarded_account(one.settings) is None)
        asked_as = self._asked_as.get((found.cloud, found.account)) if found.account is not None else None
        told = (one for one in known if one.key == asked_as)
        return next(guarded, None) or next(free, None) or next(told, None)

    def _is_there(self, one: Unlisted) -> bool:
        """Whether what no list has may be there all the same, by its own service's word: what lists it may be an index
        that lags. One that cannot be asked for is a gap."""
        kind = self._ports.catalog.get(one.type)
        if kind is None or not lists_lag(kind, self._ports.catalog) or not self._ports.inventory.covers(one.type):
            return False
        scope = Scope(kind.cloud, one.account, one.region)
        found = named_object(kind, one.arn, scope)
        provider = self._provider(found) if found else None
        if found is None or provider is None:
            why = "what a state has and no list cannot be asked for: it may have been made just now"
            self._gaps[Gap(f"{scope} {one.type}", why)] = None
            return True
        answer = self._ports.inventory.detail(found, provider)
        if answer.gap is not None:
            self._gaps[answer.gap] = None
        return not answer.gone

    def _unlisted(self) -> list[Unlisted]:
        here = {(kind, account, region) for _, account, region, kind in self._complete if account is not None}
        return list(self._index.unlisted(here))


def _each_once(objects: Iterable[CloudObject]) -> list[CloudObject]:
    return list({found.key: found for found in objects}.values())
