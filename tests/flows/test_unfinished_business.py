"""What nobody answers for any more: lapsed decisions that stop a destroy, and deletions without an end; with fakes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from test_records import Heard
from test_story import LATER, SINCE, make_context, make_intent
from test_verify import END, START, Answer, FakeInventory, answers, listing, role

from tfguard.engine.arguments import Flags, change_request
from tfguard.errors import OpenOperationError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.deletions import look_after_deletions, under_way
from tfguard.flows.guard import GuardOptions, guard
from tfguard.flows.leftovers import leftovers, steps_to_look_for
from tfguard.flows.open_operations import settle_open_operations
from tfguard.flows.settle import settle_those_that_saw
from tfguard.model.config import OnGap
from tfguard.model.disposition import DecidedObject, DestroyStage, Disposition, DispositionKind
from tfguard.model.evidence import Confidence
from tfguard.model.inventory import CloudObject, Listing, Scope
from tfguard.model.operation import ObservedObject, OperationStatus, Outcome, Result, StepStatus
from tfguard.model.plan import Action, ProviderConfig
from tfguard.model.state import StateInstance
from tfguard.reconcile.look import Look
from tfguard.reconcile.outcomes import conclude
from tfguard.reconcile.progress import Progress

ACCOUNT = "123456789012"
STRAY = role(created=SINCE)
GONE, THERE, REFUSED = answers(listing()), answers(listing(STRAY)), answers(listing(gap="AccessDenied"))
FAR = answers(Listing("aws_iam_role", Scope("aws", "999999999999", "global", "aws"), (role(),)))
NOBODY_KNOWS = answers(Listing("aws_iam_role", Scope("aws", None, "global", "aws")))
PAST = END + timedelta(minutes=1)


def entry(kind: DispositionKind, stage: DestroyStage | None = None) -> Disposition:
    """A decision about the role, made after the run."""
    kept = DecidedObject("aws_iam_role", "aws", ACCOUNT, "global", "app", f"arn:aws:iam::{ACCOUNT}:role/app")
    return Disposition(
        STRAY.finding_id, kind, END, "me@here", "why", "01A", "aws_iam_role.app", "app", PAST, stage=stage, object=kept
    )


def closed(tmp_path: Path, answer: Answer, *entries: Disposition) -> StackContext:
    """A stack with a settled operation that left a role, and these decisions about it."""
    context = make_context(tmp_path, answer)
    intent = make_intent(tmp_path)
    context.records.begin(intent, ())
    seen = ObservedObject(
        "aws_iam_role", "app", "app", "aws", ACCOUNT, "global", False, Confidence.CERTAIN, STRAY.finding_id, name="app"
    )
    step = replace(intent.steps[0], outcome=Outcome.ORPHANED, observed=(seen,), disposition="retain")
    context.records.finish(Result("01A", OperationStatus.ERROR, END, (step,)), None)
    context.records.decide(entries)
    return context


KEPT = entry(DispositionKind.RETAIN)
LAPSED = [
    KEPT,
    entry(DispositionKind.RELEASE),
    entry(DispositionKind.DESTROY, DestroyStage.STOPPED),
    entry(DispositionKind.DESTROY, DestroyStage.IN_PROGRESS),
]


def heard(context: StackContext) -> str:
    """All that was said."""
    assert isinstance(context.console, Heard)
    return "\n".join(context.console.lines)


def asked(context: StackContext) -> int:
    """How many lists were made."""
    assert isinstance(context.around.inventory, FakeInventory)
    return len(context.around.inventory.asked)


# --- a destroy does not pass over what a lapsed decision was about ---


@pytest.mark.parametrize("lapsed", LAPSED, ids=lambda one: f"{one.kind} {one.stage}")
@pytest.mark.parametrize("answer", [THERE, REFUSED], ids=["there", "refused"])
def test_what_is_there_or_cannot_be_looked_at_after_its_decision_lapsed_stops_a_destroy(
    tmp_path: Path, lapsed: Disposition, answer: Answer
) -> None:
    context = closed(tmp_path, answer, lapsed)
    left = leftovers(context, OnGap.RECONCILE, ())
    with pytest.raises(OpenOperationError) as raised:
        settle_open_operations(context, OnGap.RECONCILE, None, (), left)
    assert f"aws_iam_role.app left app ({STRAY.finding_id})" in raised.value.what
    assert "orphans list" in raised.value.advice


@pytest.mark.parametrize("lapsed", LAPSED, ids=lambda one: f"{one.kind} {one.stage}")
def test_an_apply_stops_at_it_too_before_it_plans_a_second_one(
    tmp_path: Path, lapsed: Disposition, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = closed(tmp_path, THERE, lapsed)
    monkeypatch.setattr("tfguard.flows.guard.holding", lambda *_: nullcontext())
    request = change_request("apply", (), Flags())
    with pytest.raises(OpenOperationError, match=r"aws_iam_role\.app left app") as raised:
        guard(context, request, (), GuardOptions(), tmp_path / "runs")
    assert (raised.value.exit_code, "--on-gap=ignore --reason" in raised.value.advice) == (11, True)


def test_what_the_state_has_by_now_stops_nothing(tmp_path: Path) -> None:
    context = closed(tmp_path, THERE, KEPT)
    held = StateInstance("aws_iam_role.app", "aws_iam_role", "aws", "aws", {"id": "app", "name": "app"})
    context.engine.state = replace(context.engine.pull_state(), instances=(held,))  # type: ignore[attr-defined]
    assert (leftovers(context, OnGap.RECONCILE, ()), leftovers(context, OnGap.BLOCK, ())) == ((), ())


def test_with_an_empty_ledger_neither_operations_nor_state_nor_cloud_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, read = closed(tmp_path, THERE), list[str]()
    monkeypatch.setattr(context.records, "operation", read.append)
    monkeypatch.setattr(context.engine, "pull_state", lambda: read.append("state"))
    assert leftovers(context, OnGap.RECONCILE, ()) == ()
    assert (read, asked(context)) == ([], 0)


@pytest.mark.parametrize(
    ("on_gap", "answer", "entries"),
    [
        (OnGap.RECONCILE, GONE, [KEPT]),
        (OnGap.IGNORE, GONE, [KEPT]),
        (OnGap.BLOCK, THERE, [replace(KEPT, until=LATER + timedelta(days=1))]),
        (OnGap.BLOCK, THERE, [entry(DispositionKind.DESTROY, DestroyStage.ABSENT)]),
    ],
)
def test_what_is_gone_or_decided_stops_nothing(
    tmp_path: Path, on_gap: OnGap, answer: Answer, entries: list[Disposition]
) -> None:
    context = closed(tmp_path, answer, *entries)
    left = leftovers(context, on_gap, ())
    assert (left, settle_open_operations(context, on_gap, None, (), left)) == ((), ())


def test_to_stop_at_once_nothing_is_looked_at(tmp_path: Path) -> None:
    context = closed(tmp_path, GONE, KEPT)
    (left,) = leftovers(context, OnGap.BLOCK, ())
    assert (left.finding.id, asked(context)) == (STRAY.finding_id, 0)


def test_what_is_left_is_ignored_for_a_reason_alone_and_named(tmp_path: Path) -> None:
    context = closed(tmp_path, THERE, KEPT)
    left = leftovers(context, OnGap.IGNORE, ())
    with pytest.raises(UsageError, match=STRAY.finding_id):
        settle_open_operations(context, OnGap.IGNORE, None, (), left)
    assert settle_open_operations(context, OnGap.IGNORE, "a teardown", (), left) == ()
    assert STRAY.finding_id in heard(context)
    assert "a teardown" in heard(context)


@pytest.mark.parametrize(
    ("at_the_end", "outcome"),
    [(THERE, Outcome.ORPHANED), (GONE, Outcome.ABSENT), (REFUSED, Outcome.UNKNOWN)],
    ids=["there", "gone", "refused"],
)
@pytest.mark.parametrize("before", [THERE, REFUSED], ids=["there before", "refused before"])
def test_what_is_ignored_is_looked_for_at_the_end_whatever_the_engine_says(
    tmp_path: Path, before: Answer, at_the_end: Answer, outcome: Outcome
) -> None:
    context = closed(tmp_path, before, KEPT)
    (step,) = steps_to_look_for(context, leftovers(context, OnGap.IGNORE, ()))
    (told,) = Progress(finished=True).apply_to([step], True)
    assert (told.action, told.status) == (Action.NOOP, StepStatus.ERROR)
    answer = at_the_end("aws_iam_role", ProviderConfig("aws", ""), None)
    listings = {("aws_iam_role", told.provider_key, ""): answer}
    look = Look(context.engine.pull_state(), listings, (), START, END, LATER, timedelta(minutes=2))
    (concluded,) = conclude([told], look, context.around.catalog)
    assert (concluded.outcome, concluded.open) == (outcome, outcome is not Outcome.ABSENT)


def test_what_a_settlement_leaves_open_is_said_with_the_next_command(tmp_path: Path) -> None:
    context = make_context(tmp_path, THERE)
    intent = make_intent(tmp_path)
    context.records.begin(intent, ())
    seen = ObservedObject(
        "aws_iam_role", "app", "app", "aws", ACCOUNT, "global", False, Confidence.CERTAIN, STRAY.finding_id, name="app"
    )
    steps = (replace(intent.steps[0], outcome=Outcome.ORPHANED, observed=(seen,)),)
    context.records.finish(Result("01A", OperationStatus.ERROR, END, steps), None)
    settle_those_that_saw(context, {STRAY.finding_id})
    told = heard(context).splitlines()
    assert told[0] == "operation 01A is still open:"
    assert told[1].startswith("  aws_iam_role.app is orphaned: app (")
    assert told[-1] == f"  next: tfguard import --orphan {STRAY.finding_id}"

    context.records.decide([replace(KEPT, until=LATER + timedelta(days=1))])
    settle_those_that_saw(context, {STRAY.finding_id})
    assert heard(context).splitlines()[-1] == "operation 01A is settled"


# --- deletions without an end ---


def nowhere(_: CloudObject) -> None:
    """Nobody to ask."""


def of_a_scan(tmp_path: Path, answer: Answer) -> StackContext:
    """A stack without operations, and a deletion of what a scan had found."""
    context = make_context(tmp_path, answer)
    context.records.decide([replace(entry(DispositionKind.DESTROY, DestroyStage.REQUESTED), operation_id="")])
    return context


@pytest.mark.parametrize("stage", [DestroyStage.REQUESTED, DestroyStage.IN_PROGRESS, DestroyStage.STOPPED])
@pytest.mark.parametrize(
    ("answer", "gone", "what"),
    [
        (GONE, True, "verified to be gone by recover"),
        (THERE, False, "it is still there"),
        (REFUSED, False, "it cannot be looked at: AccessDenied"),
        (FAR, False, f"it is in the account {ACCOUNT}, and the list tells of 999999999999"),
        (NOBODY_KNOWS, False, "which account the list tells of is not known"),
        (answers(replace(listing(), soft_deleted=(STRAY,))), True, "it is deleted, and gone after"),
    ],
    ids=["gone", "there", "refused", "elsewhere", "nobody knows where", "waits for its end"],
)
def test_a_deletion_without_an_end_is_verified_by_a_complete_look_alone(
    tmp_path: Path, stage: DestroyStage, answer: Answer, gone: bool, what: str
) -> None:
    begun = replace(entry(DispositionKind.DESTROY, stage), object=_known_account())
    context = closed(tmp_path, answer, begun)
    (looked,) = look_after_deletions(context, (), nowhere, tmp_path / "runs")
    assert (looked.gone, what in looked.what) == (gone, True), looked.what
    assert looked.in_the_way is (not gone and stage is not DestroyStage.STOPPED)
    ledger = context.records.dispositions()
    assert [one.stage for one in ledger] == [stage, *([DestroyStage.ABSENT] if gone else [])]
    assert ledger[-1].import_id == "app"
    left = [] if gone or stage is DestroyStage.STOPPED else [begun]
    assert list(under_way(context.records)) == left
    assert context.records.head().lease is None


def _known_account() -> DecidedObject:
    return DecidedObject("aws_iam_role", "aws", ACCOUNT, "global", "app")


def test_a_deletion_of_what_a_scan_found_is_looked_at_as_a_scan_would(tmp_path: Path) -> None:
    context = of_a_scan(tmp_path, GONE)
    (unasked,) = look_after_deletions(context, (), nowhere, tmp_path / "runs")
    assert (unasked.gone, "whom to ask" in unasked.what, asked(context)) == (False, True, 0)
    (looked,) = look_after_deletions(context, (), lambda _: ProviderConfig("aws", "hashicorp/aws"), tmp_path / "runs")
    assert looked.gone
    assert under_way(context.records) == ()


def test_where_no_deletion_is_unfinished_nobody_is_asked_and_no_lease_is_taken(tmp_path: Path) -> None:
    context = closed(tmp_path, GONE, entry(DispositionKind.DESTROY, DestroyStage.ABSENT))
    assert (look_after_deletions(context, (), nowhere, tmp_path / "runs"), asked(context)) == ((), 0)
    nothing = make_context(tmp_path / "other", GONE)
    assert look_after_deletions(nothing, (), nowhere, tmp_path / "runs") == ()
    assert not (tmp_path / "other" / "record").exists()
