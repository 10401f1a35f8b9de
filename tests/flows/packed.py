"""What the tests of the archive share: a record with some months of operations, and stores that fail at a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tfguard.flows.records import Records
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.ids import new_operation_id
from tfguard.model.lease import Lease, Liveness, ProcessIdentity
from tfguard.model.operation import (
    Actor,
    EngineInfo,
    Intent,
    JournalEntry,
    ObservedObject,
    Operation,
    OperationStatus,
    Outcome,
    Result,
    Stack,
    Step,
    StepStatus,
)
from tfguard.model.plan import Action
from tfguard.model.transition import Transition
from tfguard.ports import RecordStore

START = datetime(2025, 1, 20, tzinfo=UTC)
STEP = Step("aws_iam_role.app", "aws_iam_role", "aws", Action.CREATE)
RESCUED = bytes(range(256))
"""No text: it has to be kept byte for byte all the same."""


@dataclass
class MovedClock:
    """A clock that a test moves, and that can tell of an interrupt."""

    time: datetime = START
    interrupted: bool = False

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> bool:
        self.time += timedelta(seconds=seconds)
        return True


class OneHost:
    """A host on which nobody lives any more."""

    def actor(self) -> Actor:
        return Actor("me", "here")

    def lease(self, operation_id: str, run_directory: str | None, now: datetime, expires_at: datetime) -> Lease:
        me = ProcessIdentity(1, 1)
        return Lease(operation_id, "me", "here", "", me, None, None, now, expires_at, run_directory)

    def liveness(self, lease: Lease, now: Callable[[], datetime]) -> Liveness:  # noqa: ARG002 (the port's signature)
        return Liveness.GONE


@dataclass
class Heard:
    """A console that keeps what it was told."""

    lines: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.lines.append(text)

    def confirm(self, question: str) -> bool:  # noqa: ARG002 (the port's signature)
        return False

    def ask(self, question: str) -> str | None:  # noqa: ARG002 (the port's signature)
        return None


def records_in(store: RecordStore, clock: MovedClock | None = None) -> Records:
    """The record in a store, as a new process would open it."""
    return Records(store, clock or MovedClock(), OneHost())  # type: ignore[arg-type]


def intent(operation_id: str, at: datetime) -> Intent:
    """An apply that creates one role."""
    stack = Stack("local", "/s/terraform.tfstate", "default", "/s")
    engine = EngineInfo("terraform", "1.11.4")
    return Intent(operation_id, "apply", ("apply",), stack, engine, Actor("me", "here"), at, "", 0, (STEP,))


def result(operation_id: str, at: datetime, outcome: Outcome, **changes: Any) -> Result:
    """An outcome with this of the one step."""
    step = replace(STEP, status=StepStatus.OK, outcome=outcome, **changes)
    return Result(operation_id, OperationStatus.OK, at, (step,), exit_code=0)


def orphaned(finding_id: str = "o-1") -> dict[str, Any]:
    """What a step that made an orphan has besides."""
    seen = ObservedObject("aws_iam_role", "app", "app", "aws", None, "global", False, Confidence.CERTAIN, finding_id)
    return {"observed": (seen,), "evidence": (Evidence(EvidenceKind.DESIRED_IDENTITY, "name = app"),)}


def run(records: Records, clock: MovedClock, outcome: Outcome = Outcome.RECORDED, **changes: Any) -> str:
    """One apply from its intent to its outcome, now; its id."""
    at = clock.now()
    operation_id = new_operation_id(at)
    records.begin(intent(operation_id, at), records.head().open_operations)
    for kind in ("apply_start", "apply_complete"):
        records.journal(operation_id, [JournalEntry(at, kind, STEP.address)])
    records.finish(result(operation_id, at + timedelta(seconds=5), outcome, **changes), None)
    return operation_id


def filled(store: RecordStore, clock: MovedClock, count: int, apart: timedelta = timedelta(days=10)) -> list[str]:
    """A record with closed operations, the last but one of which has rescued something; their ids, oldest first."""
    records = records_in(store, clock)
    ids: list[str] = []
    for number in range(count):
        outcome = Outcome.ABSENT if number % 3 == 1 else Outcome.RECORDED
        ids.append(run(records, clock, outcome))
        if number == count - 2:
            records.rescue(ids[-1], "errored.tfstate", RESCUED)
        clock.time += apart
    return ids


@dataclass(frozen=True)
class Told:
    """All that a record tells of an operation."""

    operation: Operation
    transitions: tuple[Transition, ...]
    rescued: bytes | None


def told(records: Records, ids: Sequence[str]) -> list[Told]:
    """What a record tells of these operations."""
    return [
        Told(records.operation(name), records.transitions(name), records.rescued(name, "errored.tfstate"))
        for name in ids
    ]


class PowerCutError(BaseException):
    """The machine goes down: nobody catches this."""


class FailingStore:
    """A store before another one: the writing call of this number fails, or (`after`) takes effect and then fails, and
    so do all later ones. They are counted from 1."""

    def __init__(self, inner: RecordStore, fails_at: int, *, after: bool, error: BaseException) -> None:
        self._inner = inner
        self._left = fails_at
        self._after = after
        self._error = error

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in ("create", "replace", "append", "remove"):
            return method

        def call(*arguments: Any) -> Any:
            self._left -= 1
            if self._left < 0 or (self._left == 0 and not self._after):
                raise self._error
            answer = method(*arguments)
            if self._left == 0:
                raise self._error
            return answer

        return call

    @property
    def reached(self) -> bool:
        """Whether the call was made."""
        return self._left <= 0
