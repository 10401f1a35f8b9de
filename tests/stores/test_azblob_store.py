"""What the Azure Blob store does when Azure refuses, cannot be reached, or loses an answer, and how it signs in."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import ServiceResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import BlobLeaseClient, ContainerClient, ContainerSasPermissions, generate_container_sas

from fixtures.azure_sim import (
    ACCOUNT,
    ACCOUNT_KEY,
    CLIENT,
    CLIENT_SECRET,
    GROUP,
    SUBSCRIPTION,
    TENANT,
    AzureServer,
    make_certificate,
)
from fixtures.record_servers import new_name
from tfguard.errors import BusyStoreError, ConflictError, RecordError
from tfguard.stores.azblob import AzureContainer
from tfguard.stores.azblob_client import backend_store, container_client
from tfguard.stores.azblob_login import credential, resolved
from tfguard.stores.common import ATTEMPTS, CONNECT_SECONDS, READ_SECONDS
from tfguard.stores.objects import ObjectStore
from tfguard.stores.urls import open_store

_PREFIX = "state.tfguard"
_SECRETS = (ACCOUNT_KEY, CLIENT_SECRET, "sig=")
_PRINCIPAL = {"tenant_id": TENANT, "client_id": CLIENT, "client_secret": CLIENT_SECRET}
_LOOK_UP = {**_PRINCIPAL, "subscription_id": SUBSCRIPTION, "resource_group_name": GROUP}


@pytest.fixture(autouse=True)
def _no_azure_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    prefixes = ("ARM_", "AZURE_", "ACTIONS_", "SYSTEM_", "NO_PROXY", "HTTPS_PROXY")
    for name in [name for name in os.environ if name.upper().startswith(prefixes)]:
        monkeypatch.delenv(name)


@pytest.fixture
def settings(azure_server: AzureServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What opens a new container with the account's key."""
    monkeypatch.setenv("SSL_CERT_FILE", str(azure_server.certificate))
    made = {"storage_account_name": ACCOUNT, "container_name": new_name("records"), "access_key": ACCOUNT_KEY}
    azure_server.container(made["container_name"]).create_container()
    return {**made, "blob_endpoint": azure_server.endpoint}


@pytest.fixture
def store(settings: dict[str, str]) -> ObjectStore:
    return backend_store(settings, _PREFIX)


@pytest.fixture
def by_name(settings: dict[str, str], azure_server: AzureServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The same container by Azure's own host names, without any credential."""
    for name, value in azure_server.environment.items():
        monkeypatch.setenv(name, value)
    azure_server.calls.clear()
    return {name: settings[name] for name in ("storage_account_name", "container_name")}


@pytest.fixture
def lose(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Lose the first answer to a request with a method, after the service has done what it asks."""
    send = RequestsTransport.send

    def arm(method: str) -> list[str]:
        lost: list[str] = []

        def losing(self: RequestsTransport, request: Any, **options: Any) -> Any:
            answer = send(self, request, **options)
            if request.method == method and not lost:
                lost.append(request.url)
                raise ServiceResponseError("the answer is lost")
            return answer

        monkeypatch.setattr(RequestsTransport, "send", losing)
        return lost

    return arm


def test_a_create_whose_answer_was_lost_is_ours(store: ObjectStore, lose: Callable[[str], list[str]]) -> None:
    lost = lose("PUT")
    store.create("head.json", b"1")
    assert len(lost) == 1
    assert _read(store, "head.json") == b"1"


def test_a_replace_whose_answer_was_lost_is_ours(store: ObjectStore, lose: Callable[[str], list[str]]) -> None:
    store.create("head.json", b"1")
    blob = store.read("head.json")
    assert blob is not None
    lost = lose("PUT")
    store.replace("head.json", b"2", blob.version)
    assert len(lost) == 1
    assert _read(store, "head.json") == b"2"


def test_an_append_whose_answer_was_lost_is_written_once(store: ObjectStore, lose: Callable[[str], list[str]]) -> None:
    store.append("events.jsonl", b"1\n")
    lost = lose("PUT")
    store.append("events.jsonl", b"2\n")
    store.append("events.jsonl", b"3\n")
    assert len(lost) == 1
    assert store.read_journal("events.jsonl") == b"1\n2\n3\n"


def test_a_removal_whose_answer_was_lost_is_done(store: ObjectStore, lose: Callable[[str], list[str]]) -> None:
    store.create("head.json", b"1")
    lost = lose("DELETE")
    store.remove("head.json", b"1")
    assert len(lost) == 1
    assert store.read("head.json") is None


def test_a_lost_answer_does_not_hide_that_another_was_first(
    store: ObjectStore, settings: dict[str, str], lose: Callable[[str], list[str]]
) -> None:
    backend_store(settings, _PREFIX).create("head.json", b"theirs")
    lost = lose("PUT")
    with pytest.raises(ConflictError):
        store.create("head.json", b"ours")
    assert len(lost) == 1
    assert _read(store, "head.json") == b"theirs"


def test_of_many_threads_exactly_one_replaces(settings: dict[str, str]) -> None:
    backend_store(settings, _PREFIX).create("head.json", b"start")
    blob = backend_store(settings, _PREFIX).read("head.json")
    assert blob is not None
    version = blob.version
    start = threading.Barrier(24)

    def write(number: int) -> bool:
        store = backend_store(settings, _PREFIX)
        start.wait()
        try:
            store.replace("head.json", b"by %d" % number, version)
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(24) as pool:
        won = [number for number, mine in enumerate(pool.map(write, range(24))) if mine]
    assert len(won) == 1
    assert _read(backend_store(settings, _PREFIX), "head.json") == b"by %d" % won[0]


def test_of_processes_that_race_to_create_exactly_one_wins(
    settings: dict[str, str], azure_server: AzureServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARM_ACCESS_KEY", ACCOUNT_KEY)
    endpoint = urllib.parse.quote(azure_server.endpoint, safe="")
    url = f"azblob://{ACCOUNT}/{settings['container_name']}/race?endpoint={endpoint}"
    script = (
        "import sys\n"
        "from tfguard.errors import ConflictError\n"
        "from tfguard.stores.urls import open_store\n"
        "store = open_store(sys.argv[1]); store.read('head.json')\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "try: store.create('head.json', sys.argv[2].encode()); print('won')\n"
        "except ConflictError: print('lost')\n"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", script, url, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate(timeout=120)[0].strip() for racer in racers]
    assert sorted(answers) == ["lost", "lost", "lost", "won"]
    assert _read(open_store(url), "head.json") == b"%d" % answers.index("won")


def test_a_container_that_is_not_there_is_named(settings: dict[str, str]) -> None:
    store = backend_store({**settings, "container_name": "absent"}, _PREFIX)
    error = _error(lambda: store.create("head.json", b"1"))
    assert error.what == f"cannot write the record azblob://{ACCOUNT}/absent/state.tfguard/head.json: ContainerNotFound"
    assert error.advice.startswith("create the container absent")
    for call in (lambda: store.read("head.json"), lambda: store.names(""), store.now):
        assert "ContainerNotFound" in _error(call).what


def test_a_wrong_key_is_an_error_and_never_no_record(settings: dict[str, str]) -> None:
    store = backend_store({**settings, "access_key": "d3Jvbmc="}, _PREFIX)
    for call in (lambda: store.read("head.json"), lambda: store.names(""), lambda: store.create("head.json", b"1")):
        error = _error(call)
        assert "InvalidAuthenticationInfo" in error.what  # Azure itself says AuthenticationFailed
        assert error.advice.startswith("renew the Azure credentials")
        assert error.exit_code == 10


def test_a_sas_token_that_may_not_write_is_told_what_is_missing(settings: dict[str, str]) -> None:
    store = backend_store(_with_sas(settings, "rl"), _PREFIX)
    assert store.read("head.json") is None
    error = _error(lambda: store.create("head.json", b"1"))
    assert f"the role Storage Blob Data Contributor on the container {settings['container_name']}" in error.advice
    assert f"the firewall of the storage account {ACCOUNT}" in error.advice


def test_a_sas_token_for_the_container_alone_suffices(settings: dict[str, str]) -> None:
    store = backend_store(_with_sas(settings, "rcwdl"), _PREFIX)
    store.create("head.json", b"1")
    store.append("events.jsonl", b"1\n")
    assert list(store.names("")) == ["events.jsonl", "head.json"]
    store.remove("head.json", b"1")
    assert store.now() is not None


def test_an_expired_sas_token_is_told_without_it(settings: dict[str, str]) -> None:
    store = backend_store(_with_sas(settings, "rcwdl", timedelta(hours=-1)), _PREFIX)
    error = _error(lambda: store.read("head.json"))
    assert "AuthorizationFailure" in error.what  # Azure itself says AuthenticationFailed
    assert "has not expired" in error.advice


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (403, "AuthenticationFailed", "renew the Azure credentials"),
        (403, "AuthorizationPermissionMismatch", "Storage Blob Data Contributor"),
        (403, "AuthorizationFailure", "firewall"),
        (403, "", "Storage Blob Data Contributor"),
        (403, "KeyBasedAuthenticationNotPermitted", "use_azuread_auth"),
        (409, "BlobImmutableDueToPolicy", "let the storage account"),
        (404, "", "exists"),
        (404, "ResourceNotFound", "exists"),
        (400, "", "check"),
        (302, "", "check"),
        (200, "", "check"),
        (429, "", "check"),
        (503, "ServerBusy", "check"),
    ],
)
def test_what_a_service_refuses_is_told_with_what_to_do(
    settings: dict[str, str], status: int, code: str, advice: str
) -> None:
    with _answering(status, code) as url:
        store = backend_store({**settings, "blob_endpoint": url}, _PREFIX)
        for call in (
            lambda: store.read("head.json"),
            lambda: store.names(""),
            lambda: store.create("head.json", b"1"),
            store.now,
        ):
            error = _error(call)
            assert advice in error.advice
            assert code in error.what
            assert isinstance(error, BusyStoreError) == (status in (429, 503))


def test_a_lease_on_a_record_is_told(settings: dict[str, str], store: ObjectStore, azure_server: AzureServer) -> None:
    store.create("head.json", b"1")
    blob = store.read("head.json")
    assert blob is not None
    client = azure_server.container(settings["container_name"]).get_blob_client("state.tfguard/head.json")
    BlobLeaseClient(client).acquire()
    error = _error(lambda: store.replace("head.json", b"2", blob.version))
    assert "LeaseIdMissing" in error.what
    assert error.advice.startswith("break the lease")
    assert _read(store, "head.json") == b"1"


def test_an_endpoint_that_cannot_be_reached_is_told_in_one_line_within_a_bound(settings: dict[str, str]) -> None:
    sas = {**_with_sas(settings, "rcwdl"), "blob_endpoint": f"http://127.0.0.1:9/{ACCOUNT}"}
    began = time.monotonic()
    error = _error(lambda: backend_store(sas, _PREFIX).create("head.json", b"1"))
    assert time.monotonic() - began < 60
    assert not isinstance(error, BusyStoreError)
    assert "ServiceRequestError" in error.what
    assert f"the storage account {ACCOUNT} exists" in error.advice


def test_an_account_that_is_not_there_is_told_in_one_line(by_name: dict[str, str]) -> None:
    wrong = {**by_name, "storage_account_name": "nosuchaccount", "access_key": ACCOUNT_KEY}
    error = _error(lambda: backend_store(wrong, _PREFIX).read("head.json"))
    assert "the storage account nosuchaccount exists" in error.advice


def test_a_server_that_is_not_trusted_is_told_in_one_line(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(make_certificate(tmp_path).certificate))
    assert "CERTIFICATE_VERIFY_FAILED" in _error(lambda: store.read("head.json")).what


@pytest.mark.parametrize(
    "wrong",
    [
        {"access_key": "no base64"},
        {"environment": "mars", "blob_endpoint": ""},
        {"container_name": ""},
        {"storage_account_name": ""},
        {"access_key": "", **_PRINCIPAL, "client_certificate_path": "/nonexistent.pem", "use_azuread_auth": "true"},
        {"access_key": "", **_PRINCIPAL, "client_certificate": "!", "use_azuread_auth": "true"},
        {"access_key": "", "client_secret_file_path": "/nonexistent"},
        {"access_key": "", "tenant_id": "no tenant", "client_id": "c", "client_secret": "s", "use_azuread_auth": "1"},
    ],
)
def test_settings_that_the_library_refuses_are_told_in_one_line(
    settings: dict[str, str], wrong: Mapping[str, str]
) -> None:
    _error(lambda: backend_store({**settings, **wrong}, _PREFIX).create("head.json", b"1"))


def test_a_file_with_a_token_that_is_gone_when_it_is_needed_is_told_in_one_line(
    by_name: dict[str, str], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    by_oidc = {"tenant_id": TENANT, "client_id": CLIENT, "use_oidc": "true", "use_azuread_auth": "true"}
    store = backend_store({**by_name, **by_oidc, "oidc_token_file_path": str(token)}, _PREFIX)
    error = _error(lambda: store.read("head.json"))
    assert str(token) in error.what
    assert "renew the Azure credentials" in error.advice


def test_a_managed_identity_is_asked_for_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}
    monkeypatch.setattr("azure.identity.ManagedIdentityCredential", lambda **options: given.update(options))
    credential({"use_msi": "true"}, "login.microsoftonline.com")
    assert (given["connection_timeout"], given["read_timeout"]) == (CONNECT_SECONDS, READ_SECONDS)
    assert given["retry_total"] == ATTEMPTS - 1


def test_without_the_library_the_user_learns_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("azure.core.exceptions", "azure.storage.blob", "azure.identity"):
        monkeypatch.setitem(sys.modules, name, None)
    error = _error(lambda: backend_store({"storage_account_name": "a", "container_name": "c"}, "p").read("head.json"))
    assert "pip install azure-storage-blob azure-identity" in error.advice


def test_the_library_is_imported_only_when_it_is_used() -> None:
    script = (
        "import sys, tfguard.stores.urls as urls\n"
        "urls.open_store('azblob://account/container/p').location\n"
        "sys.exit(any(name.startswith(('azure', 'msal')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


def test_the_library_logs_nothing_by_itself(settings: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    store = backend_store({**settings, "access_key": "", "use_azuread_auth": "true", "use_cli": "true"}, _PREFIX)
    _error(lambda: store.read("head.json"))
    assert capfd.readouterr() == ("", "")
    assert not logging.getLogger("azure.identity").isEnabledFor(logging.WARNING)


def test_directories_of_a_hierarchical_account_are_no_documents(
    store: ObjectStore, settings: dict[str, str], azure_server: AzureServer
) -> None:
    store.create("operations/1/intent.json", b"1")
    for directory in ("operations", "operations/1"):
        azure_server.container(settings["container_name"]).upload_blob(
            f"{_PREFIX}/{directory}", b"", metadata={"hdi_isfolder": "true"}
        )
    assert list(store.names("")) == ["operations/1/intent.json"]


def test_names_and_journals_are_whole_beyond_one_page(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    list_blobs = ContainerClient.list_blobs

    def small_pages(self: ContainerClient, **options: Any) -> Any:
        return list_blobs(self, **{**options, "results_per_page": 2})

    monkeypatch.setattr(ContainerClient, "list_blobs", small_pages)
    for number in range(1, 8):
        store.append("e", b"%d\n" % number)
    for name in ("a", "b", "c"):
        store.create(name, b"")
    assert store.read_journal("e") == b"".join(b"%d\n" % number for number in range(1, 8))
    assert list(store.names("")) == ["a", "b", "c", "e"]


def test_a_name_with_signs_of_a_url_is_kept_as_it_is(settings: dict[str, str]) -> None:
    prefix = "a b/50%/ä?#.tfstateenv:dev.tfguard"
    store = backend_store(settings, prefix)
    store.create("head.json", b"1")
    assert list(store.names("")) == ["head.json"]
    assert _read(store, "head.json") == b"1"


def test_an_identity_with_a_role_on_the_blobs_signs_in(by_name: dict[str, str], azure_server: AzureServer) -> None:
    store = backend_store({**by_name, **_PRINCIPAL, "use_azuread_auth": "true"}, _PREFIX)
    store.create("head.json", b"1")
    assert _read(store, "head.json") == b"1"
    assert f"POST /{TENANT}/oauth2/v2.0/token" in azure_server.calls
    assert not any("listKeys" in call for call in azure_server.calls)


def test_an_identity_in_the_environment_is_taken_as_by_the_engine(
    by_name: dict[str, str], azure_server: AzureServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**_PRINCIPAL, "use_azuread": "true"}.items():
        monkeypatch.setenv(f"ARM_{name.upper()}", value)
    backend_store(by_name, _PREFIX).create("head.json", b"1")
    assert f"POST /{TENANT}/oauth2/v2.0/token" in azure_server.calls


def test_a_refused_sign_in_is_told_in_one_line(by_name: dict[str, str]) -> None:
    wrong = {**by_name, **_PRINCIPAL, "client_secret": "wrong", "use_azuread_auth": "true"}
    error = _error(lambda: backend_store(wrong, _PREFIX).read("head.json"))
    assert "AADSTS7000215" in error.what
    assert error.advice.startswith("renew the Azure credentials")


def test_the_key_of_the_account_is_looked_up_as_by_the_engine(
    by_name: dict[str, str], azure_server: AzureServer
) -> None:
    store = backend_store({**by_name, **_LOOK_UP}, _PREFIX)
    store.create("head.json", b"1")
    assert _read(store, "head.json") == b"1"
    assert [call for call in azure_server.calls if "listKeys" in call] == [
        f"POST /subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Storage/"
        f"storageAccounts/{ACCOUNT}/listKeys"
    ]


def test_the_endpoint_of_the_account_is_looked_up_where_the_backend_wants_it(
    by_name: dict[str, str], azure_server: AzureServer
) -> None:
    look_up = {**by_name, **_LOOK_UP, "lookup_blob_endpoint": "true", "use_azuread_auth": "true"}
    backend_store(look_up, _PREFIX).create("head.json", b"1")
    assert any(call.startswith("GET /subscriptions/") for call in azure_server.calls)
    assert not any("listKeys" in call for call in azure_server.calls)


@pytest.mark.parametrize("missing", ["subscription_id", "resource_group_name"])
def test_what_a_look_up_lacks_is_named(by_name: dict[str, str], missing: str) -> None:
    lacking = {name: value for name, value in _LOOK_UP.items() if name != missing}
    error = _error(lambda: backend_store({**by_name, **lacking}, _PREFIX).read("head.json"))
    assert f"without `{missing}`" in error.what
    assert "use_azuread_auth" in error.advice


def test_a_look_up_that_is_refused_is_told_in_one_line(by_name: dict[str, str]) -> None:
    wrong = {**by_name, **_LOOK_UP, "resource_group_name": "other"}
    error = _error(lambda: backend_store(wrong, _PREFIX).read("head.json"))
    assert error.what.startswith(f"the storage account {ACCOUNT} of the records cannot be looked up: ")


def test_a_cloud_of_its_own_is_asked_for_its_names(by_name: dict[str, str], azure_server: AzureServer) -> None:
    own = {**by_name, "metadata_host": "management.azure.com", "access_key": ACCOUNT_KEY}
    backend_store(own, _PREFIX).create("head.json", b"1")
    assert azure_server.calls == ["GET /metadata/endpoints"]


@pytest.mark.parametrize(
    ("environment", "host"),
    [
        ("", "a.blob.core.windows.net"),
        ("public", "a.blob.core.windows.net"),
        ("usgovernment", "a.blob.core.usgovcloudapi.net"),
        ("china", "a.blob.core.chinacloudapi.cn"),
    ],
)
def test_each_cloud_has_its_own_host_names(environment: str, host: str) -> None:
    place = {"storage_account_name": "a", "container_name": "c", "access_key": ACCOUNT_KEY, "environment": environment}
    assert container_client(place).url == f"https://{host}/c"


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"client_secret": "s"}, "ClientSecretCredential"),
        ({"client_secret": "s", "use_msi": "true", "use_oidc": "true", "oidc_token": "t"}, "ClientSecretCredential"),
        ({"use_oidc": "true", "oidc_token": "t", "use_msi": "true"}, "ClientAssertionCredential"),
        ({"use_oidc": "true", "oidc_token_file_path": "f"}, "ClientAssertionCredential"),
        ({"use_oidc": "true", "oidc_request_url": "u", "oidc_request_token": "t"}, "ClientAssertionCredential"),
        ({"oidc_token": "t"}, "AzureCliCredential"),
        ({"use_oidc": "true"}, "AzureCliCredential"),
        ({"use_msi": "true"}, "ManagedIdentityCredential"),
        ({}, "AzureCliCredential"),
        ({"use_cli": "false"}, "DefaultAzureCredential"),
    ],
)
def test_the_first_complete_way_to_sign_in_is_taken_in_the_engines_order(
    settings: Mapping[str, str], kind: str
) -> None:
    made = credential({"tenant_id": TENANT, "client_id": CLIENT, **settings}, "login.microsoftonline.com")
    assert type(made).__name__ == kind


def test_a_pipeline_of_azure_devops_signs_in_by_its_service_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYSTEM_OIDCREQUESTURI", "https://dev.azure.com/token")
    monkeypatch.setenv("SYSTEM_ACCESSTOKEN", "t")
    monkeypatch.setenv("ARM_OIDC_AZURE_SERVICE_CONNECTION_ID", "connection")
    settings = resolved({"tenant_id": TENANT, "client_id": CLIENT, "use_oidc": "true"})
    assert type(credential(settings, "login.microsoftonline.com")).__name__ == "AzurePipelinesCredential"


def test_a_workload_of_aks_signs_in_by_its_own_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AZURE_CLIENT_ID", CLIENT)
    monkeypatch.setenv("AZURE_TENANT_ID", TENANT)
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", str(tmp_path / "token"))
    settings = resolved({"use_aks_workload_identity": "true"})
    assert type(credential(settings, "login.microsoftonline.com")).__name__ == "ClientAssertionCredential"


def test_a_certificate_in_a_file_signs_in(tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(made.key.read_bytes() + made.certificate.read_bytes())
    settings = {"tenant_id": TENANT, "client_id": CLIENT, "client_certificate_path": str(both), "client_secret": "s"}
    assert type(credential(settings, "login.microsoftonline.com")).__name__ == "CertificateCredential"


def test_settings_come_before_the_environment_and_files_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("from-file\n")
    monkeypatch.setenv("ARM_CLIENT_SECRET_FILE_PATH", str(tmp_path / "secret"))
    monkeypatch.setenv("ARM_CLIENT_ID", "theirs")
    monkeypatch.setenv("ARM_METADATA_HOST", "old")
    found = resolved({"client_id": "ours"})
    assert (found["client_id"], found["client_secret"], found["metadata_host"]) == ("ours", "from-file", "old")


def test_a_document_that_changes_while_it_is_moved_aside_is_not_removed(
    store: ObjectStore, settings: dict[str, str], azure_server: AzureServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("head.json", b"bad")
    delete = AzureContainer.delete

    def changed_before(self: AzureContainer, key: str, version: str) -> None:
        azure_server.container(settings["container_name"]).upload_blob(key, b"repaired", overwrite=True)
        delete(self, key, version)

    monkeypatch.setattr(AzureContainer, "delete", changed_before)
    with pytest.raises(ConflictError):
        store.move_aside("head.json")
    assert _read(store, "head.json") == b"repaired"


def _with_sas(settings: Mapping[str, str], permission: str, lasts: timedelta = timedelta(hours=1)) -> dict[str, str]:
    token = generate_container_sas(
        ACCOUNT,
        settings["container_name"],
        ACCOUNT_KEY,
        permission=ContainerSasPermissions.from_string(permission),
        expiry=datetime.now(UTC) + lasts,
    )
    return {**settings, "access_key": "", "sas_token": f"?{token}"}


class _answering:
    """A server that answers everything with one status, and a code of Azure's where one is given."""

    def __init__(self, status: int, code: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(status)
                if code:
                    self.send_header("x-ms-error-code", code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_PUT = do_HEAD = do_DELETE = do_GET

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}/{ACCOUNT}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _read(store: Any, name: str) -> bytes:
    blob = store.read(name)
    assert blob is not None
    data: bytes = blob.data
    return data


def _error(call: Callable[[], object]) -> RecordError:
    with pytest.raises(RecordError) as caught:
        call()
    error = caught.value
    assert "\n" not in error.what + error.advice
    assert not any(secret in urllib.parse.unquote(error.what + error.advice) for secret in _SECRETS)
    return error
