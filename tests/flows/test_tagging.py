"""The tags of a retention: what another ledger has put there stays, and a late refusal undoes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from test_dispose import Account, roles

from tfguard.flows.retain import Keeping, release, retain
from tfguard.flows.tagging import Tagged, tag_kept, untag_released
from tfguard.model.action import ActionAnswer
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.plan import ProviderConfig
from tfguard.model.retention_tags import OWNER, UNTIL, retention_tags

AWS = ProviderConfig("aws", "hashicorp/aws")


@dataclass
class Kept:
    """One role that is kept with a tag, as it is at the provider."""

    folder: Path
    account: Account = field(init=False)
    meanwhile: Callable[[], object] = lambda: None
    refused: str = ""

    def __post_init__(self) -> None:
        self.account = Account(roles("one"), self.folder)
        self.account.context = replace(self.account.context, actions=self)  # type: ignore[arg-type]
        (found,) = self.account.roles
        self.finding = Finding(found.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, found)

    def tag(self, _: object, __: object, tags: Mapping[str, str]) -> ActionAnswer:
        """Put them on it, unless that is refused."""
        self.account.cloud.clock.time += timedelta(seconds=30)
        self.meanwhile()
        if not self.refused:
            self.put(self.tags | tags)
        return ActionAnswer(refused=self.refused)

    def untag(self, *_: object) -> ActionAnswer:
        """Take both away."""
        self.put({name: value for name, value in self.tags.items() if name not in (UNTIL, OWNER)})
        return ActionAnswer()

    @property
    def tags(self) -> Mapping[str, str]:
        """Those that it has."""
        return self.account.cloud.there["one"].tags

    def put(self, tags: Mapping[str, str]) -> None:
        """Give it these tags."""
        there = self.account.cloud.there
        there["one"] = replace(there["one"], tags=dict(tags))

    def keep(self, days: int) -> Tagged:
        """Keep it here."""
        known, keeping = [self.finding], Keeping("audit", timedelta(days=days), "us", tag=True)
        entries = retain(self.account.context, [self.finding.id], known, keeping)
        (told,) = tag_kept(self.account.context, entries, known, (), lambda _: AWS)
        return told

    def let_go(self) -> Tagged:
        """Release it here."""
        entries = release(self.account.context, [self.finding.id], "done")
        (told,) = untag_released(self.account.context, entries, (), lambda _: AWS)
        return told

    def kept_elsewhere(self, days: int) -> Mapping[str, str]:
        """Another ledger puts its tags on it."""
        tags = retention_tags(self.account.cloud.clock.now() + timedelta(days=days), "them")
        self.put(self.tags | tags)
        return tags

    @property
    def ledger(self) -> list[Disposition]:
        """What was decided here."""
        return list(self.account.records.dispositions())


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_its_own_tags_are_moved_and_taken_away(kept: Kept) -> None:
    assert not kept.keep(2).failed
    first = kept.tags[UNTIL]
    assert not kept.keep(9).failed
    assert kept.tags[UNTIL] > first
    assert not kept.let_go().failed
    assert kept.tags == {}


def test_a_tag_by_which_another_ledger_keeps_it_is_left_at_a_release(kept: Kept) -> None:
    kept.keep(2)
    others = kept.kept_elsewhere(30)
    told = kept.let_go()
    assert f"until {others[UNTIL]} by them" in told.failed
    assert kept.tags == others
    assert kept.ledger[-1].kind is DispositionKind.RELEASE


def test_a_tag_by_which_another_ledger_keeps_it_is_not_replaced(kept: Kept) -> None:
    others = kept.kept_elsewhere(30)
    told = kept.keep(2)
    assert (f"until {others[UNTIL]} by them" in told.failed, kept.tags) == (True, others)
    assert "allow" not in told.advice
    assert [(one.kind, one.tagged) for one in kept.ledger][-1] == (DispositionKind.RETAIN, False)


def test_a_tag_of_another_ledger_whose_date_is_over_is_replaced(kept: Kept) -> None:
    others = kept.kept_elsewhere(-1)
    assert not kept.keep(2).failed
    assert kept.tags[UNTIL] > others[UNTIL]


@pytest.mark.parametrize("meanwhile", [True, False])
def test_a_tag_that_is_refused_undoes_no_release_that_came_meanwhile(kept: Kept, meanwhile: bool) -> None:
    kept.refused = "AccessDenied on TagResources"
    if meanwhile:
        kept.meanwhile = lambda: release(kept.account.context, [kept.finding.id], "not needed")
    assert kept.keep(2).failed
    assert kept.ledger[-1].kind is (DispositionKind.RELEASE if meanwhile else DispositionKind.RETAIN)
    assert meanwhile or not kept.ledger[-1].tagged


@pytest.mark.parametrize(("cloud", "listed"), [("aws", True), ("google", False)])
def test_where_no_tag_is_ever_set_nobody_lists_what_others_have_put_there(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, cloud: str, listed: bool
) -> None:
    asked: list[object] = []
    monkeypatch.setattr("tfguard.flows.tagging.object_now", lambda *_: asked.append(1))
    assert kept.finding.object is not None
    kept.finding = replace(kept.finding, object=replace(kept.finding.object, cloud=cloud))
    kept.keep(2)
    assert bool(asked) is listed
