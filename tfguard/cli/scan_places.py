"""Whom a scan asks: the accounts and regions of tfguard.yaml and of the command line, as provider configurations."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tfguard.catalog.catalog import Catalog
from tfguard.engine.features import check_lists
from tfguard.engine.locate import InstalledEngine
from tfguard.engine.queries import asked_to_list
from tfguard.errors import ConfigError, InputError, UsageError
from tfguard.inventory.exported import Export, ExportedLister, read_export, read_text
from tfguard.inventory.query import is_stream, read_stream
from tfguard.inventory.query_limits import SUFFIX, limits_in
from tfguard.inventory.shards import shards_for
from tfguard.model.config import AwsAccount, AwsScan, Config
from tfguard.model.inventory import UNKNOWN_REGION, CloudObject
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Shard
from tfguard.reconcile.scopes import Place, places_of, scope_of

_AWS_SOURCE = "registry.terraform.io/hashicorp/aws"
_QUERY = "query:"


def aws_shards(
    config: Config, catalog: Catalog, regions: Sequence[str], types: Sequence[str], accounts: Sequence[str]
) -> tuple[Shard, ...]:
    """The shards of every account that is to be scanned in AWS.

    `regions`, `types` and `accounts` are those of the command line; what is not said there is that of `scan.aws`.
    Raises `UsageError` for a pattern that matches no type, an unknown region, no region at all, and an account that
    `scan.aws.accounts` does not have.
    """
    wanted = config.scan.aws or AwsScan()
    found: list[Shard] = []
    for provider in aws_providers(config, wanted, accounts):
        here = tuple(regions) or wanted.regions or _own_region(provider)
        found += shards_for(catalog, provider, here, tuple(types) or wanted.types)
    return tuple(found)


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
    regions, *_ = options
    if not config.scan.ignore or not any(options):
        return frozenset()
    if exported:
        return frozenset((entry.cloud, None, UNKNOWN_REGION, entry.type) for entry in catalog)
    configured = (config.scan.aws or AwsScan()).regions
    whole = aws_shards(config, catalog, () if configured else regions, (), ())
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
    wanted = tuple(types) or (config.scan.aws or AwsScan()).types
    return ExportedLister([_export(name, catalog, wanted, engine) for name in exports], catalog, regions, accounts)


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


def aws_providers(config: Config, wanted: AwsScan, accounts: Sequence[str]) -> list[ProviderConfig]:
    """A provider configuration for each account, which refuses any other account; one for the caller's own without.

    What `providers: {aws: ...}` says (region, profile, endpoints) counts for all of them.
    """
    base = dict(config.providers.get("aws", {}))
    known = {account.id: account for account in wanted.accounts}
    if unknown := [name for name in accounts if name not in known]:
        raise UsageError(
            f"scan.aws.accounts has no account {unknown[0]}", "add it to tfguard.yaml, with the role to assume in it"
        )
    chosen = [known[name] for name in accounts] if accounts else list(wanted.accounts)
    if not chosen:
        return [ProviderConfig("aws", _AWS_SOURCE, base)]
    twice = [account.id for number, account in enumerate(chosen) if account.id in {a.id for a in chosen[:number]}]
    if twice:
        raise ConfigError(f"scan.aws.accounts has the account {twice[0]} twice", "take one of them out")
    return [ProviderConfig(f"aws.{account.id}", _AWS_SOURCE, {**base, **_as(account)}) for account in chosen]


def scanned_provider(config: Config) -> Callable[[CloudObject], ProviderConfig | None]:
    """Whom to ask about an object that a scan has found: as the scan does, and as nobody else.

    None for an account that is unknown, or where accounts are configured and this is none of them.
    """

    def provider(found: CloudObject) -> ProviderConfig | None:
        wanted = config.scan.aws or AwsScan()
        if found.cloud != "aws" or found.account is None:
            return None
        configured = {account.id for account in wanted.accounts}
        if configured and found.account not in configured:
            return None
        (base,) = aws_providers(config, wanted, (found.account,) if configured else ())
        regions = (found.region,) if found.region != "global" else wanted.regions
        region = {"region": regions[0]} if regions else {}
        return replace(base, key="aws", settings={**region, **base.settings, "allowed_account_ids.0": found.account})

    return provider


def _as(account: AwsAccount) -> dict[str, str]:
    role = {"assume_role.role_arn": account.role} if account.role else {}
    return {"allowed_account_ids.0": account.id, **role}


def _own_region(provider: ProviderConfig) -> tuple[str, ...]:
    """The region that the provider's settings, the environment or the profile name."""
    named = provider.settings.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not named:
        from botocore.session import Session

        named = Session(profile=provider.settings.get("profile")).get_config_variable("region")
    if not named:
        raise UsageError(
            "no region is known to scan", "add `scan: {aws: {regions: [...]}}` to tfguard.yaml, or --region"
        )
    return (named,)
