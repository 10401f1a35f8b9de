"""What the inventory of Google Cloud lists, and where it says that it could not, against a fake over HTTP."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fixtures.google_sim import GoogleSim
from tfguard.catalog.loader import load_catalog
from tfguard.inventory.google import GoogleInventory
from tfguard.model.inventory import Listing
from tfguard.model.plan import ProviderConfig

NETWORK, INSTANCE, TOPIC = "google_compute_network", "google_compute_instance", "google_pubsub_topic"
BUCKET, SECRET = "google_storage_bucket", "google_secret_manager_secret"
PROJECT, FOLDER = "google_project", "google_folder"
LIEN, TAG_KEY, TAG_VALUE = "google_resource_manager_lien", "google_tags_tag_key", "google_tags_tag_value"
TYPES = (NETWORK, INSTANCE, TOPIC, BUCKET, SECRET)
SEARCH = "/v1/projects/app-prod:searchAllResources"
EVERYWHERE = "/v1/organizations/123:searchAllResources"

Block = Callable[..., ProviderConfig]


@pytest.fixture
def organization(google: GoogleSim) -> GoogleSim:
    """An organization with a folder in a folder, and four projects."""
    top = google.add_organization(123)
    outer = google.add_folder("outer", top, number=1)
    inner = google.add_folder("inner", outer, number=2)
    google.add_project("app-prod", inner, number=1001)
    google.add_project("app-dev", outer, number=1002)
    google.add_project("shared", top, number=1003)
    google.add_project("ended", top, number=1004, state="DELETE_REQUESTED")
    return google


def _by_account(listings: Iterable[Listing]) -> dict[tuple[str, str | None], list[str]]:
    """The import ids by type and account, of listings each of which comes once."""
    found: dict[tuple[str, str | None], list[str]] = {}
    for listing in listings:
        key = (listing.type, listing.scope.account)
        assert key not in found, f"{key} is told twice"
        found[key] = sorted(one.import_id for one in listing.objects)
        assert all(one.account == listing.scope.account for one in listing.objects)
    return found


def _gaps(listings: Iterable[Listing]) -> dict[tuple[str, str | None], str]:
    return {(one.type, one.scope.account): one.gap.reason for one in listings if one.gap}


def test_one_search_lists_all_types_of_a_project(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    made = datetime(2026, 3, 4, tzinfo=UTC)
    organization.add(NETWORK, "net", "app-prod")
    organization.add(INSTANCE, "vm", "app-prod", location="europe-west4-a", labels={"team": "a"}, created=made)
    organization.add(BUCKET, "bucket-of-prod", "app-prod")
    organization.add(BUCKET, "bucket-of-dev", "app-dev")
    listings = list(google_inventory.list_many(TYPES, google_block()))
    assert not _gaps(listings)
    assert _by_account(listings) == {
        (NETWORK, "app-prod"): ["projects/app-prod/global/networks/net"],
        (INSTANCE, "app-prod"): ["projects/app-prod/zones/europe-west4-a/instances/vm"],
        (TOPIC, "app-prod"): [],
        (BUCKET, "app-prod"): ["app-prod/bucket-of-prod"],
        (SECRET, "app-prod"): [],
    }
    (machine,) = next(one for one in listings if one.type == INSTANCE).objects
    assert (machine.region, machine.created_at, machine.tags) == ("global", made, {"team": "a"})
    assert machine.identity["zone"] == "europe-west4-a"
    assert sum(call.path == SEARCH for call in organization.calls) == 1


def test_names_that_carry_the_projects_number_are_told_with_its_id(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.number_only = True
    for kind in (NETWORK, TOPIC, SECRET):
        organization.add(kind, "one", "app-prod")
    for block in (google_block(), google_block(project="1001"), google_block(project="", organization="123")):
        found = [one for each in google_inventory.list_many(TYPES, block) for one in each.objects]
        assert sorted(one.id for one in found) == [
            "projects/app-prod/global/networks/one", "projects/app-prod/secrets/one", "projects/app-prod/topics/one",
        ]  # fmt: skip
        assert {one.account for one in found} == {"app-prod"}
        assert all(one.identity["project"] == "app-prod" for one in found)


def test_an_organization_is_listed_by_project_and_those_without_objects_too(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.page_cap = 2
    for number in range(3):
        organization.add(TOPIC, f"t{number}", "app-prod")
        organization.add(TOPIC, f"t{number}", "shared")
    listings = list(google_inventory.list_many([TOPIC, PROJECT, FOLDER], google_block(project="", organization="123")))
    assert not _gaps(listings)
    three = ["t0", "t1", "t2"]
    assert _by_account(listings) == {
        (TOPIC, "app-prod"): [f"projects/app-prod/topics/{name}" for name in three],
        (TOPIC, "shared"): [f"projects/shared/topics/{name}" for name in three],
        (TOPIC, "app-dev"): [],
        (TOPIC, "ended"): [],
        **{(PROJECT, name): [name] for name in ("app-prod", "app-dev", "shared")},
        (PROJECT, "ended"): [],
        (FOLDER, "organizations/123"): ["folders/1", "folders/2"],
    }
    ended = next(one for one in listings if one.scope.account == "ended" and one.type == PROJECT)
    assert [one.id for one in ended.soft_deleted] == ["projects/ended"]


@pytest.mark.usefixtures("organization")
def test_a_folder_reaches_itself_and_all_below_it(google_inventory: GoogleInventory, google_block: Block) -> None:
    listings = list(google_inventory.list_many([TOPIC, FOLDER], google_block(project="", folder="1")))
    assert _by_account(listings) == {
        (TOPIC, "app-prod"): [],
        (TOPIC, "app-dev"): [],
        (FOLDER, "organizations/123"): ["folders/1", "folders/2"],
    }
    assert not next(one for one in listings if one.type == FOLDER).exhaustive  # the organization has others


def test_listings_are_told_while_the_search_goes_on(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    names = [f"made-up-{number}" for number in range(60)]
    for name in names:
        organization.add_project(name, "organizations/123")
    organization.make_up(TOPIC, names, 500)
    listings = google_inventory.list_many([TOPIC], google_block(project="", organization="123"))
    first = next(listings)
    time.sleep(0.5)  # for what would be asked ahead, if it were
    assert len(first.objects) == 500
    assert sum(call.path == EVERYWHERE for call in organization.calls) < 20
    assert sum(len(one.objects) for one in listings) == 59 * 500
    assert sum(call.path == EVERYWHERE for call in organization.calls) == 61  # the first tells the projects


def test_a_refused_organization_is_listed_project_by_project(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.deny("organizations/123")
    organization.deny("projects/app-dev")
    organization.add(TOPIC, "t", "app-prod")
    listings = list(google_inventory.list_many([TOPIC, NETWORK, FOLDER], google_block(project="", organization="123")))
    found = _by_account(listings)
    assert found[TOPIC, "app-prod"] == ["projects/app-prod/topics/t"]
    assert found[FOLDER, "organizations/123"] == ["folders/1", "folders/2"]
    assert _gaps(listings) == {
        (kind, "app-dev"): "PERMISSION_DENIED on SearchAllResources" for kind in (TOPIC, NETWORK)
    }
    assert sum(call.path == EVERYWHERE for call in organization.calls) == 1


def test_a_project_that_resource_manager_does_not_tell_has_its_number_and_a_gap(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.add(TOPIC, "t", "app-dev")
    organization.hide("projects/app-dev")
    listings = list(google_inventory.list_many([TOPIC], google_block(project="", organization="123")))
    reason = "the project's id is not told: PERMISSION_DENIED on GetProject"
    assert _gaps(listings) == {(TOPIC, "1002"): reason}
    assert sum(len(one.objects) for one in listings) == 1


def test_what_lies_in_a_project_that_waits_for_its_end_is_nobodys_loss(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.add(TOPIC, "t", "ended")
    organization.add_project("sys-12345678901234567890123456", "organizations/123")
    organization.add(TOPIC, "t", "sys-12345678901234567890123456")
    found = [
        one
        for each in google_inventory.list_many([TOPIC], google_block(project="", organization="123"))
        for one in each.objects
    ]
    reasons = {one.account: one.ignored_because for one in found}
    assert reasons["ended"] == "it lies in a project that waits for its deletion"
    assert str(reasons["sys-12345678901234567890123456"]).startswith("it lies in a project that is left out: ")


@pytest.mark.parametrize("settings", [{"organization": "123"}, {"projects__0": "*"}])
def test_what_may_not_be_asked_of_a_project_that_waits_for_its_end_is_no_gap(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block, settings: dict[str, str]
) -> None:
    kinds = (TOPIC, LIEN, "google_service_account_key", "google_sql_database")
    organization.add("google_service_account", "robot", "ended")
    organization.add("google_sql_database_instance", "db", "ended")
    organization.deny("projects/ended")
    organization.deny("/iam/v1/projects/ended/*")
    block = google_block(project="", **settings)
    listings = list(google_inventory.list_many(kinds, block))
    assert not _gaps(listings)
    ended = {one.type: one.complete for one in listings if one.scope.account == "ended"}
    assert ended.keys() == set(kinds)
    assert not any(ended[kind] for kind in kinds if kind != TOPIC)  # the search of an organization tells all of it
    assert all(one.complete for one in listings if one.scope.account == "shared")
    organization.deny("projects/shared")
    assert (LIEN, "shared") in _gaps(google_inventory.list_many(kinds, block))


def test_a_search_that_breaks_off_is_a_gap_of_what_was_not_told_whole(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.page_cap = 2
    for kind in (INSTANCE, NETWORK, TOPIC):  # in the order of their asset types
        organization.add(kind, "one", "app-prod")
        organization.add(kind, "two", "app-prod")
    block = google_block()
    listings = []
    for listing in google_inventory.list_many([INSTANCE, NETWORK, TOPIC], block):
        listings.append(listing)
        organization.fail_next(SEARCH, 400, times=100)
    assert [one.type for one in listings if one.complete] == [INSTANCE]
    assert set(_gaps(listings)) == {(NETWORK, "app-prod"), (TOPIC, "app-prod")}


def test_one_type_that_the_search_does_not_know_takes_no_other_along(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.add(TOPIC, "t", "app-prod")
    organization.fail_next(SEARCH, 400, times=2)  # both types together, and then the first of them by itself
    listings = list(google_inventory.list_many([NETWORK, TOPIC], google_block()))
    assert _gaps(listings) == {(NETWORK, "app-prod"): "INVALID_ARGUMENT on SearchAllResources"}
    assert _by_account(listings)[TOPIC, "app-prod"] == ["projects/app-prod/topics/t"]


def test_a_type_that_the_search_turned_out_not_to_know_is_not_asked_for_again(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.fail_next(SEARCH, 400, times=2)
    assert len(_gaps(google_inventory.list_many([NETWORK, TOPIC], google_block()))) == 1
    organization.calls.clear()
    assert set(_gaps(google_inventory.list_many([NETWORK, TOPIC], google_block()))) == {(NETWORK, "app-prod")}
    assert sum(call.path == SEARCH for call in organization.calls) == 1


@pytest.mark.usefixtures("organization")
def test_patterns_narrow_an_organization_to_some_projects(
    google_inventory: GoogleInventory, google_block: Block
) -> None:
    narrowed = google_block(project="", organization="123", projects__0="app-*")
    assert {one.scope.account for one in google_inventory.list_many([TOPIC], narrowed)} == {"app-prod", "app-dev"}
    everywhere = google_block(project="", projects__0="sh*", projects__1="elsewhere")
    listings = list(google_inventory.list_many([TOPIC], everywhere))
    assert {one.scope.account for one in listings if one.complete} == {"shared"}
    vain = "PERMISSION_DENIED on SearchAllResources, and PERMISSION_DENIED on GetProject"
    assert _gaps(listings) == {(TOPIC, "elsewhere"): vain}
    (nothing,) = google_inventory.list_many([TOPIC], google_block(project="", projects__0="nix-*"))
    assert nothing.gap is not None
    assert "no project is visible whose id is like nix-*" in nothing.gap.reason


def test_a_project_that_nobody_may_see_is_a_gap_where_a_pattern_may_mean_it(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.hide("projects/app-prod")
    narrowed = google_block(project="", organization="123", projects__0="app-*")
    listings = list(google_inventory.list_many([TOPIC], narrowed))
    assert {one.scope.account for one in listings if one.complete} == {"app-dev"}
    reason = "the ids of 1 projects are not told, which may be meant: PERMISSION_DENIED on GetProject"
    assert _gaps(listings) == {(TOPIC, None): reason}
    others = google_block(project="", organization="123", projects__0="sha*")
    (shared,) = google_inventory.list_many([TOPIC], others)  # the search tells that the hidden one's id is no such one
    assert (shared.scope.account, shared.complete) == ("shared", True)
    organization.number_only = True
    assert set(_gaps(google_inventory.list_many([TOPIC], others))) == {(TOPIC, None)}


def test_a_project_below_a_folder_that_nobody_may_see_is_listed_all_the_same(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.hide("folders/2")
    organization.add(LIEN, "p1", "app-prod")
    wide = google_block(project="", organization="123")
    for block in (wide, google_block(project="", organization="123", projects__0="app-*")):
        listings = list(google_inventory.list_many([TOPIC, LIEN], block))
        found = _by_account(listings)
        assert (TOPIC, "app-prod") in found
        assert len(found[LIEN, "app-prod"]) == 1
        assert not _gaps(listings)


def test_what_a_service_lists_of_a_project_that_nobody_may_see_is_asked_for_or_a_gap(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.add(LIEN, "p1", "app-prod")
    organization.hide("projects/app-prod")
    gaps = _gaps(google_inventory.list_many([LIEN], google_block(project="", organization="123")))
    assert set(gaps) == {(LIEN, "1001")}


def test_a_run_sees_projects_that_it_made_beside_its_own(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    (before,) = google_inventory.list_many([PROJECT], google_block())
    organization.add_project("made-now", "folders/1")
    (after,) = google_inventory.list_many([PROJECT], google_block())
    assert {one.id for one in after.objects} - {one.id for one in before.objects} == {"projects/made-now"}
    assert {one.account for one in after.objects if one.id == "projects/made-now"} == {"made-now"}
    (alone,) = google_inventory.list_many([PROJECT], google_block(only_project="true"))
    assert [one.id for one in alone.objects] == ["projects/app-prod"]


def test_lists_of_services_are_asked_for_below_each_parent(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.add("google_sql_database_instance", "db", "app-prod")
    organization.add("google_sql_database", "orders", "app-prod", instance="db")
    organization.add("google_dns_managed_zone", "zone", "app-prod")
    organization.add("google_dns_record_set", "A", "app-prod", zone="zone", record="www.example.com.")
    organization.add("google_service_account", "robot", "app-prod")
    organization.add("google_service_account_key", "abc", "app-prod", account="robot")
    kinds = ("google_sql_database", "google_dns_record_set", "google_service_account_key")
    listings = list(google_inventory.list_many(kinds, google_block()))
    found = _by_account(listings)
    assert not _gaps(listings)
    assert set(found) == {(kind, "app-prod") for kind in kinds}  # and not the parents, which nobody asked for
    assert found["google_sql_database", "app-prod"] == ["projects/app-prod/instances/db/databases/orders"]
    zone = "projects/app-prod/managedZones/zone/rrsets"
    assert found["google_dns_record_set", "app-prod"] == [f"{zone}/www.example.com./A"]
    account = "projects/app-prod/serviceAccounts/robot@app-prod.iam.gserviceaccount.com"
    assert found["google_service_account_key", "app-prod"] == [f"{account}/keys/abc"]
    organization.deny("/sql/*")
    gaps = _gaps(google_inventory.list_many(kinds, google_block()))
    assert set(gaps) == {("google_sql_database", "app-prod")}
    assert gaps["google_sql_database", "app-prod"].startswith("PERMISSION_DENIED on ListDatabases (1 of 1 ")


def test_liens_and_tags_are_told_of_projects_and_of_the_organization(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.add(LIEN, "p1", "app-prod")
    organization.add(TAG_KEY, "71", parent="organizations/123", data={"shortName": "env"})
    organization.add(TAG_VALUE, "81", parent="organizations/123", data={"shortName": "prod", "parent": "tagKeys/71"})
    listings = list(google_inventory.list_many([LIEN, TAG_KEY], google_block(project="", organization="123")))
    found = _by_account(listings)
    assert not _gaps(listings)
    assert len(found[LIEN, "app-prod"]) == 1
    assert found[TAG_KEY, "organizations/123"] == ["tagKeys/71"]
    (from_a_run,) = google_inventory.list_many([TAG_KEY], google_block())
    assert [(one.id, one.account) for one in from_a_run.objects] == [("tagKeys/71", "organizations/123")]
    (there,) = google_inventory.list_many([TAG_KEY], google_block(), "organizations/123")
    assert [one.id for one in there.objects] == ["tagKeys/71"]


@pytest.mark.parametrize("refused", ["projects", "folders"])
def test_a_hierarchy_that_is_not_told_is_a_gap_of_what_is_listed_place_by_place(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block, refused: str
) -> None:
    organization.deny(f"/v3/{refused}:search", 403)
    listings = google_inventory.list_many([LIEN], google_block(project="", organization="123"))
    reason = f"PERMISSION_DENIED on Search{refused.title()}"
    assert _gaps(listings) == {(LIEN, "organizations/123"): reason}


@pytest.mark.usefixtures("organization")
def test_folders_are_in_the_same_account_whoever_may_search_them(
    google: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    google.deny("/v3/folders:search", 403)
    (listing,) = google_inventory.list_many([FOLDER], google_block(project="", folder="1"))
    assert {one.account for one in listing.objects} == {"organizations/123"}


def test_an_objects_own_project_counts_before_the_providers(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.add(TOPIC, "t", "app-dev")
    listing = google_inventory.list(TOPIC, google_block(), "app-dev")
    assert [one.id for one in listing.objects] == ["projects/app-dev/topics/t"]
    place = google_inventory.place(TOPIC, google_block(), "app-dev")
    assert place is not None
    assert place.account == "app-dev"
    numbered = google_inventory.place(TOPIC, google_block(project="1001"))
    assert numbered is not None
    assert numbered.account == "app-prod"


def test_its_own_service_says_whether_an_object_is_still_there(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.lag(0, 3600)
    name = organization.add(INSTANCE, "vm", "app-prod", labels={"a": "b"})
    block = google_block()
    (found,) = google_inventory.list(INSTANCE, block).objects
    assert not google_inventory.detail(found, block).gone
    organization.remove(name)
    assert google_inventory.list(INSTANCE, block).objects  # the index lags
    answer = google_inventory.detail(found, block)
    assert answer.gone
    assert answer.gap is None
    organization.deny("/compute/*")
    refused = google_inventory.detail(found, block)
    assert not refused.gone
    assert refused.gap is not None
    assert refused.gap.reason == "PERMISSION_DENIED on GetInstance"


def test_what_a_zone_has_is_not_known_where_its_service_knows_it_by_another_name(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    """Where the search tells a zone's own name was read nowhere: it may tell another."""
    name = organization.add("google_dns_managed_zone", "zone-a", "app-prod")
    organization.add("google_dns_record_set", "A", "app-prod", zone="zone-a", record="www.example.com.")
    block = google_block(only_project="true")
    assert len(google_inventory.list("google_dns_record_set", block).objects) == 1
    organization.thing(name).display_name = "example.com."
    records = google_inventory.list("google_dns_record_set", block)
    assert not records.objects
    assert _gaps([records]) == {
        (records.type, "app-prod"): "NOT_FOUND on ListResourceRecordSets (1 of 1 google_dns_managed_zone)"
    }


@pytest.mark.usefixtures("organization")
def test_a_bucket_that_another_project_has_by_now_is_gone(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    organization.add(BUCKET, "logs", "app-prod")
    (found,) = google_inventory.list(BUCKET, google_block()).objects
    assert not google_inventory.detail(found, google_block()).gone
    organization.remove("//storage.googleapis.com/logs")
    organization.add(BUCKET, "logs", "shared")
    answer = google_inventory.detail(found, google_block())
    assert answer.gone
    assert answer.gap is None
    hidden = google_inventory.detail(replace(found, account="nobodys"), google_block())
    assert not hidden.gone
    assert hidden.gap is not None


def test_nobody_to_ask_as_is_a_gap_that_is_not_the_lists_own(
    google_inventory: GoogleInventory, google_block: Block
) -> None:
    listings = [*google_inventory.list_many([TOPIC], google_block(access_token=""))]
    listings += google_inventory.list_many([TOPIC], google_block(access_token="expired"))
    listings += google_inventory.list_many([TOPIC], google_block(project=""))
    assert [one.asked for one in listings] == [False, False, False]
    assert all(one.gap for one in listings)


@pytest.mark.parametrize(
    "settings",
    [
        {"projects__0": "no-such-*"},
        {"organization": "123", "projects__0": "no-such-*"},
        {"projects__0": "mispelled"},
        {"project": "mispelled", "only_project": "true"},
        {"organization": "999"},
        {"folder": "999"},
    ],
)
@pytest.mark.usefixtures("organization")
def test_where_nothing_is_told_of_the_whole_place_nobody_was_asked_and_the_reason_is_one(
    google_inventory: GoogleInventory, google_block: Block, settings: dict[str, str]
) -> None:
    types = [entry.type for entry in load_catalog() if entry.cloud == "google" and entry.list]
    listings = list(google_inventory.list_many(types, google_block(**{"project": "", **settings})))
    assert {one.type for one in listings} == set(types)
    assert [one for one in listings if one.asked or one.objects] == []
    assert len({one.gap.reason for one in listings if one.gap}) == 1


def test_every_type_of_the_catalogue_is_answered_and_says_nothing_of_a_credential(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    organization.token = "another"
    types = [entry.type for entry in load_catalog() if entry.cloud == "google" and entry.list]
    block = google_block(access_token="s3cret-token")
    listings = list(google_inventory.list_many(types, block))
    assert {one.type for one in listings} == set(types)
    assert all(one.gap for one in listings)
    assert "s3cret" not in repr(listings) + repr(block)


def test_what_lies_in_a_project_that_the_configuration_names_is_never_left_out(
    organization: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    name = "sys-12345678901234567890123456"
    organization.add_project(name, "organizations/123")
    organization.add(TOPIC, "t", name)

    def left_out(**settings: str) -> list[str | None]:
        listings = google_inventory.list_many([TOPIC], google_block(**settings))
        return [found.ignored_because for one in listings for found in one.objects]

    (because,) = left_out(project="", organization="123")
    assert because is not None and "Apps Script" in because
    assert left_out(project=name) == [None]
    assert left_out(project="", organization="123", projects__0=name) == [None]
