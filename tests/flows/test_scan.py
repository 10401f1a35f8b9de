"""A scan from states to findings, through fakes of its ports: what changes meanwhile, and what cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from packed import MovedClock, OneHost, intent

from tfguard.catalog.loader import load_catalog
from tfguard.errors import ExitCode, InputError, InterruptedRunError
from tfguard.flows import scan_records
from tfguard.flows.records import Records
from tfguard.flows.scan import ScanPorts, ScanRequest, exit_code_of, scan
from tfguard.flows.scan_records import NEWEST
from tfguard.inventory.items import to_object
from tfguard.model.audit import AuditAnswer, Creation
from tfguard.model.config import IgnoreRule
from tfguard.model.disposition import DestroyStage, Disposition, DispositionKind
from tfguard.model.evidence import Confidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.ids import new_operation_id
from tfguard.model.inventory import CloudObject, Detail, Gap, Listing, MadeBy, Scope
from tfguard.model.lease import Lease, Liveness
from tfguard.model.operation import OperationStatus, Outcome, Result, Step, StepStatus
from tfguard.model.plan import Action, ProviderConfig
from tfguard.model.scan import Progress, ScanResult, Shard
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.ports import KnownState
from tfguard.stores.local import LocalStore

CATALOG = load_catalog()
ACCOUNT, OTHER = "123456789012", "999999999999"
AWS = "registry.terraform.io/hashicorp/aws"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=100)


def role(name: str, created: datetime | None = LONG_AGO, account: str | None = ACCOUNT, **fields: Any) -> CloudObject:
    """A role."""
    arn = f"arn:aws:iam::{account}:role/{name}"
    identity = {"name": name, "arn": arn}
    made = CloudObject("aws", account, "global", "aws_iam_role", name, name, identity, arn, name, created_at=created)
    return replace(made, **fields)


def held(found: CloudObject, name: str = "app", **fields: Any) -> StateInstance:
    """The instance of a state that stands for an object."""
    return StateInstance(f"{found.type}.{name}", found.type, AWS, "aws", **{"identity": found.identity, **fields})


def roles(*objects: CloudObject, gap: str = "", account: str | None = ACCOUNT, **fields: Any) -> Listing:
    """A listing of roles."""
    scope = Scope("aws", account, "global", "aws")
    return Listing("aws_iam_role", scope, objects, Gap(f"{scope} aws_iam_role", gap) if gap else None, **fields)


@dataclass
class FakeSource:
    """A fake of `StateSource`: each reading is the next of those it was given, the last one again and again."""

    readings: Sequence[Sequence[KnownState] | InputError]
    before: Callable[[int], None] = lambda _number: None
    pattern: str = "s3://state/**"
    read_so_far: int = 0

    def read(self) -> Iterator[KnownState]:
        number = self.read_so_far
        self.read_so_far += 1
        self.before(number)
        reading = self.readings[min(number, len(self.readings) - 1)]
        if isinstance(reading, InputError):
            raise reading
        yield from reading


def known(*instances: StateInstance, location: str = "s3://state/a", **fields: Any) -> KnownState:
    """A state that could be read."""
    fields.setdefault("snapshot", StateSnapshot("lineage", 1, instances))
    return KnownState(location, "default", **fields)


def unread(location: str = "s3://state/broken") -> KnownState:
    """A state that could not be read."""
    return KnownState(location, "default", None, "it is cut or not JSON")


@dataclass
class FakeLister:
    """A fake of `ShardLister`: the listings that it was given, and something that happens while it lists."""

    listings: Sequence[Listing]
    meanwhile: Callable[[], None] = lambda: None

    def list(self, shards: Sequence[Shard], done: Callable[[Shard], None]) -> Iterator[Listing]:
        self.meanwhile()
        yield from self.listings
        for shard in shards:
            done(shard)


@dataclass
class FakeInventory:
    """A fake of `Inventory`, asked for details alone: what it was given for an object's name."""

    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    refused: dict[str, Gap] = field(default_factory=dict)

    def detail(self, found: CloudObject, provider: ProviderConfig) -> Detail:
        assert provider.key == "aws"
        self.asked.append(found.id)
        return Detail(replace(found, **self.details.get(found.id, {})), self.refused.get(found.id))


class AliveHost(OneHost):
    """A host on which every holder of a lease lives."""

    def liveness(self, lease: Lease, now: Callable[[], datetime]) -> Liveness:  # noqa: ARG002 (the port's signature)
        return Liveness.ALIVE


@dataclass
class FakeLog:
    """A fake of `AuditLog` that knows one object."""

    creations_of: dict[str, Creation]
    asked: list[str] = field(default_factory=list)

    def creations(self, candidates: Sequence[tuple[CloudObject, ProviderConfig]]) -> AuditAnswer:
        self.asked += [found.id for found, _ in candidates]
        told = {
            found.finding_id: self.creations_of[found.id] for found, _ in candidates if found.id in self.creations_of
        }
        return AuditAnswer(told, ("CloudTrail was not asked in one place",))


def shards_of(listings: Sequence[Listing]) -> tuple[Shard, ...]:
    """One shard that answers with these listings."""
    types = tuple(listing.type for listing in listings)
    return (Shard("aws", ProviderConfig("aws", AWS, {"region": "eu-west-1"}), None, "iam", types),) if types else ()


def run(
    listings: Sequence[Listing],
    *sources: FakeSource,
    lister: FakeLister | None = None,
    inventory: FakeInventory | None = None,
    clock: MovedClock | None = None,
    host: OneHost | None = None,
    audit: FakeLog | None = None,
    progress: Callable[[Progress], None] = lambda _now: None,
    **request: Any,
) -> ScanResult:
    """A scan of these listings against these states."""
    ports = ScanPorts(
        sources,
        lister or FakeLister(listings),
        inventory or FakeInventory(),  # type: ignore[arg-type]
        CATALOG,
        clock or MovedClock(NOW),
        host or OneHost(),  # type: ignore[arg-type]
        audit,
    )
    return scan(ScanRequest(request.pop("shards", shards_of(listings)), **request), ports, progress)


def verdicts(result: ScanResult) -> dict[str, Verdict]:
    """The findings' verdicts by the objects' names, or the addresses of those that are none."""
    return {one.object.id if one.object else one.address or "": one.verdict for one in result.findings}


def only(result: ScanResult) -> Finding:
    """The one finding."""
    [finding] = result.findings
    return finding


# Records


STEP = Step("aws_iam_role.app", "aws_iam_role", AWS, Action.CREATE, desired={"name": "app"}, provider_key="aws")


def records_in(folder: Path, host: OneHost | None = None, at: datetime = NOW) -> Records:
    """The record of a stack."""
    return Records(LocalStore(folder), MovedClock(at), host or OneHost())  # type: ignore[arg-type]


def begun(records: Records, at: datetime, step: Step = STEP) -> str:
    """An operation that has begun; its id."""
    operation_id = new_operation_id(at)
    records.begin(replace(intent(operation_id, at), steps=(step,)), records.head().open_operations)
    return operation_id


def ended(records: Records, operation_id: str, at: datetime, outcome: Outcome, step: Step = STEP) -> None:
    """The end of an operation."""
    done = replace(step, status=StepStatus.ERROR, outcome=outcome)
    records.finish(Result(operation_id, OperationStatus.ERROR, at, (done,)), None)


def failed(folder: Path, at: datetime = NOW - timedelta(hours=1), step: Step = STEP) -> str:
    """An operation on record that did not get its role into the state; its id."""
    records = records_in(folder, at=at)
    operation_id = begun(records, at, step)
    ended(records, operation_id, at + timedelta(minutes=1), Outcome.UNKNOWN, step)
    return operation_id


INSIDE = NOW - timedelta(hours=1) + timedelta(seconds=30)


def test_every_object_is_counted_and_those_that_no_state_knows_are_found(tmp_path: Path) -> None:
    operation = failed(tmp_path / "a")
    state = known(held(role("kept"), "kept"), records=LocalStore(tmp_path / "a"))
    service = role("service", ignored_because="made by AWS")
    result = run(
        [roles(role("kept"), role("app", INSIDE), role("stranger"), service, soft_deleted=(role("ending"),))],
        FakeSource([[state]]),
    )
    assert verdicts(result) == {"app": Verdict.ORPHANED, "stranger": Verdict.UNMANAGED}
    assert result.summary == {"managed": 1, "orphaned": 1, "unmanaged": 1, "ignored": 1, "soft-deleted": 1}
    assert result.rules == {"catalogue: made by AWS": 1, "soft-deleted": 1}
    orphan = next(one for one in result.findings if one.verdict is Verdict.ORPHANED)
    assert (orphan.operation_id, orphan.address) == (operation, "aws_iam_role.app")
    assert result.coverage.complete and result.coverage.states_read == 1 and result.coverage.types_listed == 1
    assert result.complete_listings == {("aws", ACCOUNT, "global", "aws_iam_role")}
    assert exit_code_of(result) == ExitCode.FOUND


def test_what_another_stack_made_is_unmanaged_and_never_orphaned(tmp_path: Path) -> None:
    failed(tmp_path / "other")
    result = run([roles(role("app", INSIDE))], FakeSource([[known(records=LocalStore(tmp_path / "mine"))]]))
    assert verdicts(result) == {"app": Verdict.UNMANAGED}
    both = [known(records=LocalStore(tmp_path / "mine")), known(location="b", records=LocalStore(tmp_path / "other"))]
    assert verdicts(run([roles(role("app", INSIDE))], FakeSource([both]))) == {"app": Verdict.ORPHANED}


def test_a_clean_account_is_clean() -> None:
    result = run([roles(role("app"))], FakeSource([[known(held(role("app")))]]))
    assert (result.findings, exit_code_of(result)) == ((), ExitCode.DONE)


def test_a_state_that_cannot_be_read_leaves_unknown_what_nobody_claims(tmp_path: Path) -> None:
    failed(tmp_path)
    states = [known(held(role("kept"))), unread(), known(location="c", records=LocalStore(tmp_path))]
    result = run([roles(role("kept"), role("app", INSIDE), role("stranger"))], FakeSource([states]))
    assert verdicts(result) == {"app": Verdict.UNKNOWN, "stranger": Verdict.UNKNOWN}
    assert [gap.scope for gap in result.coverage.gaps] == ["state s3://state/broken"]
    assert "it is cut or not JSON" in str(result.findings[0].evidence)
    assert exit_code_of(result) == ExitCode.INCOMPLETE


def test_a_state_that_cannot_be_read_is_incomplete_even_where_all_is_claimed() -> None:
    result = run([roles(role("kept"))], FakeSource([[known(held(role("kept"))), unread()]]))
    assert (result.findings, exit_code_of(result)) == ((), ExitCode.INCOMPLETE)


def test_a_state_that_can_be_read_the_second_time_is_no_gap() -> None:
    source = FakeSource([[unread()], [known(held(role("app")), location="s3://state/broken")]])
    result = run([roles(role("app"), role("stranger"))], source)
    assert verdicts(result) == {"stranger": Verdict.UNMANAGED}
    assert result.coverage.complete


@pytest.mark.parametrize("second", [[unread("s3://state/a")], InputError("the bucket is gone", "look")])
def test_a_state_that_cannot_be_read_the_second_time_leaves_everything_unknown(second: Any) -> None:
    result = run([roles(role("app"))], FakeSource([[known()], second]))
    assert verdicts(result) == {"app": Verdict.UNKNOWN}
    assert exit_code_of(result) == ExitCode.INCOMPLETE


def test_a_pattern_of_states_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(InputError, match="matches nothing"):
        run([roles()], FakeSource([InputError("s3://x matches nothing", "correct it")]))


def test_what_an_apply_makes_while_the_scan_goes_on_is_managed() -> None:
    source = FakeSource([[known()], [known(held(role("new")))]])
    result = run([roles(role("new"))], source)
    assert (result.findings, result.summary) == ((), {"managed": 1})


def test_what_leaves_a_state_while_the_scan_goes_on_is_managed_still_and_not_missing() -> None:
    source = FakeSource([[known(held(role("old")), held(role("gone"), "gone"))], [known()]])
    assert run([roles(role("old"), role("stranger"))], source).summary == {"managed": 1, "unmanaged": 1}


def test_the_states_are_not_read_again_where_nothing_is_left_to_explain() -> None:
    source = FakeSource([[known(held(role("app")))]])
    run([roles(role("app"))], source)
    assert source.read_so_far == 1


def test_an_operation_that_ends_while_the_scan_lists_has_its_object_in_the_second_reading(tmp_path: Path) -> None:
    at = NOW - timedelta(minutes=3)
    records = records_in(tmp_path, AliveHost(), at)
    operation_id = begun(records, at)
    store = LocalStore(tmp_path)
    source = FakeSource([[known(records=store)], [known(held(role("app")), records=store)]])
    lister = FakeLister([roles(role("app", at))], lambda: ended(records, operation_id, NOW, Outcome.RECORDED))
    result = run(lister.listings, source, lister=lister, host=AliveHost())
    assert (result.findings, result.summary) == ((), {"managed": 1})


def test_an_operation_that_began_while_the_scan_lists_makes_its_objects_unknown(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    records = records_in(tmp_path, AliveHost())
    lister = FakeLister([roles(role("app", NOW), role("old"))], lambda: begun(records, NOW) and None)
    result = run(lister.listings, FakeSource([[known(records=store)]]), lister=lister, host=AliveHost())
    assert verdicts(result) == {"app": Verdict.UNKNOWN, "old": Verdict.UNMANAGED}
    assert "runs now" in str(result.findings)


def test_what_an_operation_that_runs_now_may_just_have_made_is_unknown(tmp_path: Path) -> None:
    records = records_in(tmp_path, AliveHost(), NOW - timedelta(minutes=1))
    begun(records, NOW - timedelta(minutes=1), replace(STEP, desired={}))
    listings = [roles(role("young", NOW - timedelta(seconds=20)), role("old"))]
    source = FakeSource([[known(records=LocalStore(tmp_path))]])
    assert verdicts(run(listings, source, host=AliveHost())) == {"young": Verdict.UNKNOWN, "old": Verdict.UNMANAGED}
    assert set(verdicts(run(listings, FakeSource(source.readings))).values()) == {Verdict.ORPHANED, Verdict.UNMANAGED}


def test_a_record_that_cannot_be_read_is_a_gap_and_is_told_where_it_may_explain_something(tmp_path: Path) -> None:
    operation_id = failed(tmp_path)
    (tmp_path / "operations" / operation_id / "intent.json").write_text("{")
    result = run([roles(role("app", INSIDE))], FakeSource([[known(records=LocalStore(tmp_path))]]))
    assert verdicts(result) == {"app": Verdict.UNMANAGED}
    assert [gap.scope for gap in result.coverage.gaps] == [f"record {tmp_path}"]
    assert str(tmp_path) in str(only(result).evidence)


def test_a_damaged_head_hides_no_operation(tmp_path: Path) -> None:
    failed(tmp_path)
    (tmp_path / "head.json").write_text("{")
    result = run([roles(role("app", INSIDE))], FakeSource([[known(records=LocalStore(tmp_path))]]))
    assert verdicts(result) == {"app": Verdict.ORPHANED}
    assert not result.coverage.complete


def test_what_the_ledger_keeps_is_retained_and_needs_no_action(tmp_path: Path) -> None:
    operation_id = failed(tmp_path)
    entry = Disposition(role("app").finding_id, DispositionKind.RETAIN, NOW, "me", "for later", operation_id)
    records_in(tmp_path).decide([entry])
    result = run([roles(role("app", INSIDE))], FakeSource([[known(records=LocalStore(tmp_path))]]))
    assert (only(result).verdict, only(result).disposition) == (Verdict.RETAINED, entry)
    assert (result.rules, exit_code_of(result)) == ({"retained": 1}, ExitCode.DONE)


@pytest.mark.parametrize(
    ("decided", "kind"),
    [
        ({"kind": DispositionKind.RETAIN, "until": NOW - timedelta(minutes=1)}, EvidenceKind.OVERDUE),
        ({"kind": DispositionKind.RELEASE}, EvidenceKind.RELEASED),
        ({"kind": DispositionKind.DESTROY, "stage": DestroyStage.STOPPED}, EvidenceKind.DELETION),
    ],
)
@pytest.mark.parametrize("explained", [True, False])
def test_a_finding_whose_last_decision_does_not_hold_any_more_says_so(
    tmp_path: Path, decided: dict[str, Any], kind: EvidenceKind, explained: bool
) -> None:
    operation_id = failed(tmp_path)
    found = role("app" if explained else "by-hand", INSIDE)
    told = {"at": NOW - timedelta(minutes=30), "actor": "me", "reason": "r", "operation_id": operation_id}
    kept = Disposition(finding_id=found.finding_id, **{**told, "kind": DispositionKind.RETAIN})
    records_in(tmp_path).decide([kept, Disposition(finding_id=found.finding_id, **(told | decided))])
    finding = only(run([roles(found)], FakeSource([[known(records=LocalStore(tmp_path))]])))
    assert finding.verdict is (Verdict.ORPHANED if explained else Verdict.UNMANAGED)
    assert finding.evidence[-1].kind is kind
    assert finding.disposition is None
    renewed = replace(found, created_at=NOW)
    anew = only(run([roles(renewed)], FakeSource([[known(records=LocalStore(tmp_path))]])))
    assert kind not in {item.kind for item in anew.evidence}, "another object under an old name"


def test_a_list_that_was_refused_is_a_gap_and_nothing_is_missing_there() -> None:
    result = run([roles(gap="AccessDenied on ListRoles")], FakeSource([[known(held(role("app")))]]))
    assert (result.findings, result.coverage.types_listed) == ((), 0)
    assert [gap.reason for gap in result.coverage.gaps] == ["AccessDenied on ListRoles"]
    assert exit_code_of(result) == ExitCode.INCOMPLETE


def test_objects_of_a_list_that_was_cut_are_judged_all_the_same() -> None:
    result = run([roles(role("app"), gap="page 2 failed")], FakeSource([[known()]]))
    assert verdicts(result) == {"app": Verdict.UNMANAGED}
    assert (result.coverage.complete, exit_code_of(result)) == (False, ExitCode.FOUND)


def test_a_list_that_is_never_answered_is_a_gap() -> None:
    result = run([], FakeSource([[known()]]), shards=shards_of([roles()]))
    assert [gap.reason for gap in result.coverage.gaps] == ["1 lists were not answered"]


def test_a_gap_of_no_type_hides_no_list_that_was_not_answered() -> None:
    whole = Listing("", Scope("aws", None, "global"), gap=Gap("export", "damaged"))
    result = run([whole], FakeSource([[known()]]), shards=shards_of([roles()]))
    assert {gap.reason for gap in result.coverage.gaps} == {"damaged", "1 lists were not answered"}


def test_what_a_state_has_and_the_account_has_not_is_missing() -> None:
    result = run(
        [roles(soft_deleted=(role("ending"),))], FakeSource([[known(held(role("app")), held(role("ending")))]])
    )
    assert (only(result).verdict, only(result).address, only(result).object) == (
        Verdict.MISSING, "aws_iam_role.app", None,
    )  # fmt: skip
    # It needs an action: the next apply makes it anew, or somebody takes it out of the state.
    assert (result.summary, exit_code_of(result)) == ({"soft-deleted": 1, "missing": 1}, ExitCode.FOUND)


def test_what_a_list_has_not_that_claims_no_wholeness_is_not_missing() -> None:
    result = run([roles(exhaustive=False)], FakeSource([[known(held(role("app")))]]))
    assert (result.findings, result.coverage.gaps, result.complete_listings) == ((), (), frozenset())
    assert (result.coverage.types_listed, exit_code_of(result)) == (1, ExitCode.DONE)


def test_a_place_that_two_provider_configurations_lead_to_counts_once() -> None:
    result = run([roles(role("app")), roles(role("app"))], FakeSource([[known()]]))
    assert (verdicts(result), result.summary) == ({"app": Verdict.UNMANAGED}, {"unmanaged": 1})


def test_what_a_maker_that_was_not_listed_may_have_made_is_unknown_and_the_look_incomplete() -> None:
    """A scan of some types alone: with the others, the object would be ignored, or an orphan."""
    by = MadeBy("aws_instance", "id", "i-1", "may have been made with it", certain=False)
    child = role("child", made_by=(by,))
    result = run([roles(child)], FakeSource([[known()]]))
    assert only(result).verdict is Verdict.UNKNOWN
    assert "aws_instance i-1 exists was not looked up" in str(only(result).evidence)
    assert (exit_code_of(result), result.coverage.complete) == (ExitCode.INCOMPLETE, False)
    assert [gap.scope for gap in result.coverage.gaps] == [f"aws {ACCOUNT} global aws_iam_role"]


def test_what_an_operation_lost_in_a_default_network_is_its_orphan_though_a_maker_could_have_made_it(
    tmp_path: Path,
) -> None:
    lost = role("app", NOW + timedelta(minutes=1), made_by=(MadeBy("aws_iam_role", "name", "maker", "made by it"),))
    begun(records_in(tmp_path), NOW)
    listings = [roles(lost, role("maker", ignored_because="made with the account"))]
    clock = MovedClock(NOW + timedelta(hours=1))
    result = run(listings, FakeSource([[known(records=LocalStore(tmp_path))]]), clock=clock)
    assert (verdicts(result), only(result).operation_id is None) == ({"app": Verdict.ORPHANED}, False)


def test_details_are_asked_of_candidates_alone_and_count() -> None:
    inventory = FakeInventory(
        {"tagged": {"tags": {"keep": "yes"}}, "fleet": {"ignored_because": "made by CloudFormation"}}
    )
    listings = [roles(role("kept"), role("named"), role("tagged"), role("fleet"), role("stranger"))]
    rules = (IgnoreRule("*", "by name", name="named"), IgnoreRule("*", "by tag", tag="keep=yes"))
    result = run(listings, FakeSource([[known(held(role("kept")))]]), inventory=inventory, ignore=rules)
    assert verdicts(result) == {"stranger": Verdict.UNMANAGED}
    assert sorted(inventory.asked) == ["fleet", "stranger", "tagged"]
    assert result.rules == {
        "scan.ignore[0]: by name": 1, "scan.ignore[1]: by tag": 1, "catalogue: made by CloudFormation": 1,
    }  # fmt: skip


def test_details_that_are_refused_are_a_gap_and_leave_open_what_they_would_have_told() -> None:
    gap = Gap(f"aws {ACCOUNT} global aws_iam_role", "AccessDenied on ListRoleTags")
    inventory = FakeInventory(refused={"secretive": gap})
    rules = (IgnoreRule("*", "by tag", tag="keep=yes"),)
    result = run([roles(role("secretive"), role("plain"))], FakeSource([[known()]]), inventory=inventory, ignore=rules)
    assert verdicts(result) == {"secretive": Verdict.UNKNOWN, "plain": Verdict.UNMANAGED}
    assert result.coverage.gaps == (gap,)


def test_rules_that_nothing_used_and_those_that_have_expired_are_told() -> None:
    old = IgnoreRule("*", "old", expires=NOW.date() - timedelta(days=1))
    result = run([roles(role("app"))], FakeSource([[known()]]), ignore=(IgnoreRule("aws_x", "for nothing"), old))
    assert verdicts(result) == {"app": Verdict.UNMANAGED}
    assert ["for nothing" in rule for rule in result.unused_rules] == [True]
    assert ["old" in rule for rule in result.expired_rules] == [True]


def test_a_child_that_is_listed_before_its_maker_is_a_child() -> None:
    kind = next(entry for entry in CATALOG if any(rule.type == "aws_instance" for rule in entry.made_by))
    rule = next(rule for rule in kind.made_by if rule.type == "aws_instance")
    made_by = (MadeBy("aws_instance", rule.parent_attribute, "i-1", rule.reason),)
    scope = Scope("aws", ACCOUNT, "eu-west-1", "aws")
    child = CloudObject("aws", ACCOUNT, "eu-west-1", kind.type, "c", "c", {}, made_by=made_by)
    server = CloudObject("aws", ACCOUNT, "eu-west-1", "aws_instance", "i-1", "i-1", {"id": "i-1"})
    result = run(
        [Listing(kind.type, scope, (child,)), Listing("aws_instance", scope, (server,))], FakeSource([[known()]])
    )
    assert verdicts(result) == {"i-1": Verdict.UNMANAGED}
    assert result.rules == {f"child: {rule.reason}": 1}


@pytest.mark.parametrize(
    ("stacks", "gap", "verdict", "code"),
    [
        (["s"], "", None, ExitCode.DONE),
        (["other"], "", Verdict.UNMANAGED, ExitCode.FOUND),
        ([], "", Verdict.UNMANAGED, ExitCode.FOUND),
        ([], "AccessDenied on DescribeStacks", Verdict.UNKNOWN, ExitCode.INCOMPLETE),
        (None, "", Verdict.UNKNOWN, ExitCode.INCOMPLETE),
    ],
)
def test_what_a_tag_ascribes_to_a_stack_is_left_out_only_while_that_exists(
    stacks: list[str] | None, gap: str, verdict: Verdict | None, code: ExitCode
) -> None:
    """A database of a stack with `DeletionPolicy: Retain` is nobody's once the stack is deleted."""
    scope = Scope("aws", ACCOUNT, "eu-west-1", "aws")
    tags = {"TagList": [{"Key": "aws:cloudformation:stack-id", "Value": arn_of_stack("s")}]}
    database = to_object(CATALOG.types["aws_db_instance"], {**DATABASE, **tags}, scope, "aws")
    assert database is not None
    listings = [Listing("aws_db_instance", scope, (database,))]
    if stacks is not None:
        kind = CATALOG.types["aws_cloudformation_stack"]
        found = [to_object(kind, {"StackId": arn_of_stack(name), "StackName": name}, scope, "aws") for name in stacks]
        refused = Gap(f"{scope} {kind.type}", gap) if gap else None
        listings.append(Listing(kind.type, scope, tuple(one for one in found if one), refused))
    mine = [known(*(held(one) for listing in listings[1:] for one in listing.objects))]
    result = run(listings, FakeSource([mine]))
    assert verdicts(result) == ({"db-ABC": verdict} if verdict else {})
    assert exit_code_of(result) == code


DATABASE = {"DBInstanceIdentifier": "one", "DbiResourceId": "db-ABC", "Engine": "postgres"}


def arn_of_stack(name: str) -> str:
    """The id of a stack, which is its ARN."""
    return f"arn:aws:cloudformation:eu-west-1:{ACCOUNT}:stack/{name}/1"


def test_with_everything_what_rules_leave_out_is_shown_too() -> None:
    listings = [roles(role("a", ignored_because="made by AWS"), role("b", owner=OTHER), soft_deleted=(role("c"),))]
    shown = run(listings, FakeSource([[known()]]), everything=True)
    assert verdicts(shown) == {"a": Verdict.IGNORED, "b": Verdict.FOREIGN, "c": Verdict.SOFT_DELETED}
    assert exit_code_of(shown) == ExitCode.DONE
    assert run(listings, FakeSource([[known()]])).findings == ()


def test_an_object_that_a_withheld_name_may_mean_is_unknown_and_told_without_the_name() -> None:
    snapshot = StateSnapshot("lineage", 1, (held(role("x"), identity={}, withheld=("name", "arn")),),
                             secrets=frozenset(["hunter22"]))  # fmt: skip
    result = run([roles(role("hunter22"), role("stranger"))], FakeSource([[known(snapshot=snapshot)]]))
    assert set(verdicts(result).values()) == {Verdict.UNKNOWN}
    assert "hunter22" not in repr(result)
    assert exit_code_of(result) == ExitCode.INCOMPLETE


def test_what_any_state_marks_stands_in_no_finding() -> None:
    snapshot = StateSnapshot("lineage", 1, (), secrets=frozenset(["hunter22"]))
    log = FakeLog({"plain": Creation(LONG_AGO, "CreateRole", "jo hunter22")})
    listings = [roles(role("app-hunter22"), role("plain", tags={"Owner": "ops", "T": "a hunter22"}), role("clean"))]
    elsewhere = known(location="s3://state/other", snapshot=snapshot)
    result = run(listings, FakeSource([[known(), elsewhere]]), audit=log)
    assert "hunter22" not in repr(result.findings)
    told = {one.object.name: one for one in result.findings if one.object}
    assert told["clean"].actions == told["plain"].actions == ("import", "retain", "destroy")
    assert (told["plain"].id, told["plain"].object.tags) == (role("plain").finding_id, {})  # type: ignore[union-attr]
    assert (told[None].verdict, told[None].is_withheld, told[None].actions) == (Verdict.UNMANAGED, True, ())
    assert told[None].id != role("app-hunter22").finding_id
    assert exit_code_of(result) == ExitCode.FOUND


def test_the_audit_log_is_asked_about_strays_alone(tmp_path: Path) -> None:
    failed(tmp_path)
    log = FakeLog({"stranger": Creation(LONG_AGO, "CreateRole", "jo")})
    listings = [roles(role("kept"), role("stranger"), role("app", INSIDE), role("s", ignored_because="by AWS"))]
    state = known(held(role("kept")), records=LocalStore(tmp_path))
    result = run(listings, FakeSource([[state]]), audit=log)
    assert sorted(log.asked) == ["app", "stranger"]
    assert "CreateRole" in str([one.evidence for one in result.findings if one.object and one.object.id == "stranger"])
    assert "CloudTrail was not asked in one place" in result.notes


def test_an_interrupt_does_not_wait_for_a_state_that_is_slow_to_come() -> None:
    clock, enough = MovedClock(NOW), Event()
    ended: list[bool] = []

    class Slow(FakeSource):
        def read(self) -> Iterator[KnownState]:
            clock.interrupted = True
            ended.append(enough.wait(10))
            yield known()

    try:
        with pytest.raises(InterruptedRunError):
            run([roles(role("app"))], Slow([[]]), clock=clock)
        assert ended == []
    finally:
        enough.set()


def test_an_interrupt_ends_the_scan_wherever_it_is() -> None:
    clock = MovedClock(NOW)

    def interrupt() -> None:
        clock.interrupted = True

    with pytest.raises(InterruptedRunError):
        run([roles(role("app"))], FakeSource([[known()]]), lister=FakeLister([roles()], interrupt), clock=clock)
    with pytest.raises(InterruptedRunError):
        run([roles(role("app"))], FakeSource([[known()]]), clock=clock)


def test_progress_is_told_from_the_states_to_the_details() -> None:
    told: list[Progress] = []
    run([roles(role("app"))], FakeSource([[known()]]), progress=told.append)
    assert [one.phase for one in told][:2] == ["states", "listing"]
    assert {"states", "listing", "states again", "details"} <= {one.phase for one in told}
    assert [(one.done, one.total) for one in told if one.phase == "listing"] == [(0, 1), (1, 1)]


def test_where_no_record_can_be_told_it_is_said() -> None:
    result = run([roles(role("app"))], FakeSource([[known(records=None)]]))
    assert any("s3://state/a" in note for note in result.notes)


# Equal names in two places


def named(kind: str, account: str | None, region: str, name: str = "app", **fields: Any) -> CloudObject:
    """An object that has a name and no ARN."""
    key = next(iter(CATALOG.types[kind].keys))
    return replace(CloudObject("aws", account, region, kind, name, name, {key: name}, name=name), **fields)


def listed(*objects: CloudObject) -> list[Listing]:
    """A complete listing of each place in which there are objects."""
    places = {(found.type, found.account, found.region): [] for found in objects}  # type: ignore[var-annotated]
    for found in objects:
        places[found.type, found.account, found.region].append(found)
    return [
        Listing(kind, Scope("aws", account, region, "aws"), tuple(several))
        for (kind, account, region), several in places.items()
    ]


FILTER, POLICY, SNAPSHOT = "aws_cloudwatch_log_metric_filter", "aws_iam_role_policy", "aws_db_snapshot"
NODES = "aws_eks_node_group"


def log_group(account: str, region: str) -> StateInstance:
    """An instance that tells where its provider configuration works."""
    arn = f"arn:aws:logs:{region}:{account}:log-group:g"
    return StateInstance("aws_cloudwatch_log_group.g", "aws_cloudwatch_log_group", AWS, "aws", {"arn": arn})


def snapshot(account: str, region: str, name: str = "app") -> CloudObject:
    """A snapshot of a database, which has an ARN under another name."""
    identity = {"db_snapshot_identifier": name, "db_snapshot_arn": f"arn:aws:rds:{region}:{account}:snapshot:{name}"}
    return named(SNAPSHOT, account, region, name, identity=identity)


def found_in(result: ScanResult) -> dict[tuple[str | None, str], Verdict]:
    """The findings' verdicts by the place of their objects."""
    return {(one.object.account, one.object.region): one.verdict for one in result.findings if one.object}


HERE, NEAR, FAR = (ACCOUNT, "eu-west-1"), (ACCOUNT, "us-east-1"), (OTHER, "us-east-1")


@pytest.mark.parametrize(
    ("kind", "beside", "said"),
    [
        (FILTER, [log_group(*HERE)], {}),  # the provider configuration's other instances tell
        (FILTER, [], {"account": ACCOUNT, "region": "eu-west-1"}),
        (NODES, [log_group(*HERE)], {}),
        (NODES, [], {"account": ACCOUNT, "region": "eu-west-1"}),
    ],
)
def test_an_equal_name_in_another_account_or_region_is_not_what_a_state_has(
    kind: str, beside: list[StateInstance], said: dict[str, str]
) -> None:
    objects = [named(kind, *place) for place in (HERE, NEAR, FAR)]
    for order in (objects, objects[::-1]):
        result = run(listed(*order), FakeSource([[known(held(objects[0], **said), *beside)]]))
        assert found_in(result) == {NEAR: Verdict.UNMANAGED, FAR: Verdict.UNMANAGED}
        assert result.summary == {"managed": 1, "unmanaged": 2}


def test_an_arn_that_goes_by_another_name_decides_as_well() -> None:
    objects = [snapshot(*place) for place in (HERE, NEAR, FAR)]
    result = run(listed(*objects), FakeSource([[known(held(objects[0]))]]))
    assert found_in(result) == {NEAR: Verdict.UNMANAGED, FAR: Verdict.UNMANAGED}
    gone = run(listed(snapshot(*HERE)), FakeSource([[known(held(snapshot(*HERE, "old")))]]))
    assert gone.summary == {"unmanaged": 1, "missing": 1}


def test_what_is_global_is_bound_to_its_account() -> None:
    objects = [named(POLICY, account, "global", "app:p") for account in (ACCOUNT, OTHER)]
    result = run(listed(*objects), FakeSource([[known(held(objects[0]), held(role("app")))]]))
    assert found_in(result) == {(OTHER, "global"): Verdict.UNMANAGED}


@pytest.mark.parametrize("places", [(HERE, NEAR), (HERE, FAR), (HERE, NEAR, FAR)])
def test_where_nothing_tells_which_of_several_it_is_all_are_unknown(places: tuple[tuple[str, str], ...]) -> None:
    objects = [named(FILTER, *place) for place in places]
    result = run(listed(*objects), FakeSource([[known(held(objects[0]))]]))
    assert found_in(result) == dict.fromkeys(places, Verdict.UNKNOWN)
    assert result.summary == {"unknown": len(places)}
    assert exit_code_of(result) == ExitCode.INCOMPLETE
    told = str(result.findings[0].evidence)
    assert f"{FILTER}.app in s3://state/a" in told
    assert all(region in told for _, region in places)


def test_what_exists_in_one_place_alone_is_managed_though_nothing_tells_where_it_is() -> None:
    objects = [named(FILTER, *HERE), named(FILTER, *NEAR, "other"), named(NODES, *FAR)]
    state = known(held(objects[0]), held(objects[2]), held(objects[1], "other"))
    result = run(listed(*objects), FakeSource([[state]]))
    assert (result.findings, result.summary, exit_code_of(result)) == ((), {"managed": 3}, ExitCode.DONE)


def test_of_several_the_account_that_is_told_leaves_those_in_it() -> None:
    objects = [named(FILTER, *place) for place in (HERE, FAR)]
    result = run(listed(*objects), FakeSource([[known(held(objects[0]), held(role("app")))]]))
    assert found_in(result) == {FAR: Verdict.UNMANAGED}
    both = [*objects, named(FILTER, *NEAR)]
    result = run(listed(*both), FakeSource([[known(held(objects[0]), held(role("app")))]]))
    assert found_in(result) == {HERE: Verdict.UNKNOWN, NEAR: Verdict.UNKNOWN, FAR: Verdict.UNMANAGED}


def test_an_equal_name_elsewhere_that_a_rule_leaves_out_stays_left_out() -> None:
    ours, theirs = named(FILTER, *HERE), named(FILTER, *NEAR, ignored_because="made by AWS")
    shared = named(FILTER, *FAR, owner="111111111111")
    result = run(listed(ours, theirs, shared), FakeSource([[known(held(ours))]]))
    assert found_in(result) == {HERE: Verdict.UNKNOWN}
    assert result.summary == {"unknown": 1, "ignored": 1, "foreign": 1}


def test_what_an_apply_makes_meanwhile_is_told_apart_by_its_place_too() -> None:
    objects = [named(FILTER, *place) for place in (HERE, NEAR)]
    second = known(held(objects[0]), log_group(*HERE))
    result = run(listed(*objects), FakeSource([[known()], [second]]))
    assert found_in(result) == {NEAR: Verdict.UNMANAGED}


def test_a_maker_of_an_equal_name_elsewhere_is_none() -> None:
    group = "aws_autoscaling_group"
    ours = CloudObject("aws", *HERE, group, "app", "app", {"name": "app"})
    child = named(FILTER, *NEAR, "child", made_by=(MadeBy(group, "name", "app", "made by its group"),))
    listings = [*listed(ours, child), Listing(group, Scope("aws", *NEAR, "aws"))]
    for beside in ([log_group(*HERE)], []):
        result = run(listings, FakeSource([[known(held(ours), *beside)]]))
        assert found_in(result) == {NEAR: Verdict.UNMANAGED}


# The second reading


def test_a_stack_that_first_has_a_record_while_the_scan_lists_is_asked_too(tmp_path: Path) -> None:
    failed(tmp_path)
    late = known(location="s3://state/new", records=LocalStore(tmp_path))
    result = run([roles(role("app", INSIDE))], FakeSource([[known()], [known(), late]]))
    assert verdicts(result) == {"app": Verdict.ORPHANED}


def test_what_a_state_has_since_the_lists_alone_is_not_missing() -> None:
    new = held(role("new"), "new")
    source = FakeSource([[known(held(role("app")))], [known(held(role("app")), new)]])
    assert run([roles(role("app"), role("stranger"))], source).summary == {"managed": 1, "unmanaged": 1}


def test_a_place_that_is_listed_twice_has_each_object_once(tmp_path: Path) -> None:
    objects = (role("app"), role("stranger"), role("service", ignored_because="made by AWS"))
    states = FakeSource([[known(held(role("app")), records=LocalStore(tmp_path))]])
    for listings in ([roles(*objects, gap="cut"), roles(*objects)], [roles(*objects), roles(*objects, gap="cut")],
                     [roles(*objects[:1], gap="cut"), roles(*objects[1:], gap="cut")] * 2):  # fmt: skip
        result = run(listings, FakeSource(states.readings))
        assert result.summary == {"managed": 1, "unmanaged": 1, "ignored": 1}


# Older operations


def many_operations(folder: Path, count: int) -> None:
    """Later operations on a stack, which tell nothing of its role."""
    for number in range(count):
        at = NOW - timedelta(minutes=30) + timedelta(seconds=number)
        records = records_in(folder, at=at)
        other = replace(STEP, address="aws_iam_role.other", desired={"name": "other"})
        ended(records, begun(records, at, other), at, Outcome.RECORDED, other)


@pytest.mark.parametrize("created", [LONG_AGO, None])
def test_an_operation_explains_what_it_lost_however_many_came_after_it(
    tmp_path: Path, created: datetime | None
) -> None:
    lost = replace(STEP, action=Action.FORGET, desired={}, before={"name": "app"}, disposition="retain")
    operation = failed(tmp_path, step=lost)
    many_operations(tmp_path, NEWEST + 1)
    assert operation not in records_in(tmp_path).head().open_operations
    result = run([roles(role("app", created))], FakeSource([[known(records=LocalStore(tmp_path))]]))
    assert (verdicts(result), only(result).operation_id) == ({"app": Verdict.ORPHANED}, operation)


def test_where_not_all_operations_are_read_nothing_is_certain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_records, "MOST", 2)
    monkeypatch.setattr(scan_records, "NEWEST", 1)
    many_operations(tmp_path, 4)
    result = run([roles(role("app", LONG_AGO))], FakeSource([[known(records=LocalStore(tmp_path))]]))
    assert (only(result).verdict, only(result).confidence) == (Verdict.UNMANAGED, Confidence.LIKELY)
    assert any("no operation older than" in note for note in result.notes)
    assert result.coverage.complete


def of_queues(gap: str, **fields: Any) -> Listing:
    """The listing of queues that a gap is in the way of."""
    scope = Scope("aws", None, "eu-west-1", "aws")
    return Listing("aws_sqs_queue", scope, gap=Gap(f"{scope} aws_sqs_queue", gap), **fields)


def test_where_nobody_can_be_asked_anywhere_it_is_an_error_with_the_reason() -> None:
    nobody = [of_queues("NoCredentialsError", asked=False), roles(gap="NoCredentialsError", asked=False)]
    with pytest.raises(InputError, match="NoCredentialsError") as raised:
        run(nobody, FakeSource([[known(held(role("kept")))]]))
    assert f"anywhere ({nobody[1].scope.account}): " in raised.value.what


@pytest.mark.parametrize(
    "other",
    [
        roles(gap="NoCredentialsError"),
        roles(gap="another reason", asked=False),
        roles(),
        roles(role("kept"), gap="NoCredentialsError"),
    ],
)
def test_where_somebody_was_asked_or_for_another_reason_the_scan_is_incomplete(other: Listing) -> None:
    result = run([of_queues("NoCredentialsError", asked=False), other], FakeSource([[known(held(role("kept")))]]))
    assert not result.coverage.complete
    assert exit_code_of(result) == (ExitCode.FOUND if not (other.gap or other.objects) else ExitCode.INCOMPLETE)


def test_the_places_that_could_be_looked_at_are_told() -> None:
    result = run([roles(role("app")), of_queues("AccessDenied")], FakeSource([[known()]]))
    assert [(one.account, one.regions) for one in result.places] == [(ACCOUNT, ("global",))]


def test_a_rule_about_what_could_not_be_listed_or_was_left_out_is_not_called_unused() -> None:
    rules = (IgnoreRule("aws_sqs_queue", "cut"), IgnoreRule("aws_vpc", "left out"), IgnoreRule("aws_iam_role", "none"))
    left_out = frozenset({("aws", ACCOUNT, "eu-west-1", "aws_vpc")})
    listings = [roles(role("app")), of_queues("AccessDenied")]
    result = run(
        listings, FakeSource([[known()]]), ignore=tuple(replace(one, name="x") for one in rules), left_out=left_out
    )
    assert result.unused_rules == ("scan.ignore[2] (aws_iam_role: none)",)
