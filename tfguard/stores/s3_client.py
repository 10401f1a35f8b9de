"""boto3's S3 client, from the settings of the engine's own `s3` backend: records and state are reached alike.

Settings are the backend's, flattened with dots (`endpoints.s3`, `assume_role.role_arn`). What they do not say comes
from the environment, as with the engine.
Source: https://developer.hashicorp.com/terraform/language/backend/s3
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tfguard.errors import RecordError
from tfguard.model.config import parse_duration
from tfguard.stores.common import ATTEMPTS, CONNECT_SECONDS, READ_SECONDS, RECORDS, UNFORESEEN, Held, told
from tfguard.stores.objects import ObjectStore
from tfguard.stores.s3 import S3Bucket, no_boto3

Settings = Mapping[str, str]

_S3_ENDPOINT = ("endpoints.s3", "endpoint")
_S3_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT", "AWS_ENDPOINT_URL")
_STS_ENDPOINT = ("endpoints.sts", "sts_endpoint")
_STS_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_STS", "AWS_STS_ENDPOINT", "AWS_ENDPOINT_URL")
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_FILES = {
    "credentials_file": ("shared_credentials_files", "shared_credentials_file"),
    "config_file": ("shared_config_files",),
}
_ROLE_ARGUMENTS = {
    "RoleSessionName": ("assume_role.session_name", "session_name"),
    "ExternalId": ("assume_role.external_id", "external_id"),
    "Policy": ("assume_role.policy", "assume_role_policy"),
    "SourceIdentity": ("assume_role.source_identity",),
}
_WEB_IDENTITY = "assume_role_with_web_identity"


def backend_store(settings: Settings, prefix: str) -> ObjectStore:
    """The store below `prefix` in the bucket of the backend that `settings` describe."""
    return ObjectStore(backend_bucket(settings, prefix, partial(backend_client, settings)), prefix)


def backend_bucket(settings: Settings, root: str, client: Callable[[], Any], held: Held = RECORDS) -> S3Bucket:
    """The bucket of the backend that `settings` describe, for objects below `root`; `client` makes its client."""
    return S3Bucket(settings["bucket"], root, client, put_options(settings), held)


def put_options(settings: Settings) -> Mapping[str, str]:
    """How the backend wants its objects encrypted and shared, as arguments of `put_object`."""
    options: dict[str, str] = {}
    if key := settings.get("kms_key_id"):
        options |= {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
    elif _on(settings, "encrypt"):
        options["ServerSideEncryption"] = "AES256"
    if acl := settings.get("acl"):
        options["ACL"] = acl
    return options


def backend_client(settings: Settings) -> Any:
    """boto3's S3 client for the backend. Raises `RecordError` for settings that boto3 refuses, or without boto3."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise no_boto3() from error
    try:
        session = boto3.Session(botocore_session=_session(settings), region_name=_region(settings))
        return session.client("s3", **_client_arguments(settings))
    except (BotoCoreError, *UNFORESEEN) as error:
        raise RecordError(
            f"the S3 client cannot be made: {told(error)}",
            "correct the s3 backend's settings or the AWS_ variables",
        ) from error


def _session(settings: Settings) -> Any:
    """The session with the credentials that the backend would use."""
    import botocore.session
    from botocore.config import Config

    session = botocore.session.Session(profile=settings.get("profile") or None)
    # Also for the clients that the session makes for itself, such as the one that renews a role's credentials.
    session.set_default_client_config(Config(**_bounds(ATTEMPTS)))
    for variable, names in _FILES.items():
        if path := _only_file(settings, names):
            session.set_config_variable(variable, path)
    if settings.get("access_key") and settings.get("secret_key"):
        session.set_credentials(settings["access_key"], settings["secret_key"], settings.get("token"))
    if fetcher := _role_fetcher(settings, session):
        from botocore.credentials import DeferredRefreshableCredentials

        # There is no public way to hand refreshable credentials to a session; a run may outlast the role's hour.
        session._credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
    return session


def _only_file(settings: Settings, names: tuple[str, ...]) -> str | None:
    """The file that one of these settings names, as text or as a list; boto3, unlike the engine, reads one alone."""
    if several := next((name for name in names if f"{name}.1" in settings), None):
        raise RecordError(
            f"the s3 backend names several {several}, and tfguard can read the record with one alone",
            "name one file, or another place with `records:` in tfguard.yaml",
        )
    return _first(settings, tuple(option for name in names for option in (name, f"{name}.0")))


def _role_fetcher(settings: Settings, session: Any) -> Any | None:
    """What gets, and renews, the credentials of the role that the settings name; None when they name none."""
    from botocore.credentials import AssumeRoleCredentialFetcher, AssumeRoleWithWebIdentityCredentialFetcher

    create = partial(
        session.create_client,
        region_name=settings.get("sts_region") or _region(settings),
        endpoint_url=_endpoint(settings, _STS_ENDPOINT, _STS_ENDPOINT_VARIABLES),
        verify=_verify(settings),
    )
    if role := settings.get(f"{_WEB_IDENTITY}.role_arn"):
        name = settings.get(f"{_WEB_IDENTITY}.session_name")
        extra = {"RoleSessionName": name} if name else {}
        return AssumeRoleWithWebIdentityCredentialFetcher(create, partial(_web_token, settings), role, extra)
    if role := _first(settings, ("assume_role.role_arn", "role_arn")):
        base = session.get_credentials()
        if base is None:
            raise RecordError(
                "no AWS credentials are found with which the role of the records could be assumed",
                "give this run AWS credentials: the AWS_ variables, a profile, or the machine's own role",
            )
        return AssumeRoleCredentialFetcher(create, base, role, _role_arguments(settings))
    return None


def _role_arguments(settings: Settings) -> dict[str, object]:
    named = {argument: _first(settings, names) for argument, names in _ROLE_ARGUMENTS.items()}
    arguments: dict[str, object] = {argument: value for argument, value in named.items() if value}
    if duration := settings.get("assume_role.duration"):
        arguments["DurationSeconds"] = int(parse_duration(duration).total_seconds())
    elif seconds := settings.get("assume_role_duration_seconds"):
        arguments["DurationSeconds"] = int(seconds)
    return arguments


def _web_token(settings: Settings) -> str:
    if token := settings.get(f"{_WEB_IDENTITY}.web_identity_token"):
        return token
    from botocore.utils import FileWebIdentityTokenLoader

    file = settings.get(f"{_WEB_IDENTITY}.web_identity_token_file") or os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE", "")
    return str(FileWebIdentityTokenLoader(file)())


def _client_arguments(settings: Settings) -> dict[str, Any]:
    endpoint = _endpoint(settings, _S3_ENDPOINT, _S3_ENDPOINT_VARIABLES)
    return {"endpoint_url": endpoint, "verify": _verify(settings), "config": _client_config(settings, bool(endpoint))}


def _client_config(settings: Settings, custom_endpoint: bool) -> Any:
    from botocore.config import Config

    attempts = min(int(settings["max_retries"]) + 1, ATTEMPTS) if settings.get("max_retries") else ATTEMPTS
    options: dict[str, Any] = {
        **_bounds(attempts),
        "use_dualstack_endpoint": _on(settings, "use_dualstack_endpoint") or None,
        "use_fips_endpoint": _on(settings, "use_fips_endpoint") or None,
    }
    if _on(settings, "use_path_style") or _on(settings, "force_path_style"):
        options["s3"] = {"addressing_style": "path"}
    if custom_endpoint or _on(settings, "skip_s3_checksum"):
        # Stores that only resemble S3 refuse the newer checksums.
        options |= {"request_checksum_calculation": "when_required", "response_checksum_validation": "when_required"}
    if proxies := {s: settings[f"{s}_proxy"] for s in ("http", "https") if settings.get(f"{s}_proxy")}:
        options["proxies"] = proxies
    return Config(**options)


def _bounds(attempts: int) -> dict[str, Any]:
    """How long a client waits, and how often it tries, as arguments of boto3's `Config`."""
    return {
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"mode": "standard", "total_max_attempts": attempts},
    }


def _verify(settings: Settings) -> bool | str | None:
    return False if _on(settings, "insecure") else settings.get("custom_ca_bundle") or None


def _region(settings: Settings) -> str | None:
    """boto3 itself does not look at AWS_REGION, which the engine prefers."""
    return settings.get("region") or _first(os.environ, _REGION_VARIABLES)


def _endpoint(settings: Settings, names: tuple[str, ...], variables: tuple[str, ...]) -> str | None:
    return _first(settings, names) or _first(os.environ, variables)


def _first(values: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((values[name] for name in names if values.get(name)), None)


def _on(settings: Settings, name: str) -> bool:
    return settings.get(name, "").lower() in ("true", "1")
