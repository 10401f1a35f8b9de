"""Whom a scan asks at AWS: the accounts and regions of tfguard.yaml and of the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from tfguard.catalog.catalog import Catalog
from tfguard.errors import ConfigError, UsageError
from tfguard.inventory.shards import shards_for
from tfguard.model.config import AwsAccount, AwsScan, Config
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Shard

_SOURCE = "registry.terraform.io/hashicorp/aws"


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
        return [ProviderConfig("aws", _SOURCE, base)]
    twice = [account.id for number, account in enumerate(chosen) if account.id in {a.id for a in chosen[:number]}]
    if twice:
        raise ConfigError(f"scan.aws.accounts has the account {twice[0]} twice", "take one of them out")
    return [ProviderConfig(f"aws.{account.id}", _SOURCE, {**base, **_as(account)}) for account in chosen]


def aws_provider(config: Config, found: CloudObject) -> ProviderConfig | None:
    """Whom to ask about an object of AWS that a scan has found; None where its account is none of the configured."""
    wanted = config.scan.aws or AwsScan()
    configured = {account.id for account in wanted.accounts}
    if found.account is None or (configured and found.account not in configured):
        return None
    (base,) = aws_providers(config, wanted, (found.account,) if configured else ())
    regions = (found.region,) if found.region != "global" else wanted.regions
    region = {"region": regions[0]} if regions else {}
    return replace(base, key="aws", settings={**region, **base.settings, "allowed_account_ids.0": found.account})


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
