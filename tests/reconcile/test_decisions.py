"""May this plan adopt, what to run next, and which findings and gaps operations leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from scene import ACCOUNT, AWS, END, START, baseline, role, step, vpc

from tfguard.catalog.loader import load_catalog
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.engine import EngineInfo
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Verdict, tainted_id
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import (
    Actor,
    ErroredState,
    Intent,
    ObservedObject,
    Operation,
    OperationStatus,
    Outcome,
    Result,
    Stack,
    Step,
)
from tfguard.model.plan import Action, Plan, PlannedChange
from tfguard.reconcile.adoption import (
    derived_address,
    elsewhere,
    objections,
    own_import_id,
    references_to,
    update_in_words,
    updates,
)
from tfguard.reconcile.advice import next_actions
from tfguard.reconcile.findings import coverage_of, findings_of, summary_of
from tfguard.reconcile.marks import observe, with_finding

CATALOG = load_catalog()
ROLE, OTHER = "aws_iam_role.app", "aws_vpc.main"
WANTED = {ROLE: "app"}


def change(address: str, action: Action, **fields: object) -> PlannedChange:
    """One planned change."""
    return PlannedChange(address, address.split(".", maxsplit=1)[0], AWS, action, **fields)  # type: ignore[arg-type]


def plan(*changes: PlannedChange) -> Plan:
    """A plan of these changes."""
    return Plan("1.11.4", changes)


IMPORT = change(ROLE, Action.NOOP, importing="app")


@pytest.mark.parametrize(
    "allowed",
    [
        plan(IMPORT),
        plan(change(ROLE, Action.UPDATE, importing="app")),
        plan(change(ROLE, Action.NOOP, importing="")),  # an import by identity has no id
        plan(IMPORT, change(OTHER, Action.NOOP)),
        plan(IMPORT, change("data.aws_vpc.d", Action.READ)),
    ],
)
def test_a_plan_that_imports_and_touches_nothing_else_may_be_applied(allowed: Plan) -> None:
    assert objections(allowed, WANTED, WANTED) == ()


@pytest.mark.parametrize("action", [action for action in Action if action not in (Action.NOOP, Action.READ)])
def test_a_plan_that_touches_anything_else_may_not_be_applied(action: Action) -> None:
    (one,) = objections(plan(IMPORT, change(OTHER, action)), WANTED, WANTED)
    assert (one.address, OTHER in one.what, action.value in one.what) == (None, True, True)


@pytest.mark.parametrize("action", [Action.CREATE, Action.DELETE, Action.REPLACE, Action.FORGET])
def test_a_plan_that_would_delete_or_replace_what_is_adopted_may_not_be_applied(action: Action) -> None:
    assert {one.address for one in objections(plan(change(ROLE, action, importing="app")), WANTED, WANTED)} == {ROLE}
    assert objections(plan(IMPORT, change(ROLE, action, deposed="0a1b2c3d")), WANTED, WANTED)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (plan(), "does not import"),
        (plan(change(ROLE, Action.NOOP)), "does not import"),
        (plan(change(ROLE, Action.UPDATE)), "does not import"),
        (plan(change(ROLE, Action.NOOP, importing="another")), "another object, another"),
        (plan(IMPORT, change(OTHER, Action.NOOP, importing="vpc-1")), "also"),
    ],
)
def test_a_plan_that_does_not_import_just_what_was_asked_for_may_not_be_applied(given: Plan, words: str) -> None:
    assert any(words in one.what for one in objections(given, WANTED, WANTED))


def test_what_is_updated_in_place_is_told_by_its_names() -> None:
    told = change(ROLE, Action.UPDATE, importing="app", differs=("tags",))
    assert updates(plan(told, change(OTHER, Action.NOOP))) == {ROLE: ("tags",)}


def test_an_update_needs_a_word_and_one_that_only_fills_in_what_an_import_leaves_empty_needs_none() -> None:
    told = change(ROLE, Action.UPDATE, importing="app", differs=("policy", "tags"))
    (one,) = objections(plan(told), WANTED, ())
    assert (one.address, one.what) == (ROLE, f"it would update {ROLE} in place: policy, tags")
    assert objections(plan(replace(told, differs=())), WANTED, ()) == ()


@pytest.mark.parametrize(
    ("differs", "said"),
    [
        (None, ""),
        (("tags",), ", and update it in place to what the configuration says: tags"),
        ((), ", and note in the state what it has already; the engine counts that as a change"),
    ],
)
def test_an_update_that_changes_nothing_of_the_object_is_told_as_such(
    differs: tuple[str, ...] | None, said: str
) -> None:
    assert update_in_words(differs) == said


def test_a_replacement_is_told_with_what_forces_it() -> None:
    told = change(ROLE, Action.REPLACE, importing="app", forced_by=("name",))
    assert "as name differs" in objections(plan(told), WANTED, WANTED)[0].what


def test_an_object_of_the_same_id_in_another_region_is_not_the_wanted_one() -> None:
    arn = "arn:aws:sqs:us-east-1:123456789012:jobs"
    seen = change("aws_sqs_queue.jobs", Action.NOOP, importing="jobs", before={"arn": arn})
    known = CloudObject("aws", "123456789012", "us-east-1", "aws_sqs_queue", "jobs", "jobs")
    assert elsewhere(plan(seen), {"aws_sqs_queue.jobs": known}, CATALOG) == ()
    for other in (replace(known, region="eu-west-1"), replace(known, account="999999999999")):
        (one,) = elsewhere(plan(seen), {"aws_sqs_queue.jobs": other}, CATALOG)
        assert one.address == "aws_sqs_queue.jobs"


@pytest.mark.parametrize(
    ("desired", "expected"),
    [
        ({"zone_id": "Z1", "name": "www", "type": "A"}, "Z1_www_A"),
        ({"zone_id": "Z1", "name": "www", "type": "A", "set_identifier": "blue"}, "Z1_www_A_blue"),
        ({"zone_id": "Z1", "type": "A"}, None),
    ],
)
def test_an_import_id_is_made_of_the_configurations_own_values_or_not_at_all(
    desired: dict[str, str], expected: str | None
) -> None:
    assert own_import_id(CATALOG.types["aws_route53_record"], desired) == expected
    assert own_import_id(CATALOG.types["aws_vpc"], desired) is None


@pytest.mark.parametrize(
    ("name", "taken", "expected"),
    [
        ("jobs", (), "aws_sqs_queue.jobs"),
        ("jobs", ("aws_sqs_queue.jobs", "aws_sqs_queue.jobs_2"), "aws_sqs_queue.jobs_3"),
        ("/app/My-Logs", (), "aws_sqs_queue.my_logs"),
        ("4711", (), "aws_sqs_queue.this_4711"),
        ("été/", (), "aws_sqs_queue.this"),
    ],
)
def test_an_address_is_derived_from_a_name_and_never_one_that_is_taken(
    name: str, taken: tuple[str, ...], expected: str
) -> None:
    found = CloudObject("aws", None, "us-east-1", "aws_sqs_queue", "id", "id", name=name)
    assert derived_address(found, taken) == expected


def test_a_value_is_referred_to_where_one_object_alone_has_it() -> None:
    held = [
        ("aws_vpc.main", {"id": "vpc-1", "arn": "arn:vpc-1"}),
        ("aws_vpc.twin[0]", {"id": "vpc-2"}),
        ("aws_vpc.twin[1]", {"id": "vpc-2"}),
        ("module.net.aws_vpc.far", {"id": "vpc-3"}),
        ("aws_iam_role.app", {"name": "app", "id": "abc"}),
        ("aws_kms_key.k", {"key_id": "1234-5678", "id": "1234-5678"}),
    ]
    assert references_to(held) == {
        "vpc-1": "aws_vpc.main.id",
        "arn:vpc-1": "aws_vpc.main.arn",
        "1234-5678": "aws_kms_key.k.id",
    }


# --- operations ---


def operation(*steps: Step, id_: str = "01A", finished: bool = True, **result: object) -> Operation:
    """An operation with these steps as its result has them."""
    intent = Intent(
        id_,
        "apply",
        (),
        Stack("local", "terraform.tfstate", "default", "."),
        EngineInfo("terraform", "1.11.4"),
        Actor("me", "host"),
        START,
        "lineage",
        3,
        tuple(replace(one, outcome=None, observed=(), evidence=()) for one in steps),
        baseline=(baseline("aws_iam_role"), baseline("aws_vpc"), replace(baseline("aws_vpc"), provider_key="aws.eu")),
    )
    done = Result(id_, OperationStatus.ERROR, END, steps, exit_code=1, **result)  # type: ignore[arg-type]
    return Operation(intent, done if finished else None)


def stray(found: CloudObject, *addresses: str, **fields: object) -> ObservedObject:
    """An object that no state knows, with its finding."""
    seen = observe(found, in_state=False, confidence=Confidence.CERTAIN)
    return with_finding(replace(seen, addresses=addresses, **fields))  # type: ignore[arg-type]


def left(address: str, outcome: Outcome, *observed: ObservedObject, **fields: object) -> Step:
    """A concluded step."""
    evidence = (Evidence(EvidenceKind.DESIRED_IDENTITY, "name = app"),)
    return replace(step(address), outcome=outcome, observed=observed, evidence=evidence, **fields)  # type: ignore[arg-type]


ORPHAN = stray(role(), ROLE)
ORPHANED = left(ROLE, Outcome.ORPHANED, ORPHAN)
ID = ORPHAN.finding_id
VPC = stray(vpc("vpc-1"), OTHER)
IN_STATE = observe(vpc("vpc-0"), in_state=True, confidence=Confidence.CERTAIN)
ERRORED = ErroredState("errored.tfstate", None, "lineage", 4)


@pytest.mark.parametrize(
    ("given", "commands"),
    [
        (operation(), ()),
        (operation(left(ROLE, Outcome.RECORDED)), ()),
        (operation(left(ROLE, Outcome.ABSENT)), ()),
        (operation(ORPHANED), (f"tfguard import --orphan {ID}",)),
        (operation(replace(ORPHANED, disposition="retain")), ()),
        (operation(replace(ORPHANED, action=Action.DELETE)), ("tfguard orphans list",)),
        (operation(left(ROLE, Outcome.UNKNOWN)), ("tfguard recover",)),
        (operation(left(ROLE, Outcome.UNKNOWN, ORPHAN)), ("tfguard orphans list",)),
        (operation(left(OTHER, Outcome.DUPLICATED, IN_STATE, stray(vpc("vpc-1"), OTHER))), ("tfguard orphans list",)),
        (operation(left(ROLE, Outcome.ORPHANED, stray(role(), ROLE, "aws_iam_role.b"))), ("tfguard orphans list",)),
        (operation(left(ROLE, Outcome.ORPHANED)), ("tfguard recover",)),
        (operation(ORPHANED, finished=False), ("tfguard recover",)),
        (operation(ORPHANED, errored_state=ERRORED), ("tfguard recover",)),
        (operation(left(ROLE, Outcome.RECORDED), errored_state=ERRORED), ("tfguard recover",)),
        (operation(left(ROLE, Outcome.RECORDED), errored_state=replace(ERRORED, pushed=True)), ()),
        (operation(left(ROLE, Outcome.UNKNOWN), left(OTHER, Outcome.UNKNOWN)), ("tfguard recover",)),
        (
            operation(left(OTHER, Outcome.UNKNOWN), ORPHANED),
            ("tfguard recover", f"tfguard import --orphan {ID}"),
        ),
        (
            operation(ORPHANED, left(OTHER, Outcome.ORPHANED, VPC), replace(ORPHANED, address="aws_iam_role.b[0]")),
            (f"tfguard import --orphan {ID} {VPC.finding_id}",),
        ),
        (
            operation(left("aws_vpc.a[<withheld 0123456789ab>]", Outcome.ORPHANED, VPC), ORPHANED),
            (f"tfguard import --orphan {VPC.finding_id} --address ADDRESS", f"tfguard import --orphan {ID}"),
        ),
    ],
)
def test_the_next_commands_are_exact_and_said_once(given: Operation, commands: tuple[str, ...]) -> None:
    assert next_actions(given) == commands
    assert bool(commands) is given.open


def test_what_is_left_tainted_can_be_kept_though_nothing_is_open() -> None:
    given = operation(left(ROLE, Outcome.TAINTED), left(OTHER, Outcome.RECORDED))
    assert not given.open
    assert next_actions(given) == (f"tfguard orphans retain {tainted_id('lineage', ROLE)} --reason TEXT",)
    wanted = replace(given, intent=replace(given.intent, command="taint"))
    assert next_actions(wanted) == (), "whoever marks an object wants it to be replaced"


def test_the_next_command_is_called_as_this_one_was() -> None:
    assert next_actions(operation(ORPHANED), "tfguard -chdir=a") == (f"tfguard -chdir=a import --orphan {ID}",)


@pytest.mark.parametrize(
    ("argv", "option"),
    [
        (("apply", "-state=a.tfstate"), " -state=a.tfstate"),
        (("apply", "--state", "a b", "-state-out=x"), " -state='a b'"),
        (("apply", "-state=a", "-state=b"), " -state=b"),
        (("state", "rm", "x"), ""),
        (("apply", "-var=state=<removed>", "-state"), ""),
    ],
)
def test_the_next_command_names_the_state_that_this_one_named(argv: tuple[str, ...], option: str) -> None:
    given = operation(ORPHANED)
    given = replace(given, intent=replace(given.intent, argv=argv))
    assert next_actions(given) == (f"tfguard import{option} --orphan {ID}",)


@pytest.mark.parametrize(
    ("outcome", "verdict", "actions"),
    [
        (Outcome.ORPHANED, Verdict.ORPHANED, ("import", "retain", "destroy")),
        (Outcome.DUPLICATED, Verdict.DUPLICATED, ("import", "retain", "destroy")),
        (Outcome.UNKNOWN, Verdict.UNKNOWN, ()),
    ],
)
def test_each_stray_object_is_a_finding(outcome: Outcome, verdict: Verdict, actions: tuple[str, ...]) -> None:
    (finding,) = findings_of([operation(left(ROLE, outcome, IN_STATE, ORPHAN))], [], END)
    assert (finding.id, finding.verdict, finding.address, finding.actions) == (ID, verdict, ROLE, actions)
    assert finding.id == role().finding_id
    assert finding.object is not None
    assert finding.object.key == role().key
    assert EvidenceKind.OPERATION in {item.kind for item in finding.evidence}


@pytest.mark.parametrize("outcome", [Outcome.RECORDED, Outcome.TAINTED, Outcome.ABSENT, None])
def test_a_step_that_is_settled_leaves_no_finding(outcome: Outcome | None) -> None:
    assert findings_of([operation(replace(ORPHANED, outcome=outcome))], [], END) == ()


def test_an_older_object_that_the_run_did_not_make_is_no_finding() -> None:
    older = observe(role(), in_state=False, confidence=Confidence.CERTAIN)
    assert findings_of([operation(left(ROLE, Outcome.UNKNOWN, older))], [], END) == ()


def test_an_object_of_several_addresses_is_one_finding_that_chooses_none() -> None:
    addresses = ("aws_vpc.main[0]", "aws_vpc.main[1]")
    steps = [left(address, Outcome.ORPHANED, stray(vpc("vpc-1"), *addresses)) for address in addresses]
    (finding,) = findings_of([operation(*steps)], [], END)
    assert (finding.address, finding.addresses) == (None, addresses)


def test_a_decided_finding_carries_its_decision_and_is_not_counted() -> None:
    decision = Disposition(ID or "", DispositionKind.RETAIN, END, "me@host", "needed", "01B")
    both = operation(ORPHANED, left(OTHER, Outcome.DUPLICATED, stray(vpc("vpc-1"), OTHER)))
    found = findings_of([both], [decision], END)
    assert [finding.disposition for finding in found] == [decision, None]
    assert found[0].actions == ()
    assert summary_of(found) == {"duplicated": 1}


def test_an_object_that_two_operations_saw_is_one_finding_of_the_newer() -> None:
    (finding,) = findings_of([operation(ORPHANED), operation(ORPHANED, id_="01B")], [], END)
    assert finding.operation_id == "01B"


def test_a_finding_never_leaves_the_account_and_region_of_its_object() -> None:
    found = findings_of([operation(ORPHANED, left(OTHER, Outcome.UNKNOWN, stray(vpc("vpc-1"), OTHER)))], [], END)
    assert [(one.object.account, one.object.region) for one in found if one.object] == [
        (ACCOUNT, "global"),
        (ACCOUNT, "eu-west-1"),
    ]


# --- coverage ---


def gaps(*operations: Operation) -> Mapping[str, str]:
    """The gaps by scope."""
    return {gap.scope: gap.reason for gap in coverage_of(operations).gaps}


def test_a_look_without_a_gap_is_complete_and_counts_its_types() -> None:
    coverage = coverage_of([operation(left(ROLE, Outcome.RECORDED))])
    assert (coverage.complete, coverage.types_listed) == (True, 2)


@pytest.mark.parametrize(
    ("text", "scope", "reason"),
    [
        ("aws 1 eu-west-1 aws_vpc: AccessDenied", "aws 1 eu-west-1 aws_vpc", "AccessDenied"),
        ("aws 1 eu-west-1 aws_vpc: ListVpcs: AccessDenied", "aws 1 eu-west-1 aws_vpc", "ListVpcs: AccessDenied"),
        ("nothing was looked up", "nothing was looked up", "not looked at"),
    ],
)
def test_a_refused_list_is_a_gap_with_its_whole_reason(text: str, scope: str, reason: str) -> None:
    assert gaps(operation(left(ROLE, Outcome.RECORDED), gaps=(text,))) == {scope: reason}


def test_an_operation_that_was_not_looked_up_is_a_gap() -> None:
    assert "recover" in gaps(operation(finished=False))["operation 01A"]


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.ORPHANED, Outcome.DUPLICATED])
def test_an_open_step_that_no_finding_stands_for_is_a_gap(outcome: Outcome) -> None:
    assert gaps(operation(left(ROLE, outcome))) == {ROLE: "name = app"}
    assert gaps(operation(left(ROLE, outcome, IN_STATE))) == {ROLE: "name = app"}
    assert gaps(operation(left(ROLE, outcome, ORPHAN))) == {}
    assert gaps(operation(left(ROLE, outcome, disposition="confirmed-absent"))) == {}


def test_the_gaps_of_two_operations_on_one_address_are_both_told() -> None:
    first = operation(left(ROLE, Outcome.UNKNOWN))
    second = operation(replace(left(ROLE, Outcome.UNKNOWN), evidence=()), id_="01B")
    assert [gap.reason for gap in coverage_of([first, second]).gaps] == ["name = app", "not looked up"]


def test_an_operation_that_runs_now_is_not_to_be_recovered() -> None:
    one = operation(left(ROLE, Outcome.RECORDED), finished=False)
    assert "recover" in coverage_of([one]).gaps[0].reason
    assert "recover" in coverage_of([one], "another").gaps[0].reason
    assert coverage_of([one], one.id).gaps[0].reason == "it is running: look again when it has ended"


def test_every_operation_that_is_open_shows_in_findings_gaps_or_errored_state() -> None:
    for outcome in Outcome:
        for observed in ((), (ORPHAN,), (IN_STATE,)):
            one = operation(left(ROLE, outcome, *observed))
            told = bool(findings_of([one], [], END) or coverage_of([one]).gaps)
            assert told or not one.open


def test_a_step_that_nobody_can_look_up_is_handed_to_a_person_with_a_quoted_address() -> None:
    lost = replace(
        left('aws_unlisted.f["a b"]', Outcome.UNKNOWN),
        evidence=(Evidence(EvidenceKind.NOT_LOOKED_FOR, "the catalogue cannot list aws_unlisted"),),
    )
    assert next_actions(operation(lost)) == (
        "tfguard import 'aws_unlisted.f[\"a b\"]' ID",
        "tfguard recover --confirm-absent 'aws_unlisted.f[\"a b\"]' --reason TEXT",
    )
