"""A ledger with a line that nobody can read: what it may keep is not deleted before somebody has decided again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from test_dispose import Account, roles

from tfguard.errors import UsageError
from tfguard.flows.retain import Keeping, release, retain
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict

REASON = "asked around"


def findings(account: Account) -> Sequence[Finding]:
    return [Finding(one.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, one) for one in account.roles]


def keep(account: Account, *ids: str) -> None:
    """Retain these findings for a day."""
    retain(account.context, ids, findings(account), Keeping(REASON, timedelta(days=1), "me"))


def cut_last_line(account: Account) -> None:
    """What a power cut leaves of the last line."""
    path = account.folder / "record" / "dispositions.jsonl"
    data = path.read_bytes()
    path.write_bytes(data[: data.rstrip().rfind(b"\n") + 1] + data.splitlines()[-1][:60])


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    """Two roles, of which the first was retained; the line that says so is cut."""
    monkeypatch.setattr("tfguard.flows.retain.settle_those_that_saw", lambda *_: None)
    found = Account(roles("one", "two"), tmp_path)
    keep(found, found.roles[0].finding_id)
    cut_last_line(found)
    return found


def test_nothing_is_deleted_that_a_cut_line_may_keep_and_the_way_on_is_named(account: Account) -> None:
    one = account.roles[0].finding_id
    with pytest.raises(UsageError, match=rf"whether {one} is kept is not known: a line of .*dispositions.jsonl") as why:
        account.destroy()
    assert f"`tfguard orphans release {one} --reason TEXT`" in why.value.advice
    assert sorted(account.cloud.there) == ["one", "two"]


def test_a_retention_that_was_made_before_the_cut_is_no_last_word(account: Account) -> None:
    one, two = (found.finding_id for found in account.roles)
    keep(account, one, two)
    cut_last_line(account)
    assert account.records.ledger_damage() is not None
    with pytest.raises(UsageError, match=f"whether {one} is kept is not known|whether {two} is kept is not known"):
        account.destroy()


def test_whoever_says_that_nobody_keeps_it_may_delete_that_one_alone(account: Account) -> None:
    one, two = account.roles
    (entry,) = release(account.context, [one.finding_id], REASON)
    assert (entry.finding_id, entry.reason) == (one.finding_id, REASON)
    with pytest.raises(UsageError, match=f"whether {two.finding_id} is kept is not known"):
        account.destroy_these(findings(account)[1:], confirmed=("two",))
    (done,) = account.destroy_these(findings(account)[:1], confirmed=("one",))
    assert (done.absent, list(account.cloud.there)) == (True, ["two"])


def test_what_a_run_itself_notes_of_a_deletion_is_nobodys_word(account: Account) -> None:
    one = account.roles[0].finding_id
    release(account.context, [one], REASON)
    account.destroy_these(findings(account)[:1], confirmed=("one",))
    account.records.decide([account.records.dispositions()[-1]])
    damage = account.records.ledger_damage()
    assert damage is not None and damage.since == {one}
    last = account.ledger().splitlines()[-1]
    (account.folder / "record" / "dispositions.jsonl").write_text(f'{{"cut\n{last}\n')
    damage = account.records.ledger_damage()
    assert damage is not None and damage.since == frozenset()


@pytest.mark.parametrize("name", ["", "o-", "o-zz", "app"])
def test_no_word_is_taken_about_what_is_no_finding(account: Account, name: str) -> None:
    with pytest.raises(UsageError, match="is not retained"):
        release(account.context, [name], REASON)


def test_the_damage_is_said_and_a_whole_ledger_is_not_spoken_of(account: Account) -> None:
    said: list[str] = []
    console: Any = type("Heard", (), {"warn": lambda _, text: said.append(text)})()
    account.records.warn_of_ledger(console)
    assert len(said) == 1 and "a line of" in said[0] and "cannot be read" in said[0]
    (account.folder / "record" / "dispositions.jsonl").write_bytes(b"")
    account.records.warn_of_ledger(console)
    assert (len(said), account.records.ledger_damage()) == (1, None)
    with pytest.raises(UsageError, match="is not retained"):
        release(account.context, [account.roles[0].finding_id], REASON)
