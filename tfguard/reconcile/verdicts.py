"""What a listed object is: managed, ignored by a named rule, somebody else's, or one that somebody must look at. Pure.

The first verdict that holds counts: soft-deleted, managed, retained, foreign, ignored by the catalogue, by its maker or
by the configuration, unknown, explained by an operation, unmanaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase

from tfguard.catalog.loader import Catalog
from tfguard.model.config import IgnoreRule
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.finding import Verdict
from tfguard.model.inventory import CloudObject, Listing, MadeBy
from tfguard.reconcile.matching import CLOCK_SKEW
from tfguard.reconcile.state_index import StateIndex

_GLOBAL = "global"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What an object is, by which rule, and why in one line; `rule` is the name under which it is counted."""

    verdict: Verdict
    rule: str = ""
    reason: str = ""
    disposition: Disposition | None = None


class IgnoreRules:
    """The rules of tfguard.yaml. One that has expired does not apply any more. Each counts what it was used for."""

    def __init__(self, rules: Sequence[IgnoreRule], now: datetime) -> None:
        self._now = now
        named = [(f"scan.ignore[{number}]", rule) for number, rule in enumerate(rules)]
        self._live = [(name, rule) for name, rule in named if not _has_expired(rule, now)]
        self._uses: Counter[str] = Counter()
        self.expired = tuple(_described(name, rule) for name, rule in named if _has_expired(rule, now))

    @property
    def unused(self) -> tuple[str, ...]:
        """The rules that still apply and that no object needed."""
        return tuple(_described(name, rule) for name, rule in self._live if not self._uses[name])

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
            fnmatchcase(found.type, rule.type)
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
            for rule in kind.made_by:
                self._keys.setdefault(catalog.canonical(rule.type), set()).add(rule.parent_attribute)
        self._listed: dict[tuple[str, str, str], set[tuple[str | None, str, bool]]] = {}
        self._complete: set[tuple[str, str | None, str]] = set()

    def note(self, listing: Listing) -> None:
        """Take in a listing."""
        keys = self._keys.get(listing.type)
        if keys is None:
            return
        if listing.complete:
            self._complete.add((listing.type, listing.scope.account, listing.scope.region))
        kind = self._catalog.get(listing.type)
        for found in (*listing.objects, *listing.soft_deleted):
            for key in keys & found.identity.keys():
                value = kind.comparable(key, found.identity[key]) if kind else found.identity[key]
                place = (found.account, found.region, found.ignored_because is not None)
                self._listed.setdefault((found.type, key, value), set()).add(place)

    def ruling(self, found: CloudObject, *, certain: bool) -> Ruling | None:
        """Ignored where a maker of the object exists; unknown where one that makes such objects for certain could not
        be looked up; None where there is none."""
        makers = [maker for maker in found.made_by if maker.certain is certain]
        for maker in makers:
            if self._exists(maker, found):
                return Ruling(Verdict.IGNORED, f"child: {maker.reason}", f"{maker.reason}: {maker.type} {maker.value}")
        for maker in makers if certain else ():
            if not maker.when_ignored and not self._was_looked_for(maker, found):
                reason = f"{maker.reason}, as it says, and whether {maker.type} {maker.value} exists was not looked up"
                return Ruling(Verdict.UNKNOWN, reason=reason)
        return None

    def _exists(self, maker: MadeBy, found: CloudObject) -> bool:
        if not maker.when_ignored and self._index.knows(
            maker.type, maker.key, maker.value, found.account, found.region
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
        return any((kind, found.account, region) in self._complete for region in (found.region, _GLOBAL))


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
        if self.kept(found) is not None:
            return None
        if found.owner is not None and found.account is not None and found.owner != found.account:
            return Ruling(Verdict.FOREIGN, "foreign", f"owned by {found.owner}, and seen in {found.account}")
        if found.ignored_because is not None:
            return None if self._mentioned(found) else _by_catalogue(found, found.ignored_because)
        return None if found.made_by else self._rules.ruling(found, whole=False)

    def when_listed(self, found: CloudObject) -> Ruling | None:
        """The ruling on a candidate once everything is listed, before anybody asks for its details."""
        if found.ignored_because is not None or self.kept(found) is not None:
            return None
        ruling = self._makers.ruling(found, certain=True)
        if ruling is not None and ruling.verdict is Verdict.IGNORED:
            return ruling
        return self._rules.ruling(found, whole=False) if found.made_by else None

    def claimed(self, found: CloudObject) -> Ruling | None:
        """The ruling on a candidate that a state claims by now."""
        return Ruling(Verdict.MANAGED) if self._index.match(found) is not None else None

    def in_detail(self, found: CloudObject, *, explained: bool) -> Ruling | None:
        """The ruling on a candidate with all its details; None where an operation, or nothing, explains it.

        `explained`: an operation names the object, which says more than what a service usually makes by itself.
        """
        decision = self.kept(found)
        if decision is not None and not _is_newer(found, decision):
            return Ruling(Verdict.RETAINED, "retained", decision.reason, decision)
        if found.ignored_because is not None and not explained:
            return _by_catalogue(found, found.ignored_because)
        by_maker = self._makers.ruling(found, certain=True)
        if by_maker is not None and by_maker.verdict is Verdict.IGNORED:
            return by_maker
        return self._rules.ruling(found, whole=True) or by_maker

    def by_uncertain_maker(self, found: CloudObject) -> Ruling | None:
        """The ruling on a candidate that nothing else explains than something that may make such objects by itself."""
        return self._makers.ruling(found, certain=False)

    def kept(self, found: CloudObject) -> Disposition | None:
        """The decision to keep an object; it may have been made when the account was not known."""
        if not self._kept:
            return None
        return self._kept.get(found.finding_id) or self._kept.get(replace(found, account=None).finding_id)


def soft_deleted() -> Ruling:
    """The ruling on an object that is listed and only waits for its end."""
    return Ruling(Verdict.SOFT_DELETED, "soft-deleted", "it is deleted, and waits for its end")


def kept_by(ledgers: Collection[Disposition]) -> Mapping[str, Disposition]:
    """The decisions to retain that still hold, by finding id: the last one about an object counts."""
    last: dict[str, Disposition] = {}
    for entry in sorted(ledgers, key=lambda entry: entry.at):
        last[entry.finding_id] = entry
    return {name: entry for name, entry in last.items() if entry.kind is DispositionKind.RETAIN}


def _by_catalogue(found: CloudObject, reason: str) -> Ruling:
    return Ruling(Verdict.IGNORED, f"catalogue: {reason}", f"{reason}, as the catalogue tells of {found.type}")


def _is_newer(found: CloudObject, decision: Disposition) -> bool:
    """Whether the object was made after the decision: another one under an old name needs a decision anew."""
    return found.created_at is not None and found.created_at > decision.at + CLOCK_SKEW
