"""What a scan found and somebody decided about is told by the ledger, also where the scan's own file is not given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from test_dispose import Account, roles
from test_records import Heard
from test_story import LATER
from test_verify import START

from tfguard.catalog.loader import load_catalog
from tfguard.errors import InputError
from tfguard.flows.retain import Keeping, decided_object, release, retain
from tfguard.flows.stray_findings import decidable, warn_of_less_searched
from tfguard.model.disposition import DestroyStage, Disposition, DispositionKind
from tfguard.model.evidence import Confidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Coverage
from tfguard.model.scan import ScanScope, ScopePart
from tfguard.model.since import KeptFinding, KeptScan, KeptTimes
from tfguard.model.state import EMPTY_STATE, StateInstance

DAY = timedelta(days=1)
AWS = 'provider["registry.terraform.io/hashicorp/aws"]'


def decide(account: Account, kind: DispositionKind, **more: Any) -> None:
    """A line about the account's only role."""
    (found,) = account.roles
    entry = Disposition(found.finding_id, kind, LATER - 2 * DAY, "them", "why", "", import_id=found.import_id)
    account.records.decide([replace(entry, object=decided_object(found), **more)])


def told(account: Account, kept: KeptScan | None = None) -> Sequence[Finding]:
    """What can be decided about, and waits for it."""
    return [one for one in decidable(account.context, kept)[0] if one.disposition is None]


@pytest.fixture
def account(tmp_path: Path) -> Account:
    """One role, with an empty ledger."""
    return Account(roles("one"), tmp_path)


def test_what_was_kept_is_told_once_it_is_overdue_and_once_it_is_released_and_goes(account: Account) -> None:
    (found,) = account.roles
    known = [Finding(found.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, found)]
    retain(account.context, [found.finding_id], known, Keeping("audit", 2 * DAY, "team"))
    (held,) = decidable(account.context, None)[0]
    assert held.disposition is not None
    (again,) = retain(account.context, [found.finding_id], [held], Keeping("audit", DAY, "team"))
    assert told(account) == []
    account.cloud.clock.time += 3 * DAY
    (overdue,) = told(account)
    assert (overdue.verdict, overdue.evidence[0].kind) == (Verdict.UNMANAGED, EvidenceKind.OVERDUE)
    assert overdue.object and overdue.object.key == found.key
    release(account.context, [found.finding_id], "done")
    (released,) = told(account)
    assert (released.evidence[0].kind, released.first_seen) == (EvidenceKind.RELEASED, again.at)
    (done,) = account.destroy_these([released], confirmed=("one",))
    assert done.absent, done.what
    assert told(account) == []


def test_what_the_ledger_tells_goes_where_its_id_is_not_what_imports_it(tmp_path: Path) -> None:
    (found,) = (replace(one, id="AROA1") for one in roles("one"))
    account = Account([found], tmp_path)
    decide(account, DispositionKind.RELEASE)
    (done,) = account.destroy_these(told(account), confirmed=("one",))
    assert done.absent, done.what


@pytest.mark.parametrize(
    ("stage", "is_told"),
    [
        (DestroyStage.REQUESTED, True),
        (DestroyStage.IN_PROGRESS, True),
        (DestroyStage.STOPPED, True),
        (DestroyStage.ABSENT, False),
    ],
)
def test_a_deletion_is_told_until_it_is_verified(account: Account, stage: DestroyStage, is_told: bool) -> None:
    decide(account, DispositionKind.DESTROY, stage=stage)
    assert [one.evidence[0].kind for one in told(account)] == [EvidenceKind.DELETION] * is_told


@pytest.mark.parametrize("kind", [DispositionKind.RETAIN, DispositionKind.RELEASE, DispositionKind.RESTORE])
def test_what_the_stack_has_by_now_is_no_finding(account: Account, kind: DispositionKind) -> None:
    decide(account, kind, until=LATER - DAY if kind is DispositionKind.RETAIN else None)
    assert len(told(account)) == 1
    instance = StateInstance("aws_iam_role.a", "aws_iam_role", AWS, identity={"name": "one", "id": "one"})
    account.cloud.state = replace(EMPTY_STATE, lineage="l", instances=(instance,))
    assert told(account) == []
    account.cloud.state = EMPTY_STATE
    decide(account, DispositionKind.IMPORT)
    assert told(account) == []


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        (DispositionKind.RELEASE, {}),
        (DispositionKind.RESTORE, {}),
        (DispositionKind.DESTROY, {"stage": DestroyStage.ABSENT, "until": LATER + DAY}),
    ],
)
def test_an_address_without_an_operation_here_is_another_stacks(
    account: Account, kind: DispositionKind, more: Any
) -> None:
    decide(account, kind, address="aws_iam_role.app", **more)
    (finding,) = decidable(account.context, None)[0]
    assert (finding.address, finding.operation_id) == (None, None)


def test_a_state_that_cannot_be_read_hides_nothing(account: Account) -> None:
    decide(account, DispositionKind.RELEASE)

    def unreadable() -> None:
        raise InputError("it cannot be read", "mend it")

    account.cloud.pull_state = unreadable  # type: ignore[method-assign, assignment]
    assert len(told(account)) == 1


def test_whether_it_holds_data_the_catalogue_tells(tmp_path: Path) -> None:
    queue = CloudObject("aws", "123456789012", "us-east-1", "aws_sqs_queue", "q", "q", stateful=True)
    account = Account([queue], tmp_path)
    around = replace(account.context.around, catalog=load_catalog())
    account.context = replace(account.context, around=around)
    decide(account, DispositionKind.RELEASE)
    (finding,) = told(account)
    assert finding.object and finding.object.stateful


def scan(account: Account, verdict: Verdict | None = None) -> KeptScan:
    """A complete scan, from a day after the decision; of the role it tells this verdict, or nothing."""
    (found,) = account.roles
    assert found.account is not None
    one = KeptFinding(
        found.finding_id, verdict or Verdict.UNMANAGED, Confidence.CERTAIN, object=found, first_seen=START
    )
    part = ScopePart(found.cloud, found.account, (found.region,), (found.type,))
    times = KeptTimes(LATER - DAY, LATER)
    return KeptScan(times, Coverage(), (one,) if verdict else (), scope=ScanScope(lists=(part,)))


def test_that_the_states_of_a_scan_are_not_searched_is_said_of_what_it_had_found(account: Account) -> None:
    decide(account, DispositionKind.RELEASE)
    (finding,) = told(account)
    console = Heard()
    context = replace(account.context, around=replace(account.context.around, console=console))
    made, marked = replace(finding, id="o-2", operation_id="01A"), replace(finding, id="o-3", verdict=Verdict.TAINTED)
    warn_of_less_searched(context, [finding.id, "o-2", "o-3"], [finding, replace(finding, id="o-1"), made, marked])
    assert [line.split()[0] for line in console.lines] == [finding.id]
    assert "--findings FILE" in console.lines[0]


def test_what_a_scan_tells_itself_it_tells_better(account: Account) -> None:
    decide(account, DispositionKind.RELEASE)
    (finding,) = told(account, scan(account, Verdict.UNMANAGED))
    assert finding.object and finding.object.created_at == START
    assert [item.kind for item in finding.evidence] == [EvidenceKind.RELEASED]


def test_what_a_scan_does_not_tell_is_told_all_the_same_until_somebody_has_looked_for_it(account: Account) -> None:
    decide(account, DispositionKind.RELEASE)
    assert told(account, scan(account)) == told(account) != []


@pytest.mark.parametrize("by", ["a release", "its date", "a deletion that was stopped"])
def test_what_was_kept_when_a_scan_saw_it_and_is_not_any_more_goes_with_the_scans_file_too(
    account: Account, by: str
) -> None:
    account.cloud.clock.time += 3 * DAY
    decide(account, DispositionKind.RETAIN, until=LATER + (DAY if by == "its date" else 9 * DAY), owner="me")
    if by != "its date":
        decide(account, DispositionKind.RELEASE, at=LATER + DAY)
    if by == "a deletion that was stopped":
        decide(account, DispositionKind.DESTROY, at=LATER + 2 * DAY, stage=DestroyStage.STOPPED)
    (finding,) = told(account, scan(account, Verdict.RETAINED))
    assert (finding.verdict, finding.object) == (Verdict.UNMANAGED, account.roles[0])
    (done,) = account.destroy_these([finding], confirmed=("one",))
    assert done.absent, done.what


@pytest.mark.parametrize("kind", [DispositionKind.RELEASE, DispositionKind.RETAIN])
def test_what_was_not_kept_here_any_more_when_a_scan_saw_it_kept_another_keeps(
    account: Account, kind: DispositionKind
) -> None:
    decide(account, kind, until=LATER - DAY if kind is DispositionKind.RETAIN else None)
    (finding,) = decidable(account.context, scan(account, Verdict.RETAINED))[0]
    assert finding.verdict is Verdict.RETAINED
