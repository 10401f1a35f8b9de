"""What `records:` may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfguard.errors import ConfigError
from tfguard.stores.local import LocalStore
from tfguard.stores.objects import ObjectStore
from tfguard.stores.urls import open_store


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
    ],
)
def test_an_s3_url_is_a_bucket_and_a_prefix(url: str, location: str) -> None:
    store = open_store(url)
    assert isinstance(store, ObjectStore)
    assert store.location == location


@pytest.mark.parametrize("url", ["ftp://x/y", "postgresql://user:hunter2@host/db", "records", "://", ""])
def test_an_unknown_kind_is_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises(ConfigError, match="known are file://, s3://") as caught:
        open_store(url)
    assert "hunter2" not in caught.value.what


@pytest.mark.parametrize(
    "url", ["file://", "file://a\0b", "s3://", "s3:///p", "s3://key:hunter2@b/p", "s3://b/p?token=hunter2"]
)
def test_a_url_that_names_no_place_or_a_credential_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "hunter2" not in caught.value.what + caught.value.advice
