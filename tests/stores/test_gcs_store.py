"""What the Google Cloud Storage store does when Google refuses, cannot be reached, or loses an answer."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fixtures.fault_proxy import FaultProxy
from fixtures.record_servers import GcsServer, new_name
from tfguard.errors import BusyStoreError, ConflictError, RecordError
from tfguard.stores.gcs import Access, GcsBucket
from tfguard.stores.gcs_client import backend_access, backend_store, encryption
from tfguard.stores.objects import ObjectStore
from tfguard.stores.urls import open_store

UPLOAD, CONTENT, LISTING = "/upload/*", "/download/*", "/storage/v1/b/*/o"
PREFIX = "state.tfguard"
RACER = """
import sys
from tfguard.errors import ConflictError
from tfguard.stores.urls import open_store
url, version, content = sys.argv[1:]
store = open_store(url)
store.read("other")
print("ready", flush=True)
sys.stdin.readline()
try:
    store.replace("head.json", content.encode(), version or None)
    print("won")
except ConflictError:
    print("lost")
"""


@pytest.fixture(autouse=True)
def _no_google_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_BACKEND_CREDENTIALS",
        "GOOGLE_CREDENTIALS",
        "GOOGLE_OAUTH_ACCESS_TOKEN",
        "GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT",
        "GOOGLE_STORAGE_CUSTOM_ENDPOINT",
        "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT",
        "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
        "GOOGLE_ENCRYPTION_KEY",
        "GOOGLE_KMS_ENCRYPTION_KEY",
        "STORAGE_EMULATOR_HOST",
    ):
        monkeypatch.delenv(name, raising=False)
    # Neither the user's own login nor this machine's service account may be found.
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


@pytest.fixture
def gcs_proxy(gcs_server: GcsServer) -> Iterator[FaultProxy]:
    """A fault proxy before the server."""
    with FaultProxy(gcs_server.url) as running:
        yield running


@pytest.fixture
def bucket(gcs_server: GcsServer) -> str:
    """The name of an empty bucket."""
    return gcs_server.make_bucket(new_name("faulty"))


@pytest.fixture
def store(gcs_proxy: FaultProxy, bucket: str) -> ObjectStore:
    """A store that reaches Google through the fault proxy."""
    return _store(gcs_proxy.url, bucket)


def test_a_create_whose_answer_was_lost_is_ours(store: ObjectStore, gcs_proxy: FaultProxy) -> None:
    rule = gcs_proxy.add_rule("drop", method="POST", path=UPLOAD)
    store.create("head.json", b"1")
    assert rule.fired == 1
    assert _read(store, "head.json") == b"1"


def test_a_replace_whose_answer_was_lost_is_ours(store: ObjectStore, gcs_proxy: FaultProxy) -> None:
    store.create("head.json", b"1")
    blob = store.read("head.json")
    assert blob is not None
    rule = gcs_proxy.add_rule("drop", method="POST", path=UPLOAD)
    store.replace("head.json", b"2", blob.version)
    assert rule.fired == 1
    assert _read(store, "head.json") == b"2"


def test_an_append_that_was_written_and_answered_with_500_is_written_once(
    store: ObjectStore, gcs_proxy: FaultProxy
) -> None:
    store.append("events.jsonl", b"1\n")
    rule = gcs_proxy.add_rule("error:500", method="POST", path=UPLOAD, forward=True)
    store.append("events.jsonl", b"2\n")
    store.append("events.jsonl", b"3\n")
    assert rule.fired == 1
    assert store.read_journal("events.jsonl") == b"1\n2\n3\n"


def test_a_lost_answer_does_not_hide_that_another_was_first(
    store: ObjectStore, gcs_proxy: FaultProxy, gcs_server: GcsServer, bucket: str
) -> None:
    _store(gcs_server.url, bucket).create("head.json", b"theirs")
    gcs_proxy.add_rule("drop", method="POST", path=UPLOAD)
    with pytest.raises(ConflictError):
        store.create("head.json", b"ours")
    assert _read(store, "head.json") == b"theirs"


def test_a_document_too_large_for_one_request_is_written_whole_and_under_its_condition(
    gcs_server: GcsServer, bucket: str
) -> None:
    access = _access({"access_token": "testing", "storage_custom_endpoint": gcs_server.endpoint})
    store = ObjectStore(GcsBucket(bucket, PREFIX, lambda: access), PREFIX)
    state = os.urandom(9 * 1024 * 1024)
    sent = _requests(access)
    store.create("rescued.tfstate", state)
    # The server in the tests looks at the condition of small uploads alone; Google looks at this one, too.
    begun = [query for url, _ in sent if "uploadType" in (query := parse_qs(urlsplit(url).query))]
    assert begun[0]["uploadType"] == ["resumable"]
    assert begun[0]["ifGenerationMatch"] == ["0"]
    assert _read(store, "rescued.tfstate") == state


@pytest.mark.parametrize("fault", ["error:429", "error:503", "refuse", "cut"])
def test_what_may_pass_is_tried_again(store: ObjectStore, gcs_proxy: FaultProxy, fault: str) -> None:
    rules = [gcs_proxy.add_rule(fault, path=path) for path in (UPLOAD, CONTENT, LISTING)]
    store.create("head.json", b"1")
    assert _read(store, "head.json") == b"1"
    assert list(store.names("")) == ["head.json"]
    assert [rule.fired for rule in rules] == [1, 1, 1]


def test_a_document_is_read_in_one_request_with_its_version_and_time(gcs_server: GcsServer, bucket: str) -> None:
    access = _access({"access_token": "testing", "storage_custom_endpoint": gcs_server.endpoint})
    found = GcsBucket(bucket, PREFIX, lambda: access)
    found.put("k", b"1", None, "t")
    sent = _requests(access)
    blob = found.get("k")
    assert len(sent) == 1
    assert blob.data == b"1"
    stored = access.client.bucket(bucket).get_blob("k")
    assert blob.version == str(stored.generation)
    assert blob.written_at == stored.updated.replace(microsecond=0)


@pytest.mark.parametrize("replaced", [False, True])
def test_where_the_content_comes_without_its_time_the_object_is_asked_for_it(
    gcs_server: GcsServer, bucket: str, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    access = _access({"access_token": "testing", "storage_custom_endpoint": gcs_server.endpoint})
    found = GcsBucket(bucket, PREFIX, lambda: access)
    found.put("k", b"old", None, "t")
    first = found.get("k")
    access.session.hooks["response"].append(lambda answer, **_: answer.headers.pop("Last-Modified", None) and None)
    find = GcsBucket._blob
    asked: list[str] = []

    def replaced_before(self: GcsBucket, key: str, generation: int | None = None) -> object:
        asked.append(key)
        if replaced and len(asked) == 1:
            GcsBucket(bucket, PREFIX, lambda: access).put("k", b"new", first.version, "t")
        return find(self, key, generation)

    monkeypatch.setattr(GcsBucket, "_blob", replaced_before)
    blob = found.get("k")
    assert asked
    if replaced:
        assert blob.data == b"new"
        assert blob.version != first.version
    else:
        assert blob == first


def test_content_that_was_damaged_on_its_way_is_an_error(gcs_server: GcsServer, bucket: str) -> None:
    access = _access({"access_token": "testing", "storage_custom_endpoint": gcs_server.endpoint})
    found = GcsBucket(bucket, PREFIX, lambda: access)
    found.put("k", b"1", None, "t")

    def damage(answer: Any, **_: object) -> None:
        answer._content = b"2"

    access.session.hooks["response"].append(damage)
    assert "checksum" in _error(lambda: found.get("k")).what


def test_a_conflict_of_two_requests_in_flight_is_a_conflict(store: ObjectStore, gcs_proxy: FaultProxy) -> None:
    gcs_proxy.add_rule("error:409", method="POST", path=UPLOAD)
    with pytest.raises(ConflictError):
        store.create("head.json", b"1")


def test_a_refused_write_names_the_permission(store: ObjectStore, gcs_proxy: FaultProxy, bucket: str) -> None:
    gcs_proxy.add_rule("error:403", method="POST", path=UPLOAD, count=None)
    error = _error(lambda: store.create("head.json", b"1"))
    assert error.what.startswith(f"cannot write the record gs://{bucket}/state.tfguard/head.json: Forbidden: 403 ")
    assert error.advice.startswith(
        f"allow storage.objects.create and storage.objects.delete on gs://{bucket}/state.tfguard/*"
    )
    assert error.exit_code == 10


def test_a_refused_read_is_an_error_and_never_no_record(store: ObjectStore, gcs_proxy: FaultProxy) -> None:
    store.create("head.json", b"1")
    gcs_proxy.add_rule("error:403", method="GET", path=CONTENT, count=None)
    assert "storage.objects.get and storage.objects.list" in _error(lambda: store.read("head.json")).advice


def test_a_refused_list_is_an_error_and_never_no_record(store: ObjectStore, gcs_proxy: FaultProxy) -> None:
    gcs_proxy.add_rule("error:403", method="GET", path=LISTING, count=None)
    for look in (
        lambda: store.names(""),
        lambda: store.read_journal("events.jsonl"),
        lambda: store.read("head.json"),
        store.now,
    ):
        assert _error(look).advice.startswith("allow storage.objects.list on gs://")


def test_a_refused_removal_names_the_permission(store: ObjectStore, gcs_proxy: FaultProxy) -> None:
    store.create("head.json", b"1")
    gcs_proxy.add_rule("error:403", method="DELETE", count=None)
    assert "allow storage.objects.delete on " in _error(lambda: store.remove("head.json", b"1")).advice
    assert _read(store, "head.json") == b"1"


def test_a_bucket_that_is_not_there_is_named(gcs_proxy: FaultProxy) -> None:
    store = _store(gcs_proxy.url, "nowhere")
    for call in (
        lambda: store.create("head.json", b"1"),
        lambda: store.read("head.json"),
        lambda: store.names(""),
        store.now,
    ):
        error = _error(call)
        assert error.what.endswith(": there is no bucket nowhere")
        assert error.advice.startswith("create the bucket nowhere")


@pytest.mark.parametrize(
    ("status", "message", "advice"),
    [
        (400, "The target object is encrypted by a customer-supplied encryption key.", "`encryption_key`"),
        (501, "no", "try again"),
    ],
)
def test_other_answers_are_told_with_what_to_do(
    store: ObjectStore, gcs_proxy: FaultProxy, status: int, message: str, advice: str
) -> None:
    gcs_proxy.add_rule(f"error:{status}", method="POST", path=UPLOAD, message=message, count=None)
    error = _error(lambda: store.create("head.json", b"1"))
    assert message in error.what
    assert advice in error.advice


def test_an_endpoint_that_cannot_be_reached_is_told_in_one_line_and_soon() -> None:
    store = _store("http://127.0.0.1:9", "records", deadline=2)
    begun = time.monotonic()
    error = _error(lambda: store.create("head.json", b"1"))
    assert time.monotonic() - begun < 60
    assert not isinstance(error, BusyStoreError)
    assert "ConnectionError" in error.what
    assert "127.0.0.1" in error.what
    assert "check network" in error.advice


def test_a_server_that_goes_on_failing_is_given_up(gcs_proxy: FaultProxy, bucket: str) -> None:
    rule = gcs_proxy.add_rule("error:503", count=None)
    error = _error(lambda: _store(gcs_proxy.url, bucket, deadline=2).read("head.json"))
    assert isinstance(error, BusyStoreError)
    assert "ServiceUnavailable" in error.what
    assert rule.fired > 1


def test_a_token_that_has_expired_is_told(store: ObjectStore, gcs_proxy: FaultProxy) -> None:
    gcs_proxy.add_rule("error:401", count=None)
    error = _error(lambda: store.read("head.json"))
    assert "the credentials have expired or are refused" in error.what
    assert error.advice.startswith("renew the Google credentials of this run")


def test_no_credentials_at_all_are_told(gcs_proxy: FaultProxy) -> None:
    settings = {"bucket": "records", "storage_custom_endpoint": gcs_proxy.url}
    assert "credentials" in _error(lambda: backend_store(settings, PREFIX).read("head.json")).what


@pytest.mark.parametrize(
    "wrong",
    [
        {"credentials": "/nonexistent/key.json"},
        {"credentials": '{"type": "nonsense", "private_key": "hunter2"}'},
        {"credentials": '{"type": "service_account", "private_key": "hunter2'},
        {"credentials": '{"type": "authorized_user", "client_id": "i"}'},
    ],
)
def test_settings_that_google_refuses_are_told_in_one_line(
    gcs_server: GcsServer, bucket: str, wrong: Mapping[str, str]
) -> None:
    settings = {"bucket": bucket, "storage_custom_endpoint": gcs_server.endpoint, **wrong}
    error = _error(lambda: backend_store(settings, PREFIX).read("head.json"))
    assert "hunter2" not in error.what + error.advice


def test_without_the_library_the_user_learns_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.storage", None)
    monkeypatch.setitem(sys.modules, "google.cloud.storage.exceptions", None)
    error = _error(lambda: _store("http://127.0.0.1:9", "records").read("head.json"))
    assert "pip install google-cloud-storage" in error.advice


def test_the_environment_names_endpoint_and_token_as_for_the_engine(
    gcs_server: GcsServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_STORAGE_CUSTOM_ENDPOINT", "http://127.0.0.1:9/storage/v1/b")
    monkeypatch.setenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", gcs_server.endpoint)
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "testing")
    backend_store({"bucket": bucket}, PREFIX).create("head.json", b"1")
    assert gcs_server.keys(bucket) == ["state.tfguard/head.json"]


def test_an_emulator_needs_no_credentials(gcs_server: GcsServer, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs_server.url.removeprefix("http://"))
    open_store(f"gs://{bucket}/team").create("head.json", b"1")
    assert gcs_server.keys(bucket) == ["team/head.json"]


@pytest.mark.parametrize("as_file", [False, True])
def test_an_account_key_is_taken_as_text_or_as_a_file(tmp_path: Path, as_file: bool) -> None:
    key = json.dumps({"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"})
    if as_file:
        (tmp_path / "key.json").write_text(key)
    given = {"credentials": str(tmp_path / "key.json") if as_file else key}
    credentials = _access(given).session.credentials
    assert (credentials.client_id, credentials.refresh_token) == ("i", "r")


def test_another_universe_has_another_endpoint() -> None:
    access = _access({"access_token": "testing", "universe_domain": "cloud.example"})
    assert access.api == "https://storage.cloud.example"
    assert access.client.universe_domain == "cloud.example"


def test_the_backends_service_account_is_taken_on() -> None:
    delegates = {f"impersonate_service_account_delegates.{n}": f"d{n}@p" for n in range(11)}
    account = {"access_token": "testing", "impersonate_service_account": "state@project.iam.gserviceaccount.com"}
    credentials = _access({**account, **delegates}).session.credentials
    assert credentials.service_account_email == account["impersonate_service_account"]
    assert credentials._delegates == [f"d{n}@p" for n in range(11)]


def test_the_key_of_the_backend_goes_with_every_call(gcs_proxy: FaultProxy, bucket: str) -> None:
    key = base64.b64encode(bytes(range(32))).decode()
    settings = {
        "bucket": bucket,
        "access_token": "testing",
        "storage_custom_endpoint": gcs_proxy.url,
        "encryption_key": key,
    }
    access = backend_access(settings)
    sent = _requests(access)
    store = ObjectStore(GcsBucket(bucket, PREFIX, lambda: access, encryption(settings)), PREFIX)
    store.create("head.json", b"1")
    assert _read(store, "head.json") == b"1"
    assert [headers.get("X-Goog-Encryption-Key") for _, headers in sent] == [key] * 2, "upload, content"


def test_a_kms_key_is_named_on_every_write(gcs_server: GcsServer, bucket: str) -> None:
    name = "projects/p/locations/eu/keyRings/r/cryptoKeys/k"
    access = _access({"access_token": "testing", "storage_custom_endpoint": gcs_server.endpoint})
    sent = _requests(access)
    GcsBucket(bucket, PREFIX, lambda: access, encryption({"kms_encryption_key": name})).put("k", b"1", None, "t")
    assert [parse_qs(urlsplit(url).query)["kmsKeyName"] for url, _ in sent] == [[name]]


def test_every_write_and_removal_names_the_generation_that_it_is_for(gcs_server: GcsServer, bucket: str) -> None:
    access = _access({"access_token": "testing", "storage_custom_endpoint": gcs_server.endpoint})
    sent = _requests(access)
    found = GcsBucket(bucket, PREFIX, lambda: access)
    found.put("k", b"1", None, "t")
    found.put("k", b"2", (first := found.get("k").version), "t")
    found.delete("k", (second := found.get("k").version))
    queries = [parse_qs(urlsplit(url).query) for url, _ in sent]
    conditions = [query["ifGenerationMatch"][0] for query in queries if "ifGenerationMatch" in query]
    assert conditions == ["0", first, second]


def test_a_key_that_is_not_base64_is_refused_without_showing_it() -> None:
    error = _error(lambda: backend_store({"bucket": "records", "encryption_key": "hunter2!"}, PREFIX))
    assert "encryption_key is not in base64" in error.what
    assert "hunter2" not in error.what + error.advice


def test_a_name_that_no_bucket_can_have_is_told_in_one_line(gcs_server: GcsServer) -> None:
    error = _error(lambda: _store(gcs_server.url, "-records-").create("head.json", b"1"))
    assert "Bucket names must" in error.what


def test_names_and_journals_are_whole_beyond_one_page(
    gcs_server: GcsServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _store(gcs_server.url, bucket)
    for number in range(1, 12):
        store.append("e", b"%d\n" % number)
    for name in ("a", "b", "c"):
        store.create(name, b"")
    access = _access({"access_token": "testing", "storage_custom_endpoint": gcs_server.endpoint})
    monkeypatch.setattr(access.client, "list_blobs", partial(access.client.list_blobs, page_size=2))
    paged = ObjectStore(GcsBucket(bucket, PREFIX, lambda: access), PREFIX)
    assert paged.read_journal("e") == b"".join(b"%d\n" % number for number in range(1, 12))
    assert list(paged.names("")) == ["a", "b", "c", "e"]


def test_a_document_that_changes_while_it_is_moved_aside_is_not_removed(
    store: ObjectStore, gcs_proxy: FaultProxy, gcs_server: GcsServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("head.json", b"bad")
    delete = GcsBucket.delete

    def changed_before(self: GcsBucket, key: str, version: str) -> None:
        _store(gcs_server.url, bucket).replace("head.json", b"repaired", version)
        delete(self, key, version)

    monkeypatch.setattr(GcsBucket, "delete", changed_before)
    # The server in the tests looks at no condition of a removal; Google's answer is this one.
    gcs_proxy.add_rule("error:412", method="DELETE")
    with pytest.raises(ConflictError):
        store.move_aside("head.json")
    assert _read(store, "head.json") == b"repaired"


@pytest.mark.parametrize("expected", ["nothing", "a version"])
def test_of_processes_that_race_for_a_head_exactly_one_wins(gcs_server: GcsServer, bucket: str, expected: str) -> None:
    store = _store(gcs_server.url, bucket)
    version = ""
    if expected == "a version":
        store.create("head.json", b"start")
        blob = store.read("head.json")
        assert blob is not None
        version = blob.version
    url = f"gs://{bucket}/{PREFIX}?endpoint={gcs_server.url}"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, url, version, f"by {n}"],
            env=os.environ | {"GOOGLE_OAUTH_ACCESS_TOKEN": "testing"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate(timeout=60)[0].strip() for racer in racers]
    assert sorted(answers) == ["lost"] * 3 + ["won"]
    assert _read(store, "head.json") == b"by %d" % answers.index("won")


def test_of_forty_writers_at_once_each_round_has_one_winner(gcs_server: GcsServer, bucket: str) -> None:
    writers = [_store(gcs_server.url, bucket) for _ in range(40)]

    def write(store: ObjectStore, version: str | None, content: bytes) -> bool:
        try:
            store.replace("head.json", content, version)
        except ConflictError:
            return False
        return True

    version = None
    with ThreadPoolExecutor(len(writers)) as pool:
        for number in range(5):
            contents = [b"%d by %d" % (number, n) for n in range(len(writers))]
            won = list(pool.map(write, writers, [version] * len(writers), contents))
            assert won.count(True) == 1
            blob = writers[0].read("head.json")
            assert blob is not None
            assert blob.data == contents[won.index(True)]
            version = blob.version


def _requests(access: Access) -> list[tuple[str, dict[str, str]]]:
    """URL and headers of every request about an object from now on; the client asks for its bucket, too."""
    sent: list[tuple[str, dict[str, str]]] = []

    def note(answer: Any, **_: object) -> None:
        if "/o" in urlsplit(answer.request.url).path:
            sent.append((answer.request.url, dict(answer.request.headers)))

    for session in (access.client._http, access.session):
        session.hooks["response"].append(note)
    return sent


def _access(settings: Mapping[str, str]) -> Access:
    return backend_access({"bucket": "records", **settings})


def _store(url: str, bucket: str, deadline: float = 60) -> ObjectStore:
    access = partial(_access, {"access_token": "testing", "storage_custom_endpoint": f"{url}/storage/v1/b"})
    return ObjectStore(GcsBucket(bucket, PREFIX, access, deadline=deadline), PREFIX)


def _read(store: ObjectStore, name: str) -> bytes:
    blob = store.read(name)
    assert blob is not None
    return blob.data


def _error(call: object) -> RecordError:
    assert callable(call)
    with pytest.raises(RecordError) as caught:
        call()
    error = caught.value
    assert "\n" not in error.what + error.advice
    assert "testing" not in error.what + error.advice
    return error
