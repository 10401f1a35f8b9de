"""Where an instance of a state can be, as far as anything tells. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum

from tfguard.catalog.types import ResourceType
from tfguard.model.arn import account_in, place_in
from tfguard.model.cloud import cloud_named
from tfguard.model.state import StateInstance

_GLOBAL = "global"
_ARN_BEGINS = "arn:"


class Fit(IntEnum):
    """Whether an instance is at a place."""

    NO = 0
    MAYBE = 1
    YES = 2


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The accounts and the regions in one of which an instance is; none of them where nothing tells."""

    accounts: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()

    def fit(self, account: str | None, region: str) -> Fit:
        """Whether this is there. What is global has no region; an account that could not be asked for is None."""
        by_region = Fit.YES if region == _GLOBAL else _fit(self.regions, region)
        return min(_fit(self.accounts, account or ""), by_region)


def _fit(told: frozenset[str], seen: str) -> Fit:
    if not told or not seen:
        return Fit.MAYBE
    if seen not in told:
        return Fit.NO
    return Fit.YES if len(told) == 1 else Fit.MAYBE


class Configurations:
    """Where the instances of one state are that have no ARN of their own.

    One provider configuration works in one account and region, which its other instances tell. `kind_of` gives the
    catalogue's entry of an instance's type.
    """

    def __init__(
        self, instances: Iterable[StateInstance], kind_of: Callable[[StateInstance], ResourceType | None]
    ) -> None:
        self._instances = instances
        self._kind_of = kind_of
        self._told: dict[str, tuple[set[str], set[str]]] | None = None
        self._known: dict[tuple[str, str, str], Whereabouts] = {}

    def of(self, instance: StateInstance) -> Whereabouts:
        """Where an instance is: what it says itself counts before what its provider configuration tells.

        That tells nothing of what lies in no project, or in one that another object or a number names.
        """
        if self._is_bound_elsewhere(instance):
            return Whereabouts(_told(instance.account), _told(instance.region))
        key = (instance.provider_key, instance.account, instance.region)
        if key not in self._known:
            if self._told is None:  # most states have none that needs it
                self._told = self._gathered()
            accounts, regions = self._told.get(instance.provider_key, (set(), set()))
            own = _told(instance.account), _told(instance.region)
            self._known[key] = Whereabouts(own[0] or frozenset(accounts), own[1] or frozenset(regions))
        return self._known[key]

    def _is_bound_elsewhere(self, instance: StateInstance) -> bool:
        kind = self._kind_of(instance)
        cloud = cloud_named(kind.cloud) if kind else None
        if kind is None or cloud is None or not cloud.place_is_account:
            return False
        return cloud.own_place not in kind.attributes or instance.identity.get(cloud.own_place, "").isdecimal()

    def _gathered(self) -> dict[str, tuple[set[str], set[str]]]:
        told: dict[str, tuple[set[str], set[str]]] = {}
        for instance in self._instances:
            kind = self._kind_of(instance)
            # Of an encrypted state nobody knows which configuration made what. And what goes by another name can be the
            # other account's (`..._accepter`).
            if kind is None or not instance.provider_key or instance.type != kind.type:
                continue
            name = _own_arn(kind, instance)
            accounts, regions = told.setdefault(instance.provider_key, (set(), set()))
            accounts.update(filter(None, [account_in(name), instance.account]))
            regions.update(filter(None, [instance.region or place_in(name)[1]]))
        return told


def _told(part: str) -> frozenset[str]:
    return frozenset([part] if part else [])


def _own_arn(kind: ResourceType, instance: StateInstance) -> str:
    """The ARN of an instance; none where it goes on with that of something else, which may lie in another account."""
    arn = instance.identity.get(kind.arn_key, "") if kind.arn_key else ""
    others = (value for key, value in instance.identity.items() if key != kind.arn_key)
    return "" if any(value.startswith(_ARN_BEGINS) and arn.startswith(value) for value in others) else arn
