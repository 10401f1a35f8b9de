"""azure-storage-blob's client, from the settings of the engine's own `azurerm` backend: records and state are reached
alike.

As with the engine, what the settings do not say comes from the environment. An account key comes first, then a SAS
token, then the identity of the run, either for the blobs themselves (`use_azuread_auth`) or for looking up the
account's key (`resource_group_name`).
Source: https://developer.hashicorp.com/terraform/language/backend/azurerm
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tfguard.errors import RecordError
from tfguard.stores.azblob import AzureContainer, no_azure, reason
from tfguard.stores.azblob_login import (
    Settings,
    call,
    credential,
    is_on,
    resolved,
    transport_options,
)
from tfguard.stores.common import ATTEMPTS, RECORDS, UNFORESEEN, Held
from tfguard.stores.objects import ObjectStore


@dataclass(frozen=True, slots=True)
class _Cloud:
    """Where one of Azure's clouds has its services."""

    storage_suffix: str
    authority: str
    management: str


_CLOUDS: Mapping[str, _Cloud] = {
    "public": _Cloud("core.windows.net", "login.microsoftonline.com", "https://management.azure.com"),
    "usgovernment": _Cloud(
        "core.usgovcloudapi.net", "login.microsoftonline.us", "https://management.usgovcloudapi.net"
    ),
    "china": _Cloud("core.chinacloudapi.cn", "login.chinacloudapi.cn", "https://management.chinacloudapi.cn"),
}
_MANAGEMENT_API = "2023-01-01"
_METADATA_API = "2022-09-01"
# A pause lasts 1 to 2 s.
_RETRIES: Mapping[str, Any] = {
    "retry_total": ATTEMPTS - 1,
    "initial_backoff": 0.5,
    "increment_base": 1,
    "random_jitter_range": 0.5,
}
# A document is read in one request, so that it cannot change between two.
_ONE_READ = 256 * 1024 * 1024


def backend_store(settings: Settings, prefix: str) -> ObjectStore:
    """The store below `prefix` in the container of the backend that `settings` describe."""
    return ObjectStore(backend_container(settings, prefix, partial(container_client, settings)), prefix)


def backend_container(settings: Settings, root: str, client: Callable[[], Any], held: Held = RECORDS) -> AzureContainer:
    """The container of the backend that `settings` describe, for blobs below `root`; `client` makes its client."""
    account, name = settings.get("storage_account_name", ""), settings.get("container_name", "")
    return AzureContainer(account, name, root, client, held)


def container_client(settings: Settings) -> Any:
    """The library's `ContainerClient` for the backend, or for a `records:` URL, whose account is at `blob_endpoint`.

    Raises `RecordError` for settings that the library refuses, when the account cannot be looked up, or without the
    library.
    """
    try:
        from azure.core.exceptions import AzureError
        from azure.storage.blob import ContainerClient
    except ImportError as error:
        raise no_azure() from error
    for name in ("azure", "msal"):
        # They tell of every retry on stderr; what matters becomes an error of ours.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    account = settings.get("storage_account_name", "")
    try:
        merged = resolved(settings)
        url, key = _account(merged)
        return ContainerClient(
            url, merged.get("container_name", ""), key, max_single_get_size=_ONE_READ, **_RETRIES, **transport_options()
        )
    except AzureError as error:
        raise RecordError(
            f"the storage account {account} of the records cannot be looked up: {reason(error)}",
            "let this run read the account and its keys as the engine does (or set `use_azuread_auth`, ARM_ACCESS_KEY)",
        ) from error
    except UNFORESEEN as error:  # also an answer of another form than Azure's
        raise RecordError(
            f"the Azure client cannot be made: {reason(error)}",
            "correct the azurerm backend's settings or the ARM_ variables",
        ) from error


def _account(settings: Settings) -> tuple[str, Any]:
    """The URL of the account's blobs, and what opens them."""
    from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

    account = settings.get("storage_account_name", "")
    cloud = _cloud(settings)
    url = settings.get("blob_endpoint") or f"https://{account}.blob.{cloud.storage_suffix}"
    key, sas = settings.get("access_key"), settings.get("sas_token", "").removeprefix("?")
    by_identity = is_on(settings, "use_azuread_auth") and not key and not sas
    look_up = not (key or sas or by_identity)
    if look_up or is_on(settings, "lookup_blob_endpoint"):
        manage = partial(_manage, settings, cloud)
        url = str(manage("GET", "")["properties"]["primaryEndpoints"]["blob"])
        if look_up:
            key = _full_key(manage("POST", "/listKeys"))
    if key:
        return url, AzureNamedKeyCredential(account, key)
    return url, AzureSasCredential(sas) if sas else credential(settings, cloud.authority)


def _cloud(settings: Settings) -> _Cloud:
    """The cloud that the settings name, or that their metadata service describes."""
    if host := settings.get("metadata_host"):
        told = call("GET", f"https://{host}/metadata/endpoints?api-version={_METADATA_API}")
        authority, management = str(told["authentication"]["loginEndpoint"]), str(told["resourceManager"])
        return _Cloud(str(told["suffixes"]["storage"]), authority.rstrip("/"), management.rstrip("/"))
    name = settings.get("environment") or "public"
    if cloud := _CLOUDS.get(name.lower()):
        return cloud
    raise ValueError(f"the environment {name!r} is none of {', '.join(_CLOUDS)}")


def _manage(settings: Settings, cloud: _Cloud, method: str, action: str) -> Any:
    """What the management service answers about the storage account."""
    for name, variable in (("subscription_id", "ARM_SUBSCRIPTION_ID, "), ("resource_group_name", "")):
        if not settings.get(name):
            raise RecordError(
                f"the storage account of the records cannot be looked up without `{name}`",
                f"set {variable}`{name}` in the azurerm backend, `use_azuread_auth = true`, or ARM_ACCESS_KEY",
            )
    group = f"subscriptions/{settings['subscription_id']}/resourceGroups/{settings['resource_group_name']}"
    account = f"{group}/providers/Microsoft.Storage/storageAccounts/{settings['storage_account_name']}"
    url = f"{cloud.management}/{account}{action}?api-version={_MANAGEMENT_API}"
    return call(method, url, credential(settings, cloud.authority), f"{cloud.management}/.default")


def _full_key(listed: Any) -> str:
    for key in listed["keys"]:
        if str(key["permissions"]).lower() == "full":
            return str(key["value"])
    raise ValueError("the storage account has no key that may write")
