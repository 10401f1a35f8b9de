"""The fake Google Cloud answers as the real one does, seen through the real client libraries."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import BadRequest, Forbidden, TooManyRequests
from google.auth.credentials import AnonymousCredentials
from google.cloud import asset_v1, resourcemanager_v3

from fixtures.google_organization import OBJECTS, ORGANIZATION, PROJECTS, Why, build
from fixtures.google_sim import GoogleSim
from fixtures.google_sim_kinds import BY_TYPE, ENDPOINTS, KINDS, Kind

ROOT = Path(__file__).parent.parent.parent
MOMENT = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOPICS = "pubsub.googleapis.com/Topic"
NETWORKS = "compute.googleapis.com/Network"


@pytest.fixture(scope="module")
def server() -> Iterator[GoogleSim]:
    with GoogleSim() as running:
        yield running


@pytest.fixture
def sim(server: GoogleSim) -> GoogleSim:
    """An organization with a folder with two projects, and one project beside it."""
    server.reset()
    top = server.add_organization(1)
    folder = server.add_folder("apps", top, number=20)
    server.add_project("app-prod", folder, number=301, labels={"env": "prod"})
    server.add_project("app-test", folder, number=302)
    server.add_project("tools", top, number=303)
    return server


def client(sim: GoogleSim, kind: Any) -> Any:
    options = ClientOptions(api_endpoint=sim.url)
    return kind(credentials=AnonymousCredentials(), transport="rest", client_options=options)


def search(sim: GoogleSim, scope: str, *types: str, **request: Any) -> list[Any]:
    asked = {"scope": scope, "asset_types": types, **request}
    return list(client(sim, asset_v1.AssetServiceClient).search_all_resources(request=asked, retry=None))


def call(sim: GoogleSim, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(sim.url + path, method=method, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_projects_are_found_page_by_page_with_id_and_number(sim: GoogleSim) -> None:
    sim.page_cap = 2
    found = list(client(sim, resourcemanager_v3.ProjectsClient).search_projects())
    assert {(each.project_id, each.name) for each in found} == {
        ("app-prod", "projects/301"),
        ("app-test", "projects/302"),
        ("tools", "projects/303"),
    }
    assert len(sim.calls) == 2


def test_queries_for_projects_and_folders_are_answered(sim: GoogleSim) -> None:
    projects = client(sim, resourcemanager_v3.ProjectsClient)
    sim.set_state("projects/app-test", "DELETE_REQUESTED")

    def ids(query: str) -> list[str]:
        return sorted(each.project_id for each in projects.search_projects(query=query))

    assert ids("parent:folders/20") == ["app-prod", "app-test"]
    assert ids("parent:folders/2") == []
    assert ids("parent=folders/20 AND state:ACTIVE") == ["app-prod"]
    assert ids("labels.env:prod OR id:tools") == ["app-prod", "tools"]
    assert ids("NOT labels.env:*") == ["app-test", "tools"]
    listed = projects.list_projects(parent="folders/20")
    assert [each.project_id for each in listed] == ["app-prod"]
    (folder,) = client(sim, resourcemanager_v3.FoldersClient).search_folders(query="parent=organizations/1")
    assert (folder.name, folder.display_name) == ("folders/20", "apps")
    (top,) = client(sim, resourcemanager_v3.OrganizationsClient).search_organizations()
    assert top.name == "organizations/1"


def test_a_search_tells_what_lies_below_its_scope(sim: GoogleSim) -> None:
    sim.add("compute.googleapis.com/Instance", "web", "app-prod", labels={"a": "b"}, created=MOMENT)
    sim.add("google_compute_network", "net", "tools")
    (found,) = search(sim, "folders/20", "compute.googleapis.com/.*")
    assert found.name == "//compute.googleapis.com/projects/app-prod/zones/europe-west1-b/instances/web"
    assert (found.project, found.organization, list(found.folders)) == (
        "projects/301",
        "organizations/1",
        ["folders/20"],
    )
    assert (found.location, dict(found.labels), found.state) == ("europe-west1-b", {"a": "b"}, "RUNNING")
    assert found.create_time == MOMENT
    assert len(search(sim, "organizations/1", "compute.googleapis.com/.*")) == 2
    assert len(search(sim, "projects/303", NETWORKS)) == len(search(sim, "projects/tools", NETWORKS)) == 1
    assert len(search(sim, "organizations/1")) == 7


def test_pages_are_capped_and_belong_to_their_own_request(sim: GoogleSim) -> None:
    for number in range(12):
        sim.add(TOPICS, f"t{number:02}", "tools")
    sim.page_cap = 5
    found = search(sim, "projects/tools", TOPICS, order_by="name", page_size=1000)
    assert [each.display_name for each in found] == [f"t{number:02}" for number in range(12)]
    assert [call.status for call in sim.calls] == [200, 200, 200]
    token = sim.calls[-1].query["pageToken"][0]
    with pytest.raises(BadRequest, match="other parameters"):
        search(sim, "projects/tools", TOPICS, order_by="name DESC", page_size=1000, page_token=token)


def test_results_come_in_the_order_that_was_asked_for(sim: GoogleSim) -> None:
    for project in ("app-prod", "app-test", "tools"):
        sim.add(TOPICS, "t", project)
        sim.add(NETWORKS, "n", project)
    found = search(sim, "organizations/1", TOPICS, NETWORKS, order_by="project DESC, assetType")
    assert [(each.project, each.asset_type) for each in found] == [
        (f"projects/{number}", kind) for number in (303, 302, 301) for kind in (NETWORKS, TOPICS)
    ]
    with pytest.raises(BadRequest, match="order_by"):
        search(sim, "organizations/1", TOPICS, order_by="labels")


def test_a_type_that_the_search_does_not_know_is_refused(sim: GoogleSim) -> None:
    with pytest.raises(BadRequest, match=r"compute\.googleapis\.com/Machine"):
        search(sim, "organizations/1", "compute.googleapis.com/Machine")


def test_a_search_takes_a_query_and_a_mask(sim: GoogleSim) -> None:
    sim.add(TOPICS, "one", "tools", labels={"goog-terraform-provisioned": "true"})
    sim.add(TOPICS, "two", "tools")
    (found,) = search(sim, "projects/tools", TOPICS, query="labels.goog-terraform-provisioned:true", read_mask="name")
    assert (found.name, found.asset_type) == ("//pubsub.googleapis.com/projects/tools/topics/one", "")


def test_names_can_carry_numbers_alone(sim: GoogleSim) -> None:
    sim.add(NETWORKS, "n", "tools")
    sim.add("secretmanager.googleapis.com/Secret", "s", "tools")
    (secret,) = search(sim, "projects/tools", "secretmanager.googleapis.com/Secret")
    assert secret.name == "//secretmanager.googleapis.com/projects/303/secrets/s"
    sim.number_only = True
    (network,) = search(sim, "projects/tools", NETWORKS)
    assert network.name == "//compute.googleapis.com/projects/303/global/networks/n"
    assert network.parent_full_resource_name == "//cloudresourcemanager.googleapis.com/projects/303"


def test_the_index_lags_behind_and_the_service_does_not(sim: GoogleSim) -> None:
    sim.clock.stand(MOMENT)
    sim.lag(60, deletions=120)
    assert call(sim, "PUT", "/pubsub/v1/projects/tools/topics/t", {})[0] == 200
    assert search(sim, "projects/tools", TOPICS) == []
    sim.clock.advance(60)
    assert len(search(sim, "projects/tools", TOPICS)) == 1
    assert call(sim, "DELETE", "/pubsub/v1/projects/tools/topics/t")[0] == 200
    assert call(sim, "GET", "/pubsub/v1/projects/tools/topics/t")[0] == 404
    sim.clock.advance(119)
    assert len(search(sim, "projects/tools", TOPICS)) == 1
    sim.clock.advance(1)
    assert search(sim, "projects/tools", TOPICS) == []


def test_a_refused_project_refuses_its_own_searches_alone(sim: GoogleSim) -> None:
    sim.add(TOPICS, "t", "tools")
    sim.deny("projects/tools")
    with pytest.raises(Forbidden, match="projects/tools"):
        search(sim, "projects/tools", TOPICS)
    assert call(sim, "GET", "/pubsub/v1/projects/tools/topics/t")[0] == 403
    assert call(sim, "GET", "/v3/liens?parent=projects/303")[0] == 403
    assert len(search(sim, "organizations/1", TOPICS)) == 1
    assert call(sim, "GET", "/v3/projects/tools")[1]["projectId"] == "tools"
    sim.deny("organizations/1")
    with pytest.raises(Forbidden):
        search(sim, "organizations/1", TOPICS)
    sim.allow("projects/tools")
    assert len(search(sim, "projects/tools", TOPICS)) == 1


def test_a_hidden_project_is_not_told_by_resource_manager(sim: GoogleSim) -> None:
    sim.add(TOPICS, "t", "tools")
    sim.hide("projects/tools")
    found = client(sim, resourcemanager_v3.ProjectsClient).search_projects()
    assert sorted(each.project_id for each in found) == ["app-prod", "app-test"]
    assert call(sim, "GET", "/v3/projects/tools")[0] == call(sim, "GET", "/v3/projects/never-was")[0] == 403
    assert [each.project for each in search(sim, "organizations/1", TOPICS)] == ["projects/303"]


def test_a_quota_is_of_one_consumer_and_one_minute(sim: GoogleSim) -> None:
    sim.clock.stand(MOMENT)
    sim.quota(2)
    for _ in range(2):
        search(sim, "projects/tools", TOPICS)
    with pytest.raises(TooManyRequests, match="Quota exceeded"):
        search(sim, "projects/tools", TOPICS)
    path = "/v1/projects/tools:searchAllResources"
    assert call(sim, "GET", path, **{"X-Goog-User-Project": "other"})[0] == 200
    sim.clock.advance(60)
    search(sim, "projects/tools", TOPICS)


def test_the_next_calls_fail_as_often_as_said(sim: GoogleSim) -> None:
    sim.fail_next("/pubsub/*", 503, 2, method="PUT")
    statuses = [call(sim, "PUT", "/pubsub/v1/projects/tools/topics/t", {})[0] for _ in range(3)]
    assert statuses == [503, 503, 200]


def test_a_token_is_asked_for_and_can_be_had(sim: GoogleSim) -> None:
    sim.token = "secret"
    assert call(sim, "GET", "/v3/projects:search")[0] == 401
    token = call(sim, "POST", "/token", {})[1]["access_token"]
    assert call(sim, "GET", "/v3/projects:search", Authorization=f"Bearer {token}")[0] == 200


NAMES = {"cluster": "c1", "instance": "i1", "ring": "k1", "dataset": "d1", "secret": "s1", "zone": "z1"}
ORDINARY = [kind for kind in KINDS if "{project}" in kind.path or kind.service == "storage"]


@pytest.mark.parametrize("kind", ORDINARY, ids=lambda kind: kind.type)
def test_every_kind_is_searched_read_and_deleted_under_its_own_names(sim: GoogleSim, kind: Kind) -> None:
    sim.add("google_service_account", "builder", "tools", unique_id="777")
    name = sim.add(kind.type, "x", "tools", account="builder", record="www.example.com.", **NAMES, created=MOMENT)
    if kind.asset_type:
        (told,) = [each for each in search(sim, "projects/tools", kind.asset_type) if each.display_name != "builder"][
            :1
        ]
        assert told.asset_type == kind.asset_type
        assert told.name.replace("projects/303/", "projects/tools/") == name
        assert bool(told.create_time) == bool(kind.created)
    service, _, path = sim.thing(name).key.partition("/")
    read = call(sim, "GET", f"/{service}/v1/{path}")
    assert read[0] == 200
    if kind.created and kind.service != "bigquery":
        assert "2026-03-01T12:00:00" in json.dumps(read[1])
    assert call(sim, "DELETE", f"/{service}/v1/{path}")[0] == 200
    assert call(sim, "GET", f"/{service}/v1/{path}")[0] == 404
    assert not sim.exists(name)


CREATIONS = {
    "google_compute_network": ("POST", "/compute/v1/projects/tools/global/networks", {"name": "new"}),
    "google_compute_instance": ("POST", "/compute/v1/projects/tools/zones/europe-west1-b/instances", {"name": "new"}),
    "google_storage_bucket": ("POST", "/storage/v1/b?project=tools", {"name": "new", "location": "US"}),
    "google_pubsub_topic": ("PUT", "/pubsub/v1/projects/tools/topics/new", {}),
    "google_service_account": ("POST", "/iam/v1/projects/tools/serviceAccounts", {"accountId": "new"}),
    "google_secret_manager_secret": ("POST", "/secretmanager/v1/projects/tools/secrets?secretId=new", {}),
    "google_sql_database_instance": ("POST", "/sql/v1beta4/projects/tools/instances", {"name": "new"}),
    "google_dns_managed_zone": ("POST", "/dns/v1/projects/tools/managedZones", {"name": "new"}),
    "google_project": ("POST", "/v3/projects", {"projectId": "new", "parent": "folders/20"}),
    "google_folder": ("POST", "/v3/folders", {"displayName": "new", "parent": "organizations/1"}),
}


@pytest.mark.parametrize("kind", CREATIONS)
def test_a_create_is_searched_for_audited_and_refused_the_second_time(sim: GoogleSim, kind: str) -> None:
    before = set(sim.names(kind))
    method, path, body = CREATIONS[kind]
    assert call(sim, method, path, body, **{"User-Agent": "Terraform/1.11.4 op-1"})[0] == 200
    (made,) = set(sim.names(kind)) - before
    assert made.replace("projects/tools/", "projects/303/") in {
        each.name.replace("projects/tools/", "projects/303/") for each in search(sim, "organizations/1")
    }
    place = {"google_project": "projects/new", "google_folder": "organizations/1"}.get(kind, "projects/tools")
    asked = {"resourceNames": [place], "filter": 'protoPayload.requestMetadata.callerSuppliedUserAgent:"op-1"'}
    (entry,) = call(sim, "POST", "/v2/entries:list", asked)[1]["entries"] if kind != "google_folder" else [{}]
    assert kind == "google_folder" or entry["protoPayload"]["authenticationInfo"]["principalEmail"] == sim.principal
    if kind == "google_folder":
        return
    status, refused = call(sim, method, path, body)
    assert (status, refused["error"]["errors"][0]["reason"]) == (409, "alreadyExists")


def test_what_is_used_or_full_stays(sim: GoogleSim) -> None:
    network = sim.add(NETWORKS, "n", "tools")
    sim.add("google_compute_subnetwork", "s", "tools", data={"network": "https://x/projects/tools/global/networks/n"})
    sim.add("google_storage_bucket", "full", "tools", data={"objects": ["a"]})
    status, refused = call(sim, "DELETE", "/compute/v1/projects/tools/global/networks/n")
    assert (status, refused["error"]["errors"][0]["reason"]) == (400, "resourceInUseByAnotherResource")
    assert call(sim, "DELETE", "/storage/v1/b/full")[0] == 409
    assert sim.exists(network)


def test_labels_are_changed(sim: GoogleSim) -> None:
    sim.add("google_compute_instance", "web", "tools", labels={"a": "1"})
    sim.add(TOPICS, "t", "tools")
    path = "/compute/v1/projects/tools/zones/europe-west1-b/instances/web"
    assert call(sim, "POST", f"{path}/setLabels", {"labels": {"b": "2"}})[1]["status"] == "DONE"
    body = {"topic": {"labels": {"c": "3"}}, "updateMask": "labels"}
    assert call(sim, "PATCH", "/pubsub/v1/projects/tools/topics/t", body)[0] == 200
    sim.add("google_storage_bucket", "files", "tools", labels={"d": "4", "e": "5"})
    assert call(sim, "PATCH", "/storage/v1/b/files", {"labels": {"d": None, "f": "6"}})[1]["labels"] == {
        "e": "5",
        "f": "6",
    }
    labels = [dict(each.labels) for each in search(sim, "projects/tools", TOPICS, ".*/Instance", order_by="assetType")]
    assert labels == [{"b": "2"}, {"c": "3"}]


def test_projects_and_service_accounts_come_back(sim: GoogleSim) -> None:
    assert call(sim, "POST", "/v3/liens", {"parent": "projects/tools", "restrictions": ["x"]})[0] == 200
    assert call(sim, "DELETE", "/v3/projects/tools")[0] == 400
    (lien,) = call(sim, "GET", "/v3/liens?parent=projects/303")[1]["liens"]
    assert call(sim, "DELETE", f"/v3/{lien['name']}")[0] == 200
    assert call(sim, "DELETE", "/v3/projects/tools")[1]["response"]["state"] == "DELETE_REQUESTED"
    assert call(sim, "GET", "/pubsub/v1/projects/tools/topics")[0] == 403
    (asset,) = search(sim, "projects/tools", "cloudresourcemanager.googleapis.com/Project")
    assert asset.state == "DELETE_REQUESTED"
    projects = client(sim, resourcemanager_v3.ProjectsClient)
    assert projects.undelete_project(name="projects/303").result().project_id == "tools"
    sim.add("google_service_account", "builder", "tools", unique_id="777")
    account = "/iam/v1/projects/tools/serviceAccounts"
    assert call(sim, "DELETE", f"{account}/builder@tools.iam.gserviceaccount.com")[0] == 200
    assert call(sim, "POST", f"{account}/777:undelete", {})[0] == 200
    assert call(sim, "GET", "/iam/v1/projects/-/serviceAccounts/777")[1]["uniqueId"] == "777"


def test_tags_are_listed_by_their_parents(sim: GoogleSim) -> None:
    keys, values = (
        client(sim, kind) for kind in (resourcemanager_v3.TagKeysClient, resourcemanager_v3.TagValuesClient)
    )
    key = keys.create_tag_key(tag_key={"parent": "organizations/1", "short_name": "env"}).result()
    value = values.create_tag_value(tag_value={"parent": key.name, "short_name": "prod"}).result()
    bindings = client(sim, resourcemanager_v3.TagBindingsClient)
    parent = "//cloudresourcemanager.googleapis.com/projects/303"
    made = bindings.create_tag_binding(tag_binding={"parent": parent, "tag_value": value.name}).result()
    assert [each.name for each in keys.list_tag_keys(parent="organizations/1")] == [key.name]
    assert [each.short_name for each in values.list_tag_values(parent=key.name)] == ["prod"]
    by_id = "//cloudresourcemanager.googleapis.com/projects/tools"
    assert [each.name for each in bindings.list_tag_bindings(parent=by_id)] == [made.name]
    bindings.delete_tag_binding(name=made.name).result()
    assert list(bindings.list_tag_bindings(parent=parent)) == []


def test_children_without_an_asset_type_are_listed_by_their_parents(sim: GoogleSim) -> None:
    sim.add("google_sql_database_instance", "i1", "tools")
    sim.add("google_sql_database", "one", "tools", instance="i1")
    sim.add("google_sql_user", "root", "tools", instance="i1")
    sim.add("google_dns_managed_zone", "z1", "tools")
    sim.add("google_dns_record_set", "A", "tools", zone="z1", record="www.example.com.")
    sim.add("google_service_account", "builder", "tools")
    sim.add("google_service_account_key", "k", "tools", account="builder")
    instance = "/sql/v1beta4/projects/tools/instances/i1"
    assert [each["name"] for each in call(sim, "GET", f"{instance}/databases")[1]["items"]] == ["one"]
    assert [each["name"] for each in call(sim, "GET", f"{instance}/users")[1]["items"]] == ["root"]
    assert call(sim, "GET", "/sql/v1beta4/projects/tools/instances/i2/users")[0] == 404
    (record,) = call(sim, "GET", "/dns/v1/projects/tools/managedZones/z1/rrsets")[1]["rrsets"]
    assert (record["name"], record["type"]) == ("www.example.com.", "A")
    account = "builder@tools.iam.gserviceaccount.com"
    assert len(call(sim, "GET", f"/iam/v1/projects/tools/serviceAccounts/{account}/keys")[1]["keys"]) == 1


def test_list_assets_tells_what_the_service_tells(sim: GoogleSim) -> None:
    sim.add(NETWORKS, "n", "tools", data={"autoCreateSubnetworks": True})
    request = {"parent": "projects/tools", "asset_types": [NETWORKS], "content_type": "RESOURCE"}
    (found,) = client(sim, asset_v1.AssetServiceClient).list_assets(request=request)
    assert found.resource.data["autoCreateSubnetworks"] is True
    assert list(found.ancestors) == ["projects/303", "organizations/1"]


def test_audit_entries_are_filtered_and_paged(sim: GoogleSim) -> None:
    for number in range(3):
        sim.add(
            TOPICS, f"t{number}", "tools", created=MOMENT, by="someone@example.com", user_agent=f"Terraform op-{number}"
        )
    asked = {"resourceNames": ["projects/tools"], "pageSize": 2, "orderBy": "timestamp desc"}
    first = call(sim, "POST", "/v2/entries:list", asked)[1]
    second = call(sim, "POST", "/v2/entries:list", {**asked, "pageToken": first["nextPageToken"]})[1]
    assert len(first["entries"] + second["entries"]) == 3
    text = (
        'protoPayload.resourceName=("projects/tools/topics/t1") AND timestamp>="2026-03-01T00:00:00Z" -severity=ERROR'
    )
    (entry,) = call(sim, "POST", "/v2/entries:list", {**asked, "filter": text})[1]["entries"]
    assert entry["protoPayload"]["requestMetadata"]["callerSuppliedUserAgent"] == "Terraform op-1"
    assert call(sim, "POST", "/v2/entries:list", {**asked, "filter": "severity="})[0] == 400


def test_made_up_objects_are_searched_in_order_and_never_kept(sim: GoogleSim) -> None:
    sim.add(TOPICS, "real", "tools")
    sim.make_up(TOPICS, ["tools", "app-prod"], 400_000)
    sim.make_up(NETWORKS, ["tools"], 200_000)
    assets = client(sim, asset_v1.AssetServiceClient)
    request = {"scope": "organizations/1", "asset_types": [TOPICS], "order_by": "project", "page_size": 500}
    pages = assets.search_all_resources(request=request).pages
    page = next(pages)
    assert {each.project for each in page.results} == {"projects/301"}
    assert (len(page.results), page.results[7].display_name) == (500, "made-up-0000007")
    assert page.results[7].name == "//pubsub.googleapis.com/projects/app-prod/topics/made-up-0000007"
    last = sim._world.search("organizations/1", [TOPICS, NETWORKS], "", "project", 999_900, 500, None)
    assert (len(last.results), last.end, last.more) == (101, 1_000_001, False)
    assert len(sim._world.things) < 20


def test_settings_of_the_provider_lead_here(sim: GoogleSim) -> None:
    assert sim.endpoints["compute_custom_endpoint"] == f"{sim.url}/compute/v1/"
    assert len(sim.endpoints) == len(ENDPOINTS)


def test_another_process_is_told_where_and_can_add(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fixtures.google_sim", "--output", str(tmp_path / "where.json")]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        url = json.loads(process.stdout.readline())["google"]
        process.stdout.close()

        def do(name: str, /, **arguments: Any) -> Any:
            request = urllib.request.Request(f"{url}/_sim/{name}", data=json.dumps(arguments).encode(), method="POST")
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)["result"]

        do("add_project", id="far", number=5)
        name = do("add", kind=TOPICS, name="t", project="far", created="2026-03-01T12:00:00Z")
        assert do("names", kind=TOPICS) == [name]
        do("page_cap", value=3)
        do("deny", what="projects/far")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{url}/pubsub/v1/projects/far/topics/t", timeout=30)
        assert [each["status"] for each in do("calls")] == [403]
        assert json.loads((tmp_path / "where.json").read_text())["google"] == url
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_the_labelled_organization_is_all_there_and_written_down(sim: GoogleSim, tmp_path: Path) -> None:
    sim.reset()
    made = build(sim)
    assert len(made.known) == OBJECTS and len({one.asset for one in made.known}) == OBJECTS
    assert len(PROJECTS) == len(list(client(sim, resourcemanager_v3.ProjectsClient).search_projects())) == 12
    assert 20 <= len(made.orphans) <= 25
    assert {kind.type for kind in KINDS} - {one.type for one in made.known} == {"google_organization"}
    with pytest.raises(Forbidden):
        search(sim, ORGANIZATION)
    with pytest.raises(Forbidden):
        search(sim, f"projects/{made.denied}")
    states = made.write(tmp_path)
    assert len(states) == 5
    written = [json.loads(path.read_text())["resources"] for path in states]
    assert sum(map(len, written)) == len(made.of(Why.MANAGED)) + 1  # one lies in the project without permission
    sim.allow(ORGANIZATION)
    found = [each.name for each in search(sim, ORGANIZATION, page_size=500)]
    listed_elsewhere = sum(not BY_TYPE[one.type].asset_type for one in made.known)
    assert len(found) == len(set(found)) == OBJECTS - listed_elsewhere + 1  # the organization itself
    assert len(list(tmp_path.glob("*/terraform.tfstate.tfguard"))) == 2
