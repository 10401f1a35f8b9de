"""What tells one cloud from another outside the adapters: data alone. The adapters are in `inventory/clouds.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tfguard.model.inventory import CloudObject


@dataclass(frozen=True, slots=True)
class Cloud:
    """A cloud as far as flows, engine and reports have to know it.

    `name` begins the names of its types (`aws_vpc`), `sources` are the last parts of the sources of its providers. A
    resource may name a place of its own in the attribute `own_place`, which overrides the provider setting of that
    name; `place_is_account` tells that this place is the account itself (a project) and no part of one (a region).

    `guard` is the setting of a provider configuration that leads to one account and no other, `wide` are those with
    which it reaches several. `second_guard` means that the guard names more than one. `made_up` are settings that a
    scan makes, those of `wide` among them, and that no provider knows.

    `kept` are provider settings that a record may hold: they say where to look, and are no secret; so do those that
    begin or end as `kept_alike` says. `kept_with_at` may have an `@` in it. `harmless` are the starts of settings that
    decide neither who asks nor where. `identities` are settings of tfguard.yaml that say who asks: then the
    credentials `keys` of the configuration do not. `spare` are settings without whose values an object is deleted all
    the same, since they decide neither whom the provider asks nor where. `name_it` and `tell_it` are advice: how a scan
    gets an account configured, and how the cloud tells which account it is; `tag_it` is how a retention gets its tags
    on an object, where tfguard sets any. `provisioned_label` is the tag by which the provider marks what it makes,
    without telling for which state. `accounts_type` is the type whose objects are accounts.
    """

    name: str
    title: str
    sources: tuple[str, ...]
    own_place: str
    place_is_account: bool
    guard: str
    second_guard: str
    wide: tuple[str, ...]
    made_up: frozenset[str]
    kept: frozenset[str]
    kept_alike: tuple[str, str]
    kept_with_at: frozenset[str]
    harmless: tuple[str, ...]
    identities: frozenset[str]
    keys: frozenset[str]
    spare: frozenset[str]
    account_word: str
    name_it: str
    tell_it: str
    tag_it: str = ""
    provisioned_label: str = ""
    accounts_type: str = ""

    def account_of(self, settings: Mapping[str, str]) -> str | None:
        """The one account to which a configuration with these settings leads; None where they do not say."""
        if self.second_guard in settings or self.reaches_several(settings):
            return None
        return settings.get(self.guard)

    def guarded_account(self, settings: Mapping[str, str]) -> str | None:
        """The first account that these settings name; None for a configuration that may work in any."""
        return None if self.reaches_several(settings) else settings.get(self.guard)

    def reaches_several(self, settings: Mapping[str, str]) -> bool:
        """Whether a configuration with these settings is asked for several accounts at once."""
        return any(name.split(".", 1)[0] in self.wide for name in settings)

    def keeps(self, name: str, value: str) -> bool:
        """Whether a record may hold this provider setting."""
        starts, ends = self.kept_alike
        alike = (bool(starts) and name.startswith(starts)) or (bool(ends) and name.endswith(ends))
        bare = name.split(".", 1)[0]
        return (name in self.kept or bare in self.kept_with_at or alike) and (
            "@" not in value or bare in self.kept_with_at
        )

    def says_who(self, name: str) -> bool:
        """Whether a setting decides who asks or where: without it a later look would ask as somebody else."""
        return not name.startswith(self.harmless)


AWS = Cloud(
    name="aws",
    title="AWS",
    sources=("aws",),
    own_place="region",
    place_is_account=False,
    guard="allowed_account_ids.0",
    second_guard="allowed_account_ids.1",
    wide=(),
    made_up=frozenset(),
    kept=frozenset(
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
            "use_fips_endpoint",
            "use_dualstack_endpoint",
            "sts_region",
        ]
    ),
    kept_alike=("endpoints.", ""),
    kept_with_at=frozenset(),
    harmless=("default_tags", "ignore_tags", "skip_", "forbidden_", "allowed_", "max_retries"),
    identities=frozenset({"profile", "assume_role.role_arn"}),
    keys=frozenset({"access_key", "secret_key", "token"}),
    spare=frozenset({"max_retries", "retry_mode", "s3_us_east_1_regional_endpoint", "sts_region", "user_agent"}),
    account_word="account",
    name_it="add the account to `scan: {aws: {accounts: ...}}` in tfguard.yaml, if it is yours",
    tell_it="let the provider tell it: allow sts:GetCallerIdentity, without skip_requesting_account_id",
    tag_it="allow tag:TagResources and the service's own action",
)

GOOGLE = Cloud(
    name="google",
    title="Google Cloud",
    sources=("google", "google-beta"),
    own_place="project",
    place_is_account=True,
    guard="project",
    second_guard="",
    wide=("organization", "folder", "projects"),
    made_up=frozenset({"organization", "folder", "projects", "only_project"}),
    kept=frozenset(
        [
            "project",
            "region",
            "zone",
            "billing_project",
            "user_project_override",
            "universe_domain",
            "add_terraform_attribution_label",
            "terraform_attribution_label_addition_strategy",
        ]
    ),
    kept_alike=("", "_custom_endpoint"),
    kept_with_at=frozenset({"impersonate_service_account", "impersonate_service_account_delegates"}),
    harmless=(
        "default_labels",
        "batching",
        "request_timeout",
        "request_reason",
        "poll_interval",
        "scopes",
        "add_terraform_attribution_label",
        "terraform_attribution_label_addition_strategy",
    ),
    identities=frozenset({"credentials", "impersonate_service_account"}),
    keys=frozenset({"credentials", "access_token"}),
    spare=frozenset(
        [
            "add_terraform_attribution_label",
            "batching",
            "poll_interval",
            "request_reason",
            "request_timeout",
            "scopes",
            "terraform_attribution_label_addition_strategy",
        ]
    ),
    account_word="project",
    name_it="add the project to `scan: {google: {projects: ...}}` in tfguard.yaml, if it is yours",
    tell_it="let Resource Manager tell it: allow resourcemanager.projects.get on it",
    provisioned_label="goog-terraform-provisioned",
    accounts_type="google_project",
)

OTHERS = replace(AWS, name="", title="another cloud", kept=AWS.kept | {"project", "location"})
"""What counts for the providers of clouds that are not known: as little as can be kept of their settings."""

CLOUDS = (AWS, GOOGLE)
"""Every cloud that is known. Whatever belongs to none of them is listed nowhere."""

_LOCATIONS = ("zone", "location", "region")

_BY_NAME = {cloud.name: cloud for cloud in CLOUDS}
_BY_SOURCE = {source: cloud for cloud in CLOUDS for source in cloud.sources}


def cloud_named(name: str) -> Cloud | None:
    """The cloud of an object or a scope."""
    return _BY_NAME.get(name)


def cloud_of_type(resource_type: str) -> Cloud | None:
    """The cloud whose objects are of this type."""
    return _BY_NAME.get(resource_type.partition("_")[0])


def cloud_of_source(source: str) -> Cloud | None:
    """The cloud that a provider works in, by the provider's source."""
    return _BY_SOURCE.get(source.rpartition("/")[2])


def is_nameless(found: CloudObject) -> bool:
    """Whether an object is in an account of which only a number is known, where everything else names it by an id."""
    cloud = cloud_named(found.cloud)
    return cloud is not None and cloud.place_is_account and (found.account or "").isdecimal()


def own_place_of(found: CloudObject) -> str | None:
    """What to ask for besides the provider configuration, to see an object: its region, or its project; None for what
    exists once in an account whose place is a region, and where the project is not known."""
    cloud = cloud_named(found.cloud)
    if cloud is not None and cloud.place_is_account:
        return found.account
    return None if found.region == "global" else found.region


def location_of(found: CloudObject) -> str:
    """Where an object is, for a person: its region; of a cloud whose lists have no regions the zone, location or region
    that the object itself tells."""
    cloud = cloud_named(found.cloud)
    if cloud is None or not cloud.place_is_account:
        return found.region
    return next((told for name in _LOCATIONS if (told := found.identity.get(name))), found.region)


def provisioned_label_of(found: CloudObject) -> str | None:
    """The tag by which an object says that some Terraform made it; None where it says nothing of the kind."""
    cloud = cloud_named(found.cloud)
    if cloud is None or found.tags.get(cloud.provisioned_label) != "true":
        return None
    return cloud.provisioned_label
