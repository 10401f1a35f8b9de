"""Which state claims an object: the keys of every instance of many states, kept so that a million of them fit. Pure."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfguard.catalog.loader import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.model.inventory import CloudObject
from tfguard.model.secrets import WITHHELD_WORD, Withholding, has_key
from tfguard.model.state import StateInstance, StateSnapshot

_ARN = "arn"
_Bucket = int | list[int]
_Table = dict[str, _Bucket]
_Pair = tuple[str, str]


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


class _Tables:
    """The keys of one type.

    `arns` decide alone. `free` are the other keys of instances without an ARN, which count wherever the object is;
    `bound` those of instances with one, which count for objects without, and in the place that the ARN names.
    `blind` are the instances of which a key is withheld or none is there: the keys that are visible, and the accounts
    that they can be in (none: any). `keyless` are those without any key, `prints` the hashes of their ids.
    """

    __slots__ = ("arns", "blind", "bound", "free", "keyless", "kind", "prints")

    def __init__(self, kind: ResourceType) -> None:
        self.kind = kind
        self.arns: _Table = {}
        self.free: dict[str, _Table] = {}
        self.bound: dict[str, _Table] = {}
        self.blind: dict[int, tuple[tuple[str, ...], frozenset[str]]] = {}
        self.prints: _Table = {}
        self.keyless: dict[tuple[int, str], int] = {}

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


class StateIndex:
    """Answers which state claims an object, by the rules of `matching.same_object`, in time that does not grow.

    A state is added as a snapshot that can be dropped afterwards. Added again, it is read anew: claims are only ever
    added, so that an object counts as managed if any reading has it.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tables: dict[str, _Tables] = {}
        self._by_name: dict[str, _Tables | None] = {}
        self._secrets: dict[int, frozenset[str]] = {}
        self._states = _Pairs()
        self._places = _Pairs()
        # Of each claim, by its number: the state, the address, the place of its ARN, the last reading that had it,
        # and whether it is accounted for: an object was found for it, or it is one that need not be listed.
        self._state = array("L")
        self._address: list[str] = []
        self._place = array("L")
        self._read = bytearray()
        self._found = bytearray()
        self._reading = 0

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
        accounts: dict[str, set[str]] = {}
        doubtful: list[tuple[int, str, _Tables, tuple[str, ...]]] = []
        for instance in snapshot.instances:
            tables = self._of(instance.type)
            address = _shown(instance, hidden)
            if arn := instance.identity.get(_ARN):
                accounts.setdefault(instance.provider_key, set()).add(_place_of(arn)[0])
            if tables is not None:
                claim, visible = self._claim(state, address, tables, instance.identity, anew)
                if not visible or any(key in instance.withheld for key in tables.kind.keys):
                    doubtful.append((claim, instance.provider_key, tables, visible))
                if not visible:
                    _print(tables, instance, claim)
            for owned in instance.owned:
                if inner := self._of(owned.type):
                    claim, _ = self._claim(state, address, inner, {owned.key: owned.value}, anew)
                    self._found[claim] = 1
        for claim, provider_key, its, visible in doubtful:
            # One provider configuration works in one account, which its other objects tell.
            known = frozenset(account for account in accounts.get(provider_key, ()) if account.isdecimal())
            its.blind[claim] = (visible, known)

    def match(self, found: CloudObject) -> Claim | None:
        """The instance that claims an object, None for an object that no state knows. The claim counts as found."""
        claims = list(self._matches(found))
        for claim in claims:
            self._found[claim] = 1
        return self._told(claims[0]) if claims else None

    def doubt(self, found: CloudObject) -> Claim | None:
        """An instance that may be this object, since what would tell is withheld: nothing may be concluded then.

        Not one for which its object was found.
        """
        tables = self._tables.get(found.type)
        if tables is None:
            return None
        for claim, (visible, accounts) in tables.blind.items():
            elsewhere = bool(accounts) and found.account is not None and found.account not in accounts
            if not (self._found[claim] or elsewhere or any(key in found.identity for key in visible)):
                return self._told(claim)
        return None

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
                _, accounts = tables.blind[claim]
                if not accounts or found.account in (None, *accounts):
                    fitting.setdefault(claim, []).append(position)
        certain = {claim: positions[0] for claim, positions in fitting.items() if len(positions) == 1}
        for claim in certain:
            self._found[claim] = 1
        return {position: self._told(claim) for claim, position in certain.items()}

    def knows(self, resource_type: str, key: str, value: str, account: str | None, region: str) -> bool:
        """Whether any state claims an object of the type with this value, as far as can be told in this place."""
        tables = self._of(resource_type)
        if tables is None:
            return False
        value = tables.kind.comparable(key, value)
        if key == _ARN:
            return value in tables.arns
        if value in tables.free.get(key, ()):
            return True
        return any(self._lies_at(claim, account, region) for claim in _in(tables.bound.get(key, {}).get(value)))

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

        Only what has an ARN can be told: the others may lie anywhere.
        """
        listed = {kind for kind, _, _ in complete}
        for name in self._tables.keys() & listed:
            for arn, bucket in self._tables[name].arns.items():
                for claim in _in(bucket):
                    account, region = self._places.all[self._place[claim]]
                    at = region or "global"
                    lost = not self._found[claim] and self._read[claim] == self._reading
                    if lost and (name, account, at) in complete:
                        secrets = self._secrets.get(self._state[claim])
                        shown = Withholding(secrets).text(arn, WITHHELD_WORD) if secrets else arn
                        yield Unlisted(name, shown, account, at, self._told(claim))

    def _matches(self, found: CloudObject) -> Iterator[int]:
        tables = self._tables.get(found.type)
        if tables is None:
            return
        known = tables.keys_in(found.identity)
        if _ARN in known:
            yield from _in(tables.arns.get(known[_ARN]))
        for key, value in known.items():
            yield from _in(tables.free.get(key, {}).get(value))
            if _ARN not in known and key in tables.bound:
                for claim in _in(tables.bound[key].get(value)):
                    if self._lies_at(claim, found.account, found.region):
                        yield claim

    def _claim(
        self, state: int, address: str, tables: _Tables, identity: Mapping[str, str], anew: bool
    ) -> tuple[int, tuple[str, ...]]:
        """The number of a claim, a new one unless the state has made it before; and the keys that are visible."""
        known = tables.keys_in(identity)
        visible = tuple(known)
        arn = known.pop(_ARN, None)
        others = tables.free if arn is None else tables.bound
        claim = self._made_before(state, address, arn, known, tables) if anew else None
        if claim is not None:
            self._read[claim] = self._reading
            known = {key: value for key, value in known.items() if value not in others.get(key, ())}
        else:
            claim = self._new(state, address, _place_of(arn) if arn is not None else ("", ""))
            if arn is not None:
                _put(tables.arns, arn, claim)
            if not visible:
                tables.keyless[state, address] = claim
        for key, value in known.items():
            _put(others.setdefault(key, {}), value, claim)
        return claim, visible

    def _new(self, state: int, address: str, place: _Pair) -> int:
        self._state.append(state)
        self._address.append(address)
        self._place.append(self._places.add(place))
        self._read.append(self._reading)
        self._found.append(0)
        return len(self._address) - 1

    def _made_before(
        self, state: int, address: str, arn: str | None, known: Mapping[str, str], tables: _Tables
    ) -> int | None:
        if arn is not None:
            same: Iterable[int] = _in(tables.arns.get(arn))
        elif known:
            same = (claim for key, value in known.items() for claim in _in(tables.free.get(key, {}).get(value)))
        else:
            return tables.keyless.get((state, address))
        return next((claim for claim in same if self._state[claim] == state and self._address[claim] == address), None)

    def _of(self, resource_type: str) -> _Tables | None:
        """The tables of a type, also by another name of it; None for one that the catalogue does not know."""
        if resource_type not in self._by_name:
            kind = self._catalog.get(self._catalog.canonical(resource_type))
            self._by_name[resource_type] = self._tables.setdefault(kind.type, _Tables(kind)) if kind else None
        return self._by_name[resource_type]

    def _lies_at(self, claim: int, account: str | None, region: str) -> bool:
        """Whether the place that a claim's ARN names can be this one: what either side leaves out is no difference."""
        named_account, named_region = self._places.all[self._place[claim]]
        if named_region and region not in ("", "global", named_region):
            return False
        return not named_account or account in (None, named_account)

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


def _place_of(arn: str) -> _Pair:
    """The account and region that an ARN names; empty where it does not."""
    parts = arn.split(":", 5)
    return (parts[4], parts[3]) if len(parts) == 6 and parts[0] == "arn" else ("", "")


def _shown(instance: StateInstance, hidden: Withholding | None) -> str:
    """The address as it may be shown, with a key that is marked withheld."""
    address = instance.address
    if hidden is not None and has_key(address):
        address = hidden.address(address)
    return f"{address} (deposed {instance.deposed})" if instance.deposed else address


def _fingerprint(found: CloudObject) -> str:
    """The hash of an object's id, as `StateInstance.fingerprint` has it."""
    return hashlib.sha256(f"{found.type}\0{found.id}".encode()).hexdigest()[:16]
