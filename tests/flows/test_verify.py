"""The looks before and after a run, with in-memory fakes of the clock, the console, the cloud and the engine's read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.flows.kept_steps import planned_steps
from tfguard.flows.looking import Looking, Surroundings, baseline_entries, baseline_keys
from tfguard.flows.providers import provider_for, provider_from_record, recorded_providers
from tfguard.flows.verify import Run, Verdict, desired_import_id, verify
from tfguard.model.config import Config
from tfguard.model.evidence import EvidenceKind
from tfguard.model.inventory import CloudObject, Detail, Gap, Listing, Scope
from tfguard.model.operation import Outcome, Step, StepStatus
from tfguard.model.plan import Action, Plan, PlannedChange, ProviderConfig
from tfguard.model.secrets import Withholding
from tfguard.model.state import EMPTY_STATE, StateInstance, StateSnapshot
from tfguard.ports import ImportProbe

CATALOG = load_catalog()
AWS = "registry.terraform.io/hashicorp/aws"
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
END = START + timedelta(minutes=5)
GRACE = timedelta(minutes=2)
KEY = ("aws_iam_role", "aws", "")


class FakeClock:
    """Time that passes only while somebody sleeps, or as each list takes it; `awake` sleeps, then an interrupt."""

    def __init__(self, now: datetime, awake: int | None = None) -> None:
        self._now, self._awake = now, awake
        self.naps: list[float] = []

    @property
    def interrupted(self) -> bool:
        """Whether the sleeps are used up."""
        return self._awake is not None and len(self.naps) > self._awake

    def now(self) -> datetime:
        """The time."""
        return self._now

    def pass_(self, seconds: float) -> None:
        """Let time go by."""
        self._now += timedelta(seconds=seconds)

    def sleep(self, seconds: float) -> bool:
        """Let time go by, unless the user interrupts."""
        self.naps.append(seconds)
        if not self.interrupted:
            self.pass_(seconds)
        return not self.interrupted


@dataclass
class FakeConsole:
    """Remembers what was said."""

    said: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Remember a line."""
        self.said.append(text)

    warn = say

    def confirm(self, question: str) -> bool:
        """Nobody is there."""
        raise AssertionError(question)


Answer = Callable[[str, ProviderConfig, str | None], Listing]


@dataclass
class FakeInventory:
    """Answers every list by a function, and knows every type that has a list in the catalogue."""

    answer: Answer
    details: Mapping[str, datetime] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    detailed: list[str] = field(default_factory=list)

    def covers(self, resource_type: str) -> bool:
        """Whether the catalogue has a list."""
        kind = CATALOG.get(resource_type)
        return kind is not None and kind.list is not None

    def list(self, resource_type: str, provider: ProviderConfig, region: str | None = None) -> Listing:
        """What the function says."""
        self.asked.append((resource_type, provider.key, region))
        return self.answer(resource_type, provider, region)

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:  # noqa: ARG002 (the port's)
        """The object with the creation time that the fake knows."""
        self.detailed.append(found.id)
        return Detail(replace(found, created_at=self.details.get(found.id, found.created_at)))


def role(name: str = "app", created: datetime | None = START) -> CloudObject:
    """A role of the fake cloud."""
    identity = {"name": name, "arn": f"arn:aws:iam::123456789012:role/{name}"}
    return CloudObject("aws", "123456789012", "global", "aws_iam_role", name, name, identity, created_at=created)


def listing(*objects: CloudObject, gap: str | None = None, kind: str = "aws_iam_role") -> Listing:
    """The fake cloud's answer."""
    scope = Scope("aws", "123456789012", "global", "aws")
    return Listing(kind, scope, objects, Gap(f"{scope} {kind}", gap) if gap else None)


def answers(*told: Listing) -> Answer:
    """One answer after the other; the last one stays."""
    left = list(told)
    return lambda *_: left.pop(0) if len(left) > 1 else left[0]


def around(
    inventory: FakeInventory, clock: FakeClock | None = None, config: Config | None = None
) -> tuple[Surroundings, FakeClock, FakeConsole]:
    """Surroundings made of fakes."""
    clock, console = clock or FakeClock(END), FakeConsole()
    return Surroundings(inventory, CATALOG, config or Config(), clock, console), clock, console


STEP = Step("aws_iam_role.app", "aws_iam_role", AWS, Action.CREATE, StepStatus.RUNNING, provider_key="aws")
LOST = replace(STEP, desired={"name": "app"})


def run(*steps: Step, **fields: object) -> Run:
    """A run that ended at END with these steps, and without any state."""
    told: dict[str, object] = {
        "steps": steps or (LOST,),
        "baseline": (),
        "providers": {},
        "failures": {},
        "started_at": START,
        "quiet_since": END,
        "stream_whole": True,
        "read_state": lambda: EMPTY_STATE,
    }
    return Run(**(told | fields))  # type: ignore[arg-type]


def outcomes(verdict: Verdict) -> list[Outcome | None]:
    """The outcomes, in order."""
    return [step.outcome for step in verdict.steps]


# --- patience ---


def test_without_patience_there_is_one_look_and_no_waiting() -> None:
    surroundings, clock, console = around(FakeInventory(answers(listing())))
    assert outcomes(verify(run(), surroundings, patient=False)) == [Outcome.UNKNOWN]
    assert (clock.naps, console.said) == ([], [])


def test_with_patience_the_grace_is_waited_out_before_absent_is_said() -> None:
    inventory = FakeInventory(answers(listing()))
    surroundings, clock, console = around(inventory)
    assert outcomes(verify(run(), surroundings, patient=True)) == [Outcome.ABSENT]
    assert clock.now() >= END + GRACE
    assert sum(clock.naps) < GRACE.total_seconds() + 1
    assert clock.naps[:5] == [1.0, 2.0, 4.0, 8.0, 10.0]
    assert len(inventory.asked) == len(clock.naps) + 1
    assert len(console.said) == 1
    assert "aws_iam_role.app" in console.said[0]


def test_waiting_ends_as_soon_as_the_object_is_listed() -> None:
    surroundings, clock, _ = around(FakeInventory(answers(listing(), listing(), listing(role()))))
    assert outcomes(verify(run(), surroundings, patient=True)) == [Outcome.ORPHANED]
    assert clock.naps == [1.0, 2.0]


def test_an_interrupt_ends_the_waiting_and_leaves_the_step_unknown() -> None:
    surroundings, clock, _ = around(FakeInventory(answers(listing())), FakeClock(END, awake=2))
    assert outcomes(verify(run(), surroundings, patient=True)) == [Outcome.UNKNOWN]
    assert len(clock.naps) == 3


@pytest.mark.parametrize(
    ("answer", "step", "outcome"),
    [
        (listing(gap="AccessDenied"), LOST, Outcome.UNKNOWN),
        (listing(role()), LOST, Outcome.ORPHANED),
        (listing(), replace(LOST, status=StepStatus.PENDING), Outcome.ABSENT),
        (listing(role()), STEP, Outcome.UNKNOWN),  # nothing ties it to the address, and waiting will not either
    ],
)
def test_nothing_is_waited_for_that_waiting_cannot_settle(answer: Listing, step: Step, outcome: Outcome) -> None:
    surroundings, clock, _ = around(FakeInventory(answers(answer)))
    assert outcomes(verify(run(step), surroundings, patient=True)) == [outcome]
    assert clock.naps == []


def test_a_run_that_has_been_quiet_for_long_is_not_waited_for() -> None:
    surroundings, clock, _ = around(FakeInventory(answers(listing())), FakeClock(END + timedelta(hours=1)))
    assert outcomes(verify(run(), surroundings, patient=True)) == [Outcome.ABSENT]
    assert clock.naps == []


@pytest.mark.parametrize("patient", [True, False])
def test_a_list_that_was_asked_for_within_the_grace_proves_nothing_however_long_it_took(patient: bool) -> None:
    clock = FakeClock(END + GRACE - timedelta(seconds=1))
    told = answers(listing())

    def slow(*question: object) -> Listing:
        clock.pass_(30)
        return told(*question)  # type: ignore[arg-type]

    inventory = FakeInventory(slow)
    surroundings, _, _ = around(inventory, clock)
    expected = Outcome.ABSENT if patient else Outcome.UNKNOWN
    assert outcomes(verify(run(), surroundings, patient)) == [expected]
    assert len(inventory.asked) == (2 if patient else 1)


def test_the_grace_is_the_users() -> None:
    surroundings, clock, _ = around(
        FakeInventory(answers(listing())), config=Config(consistency_grace=timedelta(seconds=3))
    )
    assert outcomes(verify(run(), surroundings, patient=True)) == [Outcome.ABSENT]
    assert clock.now() < END + timedelta(seconds=4)


def test_the_state_is_read_after_the_list_and_again_at_each_look() -> None:
    order: list[str] = []
    made = StateInstance("aws_iam_role.app", "aws_iam_role", AWS, "aws", role().identity)
    states = [EMPTY_STATE, StateSnapshot("lineage", 2, (made,))]

    def answer(*_: object) -> Listing:
        order.append("list")
        return listing()

    def read() -> StateSnapshot:
        order.append("state")
        return states.pop(0) if len(states) > 1 else states[0]

    surroundings, _, _ = around(FakeInventory(answer))
    verdict = verify(run(read_state=read), surroundings, patient=True)
    assert (outcomes(verdict), verdict.state.serial) == ([Outcome.RECORDED], 2)
    assert order == ["list", "state", "list", "state"]


# --- gaps and details ---


def test_a_gap_is_told_with_its_place_and_reason() -> None:
    surroundings, _, _ = around(FakeInventory(answers(listing(gap="AccessDenied"))))
    verdict = verify(run(), surroundings, patient=False)
    assert verdict.gaps == ("aws 123456789012 global aws_iam_role: AccessDenied",)


def test_a_look_in_another_account_than_the_runs_is_a_gap() -> None:
    before = replace(baseline_entries({KEY: listing()})[0], account="999999999999")
    late = FakeClock(END + timedelta(days=1))
    surroundings, _, _ = around(FakeInventory(answers(listing())), late)
    verdict = verify(run(baseline=(before,)), surroundings, patient=True)
    assert outcomes(verdict) == [Outcome.UNKNOWN]
    assert "999999999999" in verdict.gaps[0]


def test_an_age_is_asked_for_only_of_objects_that_came_up_without_one() -> None:
    others = [role(f"other-{number}", None) for number in range(3)]
    inventory = FakeInventory(answers(listing(role(created=None), *others)), details={"app": START})
    surroundings, _, _ = around(inventory)
    (step,) = verify(run(), surroundings, patient=False).steps
    assert inventory.detailed == ["app"]
    assert EvidenceKind.CREATED_IN_WINDOW in {evidence.kind for evidence in step.evidence}


def test_an_age_that_was_asked_for_can_clear_the_run() -> None:
    old = START - timedelta(days=30)
    surroundings, _, _ = around(FakeInventory(answers(listing(role(created=None))), details={"app": old}))
    (step,) = verify(run(), surroundings, patient=False).steps
    assert (step.outcome, step.observed[0].finding_id) == (Outcome.ABSENT, None)


def test_no_object_and_no_word_with_a_marked_value_is_kept() -> None:
    secret = "hunter2-name"
    surroundings, _, _ = around(FakeInventory(answers(listing(role(secret)))))
    verdict = verify(run(STEP, hidden=Withholding(frozenset([secret])), marks_gone=False), surroundings, patient=False)
    assert secret not in repr(verdict.steps)
    assert outcomes(verdict) == [Outcome.UNKNOWN]


def test_an_arn_in_the_state_that_repeats_a_marked_name_is_not_kept() -> None:
    secret = "hunter2-name"
    held = StateInstance("aws_iam_role.app", "aws_iam_role", AWS, "aws", {"arn": role(secret).identity["arn"]})
    surroundings, _, _ = around(FakeInventory(answers(listing(role(secret)))))
    verdict = verify(
        run(
            STEP,
            hidden=Withholding(frozenset([secret])),
            marks_gone=False,
            read_state=lambda: StateSnapshot("l", 1, (held,)),
        ),
        surroundings,
        patient=False,
    )
    assert (outcomes(verdict), secret in repr(verdict.steps)) == ([Outcome.RECORDED], False)


# --- the engine's own read ---


@dataclass
class FakeEngine:
    """Answers reads, and remembers them."""

    exists: bool | None
    asked: list[tuple[str, str]] = field(default_factory=list)

    def probe(self, step: Step, import_id: str) -> ImportProbe:
        """The one answer."""
        self.asked.append((step.address, import_id))
        return ImportProbe(self.exists, "the engine itself says so", import_id)


@pytest.mark.parametrize(
    ("answer", "step", "asked"),
    [
        (listing(gap="AccessDenied"), LOST, [("aws_iam_role.app", "app")]),
        (listing(), LOST, []),
        (listing(role()), LOST, []),
        (listing(gap="AccessDenied"), STEP, []),  # the import id is not known
        (listing(gap="AccessDenied"), replace(LOST, status=StepStatus.PENDING), []),
        (listing(gap="AccessDenied"), replace(LOST, action=Action.DELETE, before={"name": "app"}), []),
    ],
)
def test_the_engine_is_asked_only_for_creates_that_no_list_answers_for(
    answer: Listing, step: Step, asked: Sequence[tuple[str, str]]
) -> None:
    engine = FakeEngine(None)
    surroundings, _, _ = around(FakeInventory(answers(answer)))
    verify(run(step, probe=engine.probe), surroundings, patient=False)
    assert engine.asked == list(asked)


@pytest.mark.parametrize(("exists", "outcome"), [(True, Outcome.ORPHANED), (False, Outcome.UNKNOWN)])
def test_what_the_engine_reads_is_found_and_what_it_does_not_read_closes_no_gap(exists: bool, outcome: Outcome) -> None:
    late = FakeClock(END + timedelta(days=1))
    surroundings, _, _ = around(FakeInventory(answers(listing(gap="AccessDenied"))), late)
    verdict = verify(run(probe=FakeEngine(exists).probe), surroundings, patient=False)
    assert outcomes(verdict) == [outcome]


def test_no_more_than_a_few_steps_are_asked_of_the_engine() -> None:
    engine = FakeEngine(None)
    many = [replace(LOST, address=f"aws_iam_role.r{number}", desired={"name": f"r{number}"}) for number in range(9)]
    surroundings, _, _ = around(FakeInventory(answers(listing(gap="AccessDenied"))))
    verify(run(*many, probe=engine.probe), surroundings, patient=False)
    assert len(engine.asked) == 5


@pytest.mark.parametrize(
    ("kind", "desired", "import_id"),
    [
        ("aws_iam_role", {"name": "app"}, "app"),
        ("aws_iam_role", {}, None),
        ("aws_iam_role", {"name_prefix": "app-"}, None),
        ("aws_iam_role_policy", {"role": "app", "name": "p"}, "app:p"),
        ("aws_iam_role_policy", {"name": "p"}, None),
        ("aws_vpc", {"cidr_block": "10.0.0.0/16"}, None),
        ("aws_route_table_association", {"route_table_id": "rtb-1", "subnet_id": "subnet-1"}, None),
        ("aws_nothing", {"name": "f"}, None),
    ],
)
def test_an_import_id_is_made_of_what_the_plan_knows_or_not_at_all(
    kind: str, desired: Mapping[str, str], import_id: str | None
) -> None:
    assert desired_import_id(replace(STEP, type=kind, desired=desired), CATALOG) == import_id


# --- the look before ---

PROVIDERS = {"aws": ProviderConfig("aws", AWS), "aws.eu": ProviderConfig("aws.eu", AWS)}


def test_one_list_is_taken_for_each_type_and_place_in_which_something_is_made() -> None:
    steps = [
        LOST,
        replace(LOST, address="aws_iam_role.b"),
        replace(LOST, provider_key="aws.eu"),
        replace(LOST, region="eu-west-2"),
        replace(LOST, type="aws_vpc", action=Action.REPLACE),
        replace(LOST, type="aws_s3_bucket", action=Action.DELETE),
        replace(LOST, type="aws_sqs_queue", action=Action.UPDATE),
        replace(LOST, type="aws_iam_role_policy", action=Action.CREATE),
        replace(LOST, type="aws_nothing", action=Action.CREATE),
    ]
    surroundings, _, _ = around(FakeInventory(answers(listing())))
    keys = baseline_keys(steps, PROVIDERS, surroundings)
    assert set(keys) == {
        KEY,
        ("aws_iam_role", "aws.eu", ""),
        ("aws_iam_role", "aws", "eu-west-2"),
        ("aws_vpc", "aws", ""),
    }
    assert keys["aws_iam_role", "aws.eu", ""].key == "aws.eu"


def test_a_list_before_the_run_that_takes_too_long_is_a_gap_and_not_an_empty_list() -> None:
    released = threading.Event()

    def answer(kind: str, *_: object) -> Listing:
        if kind == "aws_vpc":
            released.wait(10)
        return listing(role(), kind=kind)

    surroundings, _, _ = around(FakeInventory(answer))
    keys = {KEY: PROVIDERS["aws"], ("aws_vpc", "aws", ""): PROVIDERS["aws"]}
    entries = {entry.type: entry for entry in baseline_entries(Looking(surroundings, keys).result(0.2))}
    released.set()
    assert (entries["aws_iam_role"].complete, entries["aws_vpc"].complete) == (True, False)
    assert entries["aws_iam_role"].object_ids == (role().finding_id,)
    assert "longer than" in (entries["aws_vpc"].reason or "")


def test_what_has_not_started_when_nobody_wants_the_answer_never_starts() -> None:
    released, inventory = threading.Event(), FakeInventory(answers(listing()))

    def answer(*_: object) -> Listing:
        released.wait(10)
        return listing()

    inventory.answer = answer
    surroundings, _, _ = around(inventory)
    keys = {("aws_iam_role", f"aws.p{number}", ""): PROVIDERS["aws"] for number in range(30)}
    looking = Looking(surroundings, keys)
    looking.cancel()
    released.set()
    entries = baseline_entries(looking.result(0.2))
    assert len(entries) == 30
    assert sum(not entry.complete for entry in entries) == 30 - len(inventory.asked) > 0


def test_a_baseline_keeps_finding_ids_and_where_they_were_asked_for() -> None:
    (entry,) = baseline_entries({("aws_iam_role", "aws.eu", "eu-west-2"): listing(role("b"), role("a"))})
    assert (entry.provider_key, entry.asked_region, entry.account) == ("aws.eu", "eu-west-2", "123456789012")
    assert entry.object_ids == tuple(sorted([role("a").finding_id, role("b").finding_id]))
    (refused,) = baseline_entries({KEY: listing(role("a"), gap="AccessDenied")})
    assert (refused.complete, refused.reason) == (False, "AccessDenied")


# --- steps and providers ---


def planned(action: Action, **fields: object) -> PlannedChange:
    """One planned change of a role."""
    return PlannedChange("aws_iam_role.app", "aws_iam_role", AWS, action, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (planned(Action.CREATE, provider_key="aws.eu"), "aws.eu"),
        (planned(Action.DELETE), "aws.held"),  # the configuration does not have it any more, the state does
        (planned(Action.DELETE, previous_address="aws_iam_role.other"), "aws"),
        (replace(planned(Action.CREATE), address="aws_iam_role.new"), "aws"),
    ],
)
def test_a_step_knows_its_provider_from_the_plan_the_state_or_its_name(change: PlannedChange, key: str) -> None:
    before = StateSnapshot("l", 1, (StateInstance("aws_iam_role.app", "aws_iam_role", AWS, "aws.held"),))
    (step,) = planned_steps(Plan("1", (change,)), before)
    assert (step.provider_key, step.status, step.action) == (key, StepStatus.PENDING, change.action)


def test_what_a_plan_does_not_change_is_no_step() -> None:
    plan = Plan("1", (planned(Action.NOOP), planned(Action.READ), planned(Action.NOOP, importing="app")))
    assert [step.action for step in planned_steps(plan, EMPTY_STATE)] == [Action.NOOP]


@pytest.mark.parametrize(
    ("settings", "unresolved", "added", "expected", "left"),
    [
        ({"region": "a"}, [], {}, {"region": "a"}, []),
        ({}, ["region"], {}, {}, ["region"]),
        ({}, ["region"], {"region": "b"}, {"region": "b"}, []),
        ({"region": "a"}, [], {"region": "b"}, {"region": "a"}, []),  # the plan knows best
        ({"access_key": "k", "secret_key": "s"}, [], {"profile": "p"}, {"profile": "p"}, []),
        ({}, ["access_key", "secret_key"], {"profile": "p"}, {"profile": "p"}, []),
        ({"access_key": "k"}, ["secret_key"], {"region": "b"}, {"access_key": "k", "region": "b"}, ["secret_key"]),
    ],
)
def test_the_settings_file_fills_in_what_the_plan_does_not_carry(
    settings: Mapping[str, str],
    unresolved: Sequence[str],
    added: Mapping[str, str],
    expected: Mapping[str, str],
    left: Sequence[str],
) -> None:
    known = ProviderConfig("aws", AWS, settings, frozenset(unresolved))
    found = provider_for(STEP, {"aws": known}, Config(providers={"aws": added}))
    assert (found.settings, found.unresolved) == (expected, frozenset(left))


def test_the_settings_of_one_alias_are_not_anothers() -> None:
    config = Config(providers={"aws.eu": {"region": "eu-west-1"}})
    assert provider_for(STEP, {}, config).settings == {}
    assert provider_for(replace(STEP, provider_key="aws.eu"), {}, config).settings == {"region": "eu-west-1"}


def test_what_is_kept_of_a_provider_is_where_to_look_and_no_secret() -> None:
    settings = {
        "region": "eu-west-1",
        "profile": "prod",
        "access_key": "AKIA",
        "secret_key": "hunter2",
        "endpoints.s3": "http://localhost:1",
        "endpoints.iam": "http://user:password@localhost:1",
        "default_tags.tags.Owner": "me",
    }
    plan = Plan("1", (), {"aws": ProviderConfig("aws", AWS, settings, frozenset(["token"]))})
    (kept,) = recorded_providers(plan)
    assert kept.settings == {"region": "eu-west-1", "profile": "prod", "endpoints.s3": "http://localhost:1"}
    assert (kept.partial, kept.unresolved) == (True, ("token",))
    assert provider_from_record(kept) == ProviderConfig("aws", AWS, kept.settings, frozenset(["token"]))


def test_a_setting_that_is_marked_sensitive_is_not_kept() -> None:
    plan = Plan("1", (), {"aws": ProviderConfig("aws", AWS, {"region": "hunter2"})}, secrets=frozenset(["hunter2"]))
    (kept,) = recorded_providers(plan)
    assert (kept.settings, kept.partial) == ({}, True)


@pytest.mark.parametrize("name", ["default_tags.tags.a", "skip_metadata_api_check", "max_retries", "region"])
def test_a_provider_of_which_only_unimportant_settings_are_left_out_is_whole(name: str) -> None:
    (kept,) = recorded_providers(Plan("1", (), {"aws": ProviderConfig("aws", AWS, {name: "x"})}))
    assert not kept.partial
