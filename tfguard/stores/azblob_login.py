"""Who a run is to Azure: the settings of the engine's `azurerm` backend as an azure-identity credential.

The order is the engine's: certificate, secret, OIDC token, managed identity, Azure CLI; the first that is complete.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tfguard.stores.common import ATTEMPTS, CONNECT_SECONDS, READ_SECONDS

Settings = Mapping[str, str]

_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "access_key": ("ARM_ACCESS_KEY",),
    "sas_token": ("ARM_SAS_TOKEN",),
    "use_azuread_auth": ("ARM_USE_AZUREAD",),
    "lookup_blob_endpoint": ("ARM_USE_DNS_ZONE_ENDPOINT",),
    "environment": ("ARM_ENVIRONMENT",),
    "metadata_host": ("ARM_METADATA_HOSTNAME", "ARM_METADATA_HOST"),
    "subscription_id": ("ARM_SUBSCRIPTION_ID",),
    "tenant_id": ("ARM_TENANT_ID",),
    "client_id": ("ARM_CLIENT_ID",),
    "client_id_file_path": ("ARM_CLIENT_ID_FILE_PATH",),
    "client_secret": ("ARM_CLIENT_SECRET",),
    "client_secret_file_path": ("ARM_CLIENT_SECRET_FILE_PATH",),
    "client_certificate": ("ARM_CLIENT_CERTIFICATE",),
    "client_certificate_path": ("ARM_CLIENT_CERTIFICATE_PATH",),
    "client_certificate_password": ("ARM_CLIENT_CERTIFICATE_PASSWORD",),
    "use_oidc": ("ARM_USE_OIDC",),
    "oidc_token": ("ARM_OIDC_TOKEN",),
    "oidc_token_file_path": ("ARM_OIDC_TOKEN_FILE_PATH",),
    "oidc_request_url": ("ARM_OIDC_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_URL", "SYSTEM_OIDCREQUESTURI"),
    "oidc_request_token": ("ARM_OIDC_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "SYSTEM_ACCESSTOKEN"),
    "ado_pipeline_service_connection_id": (
        "ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID",
        "ARM_OIDC_AZURE_SERVICE_CONNECTION_ID",
    ),
    "use_aks_workload_identity": ("ARM_USE_AKS_WORKLOAD_IDENTITY",),
    "use_msi": ("ARM_USE_MSI",),
    "use_cli": ("ARM_USE_CLI",),
}
_AKS_VARIABLES = {
    "client_id": "AZURE_CLIENT_ID",
    "tenant_id": "AZURE_TENANT_ID",
    "oidc_token_file_path": "AZURE_FEDERATED_TOKEN_FILE",
}
_CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_AUDIENCE = "api://AzureADTokenExchange"
_RETRIES = ATTEMPTS - 1


def resolved(settings: Settings) -> Settings:
    """The settings with what they do not say taken from the environment and from the files that they name."""
    found = dict(settings)
    for name, variables in _VARIABLES.items():
        value = next((os.environ[variable] for variable in variables if os.environ.get(variable)), None)
        if not found.get(name) and value:
            found[name] = value
    if is_on(found, "use_aks_workload_identity"):
        aks = {name: os.environ[variable] for name, variable in _AKS_VARIABLES.items() if os.environ.get(variable)}
        found = {**aks, **found, "use_oidc": "true"}
    for name in ("client_id", "client_secret"):
        if not found.get(name) and (path := found.get(f"{name}_file_path")):
            found[name] = Path(path).read_text().strip()
    return found


def is_on(settings: Settings, name: str) -> bool:
    """Whether a setting is true; those of the environment may be written as 1."""
    return settings.get(name, "").lower() in ("true", "1")


def transport_options() -> dict[str, Any]:
    """How every client of an Azure library reaches its service: bounded, and trusting the authorities that the engine
    trusts."""
    authorities = next((os.environ[name] for name in _CA_VARIABLES if os.environ.get(name)), True)
    return {
        "connection_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "connection_verify": authorities,
    }


def credential(settings: Settings, authority: str) -> Any:
    """The credential for resolved settings. No token is asked for yet; `ValueError` for settings that make none."""
    from azure import identity

    tenant, client = settings.get("tenant_id", ""), settings.get("client_id", "")
    bounds = {"retry_total": _RETRIES, **transport_options()}
    options = {"authority": authority, **bounds}
    if tenant and client:
        if certificate := _certificate(settings):
            return identity.CertificateCredential(tenant, client, **certificate, **options)
        if secret := settings.get("client_secret"):
            return identity.ClientSecretCredential(tenant, client, secret, **options)
        if is_on(settings, "use_oidc") and (by_token := _by_oidc_token(settings, tenant, client, options)):
            return by_token
    if is_on(settings, "use_msi"):
        return identity.ManagedIdentityCredential(client_id=client or None, **bounds)
    if settings.get("use_cli", "true").lower() in ("true", "1"):
        return identity.AzureCliCredential(tenant_id=tenant)
    return identity.DefaultAzureCredential(**options)


def call(method: str, url: str, token: Any = None, scope: str = "", headers: Mapping[str, str] | None = None) -> Any:
    """The JSON that a service answers; `token` is a credential for `scope`. Raises the library's `AzureError`."""
    from azure.core import PipelineClient
    from azure.core.pipeline import policies
    from azure.core.rest import HttpRequest

    steps: list[Any] = [policies.HeadersPolicy(dict(headers or {})), policies.RetryPolicy(retry_total=_RETRIES)]
    if token:
        steps.append(policies.BearerTokenCredentialPolicy(token, scope))
    with PipelineClient(url, policies=steps, **transport_options()) as client:
        response = client.send_request(HttpRequest(method, url))
        response.raise_for_status()
        return response.json()


def _certificate(settings: Settings) -> dict[str, Any]:
    secret = {"password": settings.get("client_certificate_password") or None}
    if data := settings.get("client_certificate"):
        return {"certificate_data": base64.b64decode(data), **secret}
    if path := settings.get("client_certificate_path"):
        return {"certificate_path": path, **secret}
    return {}


def _by_oidc_token(settings: Settings, tenant: str, client: str, options: Mapping[str, Any]) -> Any | None:
    """A token of the CI system as proof, asked for anew each time, as a run may outlast it; None: there is none."""
    from azure import identity

    if token := settings.get("oidc_token"):
        return identity.ClientAssertionCredential(tenant, client, lambda: token, **options)
    if path := settings.get("oidc_token_file_path"):
        return identity.ClientAssertionCredential(tenant, client, lambda: Path(path).read_text().strip(), **options)
    url, request_token = settings.get("oidc_request_url"), settings.get("oidc_request_token")
    if not url or not request_token:
        return None
    if connection := settings.get("ado_pipeline_service_connection_id"):
        return identity.AzurePipelinesCredential(
            tenant_id=tenant,
            client_id=client,
            service_connection_id=connection,
            system_access_token=request_token,
            **options,
        )
    return identity.ClientAssertionCredential(tenant, client, partial(_github_token, url, request_token), **options)


def _github_token(url: str, request_token: str) -> str:
    answer = call("GET", f"{url}&audience={_AUDIENCE}", headers={"Authorization": f"Bearer {request_token}"})
    return str(answer["value"])
