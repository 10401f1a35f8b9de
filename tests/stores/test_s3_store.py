"""What the S3 store does when S3 refuses, cannot be reached, or loses an answer."""

from __future__ import annotations

import sys
import urllib.parse
from collections.abc import Mapping

import pytest

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from tfguard.errors import BusyStoreError, ConflictError, RecordError
from tfguard.stores.common import ATTEMPTS, CONNECT_SECONDS, READ_SECONDS
from tfguard.stores.objects import ObjectStore
from tfguard.stores.s3 import S3Bucket
from tfguard.stores.s3_client import _session, backend_client, backend_store, put_options

_SETTINGS = {
    "bucket": "records",
    "region": "us-east-1",
    "access_key": "testing",
    "secret_key": "testing",
    "use_path_style": "true",
    "max_retries": "1",
}


@pytest.fixture(autouse=True)
def _no_aws_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")


@pytest.fixture
def store(proxy: FaultProxy, moto: MotoServer) -> ObjectStore:
    """A store that reaches S3 through the fault proxy."""
    moto.client("s3").create_bucket(Bucket="records")
    return _store(proxy.url)


def test_a_create_whose_answer_was_lost_is_ours(store: ObjectStore, proxy: FaultProxy) -> None:
    rule = proxy.add_rule("drop", service="s3", method="PUT")
    store.create("head.json", b"1")
    assert rule.fired == 1
    assert _read(store, "head.json") == b"1"


def test_a_replace_whose_answer_was_lost_is_ours(store: ObjectStore, proxy: FaultProxy) -> None:
    store.create("head.json", b"1")
    blob = store.read("head.json")
    assert blob is not None
    rule = proxy.add_rule("drop", service="s3", method="PUT")
    store.replace("head.json", b"2", blob.version)
    assert rule.fired == 1
    assert _read(store, "head.json") == b"2"


def test_an_append_whose_answer_was_lost_is_written_once(store: ObjectStore, proxy: FaultProxy) -> None:
    store.append("events.jsonl", b"1\n")
    rule = proxy.add_rule("drop", service="s3", method="PUT")
    store.append("events.jsonl", b"2\n")
    store.append("events.jsonl", b"3\n")
    assert rule.fired == 1
    assert store.read_journal("events.jsonl") == b"1\n2\n3\n"


def test_a_lost_answer_does_not_hide_that_another_was_first(
    store: ObjectStore, proxy: FaultProxy, moto: MotoServer
) -> None:
    _store(moto.url).create("head.json", b"theirs")
    proxy.add_rule("drop", service="s3", method="PUT")
    with pytest.raises(ConflictError):
        store.create("head.json", b"ours")
    assert _read(store, "head.json") == b"theirs"


def test_a_conflict_of_two_requests_in_flight_is_a_conflict(store: ObjectStore, proxy: FaultProxy) -> None:
    proxy.add_rule("error:409", service="s3", method="PUT", code="ConditionalRequestConflict")
    with pytest.raises(ConflictError):
        store.create("head.json", b"1")


def test_a_refused_write_names_the_permission(store: ObjectStore, proxy: FaultProxy) -> None:
    proxy.add_rule("error:403", service="s3", method="PUT", code="AccessDenied", count=None)
    error = _error(lambda: store.create("head.json", b"1"))
    assert error.what == "cannot write the record s3://records/state.tfguard/head.json: AccessDenied"
    assert error.advice.startswith("allow s3:PutObject on arn:aws:s3:::records/state.tfguard/*")
    assert error.exit_code == 10
    assert not isinstance(error, BusyStoreError)


def test_a_refused_read_is_an_error_and_never_no_record(store: ObjectStore, proxy: FaultProxy) -> None:
    proxy.add_rule("error:403", service="s3", method="GET", code="AccessDenied", count=None)
    assert "s3:GetObject and s3:ListBucket" in _error(lambda: store.read("head.json")).advice
    assert "s3:ListBucket" in _error(lambda: store.names("")).advice
    assert "s3:ListBucket" in _error(lambda: store.read_journal("events.jsonl")).advice


def test_a_bucket_that_is_not_there_is_named(proxy: FaultProxy) -> None:
    error = _error(lambda: _store(proxy.url).create("head.json", b"1"))
    assert "NoSuchBucket" in error.what
    assert "create the bucket records" in error.advice
    assert "NoSuchBucket" in _error(lambda: _store(proxy.url).read("head.json")).what
    assert "NoSuchBucket" in _error(lambda: _store(proxy.url).names("")).what


@pytest.mark.parametrize(
    ("code", "advice"), [("PermanentRedirect", "region"), ("ExpiredToken", "renew"), ("InternalError", "try again")]
)
def test_other_codes_are_told_with_what_to_do(store: ObjectStore, proxy: FaultProxy, code: str, advice: str) -> None:
    proxy.add_rule("error:400", service="s3", method="PUT", code=code, count=None)
    error = _error(lambda: store.create("head.json", b"1"))
    assert error.what.endswith(f": {code}")
    assert advice in error.advice


@pytest.mark.parametrize("fault", ["error:503", "error:500", "error:429", "drop"])
def test_what_may_pass_is_told_apart(store: ObjectStore, proxy: FaultProxy, fault: str) -> None:
    proxy.add_rule(fault, service="s3", count=None)
    for call in (lambda: store.read("head.json"), lambda: store.create("head.json", b"1"), lambda: store.names("")):
        assert isinstance(_error(call), BusyStoreError)


def test_an_endpoint_that_cannot_be_reached_is_told_in_one_line() -> None:
    store = backend_store(_SETTINGS | {"endpoints.s3": "http://127.0.0.1:9", "max_retries": "0"}, "state.tfguard")
    error = _error(lambda: store.create("head.json", b"1"))
    assert not isinstance(error, BusyStoreError)
    assert "EndpointConnectionError" in error.what
    assert "http://127.0.0.1:9" in error.what


@pytest.mark.parametrize(
    "wrong",
    [{"profile": "nobody"}, {"endpoints.s3": "no url"}, {"max_retries": "many"}, {"region": "not a region"}],
)
def test_settings_that_boto3_refuses_are_told_in_one_line(wrong: Mapping[str, str]) -> None:
    store = backend_store({**_SETTINGS, **wrong}, "state.tfguard")
    _error(lambda: store.create("head.json", b"1"))


def test_no_credentials_at_all_are_told(proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = backend_store({"bucket": "records", "endpoint": proxy.url, "force_path_style": "true"}, "p")
    assert "NoCredentialsError" in _error(lambda: store.read("head.json")).what


def test_a_role_without_credentials_to_assume_it_with_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = backend_store({"bucket": "records", "role_arn": "arn:aws:iam::123456789012:role/deploy"}, "p")
    error = _error(lambda: store.read("head.json"))
    assert "no AWS credentials are found" in error.what
    assert "give this run AWS credentials" in error.advice


def test_without_boto3_the_user_learns_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)
    error = _error(lambda: _store("http://127.0.0.1:9").read("head.json"))
    assert "pip install boto3" in error.advice


def test_the_environment_names_the_region_and_endpoint_as_for_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    client = backend_client({"bucket": "records"})
    assert client.meta.region_name == "eu-west-3"
    assert client.meta.endpoint_url == "http://127.0.0.1:9"
    assert backend_client({"bucket": "records", "region": "eu-north-1"}).meta.region_name == "eu-north-1"


def test_the_role_of_the_backend_is_assumed(proxy: FaultProxy, moto: MotoServer) -> None:
    moto.client("s3").create_bucket(Bucket="records")
    role = {
        "assume_role.role_arn": "arn:aws:iam::123456789012:role/state",
        "assume_role.session_name": "tfguard-test",
        "assume_role.external_id": "e-1",
        "assume_role.duration": "1h0m0s",
        "endpoints.sts": proxy.url,
    }
    store = _store(proxy.url, role)
    store.create("head.json", b"1")
    assert _read(store, "head.json") == b"1"
    proxy.wait_for("AssumeRole", timeout=1)


def test_a_refused_role_is_told_in_one_line(proxy: FaultProxy) -> None:
    proxy.add_rule("error:403", action="AssumeRole", code="AccessDenied", count=None)
    role = {"role_arn": "arn:aws:iam::123456789012:role/state", "sts_endpoint": proxy.url}
    error = _error(lambda: _store(proxy.url, role).read("head.json"))
    assert "AccessDenied" in error.what


def test_a_file_with_a_token_that_is_gone_when_it_is_needed_is_told_in_one_line(proxy: FaultProxy) -> None:
    role = {
        "assume_role_with_web_identity.role_arn": "arn:aws:iam::123456789012:role/state",
        "assume_role_with_web_identity.web_identity_token_file": "/nonexistent/token",
        "endpoints.sts": proxy.url,
    }
    assert "/nonexistent/token" in _error(lambda: _store(proxy.url, role).read("head.json")).what


@pytest.mark.parametrize(("asked", "tries"), [("0", 1), ("1", 2), ("20", ATTEMPTS)])
def test_the_backends_retries_count_up_to_the_bound_on_a_call(proxy: FaultProxy, asked: str, tries: int) -> None:
    rule = proxy.add_rule("error:503", service="s3", count=None)
    _error(lambda: _store(proxy.url, {"max_retries": asked}).read("head.json"))
    assert rule.fired == tries


def test_the_clients_that_renew_credentials_are_bounded_too() -> None:
    session = _session({})
    for service in ("sts", "sso"):
        config = session.create_client(service, region_name="us-east-1").meta.config
        assert (config.connect_timeout, config.read_timeout) == (CONNECT_SECONDS, READ_SECONDS)
        assert config.retries["total_max_attempts"] == ATTEMPTS


def test_encryption_and_acl_go_with_every_put(proxy: FaultProxy, moto: MotoServer) -> None:
    moto.client("s3").create_bucket(Bucket="records")
    _store(proxy.url, {"encrypt": "true", "kms_key_id": "arn:aws:kms:us-east-1:123456789012:key/k"}).append("e", b"1\n")
    head = moto.client("s3").head_object(Bucket="records", Key="state.tfguard/e/part-000000001")
    assert head["ServerSideEncryption"] == "aws:kms"
    assert head["SSEKMSKeyId"] == "arn:aws:kms:us-east-1:123456789012:key/k"
    assert put_options({"encrypt": "true"}) == {"ServerSideEncryption": "AES256"}
    assert put_options({"encrypt": "false", "acl": "private"}) == {"ACL": "private"}


def test_names_and_journals_are_whole_beyond_one_page(moto: MotoServer) -> None:
    moto.reset()
    client = moto.client("s3")
    client.create_bucket(Bucket="records")
    client.meta.events.register(
        "before-parameter-build.s3.ListObjectsV2", lambda params, **_: params.update({"MaxKeys": 2})
    )
    for number in range(1, 12):
        ObjectStore(S3Bucket("records", "state.tfguard", lambda: client), "state.tfguard").append("e", b"%d\n" % number)
    store = ObjectStore(S3Bucket("records", "state.tfguard", lambda: client), "state.tfguard")
    assert store.read_journal("e") == b"".join(b"%d\n" % number for number in range(1, 12))
    for name in ("a", "b", "c"):
        store.create(name, b"")
    assert list(store.names("")) == ["a", "b", "c", "e"]


def test_a_writer_that_comes_back_after_a_takeover_overwrites_nothing(store: ObjectStore, moto: MotoServer) -> None:
    store.append("events.jsonl", b"old 1\n")
    successor = _store(moto.url)
    successor.append("events.jsonl", b"new 2\n")
    successor.append("events.jsonl", b"new 3\n")
    store.append("events.jsonl", b"old 4\n")
    assert store.read_journal("events.jsonl") == b"old 1\nnew 2\nnew 3\nold 4\n"


def test_a_document_that_changes_while_it_is_moved_aside_is_not_removed(
    store: ObjectStore, moto: MotoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("head.json", b"bad")
    delete = S3Bucket.delete

    def changed_before(self: S3Bucket, key: str, version: str) -> None:
        moto.client("s3").put_object(Bucket="records", Key=key, Body=b"repaired")
        delete(self, key, version)

    monkeypatch.setattr(S3Bucket, "delete", changed_before)
    with pytest.raises(ConflictError):
        store.move_aside("head.json")
    assert _read(store, "head.json") == b"repaired"


def _store(url: str, more: Mapping[str, str] | None = None) -> ObjectStore:
    return backend_store({**_SETTINGS, "endpoints.s3": url, **(more or {})}, "state.tfguard")


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
    assert "testing" not in urllib.parse.unquote(error.what + error.advice)
    return error
