"""What is deleted has to lie below the organization or the folders that tfguard.yaml names."""

from __future__ import annotations

import pytest

from fixtures.google_sim import GoogleSim
from tfguard.catalog.loader import load_catalog
from tfguard.flows.configured_accounts import ConfiguredAccounts
from tfguard.flows.looking import Surroundings
from tfguard.inventory.google import GoogleInventory
from tfguard.model.config import Config, GoogleScan, ScanConfig
from tfguard.model.inventory import CloudObject

CATALOG = load_catalog()


def topic(name: str, project: str = "app-prod") -> CloudObject:
    unique = f"projects/{project}/topics/{name}"
    return CloudObject("google", project, "global", "google_pubsub_topic", unique, unique, {"id": unique}, name=name)


def _accounts(sim: GoogleSim, inventory: GoogleInventory, scanned: GoogleScan) -> ConfiguredAccounts:
    settings = {"access_token": "shown", **sim.endpoints}
    config = Config(providers={"google": settings}, scan=ScanConfig(google=scanned))
    return ConfiguredAccounts(Surroundings(inventory, CATALOG, config, None, None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scanned", "inside", "outside"),
    [
        (GoogleScan(organization="123"), ["app-prod", "app-dev"], ["foreign"]),
        (GoogleScan(folders=("1",)), ["app-dev"], ["app-prod", "foreign"]),
        (GoogleScan(projects=("app-*",)), ["app-prod", "foreign"], []),
    ],
    ids=["organization", "folder", "projects"],
)
def test_a_project_outside_of_what_is_configured_is_refused(
    google: GoogleSim, google_inventory: GoogleInventory, scanned: GoogleScan, inside: list[str], outside: list[str]
) -> None:
    top = google.add_organization(123)
    google.add_project("app-prod", top, number=1001)
    google.add_project("app-dev", google.add_folder("in", top, number=1), number=1002)
    google.add_project("foreign", google.add_organization(456), number=1003)
    accounts = _accounts(google, google_inventory, scanned)
    assert [name for name in inside if accounts.refusal(topic("jobs", name))] == []
    refused = [accounts.refusal(topic("jobs", name)) for name in outside]
    assert all(one is not None and "nothing tells that it lies in" in one.what for one in refused)


def test_an_organization_that_cannot_be_asked_for_refuses_all(
    google: GoogleSim, google_inventory: GoogleInventory
) -> None:
    top = google.add_organization(123)
    google.add_project("app-prod", top, number=1001)
    for path in ("/v3/projects:search", "/v3/projects", "/v3/folders", "/v3/folders:search"):
        google.deny(path, 403)
    google.deny("/v1/organizations/123:searchAllResources", 403)
    refused = _accounts(google, google_inventory, GoogleScan(organization="123")).refusal(topic("jobs"))
    assert refused is not None
    assert "DENIED" in refused.what or "403" in refused.what
