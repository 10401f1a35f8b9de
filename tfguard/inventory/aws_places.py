"""Whom to ask at AWS: the client for a type's objects in a place, and whose account its answers are about."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfguard.catalog.types import ResourceType
from tfguard.inventory import aws_settings as settings_of
from tfguard.inventory.aws_access import CALL_ERRORS, AwsAccess, AwsAccesses, Client, nobody_can_be_asked, refusal
from tfguard.model.inventory import UNKNOWN_REGION, Scope
from tfguard.model.plan import ProviderConfig


@dataclass(frozen=True)
class Place:
    """One client, and what its answers are about. `doubt` is why the account is not known although it should be."""

    client: Client
    scope: Scope
    partition: str
    doubt: str | None = None


class NoPlaceError(Exception):
    """A place that cannot be asked, and why."""

    def __init__(self, scope: Scope, reason: str) -> None:
        super().__init__(reason)
        self.scope = scope
        self.reason = reason


def find_place(entry: ResourceType, provider: ProviderConfig, accesses: AwsAccesses, region: str | None) -> Place:
    """The place that a provider configuration leads to. Raises `NoPlaceError` where nobody can be asked there."""
    near = "global" if entry.is_global else region or provider.settings.get("region") or UNKNOWN_REGION
    scope = Scope(entry.cloud, settings_of.wanted_account(provider.settings), near, provider.key)
    try:
        return _with_access(entry, provider, accesses.of(provider.settings), region)
    except CALL_ERRORS as error:
        raise NoPlaceError(scope, refusal(error, f"preparing to ask {entry.service}")) from error


def _with_access(entry: ResourceType, provider: ProviderConfig, access: AwsAccess, region: str | None) -> Place:
    near = region or access.region() or (settings_of.GLOBAL_REGIONS["aws"] if entry.is_global else None)
    if near is None:
        nowhere = Scope(entry.cloud, settings_of.wanted_account(provider.settings), UNKNOWN_REGION, provider.key)
        raise NoPlaceError(nowhere, settings_of.no_region(provider.key))
    partition = access.partition(near)
    called = settings_of.GLOBAL_REGIONS.get(partition, near) if entry.is_global else near
    unowned = Scope(entry.cloud, None, "global" if entry.is_global else near, provider.key)
    # Whose objects they are not, nobody may see; the gap is where they should have been looked for.
    guarded = settings_of.names_accounts(provider.settings)
    wanted = replace(unowned, account=settings_of.wanted_account(provider.settings))
    client = access.client(entry.service, called)
    if not access.asks_for_account():
        if guarded:
            raise NoPlaceError(wanted, "which account it is may not be asked for (skip_requesting_account_id)")
        return Place(client, unowned, partition)
    try:
        caller = access.caller(near)
    except CALL_ERRORS as error:
        doubt = refusal(error, "GetCallerIdentity")
        if guarded or nobody_can_be_asked(error):
            raise NoPlaceError(wanted, doubt) from error
        return Place(client, unowned, partition, doubt=doubt)
    scope = replace(unowned, account=caller.account)
    wrong = settings_of.account_is_wrong(provider.settings, caller.account)
    if wrong:
        raise NoPlaceError(wanted, wrong)
    return Place(client, scope, caller.partition)
