"""What the engine's state says, reduced to what may be kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """An object that stands in a state only as an attribute of another (a root volume): its type, and a key."""

    type: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class StateInstance:
    """One object that a state knows. `identity` holds catalogue identity attributes only.

    `provider` is the provider's source, `provider_key` its configuration as a plan names it (`aws`, `aws.eu`).
    `withheld` names the identity attributes that are marked sensitive, and therefore not in `identity`. `fingerprint`
    is a hash of the object's own id: it tells whether two instances of a type are one object, where no catalogue does.
    `owned` are the objects that this one brought along and that have no address of their own. `account` and `region`
    are where it says that it is, beside its own ARN; empty where it does not.
    """

    address: str
    type: str
    provider: str
    provider_key: str = ""
    identity: Mapping[str, str] = field(default_factory=dict)
    tainted: bool = False
    deposed: str | None = None
    withheld: tuple[str, ...] = ()
    fingerprint: str = ""
    owned: tuple[OwnedObject, ...] = ()
    account: str = ""
    region: str = ""


@dataclass(frozen=True)
class StateSnapshot:
    """A state at one moment. `lineage` is empty for a state that does not exist yet.

    `secrets` are the values that it marks as sensitive; in memory only, to keep copies of them out of the record.
    """

    lineage: str
    serial: int
    instances: tuple[StateInstance, ...] = ()
    outputs: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def addresses(self) -> frozenset[str]:
        """Every address with a current (not deposed) object."""
        return frozenset(i.address for i in self.instances if i.deposed is None)

    @cached_property
    def by_type(self) -> Mapping[str, Sequence[StateInstance]]:
        """The instances by the types of which they are objects: their own, and those of what they brought along."""
        grouped: dict[str, list[StateInstance]] = {}
        for instance in self.instances:
            for name in dict.fromkeys((instance.type, *(one.type for one in instance.owned))):
                grouped.setdefault(name, []).append(instance)
        return grouped

    def at(self, address: str) -> StateInstance | None:
        """The current object at `address`."""
        return next((i for i in self.instances if i.address == address and i.deposed is None), None)

    def readdressed(self, name: Callable[[str], str]) -> StateSnapshot:
        """The same with every address as `name` gives it."""
        named = (replace(i, address=name(i.address), provider_key=name(i.provider_key)) for i in self.instances)
        return replace(self, instances=tuple(named))


def fingerprint_of(resource_type: str, object_id: str) -> str:
    """The fingerprint of an instance of a type whose object has this id."""
    return hashlib.sha256(f"{resource_type}\0{object_id}".encode()).hexdigest()[:16]


EMPTY_STATE = StateSnapshot(lineage="", serial=0)
