"""What a scan was to look at, and whether another was to look at all of it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from tfguard.model.naming import first_of
from tfguard.model.scan import ScanPlace, ScanScope, ScopePart, Shard

Place = tuple[str, str | None, str, str]
"""A list: cloud, account, region and type."""

_GLOBAL = "global"
_EXPORTED = "account"
_TOLD = 3


def scope_of(shards: Iterable[Shard], states: Collection[str], listed: Collection[Place]) -> ScanScope:
    """The scope of a scan of `shards` that was to read the states of the patterns `states`.

    In which account a list is that names none, the complete ones among all lists tell (`listed`): their account is the
    one of the caller's own credentials, or they are all of an organization's.
    """
    asked = [(shard, shard.account or shard.provider.settings.get(_EXPORTED)) for shard in shards]
    own: dict[str, set[str | None]] = {}
    for cloud in {shard.cloud for shard, _ in asked}:
        named = {account for shard, account in asked if shard.cloud == cloud}
        own[cloud] = {account for where, account, *_ in listed if where == cloud} - named or {None}
    return _scope(
        states,
        {
            (shard.cloud, one, shard.region or _GLOBAL, kind)
            for shard, account in asked
            for one in ((account,) if account else own[shard.cloud])
            for kind in shard.types
        },
    )


def places_of(scope: ScanScope) -> frozenset[Place]:
    """The lists of a scope, one by one."""
    return frozenset(
        (part.cloud, part.account, region, kind)
        for part in scope.lists
        for region in part.regions
        for kind in part.types
    )


def looked_at(listed: Iterable[Place]) -> tuple[ScanPlace, ...]:
    """The accounts and regions of lists, in order."""
    regions: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for cloud, account, region, _ in listed:
        regions[cloud, account].add(region)
    found = (ScanPlace(cloud, account, tuple(sorted(of))) for (cloud, account), of in regions.items())
    return tuple(sorted(found, key=lambda place: (place.cloud, place.account or "", place.regions)))


def covers(scope: ScanScope, other: ScanScope, *, anyhow: bool = False) -> bool:
    """Whether a scan of `scope` looks at all that is in `other`. Patterns of states are compared as they are.

    With `anyhow`, a list of an unknown account may be that of any account.
    """
    here, wanted = places_of(scope), places_of(other)
    if anyhow:
        wanted = frozenset(place for place in wanted if (place[0], None, *place[2:]) not in here)
    return set(other.states) <= set(scope.states) and not _left_out(here, wanted)


def united(scope: ScanScope, other: ScanScope) -> ScanScope:
    """What is in one of them."""
    return _scope({*scope.states, *other.states}, _known(places_of(scope) | places_of(other)))


def told_left_out(scope: ScanScope, other: ScanScope) -> str:
    """The parts of `other` that a scan of `scope` does not look at, in a few words."""
    types: dict[str, int] = defaultdict(int)
    for cloud, account, region, _ in sorted(_left_out(places_of(scope), places_of(other)), key=str):
        types[f"{cloud} {account or 'unknown-account'} {region}"] += 1
    parts = [f"the states of {pattern}" for pattern in sorted(set(other.states) - set(scope.states))]
    parts += [f"{place} ({count} {'type' if count == 1 else 'types'})" for place, count in types.items()]
    return first_of(parts, _TOLD)


def _left_out(here: frozenset[Place], wanted: frozenset[Place]) -> set[Place]:
    somewhere = {(cloud, None, region, kind) for cloud, _, region, kind in here}
    return {place for place in wanted - here if place not in somewhere}


def _known(places: Collection[Place]) -> set[Place]:
    """The places without those of an unknown account that are among the others."""
    known = {(cloud, None, region, kind) for cloud, account, region, kind in places if account}
    return {place for place in places if place not in known}


def _scope(states: Collection[str], places: Collection[Place]) -> ScanScope:
    types: dict[tuple[str, str | None, str], set[str]] = defaultdict(set)
    for cloud, account, region, kind in places:
        types[cloud, account, region].add(kind)
    regions: dict[tuple[str, str | None, tuple[str, ...]], list[str]] = defaultdict(list)
    for (cloud, account, region), kinds in types.items():
        regions[cloud, account, tuple(sorted(kinds))].append(region)
    parts = [ScopePart(cloud, account, tuple(sorted(of)), kinds) for (cloud, account, kinds), of in regions.items()]
    return ScanScope(tuple(sorted(states)), tuple(sorted(parts, key=str)))
