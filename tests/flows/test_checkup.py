"""What `tfguard doctor` says of lists: one line for one reason, and whom it asks where a stack cannot be planned."""

from __future__ import annotations

from tfguard.flows.checkup import as_scanned, list_checks
from tfguard.model.config import Config, GoogleScan, ScanConfig
from tfguard.model.inventory import Gap, Listing, Scope
from tfguard.model.plan import ProviderConfig

HERE = Scope("google", "app-prod", "global")
GOOGLE = ProviderConfig("google", "registry.terraform.io/hashicorp/google", {"access_token": "shown"})


def test_what_one_reason_is_in_the_way_of_is_one_line() -> None:
    refused = [Listing(f"google_t{number}", HERE, gap=Gap("x", "no project is known")) for number in range(9)]
    other = Listing("google_t9", HERE, gap=Gap("x", "PERMISSION_DENIED"))
    told = [(one.ok, one.detail) for one in list_checks([*refused, Listing("google_u", HERE), other])]
    assert told == [
        (True, "google_u in google app-prod global: 0 objects"),
        (
            False,
            "google_t0, google_t1, google_t2, google_t3, google_t4, google_t5 and 3 more in google app-prod global: "
            "no project is known",
        ),
        (False, "google_t9 in google app-prod global: PERMISSION_DENIED"),
    ]


def test_a_provider_that_names_no_account_is_asked_for_what_a_scan_looks_at() -> None:
    config = Config(scan=ScanConfig(google=GoogleScan(organization="123")))
    assert as_scanned(GOOGLE, config).settings == {"access_token": "shown", "organization": "123"}
    assert as_scanned(GOOGLE, Config()) == GOOGLE
    named = ProviderConfig("google", GOOGLE.source, {"project": "app-prod"})
    assert as_scanned(named, config) == named
    aws = ProviderConfig("aws", "registry.terraform.io/hashicorp/aws")
    assert as_scanned(aws, config) == aws
