"""What a scan found that an earlier one had not, and the other way round. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from tfguard.model.address import resource_type
from tfguard.model.finding import Finding
from tfguard.model.inventory import CloudObject, Coverage, Gap
from tfguard.model.scan import ScanResult, ScanScope
from tfguard.model.since import KEPT_DAYS, Changes, KeptFinding, KeptScan
from tfguard.reconcile.scopes import Place, covers, places_of, told_left_out, united

_Bare = tuple[str, ...]
_EARLIER = "earlier scans"


def changes_since(last: KeptScan | None, result: ScanResult, canonical: Callable[[str], str] = str) -> Changes:
    """How the findings of `result` differ from those of `last`; without a last scan all of them are new.

    What is not found any more is `gone` only where its type was listed to the end in its account and region: an
    incomplete look proves nothing (docs/design.md, rule 12). What was missing is gone only where, besides, nothing at
    all was left out of what the last scan was to look at, for it tells of no place. Nothing is gone when the two scans
    went on at the same time: which of them has looked later is not known. `canonical` gives the type under which a type
    of a state is listed.

    An object whose account nobody could tell is the same as the one with an account that is otherwise its like.
    """
    now = result.ended_at
    if last is None:
        ids = tuple(finding.id for finding in result.findings)
        return Changes(None, new=ids, first_seen=dict.fromkeys(ids, now), scope=result.scope, coverage=result.coverage)
    again = _told_again(last.findings, result)
    left = [finding for finding in last.findings if finding.id not in again]
    looked = {finding.id for finding in left if _looked_at(finding, last, result, canonical)}
    unlooked = [finding for finding in left if finding.id not in looked]
    begins = now - timedelta(days=KEPT_DAYS)
    first_seen = _first_seen(last.findings, again)
    return Changes(
        at=last.scan.ended_at,
        new=tuple(finding.id for finding in result.findings if finding.id not in first_seen),
        still=tuple(finding.id for finding in result.findings if finding.id in first_seen),
        gone=tuple(finding for finding in left if finding.id in looked),
        unseen=tuple(finding for finding in unlooked if finding.last_seen is None or finding.last_seen >= begins),
        dropped=tuple(finding for finding in unlooked if finding.last_seen and finding.last_seen < begins),
        first_seen={finding.id: first_seen.get(finding.id) or now for finding in result.findings},
        scope=united(result.scope, last.scope),
        coverage=_coverage(last, result),
    )


def _told_again(before: Sequence[KeptFinding], result: ScanResult) -> Mapping[str, str | None]:
    """The findings of before that are told again: of each the id now, None where several can be it."""
    here = {finding.id for finding in result.findings}
    now, then = _alike(result.findings), _alike(before)
    again: dict[str, str | None] = {}
    for finding in before:
        like = _bare(finding.object)
        if finding.id in here:
            again[finding.id] = finding.id
        elif finding.object is not None and finding.object.account is None and now[like, True]:
            again[finding.id] = now[like, True][0] if len(now[like, True]) == 1 else None
        elif now[like, False] and len(then[like, True]) == 1:
            again[finding.id] = now[like, False][0]
    return again


def _alike(findings: Iterable[Finding | KeptFinding]) -> Mapping[tuple[_Bare, bool], list[str]]:
    """The ids of the findings by what their objects are besides the account, and by whether that is known."""
    found: dict[tuple[_Bare, bool], list[str]] = defaultdict(list)
    for finding in findings:
        if finding.object is not None:
            found[_bare(finding.object), finding.object.account is not None].append(finding.id)
    return found


def _bare(found: CloudObject | None) -> _Bare:
    return (found.cloud, found.region, found.type, found.import_id) if found else ()


def _first_seen(before: Sequence[KeptFinding], again: Mapping[str, str | None]) -> Mapping[str, datetime | None]:
    """When each finding that is told again was told first, by its id now."""
    first: dict[str, datetime | None] = {}
    for finding in before:
        if (name := again.get(finding.id)) is not None:
            dates = [one for one in (first.get(name), finding.first_seen) if one is not None]
            first[name] = min(dates, default=None)
    return first


def _looked_at(finding: KeptFinding, last: KeptScan, result: ScanResult, canonical: Callable[[str], str]) -> bool:
    if last.scan.ended_at > result.started_at:
        return False
    found = finding.object
    if found is None:
        kind = canonical(resource_type(finding.address or ""))
        listed = any(kind == one for *_, one in result.complete_listings)
        return result.coverage.complete and covers(result.scope, last.scope) and listed
    if found.account is None:
        return _looked_at_everywhere(found, last.scope, result)
    return (found.cloud, found.account, found.region, found.type) in result.complete_listings


def _looked_at_everywhere(found: CloudObject, scope: ScanScope, result: ScanResult) -> bool:
    """Whether what is in an account that nobody knows was looked for in every one that it can be in."""

    def accounts(places: Iterable[Place]) -> set[str | None]:
        return {
            account
            for cloud, account, region, kind in places
            if (cloud, region, kind) == (found.cloud, found.region, found.type)
        }

    done, asked = accounts(result.complete_listings), accounts(places_of(result.scope))
    return bool(done) and asked <= done and accounts(places_of(scope)) - {None} <= done


def _coverage(last: KeptScan, result: ScanResult) -> Coverage:
    """How far the look at all that is kept reached: never further than where the wider of the two scans did not."""
    # A list of which nobody knows the account leaves gaps: which account it was is no news then.
    if covers(result.scope, last.scope, anyhow=not result.coverage.complete):
        return result.coverage
    left_out = told_left_out(result.scope, last.scope)
    why = f"the last scan did not look at {left_out}: scan that as well, or begin anew with another file"
    gaps = {gap.scope: gap for gap in last.coverage.gaps}
    gaps |= {gap.scope: gap for gap in (Gap(_EARLIER, why), *result.coverage.gaps)}
    return replace(result.coverage, gaps=tuple(gaps.values()))


def earlier_gap(coverage: Coverage) -> str:
    """Why what is kept is not complete though the last scan may be; empty where the last scan looked at all of it."""
    return next((gap.reason for gap in coverage.gaps if gap.scope == _EARLIER), "")
