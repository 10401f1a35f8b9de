"""The calls of tfguard's own that change something at Google Cloud, against a fake over HTTP."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fixtures.google_sim import GoogleSim
from tfguard.catalog.loader import load_catalog
from tfguard.inventory.google import GoogleInventory
from tfguard.inventory.google_actions import OPERATIONS, GoogleActions
from tfguard.inventory.google_lists import LISTS
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig

KEY, ACCOUNT = "google_service_account_key", "google_service_account"

Block = Callable[..., ProviderConfig]


@pytest.fixture
def key(google: GoogleSim, google_inventory: GoogleInventory, google_block: Block) -> CloudObject:
    """A key of a service account."""
    google.add_project("app-prod")
    google.add(ACCOUNT, "robot", "app-prod")
    email = "robot@app-prod.iam.gserviceaccount.com"
    google.add(KEY, "abc", "app-prod", account=email)
    (found,) = google_inventory.list(KEY, google_block()).objects
    return found


def _deletions(google: GoogleSim) -> int:
    return sum(call.method == "DELETE" for call in google.calls)


def test_a_key_is_deleted_after_its_service_was_asked(google: GoogleSim, google_block: Block, key: CloudObject) -> None:
    google.calls.clear()
    answer = GoogleActions(load_catalog()).delete(key, google_block())
    assert (answer.done, answer.refused) == (("DeleteServiceAccountKey",), "")
    assert [call.method for call in google.calls] == ["GET", "DELETE"]
    assert not google.names(KEY)
    again = GoogleActions(load_catalog()).delete(key, google_block())
    assert again.absent
    assert _deletions(google) == 1


def test_a_deletion_that_is_refused_or_not_answered_is_tried_once(
    google: GoogleSim, google_block: Block, key: CloudObject
) -> None:
    google.fail_next("/iam/*", 503, times=1, method="DELETE")
    answer = GoogleActions(load_catalog()).delete(key, google_block())
    assert answer.refused == answer.cause == "UNAVAILABLE on DeleteServiceAccountKey"
    assert _deletions(google) == 1
    google.deny("/iam/*")
    assert GoogleActions(load_catalog()).delete(key, google_block()).refused.startswith("PERMISSION_DENIED on Get")
    assert _deletions(google) == 1  # what cannot be read is not deleted


def test_a_project_and_a_folder_are_restored(
    google: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    google.add_organization(123)
    google.add_folder("f", "organizations/123", number=5, state="DELETE_REQUESTED")
    google.add_project("app-prod", "organizations/123", state="DELETE_REQUESTED")
    block = google_block(project="", organization="123")
    for kind, call in (("google_project", "UndeleteProject"), ("google_folder", "UndeleteFolder")):
        (waiting,) = google_inventory.list(kind, block).soft_deleted
        assert GoogleActions(load_catalog()).restore(waiting, block).done == (call,)
        assert not google_inventory.list(kind, block).soft_deleted


def test_labels_are_not_set(google_block: Block, key: CloudObject) -> None:
    actions = GoogleActions(load_catalog())
    for answer in (actions.tag(key, google_block(), {"a": "b"}), actions.untag(key, google_block(), ["a"])):
        assert not answer.done
        assert "sets no labels" in answer.refused


def test_the_catalogue_names_just_the_operations_that_are_made() -> None:
    entries = [entry for entry in load_catalog() if entry.cloud == "google"]
    called = [call for entry in entries for call in (*entry.restore, entry.delete) if call]
    assert {call.operation for call in called} == set(OPERATIONS)
    assert {entry.list.operation for entry in entries if entry.list and entry.asset is None} == LISTS.keys()
