"""Who made an object, as the fake's admin activity log tells it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from fixtures.google_sim import GoogleSim
from tfguard.catalog.loader import load_catalog
from tfguard.inventory.google import GoogleInventory
from tfguard.inventory.google_audit import GoogleAuditLog
from tfguard.model.plan import ProviderConfig

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OPERATION = "01JZ0000000000000000000000"
ENGINE = f"Terraform/1.11.4 (+https://www.terraform.io) terraform-provider-google/6.0 tfguard/{OPERATION}"
NETWORK, TOPIC, BUCKET, SECRET = (
    "google_compute_network", "google_pubsub_topic", "google_storage_bucket", "google_secret_manager_secret",
)  # fmt: skip

Block = Callable[..., ProviderConfig]


def _log() -> GoogleAuditLog:
    return GoogleAuditLog(load_catalog(), lambda _: True, lambda: NOW)


def test_the_log_tells_who_made_what_with_which_engine(
    google: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    google.add_project("app-prod")
    made = NOW - timedelta(days=3)
    for kind in (NETWORK, TOPIC, BUCKET, SECRET):
        google.add(kind, f"made-by-a-run-{kind[-3:]}", "app-prod", created=made, by="ci@example.com", user_agent=ENGINE)
    google.add(NETWORK, "by-hand", "app-prod", created=made, by="eve@example.com", user_agent="gcloud/1")
    google.add(NETWORK, "untold", "app-prod", created=made)
    block = google_block()
    found = [
        one for each in google_inventory.list_many([NETWORK, TOPIC, BUCKET, SECRET], block) for one in each.objects
    ]
    google.calls.clear()
    answer = _log().creations([(one, block) for one in found])
    assert not answer.notes
    told = {one.name or one.id: answer.creations.get(one.finding_id) for one in found}
    by_hand = next(creation for name, creation in told.items() if "by-hand" in name)
    assert by_hand is not None
    assert (by_hand.actor, by_hand.operation_id, by_hand.engine) == ("eve@example.com", None, None)
    assert next(creation for name, creation in told.items() if "untold" in name) is None
    runs = [creation for name, creation in told.items() if "made-by-a-run" in name]
    assert {(one.actor, one.operation_id, one.engine, one.at) for one in runs if one} == {
        ("ci@example.com", OPERATION, "Terraform 1.11.4", made)
    }
    assert all(runs)
    assert sum(call.path.endswith("/entries:list") for call in google.calls) == 1


def test_a_log_that_may_not_be_read_is_a_note(
    google: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    google.add_project("app-prod")
    google.add(TOPIC, "t", "app-prod")
    google.deny("/*/entries:list")
    (found,) = google_inventory.list(TOPIC, google_block()).objects
    answer = _log().creations([(found, google_block())])
    assert not answer.creations
    assert answer.notes == ("the audit log was not asked in google app-prod: PERMISSION_DENIED on ListLogEntries",)


def test_names_that_are_too_long_for_one_filter_are_asked_for_in_several(
    google: GoogleSim, google_inventory: GoogleInventory, google_block: Block
) -> None:
    google.add_project("app-prod")
    for number in range(45):
        google.add(TOPIC, f"{'long' * 60}-{number}", "app-prod", created=NOW, by="ci@example.com", user_agent=ENGINE)
    block = google_block()
    found = google_inventory.list(TOPIC, block).objects
    google.calls.clear()
    answer = _log().creations([(one, block) for one in found])
    assert len(answer.creations) == 45
    assert sum(call.path.endswith("/entries:list") for call in google.calls) == 2


def test_a_log_with_more_pages_than_are_read_is_a_note(
    google: GoogleSim, google_inventory: GoogleInventory, google_block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    google.add_project("app-prod")
    google.add(TOPIC, "t", "app-prod", created=NOW, by="ci@example.com", user_agent=ENGINE)
    (found,) = google_inventory.list(TOPIC, google_block()).objects
    monkeypatch.setattr("tfguard.inventory.google_access.GoogleAccess.json", lambda *_, **__: {"nextPageToken": "x"})
    answer = _log().creations([(found, google_block())])
    assert answer.notes == ("the audit log has more about these objects in google app-prod than was read",)
