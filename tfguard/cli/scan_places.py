"""Whom a scan asks: the accounts and regions of tfguard.yaml and of the command line, as provider configurations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tfguard.catalog.loader import Catalog
from tfguard.errors import ConfigError, UsageError
from tfguard.inventory.exported import ExportedLister, read_export
from tfguard.inventory.shards import shards_for
from tfguard.model.config import AwsAccount, AwsScan, Config
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Shard

_AWS_SOURCE = "registry.terraform.io/hashicorp/aws"


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


def exported_lister(config: Config, catalog: Catalog, types: Sequence[str], exports: Sequence[str]) -> ExportedLister:
    """What exported listings hold, in the place of list calls. Raises `InputError` and `UsageError`."""
    wanted = tuple(types) or (config.scan.aws or AwsScan()).types
    return ExportedLister([read_export(Path(name), catalog, wanted) for name in exports], catalog)


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
