"""Whom a scan asks: the accounts and regions of tfguard.yaml and of the command line, as provider configurations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.patterns import listable_types
from tfguard.cli.scan_aws import aws_provider, aws_shards
from tfguard.cli.scan_google import google_provider, google_shards
from tfguard.engine.features import check_lists
from tfguard.engine.locate import InstalledEngine
from tfguard.engine.queries import asked_to_list
from tfguard.errors import InputError, UsageError
from tfguard.inventory.exported import Export, ExportedLister, read_export, read_text
from tfguard.inventory.query import is_stream, read_stream
from tfguard.inventory.query_limits import SUFFIX, limits_in
from tfguard.model.cloud import AWS, GOOGLE, Cloud
from tfguard.model.config import AwsScan, Config, GoogleScan, ScanConfig
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Shard
from tfguard.reconcile.scopes import Place, places_of, scope_of

_QUERY = "query:"
_GOOGLE_PROJECT = re.compile(r"(?=.*[a-z])[a-z0-9.:-]+")

_Shards = Callable[[Config, Catalog, Sequence[str], Sequence[str], Sequence[str]], tuple[Shard, ...]]


@dataclass(frozen=True, slots=True)
class _ScannedCloud:
    """How a cloud is scanned: what tfguard.yaml has of it, the shards, whom to ask about one of its objects, and how
    its accounts look."""

    cloud: Cloud
    configured: Callable[[ScanConfig], AwsScan | GoogleScan | None]
    shards: _Shards
    provider: Callable[[Config, CloudObject], ProviderConfig | None]
    has_regions: bool
    account: re.Pattern[str] | None = None


_CLOUDS = (
    _ScannedCloud(AWS, lambda scan: scan.aws, aws_shards, aws_provider, has_regions=True),
    _ScannedCloud(
        GOOGLE, lambda scan: scan.google, google_shards, google_provider, has_regions=False, account=_GOOGLE_PROJECT
    ),
)
"""Every cloud that can be scanned. The first is scanned where tfguard.yaml names none."""


def scan_shards(
    config: Config, catalog: Catalog, regions: Sequence[str], types: Sequence[str], accounts: Sequence[str]
) -> tuple[Shard, ...]:
    """The shards of every cloud that is to be scanned: those that `scan:` in tfguard.yaml has, else AWS.

    `regions`, `types` and `accounts` are those of the command line; what is not said there is that of tfguard.yaml. A
    cloud of which they name nothing is left out. Where tfguard.yaml has none, they add those of which they name
    something, and `providers: {google: ...}` adds that one. Raises `UsageError` for a pattern that matches no type of a
    scanned cloud, and as each cloud does.
    """
    clouds = _scanned(config, types, accounts)
    found: list[Shard] = []
    for one, own_types, own_accounts in _narrowed(clouds, catalog, regions, types, accounts):
        try:
            found += one.shards(config, catalog, regions, own_types, own_accounts)
        except UsageError as error:
            if _is_named(one, config):
                raise
            others = ", ".join(f"{other.cloud.name}: {{}}" for other in _CLOUDS if other is not one)
            # Nobody asked for this cloud by name: a file without any is scanned there as it always was.
            advice = f"{error.advice}; where {one.cloud.title} is not meant: `scan: {{{others}}}` in tfguard.yaml"
            raise UsageError(error.what, advice) from error
    return tuple(found)


def _is_named(one: _ScannedCloud, config: Config) -> bool:
    return one.configured(config.scan) is not None or one.cloud.name in config.providers


def _narrowed(
    clouds: Sequence[_ScannedCloud],
    catalog: Catalog,
    regions: Sequence[str],
    types: Sequence[str],
    accounts: Sequence[str],
) -> Sequence[tuple[_ScannedCloud, Sequence[str], Sequence[str]]]:
    """Those of the clouds that the command line leaves, each with those of the types and accounts that are its own."""
    if types:
        listable_types(catalog, types)  # a pattern that means nothing anywhere is told as such
    own_types = {one.cloud.name: _types_of(one, catalog, types) for one in clouds}
    for pattern in types:
        if not any(pattern in own for own in own_types.values()):
            titles = " and ".join(one.cloud.title for one in clouds)
            others = ", ".join(f"{one.cloud.name}: {{}}" for one in _CLOUDS if one not in clouds)
            raise UsageError(
                f"the pattern {pattern} matches no type of {titles}, which is scanned",
                f"add `scan: {{{others}}}` to tfguard.yaml" if others else "see `tfguard catalog list` for the types",
            )
    own_accounts: dict[str, list[str]] = {}
    for name in accounts:
        own_accounts.setdefault(_cloud_of_account(name, clouds).cloud.name, []).append(name)
    chosen = [
        (one, own_types[one.cloud.name], own_accounts.get(one.cloud.name, []))
        for one in clouds
        if (own_types[one.cloud.name] or not types) and (one.cloud.name in own_accounts or not accounts)
    ]
    if regions and not any(one.has_regions for one, *_ in chosen):
        raise UsageError("--region names a region, and none of the scanned clouds is asked by region", "take it out")
    return chosen


def _scanned(config: Config, types: Sequence[str], accounts: Sequence[str]) -> list[_ScannedCloud]:
    configured = [one for one in _CLOUDS if one.configured(config.scan) is not None]
    if configured:
        return configured
    return [
        one
        for number, one in enumerate(_CLOUDS)
        if number == 0
        or one.cloud.name in config.providers
        or any(pattern.startswith(f"{one.cloud.name}_") for pattern in types)
        or any(one.account and one.account.fullmatch(name) for name in accounts)
    ]


def _types_of(one: _ScannedCloud, catalog: Catalog, types: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        pattern
        for pattern in types
        if any(entry.list and entry.cloud == one.cloud.name for entry in catalog.matching(pattern))
    )


def _cloud_of_account(name: str, clouds: Sequence[_ScannedCloud]) -> _ScannedCloud:
    """The cloud whose accounts look so; else the first, which tells what is wrong."""
    return next((one for one in clouds if one.account and one.account.fullmatch(name)), clouds[0])


def lists_left_out(
    config: Config,
    catalog: Catalog,
    shards: Sequence[Shard],
    options: tuple[Sequence[str], Sequence[str], Sequence[str]],
    *,
    exported: bool,
) -> frozenset[Place]:
    """The lists that tfguard.yaml names and the command line left out, where there are rules that could be about them.

    `options` are the regions, types and accounts of the command line, and `shards` what it left to list. What more is
    in an export (`exported`) nobody has looked at: it may be anything.
    """
    regions, types, accounts = options
    if not config.scan.ignore or not any(options):
        return frozenset()
    if exported:
        return frozenset((entry.cloud, None, UNKNOWN_REGION, entry.type) for entry in catalog)
    own_regions = config.scan.aws.regions if config.scan.aws else ()
    whole: list[Shard] = []
    for one in _scanned(config, types, accounts):
        is_left = any(shard.cloud == one.cloud.name for shard in shards)
        if is_left or _is_named(one, config):
            with nullcontext() if is_left else suppress(UsageError):  # what cannot be scanned is no part of the whole
                whole += one.shards(config, catalog, () if own_regions else regions, (), ())
    here, there = (places_of(scope_of(some, (), ())) for some in (shards, whole))
    return there - here


def exported_lister(
    config: Config,
    catalog: Catalog,
    types: Sequence[str],
    exports: Sequence[str],
    engine: Callable[[], InstalledEngine],
    regions: Sequence[str] = (),
    accounts: Sequence[str] = (),
) -> ExportedLister:
    """What exported listings hold, in the place of list calls: files, and what `engine` lists for `query:DIR`.

    `types`, `regions` and `accounts` are those of the command line; of regions and accounts all that is there counts
    unless they are named, since tfguard.yaml names those that are to be asked.

    Raises `InputError` and `UsageError`, and `NoEngineError` where an engine is needed.
    """
    named = (one.configured(config.scan) for one in _CLOUDS)
    configured = dict.fromkeys(pattern for scanned in named if scanned is not None for pattern in scanned.types)
    wanted = tuple(types) or tuple(configured) or ("*",)
    clouds = [one.cloud.name for one in _scanned(config, types, ())]
    found = [_export(name, catalog, wanted, engine) for name in exports]
    return ExportedLister(found, catalog, regions, accounts, clouds)


def _export(name: str, catalog: Catalog, wanted: Sequence[str], engine: Callable[[], InstalledEngine]) -> Export:
    if name.startswith(_QUERY):
        return _listed_by_engine(Path(name.removeprefix(_QUERY)), catalog, wanted, engine)
    path = Path(name)
    text = read_text(path)
    if is_stream(text):
        return read_stream(text, name, catalog, wanted, limits_in(path.parent))
    return read_export(path, catalog, wanted, text)


def _listed_by_engine(
    directory: Path, catalog: Catalog, wanted: Sequence[str], engine: Callable[[], InstalledEngine]
) -> Export:
    if not any(directory.glob(f"*{SUFFIX}")):
        raise UsageError(f"{directory} has no file *{SUFFIX}", "name the folder with the list blocks: query:DIR")
    installed = engine()
    check_lists(installed)
    answer = asked_to_list(installed.binary, directory)
    name = f"{_QUERY}{directory}"
    failure = f"the engine ended with {answer.exit_code}: {answer.reason}" if answer.exit_code else ""
    if not is_stream(answer.stdout):
        raise InputError(
            f"{name}: nothing was listed: {failure or 'the engine printed no events'}",
            f"run `terraform query` in {directory}, and correct what it says (`terraform init` comes first)",
        )
    return read_stream(answer.stdout, name, catalog, wanted, limits_in(directory), failure)


def scanned_provider(config: Config) -> Callable[[CloudObject], ProviderConfig | None]:
    """Whom to ask about an object that a scan has found: as the scan does, and as nobody else.

    None for an account that is unknown, or where accounts are configured and this is none of them.
    """

    def provider(found: CloudObject) -> ProviderConfig | None:
        one = next((one for one in _CLOUDS if one.cloud.name == found.cloud), None)
        return one.provider(config, found) if one is not None else None

    return provider
