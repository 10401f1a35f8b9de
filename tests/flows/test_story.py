"""What is known of a run that nobody saw end, and which decisions speak about it; with fakes of engine and cloud."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from test_records import Heard, OneHost
from test_records import intent as plain_intent
from test_verify import AWS, CATALOG, END, START, Answer, FakeClock, FakeInventory, answers, listing, role

from tfguard.errors import CorruptRecordError, OperationAliveError
from tfguard.flows.context import StackContext
from tfguard.flows.looking import Surroundings
from tfguard.flows.records import Records
from tfguard.flows.recover import RecoverOptions, recover
from tfguard.flows.settle import Settling, settle
from tfguard.model.config import Config
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.evidence import Confidence, EvidenceKind
from tfguard.model.lock import StateLock
from tfguard.model.operation import (
    BaselineEntry,
    ErroredState,
    Intent,
    JournalEntry,
    ObservedObject,
    Operation,
    OperationStatus,
    Outcome,
    Result,
    Step,
    StreamHealth,
)
from tfguard.model.plan import Action
from tfguard.model.state import EMPTY_STATE, StateSnapshot
from tfguard.ports import ImportProbe
from tfguard.reconcile.findings import decisions_since, findings_of
from tfguard.schemas.records import encode_intent
from tfguard.stores.local import LocalStore

APP, OTHER = "aws_iam_role.app", "aws_iam_role.other"
CHILD = Step(
    "aws_iam_role_policy.child",
    "aws_iam_role_policy",
    AWS,
    Action.CREATE,
    desired={"name": "child", "role": "app"},
    provider_key="aws",
)
BOOT = "boot-1"
LATER = END + timedelta(hours=1)
WHOLE = StreamHealth(whole=True)
UNTOLD = ImportProbe(None, "not known")
REFUSED = answers(listing(gap="AccessDenied"))


class BootedHost(OneHost):
    """A host that was started once."""

    def boot(self) -> str:
        """The id of that boot."""
        return BOOT


@dataclass
class FakeEngine:
    """An engine that left this stream behind, and that has no state."""

    left: tuple[Sequence[EngineEvent], StreamHealth] | None = None
    state: StateSnapshot = EMPTY_STATE
    answer: ImportProbe = UNTOLD
    probed: list[str] = field(default_factory=list)
    held: StateLock | None = None

    def lock(self) -> StateLock | None:
        """Who has the state."""
        return self.held

    def discard_import_blocks(self) -> None:
        """There are none."""

    def leftover_events(self, run_directory: Path) -> tuple[Sequence[EngineEvent], StreamHealth] | None:  # noqa: ARG002
        """The stream."""
        return self.left

    def pull_state(self) -> StateSnapshot:
        """The state."""
        return self.state

    def errored_state(self) -> ErroredState | None:
        """Everything was saved."""
        return None

    def probe_import(self, address: str, import_id: str, arguments: Sequence[str]) -> ImportProbe:  # noqa: ARG002
        """What the engine itself finds."""
        self.probed.append(address)
        return self.answer


def make_context(
    folder: Path,
    answer: Answer,
    *,
    engine: FakeEngine | None = None,
    clock: FakeClock | None = None,
    store: LocalStore | None = None,
) -> StackContext:
    """A stack whose record lies in `folder`, made of fakes, an hour after its run."""
    clock, console = clock or FakeClock(LATER), Heard()
    host = BootedHost()
    around = Surroundings(FakeInventory(answer), CATALOG, Config(), clock, console)  # type: ignore[arg-type]
    records = Records(store or LocalStore(folder / "record"), clock, host)  # type: ignore[arg-type]
    return StackContext(plain_intent().stack, engine or FakeEngine(), records, around, host)  # type: ignore[arg-type]


def make_intent(folder: Path, **fields: object) -> Intent:
    """A run that was to make two roles, in a folder of its own."""
    steps = tuple(
        Step(address, "aws_iam_role", AWS, Action.CREATE, desired={"name": name}, provider_key="aws")
        for address, name in ((APP, "app"), (OTHER, "other"))
    )
    told = {"steps": steps, "started_at": START, "run_directory": str(folder / "01A"), "boot_id": BOOT}
    return replace(plain_intent(), **(told | fields))  # type: ignore[arg-type]


def start(address: str) -> EngineEvent:
    """The engine says that it begins a create."""
    return EngineEvent(EventKind.APPLY_START, timestamp=START.isoformat(), address=address, action="create")


def entry(address: str | None, kind: str = "apply_start", **fields: str) -> JournalEntry:
    """What the journal kept."""
    return JournalEntry(START, kind, address, **{"action": "create", **fields})  # type: ignore[arg-type]


def settled(context: StackContext, intent: Intent, journal: Sequence[JournalEntry] = ()) -> Operation:
    """The operation after a look at what a killed run left: its journal, and the engine's stream."""
    context.records.begin(intent, ())
    if journal:
        context.records.journal(intent.operation_id, journal)
    return settle(context, context.records.operation(intent.operation_id), Settling(patient=False))


def kinds(operation: Operation) -> set[EvidenceKind]:
    """What the outcomes rest on."""
    return {item.kind for step in operation.steps for item in step.evidence}


# --- a stream that is shorter than the journal ---


@pytest.mark.parametrize("stream", [[], [start(OTHER)]], ids=["0 bytes", "shorter"])
def test_a_start_that_only_the_journal_has_counts_and_the_streams_silence_proves_nothing(
    tmp_path: Path, stream: list[EngineEvent]
) -> None:
    context = make_context(tmp_path, REFUSED, engine=FakeEngine((stream, WHOLE)))
    found = settled(context, make_intent(tmp_path), [entry(OTHER), entry(APP)] if stream else [entry(APP)])
    assert [step.outcome for step in found.steps] == [Outcome.UNKNOWN, Outcome.UNKNOWN]
    assert EvidenceKind.NEVER_STARTED not in kinds(found)
    assert found.result is not None
    assert (found.result.stream.whole, found.result.status) == (False, OperationStatus.INTERRUPTED)
    assert {item.address for item in found.journal} == ({APP, OTHER} if stream else {APP})
    assert context.records.head().open_operations == ("01A",)


def test_an_error_that_only_the_journal_has_is_the_steps_error(tmp_path: Path) -> None:
    context = make_context(tmp_path, REFUSED, engine=FakeEngine(([start(APP)], WHOLE)))
    found = settled(context, make_intent(tmp_path), [entry(APP), entry(APP, "apply_errored")])
    assert [item.kind for item in found.journal] == ["apply_start", "apply_errored"]
    assert found.steps[0].status.value == "error"


def test_a_step_that_a_whole_stream_never_names_was_never_started(tmp_path: Path) -> None:
    context = make_context(tmp_path, REFUSED, engine=FakeEngine(([start(APP)], WHOLE)))
    found = settled(context, make_intent(tmp_path), [entry(APP), entry(None, "signal", action="SIGINT")])
    assert [step.outcome for step in found.steps] == [Outcome.UNKNOWN, Outcome.ABSENT]
    assert found.result is not None
    assert found.result.stream.whole
    assert EvidenceKind.NEVER_STARTED in kinds(found)


def test_an_id_that_the_journal_kept_is_not_lost_to_the_stream(tmp_path: Path) -> None:
    done = replace(start(APP), kind=EventKind.APPLY_COMPLETE)
    context = make_context(tmp_path, REFUSED, engine=FakeEngine(([start(APP), done], WHOLE)))
    found = settled(context, make_intent(tmp_path), [entry(APP), entry(APP, "apply_complete", id="app")])
    assert [item.id for item in found.journal] == [None, "app"]
    assert found.steps[0].reported_id == "app"


@pytest.mark.parametrize(
    ("boot", "outcome"), [(BOOT, Outcome.ABSENT), ("boot-0", Outcome.UNKNOWN), ("", Outcome.UNKNOWN)]
)
def test_after_a_restart_of_the_machine_silence_proves_nothing(tmp_path: Path, boot: str, outcome: Outcome) -> None:
    context = make_context(tmp_path, REFUSED, engine=FakeEngine(([], WHOLE)))
    found = settled(context, make_intent(tmp_path, boot_id=boot))
    assert {step.outcome for step in found.steps} == {outcome}
    assert found.result is not None
    assert found.result.stream.whole is (outcome is Outcome.ABSENT)


# --- decisions about an object of the same identity ---

STRAY = role()
BEFORE, SINCE = START - timedelta(days=1), START + timedelta(minutes=1)


def decision(at: datetime) -> Disposition:
    """A person's word that the role is kept."""
    return Disposition(STRAY.finding_id, DispositionKind.RETAIN, at, "me@here", "why", "00Z")


def orphaned(tmp_path: Path) -> Operation:
    """An operation with the role as its orphan."""
    seen = ObservedObject(
        "aws_iam_role", "app", "app", "aws", None, "global", False, Confidence.CERTAIN, STRAY.finding_id
    )
    intent = make_intent(tmp_path)
    step = replace(intent.steps[0], outcome=Outcome.ORPHANED, observed=(seen,))
    return Operation(intent, Result("01A", OperationStatus.ERROR, END, (step,)))


@pytest.mark.parametrize(("at", "counts"), [(BEFORE, False), (START, True), (SINCE, True)])
def test_a_decision_that_is_older_than_the_operation_leaves_its_finding_undecided(
    tmp_path: Path, at: datetime, counts: bool
) -> None:
    operation, made = orphaned(tmp_path), decision(at)
    assert decisions_since(operation, [made]) == ({STRAY.finding_id: made} if counts else {})
    (finding,) = findings_of([operation], [made], SINCE)
    assert (finding.id, finding.disposition) == (STRAY.finding_id, made if counts else None)


@pytest.mark.parametrize(("at", "decided"), [(BEFORE, None), (SINCE, "retain")])
def test_a_look_closes_an_orphan_by_a_decision_of_its_own_time_alone(
    tmp_path: Path, at: datetime, decided: str | None
) -> None:
    there = answers(listing(role(created=SINCE)))
    context = make_context(tmp_path, there, engine=FakeEngine(([start(APP)], WHOLE)))
    context.records.decide([decision(at)])
    found = settled(context, make_intent(tmp_path))
    assert (found.steps[0].outcome, found.steps[0].disposition) == (Outcome.ORPHANED, decided)
    assert found.open is (decided is None)
    assert context.records.head().open_operations == (("01A",) if decided is None else ())


# --- a look from another place ---


@pytest.mark.parametrize(("account", "probed"), [("123456789012", [APP]), ("999999999999", []), (None, [APP])])
def test_the_engine_is_not_asked_from_another_account_than_the_run_worked_in(
    tmp_path: Path, account: str | None, probed: list[str]
) -> None:
    engine = FakeEngine(([start(APP)], WHOLE))
    context = make_context(tmp_path, REFUSED, engine=engine)
    before = BaselineEntry("aws_iam_role", "aws", account, "global", False, "aws", reason="--baseline=off")
    found = settled(context, make_intent(tmp_path, baseline=(before,)))
    assert engine.probed == probed
    assert found.steps[0].outcome is Outcome.UNKNOWN
    assert ("ask there" in found.steps[0].evidence[-1].detail) is (not probed)


@pytest.mark.parametrize(("account", "probed"), [("123456789012", [CHILD.address]), ("999999999999", [])])
def test_a_child_that_only_the_engine_can_read_is_not_absent_for_want_of_it_in_another_account(
    tmp_path: Path, account: str, probed: list[str]
) -> None:
    engine = FakeEngine(([start(CHILD.address)], WHOLE), answer=ImportProbe(False, "the engine itself finds no child"))
    context = make_context(tmp_path, answers(listing(role())), engine=engine)
    before = BaselineEntry("aws_iam_role", "aws", account, "global", True, "aws")
    found = settled(context, make_intent(tmp_path, steps=(CHILD,), baseline=(before,)))
    assert engine.probed == probed
    assert found.steps[0].outcome is (Outcome.ABSENT if probed else Outcome.UNKNOWN)


@pytest.mark.parametrize(
    ("boot", "held", "refused"),
    [
        ("elsewhere", StateLock("l-1", who="ci@far"), True),
        ("elsewhere", StateLock("l-1", process_known=True), False),
        ("elsewhere", None, False),
        (BOOT, StateLock("l-1", who="ci@far"), False),
    ],
)
def test_a_run_of_another_host_is_not_concluded_while_its_engine_may_hold_the_state(
    tmp_path: Path, boot: str, held: StateLock | None, refused: bool
) -> None:
    context = make_context(tmp_path, answers(listing()), engine=FakeEngine(held=held))
    context.records.begin(make_intent(tmp_path, boot_id=boot), ())
    operation = context.records.operation("01A")
    if not refused:
        settle(context, operation, Settling(patient=False))
        return
    with pytest.raises(OperationAliveError, match="locked by ci@far: its engine may still be at work"):
        settle(context, operation, Settling(patient=False))
    assert context.records.operation("01A").result is None


def test_recover_settles_an_operation_that_is_on_no_list_and_leaves_one_that_was_packed_away(tmp_path: Path) -> None:
    context = make_context(tmp_path, answers(listing()))
    context.records.begin(make_intent(tmp_path), ())
    context.records.finish(Result("01A", OperationStatus.OK, END, ()), None)
    store = LocalStore(tmp_path / "record")
    forgotten = make_intent(tmp_path, operation_id="01B")
    store.create("operations/01B/intent.json", encode_intent(forgotten))
    settled = recover(context, RecoverOptions())
    assert [operation.id for operation in settled] == ["01B"]
    assert context.records.operation("01B").result is not None
    assert context.records.without_outcome() == ()


def test_recover_does_not_pass_over_an_intent_that_is_damaged(tmp_path: Path) -> None:
    context = make_context(tmp_path, answers(listing()))
    context.records.begin(make_intent(tmp_path), ())
    context.records.finish(Result("01A", OperationStatus.OK, END, ()), None)
    (tmp_path / "record" / "operations" / "01A" / "intent.json").write_text("")
    with pytest.raises(CorruptRecordError):
        recover(context, RecoverOptions())
