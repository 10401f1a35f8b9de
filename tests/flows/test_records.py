"""The record of one stack: written before, never forgotten, never overwritten, one holder at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tfguard.errors import (
    ConflictError,
    CorruptRecordError,
    NewerRecordError,
    OpenOperationError,
    OperationAliveError,
    RecordError,
)
from tfguard.flows.heads import HEAD
from tfguard.flows.records import LEDGER, Records
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.lease import Lease, Liveness, ProcessIdentity
from tfguard.model.operation import (
    Actor,
    EngineInfo,
    ErroredState,
    Intent,
    JournalEntry,
    OperationStatus,
    Outcome,
    Result,
    Stack,
    Step,
)
from tfguard.model.plan import Action
from tfguard.schemas.records import encode_intent
from tfguard.stores.local import LocalStore

NOW = datetime(2025, 1, 1, tzinfo=UTC)
STEP = Step("aws_iam_role.app", "aws_iam_role", "aws", Action.CREATE)


@dataclass
class FixedClock:
    """A clock that a test moves."""

    time: datetime = NOW

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> bool:
        self.time += timedelta(seconds=seconds)
        return True


@dataclass
class OneHost:
    """A host on which a test says who lives."""

    living: Liveness = Liveness.GONE

    def actor(self) -> Actor:
        return Actor("me", "here")

    def lease(self, operation_id: str, run_directory: str | None, now: datetime, expires_at: datetime) -> Lease:
        me = ProcessIdentity(1, 1)
        return Lease(operation_id, "me", "here", "", me, None, None, now, expires_at, run_directory)

    def liveness(self, lease: Lease, now: Callable[[], datetime]) -> Liveness:  # noqa: ARG002 (the port's signature)
        return self.living


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


@pytest.fixture
def host() -> OneHost:
    return OneHost()


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "record")


@pytest.fixture
def records(store: LocalStore, host: OneHost) -> Records:
    return Records(store, FixedClock(), host)


def intent(operation_id: str = "01A") -> Intent:
    stack = Stack("local", "/s/terraform.tfstate", "default", "/s")
    actor = Actor("me", "here")
    return Intent(
        operation_id, "apply", ("apply",), stack, EngineInfo("terraform", "1.11.4"), actor, NOW, "", 0, (STEP,)
    )


def result(outcome: Outcome, operation_id: str = "01A") -> Result:
    return Result(operation_id, OperationStatus.OK, NOW, (replace(STEP, outcome=outcome),))


def test_an_operation_is_open_from_its_intent_on(records: Records) -> None:
    records.begin(intent(), ())
    head = records.head()
    assert (head.current, head.open_operations) == ("01A", ("01A",))
    assert head.lease is not None
    assert records.operation("01A").open


@pytest.mark.parametrize(
    ("outcome", "opened"),
    [
        (Outcome.RECORDED, ()),
        (Outcome.ABSENT, ()),
        (Outcome.TAINTED, ()),
        (Outcome.UNKNOWN, ("01A",)),
        (Outcome.ORPHANED, ("01A",)),
        (Outcome.DUPLICATED, ("01A",)),
    ],
)
def test_the_outcome_closes_the_operation_or_keeps_it_open(
    records: Records, outcome: Outcome, opened: tuple[str, ...]
) -> None:
    records.begin(intent(), ())
    records.finish(result(outcome), None)
    assert records.head().open_operations == opened
    assert records.head().lease is None


def test_a_state_that_was_not_saved_keeps_the_operation_open(records: Records) -> None:
    records.begin(intent(), ())
    lost = ErroredState("/s/errored.tfstate", None, "l", 2)
    first = replace(result(Outcome.RECORDED), errored_state=lost)
    records.finish(first, None)
    assert records.head().open_operations == ("01A",)
    records.finish(replace(first, errored_state=replace(lost, pushed=True)), first)
    assert records.head().open_operations == ()


@pytest.mark.parametrize("living", [Liveness.ALIVE, Liveness.ENGINE_ALONE])
def test_a_second_run_is_refused_while_the_first_lives_and_leaves_no_open_operation(
    records: Records, host: OneHost, living: Liveness
) -> None:
    records.begin(intent(), ())
    host.living = living
    with pytest.raises(OperationAliveError) as caught:
        records.begin(intent("01B"), ("01A",))
    assert caught.value.exit_code == 12
    refused = records.operation("01B")
    assert not refused.open
    assert refused.result is not None
    assert refused.result.status is OperationStatus.CANCELLED
    assert records.head().open_operations == ("01A",)


def test_an_operation_that_was_opened_meanwhile_stands_in_the_way(records: Records) -> None:
    records.begin(intent(), ())
    with pytest.raises(OpenOperationError):
        records.begin(intent("01B"), ())
    records.begin(intent("01C"), ("01A",))
    assert records.head().open_operations == ("01A", "01C")


def test_an_intent_is_never_overwritten(records: Records, store: LocalStore) -> None:
    records.begin(intent(), ())
    before = store.read("operations/01A/intent.json")
    with pytest.raises(Exception, match="written by another run"):
        records.begin(replace(intent(), command="destroy"), ("01A",))
    assert store.read("operations/01A/intent.json") == before


def test_the_lease_of_another_run_is_not_renewed(records: Records) -> None:
    records.begin(intent(), ())
    assert records.renew("01A", ProcessIdentity(7, 8))
    lease = records.head().lease
    assert lease is not None
    assert lease.engine == ProcessIdentity(7, 8)
    assert records.renew("01B"), "nothing to do for a lease that is not held here"
    assert records.head().lease == lease


def test_lines_that_were_cut_in_a_journal_are_counted(records: Records, store: LocalStore) -> None:
    records.begin(intent(), ())
    records.journal("01A", [JournalEntry(NOW, "apply_start", STEP.address, "create")])
    store.append("operations/01A/events.jsonl", b'{"v":1,"at":"2025')
    records.journal("01A", [JournalEntry(NOW, "apply_complete", STEP.address, "create")])
    found = records.operation("01A")
    assert [entry.kind for entry in found.journal] == ["apply_start", "apply_complete"]
    assert found.journal_cut == 1


@pytest.mark.parametrize("name", ["intent.json", "outcome.json", "events.jsonl"])
def test_an_error_names_the_document_that_is_damaged(records: Records, store: LocalStore, name: str) -> None:
    records.begin(intent(), ())
    records.finish(result(Outcome.RECORDED), None)
    _damage(store, f"operations/01A/{name}", b'{"v": "x"}\n')
    with pytest.raises(CorruptRecordError, match=name):
        records.operation("01A")


def test_damage_is_set_aside_but_never_that_of_an_intent(records: Records, store: LocalStore) -> None:
    records.begin(intent(), ())
    records.finish(result(Outcome.ORPHANED), None)
    for name in ("operations/01A/outcome.json", "operations/01A/events.jsonl", LEDGER):
        _damage(store, name, b'{"v": "x"}\n')
    heard = Heard()
    records.set_damage_aside("01A", heard)
    assert len(heard.lines) == 3
    assert all("unreadable-1" in line for line in heard.lines)
    assert records.operation("01A").result is None
    assert records.dispositions() == ()
    _damage(store, "operations/01A/intent.json", b"{")
    records.set_damage_aside("01A", heard)
    blob = store.read("operations/01A/intent.json")
    assert blob is not None
    assert blob.data == b"{"


def test_a_sound_record_is_not_set_aside(records: Records, store: LocalStore) -> None:
    records.begin(intent(), ())
    before = list(store.names(""))
    records.set_damage_aside("01A", Heard())
    assert not records.rebuild_head(Heard())
    assert list(store.names("")) == before


def test_a_damaged_head_is_kept_and_made_anew_from_the_operations(records: Records, store: LocalStore) -> None:
    for operation_id, outcome in (("01A", Outcome.RECORDED), ("01B", Outcome.ORPHANED), ("01C", Outcome.ABSENT)):
        records.begin(intent(operation_id), ("01B",))
        records.finish(result(outcome, operation_id), None)
    _damage(store, HEAD, b"{")
    with pytest.raises(CorruptRecordError):
        records.begin(intent("01D"), ())
    heard = Heard()
    assert records.rebuild_head(heard)
    assert (records.head().current, records.head().open_operations) == ("01D", ("01B",))
    kept = store.read(f"{HEAD}.unreadable-1")
    assert kept is not None
    assert kept.data == b"{"


def test_a_newer_head_is_not_touched(records: Records, store: LocalStore) -> None:
    records.begin(intent(), ())
    blob = store.read(HEAD)
    assert blob is not None
    _damage(store, HEAD, blob.data.replace(b"tfguard.head/v1", b"tfguard.head/v2"))
    for change in (lambda: records.rebuild_head(Heard()), lambda: records.begin(intent("01B"), ("01A",))):
        with pytest.raises(NewerRecordError):
            change()
    after = store.read(HEAD)
    assert after is not None
    assert b"head/v2" in after.data


def test_a_file_is_rescued_once_and_found_again(records: Records) -> None:
    records.begin(intent(), ())
    assert records.rescued("01A", "errored.tfstate") is None
    where = records.rescue("01A", "errored.tfstate", b"state")
    assert records.rescue("01A", "errored.tfstate", b"state") == where
    assert records.rescued("01A", "errored.tfstate") == b"state"


def test_decisions_are_added_and_kept_in_order(records: Records) -> None:
    for finding in ("o-1", "o-2"):
        records.decide([Disposition(finding, DispositionKind.IMPORT, NOW, "me@here", "why", "01A")])
    assert [entry.finding_id for entry in records.dispositions()] == ["o-1", "o-2"]


def _damage(store: LocalStore, name: str, data: bytes) -> None:
    blob = store.read(name)
    store.replace(name, data, blob.version if blob else None)


def test_an_outcome_that_somebody_else_has_revised_meanwhile_is_not_written_over(records: Records) -> None:
    records.begin(intent(), ())
    first, second = result(Outcome.UNKNOWN), result(Outcome.ABSENT)
    records.finish(first, None)
    records.finish(second, first)
    with pytest.raises(ConflictError, match="another tfguard"):
        records.finish(result(Outcome.ORPHANED), first)
    assert records.operation("01A").result == second


def test_open_operations_keep_the_order_of_their_ids(records: Records) -> None:
    for operation_id in ("01A", "01B"):
        records.begin(intent(operation_id), ("01A",))
        records.finish(result(Outcome.ORPHANED, operation_id), None)
    first = records.operation("01A").result
    records.finish(replace(result(Outcome.UNKNOWN), gaps=("x",)), first)
    assert records.head().open_operations == ("01A", "01B")


class TwoHosts(OneHost):
    """A host that knows of the holder only when its lease ends."""

    def liveness(self, lease: Lease, now: Callable[[], datetime]) -> Liveness:
        return Liveness.ALIVE if now() < lease.expires_at else Liveness.GONE


def test_a_claim_keeps_others_out_and_opens_nothing(store: LocalStore) -> None:
    first, second = (Records(store, FixedClock(), TwoHosts()) for _ in range(2))
    first.claim("01A", None)
    assert first.head().open_operations == ()
    with pytest.raises(OperationAliveError):
        second.claim("01B", None)
    with pytest.raises(OperationAliveError):
        second.begin(intent("01B"), ())
    first.claim("01A", None)
    first.begin(intent(), ())
    assert first.head().open_operations == ("01A",)


def test_a_claim_that_came_to_nothing_leaves_the_record_as_it_was(store: LocalStore) -> None:
    records = Records(store, FixedClock(), TwoHosts())
    records.claim("01A", None)
    records.release("01A")
    assert list(store.names("")) == []
    records.begin(intent(), ())
    records.finish(result(Outcome.UNKNOWN), None)
    before = records.head()
    records.claim("01B", None)
    records.release("01B")
    assert replace(records.head(), revision=before.revision) == before


def test_a_run_releases_its_own_lease_alone(store: LocalStore) -> None:
    first, second = (Records(store, FixedClock(), OneHost()) for _ in range(2))
    first.claim("01A", None)
    second.claim("01B", None)
    first.release("01A")
    lease = second.head().lease
    assert lease is not None and lease.operation_id == "01B"


@pytest.mark.parametrize("skew", [timedelta(hours=-3), timedelta(0), timedelta(hours=3)])
def test_whether_a_lease_has_ended_is_told_by_the_stores_clock_however_wrong_the_hosts_are(
    store: LocalStore, skew: timedelta
) -> None:
    holder = Records(store, FixedClock(NOW + skew), TwoHosts())
    other = Records(store, FixedClock(NOW - skew), TwoHosts())
    holder.claim("01A", None)
    with pytest.raises(OperationAliveError):
        other.refuse_if_alive()
    head = Path(store.location) / HEAD
    long_ago = time.time() - 61
    os.utime(head, (long_ago, long_ago))
    other.refuse_if_alive()


def test_a_holder_that_wakes_after_its_successor_took_over_begins_nothing(store: LocalStore) -> None:
    paused, successor = (Records(store, FixedClock(), TwoHosts()) for _ in range(2))
    paused.claim("01A", None)
    long_ago = time.time() - 61
    os.utime(Path(store.location) / HEAD, (long_ago, long_ago))
    successor.claim("01B", None)
    successor.begin(intent("01B"), ())
    head = successor.head()
    assert not paused.renew("01A")
    with pytest.raises(OperationAliveError):
        paused.begin(intent(), ())
    paused.release("01A")
    assert successor.head() == head
    refused = successor.operation("01A")
    assert not refused.open


def test_a_holder_whose_lease_was_given_up_meanwhile_takes_it_again(store: LocalStore) -> None:
    records, other = (Records(store, FixedClock(), OneHost()) for _ in range(2))
    records.begin(intent(), ())
    other.finish(result(Outcome.ABSENT), None)
    assert other.head().lease is None
    assert records.renew("01A", ProcessIdentity(7, 8))
    lease = other.head().lease
    assert lease is not None and lease.engine == ProcessIdentity(7, 8)


class Meddling(LocalStore):
    """A store in which somebody else is first with the head, as often as a test says."""

    meddle: int = 0

    def replace(self, name: str, data: bytes, expected: str | None) -> None:
        """Write a document, after somebody else has."""
        if name == HEAD and self.meddle:
            self.meddle -= 1
            path = Path(self.location) / HEAD
            written = path.read_text()
            path.write_text(written + " ")
        super().replace(name, data, expected)


@pytest.mark.parametrize("change", ["renew", "reopen", "finish", "release", "claim"])
def test_every_change_of_the_head_is_tried_again_when_somebody_else_was_first(tmp_path: Path, change: str) -> None:
    store = Meddling(tmp_path / "record")
    records = Records(store, FixedClock(), OneHost())
    records.begin(intent(), ())
    store.meddle = 2
    {
        "renew": lambda: records.renew("01A", ProcessIdentity(7, 8)),
        "reopen": lambda: records.reopen("01Z"),
        "finish": lambda: records.finish(result(Outcome.ABSENT), None),
        "release": lambda: records.release("01A"),
        "claim": lambda: records.claim("01B", None),
    }[change]()
    head = records.head()
    assert store.meddle == 0
    assert head.open_operations == {"reopen": ("01A", "01Z"), "finish": ()}.get(change, ("01A",))
    assert (head.lease is None) == (change in ("finish", "release"))


def test_a_head_that_cannot_be_written_after_the_intent_stays_and_blocks_nobody(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = Records(store, FixedClock(), OneHost())
    records.claim("01A", None)
    with monkeypatch.context() as patch:

        def throttled(_store: LocalStore, name: str, *_: object) -> None:
            raise RecordError(f"{name}: SlowDown", "try again")

        patch.setattr(LocalStore, "replace", throttled)
        with pytest.raises(RecordError):
            records.begin(intent(), ())
    records.release("01A")
    again = Records(store, FixedClock(), OneHost())
    again.claim("01B", None)
    again.begin(intent("01B"), ())
    assert again.head().open_operations == ("01B",)
    assert not again.operation("01A").open


def test_a_damaged_head_is_copied_aside_and_replaced_by_whoever_is_first(store: LocalStore) -> None:
    records = Records(store, FixedClock(), OneHost())
    records.begin(intent(), ())
    (Path(store.location) / HEAD).write_text("damage")
    assert records.rebuild_head(Heard())
    assert not records.rebuild_head(Heard())
    assert [name for name in store.names("") if name.startswith(HEAD)] == [HEAD, f"{HEAD}.unreadable-1"]
    assert records.head().open_operations == ("01A",)


def test_a_holder_that_was_settled_early_is_on_the_open_list_again_with_its_next_heartbeat(store: LocalStore) -> None:
    records, other = (Records(store, FixedClock(), OneHost()) for _ in range(2))
    records.begin(intent(), ())
    other.finish(result(Outcome.ABSENT), None)
    assert other.head().open_operations == ()
    assert records.renew("01A", ProcessIdentity(7, 8))
    assert other.head().open_operations == ("01A",)


def test_what_was_planned_before_another_run_had_the_lease_is_not_begun(store: LocalStore) -> None:
    paused, other = (Records(store, FixedClock(), OneHost()) for _ in range(2))
    paused.claim("01A", None)
    other.claim("01B", None)
    other.begin(intent("01B"), ())
    other.finish(result(Outcome.RECORDED, "01B"), None)
    assert not paused.renew("01A"), "nothing has begun that the lease would have to be taken again for"
    with pytest.raises(OperationAliveError, match="stopped for so long"):
        paused.begin(intent(), ())
    assert other.head().open_operations == ()
    assert not other.operation("01A").open


def test_a_run_that_comes_to_nothing_beside_an_intent_without_a_head_leaves_the_head(store: LocalStore) -> None:
    store.create("operations/01A/intent.json", encode_intent(intent()))
    records = Records(store, FixedClock(), OneHost())
    with pytest.raises(CorruptRecordError):
        records.claim("01B", None)
    assert records.rebuild_head(Heard())
    records.claim("01B", None)
    records.release("01B")
    assert records.head().open_operations == ("01A",)
    assert records.without_outcome() == ("01A",)
