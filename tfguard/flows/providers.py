"""Whom a run and a later look ask: the provider configurations of a plan, of a record, and of tfguard.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tfguard.model.config import Config
from tfguard.model.operation import RecordedProvider, Step
from tfguard.model.plan import Plan, ProviderConfig
from tfguard.model.secrets import is_secret

# A profile or a role in tfguard.yaml says who asks; keys in the configuration that the plan does not carry do not then.
_OTHER_IDENTITY = frozenset({"profile", "assume_role.role_arn"})
_STATIC_KEYS = frozenset({"access_key", "secret_key", "token"})

# Provider settings that may be kept in a record: they say where to look, and hold no secret.
_KEPT_SETTINGS = frozenset(
    [
        "region",
        "profile",
        "assume_role.role_arn",
        "assume_role.session_name",
        "s3_use_path_style",
        "s3_force_path_style",
        "skip_requesting_account_id",
        "skip_credentials_validation",
        "allowed_account_ids.0",
        "project",
        "location",
        "use_fips_endpoint",
        "use_dualstack_endpoint",
        "sts_region",
    ]
)


def provider_for(step: Step, providers: Mapping[str, ProviderConfig], config: Config) -> ProviderConfig:
    """The provider configuration of a step, with tfguard.yaml filling in what the plan does not carry."""
    known = providers.get(step.provider_key) or ProviderConfig(step.provider_key, step.provider)
    added = config.providers.get(step.provider_key, {})
    replaced = _STATIC_KEYS if added.keys() & _OTHER_IDENTITY else frozenset()
    settings = {**added, **{name: value for name, value in known.settings.items() if name not in replaced}}
    return replace(known, settings=settings, unresolved=known.unresolved - added.keys() - replaced)


def recorded_providers(plan: Plan) -> tuple[RecordedProvider, ...]:
    """The provider configurations as they may be kept."""
    return tuple(_recorded(provider, plan.secrets) for _, provider in sorted(plan.providers.items()))


def _recorded(provider: ProviderConfig, secrets: frozenset[str]) -> RecordedProvider:
    kept = {
        name: value
        for name, value in provider.settings.items()
        if (name in _KEPT_SETTINGS or name.startswith("endpoints."))
        and not is_secret(value, secrets)
        and "@" not in value
    }
    identity = {name for name in provider.settings if name not in kept and _says_who(name)}
    return RecordedProvider(provider.key, provider.source, kept, tuple(sorted(provider.unresolved)), bool(identity))


def _says_who(name: str) -> bool:
    """Whether a setting decides who asks or where: without it a later look would ask as somebody else."""
    return not name.startswith(("default_tags", "ignore_tags", "skip_", "forbidden_", "allowed_", "max_retries"))


def provider_from_record(recorded: RecordedProvider) -> ProviderConfig:
    """The provider configuration of an earlier run, without what was not kept."""
    return ProviderConfig(recorded.key, recorded.source, recorded.settings, frozenset(recorded.unresolved))
