"""What a listed object is: managed, ignored by a named rule, somebody else's, or one that somebody must look at. Pure.

The first verdict that holds counts: soft-deleted, managed, retained, foreign, ignored by the catalogue, by its maker or
by the configuration, unknown (a run is at work on it, a state cannot be read, an instance may or may not stand for it,
a maker was not looked up), orphaned or duplicated where an operation explains it, unmanaged. `missing` is no verdict on
an object that is listed, but on one that a state has and a complete list has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase

from tfguard.catalog.catalog import Catalog
from tfguard.model.arn import arn_part
from tfguard.model.config import IgnoreRule
from tfguard.model.disposition import Disposition, DispositionKind, latest
from tfguard.model.finding import Verdict
from tfguard.model.inventory import ANY_VALUE, NAMED_IN, UNKNOWN_REGION, CloudObject, Listing, MadeBy
from tfguard.reconcile.matching import CLOCK_SKEW
from tfguard.reconcile.scopes import Place
from tfguard.reconcile.state_index import StateIndex
from tfguard.reconcile.waiting import said_of

_GLOBAL = "global"
_SURELY_NAMED = 12
"""How much of its maker's name an object's has at least, where that is cut for want of room."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What an object is, by which rule, and why in one line; `rule` is the name under which it is counted."""

    verdict: Verdict
    rule: str = ""
    reason: str = ""
    disposition: Disposition | None = None


class IgnoreRules:
    """The rules of tfguard.yaml. One that has expired does not apply any more. Each counts what it was used for."""

    def __init__(self, rules: Sequence[IgnoreRule], now: datetime, catalog: Catalog) -> None:
        self._now = now
        self._types = {rule.type: frozenset(kind.type for kind in catalog.matching(rule.type)) for rule in rules}
        named = [(f"scan.ignore[{number}]", rule) for number, rule in enumerate(rules)]
        self._live = [(name, rule) for name, rule in named if not _has_expired(rule, now)]
        self._uses: Counter[str] = Counter()
        self.expired = tuple(_described(name, rule) for name, rule in named if _has_expired(rule, now))

    def unused(self, untested: Collection[Place] = ()) -> tuple[str, ...]:
        """The rules that still apply and that no object needed, without those that may have had something to do in one
        of the lists `untested`; and those for a type that is none."""
        return tuple(
            _described(name, rule) + ("" if self._types[rule.type] else ": its type matches none of the catalogue")
            for name, rule in self._live
            if not self._uses[name] and not any(self._is_about(rule, place) for place in untested)
        )

    def _is_about(self, rule: IgnoreRule, place: Place) -> bool:
        _, account, region, kind = place
        return (
            kind in self._types[rule.type]
            and (account is None or fnmatchcase(account, rule.account))
            and (region == UNKNOWN_REGION or fnmatchcase(region, rule.region))
        )

    def ruling(self, found: CloudObject, *, whole: bool) -> Ruling | None:
        """The first rule that the object fits. Unless it is `whole`, with tags and creation time as far as they can be
        known, rules about those are left for later."""
        for name, rule in self._live:
            if (whole or not _about_details(rule)) and self._fits(rule, found):
                self._uses[name] += 1
                return Ruling(Verdict.IGNORED, f"{name}: {rule.reason}", rule.reason)
        return None

    def _fits(self, rule: IgnoreRule, found: CloudObject) -> bool:
        return (
            found.type in self._types[rule.type]
            and fnmatchcase(found.name or "", rule.name)
            and any(fnmatchcase(text, rule.id) for text in (found.id, found.import_id))
            and fnmatchcase(found.account or "", rule.account)
            and fnmatchcase(found.region, rule.region)
            and (rule.tag is None or _has_tag(found.tags, rule.tag))
            and (rule.younger_than is None or self._is_younger(found, rule))
        )

    def _is_younger(self, found: CloudObject, rule: IgnoreRule) -> bool:
        """One whose age nobody tells is not young: it would be ignored for ever."""
        limit = rule.younger_than
        return limit is not None and found.created_at is not None and self._now - found.created_at < limit


def _has_expired(rule: IgnoreRule, now: datetime) -> bool:
    """A rule holds until the end of its last day."""
    return rule.expires is not None and now.date() > rule.expires


def _about_details(rule: IgnoreRule) -> bool:
    return rule.tag is not None or rule.younger_than is not None


def _described(name: str, rule: IgnoreRule) -> str:
    return f"{name} ({rule.type}: {rule.reason})"


def _has_tag(tags: Mapping[str, str], pattern: str) -> bool:
    """Whether a tag fits `key` or `key=value`, each a pattern."""
    key, equals, value = pattern.partition("=")
    return any(fnmatchcase(name, key) and (not equals or fnmatchcase(text, value)) for name, text in tags.items())


class Makers:
    """Which objects that make others by themselves exist, in a state or in a listing.

    Children can be listed before their maker: ask when everything is listed.
    """

    def __init__(self, catalog: Catalog, index: StateIndex) -> None:
        self._catalog = catalog
        self._index = index
        self._keys: dict[str, set[str]] = {}
        for kind in catalog:
            for maker, attribute in kind.makers:
                self._keys.setdefault(catalog.canonical(maker), set()).add(attribute)
        self._listed: dict[tuple[str, str, str], set[tuple[str | None, str, bool]]] = {}
        self._called: dict[tuple[str, str], set[str]] = {}
        self._complete: set[tuple[str, str | None, str]] = set()
        self._cut: set[tuple[str, str | None]] = set()

    def note(self, listing: Listing) -> None:
        """Take in a listing."""
        keys = self._keys.get(listing.type)
        if keys is None:
            return
        if listing.complete:
            self._complete.add((listing.type, listing.scope.account, listing.scope.region))
        else:
            self._cut.add((listing.type, listing.scope.account))
        kind = self._catalog.get(listing.type)
        for found in (*listing.objects, *listing.soft_deleted):
            place = (found.account, found.region, found.ignored_because is not None)
            for key in keys & found.identity.keys():
                value = kind.comparable(key, found.identity[key]) if kind else found.identity[key]
                self._listed.setdefault((found.type, key, value), set()).add(place)
                self._listed.setdefault((found.type, key, ANY_VALUE), set()).add(place)
                self._called.setdefault((found.type, key), set()).add(value)

    def ruling(self, found: CloudObject, *, certain: bool) -> Ruling | None:
        """Ignored where a maker of the object exists; unknown where one that the object tells of was not looked up;
        None where there is none."""
        makers = [one for one in found.made_by if one.certain is certain and not self.is_none_of(one, found)]
        for maker in makers:
            if self._exists(maker, found):
                return Ruling(Verdict.IGNORED, f"child: {maker.reason}", f"{maker.reason}: {_shown(maker)}")
        for maker in makers:
            if not self._names_itself(maker, found) and not self._was_looked_for(maker, found):
                asked = "is the provider's own" if maker.when_ignored else "exists"
                missed = f"whether {_shown(maker)} {asked} was not looked up"
                surely = certain and not maker.when_ignored
                reason = f"{maker.reason}, as it says, and {missed}" if surely else f"{missed}; if so: {maker.reason}"
                return Ruling(Verdict.UNKNOWN, reason=reason)
        return None

    def is_none_of(self, maker: MadeBy, found: CloudObject) -> bool:
        """Whether a state tells what it has of a maker, and this object is not among it."""
        held = self._index.held_inside
        if not maker.held or not held.tells_of(maker.type, maker.value):
            return False
        return not any(held.has(found.type, value) for value in maker.held)

    def _names_itself(self, maker: MadeBy, found: CloudObject) -> bool:
        """Whether the object tells of no maker at all: it is the maker that would name it, by its own key."""
        kind = self._catalog.get(found.type)
        return kind is not None and any(found.identity.get(key) == maker.value for key in kind.keys)

    def _exists(self, maker: MadeBy, found: CloudObject) -> bool:
        if maker.value.startswith(NAMED_IN):
            called = self._called.get((self._catalog.canonical(maker.type), maker.key), set())
            meant = [name for name in called if f"-{name[:_SURELY_NAMED]}" in maker.value]
            return any(self._exists(replace(maker, value=name), found) for name in meant)
        # A maker of which nothing tells where it is is none here where a complete list has none.
        surely = self._was_looked_for(maker, found)
        if not maker.when_ignored and self._index.knows(
            maker.type, maker.key, maker.value, found.account, found.region, surely=surely
        ):
            return True
        kind = self._catalog.get(self._catalog.canonical(maker.type))
        value = kind.comparable(maker.key, maker.value) if kind else maker.value
        places = self._listed.get((kind.type if kind else maker.type, maker.key, value), ())
        return any(
            account in (None, found.account)
            and (region == found.region or _GLOBAL in (region, found.region))
            and (ignored or not maker.when_ignored)
            for account, region, ignored in places
        )

    def _was_looked_for(self, maker: MadeBy, found: CloudObject) -> bool:
        kind = self._catalog.canonical(maker.type)
        # What exists once in an account can have a maker in any region: its ARN tells in which.
        named = arn_part(maker.value, 3) if found.region == _GLOBAL else None
        if found.region == _GLOBAL and not named and not maker.certain:  # in one of the regions that were looked at
            several = any(one == kind and account == found.account for one, account, _ in self._complete)
            return several and (kind, found.account) not in self._cut
        return any((kind, found.account, region) in self._complete for region in (found.region, _GLOBAL, named))


class Judge:
    """Judges objects as far as it can be done without any operation's record.

    `kept` are the decisions to retain, by finding id. `mentioned` tells whether an operation's record names an object:
    what a service usually makes by itself can be what an operation lost.
    """

    def __init__(
        self,
        index: StateIndex,
        makers: Makers,
        rules: IgnoreRules,
        kept: Mapping[str, Disposition],
        mentioned: Callable[[CloudObject], bool],
    ) -> None:
        self._index = index
        self._makers = makers
        self._rules = rules
        self._kept = kept
        self._mentioned = mentioned

    def at_once(self, found: CloudObject) -> Ruling | None:
        """The ruling on an object as it is listed; None for a candidate, of which more has to be known."""
        if self._index.match(found) is not None:
            return Ruling(Verdict.MANAGED)
        return None if self._index.may_be_known(found) else self._unclaimed(found)

    def _unclaimed(self, found: CloudObject) -> Ruling | None:
        if self.kept(found) is not None:
            return None
        if found.owner is not None and found.account is not None and found.owner != found.account:
            return Ruling(Verdict.FOREIGN, "foreign", f"owned by {found.owner}, and seen in {found.account}")
        if found.ignored_because is not None:
            return None if self._mentioned(found) else _by_catalogue(found, found.ignored_because)
        return None if found.made_by else self._rules.ruling(found, whole=False)

    def when_listed(self, found: CloudObject) -> Ruling | None:
        """The ruling on a candidate once everything is listed, before anybody asks for its details."""
        if self._index.alone(found) is not None:
            return Ruling(Verdict.MANAGED)
        if self._index.may_be_known(found) and (ruling := self._unclaimed(found)) is not None:
            return ruling
        if found.ignored_because is not None or self.kept(found) is not None:
            return None
        ruling = self._makers.ruling(found, certain=True)
        if ruling is not None and ruling.verdict is Verdict.IGNORED:
            return None if self._mentioned(found) else ruling
        return self._rules.ruling(found, whole=False) if found.made_by else None

    def claimed(self, found: CloudObject) -> Ruling | None:
        """The ruling on a candidate that a state claims by now, for certain."""
        return Ruling(Verdict.MANAGED) if self._index.match(found) is not None else None

    def claimed_alone(self, found: CloudObject) -> Ruling | None:
        """The ruling on a candidate that a state claims, and that can be no other object: ask when all that are claimed
        for certain are known."""
        return Ruling(Verdict.MANAGED) if self._index.alone(found) is not None else None

    def in_detail(self, found: CloudObject, *, explained: bool) -> Ruling | None:
        """The ruling on a candidate with all its details; None where an operation, or nothing, explains it.

        `explained`: an operation names the object, which says more than what else makes such ones by itself.
        """
        decision = self.kept(found)
        # One with a date holds until then: the clock by which it was made may be behind that of the provider.
        if decision is not None and (decision.until is not None or not is_newer(found, decision)):
            return Ruling(Verdict.RETAINED, "retained", decision.reason, decision)
        if found.ignored_because is not None and not explained:
            return _by_catalogue(found, found.ignored_because)
        by_maker = None if explained else self._makers.ruling(found, certain=True)
        if by_maker is not None and by_maker.verdict is Verdict.IGNORED:
            return by_maker
        return self._rules.ruling(found, whole=True) or by_maker

    def by_uncertain_maker(self, found: CloudObject) -> Ruling | None:
        """The ruling on a candidate that nothing else explains than something that may make such objects by itself."""
        return self._makers.ruling(found, certain=False)

    def added_to(self, found: CloudObject) -> MadeBy | None:
        """The maker whose state tells of such objects and not of this one: somebody added it."""
        return next((maker for maker in found.made_by if self._makers.is_none_of(maker, found)), None)

    def kept(self, found: CloudObject) -> Disposition | None:
        """The decision to keep an object; it may have been made when the account was not known."""
        if not self._kept:
            return None
        return self._kept.get(found.finding_id) or self._kept.get(replace(found, account=None).finding_id)


def _shown(maker: MadeBy) -> str:
    """The maker of an object, as a reason names it."""
    if maker.value.startswith(NAMED_IN):
        return f"the {maker.type} that {maker.value.removeprefix(NAMED_IN)} is called after"
    return f"{maker.type} {maker.value}"


def soft_deleted(found: CloudObject) -> Ruling:
    """The ruling on an object that is listed and only waits for its end."""
    return Ruling(Verdict.SOFT_DELETED, "soft-deleted", said_of(found).detail)


def kept_by(ledgers: Iterable[Sequence[Disposition]], now: datetime) -> Mapping[str, Disposition]:
    """The decisions to retain that hold `now`, by finding id: the last one about an object counts."""
    last = last_decisions(ledgers)
    return {name: entry for name, entry in last.items() if entry.kind is DispositionKind.RETAIN and entry.holds(now)}


def last_decisions(ledgers: Iterable[Sequence[Disposition]]) -> Mapping[str, Disposition]:
    """The last decision about each object, by finding id, of several ledgers, each oldest first whatever its clocks."""
    last = (entry for ledger in ledgers for entry in latest(ledger).values())
    return latest(sorted(last, key=lambda entry: entry.at))


def _by_catalogue(found: CloudObject, reason: str) -> Ruling:
    return Ruling(Verdict.IGNORED, f"catalogue: {reason}", f"{reason}, as the catalogue tells of {found.type}")


def is_newer(found: CloudObject, decision: Disposition) -> bool:
    """Whether the object was made after the decision: another one under an old name needs a decision anew."""
    return found.created_at is not None and found.created_at > decision.at + CLOCK_SKEW
