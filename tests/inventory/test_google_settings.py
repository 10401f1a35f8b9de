"""What the settings of a Google provider block and its environment variables mean."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tfguard.inventory import google_settings as settings_of
from tfguard.inventory.google_settings import Level, Reach
from tfguard.model.plan import ProviderConfig

NETWORK = "https://compute.googleapis.com/compute/v1/projects/p/global/networks/n"
TOPIC = "https://pubsub.googleapis.com/v1/projects/p/topics/t"


def _block(*unresolved: str, key: str = "google", **settings: str) -> ProviderConfig:
    return ProviderConfig(key, "registry.terraform.io/hashicorp/google", settings, frozenset(unresolved))


@pytest.mark.parametrize(
    ("settings", "environ", "place", "wanted"),
    [
        ({"project": "own"}, {"GOOGLE_PROJECT": "other"}, None, Reach(Level.PROJECT, "own")),
        ({}, {"CLOUDSDK_CORE_PROJECT": "last", "GCLOUD_PROJECT": "third"}, None, Reach(Level.PROJECT, "third")),
        ({"project": "own"}, {}, "named", Reach(Level.PROJECT, "named", alone=True)),
        ({"project": "own"}, {}, "organizations/12", Reach(Level.ORGANIZATION, "12", alone=True)),
        ({"project": "own", "only_project": "true"}, {}, None, Reach(Level.PROJECT, "own", alone=True)),
        ({"project": "own", "organization": "12"}, {}, None, Reach(Level.ORGANIZATION, "12")),
        ({"folder": "folders/34"}, {"GOOGLE_PROJECT": "other"}, None, Reach(Level.FOLDER, "34")),
        ({"projects.0": "app-*"}, {}, None, Reach(Level.PROJECT, "", alone=True)),
        ({}, {}, None, None),
    ],
)
def test_the_reach_is_the_settings_word_before_the_environments(
    settings: Mapping[str, str], environ: Mapping[str, str], place: str | None, wanted: Reach | None
) -> None:
    assert settings_of.reach_of(settings, environ, place) == wanted


def test_a_scan_is_told_by_its_own_settings_unless_an_objects_own_place_is_asked() -> None:
    scans = ({"organization": "12"}, {"folder": "34"}, {"project": "own", "projects.0": "a"}, {"only_project": "true"})
    assert [settings_of.is_of_scan(one) for one in scans] == [True] * 4
    assert not any(settings_of.is_of_scan(one, "named") for one in scans)
    assert not settings_of.is_of_scan({"project": "own"})


def test_what_the_plan_lacks_of_whom_to_ask_is_told_with_the_line_to_add() -> None:
    told = settings_of.whom_is_unknown(_block("access_token", "zone", key="google.eu"), settings_of.LISTING)
    assert told is not None
    assert told.startswith("access_token of google.eu is not in the plan")
    assert told.endswith("add to tfguard.yaml: providers: {google.eu: {credentials: PATH}}")
    assert settings_of.whom_is_unknown(_block("credentials", credentials="key.json"), settings_of.LISTING) is None
    assert settings_of.whom_is_unknown(_block("zone", "default_labels.team"), settings_of.LISTING) is None


def test_an_endpoint_that_the_plan_lacks_counts_where_it_is_asked() -> None:
    block = _block("compute_custom_endpoint")
    assert settings_of.whom_is_unknown(block, ("cloud_asset", "pubsub")) is None
    assert "compute_custom_endpoint" in str(settings_of.whom_is_unknown(block, ("cloud_asset", "compute")))


def test_a_project_that_nothing_names_is_told_with_the_line_to_add() -> None:
    assert settings_of.project_is_unknown(_block(), {"GCLOUD_PROJECT": "p"}) is None
    assert str(settings_of.project_is_unknown(_block(), {})).endswith("providers: {google: {project: ...}}")
    unresolved = settings_of.project_is_unknown(_block("project"), {"GCLOUD_PROJECT": "p"})
    assert str(unresolved).startswith("project of google is not in the plan")  # the plan's own value is another


@pytest.mark.parametrize(
    ("url", "custom", "wanted"),
    [
        (NETWORK, "http://h:1/compute/v1/", "http://h:1/compute/v1/projects/p/global/networks/n"),
        (NETWORK, "https://h/compute/beta/", "https://h/compute/v1/projects/p/global/networks/n"),
        (TOPIC, "http://h:1/pubsub/v1", "http://h:1/pubsub/v1/projects/p/topics/t"),
        (TOPIC, "http://h:1/pubsub/", "http://h:1/pubsub/v1/projects/p/topics/t"),
        (TOPIC, "", TOPIC),
    ],
)
def test_a_custom_endpoint_stands_for_what_is_before_the_version(url: str, custom: str, wanted: str) -> None:
    environ = {"GOOGLE_THING_CUSTOM_ENDPOINT": custom}
    assert settings_of.address(url, {}, environ, ("thing",)) == wanted
    assert settings_of.address(url, {"thing_custom_endpoint": "http://own/v1/"}, environ, ("thing",)).startswith(
        "http://own/v1/projects/"
    )


def test_another_universe_has_its_own_domain() -> None:
    found = settings_of.address(TOPIC, {"universe_domain": "cloud.example"}, {}, ("pubsub",))
    assert found == "https://pubsub.cloud.example/v1/projects/p/topics/t"


def test_who_pays_is_the_project_itself_only_where_the_settings_say_so() -> None:
    def payer(settings: Mapping[str, str]) -> str | None:
        return settings_of.credentials_wanted(settings, {}, "own").quota_project

    assert payer({}) is None
    assert payer({"billing_project": "bills"}) is None
    assert payer({"user_project_override": "true"}) == "own"
    assert payer({"user_project_override": "true", "billing_project": "bills"}) == "bills"


def test_the_key_and_the_token_are_in_no_repr() -> None:
    wanted = settings_of.credentials_wanted({"access_token": "s3cret", "credentials": "s3cret"}, {})
    assert "s3cret" not in repr(wanted)
