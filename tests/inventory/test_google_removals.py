"""What a run deleted at Google Cloud and the search still has, up to the end of its lag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from fixtures.google_sim import GoogleSim
from tfguard.catalog.loader import load_catalog
from tfguard.flows.looking import Surroundings
from tfguard.flows.verify import Run, verify
from tfguard.inventory.google import GoogleInventory
from tfguard.model.config import Config
from tfguard.model.operation import Outcome, Step, StepStatus
from tfguard.model.plan import Action, ProviderConfig
from tfguard.model.state import EMPTY_STATE

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ZONE, RECORD = "google_dns_managed_zone", "google_dns_record_set"
ACCOUNT, KEY = "google_service_account", "google_service_account_key"
ROBOT = "projects/app-prod/serviceAccounts/robot@app-prod.iam.gserviceaccount.com"
OK, RUNNING = StepStatus.OK, StepStatus.RUNNING


def _with_child(sim: GoogleSim, kind: str) -> tuple[str, Step]:
    """A parent's full name, and the step that deletes what is below it."""
    sim.add_project("app-prod", number=1001)
    if kind == RECORD:
        parent = sim.add(ZONE, "zone-a", "app-prod")
        sim.add(RECORD, "A", "app-prod", zone="zone-a", record="www.example.com.")
        before = {"managed_zone": "zone-a", "name": "www.example.com.", "type": "A", "project": "app-prod"}
    else:
        parent = sim.add(ACCOUNT, "robot", "app-prod")
        sim.add(KEY, "abc", "app-prod", account="robot")
        before = {"name": f"{ROBOT}/keys/abc"}
    source = "registry.terraform.io/hashicorp/google"
    return parent, Step(f"{kind}.x", kind, source, Action.DELETE, OK, provider_key="google", before=before)


@pytest.mark.parametrize("place", [None, "app-prod"], ids=["of the provider", "of its own"])
@pytest.mark.parametrize(("status", "outcome"), [(OK, Outcome.ABSENT), (RUNNING, Outcome.UNKNOWN)])
@pytest.mark.parametrize("kind", [RECORD, KEY])
def test_what_the_engine_deleted_with_its_parent_is_gone_though_the_search_still_has_that(
    google: GoogleSim,
    google_inventory: GoogleInventory,
    google_block: Callable[..., ProviderConfig],
    kind: str,
    status: StepStatus,
    outcome: Outcome,
    place: str | None,
) -> None:
    google.lag(0, 3600)
    parent, step = _with_child(google, kind)
    google.remove(parent)
    clock = SimpleNamespace(now=lambda: NOW, interrupted=False)
    around = Surroundings(google_inventory, load_catalog(), Config(), clock, None)  # type: ignore[arg-type]
    step = replace(step, status=status, own_account=place)
    run = Run((step,), (), {"google": google_block()}, {}, NOW, NOW, True, lambda: EMPTY_STATE)
    verdict = verify(run, around, patient=False)
    assert [one.outcome for one in verdict.steps] == [outcome]
    assert not verdict.gaps
