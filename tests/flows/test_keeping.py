"""A retention under the stack's lease, and what an untaint of several tells when the record fails; with fakes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from test_dispose import Account, roles

from tfguard.errors import OperationAliveError, RecordError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.retain import Keeping, kept_for, made_again, retain
from tfguard.flows.untaint import Untainted, UntaintOptions, untaint
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.operation import Step
from tfguard.model.plan import Action

KEEPING = Keeping("an audit", owner="audit", arguments=("-var=size=2",))


def findings(account: Account, verdict: Verdict = Verdict.UNMANAGED) -> list[Finding]:
    return [Finding(one.finding_id, verdict, Confidence.CERTAIN, "a.b", None, one) for one in account.roles]


def test_operations_are_settled_under_the_lease_and_with_the_stacks_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, seen = Account(roles("one"), tmp_path), []

    def settled(context: StackContext, ids: Collection[str], arguments: Sequence[str]) -> None:
        seen.append((set(ids), tuple(arguments), context.records.head().lease is not None))

    monkeypatch.setattr("tfguard.flows.retain.settle_those_that_saw", settled)
    (found,) = findings(account)
    retain(account.context, [found.id], [found], KEEPING)
    assert seen == [({found.id}, ("-var=size=2",), True)]
    assert account.records.head().lease is None


def test_whose_address_is_configured_is_said_to_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(roles("one"), tmp_path)
    monkeypatch.setattr(account.cloud, "declares", lambda address: address == "a.b", raising=False)
    (found,) = findings(account)

    def told(**fields: object) -> list[str]:
        return list(made_again(account.context, [replace(found, **fields)]))  # type: ignore[arg-type]

    assert told() == ["a.b is still in the configuration: the next apply makes another one"]
    in_module = told(address="module.m.a.b")
    assert in_module == ["if module.m.a.b is still in the configuration, the next apply makes another one"]
    assert told(address="a.other") == told(address=None) == told(verdict=Verdict.DUPLICATED) == []


@pytest.mark.parametrize(
    ("address", "action", "days", "told"),
    [
        ("a.b", Action.CREATE, 1, True),
        ("a.b", Action.REPLACE, 1, False),  # which the state has: the kept one is another
        ("a.c", Action.CREATE, 1, False),
        ("a.b", Action.CREATE, -1, False),
    ],
)
def test_before_an_apply_creates_what_it_had_made_and_is_kept_that_is_said(
    tmp_path: Path, address: str, action: Action, days: int, told: bool
) -> None:
    account = Account(roles("one"), tmp_path)
    (found,) = findings(account)
    until = account.cloud.clock.now() + timedelta(days=days)
    kept = Disposition(
        found.id, DispositionKind.RETAIN, account.cloud.clock.now(), "me", "why", "", "a.b", "one", until, owner="audit"
    )
    account.records.decide([kept])
    lines = list(kept_for(account.context, [Step(address, "a", "p", action)]))
    assert len(lines) == told
    assert all("a.b is to be created" in line and found.id in line and "by audit" in line for line in lines)


def test_while_another_run_holds_the_stack_nothing_is_retained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(roles("one"), tmp_path)

    def held(*_: object) -> None:
        raise OperationAliveError("another run holds the stack", "wait")

    monkeypatch.setattr(account.records, "claim", held)
    (found,) = findings(account)
    with pytest.raises(OperationAliveError):
        retain(account.context, [found.id], [found], KEEPING)
    assert account.records.dispositions() == ()


def test_what_was_untainted_before_the_record_failed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account, told = Account(roles("one", "two", "three"), tmp_path), list[Untainted]()
    answers = iter([UsageError("it is gone", "look"), RecordError("the record cannot be written", "mend it")])

    def untainted(*_: object) -> Untainted:
        raise next(answers)

    monkeypatch.setattr("tfguard.flows.untaint._untaint", untainted)
    known = findings(account, Verdict.TAINTED)
    with pytest.raises(RecordError):
        untaint(account.context, [one.id for one in known], known, UntaintOptions("why"), tmp_path, told.append)
    assert [(one.finding_id, one.what) for one in told] == [(known[0].id, "it is gone")]
