"""Where instances of Google Cloud are, and which object each is: equal names in several projects are several."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from scene import CATALOG, state

from tfguard.engine.identities import place_of
from tfguard.engine.plan import reduce_plan
from tfguard.flows.known_states import is_held
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Scope
from tfguard.model.operation import Step
from tfguard.model.plan import Action
from tfguard.model.state import StateInstance
from tfguard.reconcile.disposal import DestroyRules, hangs_on, refusal
from tfguard.reconcile.look import listing_key
from tfguard.reconcile.matching import Likeness, lies_elsewhere, likeness
from tfguard.reconcile.state_index import Claim, StateIndex
from tfguard.reconcile.wanted import named_object

SOURCE = "registry.terraform.io/hashicorp/google"
HERE = ("gs://states/app.tfstate", "default")
TOPIC, BUCKET, FOLDER = "google_pubsub_topic", "google_storage_bucket", "google_folder"


def held(address: str, identity: dict[str, str], account: str = "", provider_key: str = "google") -> StateInstance:
    return StateInstance(address, address.partition(".")[0], SOURCE, provider_key, identity, account=account)


def topic(name: str, project: str) -> CloudObject:
    unique = f"projects/{project}/topics/{name}"
    identity = {"id": unique, "name": name, "project": project}
    return CloudObject("google", project, "global", TOPIC, unique, unique, identity, name=name)


def bucket(name: str, project: str) -> CloudObject:
    identity = {"name": name, "project": project}
    return CloudObject("google", project, "global", BUCKET, name, f"{project}/{name}", identity, name=name)


def index_of(*instances: StateInstance) -> StateIndex:
    index = StateIndex(CATALOG)
    index.add(*HERE, state(*instances))
    return index


def test_one_name_in_two_projects_is_two_objects() -> None:
    prod = topic("jobs", "app-prod")
    index = index_of(held("google_pubsub_topic.jobs", dict(prod.identity), "app-prod"))
    assert index.match(topic("jobs", "app-test")) is None
    assert not index.may_be_known(topic("jobs", "app-test"))
    assert index.match(prod) == Claim(*HERE, "google_pubsub_topic.jobs")


def test_an_instance_that_does_not_tell_where_it_is_is_where_the_others_of_its_configuration_are() -> None:
    index = index_of(
        held("google_pubsub_topic.jobs", dict(topic("jobs", "app-prod").identity)),
        held("google_storage_bucket.logs", {"name": "logs"}),
        held("google_storage_bucket.own", {"name": "own"}, "app-net", "google.net"),
    )
    assert index.match(bucket("logs", "app-test")) is None
    assert index.match(bucket("logs", "app-prod")) == Claim(*HERE, "google_storage_bucket.logs")
    assert index.match(bucket("own", "app-prod")) is None
    assert index.match(bucket("own", "app-net")) == Claim(*HERE, "google_storage_bucket.own")


def test_what_a_complete_list_lacks_is_missing_in_its_own_project_alone() -> None:
    index = index_of(
        held("google_pubsub_topic.a", {"id": "projects/app-prod/topics/a"}),
        held("google_pubsub_topic.b", {"id": "projects/app-test/topics/b"}),
        held("google_pubsub_topic.c", {"id": "projects/4711/topics/c"}),
    )
    (lost,) = index.unlisted({(TOPIC, "app-prod", "global"), (BUCKET, "app-test", "global")})
    assert (lost.claim.address, lost.account, lost.region) == ("google_pubsub_topic.a", "app-prod", "global")


def test_the_project_that_an_instance_names_is_its_account_and_a_number_is_none() -> None:
    assert place_of(CATALOG, BUCKET, {"name": "logs", "project": "app-prod"}, {}) == ("app-prod", "")
    assert place_of(CATALOG, BUCKET, {"name": "logs", "project": "4711"}, {}) == ("", "")
    assert place_of(CATALOG, BUCKET, {"name": "logs", "project": "app-prod"}, {"project": True}) == ("", "")


@pytest.mark.parametrize(
    ("kind", "source", "values", "region", "account"),
    [
        (TOPIC, SOURCE, {"name": "a", "project": "app-net"}, None, "app-net"),
        ("google_compute_subnetwork", f"{SOURCE}-beta", {"name": "a", "region": "europe-west1"}, None, None),
        ("aws_sqs_queue", "registry.terraform.io/hashicorp/aws", {"region": "eu-west-1"}, "eu-west-1", None),
    ],
)
def test_a_resource_that_names_its_own_place_is_asked_for_there(
    kind: str, source: str, values: dict[str, str], region: str | None, account: str | None
) -> None:
    item = {
        "address": f"{kind}.a", "type": kind, "mode": "managed", "provider_name": source,
        "change": {"actions": ["create"], "before": None, "after": values},
    }  # fmt: skip
    (change,) = reduce_plan({"resource_changes": [item]}, CATALOG, frozenset()).changes
    assert (change.region, change.own_account) == (region, account)
    step = Step("x.a", kind, source, Action.CREATE, region=region, own_account=account, provider_key="k")
    assert listing_key(step) == (kind, "k", region or account or "")


def test_a_folder_in_a_folder_is_managed_whatever_account_a_list_counts_it_to() -> None:
    told = {"name": "folders/2", "display_name": "inner", "parent": "folders/1"}
    joined = {**told, "parent+display_name": "folders/1/inner"}
    account, _ = place_of(CATALOG, FOLDER, told, {})
    index = index_of(held("google_folder.inner", joined, account), held("google_pubsub_topic.jobs", {}, "app-prod"))
    for top in ("organizations/123", "folders/1"):
        found = CloudObject("google", top, "global", FOLDER, "folders/2", "folders/2", joined, name="inner")
        assert index.match(found) == Claim(*HERE, "google_folder.inner")
        assert is_held(CATALOG, state(held("google_folder.inner", joined, account)), found)


@pytest.mark.parametrize(
    ("instance", "found"),
    [
        (
            held("google_pubsub_topic.jobs", {"id": "projects/1001/topics/jobs", "name": "jobs", "project": "1001"}),
            topic("jobs", "app-prod"),
        ),
        (held("google_storage_bucket.logs", {"name": "logs", "project": "1001"}), bucket("logs", "app-prod")),
        (
            held("google_secret_manager_secret_version.v", {"secret+version": "projects/1001/secrets/s/versions/1"}),
            CloudObject(
                "google", "app-prod", "global", "google_secret_manager_secret_version", "v", "v",
                {"secret+version": "projects/app-prod/secrets/s/versions/1"},
            ),
        ),
    ],
    ids=["unique-name", "name", "joined"],
)  # fmt: skip
def test_what_a_state_has_by_the_number_of_its_project_is_no_stray(instance: StateInstance, found: CloudObject) -> None:
    other = held("google_pubsub_topic.other", dict(topic("other", "app-net").identity), "app-net")
    index = index_of(instance, other)
    assert index.match(found) is None
    assert index.may_be_known(found)
    assert index.alone(found) == Claim(*HERE, instance.address)
    assert is_held(CATALOG, state(instance, other), found)
    # In two projects: nobody can tell which of them it is.
    there = replace(
        found,
        account="app-test",
        identity={name: value.replace("app-prod", "app-test") for name, value in found.identity.items()},
    )
    twice = index_of(instance, other)
    assert (twice.match(found), twice.match(there)) == (None, None)
    assert twice.alone(found) is None
    assert twice.rivals(found) is not None


def test_an_object_of_another_name_in_a_numbered_project_is_another_one() -> None:
    instance = held("google_pubsub_topic.jobs", {"id": "projects/1001/topics/jobs", "name": "jobs", "project": "1001"})
    assert not index_of(instance).may_be_known(topic("left", "app-prod"))
    assert not is_held(CATALOG, state(instance), topic("left", "app-prod"))


def test_what_was_wanted_by_a_number_may_be_what_is_listed_by_the_id() -> None:
    kind, found = CATALOG.get(TOPIC), topic("jobs", "app-prod")
    assert kind is not None
    assert likeness(kind, {"name": "jobs", "project": "1001"}, found)[0] is Likeness.KEY
    assert likeness(kind, {"id": "projects/1001/topics/jobs"}, found)[0] is Likeness.TRAITS
    assert likeness(kind, {"name": "jobs", "project": "app-test"}, found)[0] is Likeness.CONFLICT


def test_an_object_of_another_project_lies_elsewhere() -> None:
    kind = CATALOG.get(TOPIC)
    assert lies_elsewhere(kind, {"id": "projects/app-prod/topics/a"}, "app-test", "global")
    assert not lies_elsewhere(kind, {"id": "projects/app-prod/topics/a"}, "app-prod", "global")


def test_an_object_is_named_by_its_unique_name_where_that_tells_all() -> None:
    kind = CATALOG.get("google_compute_instance")
    assert kind is not None
    scope = Scope("google", "app", "global")
    named = named_object(kind, "projects/app/zones/eu-b/instances/vm", scope)
    assert named is not None and (named.identity["zone"], named.identity["name"]) == ("eu-b", "vm")
    assert named_object(kind, "projects/app/instances/vm", scope) is None


def test_no_object_hangs_on_one_of_another_cloud() -> None:
    vpc = CloudObject("aws", "app-prod", "global", "aws_vpc", "projects/app-prod/topics/jobs", "x", {})
    assert not hangs_on(CATALOG, topic("jobs", "app-prod"), vpc)


def test_a_type_that_nobody_has_checked_and_a_project_that_is_not_configured_are_never_destroyed() -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    left = replace(topic("jobs", "app-prod"), created_at=now - timedelta(days=9))
    finding = Finding("o-1", Verdict.UNMANAGED, Confidence.CERTAIN, None, None, left)
    rules = DestroyRules(stateful=False, grace=timedelta(0), accounts={"google": ("app-*",), "aws": ("1",)})
    assert refusal(finding, left, rules, now) is None
    kept = refusal(finding, left, replace(rules, kept_types={TOPIC: "its names were not checked"}), now)
    assert kept is not None and "its names were not checked" in kept.what
    other = refusal(finding, left, replace(rules, accounts={"google": ("web-*",)}), now)
    assert other is not None and "google: {projects" in other.advice and "project app-prod" in other.what
