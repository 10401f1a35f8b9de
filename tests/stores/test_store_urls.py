"""What `records:` may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfguard.cli.record_place import record_store, stack_name
from tfguard.engine.backend import StateLocation
from tfguard.errors import ConfigError, RecordError
from tfguard.model.config import Config
from tfguard.model.operation import Stack
from tfguard.stores.local import LocalStore
from tfguard.stores.objects import ObjectStore
from tfguard.stores.urls import SCHEMES, open_store


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/records")
    assert isinstance(store, LocalStore)
    assert store.location == f"{tmp_path}/records"


def test_a_relative_file_url_starts_at_the_configuration(tmp_path: Path) -> None:
    assert open_store("file://records/infra", tmp_path).location == f"{tmp_path}/records/infra"


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("s3://bucket/some/prefix/", "s3://bucket/some/prefix"),
        ("s3://bucket", "s3://bucket/"),
        ("s3://bucket/p?region=eu-west-1&encrypt=true", "s3://bucket/p"),
        ("gs://bucket/some/prefix/", "gs://bucket/some/prefix"),
        ("gs://bucket", "gs://bucket/"),
        ("azblob://account/container/some/prefix/", "azblob://account/container/some/prefix"),
        ("azblob://account/container/p?use_cli=true&endpoint=https://host:1/a", "azblob://account/container/p"),
        ("gs://bucket/p?impersonate_service_account=a@p.iam.gserviceaccount.com", "gs://bucket/p"),
    ],
)
def test_a_url_of_an_object_store_is_a_bucket_and_a_prefix(url: str, location: str) -> None:
    store = open_store(url)
    assert isinstance(store, ObjectStore)
    assert store.location == location


@pytest.mark.parametrize("url", ["ftp://x/y", "redis://user:hunter2@host/db", "records", "://", ""])
def test_an_unknown_kind_is_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises(ConfigError, match="known are file://, s3://, gs://") as caught:
        open_store(url)
    assert "hunter2" not in caught.value.what
    assert all(scheme.form in caught.value.advice for scheme in SCHEMES.values())


@pytest.mark.parametrize(
    "url",
    [
        "file://",
        "file://a\0b",
        "s3://",
        "s3:///p",
        "s3://key:hunter2@b/p",
        "s3://b/p?token=hunter2",
        "gs://",
        "gs:///p",
        "gs://key:hunter2@b/p",
        "gs://b/p?access_token=hunter2",
        "gs://b/p?credentials=hunter2",
        "azblob://",
        "azblob://account",
        "azblob://account/stack",
        "azblob://account/stack/",
        "azblob:///container/p",
        "azblob://account//p",
        "azblob://key:hunter2@account/container/p",
        "azblob://account/container/p?access_key=hunter2",
        "azblob://account/container/p?sas_token=hunter2",
        "azblob://account/container/p?client_secret=hunter2",
        "azblob://account/container/p?sv=2024&sig=hunter2",
        "postgresql://user:hunter2@host/db/stack",
        "postgresql://user:hunter2/x@host/db/stack",
        "postgresql://user:hunter2",
        "postgresql://user:hunter2?x@host/db/stack",
        "postgresql://host/db/stack?password=hunter2",
        "postgresql://host/db/stack?sslpassword=hunter2",
        "postgresql://host/stack",
        "postgresql:///stack",
    ],
)
def test_a_url_that_names_no_place_or_a_credential_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "hunter2" not in caught.value.what + caught.value.advice


@pytest.mark.parametrize(
    "url",
    [
        "s3://b/p?endpoint=http://user:hunter2@host",
        "s3://b/p?endpoint=user:hunter2@host",
        "s3://b/p?endpoint=http%3A%2F%2Fuser%3Ahunter2%40host",
        "s3://b/p?endpoint=http://user:x&hunter2@host",
        "s3://b/p?profile=http://user:hunter2@host",
        "gs://b/p?endpoint=http://user:hunter2@host",
        "azblob://a/c/p?endpoint=http://user:hunter2@host/a",
        "azblob://a/c/p?metadata_host=user:hunter2@host",
        "postgresql://h/d/stack?host=http://user:hunter2@host",
    ],
)
def test_credentials_in_a_parameter_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigError, match="has credentials in ") as caught:
        open_store(url)
    assert "credentials come from the environment" in caught.value.advice
    assert "hunter2" not in caught.value.what + caught.value.advice


@pytest.mark.parametrize(
    ("url", "parameter"),
    [
        ("s3://b/p?use_path_style=maybe", "use_path_style"),
        ("s3://b/p?encrypt=", "encrypt"),
        ("azblob://a/c/p?use_cli=yes", "use_cli"),
    ],
)
def test_what_is_neither_true_nor_false_is_refused(url: str, parameter: str) -> None:
    with pytest.raises(ConfigError, match=f"the parameter {parameter} .* is neither true nor false") as caught:
        open_store(url)
    assert f"{parameter}=false" in caught.value.advice


@pytest.mark.parametrize("value", ["true", "false", "1", "0"])
def test_true_and_false_have_two_forms_each(value: str) -> None:
    assert open_store(f"s3://b/p?encrypt={value}").location == "s3://b/p"


@pytest.mark.parametrize("url", ["s3://b/p?region=x&region=y", "postgresql://h/d/stack?port=1&port=2"])
def test_a_parameter_that_stands_there_twice_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"has the parameter (region|port) twice"):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "known"), [("s3://b/p?color=red", "role_arn"), ("postgresql://h/d/stack?color", "sslmode")]
)
def test_an_unknown_parameter_is_named_with_the_known_ones(url: str, known: str) -> None:
    with pytest.raises(ConfigError, match=f"has the parameter 'color'; known are .*{known}") as caught:
        open_store(url)
    assert "take it out" in caught.value.advice
    assert "write `records:" not in caught.value.advice


def test_the_stacks_own_folder_is_not_taken_for_a_container() -> None:
    place = StateLocation(Stack("consul", "consul:net", "default", "/stack"))
    with pytest.raises(ConfigError, match="names no container") as caught:
        record_store(place, Config(records="azblob://account"), None)
    assert "azblob://ACCOUNT/CONTAINER" in caught.value.advice


@pytest.mark.parametrize("backend", ["http", "consul", "kubernetes", "remote", "cloud", "newer"])
def test_a_backend_without_a_place_beside_its_state_is_told_every_kind_of_place(backend: str) -> None:
    with pytest.raises(RecordError) as caught:
        record_store(StateLocation(Stack(backend, "somewhere", "default", "/stack")), Config(), None)
    assert caught.value.exit_code == 10
    assert f"'{backend}'" in caught.value.what
    assert all(scheme.form in caught.value.advice for scheme in SCHEMES.values())


@pytest.mark.parametrize(
    ("backend", "settings", "workspace", "location"),
    [
        ("s3", {"bucket": "b", "key": "net/x"}, "dev", "s3://b/env:/dev/net/x.tfguard"),
        (
            "azurerm",
            {"storage_account_name": "a", "container_name": "c", "key": "net/x"},
            "default",
            "azblob://a/c/net/x.tfguard",
        ),
        (
            "azurerm",
            {"storage_account_name": "a", "container_name": "c", "key": "net/x"},
            "dev",
            "azblob://a/c/net/xenv:dev.tfguard",
        ),
        ("gcs", {"bucket": "b"}, "default", "gs://b/default.tfstate.tfguard"),
        ("gcs", {"bucket": "b", "prefix": "/net/eu/"}, "dev", "gs://b/net/eu/dev.tfstate.tfguard"),
        ("gcs", {"bucket": "b", "prefix": "net//eu/./"}, "dev", "gs://b/net/eu/dev.tfstate.tfguard"),
        ("pg", {"conn_str": "postgres://u:p@h/d"}, "dev", "postgresql://h/d/terraform_remote_state/dev"),
        ("pg", {"conn_str": "host=h port=5 dbname=d", "schema_name": "s"}, "default", "postgresql://h:5/d/s/default"),
    ],
)
def test_a_record_lies_beside_the_workspaces_state(
    backend: str, settings: dict[str, str], workspace: str, location: str
) -> None:
    place = StateLocation(Stack(backend, "somewhere", workspace, "/stack"), settings)
    assert record_store(place, Config(), None).location == location


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("postgresql://host/db", "postgresql://host/db/tfguard/"),
        ("postgresql://user@host:5433/db/?sslmode=verify-full", "postgresql://host:5433/db/tfguard/"),
        ("postgresql:///db?host=/run/postgresql&schema_name=s", "postgresql://%2Frun%2Fpostgresql/db/s/"),
        ("file:///", "/"),
        ("s3://b?region=eu-west-1", "s3://b/"),
    ],
)
def test_each_stack_has_a_place_of_its_own_below_a_shared_one(
    url: str, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPORT", raising=False)
    stack = Stack("consul", "consul:net", "default", "/stack")
    found = record_store(StateLocation(stack), Config(records=url), None).location
    assert found == location + stack_name(stack)
