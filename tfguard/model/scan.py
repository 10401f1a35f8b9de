"""What a scan is made of: the places that are asked, and the states that are subtracted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tfguard.model.cloud import cloud_named
from tfguard.model.finding import Finding
from tfguard.model.inventory import Coverage
from tfguard.model.operation import Stack
from tfguard.model.plan import ProviderConfig


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a scan's listing that knows nothing of the others and can be pickled: one service at one place.

    `provider` says whom to ask and as whom (for an account of `scan.aws.accounts`, with its role and its account
    guard). `region` is None for what exists once in an account. `types` are the Terraform types to list, all of
    `service`, the SDK's name of it. The provider of one that is `wide` leads to several accounts (an organization's),
    each of which has a listing of its own.
    """

    cloud: str
    provider: ProviderConfig
    region: str | None
    service: str
    types: tuple[str, ...]

    @property
    def account(self) -> str | None:
        """The one account that is asked; None where the settings do not say which it is, or lead to several."""
        cloud = cloud_named(self.cloud)
        return cloud.account_of(self.provider.settings) if cloud is not None else None

    @property
    def wide(self) -> bool:
        """Whether several accounts are asked."""
        cloud = cloud_named(self.cloud)
        return cloud is not None and cloud.reaches_several(self.provider.settings)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a scan is: how much of a phase is done, and of how much (None where nobody knows)."""

    phase: str
    done: int
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ScopePart:
    """The types that were asked for in some regions of an account; None where nobody knows which account it was."""

    cloud: str
    account: str | None
    regions: tuple[str, ...]
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScanScope:
    """What a scan was to look at, however much it then could: patterns of states, and lists of the inventory."""

    states: tuple[str, ...] = ()
    lists: tuple[ScopePart, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanPlace:
    """An account of which something could be listed, and the regions where; None where nobody knows which it is."""

    cloud: str
    account: str | None
    regions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan found, in no special order, and how far it could look.

    `findings` are the objects that somebody should know of; those that a rule leaves out are among them only where that
    was asked for. `summary` counts all objects by verdict, `rules` those that were left out by the name of the rule.
    `unused_rules` and `expired_rules` are rules of the configuration. `complete_listings` says of which lists nothing
    is missing: cloud, account, region and type. `scope` is what was to be looked at, `places` where that could be done.
    `stacks` are those of the operations that findings name, by the operation's id.
    """

    findings: tuple[Finding, ...]
    coverage: Coverage
    summary: Mapping[str, int]
    rules: Mapping[str, int]
    started_at: datetime
    ended_at: datetime
    shards: tuple[Shard, ...] = ()
    notes: tuple[str, ...] = ()
    unused_rules: tuple[str, ...] = ()
    expired_rules: tuple[str, ...] = ()
    complete_listings: frozenset[tuple[str, str | None, str, str]] = field(default=frozenset(), repr=False)
    scope: ScanScope = field(default_factory=ScanScope)
    places: tuple[ScanPlace, ...] = ()
    stacks: Mapping[str, Stack] = field(default_factory=dict)
