"""What a provider's listing says, where it was asked, and where it could not answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

UNKNOWN_REGION = "unknown-region"
"""The region of a scope that could not be found out."""


ANY_VALUE = "*"
"""Of a maker that is not named: any of its type in the same place may be it."""

NAMED_IN = "*in:"
"""Of a maker whose name is a part of what follows, maybe cut: any of its type in the same place that is called so."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where objects of one provider configuration live.

    `account` is the provider's account or project id, `None` when it could not be found out; for what lies in no
    project of Google Cloud it is `organizations/N` or `folders/N`. `region` is `global` for types that exist once in an
    account, and for every type of Google Cloud, where one search answers for all locations. `provider_key` names the
    provider configuration (`aws`, `aws.eu`).
    """

    cloud: str
    account: str | None
    region: str
    provider_key: str = ""

    def __str__(self) -> str:
        return f"{self.cloud} {self.account or 'unknown-account'} {self.region}"


@dataclass(frozen=True, slots=True)
class MadeBy:
    """The object that may have made another by itself: the one of `type` whose identity has `value` as `key`, or any
    one where that is `ANY_VALUE`, or one that is called so where it begins with `NAMED_IN`.

    Not `certain`: a person can have made it just as well (a rule of a security group), so that whatever else explains
    the object says more. `when_ignored`: it counts only where the maker is itself ignored (what AWS made with a default
    VPC). `held` are the ways in which the maker's state may have the object: where it tells of such objects and has not
    this one, it is none of the maker's.
    """

    type: str
    key: str
    value: str
    reason: str
    certain: bool = True
    when_ignored: bool = False
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CloudObject:
    """One object that exists at the provider.

    `identity` holds the values under which the object may be known in a state or a plan, by the catalogue's names
    (`name`, `arn`, `id`, ...). `import_id` is what `terraform import` wants; it is not always `id` (case B53). `owner`
    is the account that owns it, where the answer tells: what is shared in from elsewhere has another than `account`.
    `made_by` names the objects that make such ones by themselves, whether or not there are any. One that is
    `soft_deleted` only waits for its end, and can be restored till then: till `gone_after`, where that is told.
    """

    cloud: str
    account: str | None
    region: str
    type: str
    id: str
    import_id: str
    identity: Mapping[str, str] = field(default_factory=dict)
    arn: str | None = None
    name: str | None = None
    created_at: datetime | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    parent: str | None = None
    stateful: bool = False
    ignored_because: str | None = None
    owner: str | None = None
    made_by: tuple[MadeBy, ...] = ()
    soft_deleted: bool = False
    gone_after: datetime | None = None

    @property
    def made_by_a_service(self) -> bool:
        """Whether the object tells of itself that something else made it than a person, a living maker or not."""
        told = any(maker.certain and not maker.when_ignored for maker in self.made_by)
        return told or self.ignored_because is not None

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What makes this object this one, everywhere: cloud, account, region, type, import id."""
        return (self.cloud, self.account or "", self.region, self.type, self.import_id)

    @property
    def finding_id(self) -> str:
        """The same short id in every scan, since it is derived from the object's identity alone."""
        return "o-" + hashlib.sha256("\x1f".join(self.key).encode("utf-8", "surrogatepass")).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Gap:
    """A place where the look was incomplete (rule 12): nothing may be called absent there."""

    scope: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects of one type in one scope. With a gap, an object that is not listed may exist all the same.

    `soft_deleted` are those that are listed and only wait for their end (a key pending deletion): not in `objects`.
    One that is not `exhaustive` never claimed to have all of them, as a file that somebody exported does not. One that
    was not `asked` has a gap that is not its own: of that whole place nobody could be asked, for want of credentials,
    say.
    """

    type: str
    scope: Scope
    objects: tuple[CloudObject, ...] = ()
    gap: Gap | None = None
    soft_deleted: tuple[CloudObject, ...] = ()
    exhaustive: bool = True
    asked: bool = True

    @property
    def complete(self) -> bool:
        """Whether an object that is not in `objects` was really not there when it was asked for."""
        return self.gap is None and self.exhaustive


@dataclass(frozen=True, slots=True)
class Detail:
    """An object with what further calls told of it. With a gap that is not all, and what it lacks says nothing.

    One that is `gone` is not there any more, by its own service's word: what listed it is an index that lags.
    """

    found: CloudObject
    gap: Gap | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far a look reached."""

    states_read: int = 0
    types_listed: int = 0
    gaps: tuple[Gap, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing was left out."""
        return not self.gaps
