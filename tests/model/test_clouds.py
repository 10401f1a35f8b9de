"""What tells one cloud from another: places in unique names, and what the settings of a provider mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfguard.flows.providers import recorded_providers
from tfguard.model.arn import account_in, names_elsewhere, place_in
from tfguard.model.cloud import (
    AWS,
    CLOUDS,
    GOOGLE,
    Cloud,
    cloud_of_source,
    cloud_of_type,
    is_nameless,
    location_of,
    own_place_of,
)
from tfguard.model.config import AwsScan, GoogleScan, ScanConfig
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Step
from tfguard.model.plan import Action, Plan, ProviderConfig

TOPIC = CloudObject("google", "app-prod", "global", "google_pubsub_topic", "jobs", "projects/app-prod/topics/jobs")
QUEUE = CloudObject("aws", "123456789012", "eu-west-1", "aws_sqs_queue", "jobs", "jobs")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("arn:aws:sqs:eu-west-1:123456789012:jobs", ("123456789012", "eu-west-1")),
        ("arn:aws:iam::aws:policy/ReadOnly", ("aws", "")),
        ("projects/app-prod/topics/jobs", ("app-prod", "")),
        ("projects/example.com:app/topics/jobs", ("example.com:app", "")),
        ("projects/app-prod", ("app-prod", "")),
        ("organizations/123/roles/reader", ("organizations/123", "")),
        ("folders/45", ("", "")),  # its account is the organization above it
        ("//pubsub.googleapis.com/projects/app-prod/topics/jobs", ("app-prod", "")),
        ("https://www.googleapis.com/compute/v1/projects/app-prod/global/networks/n", ("app-prod", "")),
        ("projects/123456789/secrets/s", ("", "")),  # a number, which nothing else names
        ("my-projects/app/x", ("", "")),
        ("projects", ("", "")),
        ("a-bucket", ("", "")),
    ],
)
def test_a_unique_name_tells_where_its_object_is(name: str, place: tuple[str, str]) -> None:
    assert place_in(name) == place


def test_what_a_cloud_itself_has_is_in_no_customers_account() -> None:
    assert account_in("arn:aws:iam::aws:policy/ReadOnly") == ""
    assert account_in("arn:aws:iam::123456789012:role/app") == "123456789012"
    assert account_in("projects/app-prod/topics/jobs") == "app-prod"


def test_a_project_of_its_own_is_elsewhere_and_a_number_is_nowhere() -> None:
    assert names_elsewhere("projects/app-prod/topics/jobs", "app-test", "global")
    assert not names_elsewhere("projects/app-prod/topics/jobs", "app-prod", "global")
    assert not names_elsewhere("projects/123456789/topics/jobs", "app-test", "global")


def test_a_list_is_asked_for_in_the_region_or_the_project_of_an_object() -> None:
    assert own_place_of(QUEUE) == "eu-west-1"
    assert own_place_of(replace(QUEUE, region="global")) is None
    assert own_place_of(TOPIC) == "app-prod"
    assert own_place_of(replace(TOPIC, account=None)) is None
    assert is_nameless(replace(TOPIC, account="123456789")) and not is_nameless(TOPIC) and not is_nameless(QUEUE)


def test_a_provider_is_told_by_the_end_of_its_source_and_a_type_by_its_beginning() -> None:
    assert cloud_of_source("registry.terraform.io/hashicorp/google-beta") is GOOGLE
    assert cloud_of_source("mirror.example.com/own/aws") is AWS
    assert cloud_of_source("registry.terraform.io/hashicorp/googleworkspace") is None
    assert cloud_of_type("google_pubsub_topic") is GOOGLE and cloud_of_type("azurerm_subnet") is None
    assert len({cloud.name for cloud in CLOUDS}) == len(CLOUDS)


def test_a_record_keeps_where_a_google_provider_looks_and_no_secret() -> None:
    settings = {
        "project": "app-prod",
        "compute_custom_endpoint": "https://compute.example.com/v1/",
        "impersonate_service_account": "deploy@app-prod.iam.gserviceaccount.com",
        "impersonate_service_account_delegates.0": "ci@app-prod.iam.gserviceaccount.com",
    }
    left = {
        "credentials": "{}",
        "access_token": "ya29",
        "storage_custom_endpoint": "https://user:hunter2@storage.example.com/",
        "default_labels.team": "web",
    }
    assert [name for name, value in settings.items() if not GOOGLE.keeps(name, value)] == []
    assert [name for name, value in left.items() if GOOGLE.keeps(name, value)] == []
    assert [name for name in left if not GOOGLE.says_who(name)] == ["default_labels.team"]


def test_a_configuration_leads_to_one_account_or_to_several() -> None:
    assert GOOGLE.account_of({"project": "app"}) == "app"
    assert GOOGLE.account_of({"project": "app", "organization": "1"}) is None
    assert GOOGLE.reaches_several({"projects.0": "app-*"}) and not GOOGLE.reaches_several({"project": "app"})
    assert AWS.account_of({"allowed_account_ids.0": "1"}) == "1"
    assert AWS.account_of({"allowed_account_ids.0": "1", "allowed_account_ids.1": "2"}) is None
    assert AWS.guarded_account({"allowed_account_ids.0": "1", "allowed_account_ids.1": "2"}) == "1"


def test_a_person_is_told_the_zone_or_location_that_an_object_tells() -> None:
    assert location_of(QUEUE) == location_of(replace(QUEUE, identity={"region": "x"})) == "eu-west-1"
    assert location_of(TOPIC) == "global"
    told = replace(TOPIC, identity={"region": "europe-west4", "zone": "europe-west4-a"})
    assert location_of(told) == "europe-west4-a"


def test_a_region_that_an_earlier_version_kept_of_a_google_resource_is_no_project() -> None:
    step = Step("x.a", "google_compute_subnetwork", "google", Action.CREATE, region="europe-west1")
    assert step.own_place is None
    assert replace(step, own_account="app-net").own_place == "app-net"
    assert replace(step, type="aws_vpc").own_place == "europe-west1"


def test_a_provider_of_no_known_cloud_keeps_where_it_looks_and_nothing_that_says_who() -> None:
    settings = {"region": "eu-west-1", "project": "p", "assume_role.role_arn": "r@x", "max_retries": "3"}
    plan = Plan("1.11.4", (), {"awscc": ProviderConfig("awscc", "registry.terraform.io/hashicorp/awscc", settings)})
    (kept,) = recorded_providers(plan)
    assert kept.settings == {"region": "eu-west-1", "project": "p"}
    assert kept.partial
    plan = replace(plan, providers={"x": replace(plan.providers["awscc"], settings={"max_retries": "3"})})
    assert not recorded_providers(plan)[0].partial


@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda cloud: cloud.name)
def test_what_a_delete_may_do_without_never_says_where_a_provider_works(cloud: Cloud) -> None:
    assert not cloud.spare & {cloud.guard, cloud.own_place, "region", *cloud.keys, *cloud.identities}
    assert "max_retries" in AWS.spare
    assert "request_timeout" in GOOGLE.spare - AWS.spare


def test_what_lies_above_the_accounts_of_a_scan_is_told_as_the_settings_of_a_provider() -> None:
    assert ScanConfig(google=GoogleScan(organization="1")).above("google") == (("organization", "1"),)
    assert ScanConfig(google=GoogleScan(folders=("1", "2"))).above("google") == (("folder", "1"), ("folder", "2"))
    assert ScanConfig(google=GoogleScan(projects=("a",))).above("google") == ()
    assert ScanConfig(aws=AwsScan()).above("google") == () == ScanConfig(aws=AwsScan()).above("aws")
