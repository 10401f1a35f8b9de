"""Every Google entry of the catalogue against docs/facts/gcp_types.yaml, and on items as the services tell them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jmespath
import pytest
import yaml

from tfguard.catalog.entries import SEARCH
from tfguard.catalog.loader import load_catalog
from tfguard.catalog.types import JOINT, PLACEHOLDER, ResourceType
from tfguard.engine.identities import identity_of
from tfguard.inventory.google_lists import LISTS, ServiceList
from tfguard.inventory.items import as_parent, fill, holds, placeholders, to_object
from tfguard.model.arn import place_in
from tfguard.model.inventory import ANY_VALUE, NAMED_IN, CloudObject, Scope
from tfguard.reconcile.matching import same_object

CATALOG = load_catalog()
ENTRIES = {entry.type: entry for entry in CATALOG if entry.cloud == "google"}
ASSETS = {name: entry for name, entry in ENTRIES.items() if entry.asset}
FACTS: Mapping[str, Mapping[str, Any]] = {
    fact["type"]: fact
    for fact in yaml.safe_load(
        (Path(__file__).parents[2] / "docs" / "facts" / "gcp_types.yaml").read_text(encoding="utf-8")
    )["types"]
}

every_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
every_asset = pytest.mark.parametrize("entry", ASSETS.values(), ids=ASSETS)

# Listed by their own service, though the inventory knows them: see the entries.
LISTED_BY_THEIR_SERVICE = {
    "google_service_account_key",
    "google_dns_record_set",
    "google_tags_tag_key",
    "google_tags_tag_value",
    "google_tags_tag_binding",
}
# A key's time may be that of a certificate; the search tells no time of a policy that is known.
WITHOUT_TIME = {"google_service_account_key", "google_monitoring_alert_policy"}
# The first has the project's number in a state; the second is of another form in a state of google_cloud_run_service;
# the third may end in `?uniqueId=`.
NOT_COMPARED = {
    ("google_secret_manager_secret_version", "name"),
    ("google_cloud_run_v2_service", "id"),
    ("google_compute_instance_template", "id"),
}

# What an item has besides `at`, where its name does not tell all; and the items of services' own lists.
MORE: Mapping[str, Mapping[str, object]] = {
    "google_project": {"project": "projects/v-number"},
    "google_storage_bucket": {"projectId": "v-project"},
    "google_service_account": {"additionalAttributes": {"email": "v-email"}},
    "google_dns_managed_zone": {"displayName": "v-name"},
}
ITEMS: Mapping[str, Mapping[str, object]] = {
    "google_service_account_key": {"name": "projects/v-project/serviceAccounts/v-email/keys/v-key"},
    "google_project_iam_member": {"project": "v-project", "role": "v-role", "member": "v-member"},
    "google_resource_manager_lien": {"name": "liens/v-name", "parent": "v-parent"},
    "google_tags_tag_key": {"name": "tagKeys/v-key", "parent": "organizations/1", "shortName": "env"},
    "google_tags_tag_value": {"name": "tagValues/v-value", "parent": "tagKeys/v-key", "shortName": "prod"},
    "google_tags_tag_binding": {
        "name": "tagBindings/v-parent/tagValues/v-value",
        "parent": "//cloudresourcemanager.googleapis.com/projects/1",
        "tagValue": "tagValues/v-value",
    },
    "google_sql_database": {"name": "v-name", "instance": "v-instance", "project": "v-project"},
    "google_sql_user": {"name": "v-name", "instance": "v-instance", "project": "v-project", "host": "v-host"},
    "google_dns_record_set": {"name": "v-record", "type": "v-type"},
}


def _item(entry: ResourceType, form: int = 0, **changed: object) -> dict[str, Any]:
    """What the search, or the service's own list, tells of an object: each part of its name is `v-` and what it is."""
    if entry.asset is None:
        return {**ITEMS[entry.type], **changed}
    name = PLACEHOLDER.sub(lambda match: f"v-{match[1]}", entry.asset.names[form])
    at = entry.asset.parts(name)
    assert at is not None
    return {"name": name, "assetType": entry.asset.type, "at": at, **MORE.get(entry.type, {}), **changed}


def _object(entry: ResourceType, item: object) -> CloudObject:
    parent: Mapping[str, str] = {}
    if entry.list and entry.list.per:
        above = ENTRIES[entry.list.per.type]
        parent = as_parent(_object(above, _item(above)))
    found = to_object(entry, item, Scope("google", "v-project", "global"), "", parent)
    assert found is not None
    return found


def _named(entry: ResourceType, name: str, **more: object) -> CloudObject:
    """The object of a full name."""
    assert entry.asset is not None
    at = entry.asset.parts(name)
    assert at is not None, name
    return _object(entry, {"name": name, "at": at, "projectId": at.get("project", "app"), **more})


def test_every_type_of_the_facts_has_an_entry() -> None:
    assert ENTRIES.keys() == FACTS.keys()
    assert len(ENTRIES) == 62


@every_entry
def test_entry_is_listed_as_the_facts_say(entry: ResourceType) -> None:
    fact = FACTS[entry.type]
    assert entry.is_global
    if entry.asset is None:
        assert fact["asset_type"] is None or entry.type in LISTED_BY_THEIR_SERVICE
        return
    assert entry.asset.type == fact["asset_type"]
    assert entry.list is not None
    assert (entry.list.operation, entry.list.arguments) == (SEARCH, {"asset_types": [entry.asset.type]})


def test_services_own_lists_are_known_and_get_all_that_they_ask_for() -> None:
    listed = [entry.list for entry in ENTRIES.values() if entry.list and entry.asset is None]
    assert {call.operation for call in listed} == LISTS.keys()
    for call in listed:
        asked = LISTS[call.operation]
        assert call.result == f"{asked.items}[]"
        templates = [asked.url, *asked.params.values()] if isinstance(asked, ServiceList) else ["{parent}"]
        wanted = {name for text in templates for name in PLACEHOLDER.findall(text)}
        assert wanted == (set(call.per.arguments) if call.per else {"parent"})


@every_entry
def test_import_id_has_the_form_of_the_facts(entry: ResourceType) -> None:
    forms = {
        re.sub(r"\{[^}]*\}", "{}", form.partition(" (")[0])
        for form in (FACTS[entry.type]["import_id"] or "").split(" or ")
    }
    for form in range(len(entry.asset.names) if entry.asset else 1):
        told = re.sub(r"v-[a-z_]+", "{}", _object(entry, _item(entry, form)).import_id)
        assert told in forms or not entry.importable


@every_asset
def test_name_tells_all_that_the_entry_takes_from_it(entry: ResourceType) -> None:
    assert entry.asset is not None
    for form in entry.asset.names:
        parts = {name: f"v-{name}" for name in PLACEHOLDER.findall(form)}
        assert entry.asset.parts(str(fill(form, parts))) == parts
        taken = {name for text in _expressions(entry) for name in re.findall(r"\bat\.(\w+)", text)}
        assert taken <= parts.keys()
        assert not entry.asset.is_other(str(fill(form, parts)))
    for form in entry.asset.others:
        name = PLACEHOLDER.sub("x", form)
        assert entry.asset.is_other(name)
        assert entry.asset.parts(name) is None


def test_objects_of_two_types_never_have_one_name() -> None:
    """Where the inventory has two types under one word."""
    for entry in ASSETS.values():
        for other in ASSETS.values():
            if entry is not other and entry.asset and other.asset and entry.asset.type == other.asset.type:
                names = [PLACEHOLDER.sub("x", form) for form in other.asset.names]
                assert [entry.asset.parts(name) for name in names] == [None] * len(names)


@every_entry
def test_what_the_facts_compare_is_read_from_a_state(entry: ResourceType) -> None:
    wanted = [name for name in FACTS[entry.type]["state_match"] if (entry.type, name) not in NOT_COMPARED]
    assert [name for name in wanted if name not in entry.attributes] == []


@every_asset
def test_labels_and_times_are_read_where_the_facts_know_of_them(entry: ResourceType) -> None:
    fact = FACTS[entry.type]
    assert bool(entry.tags) == fact["labels"]
    assert entry.created == ("createTime" if fact["create_time"] and entry.type not in WITHOUT_TIME else None)
    if entry.created:
        assert entry.get is not None
        assert entry.get.created


@every_entry
def test_deletion_loses_what_the_facts_say(entry: ResourceType) -> None:
    fact = FACTS[entry.type]
    assert entry.stateful == fact["stateful"]
    assert fact["delete"] is not None or entry.undeletable


@every_entry
def test_expressions_are_paths_that_bear_an_item_without_any_field(entry: ResourceType) -> None:
    for text in _expressions(entry):
        jmespath.compile(text)
    rules = [rule.when for rule in (*entry.ignore, *(entry.get.ignore if entry.get else ()))]
    rules += [text for text in (entry.gone, entry.soft_deleted, entry.get and entry.get.gone) if text]
    bare: tuple[object, ...] = ({}, {"at": {}}, "", None)
    assert [(text, item) for item in bare for text in rules if holds(text, item)] == []


_NUMBERED_BY_GOOGLE = (
    "google_folder",
    "google_resource_manager_lien",
    "google_tags_tag_key",
    "google_tags_tag_value",
)


@every_entry
def test_service_is_asked_by_an_address_that_every_object_can_fill(entry: ResourceType) -> None:
    if entry.get is None:
        # What the service's own list tells needs no second question; of a binding there is none.
        assert entry.asset is None
        return
    found = _object(entry, _item(entry))
    url = str(fill(entry.get.url, placeholders(found, "")))
    assert re.fullmatch(r"https://[a-z]+\.googleapis\.com/[\w/@.-]+", url)
    assert url.startswith(f"https://{entry.service}.googleapis.com/")
    # A name that its owner chose may be anybody's: then the answer has to tell whose it is.
    chosen = entry.list is not None and entry.type not in (*_NUMBERED_BY_GOOGLE, "google_project")
    assert (entry.get.project is not None) == (chosen and "v-project" not in url)


@every_entry
def test_key_that_is_unique_in_the_world_names_the_project(entry: ResourceType) -> None:
    found = _object(entry, _item(entry))
    if entry.type == "google_folder":  # what its account is, its parents tell
        assert place_in(found.identity["name"]) == ("", "")
    elif entry.arn_key is not None:
        assert place_in(found.identity[entry.arn_key]) == ("v-project", "")
    elif entry.list is not None:
        # Names that nothing else in the world has, and that tell no place.
        assert entry.type == "google_storage_bucket" or entry.service == "cloudresourcemanager"


@every_entry
def test_every_key_is_told_of_an_object(entry: ResourceType) -> None:
    found = _object(entry, _item(entry))
    missing = set(entry.keys) - found.identity.keys()
    # Of parents and display names the sample tells nothing.
    told_by_more = {"google_folder": {"parent+display_name"}, "google_service_account": {"unique_id"}}
    assert missing <= told_by_more.get(entry.type, set())
    assert found.name or entry.type in ("google_folder", "google_project_iam_member", "google_monitoring_alert_policy",
                                        "google_tags_tag_key", "google_tags_tag_value")  # fmt: skip


@every_entry
def test_no_attribute_could_hold_a_secret(entry: ResourceType) -> None:
    words = ("password", "secret_", "value", "token", "content", "metadata", "private", "environment")
    harmless = {"secret_id", "tag_value"}
    assert [name for name in entry.attributes if name not in harmless and any(word in name for word in words)] == []


@every_entry
def test_permissions_are_those_of_reading(entry: ResourceType) -> None:
    reads = re.compile(r"[a-z]+\.[a-zA-Z]+\.(get|list|listTagBindings)")
    assert [name for name in entry.permissions if not reads.fullmatch(name)] == []
    assert bool(entry.permissions) == (entry.list is not None)


def test_what_was_not_checked_or_cannot_end_is_never_destroyed() -> None:
    kept = {entry.type: entry.never_destroyed for entry in ENTRIES.values() if entry.never_destroyed}
    unchecked = {entry.type for entry in ENTRIES.values() if entry.unverified}
    assert kept.keys() == unchecked | {"google_kms_key_ring", "google_kms_crypto_key"}
    assert "Cloud KMS keeps key rings for ever" in str(kept["google_kms_key_ring"])
    assert kept["google_service_account"] == (
        "what the inventory calls it was not checked against the documentation of iam"
    )
    aws = [entry.type for entry in CATALOG if entry.cloud == "aws" and entry.never_destroyed]
    assert aws == []


# --- what is nobody's loss ------------------------------------------------------------------------------------------

GLOBAL = "//compute.googleapis.com/projects/app/global"
REGION = "//compute.googleapis.com/projects/app/regions/europe-west1"
ZONE = "//compute.googleapis.com/projects/app/zones/europe-west1-b"
IN_PROJECT = {
    "sink": "//logging.googleapis.com/projects/app/sinks",
    "service": "//serviceusage.googleapis.com/projects/app/services",
    "topic": "//pubsub.googleapis.com/projects/app/topics",
    "subscription": "//pubsub.googleapis.com/projects/app/subscriptions",
    "account": "//iam.googleapis.com/projects/app/serviceAccounts",
    "repository": "//artifactregistry.googleapis.com/projects/app/locations/europe-west1/repositories",
}
BUCKET = "//storage.googleapis.com"
PROJECTS = "//cloudresourcemanager.googleapis.com/projects"


@pytest.mark.parametrize(
    ("kind", "name", "because"),
    [
        ("google_compute_network", f"{GLOBAL}/networks/default", "with the project"),
        ("google_compute_network", f"{GLOBAL}/networks/defaults", None),
        ("google_compute_subnetwork", f"{REGION}/subnetworks/default", "came with the project"),
        ("google_compute_firewall", f"{GLOBAL}/firewalls/default-allow-ssh", "came with the project"),
        ("google_compute_firewall", f"{GLOBAL}/firewalls/default-allow-mine", None),
        ("google_compute_firewall", f"{GLOBAL}/firewalls/allow-ssh", None),
        ("google_compute_route", f"{GLOBAL}/routes/default-route-4f1c", "made by its network"),
        ("google_compute_route", f"{GLOBAL}/routes/peering-route-4f1c", "peering"),
        ("google_project", f"{PROJECTS}/sys-12345678901234567890123456", "Apps Script"),
        ("google_project", f"{PROJECTS}/sys-prod", None),
        ("google_project", f"{PROJECTS}/sys-production-of-the-company1", None),
        ("google_project", f"{PROJECTS}/sys-1234567890123456789012-345", None),
        ("google_storage_bucket", f"{BUCKET}/app.appspot.com", "App Engine"),
        ("google_storage_bucket", f"{BUCKET}/staging.app.appspot.com", "App Engine"),
        ("google_storage_bucket", f"{BUCKET}/eu.artifacts.app.appspot.com", "Container Registry"),
        ("google_storage_bucket", f"{BUCKET}/app.firebasestorage.app", "Firebase"),
        ("google_storage_bucket", f"{BUCKET}/dataflow-staging-europe-west1-123", "Dataflow"),
        ("google_storage_bucket", f"{BUCKET}/dataproc-temp-europe-west1-123-abc", "Dataproc"),
        ("google_storage_bucket", f"{BUCKET}/gcf-sources-123-europe-west1", "Cloud Functions"),
        ("google_storage_bucket", f"{BUCKET}/gcf-v2-uploads-123-europe-west1", "Cloud Functions"),
        ("google_storage_bucket", f"{BUCKET}/run-sources-app-europe-west1", "Cloud Run"),
        ("google_storage_bucket", f"{BUCKET}/cloud-ai-platform-01234567-89ab-cdef-0123-456789abcdef", "Vertex AI"),
        ("google_storage_bucket", f"{BUCKET}/123.cloudbuild-logs.googleusercontent.com", "Cloud Build"),
        ("google_storage_bucket", f"{BUCKET}/staging.someone.appspot.com", None),
        ("google_storage_bucket", f"{BUCKET}/other.firebasestorage.app", None),
        ("google_storage_bucket", f"{BUCKET}/dataflow-staging-of-ours", None),
        ("google_storage_bucket", f"{BUCKET}/dataproc-staging-my-own-data", None),
        ("google_storage_bucket", f"{BUCKET}/gcf-sources-of-ours", None),
        ("google_storage_bucket", f"{BUCKET}/gcf-v2-sources-9123-europe-west1", None),
        ("google_storage_bucket", f"{BUCKET}/run-sources-other-europe-west1", None),
        ("google_storage_bucket", f"{BUCKET}/cloud-ai-platform-1234", None),
        ("google_storage_bucket", f"{BUCKET}/our-cloudbuild-logs", None),
        ("google_storage_bucket", f"{BUCKET}/app_cloudbuild", "Cloud Build"),
        ("google_storage_bucket", f"{BUCKET}/other_cloudbuild", None),
        ("google_storage_bucket", f"{BUCKET}/app-data", None),
        ("google_logging_project_sink", f"{IN_PROJECT['sink']}/_Default", "Cloud Logging"),
        ("google_project_service", f"{IN_PROJECT['service']}/bigquery.googleapis.com", "every new project"),
        ("google_project_service", f"{IN_PROJECT['service']}/run.googleapis.com", None),
        ("google_pubsub_topic", f"{IN_PROJECT['topic']}/eventarc-europe-west1-trigger-123", "Eventarc"),
        ("google_pubsub_topic", f"{IN_PROJECT['topic']}/eventarc-orders", None),
        ("google_pubsub_topic", f"{IN_PROJECT['topic']}/eventarc-orders-123", None),
        ("google_pubsub_topic", f"{IN_PROJECT['topic']}/eventarc-europe-west1-orders", None),
        ("google_pubsub_topic", f"{IN_PROJECT['topic']}/gcf-orders", None),
        ("google_pubsub_subscription", f"{IN_PROJECT['subscription']}/eventarc-us-trigger-sub-123", "Eventarc"),
        ("google_pubsub_subscription", f"{IN_PROJECT['subscription']}/eventarc-us-trigger-123", None),
        ("google_pubsub_subscription", f"{IN_PROJECT['subscription']}/eventarc-orders", None),
        ("google_pubsub_subscription", f"{IN_PROJECT['subscription']}/gcf-orders-archive", None),
        ("google_artifact_registry_repository", f"{IN_PROJECT['repository']}/gcf-artifacts", "Cloud Functions"),
    ],
)
def test_what_came_by_itself_is_no_orphan(kind: str, name: str, because: str | None) -> None:
    found = _named(ENTRIES[kind], name, project="projects/123")
    assert (found.ignored_because is None) == (because is None)
    assert because is None or because in (found.ignored_because or "")


@pytest.mark.parametrize(
    ("email", "because"),
    [
        ("123-compute@developer.gserviceaccount.com", "Compute Engine"),
        ("app@appspot.gserviceaccount.com", "App Engine"),
        ("123@cloudservices.gserviceaccount.com", "own services"),
        ("service-123@gcp-sa-pubsub.iam.gserviceaccount.com", "agent of a service"),
        ("service-123@container-engine-robot.iam.gserviceaccount.com", "agent of a service"),
        ("firebase-adminsdk-x1@app.iam.gserviceaccount.com", "Firebase"),
        ("service-reader@app.iam.gserviceaccount.com", None),
        ("service-api@app.example.com.iam.gserviceaccount.com", None),  # of the project example.com:app
        ("service-2-api@app.example.com.iam.gserviceaccount.com", None),
        ("deploy@app.iam.gserviceaccount.com", None),
    ],
)
def test_accounts_of_services_are_known_by_either_form_of_their_names(email: str, because: str | None) -> None:
    for found in (
        _named(ENTRIES["google_service_account"], f"{IN_PROJECT['account']}/{email}"),
        _named(
            ENTRIES["google_service_account"], f"{IN_PROJECT['account']}/1001", additionalAttributes={"email": email}
        ),
    ):
        assert found.import_id == f"projects/app/serviceAccounts/{email}"
        assert (because or "") in (found.ignored_because or "")
        assert (found.ignored_because is None) == (because is None)


@pytest.mark.parametrize(
    ("kind", "name", "labels", "maker"),
    [
        ("google_compute_instance", f"{ZONE}/instances/gke-main-pool-1",
         {"goog-gke-node": "", "goog-k8s-cluster-name": "main"},
         ("google_container_cluster", "name", "main")),
        ("google_compute_disk", f"{ZONE}/disks/pvc-1", {"goog-gke-volume": ""},
         ("google_container_cluster", "name", ANY_VALUE)),
        ("google_compute_disk", f"{ZONE}/disks/web", {},
         ("google_compute_instance", "zone+name", "europe-west1-b/web")),
        ("google_compute_firewall", f"{GLOBAL}/firewalls/gke-main-1a2b-vms", {},
         ("google_container_cluster", "name", f"{NAMED_IN}gke-main-1a2b-vms")),
        ("google_compute_instance_template", f"{GLOBAL}/instanceTemplates/gke-main-pool-1a2b", {},
         ("google_container_cluster", "name", f"{NAMED_IN}gke-main-pool-1a2b")),
        ("google_compute_url_map", f"{GLOBAL}/urlMaps/k8s2-um-1", {}, ("google_container_cluster", "name", ANY_VALUE)),
        ("google_compute_subnetwork", f"{REGION}/subnetworks/gke-main-1a2b3c4d-pe-subnet", {},
         ("google_container_cluster", "name", f"{NAMED_IN}gke-main-1a2b3c4d-pe-subnet")),
        ("google_pubsub_topic", f"{IN_PROJECT['topic']}/gcf-resize-europe-west1-images", {},
         ("google_cloudfunctions_function", "name", f"{NAMED_IN}gcf-resize-europe-west1-images")),
        ("google_pubsub_subscription", f"{IN_PROJECT['subscription']}/gcf-resize-europe-west1-images", {},
         ("google_cloudfunctions_function", "name", f"{NAMED_IN}gcf-resize-europe-west1-images")),
        ("google_compute_address", f"{REGION}/addresses/nat-auto-ip-1-2", {},
         ("google_compute_router", "name", ANY_VALUE)),
        ("google_container_node_pool",
         "//container.googleapis.com/projects/app/zones/europe-west1-b/clusters/main/nodePools/default-pool", {},
         ("google_container_cluster", "location+name", "europe-west1-b/main")),
    ],
)  # fmt: skip
def test_what_something_else_made_names_its_maker(
    kind: str, name: str, labels: Mapping[str, str], maker: tuple[str, str, str]
) -> None:
    found = _named(ENTRIES[kind], name, labels=dict(labels))
    assert maker in {(one.type, one.key, one.value) for one in found.made_by}
    assert found.ignored_because is None


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("google_compute_forwarding_rule", f"{REGION}/forwardingRules"),
        ("google_compute_global_forwarding_rule", f"{GLOBAL}/forwardingRules"),
        ("google_compute_address", f"{REGION}/addresses"),
        ("google_compute_global_address", f"{GLOBAL}/addresses"),
        ("google_compute_backend_service", f"{GLOBAL}/backendServices"),
        ("google_compute_health_check", f"{GLOBAL}/healthChecks"),
        ("google_compute_url_map", f"{GLOBAL}/urlMaps"),
        ("google_compute_target_https_proxy", f"{GLOBAL}/targetHttpsProxies"),
        ("google_compute_ssl_certificate", f"{GLOBAL}/sslCertificates"),
        ("google_compute_firewall", f"{GLOBAL}/firewalls"),
    ],
)
def test_balancers_of_clusters_are_known_of_one_and_of_several(kind: str, place: str) -> None:
    names = ["gkegw1-a1b2-web", "gkemcg1-web-a1b2", "mci-l7" if "firewall" in kind else "mci-a1b2-web"]
    for name in names:
        makers = _named(ENTRIES[kind], f"{place}/{name}").made_by
        assert ("google_container_cluster", ANY_VALUE) in {(one.type, one.value) for one in makers}, name
    assert not _named(ENTRIES[kind], f"{place}/web").made_by


def test_where_a_label_names_the_cluster_no_other_one_may_be_the_maker() -> None:
    labels = {"goog-gke-volume": "", "goog-k8s-cluster-name": "dead"}
    for name in ("pvc-1", "gke-dead-pvc-1"):
        found = _named(ENTRIES["google_compute_disk"], f"{ZONE}/disks/{name}", labels=labels)
        assert {one.value for one in found.made_by if one.type == "google_container_cluster"} == {"dead"}


def test_a_name_alone_is_never_a_certain_word_of_the_maker() -> None:
    rules = [
        rule for entry in ENTRIES.values() for rule in entry.made_by if rule.value.startswith(("'*", "join('', ['*in:"))
    ]
    assert len(rules) > 15
    assert not [rule for rule in rules if rule.certain]


def test_a_firewall_of_a_persons_own_is_no_clusters() -> None:
    kind = ENTRIES["google_compute_firewall"]
    for name in ("k8s-team-rule", "mci-office"):
        assert not _named(kind, f"{GLOBAL}/firewalls/{name}").made_by
    for name in ("k8s-fw-a1b2", "k8s2-x-fw", "k8s-0123456789abcdef-node-http-hc"):
        assert _named(kind, f"{GLOBAL}/firewalls/{name}").made_by


def test_label_of_terraform_names_no_maker() -> None:
    found = _named(
        ENTRIES["google_compute_instance"], f"{ZONE}/instances/web", labels={"goog-terraform-provisioned": "true"}
    )
    assert (found.ignored_because, found.made_by) == (None, ())


@pytest.mark.parametrize(
    ("kind", "answer", "expected"),
    [
        ("google_compute_instance", {"metadata": {"items": [{"key": "created-by", "value": "projects/1/..."}]}}, True),
        ("google_compute_instance", {"metadata": {"items": [{"key": "startup-script", "value": "x"}]}}, False),
        ("google_compute_subnetwork", {"name": "n", "network": "https://x/networks/n", "ipCidrRange": "10.132.0.0/20"},
         True),
        ("google_compute_subnetwork", {"name": "n", "network": "https://x/networks/n", "ipCidrRange": "10.0.0.0/20"},
         False),
        ("google_compute_subnetwork", {"name": "a", "network": "https://x/networks/n", "ipCidrRange": "10.132.0.0/20"},
         False),
        ("google_compute_snapshot", {"autoCreated": True}, True),
        ("google_compute_snapshot", {"autoCreated": False}, False),
    ],
)  # fmt: skip
def test_answer_of_the_service_tells_what_made_an_object(kind: str, answer: object, expected: bool) -> None:
    get = ENTRIES[kind].get
    assert get is not None
    assert any(holds(rule.when, answer) for rule in get.ignore) == expected


@pytest.mark.parametrize(
    ("kind", "name", "attributes"),
    [
        ("google_compute_instance", f"{ZONE}/instances/web",
         {"id": "projects/app/zones/europe-west1-b/instances/web", "name": "web", "zone": "europe-west1-b"}),
        ("google_sql_database_instance", "//cloudsql.googleapis.com/projects/app/instances/db",
         {"id": "db", "name": "db", "project": "app"}),
        ("google_spanner_database", "//spanner.googleapis.com/projects/app/instances/main/databases/db",
         {"id": "main/db", "instance": "main", "name": "db", "project": "app"}),
        ("google_cloud_run_service", "//run.googleapis.com/projects/app/locations/europe-west1/services/web",
         {"id": "locations/europe-west1/namespaces/app/services/web", "name": "web", "location": "europe-west1",
          "project": "app"}),
        ("google_secret_manager_secret_version", "//secretmanager.googleapis.com/projects/app/secrets/key/versions/2",
         {"id": "projects/123/secrets/key/versions/2", "name": "projects/123/secrets/key/versions/2",
          "secret": "projects/app/secrets/key", "version": "2"}),
        ("google_project_service", f"{IN_PROJECT['service']}/run.googleapis.com",
         {"id": "app/run.googleapis.com", "project": "app", "service": "run.googleapis.com"}),
        ("google_storage_bucket", f"{BUCKET}/app-data", {"id": "app-data", "name": "app-data"}),
        ("google_compute_instance_template", f"{GLOBAL}/instanceTemplates/main",
         {"id": "projects/app/global/instanceTemplates/main?uniqueId=123", "name": "main", "project": "app"}),
    ],
)  # fmt: skip
def test_object_is_known_by_what_a_state_has_of_it(kind: str, name: str, attributes: Mapping[str, str]) -> None:
    entry = ENTRIES[CATALOG.canonical(kind)]
    found = _named(entry, name)
    assert same_object(entry, identity_of(CATALOG, kind, attributes, {}, frozenset()), found)
    if entry.arn_key:
        elsewhere = {key: value.replace("app", "web") for key, value in attributes.items()}
        assert not same_object(entry, identity_of(CATALOG, kind, elsewhere, {}, frozenset()), found)


@pytest.mark.parametrize("other", ["from_template", "from_machine_image"])
def test_instance_is_claimed_by_whatever_type_made_it(other: str) -> None:
    assert CATALOG.canonical(f"google_compute_instance_{other}") == "google_compute_instance"


def test_user_of_mysql_has_a_host_and_one_of_postgres_has_none() -> None:
    entry = ENTRIES["google_sql_user"]
    mysql = _object(entry, {"name": "app", "host": "%", "instance": "v-name", "project": "v-project"})
    assert (mysql.id, mysql.import_id) == ("app/%/v-name", "v-project/v-name/%/app")
    postgres = _object(entry, {"name": "app", "instance": "v-name", "project": "v-project"})
    assert (postgres.id, postgres.import_id) == ("app//v-name", "v-project/v-name/app")
    (key,) = entry.keys
    assert mysql.identity[key] != postgres.identity[key]
    state = identity_of(
        CATALOG, entry.type, {"name": "app", "instance": "v-name", "project": "v-project", "host": ""}, {}, frozenset()
    )
    assert same_object(entry, state, postgres)
    assert not same_object(entry, state, mysql)


def test_project_and_folder_that_wait_for_their_end_are_told_apart() -> None:
    for kind in ("google_project", "google_folder"):
        entry = ENTRIES[kind]
        assert _object(entry, _item(entry, state="DELETE_REQUESTED")).soft_deleted
        assert not _object(entry, _item(entry, state="ACTIVE")).soft_deleted
        assert [call.operation for call in entry.restore] == [f"undelete_{kind.removeprefix('google_')}"]


def _expressions(entry: ResourceType) -> Iterator[str]:
    """Every JMESPath of an entry."""
    single = [
        entry.id,
        entry.import_id,
        entry.name,
        entry.created,
        entry.tags,
        entry.gone,
        entry.soft_deleted,
        entry.only,
    ]
    values = [*entry.keys.values(), *entry.traits.values(), *entry.handles.values()]
    rules = [*(rule.when for rule in entry.ignore), *(rule.value for rule in entry.made_by)]
    rules += [rule.when for rule in entry.made_by if rule.when]
    if entry.get:
        rules += [rule.when for rule in entry.get.ignore]
        single += [entry.get.created, entry.get.tags, entry.get.gone]
    assert JOINT not in entry.id
    yield from (text for text in [*single, *values, *rules] if text and not PLACEHOLDER.search(text))
