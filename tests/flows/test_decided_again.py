"""Which decision counts about an object that is seen again: no clock ends a retention, no deletion hides a new one."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from test_dispose import Account, roles
from test_verify import START

from tfguard.flows.stray_findings import decidable
from tfguard.model.disposition import DestroyStage, Disposition, DispositionKind
from tfguard.model.evidence import Confidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import Coverage
from tfguard.model.since import KeptFinding, KeptScan, KeptTimes
from tfguard.reconcile.verdicts import kept_by, last_decisions

HOUR = timedelta(hours=1)
AHEAD = START + timedelta(days=900)


def kept(account: Account, first: datetime, last: datetime) -> KeptScan:
    """A scan that told of the account's role from `first` to `last`."""
    (found,) = account.roles
    one = KeptFinding(found.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, found, first, last)
    return KeptScan(KeptTimes(last - HOUR, last), Coverage(), (one,))


def decide(account: Account, kind: DispositionKind, at: datetime, **more: Any) -> Disposition:
    entry = Disposition(account.roles[0].finding_id, kind, at, "me", "why", "", **more)
    account.records.decide([entry])
    return entry


def only(account: Account, scan: KeptScan) -> Finding:
    (finding,) = decidable(account.context, scan)[0]
    return finding


@pytest.fixture
def account(tmp_path: Path) -> Account:
    """One role, with an empty ledger."""
    return Account(roles("one"), tmp_path)


def test_a_retention_holds_until_its_date_though_it_was_made_by_a_clock_that_is_behind(account: Account) -> None:
    entry = decide(account, DispositionKind.RETAIN, START - HOUR, until=AHEAD, owner="me")
    assert only(account, kept(account, START, START + HOUR)).disposition == entry
    decide(account, DispositionKind.RELEASE, START - 2 * HOUR)
    finding = only(account, kept(account, START, START + HOUR))
    assert finding.disposition is None
    assert finding.evidence[-1].kind is EvidenceKind.RELEASED


def test_what_belongs_elsewhere_stays_so_for_later_scans(account: Account) -> None:
    entry = decide(account, DispositionKind.RETAIN, START + HOUR)
    assert only(account, kept(account, START, START + 5 * HOUR)).disposition == entry


def test_a_retention_is_overdue_whenever_it_was_made(account: Account) -> None:
    decide(account, DispositionKind.RETAIN, START - 2 * HOUR, until=START - HOUR, owner="me")
    finding = only(account, kept(account, START, START + HOUR))
    assert (finding.disposition, finding.evidence[-1].kind) == (None, EvidenceKind.OVERDUE)


@pytest.mark.parametrize("decided", [(DispositionKind.DESTROY, DestroyStage.ABSENT), (DispositionKind.IMPORT, None)])
@pytest.mark.parametrize(("at", "hidden"), [(START + 3 * HOUR, True), (START + HOUR, False), (START - HOUR, False)])
def test_what_was_settled_is_a_finding_again_once_a_later_scan_has_seen_it(
    account: Account, decided: tuple[DispositionKind, DestroyStage | None], at: datetime, hidden: bool
) -> None:
    kind, stage = decided
    decide(account, kind, at, stage=stage)
    finding = only(account, kept(account, START, START + 2 * HOUR))
    assert (finding.disposition is not None) is hidden


def test_a_retention_before_a_verified_deletion_does_not_come_back(account: Account) -> None:
    decide(account, DispositionKind.RETAIN, START, until=AHEAD, owner="me")
    decide(account, DispositionKind.DESTROY, START + HOUR, stage=DestroyStage.ABSENT)
    assert only(account, kept(account, START, START + 2 * HOUR)).disposition is None


def test_a_scan_takes_the_order_of_the_ledger_and_not_of_its_clocks() -> None:
    first = Disposition("o-1", DispositionKind.RELEASE, START, "me", "r", "")
    behind = replace(first, kind=DispositionKind.RETAIN, at=START - HOUR, until=AHEAD)
    assert kept_by([[first, behind]], START) == {"o-1": behind}
    assert kept_by([[behind, first]], START) == {}
    assert last_decisions([[first], [behind]]) == {"o-1": first}
