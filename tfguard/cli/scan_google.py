"""Whom a scan asks at Google Cloud: the organization, folders and projects of tfguard.yaml and of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from tfguard.catalog.catalog import Catalog
from tfguard.errors import UsageError
from tfguard.inventory.google_settings import FOLDER, ONLY_PROJECT, ORGANIZATION, PROJECTS
from tfguard.inventory.shards import shards_of_projects
from tfguard.model.cloud import GOOGLE
from tfguard.model.config import Config, GoogleScan
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig
from tfguard.model.scan import Shard

_SOURCE = "registry.terraform.io/hashicorp/google"
_PROJECT = "project"
_WILD = frozenset("*?[")
_ONLY_VISIBLE = (
    "scan.google.projects has patterns and no organization or folders beside them: only projects that these "
    "credentials may see were meant"
)


def google_shards(
    config: Config, catalog: Catalog, _regions: Sequence[str], types: Sequence[str], accounts: Sequence[str]
) -> tuple[Shard, ...]:
    """The shards of every project that is to be scanned in Google Cloud: one search answers for all its locations.

    `types` and `accounts` (ids of projects) are those of the command line; what is not said there is that of
    `scan.google`. Raises `UsageError` for a pattern that matches no type, and for a project that
    `scan.google.projects` leaves out.
    """
    wanted = config.scan.google or GoogleScan()
    patterns = tuple(types) or wanted.types
    found = [
        shard
        for provider in google_providers(config, wanted, accounts)
        for shard in shards_of_projects(catalog, provider, patterns)
    ]
    return tuple(found)


def google_notes(shards: Sequence[Shard]) -> tuple[str, ...]:
    """What a scan by patterns alone cannot know: which projects there are that nobody showed it."""
    settings = [shard.provider.settings for shard in shards if shard.cloud == GOOGLE.name]
    alone = [one for one in settings if f"{PROJECTS}.0" in one and ORGANIZATION not in one and FOLDER not in one]
    return (_ONLY_VISIBLE,) if alone else ()


def google_providers(config: Config, wanted: GoogleScan, accounts: Sequence[str]) -> list[ProviderConfig]:
    """A provider configuration for each project that is named; else for the organization or each folder; else one for
    the caller's own project. What `providers: {google: ...}` says (credentials, endpoints) counts for all of them."""
    base = dict(config.providers.get("google", {}))
    for name in accounts:
        if wanted.projects and not any(fnmatchcase(name, pattern) for pattern in wanted.projects):
            raise UsageError(f"scan.google.projects leaves the project {name} out", "add it to tfguard.yaml")
    names = {name: name for name in accounts}
    tops = [(ORGANIZATION, wanted.organization)] if wanted.organization else [(FOLDER, one) for one in wanted.folders]
    if not names and not tops and not any(map(_is_wild, wanted.projects)):
        names = {name: name for name in wanted.projects}
    if names:
        return [ProviderConfig(f"google.{name}", _SOURCE, _alone(base, name)) for name in names]
    narrowed = {f"{PROJECTS}.{number}": pattern for number, pattern in enumerate(wanted.projects)}
    if tops:
        free = {name: value for name, value in base.items() if name != _PROJECT}
        return [
            ProviderConfig(f"google.{setting}s/{number}", _SOURCE, {**free, setting: number, **narrowed})
            for setting, number in tops
        ]
    only = {} if narrowed else {ONLY_PROJECT: "true"}
    return [ProviderConfig("google", _SOURCE, {**base, **narrowed, **only})]


def google_provider(config: Config, found: CloudObject) -> ProviderConfig | None:
    """Whom to ask about an object of Google Cloud that a scan has found; None where its project is none of the
    configured. What lies in no project is asked for at its organization or folder, as its own place."""
    wanted = config.scan.google or GoogleScan()
    if found.account is None:
        return None
    base = dict(config.providers.get("google", {}))
    if "/" in found.account:
        return ProviderConfig("google", _SOURCE, base)
    if wanted.projects and not any(fnmatchcase(found.account, pattern) for pattern in wanted.projects):
        return None
    return ProviderConfig("google", _SOURCE, _alone(base, found.account))


def _alone(base: Mapping[str, str], project: str) -> Mapping[str, str]:
    return {**base, _PROJECT: project, ONLY_PROJECT: "true"}


def _is_wild(pattern: str) -> bool:
    return not _WILD.isdisjoint(pattern)
