"""States in a bucket whose keys cannot be listed: one that is named is read, and one that is not there is no state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.engine.backend import azurerm_state_blob, azurerm_workspace_of
from tfguard.errors import InputError, NoStateError, RecordError
from tfguard.ports import KnownState
from tfguard.states.buckets import BucketKind, bucket_place
from tfguard.states.kind import Settings, Wanted
from tfguard.states.reader import StateReader
from tfguard.stores.urls import azblob_place

STATE = json.dumps({"version": 4, "serial": 1, "lineage": "app", "resources": []}).encode()
KEY = "infra/app.tfstate"


@dataclass(frozen=True, slots=True)
class FakeBucket:
    """A fake of `StateBucket` that refuses to list, and to read what it has no bytes for."""

    objects: dict[str, bytes | None] = field(default_factory=dict)

    def each_key(self, start: str) -> Iterator[str]:
        raise RecordError(f"cannot list {start}: refused", "ask for the right")

    def url(self, key: str) -> str:
        return f"azblob://a/c/{key}"

    def read(self, key: str) -> bytes | None:
        data = self.objects.get(key, b"")
        if data is None:
            raise RecordError(f"cannot read {key}: refused", "ask for the right")
        return data or None

    def records(self, key: str) -> Any:
        return f"the record beside {key}"


def read(pattern: str, objects: dict[str, bytes | None], workspace: str = "") -> list[KnownState]:
    def settings_of(key: str, settings: Settings) -> tuple[str, Settings]:
        name, own = azurerm_workspace_of(key)
        return name, {**settings, "key": own}

    def opened(*_: object) -> Any:
        return FakeBucket(objects)

    kind = BucketKind("azurerm", azblob_place, opened, azurerm_state_blob, settings_of, flat=True)
    reader = StateReader(load_catalog(), pytest.fail, pytest.fail, None, "beside-state")
    wanted = Wanted(f"azblob://a/c/{pattern}", f"a/c/{pattern}", (), frozenset([workspace] if workspace else []))
    return list(bucket_place("azblob", "", kind).source(wanted, reader).read())


def test_a_named_state_is_read_without_the_right_to_list() -> None:
    (found,) = read(KEY, {KEY: STATE})
    assert found.snapshot is not None and found.snapshot.lineage == "app"


def test_a_name_where_nothing_lies_is_no_empty_state() -> None:
    with pytest.raises(NoStateError, match="matches no state"):
        read("infra/typo.tfstate", {KEY: STATE})


def test_a_run_that_has_begun_has_a_state_that_is_empty_yet() -> None:
    (found,) = read(KEY, {f"{KEY}.tfguard/head.json": b"{}"})
    assert found.snapshot is not None and found.snapshot.lineage == ""


def test_a_named_state_that_cannot_be_read_is_told() -> None:
    (found,) = read(KEY, {KEY: None})
    assert (found.snapshot, found.failure) == (None, f"cannot read {KEY}: refused")


@pytest.mark.parametrize(("pattern", "workspace"), [("infra/**", ""), (KEY, "dev")])
def test_what_only_a_list_can_tell_is_an_error(pattern: str, workspace: str) -> None:
    with pytest.raises(InputError, match="cannot list") as error:
        read(pattern, {KEY: STATE}, workspace)
    assert not isinstance(error.value, NoStateError)
