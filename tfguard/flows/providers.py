"""Whom a run and a later look ask: the provider configurations of a plan, of a record, and of tfguard.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tfguard.model.cloud import OTHERS, cloud_of_source
from tfguard.model.config import Config
from tfguard.model.operation import RecordedProvider, Step
from tfguard.model.plan import Plan, ProviderConfig
from tfguard.model.secrets import is_secret


def provider_for(step: Step, providers: Mapping[str, ProviderConfig], config: Config) -> ProviderConfig:
    """The provider configuration of a step, with tfguard.yaml filling in what the plan does not carry."""
    known = providers.get(step.provider_key) or ProviderConfig(step.provider_key, step.provider)
    added = config.providers.get(step.provider_key, {})
    cloud = cloud_of_source(known.source) or OTHERS
    # What in tfguard.yaml says who asks goes before keys in the configuration, which the plan need not carry.
    replaced = cloud.keys if added.keys() & cloud.identities else frozenset()
    settings = {**added, **{name: value for name, value in known.settings.items() if name not in replaced}}
    return replace(known, settings=settings, unresolved=known.unresolved - added.keys() - replaced)


def recorded_providers(plan: Plan) -> tuple[RecordedProvider, ...]:
    """The provider configurations as they may be kept."""
    return tuple(_recorded(provider, plan.secrets) for _, provider in sorted(plan.providers.items()))


def _recorded(provider: ProviderConfig, secrets: frozenset[str]) -> RecordedProvider:
    cloud = cloud_of_source(provider.source) or OTHERS
    kept = {
        name: value
        for name, value in provider.settings.items()
        if cloud.keeps(name, value) and not is_secret(value, secrets)
    }
    identity = {name for name in provider.settings if name not in kept and cloud.says_who(name)}
    return RecordedProvider(provider.key, provider.source, kept, tuple(sorted(provider.unresolved)), bool(identity))


def provider_from_record(recorded: RecordedProvider) -> ProviderConfig:
    """The provider configuration of an earlier run, without what was not kept."""
    return ProviderConfig(recorded.key, recorded.source, recorded.settings, frozenset(recorded.unresolved))
