"""When a stray object is surely gone: what recover and a destroy conclude from lists that do not have it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from test_dispose import Account, roles
from test_story import LATER
from test_verify import START

from tfguard.flows.deletions import look_after_deletions
from tfguard.flows.leftovers import leftovers
from tfguard.flows.retain import decided_object
from tfguard.flows.stray_findings import OwnOperations
from tfguard.flows.stray_look import object_now, surely_now
from tfguard.flows.tagging import tag_kept
from tfguard.model.config import Config, OnGap
from tfguard.model.disposition import DestroyStage, Disposition, DispositionKind
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig
from tfguard.reconcile.disposal import Refusal

AWS = ProviderConfig("aws", "hashicorp/aws")
GRACE = Config().consistency_grace


def appears_after(account: Account, wait: timedelta) -> None:
    """Lists have the account's roles only after this time."""
    clock, sleep = account.cloud.clock, account.cloud.clock.sleep
    hidden = dict(account.cloud.there)
    account.cloud.there.clear()

    def slept(seconds: float) -> bool:
        account.cloud.there.update(hidden if clock.now() >= LATER + wait else {})
        return sleep(seconds)

    clock.sleep = slept  # type: ignore[method-assign]


def begun(account: Account, found: CloudObject, at: datetime) -> None:
    """What a killed destroy leaves in the ledger."""
    entry = Disposition(found.finding_id, DispositionKind.DESTROY, at, "ada", "stray", "", stage=DestroyStage.REQUESTED)
    account.records.decide([replace(entry, import_id=found.import_id, object=decided_object(found))])


@pytest.mark.parametrize(("age", "gone"), [(timedelta(0), False), (GRACE, True)])
def test_recover_verifies_a_deletion_only_when_the_grace_since_its_request_is_over(
    tmp_path: Path, age: timedelta, gone: bool
) -> None:
    account = Account(roles("one"), tmp_path)
    begun(account, account.roles[0], LATER - age)
    appears_after(account, timedelta(seconds=10))
    (looked,) = look_after_deletions(account.context, (), lambda _: AWS, tmp_path / "runs")
    assert looked.gone is gone
    assert account.stages(account.roles[0])[-1] is (DestroyStage.ABSENT if gone else DestroyStage.REQUESTED)


def test_a_destroy_of_the_stack_keeps_what_is_only_not_listed_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account([replace(found, created_at=LATER) for found in roles("one")], tmp_path)
    (found,) = account.roles
    left = Finding(found.finding_id, Verdict.ORPHANED, Confidence.CERTAIN, None, "op", found)
    monkeypatch.setattr("tfguard.flows.leftovers.findings", lambda _: ([left], None))
    monkeypatch.setattr("tfguard.flows.leftovers.provider_of", lambda *_: AWS)
    begun(account, found, LATER)  # only a decision closes an operation beside what it left
    appears_after(account, timedelta(seconds=10))
    (kept,) = leftovers(account.context, OnGap.IGNORE, ())
    assert kept.object.import_id == "one"
    account.cloud.there.clear()
    account.cloud.clock.sleep = lambda _: False  # type: ignore[method-assign]
    (kept,) = leftovers(account.context, OnGap.IGNORE, ())
    assert kept.finding is left, "an interrupted look tells nothing"


def test_an_old_object_that_is_not_listed_is_gone_at_once(tmp_path: Path) -> None:
    account = Account(roles("one"), tmp_path)
    (found,) = account.roles
    account.cloud.there.clear()
    finding = Finding(found.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, found)
    assert (
        surely_now(account.context, OwnOperations(account.records), finding, replace(found, created_at=START), AWS)
        is None
    )
    assert account.cloud.clock.now() == LATER


def test_an_object_whose_name_is_withheld_is_never_taken_for_gone(tmp_path: Path) -> None:
    account = Account(roles("one"), tmp_path)
    now = object_now(account.context.around, replace(account.roles[0], id="<removed>", import_id="<removed>"), AWS)
    assert isinstance(now, Refusal) and "withheld" in now.what


@pytest.mark.parametrize(("cloud", "advised"), [("aws", True), ("google", False)])
def test_a_tag_that_is_refused_is_advised_on_in_the_words_of_its_own_cloud(
    tmp_path: Path, cloud: str, advised: bool
) -> None:
    account = Account(roles("one"), tmp_path)
    found = replace(account.roles[0], cloud=cloud)
    entry = Disposition(found.finding_id, DispositionKind.RETAIN, LATER, "ada", "audit", "", until=LATER, tagged=True)
    entry = replace(entry, import_id=found.import_id, object=decided_object(found))
    (told,) = tag_kept(replace(account.context, actions=None), [entry], [], (), lambda _: AWS)
    assert told.failed
    assert told.advice.startswith("it is kept all the same")
    assert ("tag:TagResources" in told.advice) == advised
