"""Whether the credentials last as long as the run is likely to: said once, before the question, and found out cheap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from test_records import NOW, FixedClock, Heard, OneHost
from test_records import intent as plain_intent
from test_verify import CATALOG, FakeInventory, answers

from tfguard.errors import RecordError
from tfguard.flows.context import StackContext
from tfguard.flows.credentials import warn_of_expiry
from tfguard.flows.looking import Surroundings
from tfguard.flows.records import Records
from tfguard.model.config import Config
from tfguard.model.credentials import Expiry
from tfguard.model.operation import OperationStatus, Result
from tfguard.model.plan import Action, Plan, PlannedChange, ProviderConfig
from tfguard.ports import Blob
from tfguard.schemas.records import encode_intent, encode_outcome
from tfguard.stores.local import LocalStore

PLAN = Plan("1.11.4", (PlannedChange("a.b", "a", "p", Action.CREATE),))


class CountingStore(LocalStore):
    """A local store that counts what is read, and can be out of order."""

    reads = 0
    broken = False

    def read(self, name: str) -> Blob | None:
        """One document."""
        self.reads += 1
        return super().read(name)

    def names(self, prefix: str) -> Sequence[str]:
        """The names below a folder."""
        if self.broken:
            raise RecordError("the record is away", "look for it")
        return super().names(prefix)


@dataclass
class Ends:
    """Credentials that end at these times."""

    ends: tuple[Expiry, ...]
    asked: list[int] = field(default_factory=list)

    def expiries(self, providers: Sequence[ProviderConfig]) -> Sequence[Expiry]:
        """The ends."""
        self.asked.append(len(providers))
        return self.ends


@dataclass
class Scene:
    """A stack with a record in a folder, and what was said to the user."""

    store: CountingStore
    console: Heard = field(default_factory=Heard)

    def ran(self, operation_id: str, took: timedelta, command: str = "apply", exit_code: int | None = 0) -> None:
        """Put a run on record."""
        folder = f"operations/{operation_id}"
        intent = replace(plain_intent(), operation_id=operation_id, command=command, started_at=NOW)
        result = Result(operation_id, OperationStatus.OK, NOW + took, (), exit_code=exit_code)
        self.store.create(f"{folder}/intent.json", encode_intent(intent))
        self.store.create(f"{folder}/outcome.json", encode_outcome(result))

    def warned(self, *ends: Expiry | timedelta, plan: Plan = PLAN) -> list[str]:
        """What is said when credentials end then, or so long from now."""
        clock, self.console.lines = FixedClock(NOW), []
        given = tuple(end if isinstance(end, Expiry) else Expiry("AWS_X", NOW + end) for end in ends)
        around = Surroundings(FakeInventory(answers()), CATALOG, Config(), clock, self.console)  # type: ignore[arg-type]
        host = OneHost()
        records = Records(self.store, clock, host)  # type: ignore[arg-type]
        context = StackContext(plain_intent().stack, None, records, around, host, tuple, Ends(given))  # type: ignore[arg-type]
        warn_of_expiry(context, plan)
        return self.console.lines


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A stack that never ran."""
    return Scene(CountingStore(tmp_path / "record"))


def minutes(number: float) -> timedelta:
    """So many minutes."""
    return timedelta(minutes=number)


def test_without_a_known_end_nothing_is_said_and_the_record_is_not_read(scene: Scene) -> None:
    scene.ran("01A", minutes(30))
    before = scene.store.reads
    assert scene.warned() == []
    assert scene.store.reads == before


def test_a_stack_that_never_ran_gets_a_quarter_of_an_hour(scene: Scene) -> None:
    assert scene.warned(minutes(16)) == []
    (line,) = scene.warned(minutes(14))
    assert "expire in 14 min (AWS_X), and no run is on record here" in line


def test_the_longest_of_the_last_five_runs_and_half_of_it_again_must_be_left(scene: Scene) -> None:
    scene.ran("01A", minutes(300))
    for number, took in enumerate((20, 40, 10, 5, 1)):
        scene.ran(f"01B{number}", minutes(took))
    assert scene.warned(minutes(61)) == []
    (line,) = scene.warned(minutes(59))
    assert "expire in 59 min (AWS_X), and the last runs of this stack took up to 40 min" in line


def test_a_short_run_leaves_two_minutes_more_at_least(scene: Scene) -> None:
    scene.ran("01A", timedelta(seconds=10))
    assert scene.warned(minutes(2.5)) == []
    assert len(scene.warned(minutes(2))) == 1


def test_runs_that_did_not_end_and_repairs_of_the_state_tell_nothing(scene: Scene) -> None:
    scene.ran("01A", minutes(300), exit_code=None)
    scene.ran("01B", minutes(300), command="state rm")
    (line,) = scene.warned(minutes(14))
    assert "no run is on record here" in line


def test_an_end_that_has_passed_is_said_so_however_short_the_runs_are(scene: Scene) -> None:
    scene.ran("01A", timedelta(seconds=1))
    (line,) = scene.warned(minutes(-61))
    assert "the credentials expired 1 h 1 min ago (AWS_X)" in line


def test_what_is_needed_for_the_sign_in_alone_is_only_wrong_when_it_has_passed(scene: Scene) -> None:
    token = Expiry("ARM_OIDC_TOKEN", NOW + minutes(1), for_sign_in=True)
    assert scene.warned(token) == []
    assert "expired" in scene.warned(replace(token, at=NOW))[0]
    assert len(scene.warned(token, minutes(5))) == 1, "a later end that counts is still told"


def test_several_ends_make_one_warning(scene: Scene) -> None:
    (line,) = scene.warned(minutes(-1), minutes(1))
    assert "expired" in line


def test_a_plan_without_changes_needs_no_credentials(scene: Scene) -> None:
    assert scene.warned(minutes(-1), plan=Plan("1.11.4", ())) == []
    assert len(scene.warned(minutes(-1), plan=Plan("1.11.4", (), changes_outputs=True))) == 1


def test_a_long_history_is_not_read_to_its_end(scene: Scene) -> None:
    for number in range(40):
        scene.ran(f"01{number:03}", minutes(1), exit_code=None if number > 20 else 0)
    before = scene.store.reads
    scene.warned(minutes(1))
    assert scene.store.reads - before <= 20


def test_damaged_and_newer_records_and_one_that_is_away_never_fail_a_run(scene: Scene) -> None:
    scene.ran("01A", minutes(40))
    scene.store.create("operations/01B/intent.json", b"{")
    scene.store.create("operations/01B/outcome.json", b"{")
    scene.store.create("operations/01C/outcome.json", b'{"schema": "tfguard.outcome/v999"}')
    (line,) = scene.warned(minutes(59))
    assert "took up to 40 min" in line
    scene.store.broken = True
    (line,) = scene.warned(minutes(14))
    assert "no run is on record here" in line
