"""An operation: one command that changes a stack, from intent to outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tfguard.model.cloud import cloud_of_type
from tfguard.model.engine import EngineInfo
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.failure import Failure
from tfguard.model.lease import Lease
from tfguard.model.plan import Action


class StepStatus(StrEnum):
    """What the engine told about a step."""

    PENDING = "pending"
    RUNNING = "running"
    OK = "ok"
    ERROR = "error"
    RETAINED = "retained"
    DESTROYED = "destroyed"
    ABSENT = "absent"


class Outcome(StrEnum):
    """What the evidence says about a step."""

    RECORDED = "recorded"
    TAINTED = "tainted"
    ORPHANED = "orphaned"
    DUPLICATED = "duplicated"
    ABSENT = "absent"
    UNKNOWN = "unknown"

    @property
    def needs_action(self) -> bool:
        """Whether a step with this outcome keeps its operation open (docs/interface.md, "Words")."""
        return self in (Outcome.ORPHANED, Outcome.DUPLICATED, Outcome.UNKNOWN)


class OperationStatus(StrEnum):
    """How an operation stands."""

    RUNNING = "running"
    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Stack:
    """Which state an operation changes. `location` never holds a credential."""

    backend: str
    location: str
    workspace: str
    directory: str


@dataclass(frozen=True, slots=True)
class Actor:
    """Who started an operation: a user of a machine, and in CI the job, and whoever triggered it (`ci_actor`)."""

    user: str
    host: str
    ci_url: str | None = None
    ci_commit: str | None = None
    ci_job: str | None = None
    ci_actor: str | None = None
    ci_system: str | None = None

    @property
    def name(self) -> str:
        """Who answers for what is done: whoever triggered the CI job, where that is known, else the user."""
        return self.ci_actor or self.user

    @property
    def signature(self) -> str:
        """How what is done is signed in a ledger: the user and machine, in CI whoever triggered which job."""
        if self.ci_system is None:
            return f"{self.user}@{self.host}"
        return f"{self.name} ({self.ci_system} {self.ci_job})" if self.ci_job else f"{self.name} ({self.ci_system})"


@dataclass(frozen=True, slots=True)
class Approved:
    """Who approved what an operation applies, how (a `request.Approval` that gives it) and when."""

    how: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class AppliedPlan:
    """Which operation was the first to apply a plan file, and who approved that: one applied digest, one approval."""

    operation_id: str
    at: datetime
    by: str
    how: str


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """An object that the provider was seen to hold for a step. `in_state` tells the one that the state knows.

    One that is `soft_deleted` was deleted by then, and only waited for its end: till `gone_after`, where that was told.
    """

    type: str
    id: str
    import_id: str
    cloud: str
    account: str | None
    region: str
    in_state: bool
    confidence: Confidence
    finding_id: str | None = None
    arn: str | None = None
    name: str | None = None
    created_at: datetime | None = None
    stateful: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    soft_deleted: bool = False
    gone_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One planned change of an operation and what became of it.

    `withheld` names the identity attributes that are not in `desired` and `before` since they carry a secret.
    `fingerprint` is that of the object before (see `StateInstance`); only a repair's steps have one.
    """

    address: str
    type: str
    provider: str
    action: Action
    status: StepStatus = StepStatus.PENDING
    outcome: Outcome | None = None
    desired: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    cloud: str = ""
    account: str | None = None
    region: str | None = None
    provider_key: str = ""
    reported_id: str | None = None
    observed: tuple[ObservedObject, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    error: str | None = None
    disposition: str | None = None
    withheld: tuple[str, ...] = ()
    deposed: str | None = None
    fingerprint: str = ""
    own_account: str | None = None

    @property
    def own_place(self) -> str | None:
        """The region or the account (a project) that the resource names itself, whatever its provider configuration
        says. What asks for a list names it. Earlier versions kept a region of Google Cloud, which is no place there."""
        cloud = cloud_of_type(self.type)
        return self.own_account or (None if cloud is not None and cloud.place_is_account else self.region)

    @property
    def open(self) -> bool:
        """Whether somebody still has to look at this step."""
        return self.disposition is None and self.outcome is not None and self.outcome.needs_action

    @property
    def tainted(self) -> bool:
        """Whether the state marks its object for replacement; there may be a second object for the address besides."""
        return self.outcome is Outcome.TAINTED or any(item.kind is EvidenceKind.TAINTED for item in self.evidence)


@dataclass(frozen=True, slots=True)
class ErroredState:
    """An `errored.tfstate` that the engine left behind: where it lies, what it is, and whether it was pushed since."""

    path: str
    rescued: str | None
    lineage: str
    serial: int
    pushed: bool = False


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """Which objects of one type existed before a run, by finding id; `complete` is false when the list was refused.

    `provider_key` and `asked_region` say how the list was asked for, `account` and `region` where the answer came from.
    What is asked for in a project of a resource's own has that as its `asked_region`.
    """

    type: str
    cloud: str
    account: str | None
    region: str
    complete: bool
    provider_key: str = ""
    asked_region: str = ""
    object_ids: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedProvider:
    """A provider configuration as far as it may be kept, so that a later look can ask the same place.

    Settings that could be secrets are left out; `partial` then says that the configuration itself has to be asked.
    """

    key: str
    source: str
    settings: Mapping[str, str] = field(default_factory=dict)
    unresolved: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Intent:
    """What is written before the engine may change anything. Written once, never changed.

    `state_out` is the file that `-state-out` sends the new state to, where that is not the stack's own. `moved` are
    source and destination of a `state mv`, `moved_to` the file of the other state that it moves to. `state_unread`
    tells that the state before could not be read, which is not the same as that there was none.
    """

    operation_id: str
    command: str
    argv: tuple[str, ...]
    stack: Stack
    engine: EngineInfo
    actor: Actor
    started_at: datetime
    lineage: str
    serial_before: int
    steps: tuple[Step, ...]
    baseline: tuple[BaselineEntry, ...] = ()
    providers: tuple[RecordedProvider, ...] = ()
    outputs_before: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    var_files: tuple[str, ...] = ()
    plan_digest: str | None = None
    approval: Approved | None = None
    user_agent: str | None = None
    run_directory: str | None = None
    boot_id: str = ""
    state_out: str | None = None
    on_gap_reason: str | None = None
    adopts: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    moved_to: str | None = None
    state_unread: bool = False


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One thing that happened during the run, without any text that the engine printed (rule 10)."""

    at: datetime
    kind: str
    address: str | None = None
    action: str | None = None
    id: str | None = None
    detail: str | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class StreamHealth:
    """How well the engine's event stream could be read: what was passed over is counted, never dropped silently.

    `whole` tells that the engine's own stream was read to its end without a cut line: only then does "never started"
    follow from silence. A journal is written in batches, and is no such stream.
    """

    events: int = 0
    unknown: int = 0
    plain: int = 0
    cut: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What is written after the run, and again when a later look has settled more."""

    operation_id: str
    status: OperationStatus
    ended_at: datetime
    steps: tuple[Step, ...]
    exit_code: int | None = None
    signal: int | None = None
    lineage: str = ""
    serial_after: int | None = None
    error: str | None = None
    errored_state: ErroredState | None = None
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stream: StreamHealth = field(default_factory=StreamHealth)

    @property
    def open(self) -> bool:
        """Whether the operation stands in the way of the next one (docs/interface.md, "Words")."""
        unpushed = self.errored_state is not None and not self.errored_state.pushed
        return self.status is OperationStatus.RUNNING or unpushed or any(step.open for step in self.steps)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation as its record tells it: the intent, and the result when there is one.

    `journal_cut` counts the lines of the journal that nobody can read: something happened that `journal` does not tell.
    """

    intent: Intent
    result: Result | None
    journal: tuple[JournalEntry, ...] = ()
    journal_cut: int = 0

    @property
    def id(self) -> str:
        """The operation's id; ids sort by time."""
        return self.intent.operation_id

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps as they are known now."""
        return self.result.steps if self.result else self.intent.steps

    @property
    def lineage(self) -> str:
        """The lineage of the state that it left, else of the one that it started from; empty where there was none."""
        return (self.result.lineage if self.result else "") or self.intent.lineage

    @property
    def open(self) -> bool:
        """Whether the operation is not settled; one without a result always is."""
        return self.result is None or self.result.open


@dataclass(frozen=True, slots=True)
class Head:
    """The one mutable document of a stack's record: what is current, what is open, who holds the lease.

    Of a blueprint's record also `events`: how many the journal of the current request has at least, so that a journal
    that has lost its end is noticed.
    """

    revision: int = 0
    current: str | None = None
    open_operations: tuple[str, ...] = ()
    lease: Lease | None = None
    events: int | None = None
