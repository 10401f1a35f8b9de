"""What a plan says is going to change, reduced to what may be kept (docs/design.md, rule 10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Action(StrEnum):
    """What a plan does to one resource instance."""

    CREATE = "create"
    READ = "read"
    UPDATE = "update"
    DELETE = "delete"
    REPLACE = "replace"
    FORGET = "forget"
    NOOP = "no-op"

    @property
    def creates(self) -> bool:
        """Whether an object comes into being."""
        return self in (Action.CREATE, Action.REPLACE)

    @property
    def deletes(self) -> bool:
        """Whether an object goes away."""
        return self in (Action.DELETE, Action.REPLACE)


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One provider configuration of a stack, as far as a listing needs it. In memory only: it may hold credentials.

    `key` is the plan's own name of it (`aws`, `aws.eu`, `module.net:aws`). `settings` holds the resolved constants
    (`region`, `profile`, `access_key`, ...); nested blocks have dotted names (`endpoints.s3`, `assume_role.role_arn`).
    `unresolved` names the settings whose value the plan does not carry: with `region` in it no region is known.
    """

    key: str
    source: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    unresolved: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One instance that a plan changes. `desired` and `before` hold identity attributes only, never a secret.

    `withheld` names the identity attributes that were left out since they carry a value that is marked sensitive.
    `silent` tells that such a value is not known yet, and that the object's id may repeat it. `differs` names the
    arguments whose values change, `forced_by` those of them for which the object is made anew: names, never values.
    `filled` are those of `differs` of which the object as it was read has nothing.
    What only goes from nothing to nothing (null to false, to 0, to an empty text or list) is no difference. `region` or
    `own_account` is the place that the resource names itself, whatever its provider configuration says.
    """

    address: str
    type: str
    provider: str
    action: Action
    provider_key: str = ""
    desired: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    deposed: str | None = None
    create_first: bool = False
    importing: str | None = None
    previous_address: str | None = None
    region: str | None = None
    withheld: tuple[str, ...] = ()
    silent: bool = False
    differs: tuple[str, ...] = ()
    filled: tuple[str, ...] = ()
    forced_by: tuple[str, ...] = ()
    own_account: str | None = None

    @property
    def own_place(self) -> str | None:
        """The region or the account (a project) that the resource names itself."""
        return self.own_account or self.region


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as `show -json` gives it, reduced to what tfguard works with.

    `secrets` are the values that the plan marks as sensitive, `copies` the names that were left out since they carry
    one; in memory only, to keep them out of the record. `applyable` is the engine's own word on whether applying
    changes anything, the state included; None where an engine does not say it (before Terraform 1.8, and OpenTofu).
    `drifted` tells that objects have changed outside, and `reads` that a data source is left to be read by the apply.
    `unkept` are the variables whose values no plan keeps (ephemeral ones), so that the apply needs them again.
    """

    engine_version: str
    changes: tuple[PlannedChange, ...]
    providers: Mapping[str, ProviderConfig] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    copies: frozenset[str] = field(default=frozenset(), repr=False)
    changes_outputs: bool = False
    errored: bool = False
    applyable: bool | None = None
    drifted: bool = False
    reads: bool = False
    unkept: frozenset[str] = frozenset()

    def asks_nothing(self, refresh_only: bool) -> bool:
        """Whether applying it would change nothing, so that the engine does not ask.

        Where it does not say so, its own rule is followed: changes outside count for a `refresh_only` plan alone.
        """
        if self.applyable is not None:
            return not self.applyable
        moved = any(change.previous_address for change in self.changes)
        changes = bool(self.changing) or moved or self.changes_outputs or self.reads
        return self.errored or not (changes or (refresh_only and self.drifted))

    @property
    def changing(self) -> tuple[PlannedChange, ...]:
        """The changes that do something to an object or to the state."""
        return tuple(c for c in self.changes if c.action not in (Action.NOOP, Action.READ) or c.importing is not None)
