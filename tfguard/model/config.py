"""What `tfguard.yaml` says, and the durations that it is written with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum

from tfguard.model.cloud import AWS, GOOGLE

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(?:\d{1,9}[smhd])+", re.ASCII)
_PART = re.compile(r"(\d+)([smhd])", re.ASCII)


def parse_duration(text: str) -> timedelta:
    """The time that `text` names: numbers with a unit (`30s`, `2m`, `1h30m`, `14d`); `ValueError` for anything else."""
    if not _DURATION.fullmatch(text):
        raise ValueError("is not a duration: write a number and a unit, such as 30s, 2m, 1h or 14d")
    try:
        return timedelta(seconds=sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text)))
    except OverflowError:
        raise ValueError("is too long a duration") from None


def format_duration(value: timedelta) -> str:
    """The shortest text that `parse_duration` reads back as `value`, in whole seconds."""
    seconds = int(value.total_seconds())
    unit = next(unit for unit in "dhms" if seconds % _UNITS[unit] == 0) if seconds else "s"
    return f"{seconds // _UNITS[unit]}{unit}"


class OnGap(StrEnum):
    """What a changing command does about an open operation."""

    RECONCILE = "reconcile"
    BLOCK = "block"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Retention:
    """For how long an object may be kept: when nothing is said, and at most."""

    default: timedelta = timedelta(days=14)
    max: timedelta = timedelta(days=90)

    def __post_init__(self) -> None:
        if self.default > self.max:
            raise ValueError("default is longer than max")


@dataclass(frozen=True, slots=True)
class AwsAccount:
    """An account to scan, and the role to assume in it (None: the caller's own rights)."""

    id: str
    role: str | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d{12}", self.id, re.ASCII):
            raise ValueError("id is not an account id of 12 digits")


def _refuse_no_types(types: tuple[str, ...]) -> None:
    if not types:
        raise ValueError("types is empty, with which a scan finds nothing: leave it out to look for all types")


@dataclass(frozen=True, slots=True)
class AwsScan:
    """Where to look in AWS. No regions: the caller's; no accounts: the caller's; `types` are patterns."""

    regions: tuple[str, ...] = ()
    accounts: tuple[AwsAccount, ...] = ()
    types: tuple[str, ...] = ("*",)

    def __post_init__(self) -> None:
        _refuse_no_types(self.types)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns of the accounts that are named."""
        return tuple(account.id for account in self.accounts)

    @property
    def above(self) -> tuple[tuple[str, str], ...]:
        """What is named that has accounts below it."""
        return ()


@dataclass(frozen=True, slots=True)
class GoogleScan:
    """Where to look in Google Cloud: in an organization, in folders, or in projects; `projects` and `types` are
    patterns. With an organization or folders, `projects` narrows them. Nothing of it: the caller's own project."""

    organization: str | None = None
    projects: tuple[str, ...] = ()
    types: tuple[str, ...] = ("*",)
    folders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _refuse_no_types(self.types)
        for kind, numbers in (("organization", (self.organization,)), ("folders", self.folders)):
            for number in numbers:
                if number is not None and not re.fullmatch(r"\d{1,20}", number, re.ASCII):
                    raise ValueError(f"{kind}: {number!r} is no number of one, such as 123456789012")
        for name in self.projects:
            if name.isdecimal() or not re.fullmatch(r"[a-z0-9.:*?!\[\]-]+", name):
                raise ValueError(f"projects: {name!r} is no id of a project, nor a pattern of one, such as app-*")
        if self.organization is not None and self.folders:
            raise ValueError("has organization and folders: the organization has the folders already")

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns of the projects that are named."""
        return self.projects

    @property
    def above(self) -> tuple[tuple[str, str], ...]:
        """What is named that has projects below it: the provider setting of it, and its number."""
        if self.organization is not None:
            return (("organization", self.organization),)
        return tuple(("folder", number) for number in self.folders)


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Objects that a scan does not report, and why. All that is said must hold.

    `type`, `name`, `id`, `account` and `region` are patterns; `tag` is one of a tag's name, or of `NAME=VALUE`.
    `younger_than` takes objects whose creation time is known and not that long ago. After the day `expires` the rule
    does not count any more.
    """

    type: str
    reason: str
    name: str = "*"
    id: str = "*"
    account: str = "*"
    region: str = "*"
    tag: str | None = None
    younger_than: timedelta | None = None
    expires: date | None = None

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError("reason is empty")

    def __str__(self) -> str:
        """What it says, for a person, without the reason."""
        said = {name: getattr(self, name) for name in ("type", "name", "id", "account", "region")}
        words = [f"{name} {pattern}" for name, pattern in said.items() if name == "type" or pattern != "*"]
        words += [f"tag {self.tag}"] if self.tag else []
        words += [f"younger than {format_duration(self.younger_than)}"] if self.younger_than else []
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class ScanConfig:
    """What `tfguard scan` compares: stacks and state locations (patterns) with what the clouds hold."""

    stacks: tuple[str, ...] = ()
    aws: AwsScan | None = None
    google: GoogleScan | None = None
    ignore: tuple[IgnoreRule, ...] = ()

    def accounts(self, cloud: str) -> tuple[str, ...]:
        """Patterns of the accounts of a cloud that are configured; none where nothing says which they are."""
        scanned = self.of(cloud)
        return scanned.patterns if scanned is not None else ()

    def above(self, cloud: str) -> tuple[tuple[str, str], ...]:
        """What is configured of a cloud that has accounts below it: the provider setting of it, and its number."""
        scanned = self.of(cloud)
        return scanned.above if scanned is not None else ()

    def of(self, cloud: str) -> AwsScan | GoogleScan | None:
        """What is configured of a cloud; None where its section is not there."""
        return {AWS.name: self.aws, GOOGLE.name: self.google}.get(cloud)


BESIDE_STATE = "beside-state"


@dataclass(frozen=True, slots=True)
class Config:
    """`tfguard.yaml`, with the defaults for what it does not say.

    `engine` is None when the file leaves the choice open. `records` is `beside-state` or the URL of a store.
    `providers` holds settings by the plan's name of a provider configuration (`aws.eu`).
    """

    engine: str | None = None
    records: str = BESIDE_STATE
    on_gap: OnGap = OnGap.RECONCILE
    owner: str | None = None
    cost_owner: str | None = None
    retention: Retention = field(default_factory=Retention)
    consistency_grace: timedelta = timedelta(minutes=2)
    providers: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    scan: ScanConfig = field(default_factory=ScanConfig)

    def __post_init__(self) -> None:
        if self.records != BESIDE_STATE and "://" not in self.records:
            raise ValueError(f"records is neither {BESIDE_STATE} nor the URL of a store, such as file:///srv/tfguard")
