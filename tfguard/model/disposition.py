"""What a person decided about an object that no state knew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class DispositionKind(StrEnum):
    """The three ways to settle a finding, what takes the second back, how a tainted object is kept, and what brings
    one back that was deleted and waits for its end, so that it can be adopted."""

    IMPORT = "import"
    RETAIN = "retain"
    DESTROY = "destroy"
    RELEASE = "release"
    UNTAINT = "untaint"
    RESTORE = "restore"


class DestroyStage(StrEnum):
    """How far a deletion is (docs/design.md, rule 13). What was requested and is not absent is gone on with."""

    REQUESTED = "requested"
    IN_PROGRESS = "in-progress"
    ABSENT = "absent"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class DecidedObject:
    """The object that was decided about, so that the ledger alone tells it: no state does."""

    type: str
    cloud: str
    account: str | None
    region: str
    name: str | None = None
    arn: str | None = None


@dataclass(frozen=True, slots=True)
class Disposition:
    """One line of the ledger: who settled which finding, how, when and why.

    Of what is retained `until` is when it becomes a finding again (None: it belongs elsewhere, and never does), `owner`
    who keeps it and `cost_owner` who pays. Of what was deleted and still waits for its end `until` is that end. `stage`
    is how far a deletion is; of what is restored it tells that the calls were not all made. `tagged`: a tag on the
    object itself is to say that it is kept.
    """

    finding_id: str
    kind: DispositionKind
    at: datetime
    actor: str
    reason: str
    operation_id: str
    address: str | None = None
    import_id: str | None = None
    until: datetime | None = None
    owner: str = ""
    cost_owner: str = ""
    stage: DestroyStage | None = None
    object: DecidedObject | None = None
    tagged: bool = False

    def holds(self, now: datetime) -> bool:
        """Whether the finding is settled by it: a retention whose date has passed, a release, and a deletion that was
        not verified settle nothing."""
        match self.kind:
            case DispositionKind.RETAIN:
                return not self.overdue(now)
            case DispositionKind.DESTROY:
                return self.stage is DestroyStage.ABSENT
            case DispositionKind.RELEASE | DispositionKind.RESTORE:
                return False
            case DispositionKind.IMPORT | DispositionKind.UNTAINT:
                return True

    def overdue(self, now: datetime) -> bool:
        """Whether it is a retention whose date has passed."""
        return self.kind is DispositionKind.RETAIN and self.until is not None and self.until <= now


@dataclass(frozen=True, slots=True)
class LedgerDamage:
    """Lines of the ledger that nobody can read: what was decided there is not known. `since` are the findings about
    which a person has decided later, so that nothing is missing about them."""

    where: str
    lines: int
    since: frozenset[str]

    @property
    def what(self) -> str:
        """The damage in one line."""
        count = "a line" if self.lines == 1 else f"{self.lines} lines"
        return f"{count} of {self.where} cannot be read: what a retention there keeps is not known"


def latest(ledger: Iterable[Disposition]) -> Mapping[str, Disposition]:
    """The last decision about each finding, by its id; `ledger` is oldest first."""
    return {entry.finding_id: entry for entry in ledger}
