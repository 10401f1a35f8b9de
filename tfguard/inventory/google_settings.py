"""What the settings of a Google provider block mean for a listing: whom it asks, as whom, and how far it reaches. Pure.

Beside the provider's own settings there are those that a scan makes: `organization` and `folder` (reach all below it),
`projects` (a list of patterns: only projects whose id is like one of them), and `only_project` (`true`: no other
project than `project` is meant).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tfguard.google_credentials import GOOGLE, WantedCredentials, first_set, listed
from tfguard.model.plan import ProviderConfig

CLOUD = "google"
ORGANIZATION, FOLDER, PROJECTS, ONLY_PROJECT = "organization", "folder", "projects", "only_project"

# What the provider reads where a setting is missing, the first that is set.
# Source: https://registry.terraform.io/providers/hashicorp/google/latest/docs/guides/provider_reference
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "credentials": ("GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON"),
    "access_token": ("GOOGLE_OAUTH_ACCESS_TOKEN",),
    "impersonate_service_account": ("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",),
    "project": ("GOOGLE_PROJECT", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"),
    "billing_project": ("GOOGLE_BILLING_PROJECT",),
    "user_project_override": ("USER_PROJECT_OVERRIDE",),
    "universe_domain": ("GOOGLE_CLOUD_UNIVERSE_DOMAIN",),
}
_WHO = ("credentials", "access_token", "impersonate_service_account", "impersonate_service_account_delegates")
_DECIDES = frozenset((*_WHO, "external_credentials", "universe_domain"))
_CLIENT = frozenset((*_DECIDES, "billing_project", "user_project_override"))
_ENDPOINT = "_custom_endpoint"
_VERSION_AT_END = re.compile(r"/(?:v\d+\w*|alpha|beta)/?$")
_BEFORE_VERSION = re.compile(r"https://[^/]+/(?:[^/]+/)*?(?=v\d+\w*/)")
_TRUE = frozenset({"1", "t", "true"})

ASSETS = ("cloud_asset",)
RESOURCE_MANAGER = ("resource_manager_v3", "resource_manager")
TAGS = ("tags", *RESOURCE_MANAGER)
LOGGING = ("logging",)
LISTING = (*ASSETS, *TAGS)
"""What the provider calls the services that a listing asks, whatever is listed."""

# Services whose settings are not called as their hosts are.
_CALLED: Mapping[str, tuple[str, ...]] = {
    "artifactregistry": ("artifact_registry",),
    "bigquery": ("big_query", "bigquery"),
    "bigtableadmin": ("bigtable",),
    "cloudfunctions": ("cloudfunctions2", "cloud_functions"),
    "cloudkms": ("kms",),
    "cloudresourcemanager": TAGS,
    "cloudscheduler": ("cloud_scheduler",),
    "cloudtasks": ("cloud_tasks",),
    "file": ("filestore",),
    "run": ("cloud_run_v2", "cloud_run"),
    "secretmanager": ("secret_manager",),
    "serviceusage": ("service_usage",),
    "sqladmin": ("sql",),
}


class Level(StrEnum):
    """What a listing reaches, as Google's names of it begin."""

    PROJECT = "projects"
    FOLDER = "folders"
    ORGANIZATION = "organizations"


@dataclass(frozen=True, slots=True)
class Reach:
    """All that lies in one project, folder or organization. `alone`: of projects, no other than this one is meant."""

    level: Level
    name: str
    alone: bool = False

    @property
    def scope(self) -> str:
        """Google's name of it."""
        return f"{self.level}/{self.name}"

    @property
    def account(self) -> str | None:
        """The account of what lies in it and in no project of its own; a project's id is its own account. None where
        patterns alone tell the projects."""
        return (self.name or None) if self.level is Level.PROJECT else self.scope


def reach_of(settings: Mapping[str, str], environ: Mapping[str, str], place: str | None = None) -> Reach | None:
    """How far a provider configuration reaches; None where nothing names a project.

    `place` is an object's own one and counts before the provider's: a project's id, or `organizations/N`, `folders/N`.
    """
    if place:
        return _named(place)
    for setting, level in ((ORGANIZATION, Level.ORGANIZATION), (FOLDER, Level.FOLDER)):
        if name := settings.get(setting):
            return Reach(level, name.removeprefix(f"{level}/"))
    project = first_set(settings, "project", _VARIABLES["project"], environ)
    if project is None:
        return Reach(Level.PROJECT, "", alone=True) if listed(settings, PROJECTS) else None
    return Reach(Level.PROJECT, project.removeprefix("projects/"), flag(settings.get(ONLY_PROJECT)))


def is_of_scan(settings: Mapping[str, str], place: str | None = None) -> bool:
    """Whether a scan asks, as the settings tell that it alone makes. It names no object's own place."""
    if place:
        return False
    many = settings.get(ORGANIZATION) or settings.get(FOLDER) or listed(settings, PROJECTS)
    return bool(many) or flag(settings.get(ONLY_PROJECT))


def _named(place: str) -> Reach:
    head, _, name = place.partition("/")
    if name and head in (Level.FOLDER, Level.ORGANIZATION):
        return Reach(Level(head), name, alone=True)
    return Reach(Level.PROJECT, place.removeprefix("projects/"), alone=True)


def whom_is_unknown(provider: ProviderConfig, endpoint_names: Sequence[str]) -> str | None:
    """Why it is not known who would be asked, with the line to add; None when it is known.

    A setting that `settings` has counts as known, even if the plan itself did not carry it. `endpoint_names` are what
    the provider calls the services that are going to be asked.
    """
    unknown = sorted(name for name in _still_unresolved(provider) if _decides(name, endpoint_names))
    if unknown:
        return f"{', '.join(unknown)} of {provider.key} is not in the plan; {_advice(provider.key, unknown[0])}"
    if any(_head(name) == "external_credentials" for name in provider.settings):
        return f"external_credentials of {provider.key} is not supported; {_advice(provider.key, 'credentials')}"
    return None


def project_is_unknown(provider: ProviderConfig, environ: Mapping[str, str]) -> str | None:
    """Why it is not known which project is meant, with the line to add; None where something names it."""
    if "project" in _still_unresolved(provider):
        return f"project of {provider.key} is not in the plan; {_advice(provider.key, 'project')}"
    if reach_of(provider.settings, environ) is None:
        advice = _advice(provider.key or CLOUD, "project")
        return f"{provider.key or 'the provider'} has no project; set GOOGLE_PROJECT, or {advice}"
    return None


def credentials_wanted(settings: Mapping[str, str], environ: Mapping[str, str], project: str = "") -> WantedCredentials:
    """Who the provider would be. `project` pays where its own project is to pay and no other is named for that."""
    own = flag(_setting(settings, "user_project_override", environ))
    return WantedCredentials(
        access_token=_setting(settings, "access_token", environ),
        key=_setting(settings, "credentials", environ),
        impersonate=_setting(settings, "impersonate_service_account", environ),
        delegates=listed(settings, "impersonate_service_account_delegates"),
        universe_domain=universe(settings, environ),
        quota_project=(_setting(settings, "billing_project", environ) or project or None) if own else None,
    )


def universe(settings: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """The domain that every service of this cloud has its name in."""
    return _setting(settings, "universe_domain", environ) or GOOGLE


def api_root(settings: Mapping[str, str], environ: Mapping[str, str], names: Sequence[str]) -> str | None:
    """The address of a service that the settings or the environment give it, without version and slash at its end.

    `names` are what the provider calls the service, the first that is named counts. None: the service's own address.
    """
    custom = _custom(settings, environ, names)
    return _VERSION_AT_END.sub("", custom.rstrip("/")) if custom else None


def address(url: str, settings: Mapping[str, str], environ: Mapping[str, str], names: Sequence[str]) -> str:
    """The address of a call, `url` being the one that the service has in public.

    A custom endpoint stands for everything before the version, which the call has its own of; another universe for the
    domain.
    """
    if root := api_root(settings, environ, names):
        return _BEFORE_VERSION.sub(lambda _: f"{root}/", url, count=1)
    domain = universe(settings, environ)
    return url if domain == GOOGLE else url.replace(f".{GOOGLE}/", f".{domain}/", 1)


def endpoint_names(service: str) -> tuple[str, ...]:
    """What the provider calls a service of the catalogue in `NAME_custom_endpoint`."""
    return _CALLED.get(service, (service,))


def sharing_key(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Equal for two provider configurations that may share their clients. It holds credentials: in memory only."""
    return tuple(sorted((name, value) for name, value in settings.items() if _is_of_the_client(name)))


def flag(value: str | None) -> bool:
    """Whether a setting says yes, as the provider reads it."""
    return (value or "").lower() in _TRUE


def _custom(settings: Mapping[str, str], environ: Mapping[str, str], names: Sequence[str]) -> str | None:
    told = (
        first_set(settings, f"{name}{_ENDPOINT}", (f"GOOGLE_{name.upper()}{_ENDPOINT.upper()}",), environ)
        for name in names
    )
    return next((url for url in told if url), None)


def _setting(settings: Mapping[str, str], name: str, environ: Mapping[str, str]) -> str | None:
    return first_set(settings, name, _VARIABLES[name], environ)


def _still_unresolved(provider: ProviderConfig) -> frozenset[str]:
    return frozenset(name for name in provider.unresolved if name not in provider.settings)


def _decides(name: str, endpoint_names: Sequence[str]) -> bool:
    if name.endswith(_ENDPOINT):
        return name.removesuffix(_ENDPOINT) in endpoint_names
    return _head(name) in _DECIDES


def _is_of_the_client(name: str) -> bool:
    return _head(name) in _CLIENT or name.endswith(_ENDPOINT)


def _head(name: str) -> str:
    return name.split(".", 1)[0]


def _advice(key: str, setting: str) -> str:
    """The line for tfguard.yaml. A token never goes there, so that its place takes the path of an account's key."""
    name = _head(setting)
    line = "credentials: PATH" if name in ("credentials", "access_token", "external_credentials") else f"{name}: ..."
    shown = key if re.fullmatch(r"[\w.-]+", key) else f'"{key}"'
    return f"add to tfguard.yaml: providers: {{{shown}: {{{line}}}}}"
