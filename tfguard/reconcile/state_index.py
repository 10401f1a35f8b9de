"""Which state claims an object: the keys of every instance of many states, kept so that a million of them fit. Pure."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import HELD, ResourceType
from tfguard.model.arn import has_number, in_some_project, place_in
from tfguard.model.inventory import CloudObject
from tfguard.model.secrets import WITHHELD_WORD, Withholding, has_key
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.reconcile.held import Held
from tfguard.reconcile.whereabouts import Configurations, Fit, Whereabouts

_ACCOUNTED_FOR, _FOUND = 1, 2
_PLACES_TOLD = 4
_Bucket = int | list[int]
_Table = dict[str, _Bucket]
_Pair = tuple[str, str]
_Group = tuple[tuple[str, ...], int]


@dataclass(frozen=True, slots=True)
class Claim:
    """An instance of a state that stands for an object: where the state lies, its workspace, and the address there."""

    location: str
    workspace: str
    address: str

    def __str__(self) -> str:
        place = self.location if self.workspace in ("", "default") else f"{self.location} ({self.workspace})"
        return f"{self.address} in {place}"


@dataclass(frozen=True, slots=True)
class Unlisted:
    """An object that a state has and that a complete list of its type, account and region has not."""

    type: str
    arn: str
    account: str
    region: str
    claim: Claim


@dataclass(frozen=True, slots=True)
class Rivals:
    """Why nobody can tell whether an instance is this object: `places` are some of those where its name was listed."""

    claim: Claim
    places: tuple[str, ...]


class _Tables:
    """The keys of one type.

    `arns` decide alone. `free` are the other keys of instances without an ARN, by the account that the instance is in
    (empty where that is not told); `bound` those of instances with one, which count for objects without.
    `blind` are the instances of which a key is withheld or none is there, in groups of those with the same visible keys
    at the same place. `keyless` are those without any key, `prints` the hashes of their ids. `numbered` are keys that
    have the number of a project, without it: which project that is nothing tells.
    """

    __slots__ = ("arns", "blind", "bound", "free", "groups", "keyless", "kind", "numbered", "prints")

    def __init__(self, kind: ResourceType) -> None:
        self.kind = kind
        self.arns: _Table = {}
        self.free: dict[str, dict[str, _Table]] = {}
        self.bound: dict[str, _Table] = {}
        self.blind: dict[int, _Group] = {}
        self.groups: dict[_Group, dict[int, None]] = {}
        self.prints: _Table = {}
        self.numbered: dict[str, _Table] = {}
        self.keyless: dict[tuple[int, str], int] = {}

    def is_blind(self, claim: int, visible: tuple[str, ...], place: int) -> None:
        """Note that of a claim only these keys are visible."""
        before = self.blind.get(claim)
        if before is not None:
            self.groups[before].pop(claim, None)
        self.blind[claim] = (visible, place)
        self.groups.setdefault((visible, place), {})[claim] = None

    def free_claims(self, key: str, value: str, account: str | None) -> Iterator[int]:
        """The claims without an ARN that have this value, and that can be in the account (None: in any)."""
        by_account = self.free.get(key, {})
        for told in by_account if account is None else dict.fromkeys((account, "")):
            yield from _in(by_account.get(told, {}).get(value))

    def numbered_claims(self, identity: Mapping[str, str]) -> Iterator[int]:
        """The claims whose keys are these but for the project, of which they have the number."""
        for key, table in self.numbered.items():
            if key in identity and not has_number(identity[key]):
                yield from _in(table.get(in_some_project(identity[key])))

    def keys_in(self, identity: Mapping[str, str]) -> dict[str, str]:
        """The keys in an identity, as they are compared."""
        kind = self.kind
        if not kind.folded:
            return {key: identity[key] for key in kind.keys if key in identity}
        return {key: kind.comparable(key, identity[key]) for key in kind.keys if key in identity}


class _Pairs:
    """Pairs of texts by number, each kept once."""

    __slots__ = ("_numbers", "all")

    def __init__(self) -> None:
        self.all: list[_Pair] = []
        self._numbers: dict[_Pair, int] = {}

    def number(self, pair: _Pair) -> int | None:
        """The number of a pair, None for one that was not added."""
        return self._numbers.get(pair)

    def add(self, pair: _Pair) -> int:
        """The number of a pair, a new one the first time."""
        number = self._numbers.setdefault(pair, len(self.all))
        if number == len(self.all):
            self.all.append(pair)
        return number


class _Places:
    """Whereabouts by number, each kept once."""

    __slots__ = ("_named", "_numbers", "all")

    def __init__(self) -> None:
        self.all: list[Whereabouts] = []
        self._numbers: dict[Whereabouts, int] = {}
        self._named: dict[_Pair, int] = {}

    def add(self, where: Whereabouts) -> int:
        """The number of a place, a new one the first time."""
        number = self._numbers.setdefault(where, len(self.all))
        if number == len(self.all):
            self.all.append(where)
        return number

    def of_unique(self, name: str, instance: StateInstance) -> int:
        """The number of the place that a unique name tells; of one that is no ARN and tells none (that of a bucket of
        Google Cloud) the one that the instance says itself."""
        named = place_in(name)
        if named == ("", "") and not name.startswith("arn:"):
            named = (instance.account, instance.region)
        if named not in self._named:
            account, region = (frozenset(filter(None, [part])) for part in named)
            self._named[named] = self.add(Whereabouts(account, region))
        return self._named[named]


class StateIndex:
    """Answers which state claims an object, in time that does not grow.

    Keys are compared as in `matching.same_object`, and an instance without an ARN is bound to where it is, as far as
    anything tells: modules make objects of one name in every account and region. Where it can be one of several
    objects, that is known only when everything is listed: `match` leaves it open, and `alone` and `rivals` tell then.

    A state is added as a snapshot that can be dropped afterwards. Added again, it is read anew: claims are only ever
    added, so that an object counts as managed if any reading has it.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tables: dict[str, _Tables] = {}
        self._by_name: dict[str, _Tables | None] = {}
        self.held_inside = Held(catalog)
        self._secrets: dict[int, frozenset[str]] = {}
        self._states = _Pairs()
        self._places = _Places()
        # Of each claim, by its number: the state, the address, the place, the first and the last reading that had it,
        # and whether it is accounted for: an object was found for it, or it is one that need not be listed.
        self._state = array("L")
        self._address: list[str] = []
        self._place = array("L")
        self._since = bytearray()
        self._read = bytearray()
        self._found = bytearray()
        self._reading = 0
        # Of claims that can be one of several objects: some of the places where such objects were listed.
        self._seen: dict[int, set[tuple[str | None, str]]] = {}

    def __len__(self) -> int:
        """How many instances there are, the objects that they own included."""
        return len(self._address)

    def begin_reading(self) -> None:
        """From here on states are read anew: what is not added again is not in its state any more."""
        self._reading += 1

    def add(self, location: str, workspace: str, snapshot: StateSnapshot) -> None:
        """Take in what a state claims. `location` and `workspace` name it, and never hold a credential."""
        anew = self._states.number((location, workspace)) is not None
        state = self._states.add((location, workspace))
        hidden = Withholding(snapshot.secrets) if snapshot.secrets else None
        if snapshot.secrets:
            self._secrets[state] = self._secrets.get(state, frozenset()) | snapshot.secrets
        configurations = Configurations(snapshot.instances, self._kind_of)
        for instance in snapshot.instances:
            tables = self._of(instance.type)
            address = _shown(instance, hidden)
            if tables is not None:
                self.held_inside.take(tables.kind, instance)
                claim, visible = self._claim(state, address, tables, instance.identity, instance, configurations, anew)
                if not visible or any(key in instance.withheld for key in tables.kind.keys):
                    tables.is_blind(claim, visible, self._place[claim])
                if not visible:
                    _print(tables, instance, claim)
            for owned in instance.owned:
                if owned.key == HELD:
                    continue
                if inner := self._of(owned.type):
                    known = {owned.key: owned.value}
                    claim, _ = self._claim(state, address, inner, known, instance, configurations, anew)
                    self._found[claim] = self._found[claim] or _ACCOUNTED_FOR

    def match(self, found: CloudObject) -> Claim | None:
        """The instance that claims an object, None for an object that no state knows for certain. The claim counts as
        found."""
        sure: list[int] = []
        for claim, fit in self._matches(found):
            if fit is Fit.YES:
                sure.append(claim)
                self._found[claim] = _FOUND
            else:
                seen = self._seen.setdefault(claim, set())
                if len(seen) < _PLACES_TOLD:  # what counts is whether there is more than one
                    seen.add((found.account, found.region))
        return self._told(sure[0]) if sure else None

    def may_be_known(self, found: CloudObject) -> bool:
        """Whether an object that nothing claims for certain can be what some instance stands for."""
        return any(True for _ in self._matches(found))

    def alone(self, found: CloudObject) -> Claim | None:
        """The instance that stands for an object since it can be no other one. Ask when `match` has seen them all."""
        for claim, _ in self._matches(found):
            if self._found[claim] != _FOUND and self._seen.get(claim) == {(found.account, found.region)}:
                self._found[claim] = _ACCOUNTED_FOR
                return self._told(claim)
        return None

    def rivals(self, found: CloudObject) -> Rivals | None:
        """An instance that can be this object, or one of the same name elsewhere; None where there is none."""
        for claim, _ in self._matches(found):
            places = sorted(f"{account or 'unknown-account'} {region}" for account, region in self._seen.get(claim, ()))
            return Rivals(self._told(claim), tuple(places))
        return None

    def doubt(self, found: CloudObject) -> Claim | None:
        """An instance that may be this object, since what would tell is withheld: nothing may be concluded then.

        Not one for which its object was found.
        """
        tables = self._tables.get(found.type)
        if tables is None:
            return None
        for (visible, place), claims in tables.groups.items():
            elsewhere = self._places.all[place].fit(found.account, found.region) is Fit.NO
            if elsewhere or any(key in found.identity for key in visible):
                continue
            while claims:
                claim = next(iter(claims))
                if not self._found[claim]:
                    return self._told(claim)
                del claims[claim]  # what is found stays so
        return None

    @property
    def secrets(self) -> frozenset[str]:
        """The values that any of the states marks as sensitive; in memory only."""
        return frozenset().union(*self._secrets.values())

    def secrets_of(self, claim: Claim) -> frozenset[str]:
        """The values that a claim's state marks as sensitive; in memory only."""
        state = self._states.number((claim.location, claim.workspace))
        return self._secrets.get(state, frozenset()) if state is not None else frozenset()

    def recognised(self, strays: Sequence[CloudObject]) -> Mapping[int, Claim]:
        """Which of the objects that no key claims belong to instances without a key, told by the hash of their id.

        By position in `strays`. An id need not be unique over regions and accounts: where several fit, none is taken.
        """
        fitting: dict[int, list[int]] = {}
        for position, found in enumerate(strays):
            tables = self._tables.get(found.type)
            if tables is None or not tables.prints:
                continue
            for claim in _in(tables.prints.get(_fingerprint(found))):
                if self._places.all[self._place[claim]].fit(found.account, found.region) is not Fit.NO:
                    fitting.setdefault(claim, []).append(position)
        certain = {claim: positions[0] for claim, positions in fitting.items() if len(positions) == 1}
        for claim in certain:
            self._found[claim] = _FOUND
        return {position: self._told(claim) for claim, position in certain.items()}

    def knows(
        self, resource_type: str, key: str, value: str, account: str | None, region: str, *, surely: bool = False
    ) -> bool:
        """Whether any state claims an object of the type with this value at this place.

        One of which nothing tells where it is counts as well, unless it has to be there `surely`.
        """
        tables = self._of(resource_type)
        if tables is None:
            return False
        kind, value = tables.kind, tables.kind.comparable(key, value)
        if key == kind.arn_key:
            return value in tables.arns or (not surely and any(True for _ in tables.numbered_claims({key: value})))
        region = "global" if kind.is_global else region
        enough = Fit.YES if surely else Fit.MAYBE
        return any(
            kind.is_unique_anywhere(key) or self._fit(claim, account, region) >= enough
            for claim in (*tables.free_claims(key, value, account), *_in(tables.bound.get(key, {}).get(value)))
        )

    def held(self, wanted: Collection[Claim]) -> frozenset[Claim]:
        """Those of these addresses that have an object in the last reading of their state."""
        asked: dict[int, dict[str, Claim]] = {}
        for claim in wanted:
            state = self._states.number((claim.location, claim.workspace))
            if state is not None:
                asked.setdefault(state, {})[claim.address] = claim
        if not asked:
            return frozenset()
        every = zip(self._state, self._address, self._read, strict=True)
        return frozenset(
            asked[state][address]
            for state, address, read in every
            if read == self._reading and address in asked.get(state, ())
        )

    def unlisted(self, complete: Collection[tuple[str, str, str]]) -> Iterator[Unlisted]:
        """What the states have, and complete lists have not; `complete` holds type, account and region of each list.

        Only what has a unique name, which tells where it is, can be told: the others may lie anywhere. And only what
        was in a state before the lists were made: what came later cannot be in them.
        """
        listed = {kind for kind, _, _ in complete}
        for name in self._tables.keys() & listed:
            for arn, bucket in self._tables[name].arns.items():
                for claim in _in(bucket):
                    where = self._places.all[self._place[claim]]
                    account, at = _only(where.accounts), _only(where.regions) or "global"
                    if (name, account, at) not in complete:
                        continue
                    if not self._found[claim] and not self._since[claim] and self._read[claim] == self._reading:
                        secrets = self._secrets.get(self._state[claim])
                        shown = Withholding(secrets).text(arn, WITHHELD_WORD) if secrets else arn
                        yield Unlisted(name, shown, account, at, self._told(claim))

    def _matches(self, found: CloudObject) -> Iterator[tuple[int, Fit]]:
        """The claims that can be an object, and how surely each is; never one that is elsewhere."""
        tables = self._tables.get(found.type)
        if tables is None:
            return
        kind, known = tables.kind, tables.keys_in(found.identity)
        for claim in tables.numbered_claims(known):
            if self._fit(claim, found.account, found.region) is not Fit.NO:
                yield claim, Fit.MAYBE
        arn = known.pop(kind.arn_key, None) if kind.arn_key else None
        if arn is not None:
            yield from ((claim, Fit.YES) for claim in _in(tables.arns.get(arn)))
        for key, value in known.items():
            if key in tables.free:
                claims = tables.free_claims(key, value, found.account)
                if kind.is_unique_anywhere(key):
                    yield from ((claim, Fit.YES) for claim in claims)
                else:
                    yield from self._fitting(claims, found)
            if arn is None and key in tables.bound:
                yield from self._fitting(_in(tables.bound[key].get(value)), found)

    def _fitting(self, claims: Iterable[int], found: CloudObject) -> Iterator[tuple[int, Fit]]:
        for claim in claims:
            fit = self._fit(claim, found.account, found.region)
            if fit is not Fit.NO:
                yield claim, fit

    def _claim(
        self,
        state: int,
        address: str,
        tables: _Tables,
        identity: Mapping[str, str],
        instance: StateInstance,
        configurations: Configurations,
        anew: bool,
    ) -> tuple[int, tuple[str, ...]]:
        """The number of a claim, a new one unless the state has made it before; and the keys that are visible."""
        known = tables.keys_in(identity)
        visible = tuple(known)
        numbered = {key: in_some_project(value) for key, value in known.items() if has_number(value)}
        arn = known.pop(tables.kind.arn_key, None) if tables.kind.arn_key else None
        if arn is not None:
            place, others = self._places.of_unique(arn, instance), tables.bound
            claim = self._same(state, address, place, _in(tables.arns.get(arn))) if anew else None
        else:
            where = configurations.of(instance)
            account = next(iter(where.accounts)) if len(where.accounts) == 1 else ""
            place = self._places.add(where)
            claim = self._made_before(state, address, place, account, known, tables) if anew else None
            others = {}
            for key in known:
                within = "" if tables.kind.is_unique_anywhere(key) else account
                others[key] = tables.free.setdefault(key, {}).setdefault(within, {})
        fresh = claim is None
        if claim is None:
            claim = self._new(state, address, place)
            if arn is not None:
                _put(tables.arns, arn, claim)
            if not visible:
                tables.keyless[state, address] = claim
        self._read[claim] = self._reading
        for key, value in known.items():
            table = others.setdefault(key, {})
            if fresh or claim not in _in(table.get(value)):
                _put(table, value, claim)
        for key, value in numbered.items():
            if claim not in _in((table := tables.numbered.setdefault(key, {})).get(value)):
                _put(table, value, claim)
        return claim, visible

    def _new(self, state: int, address: str, place: int) -> int:
        self._state.append(state)
        self._address.append(address)
        self._place.append(place)
        self._since.append(self._reading)
        self._read.append(self._reading)
        self._found.append(0)
        return len(self._address) - 1

    def _made_before(
        self, state: int, address: str, place: int, account: str, known: Mapping[str, str], tables: _Tables
    ) -> int | None:
        same: Iterable[int]
        if known:
            same = (claim for key, value in known.items() for claim in tables.free_claims(key, value, account))
        else:
            same = _in(tables.keyless.get((state, address)))
        return self._same(state, address, place, same)

    def _same(self, state: int, address: str, place: int, claims: Iterable[int]) -> int | None:
        """The claim among these that is the address's own at the same place, or at one that was not told till now."""
        for claim in claims:
            if self._state[claim] == state and self._address[claim] == address:
                if self._places.all[self._place[claim]] == Whereabouts():
                    self._place[claim] = place
                if self._place[claim] == place:
                    return claim
        return None

    def _of(self, resource_type: str) -> _Tables | None:
        """The tables of a type, also by another name of it; None for one that the catalogue does not know."""
        if resource_type not in self._by_name:
            kind = self._catalog.get(self._catalog.canonical(resource_type))
            self._by_name[resource_type] = self._tables.setdefault(kind.type, _Tables(kind)) if kind else None
        return self._by_name[resource_type]

    def _kind_of(self, instance: StateInstance) -> ResourceType | None:
        tables = self._of(instance.type)
        return tables.kind if tables else None

    def _fit(self, claim: int, account: str | None, region: str) -> Fit:
        return self._places.all[self._place[claim]].fit(account, region)

    def _told(self, claim: int) -> Claim:
        return Claim(*self._states.all[self._state[claim]], self._address[claim])


def _print(tables: _Tables, instance: StateInstance, claim: int) -> None:
    """Keep the hash of an instance's id; it is of the type as the state writes it, and another name tells nothing."""
    before = tables.prints.get(instance.fingerprint)
    if instance.fingerprint and instance.type == tables.kind.type and claim not in _in(before):
        _put(tables.prints, instance.fingerprint, claim)


def _put(table: _Table, value: str, claim: int) -> None:
    """Most values are claimed once, and a list for each would take more than the values themselves."""
    before = table.setdefault(value, claim)
    if isinstance(before, list):
        before.append(claim)
    elif before != claim:
        table[value] = [before, claim]


def _in(bucket: _Bucket | None) -> Iterable[int]:
    if bucket is None:
        return ()
    return (bucket,) if isinstance(bucket, int) else bucket


def _shown(instance: StateInstance, hidden: Withholding | None) -> str:
    """The address as it may be shown, with a key that is marked withheld."""
    address = instance.address
    if hidden is not None and has_key(address):
        address = hidden.address(address)
    return f"{address} (deposed {instance.deposed})" if instance.deposed else address


def _only(told: frozenset[str]) -> str:
    return next(iter(told)) if len(told) == 1 else ""


def _fingerprint(found: CloudObject) -> str:
    """The hash of an object's id, as `StateInstance.fingerprint` has it."""
    return hashlib.sha256(f"{found.type}\0{found.id}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
