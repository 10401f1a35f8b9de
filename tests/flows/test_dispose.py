"""What `orphans destroy` refuses, and what it does when it is interrupted; with fakes of engine and cloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packed import MovedClock
from test_records import intent as plain_intent
from test_story import LATER, BootedHost, FakeEngine
from test_verify import CATALOG, START, FakeInventory, listing, role

from tfguard.flows.context import StackContext
from tfguard.flows.dispose import DestroyOptions, Disposed, destroy_orphans
from tfguard.flows.looking import Surroundings
from tfguard.flows.records import Records
from tfguard.model.config import Config
from tfguard.model.disposition import DestroyStage
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.lease import ProcessIdentity
from tfguard.model.plan import ProviderConfig
from tfguard.model.state import StateInstance
from tfguard.ports import Deletion, DeletionTarget
from tfguard.stores.local import LocalStore


class ThisHost(BootedHost):
    """A host with one process."""

    def process(self) -> ProcessIdentity:
        return ProcessIdentity(1, 1)


@dataclass
class Cloud(FakeEngine):
    """An engine that deletes; where it `interrupts`, a signal comes while it does."""

    clock: MovedClock = field(default_factory=lambda: MovedClock(LATER))
    there: dict[str, CloudObject] = field(default_factory=dict)
    interrupts: bool = False

    def prepare_deletion(self, target: DeletionTarget, *_: object) -> Deletion:
        return Deletion(target.import_id in self.there)

    def delete_object(self, target: DeletionTarget, *_: object) -> Deletion:
        self.clock.interrupted = self.interrupts
        del self.there[target.import_id]
        return Deletion(True, deleted=True, interrupted=self.interrupts)


class Silent:
    """A console that nobody reads."""

    def say(self, text: str) -> None:
        """Not shown."""

    warn = say


@dataclass
class Account:
    """Roles that exist and that a scan has found, with all around a deletion of them."""

    roles: list[CloudObject]
    folder: Path
    interrupts: bool = False

    def __post_init__(self) -> None:
        self.cloud = Cloud(there={found.import_id: found for found in self.roles}, interrupts=self.interrupts)
        inventory = FakeInventory(lambda *_: listing(*self.cloud.there.values()))
        inventory.list_many = lambda *_: iter(())  # type: ignore[attr-defined]
        around = Surroundings(inventory, CATALOG, Config(), self.cloud.clock, Silent())  # type: ignore[arg-type]
        self.records = Records(LocalStore(self.folder / "record"), self.cloud.clock, ThisHost())  # type: ignore[arg-type]
        self.context = StackContext(plain_intent().stack, self.cloud, self.records, around, ThisHost())  # type: ignore[arg-type]

    def destroy(self, **options: Any) -> Sequence[Disposed]:
        """Delete all of them, approved by name."""
        found = [Finding(one.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, one) for one in self.roles]
        names = tuple(one.import_id for one in self.roles)
        return destroy_orphans(
            self.context,
            [finding.id for finding in found],
            found,
            DestroyOptions("stray", yes=True, confirmed=names, **options),
            self.folder / "runs",
            lambda _: ProviderConfig("aws", "hashicorp/aws"),
        )

    def stages(self, found: CloudObject) -> list[DestroyStage | None]:
        """What the ledger says of the deletion of one."""
        return [entry.stage for entry in self.records.dispositions() if entry.finding_id == found.finding_id]


def roles(*names: str) -> list[CloudObject]:
    return [role(name, created=START) for name in names]


def test_what_holds_data_is_never_deleted_in_bulk(tmp_path: Path) -> None:
    account = Account([replace(found, stateful=True) for found in roles("one", "two", "three")], tmp_path)
    done = {one.object.import_id: one for one in account.destroy(stateful=True)}
    assert [name for name, one in done.items() if one.absent] == ["one"]
    assert all("so does another" in done[name].what for name in ("two", "three"))
    assert list(account.cloud.there) == ["two", "three"]


def test_without_leave_nothing_that_holds_data_goes(tmp_path: Path) -> None:
    account = Account([replace(found, stateful=True) for found in roles("one")], tmp_path)
    (done,) = account.destroy()
    assert (done.stage, "holds data" in done.what, list(account.cloud.there)) == (None, True, ["one"])


def test_what_a_state_has_taken_while_the_question_was_asked_stays(tmp_path: Path) -> None:
    (taken,) = roles("one")
    account = Account([taken], tmp_path)
    empty = account.cloud.state
    held = StateInstance("aws_iam_role.one", "aws_iam_role", "aws", "aws", dict(taken.identity) | {"id": "one"})
    states = iter([empty, replace(empty, instances=(held,))])
    account.cloud.pull_state = lambda: next(states)  # type: ignore[method-assign]
    (done,) = account.destroy()
    assert ("is managed already" in done.what, list(account.cloud.there)) == (True, ["one"])
    assert account.stages(taken) == [DestroyStage.REQUESTED, DestroyStage.STOPPED]


def test_an_interrupt_ends_the_deletion_that_is_under_way_and_begins_no_other(tmp_path: Path) -> None:
    account = Account(roles("one", "two"), tmp_path, interrupts=True)
    first, second = account.destroy()
    assert (first.stage, second.stage) == (DestroyStage.ABSENT, DestroyStage.STOPPED)
    assert "interrupted" in second.what
    assert list(account.cloud.there) == ["two"]
    assert account.stages(account.roles[1]) == [DestroyStage.REQUESTED, DestroyStage.STOPPED]
