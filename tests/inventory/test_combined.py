"""Several inventories as one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfguard.inventory.combined import CombinedInventory
from tfguard.model.inventory import CloudObject, Detail, Listing, Scope
from tfguard.model.plan import ProviderConfig

PROVIDER = ProviderConfig("google", "registry.terraform.io/hashicorp/google", {"region": "europe-west1"})


@dataclass(frozen=True)
class OneCloud:
    """An inventory that lists nothing, completely, and leaves its name."""

    cloud: str

    def covers(self, resource_type: str) -> bool:
        return resource_type.startswith(f"{self.cloud}_")

    def list(self, resource_type: str, provider: ProviderConfig, region: str | None = None) -> Listing:
        return Listing(resource_type, Scope(self.cloud, "1", region or "r", provider.key))

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:
        return Detail(replace(found, name=f"{self.cloud} {provider.key}"))


BOTH = CombinedInventory([OneCloud("aws"), OneCloud("google")])


def test_question_goes_to_the_cloud_of_the_type() -> None:
    assert BOTH.covers("google_project")
    assert BOTH.list("google_project", PROVIDER).scope.cloud == "google"
    found = CloudObject("google", "1", "r", "google_project", "a", "a")
    assert BOTH.detail(found, PROVIDER).found.name == "google google"


def test_type_that_nobody_covers_is_a_gap() -> None:
    assert not BOTH.covers("azurerm_thing")
    listing = BOTH.list("azurerm_thing", PROVIDER)
    assert listing.gap is not None
    assert listing.gap.scope == "azurerm unknown-account europe-west1 azurerm_thing"
    unlisted = CombinedInventory([]).list("google_project_iam_member", PROVIDER, "app-prod").scope
    assert (unlisted.account, unlisted.region) == ("app-prod", "global")
    found = CloudObject("azurerm", "1", "r", "azurerm_thing", "a", "a")
    assert BOTH.detail(found, PROVIDER) == Detail(found)
