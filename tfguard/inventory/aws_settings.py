"""What the settings of an AWS provider block mean for a listing: whom it asks, and where. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tfguard.model.plan import ProviderConfig

_CREDENTIALS = ("access_key", "secret_key", "token")
_WHO = (
    *_CREDENTIALS,
    "profile",
    "assume_role",
    "assume_role_with_web_identity",
    "shared_config_files",
    "shared_credentials_files",
    "endpoint_url",
    "endpoints",
)
_CLIENT = ("region", "sts_region", "s3_use_path_style", "s3_force_path_style", "insecure", "custom_ca_bundle")
_CLIENT_MORE = (
    "use_fips_endpoint",
    "use_dualstack_endpoint",
    "http_proxy",
    "https_proxy",
    "skip_requesting_account_id",
)
_RELEVANT = frozenset((*_WHO, *_CLIENT, *_CLIENT_MORE))

GLOBAL_REGIONS = {"aws": "us-east-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}
"""Where each partition answers for what exists once in an account."""


def sharing_key(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Equal for two provider configurations that may share their clients. It holds credentials: in memory only."""
    return tuple(sorted((name, value) for name, value in settings.items() if _head(name) in _RELEVANT))


def whom_is_unknown(provider: ProviderConfig, endpoint_names: Sequence[str]) -> str | None:
    """Why it is not known who would be asked, with the line to add; None when it is known.

    A setting that `settings` has counts as known, even if the plan itself did not carry it.
    """
    unknown = sorted(name for name in _still_unresolved(provider) if _decides(name, endpoint_names))
    if unknown:
        return f"{', '.join(unknown)} of {provider.key} is not in the plan; {_advice(provider.key, unknown[0])}"
    if any(_head(name) == "assume_role_with_web_identity" for name in provider.settings):
        return f"assume_role_with_web_identity of {provider.key} is not supported; {_advice(provider.key, 'profile')}"
    if _has_several(provider.settings, "shared_config_files", "shared_credentials_files"):
        return f"{provider.key} names several shared files, which is not supported; {_advice(provider.key, 'profile')}"
    return None


def region_is_unknown(provider: ProviderConfig) -> str | None:
    """Why the region is not known, with the line to add; None when settings or environment decide it."""
    if "region" in _still_unresolved(provider):
        return f"region of {provider.key} is not in the plan; {_advice(provider.key, 'region')}"
    return None


def no_region(key: str) -> str:
    """What to tell when neither settings nor environment name a region."""
    return f"{key or 'the provider'} has no region; set AWS_REGION, or {_advice(key, 'region')}"


def account_is_wrong(settings: Mapping[str, str], account: str) -> str | None:
    """Why the credentials are not those that the provider block wants; None when they are."""
    allowed, forbidden = values(settings, "allowed_account_ids"), values(settings, "forbidden_account_ids")
    if (allowed and account not in allowed) or account in forbidden:
        wanted = f"and {' or '.join(allowed)} is wanted" if allowed else "which forbidden_account_ids names"
        return f"the credentials are those of account {account}, {wanted}"
    return None


def names_accounts(settings: Mapping[str, str]) -> bool:
    """Whether the settings say which accounts it may be: then it has to be known which it is."""
    return bool(values(settings, "allowed_account_ids") or values(settings, "forbidden_account_ids"))


def wanted_account(settings: Mapping[str, str]) -> str | None:
    """The account that it has to be, where the settings allow no other."""
    allowed = values(settings, "allowed_account_ids")
    return allowed[0] if len(allowed) == 1 else None


def values(settings: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The values of a setting that is a list (`NAME.0`, `NAME.1`), or a single one."""
    return tuple(value for key, value in settings.items() if key == name or re.fullmatch(rf"{name}\.\d+", key))


def flag(settings: Mapping[str, str], *names: str) -> bool:
    """Whether one of the settings is true."""
    return any(settings.get(name) == "true" for name in names)


def endpoint(settings: Mapping[str, str], endpoint_names: Sequence[str]) -> str | None:
    """The endpoint that the settings give to a service; None leaves it to the environment and the SDK."""
    own = (settings.get(f"endpoints.{name}") for name in endpoint_names)
    return next((url for url in own if url), None) or settings.get("endpoint_url") or None


def _still_unresolved(provider: ProviderConfig) -> frozenset[str]:
    return frozenset(name for name in provider.unresolved if name not in provider.settings)


def _decides(name: str, endpoint_names: Sequence[str]) -> bool:
    if name.startswith("endpoints."):
        return name.removeprefix("endpoints.") in endpoint_names
    return _head(name) in _WHO


def _has_several(settings: Mapping[str, str], *names: str) -> bool:
    return any(len(values(settings, name)) > 1 for name in names)


def _head(name: str) -> str:
    return name.split(".", 1)[0]


def _advice(key: str, setting: str) -> str:
    """The line for tfguard.yaml. A credential never goes there, so that its place takes a profile."""
    name, _, inner = ("profile" if _head(setting) in _CREDENTIALS else setting).partition(".")
    shown = key if re.fullmatch(r"[\w.-]+", key) else f'"{key}"'
    value = f"{{{inner}: ...}}" if inner else "..."
    return f"add to tfguard.yaml: providers: {{{shown}: {{{name}: {value}}}}}"
