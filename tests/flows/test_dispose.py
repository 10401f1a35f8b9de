"""What `orphans destroy` does when the user interrupts it between two objects; with fakes of engine and cloud."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from packed import MovedClock
from test_records import intent as plain_intent
from test_story import LATER, BootedHost, FakeEngine
from test_verify import CATALOG, START, FakeInventory, listing, role

from tfguard.flows.context import StackContext
from tfguard.flows.dispose import DestroyOptions, destroy_orphans
from tfguard.flows.records import Records
from tfguard.flows.verify import Surroundings
from tfguard.model.config import Config
from tfguard.model.disposition import DestroyStage
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.lease import ProcessIdentity
from tfguard.model.plan import ProviderConfig
from tfguard.ports import Deletion, DeletionTarget
from tfguard.stores.local import LocalStore


class ThisHost(BootedHost):
    """A host with one process."""

    def process(self) -> ProcessIdentity:
        return ProcessIdentity(1, 1)


@dataclass
class Cloud(FakeEngine):
    """An engine that deletes, and hears an interrupt while it does so the first time."""

    clock: MovedClock = field(default_factory=lambda: MovedClock(LATER))
    there: dict[str, CloudObject] = field(default_factory=dict)

    def prepare_deletion(self, target: DeletionTarget, *_: object) -> Deletion:
        return Deletion(target.import_id in self.there)

    def delete_object(self, target: DeletionTarget, *_: object) -> Deletion:
        self.clock.interrupted = True
        del self.there[target.import_id]
        return Deletion(True, deleted=True, interrupted=True)


class Silent:
    """A console that nobody reads."""

    def say(self, text: str) -> None:
        """Not shown."""

    warn = say


def test_an_interrupt_ends_the_deletion_that_is_under_way_and_begins_no_other(tmp_path: Path) -> None:
    roles = [role(name, created=START) for name in ("one", "two")]
    cloud = Cloud(there={found.import_id: found for found in roles})
    inventory = FakeInventory(lambda *_: listing(*cloud.there.values()))
    inventory.list_many = lambda *_: iter(())  # type: ignore[attr-defined]
    around = Surroundings(inventory, CATALOG, Config(), cloud.clock, Silent())  # type: ignore[arg-type]
    records = Records(LocalStore(tmp_path / "record"), cloud.clock, ThisHost())  # type: ignore[arg-type]
    context = StackContext(plain_intent().stack, cloud, records, around, ThisHost())  # type: ignore[arg-type]
    findings = [Finding(one.finding_id, Verdict.UNMANAGED, Confidence.CERTAIN, None, None, one) for one in roles]
    done = destroy_orphans(
        context,
        [finding.id for finding in findings],
        findings,
        DestroyOptions("stray", yes=True, confirmed=("one", "two")),
        tmp_path / "runs",
        lambda _: ProviderConfig("aws", "hashicorp/aws"),
    )
    first, second = done
    assert (first.stage, second.stage) == (DestroyStage.ABSENT, DestroyStage.STOPPED)
    assert "interrupted" in second.what
    assert list(cloud.there) == ["two"]
    assert [entry.stage for entry in records.dispositions() if entry.finding_id == roles[1].finding_id] == [
        DestroyStage.REQUESTED,
        DestroyStage.STOPPED,
    ]
