"""What a list of Google Cloud lacks is asked for at its own service, since that list is an index which lags behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from test_verify import CATALOG, END, GRACE, START, FakeClock, FakeInventory, answers, around, outcomes, run

from tfguard.flows.verify import verify
from tfguard.model.evidence import EvidenceKind
from tfguard.model.failure import Failure, FailureKind
from tfguard.model.inventory import CloudObject, Detail, Gap, Listing, Scope
from tfguard.model.operation import BaselineEntry, Outcome, Step, StepStatus
from tfguard.model.plan import Action, ProviderConfig
from tfguard.reconcile.wanted import wanted_object

SCOPE = Scope("google", "app", "global", "google")
NETWORK, ACCOUNT = "google_compute_network", "google_service_account"
STEP = Step(
    f"{NETWORK}.net",
    NETWORK,
    "registry.terraform.io/hashicorp/google",
    Action.CREATE,
    StepStatus.RUNNING,
    provider_key="google",
    desired={"name": "net", "project": "app"},
)
BASELINE = (BaselineEntry(NETWORK, "google", "app", "global", True, "google", ""),)
ID = "projects/app/global/networks/net"


@dataclass
class Service(FakeInventory):
    """An index that has nothing, and a service that says what the function says."""

    says: Callable[[CloudObject], Detail] = field(default=Detail)
    asked_for: list[CloudObject] = field(default_factory=list)

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:  # noqa: ARG002 (the port's)
        """What the service says."""
        self.asked_for.append(found)
        return self.says(found)


def _refused(found: CloudObject) -> Detail:
    return Detail(found, Gap(f"{SCOPE} {NETWORK}", "PERMISSION_DENIED on GetNetwork"))


@pytest.mark.parametrize(
    ("says", "outcome"),
    [
        (lambda found: replace(Detail(found), found=replace(found, created_at=START)), Outcome.ORPHANED),
        (lambda found: Detail(found, gone=True), Outcome.ABSENT),
        (_refused, Outcome.UNKNOWN),
    ],
)
def test_the_service_has_the_last_word_on_what_the_index_lacks(
    says: Callable[[CloudObject], Detail], outcome: Outcome
) -> None:
    inventory = Service(answers(Listing(NETWORK, SCOPE)), says=says)
    surroundings, *_ = around(inventory, FakeClock(END + GRACE))
    verdict = verify(run(STEP, baseline=BASELINE), surroundings, patient=False)
    assert outcomes(verdict) == [outcome]
    assert inventory.asked_for[0].id == ID
    assert [seen.import_id for seen in verdict.steps[0].observed] == ([ID] if outcome is Outcome.ORPHANED else [])


def test_what_was_met_and_may_not_be_read_is_somebody_elses() -> None:
    inventory = Service(answers(Listing(NETWORK, SCOPE)), says=_refused)
    surroundings, *_ = around(inventory, FakeClock(END + GRACE))
    failures = {STEP.address: Failure(FailureKind.ALREADY_EXISTS, "it exists", None, 409)}
    failed = replace(STEP, status=StepStatus.ERROR)
    verdict = verify(run(failed, baseline=BASELINE, failures=failures), surroundings, patient=False)
    assert EvidenceKind.GAP not in {evidence.kind for evidence in verdict.steps[0].evidence}


def test_what_the_plan_does_not_name_in_full_is_not_asked_for() -> None:
    kind = CATALOG.get(ACCOUNT)
    assert kind is not None
    step = replace(STEP, type=ACCOUNT, desired={"account_id": "robot"})
    assert wanted_object(kind, step, SCOPE) is None  # the service makes the address of it


def test_the_project_is_the_resources_own_else_that_of_the_list() -> None:
    kind = CATALOG.get(NETWORK)
    assert kind is not None
    unnamed = replace(STEP, desired={"name": "net"})
    found = wanted_object(kind, unnamed, SCOPE)
    own = wanted_object(kind, replace(unnamed, own_account="other"), SCOPE)
    assert found is not None
    assert own is not None
    assert (found.import_id, found.account) == (ID, "app")
    assert (own.import_id, own.account) == ("projects/other/global/networks/net", "other")
