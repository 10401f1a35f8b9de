"""Which operation explains an object that no state knows; and what no operation explains, whatever it looks like."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from recorded import LATER, WHERE, operation, planned, stray
from scene import ACCOUNT, CATALOG, END, INSIDE, LONG_AGO, OTHER_ACCOUNT, START, baseline, queue, role, vpc

from tfguard.model.audit import Creation
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Operation, Outcome, StepStatus
from tfguard.model.plan import Action
from tfguard.reconcile import strays
from tfguard.reconcile.explaining import Explainer, Explanation, Stack
from tfguard.reconcile.state_index import Claim
from tfguard.reconcile.verdicts import Ruling

NOW = LATER
OTHER = ("s3://state/other.tfstate", "default")


def explainer(*operations: Operation, live: str | None = None, more: tuple[Stack, ...] = ()) -> Explainer:
    """An explainer that knows the operations of one stack, and those of more."""
    made = Explainer(CATALOG)
    for stack in (Stack(*WHERE, operations, live), *more):
        made.take(stack, NOW)
    return made


def told(found: CloudObject, *operations: Operation, live: str | None = None) -> tuple[Explanation, ...]:
    """What the operations tell of an object."""
    return explainer(*operations, live=live).explain(found)


def create(outcome: Outcome | None = Outcome.UNKNOWN, **fields: Any) -> Any:
    """A step that wanted the role `app`."""
    return planned("aws_iam_role.app", outcome=outcome, **{"desired": {"name": "app"}, **fields})


def delete(outcome: Outcome | None, status: StepStatus = StepStatus.OK) -> Any:
    """A step that was to delete the role `app`."""
    return planned("aws_iam_role.app", Action.DELETE, status, outcome=outcome, before=dict(role("app").identity))


EMPTY_ROLES = [baseline("aws_iam_role")]


def test_the_object_that_an_operation_saw_as_an_orphan_is_explained_by_it() -> None:
    done = operation(create(Outcome.ORPHANED, observed=(stray(role("app")),)))
    [one] = told(role("app"), done)
    assert (one.operation_id, one.confidence, one.verdict) == (done.id, Confidence.CERTAIN, Verdict.ORPHANED)
    assert one.places == (Claim(*WHERE, "aws_iam_role.app"),)
    assert done.id in str(one.evidence)
    assert told(role("other"), done) == ()


def test_an_orphan_that_was_seen_before_the_account_was_known_is_the_same_one() -> None:
    done = operation(create(Outcome.ORPHANED, observed=(stray(replace(role("app"), account=None)),)))
    assert [one.named for one in told(role("app"), done)] == [True]


def test_an_orphan_that_was_made_again_since_is_only_possibly_the_same() -> None:
    done = operation(create(Outcome.ORPHANED, observed=(stray(role("app")),)))
    [one] = told(role("app", created=LATER), done)
    assert one.confidence is Confidence.POSSIBLE


@pytest.mark.parametrize(
    ("outcome", "created", "before", "confidence"),
    [
        (None, INSIDE, EMPTY_ROLES, Confidence.CERTAIN),
        (Outcome.UNKNOWN, INSIDE, EMPTY_ROLES, Confidence.CERTAIN),
        (Outcome.UNKNOWN, INSIDE, [], Confidence.CERTAIN),
        (Outcome.UNKNOWN, None, [], Confidence.POSSIBLE),
        (Outcome.UNKNOWN, None, EMPTY_ROLES, Confidence.POSSIBLE),  # another stack can have made it since
        (None, None, EMPTY_ROLES, Confidence.POSSIBLE),
        (Outcome.UNKNOWN, LATER, EMPTY_ROLES, Confidence.POSSIBLE),
        (Outcome.ABSENT, INSIDE, EMPTY_ROLES, Confidence.CERTAIN),
        (Outcome.ABSENT, None, EMPTY_ROLES, None),
        (Outcome.ABSENT, LATER, EMPTY_ROLES, None),
        (Outcome.UNKNOWN, LONG_AGO, EMPTY_ROLES, None),
        (Outcome.UNKNOWN, INSIDE, [baseline("aws_iam_role", role("app"))], None),
        (Outcome.RECORDED, INSIDE, EMPTY_ROLES, None),
        (Outcome.TAINTED, INSIDE, EMPTY_ROLES, None),
    ],
)
def test_a_name_that_was_wanted_explains_an_object_of_its_time(
    outcome: Outcome | None, created: Any, before: Any, confidence: Confidence | None
) -> None:
    found = told(role("app", created=created), operation(create(outcome), baseline=before))
    assert [one.confidence for one in found] == ([confidence] if confidence else [])


def test_a_run_whose_end_nobody_saw_explains_what_was_made_after_the_last_that_is_known_of_it() -> None:
    [one] = told(role("app", created=START + timedelta(hours=1)), operation(create(), ended=False))
    assert one.confidence is Confidence.LIKELY


@pytest.mark.parametrize("kind", [EvidenceKind.ENGINE_REFUSAL, EvidenceKind.NEVER_STARTED, EvidenceKind.EXISTED_BEFORE])
def test_a_create_that_was_refused_explains_nothing(kind: EvidenceKind) -> None:
    refused = create(Outcome.ABSENT, evidence=(Evidence(kind, "it said no"),))
    assert told(role("app"), operation(refused)) == ()


def test_a_step_that_never_started_explains_nothing() -> None:
    waiting = create(Outcome.UNKNOWN, status=StepStatus.PENDING)
    assert told(role("app"), operation(waiting)) == ()
    assert told(role("app"), operation(waiting, whole=False))


def test_another_account_or_region_is_another_object() -> None:
    jobs = planned("aws_sqs_queue.q", outcome=Outcome.UNKNOWN, desired={"name": "jobs"})
    done = operation(jobs, baseline=[baseline("aws_sqs_queue")])
    assert told(queue("jobs"), done)
    assert told(queue("jobs", "us-east-1"), done) == ()
    assert told(queue("jobs", account=OTHER_ACCOUNT), done) == ()


def network(outcome: Outcome, **fields: Any) -> Any:
    """A step that wanted a VPC, which has no name of its own."""
    return planned("aws_vpc.v", outcome=outcome, desired={"cidr_block": "10.0.0.0/16"}, **fields)


@pytest.mark.parametrize(
    ("outcome", "created", "complete", "confidence"),
    [
        (Outcome.UNKNOWN, INSIDE, True, Confidence.LIKELY),
        (Outcome.UNKNOWN, None, True, Confidence.POSSIBLE),
        (Outcome.UNKNOWN, None, False, None),  # it looks so, and that is all
        (Outcome.UNKNOWN, LATER, True, None),
        (Outcome.ORPHANED, None, True, None),  # the look after the run saw another one
        (Outcome.ABSENT, INSIDE, True, None),
        (Outcome.ABSENT, None, True, None),
    ],
)
def test_looks_alone_explain_nothing(
    outcome: Outcome, created: Any, complete: bool, confidence: Confidence | None
) -> None:
    done = operation(network(outcome), baseline=[baseline("aws_vpc", complete=complete)])
    assert [one.confidence for one in told(vpc("vpc-1", created=created), done)] == ([confidence] if confidence else [])


def test_what_has_nothing_to_compare_is_explained_by_its_time_alone() -> None:
    done = operation(planned("aws_vpc.v", outcome=Outcome.UNKNOWN), baseline=[baseline("aws_vpc")])
    assert [one.confidence for one in told(vpc("vpc-1", created=INSIDE), done)] == [Confidence.POSSIBLE]
    assert told(vpc("vpc-1"), done) == ()


@pytest.mark.parametrize(
    ("outcome", "created", "confidence"),
    [
        (Outcome.ORPHANED, LONG_AGO, Confidence.CERTAIN),
        (Outcome.UNKNOWN, LONG_AGO, Confidence.CERTAIN),
        (Outcome.UNKNOWN, None, Confidence.LIKELY),
        (Outcome.ABSENT, LONG_AGO, Confidence.CERTAIN),  # whatever was seen then: it is there, and it is the old one
        (Outcome.ABSENT, None, None),
        (Outcome.ABSENT, LATER, None),
        (Outcome.UNKNOWN, LATER, None),
        (Outcome.RECORDED, LONG_AGO, None),
    ],
)
def test_what_was_to_be_deleted_and_still_exists_is_explained_by_that(
    outcome: Outcome, created: Any, confidence: Confidence | None
) -> None:
    found = told(role("app", created=created), operation(delete(outcome)))
    assert [one.confidence for one in found] == ([confidence] if confidence else [])


def test_what_was_taken_out_of_the_state_is_explained_by_that() -> None:
    forget = planned("aws_iam_role.app", Action.FORGET, StepStatus.RETAINED, outcome=Outcome.ORPHANED,
                     before=dict(role("app").identity))  # fmt: skip
    [one] = told(role("app", created=None), operation(forget))
    assert one.confidence is Confidence.CERTAIN
    assert EvidenceKind.REMOVED_FROM_STATE in {item.kind for item in one.evidence}


def test_a_later_operation_that_had_the_object_in_its_state_takes_the_earlier_ones_word() -> None:
    lost = operation(create(Outcome.ORPHANED, observed=(stray(role("app")),)))
    adopted = operation(create(Outcome.RECORDED, status=StepStatus.OK), started=START + timedelta(hours=1))
    assert told(role("app"), lost)
    assert told(role("app"), lost, adopted) == ()
    again = operation(create(), started=START + timedelta(hours=2))
    assert [
        one.operation_id for one in told(role("app", created=START + timedelta(hours=2)), lost, adopted, again)
    ] == [again.id]


def test_an_operation_that_runs_now_says_so() -> None:
    running = operation(create(None), ended=False, started=NOW - timedelta(minutes=1))
    [one] = told(role("app", created=NOW), running, live=running.id)
    assert one.live


def test_what_an_operation_that_runs_now_may_be_making_is_young_and_in_its_account() -> None:
    running = operation(create(None), ended=False, started=NOW - timedelta(minutes=1), baseline=EMPTY_ROLES)
    asked = explainer(running, live=running.id)
    grace = timedelta(minutes=2)
    young = queue("new", created=NOW)
    assert asked.may_be_making(young, NOW, grace) == running.id
    assert asked.may_be_making(replace(young, account=OTHER_ACCOUNT), NOW, grace) is None
    assert asked.may_be_making(queue("old", created=LONG_AGO), NOW, grace) is None
    assert asked.may_be_making(queue("ageless", created=None), NOW, grace) is None
    assert explainer(running).may_be_making(young, NOW, grace) is None


def test_a_stack_that_is_read_again_replaces_what_was_known_of_it() -> None:
    made = explainer(operation(create()))
    assert made.explain(role("app"))
    made.take(Stack(*WHERE, ()), NOW)
    assert made.explain(role("app")) == ()


def test_what_a_service_makes_is_mentioned_only_by_name() -> None:
    assert explainer(operation(create())).mentions(role("app"))
    assert not explainer(operation(network(Outcome.UNKNOWN), baseline=[baseline("aws_vpc")])).mentions(vpc("vpc-1"))


# From explanations to findings


def findings(*objects: CloudObject, by: Explainer, held: frozenset[Claim] = frozenset()) -> tuple[Finding, ...]:
    """The findings for objects that are explained."""
    return strays.explained([(found, by.explain(found)) for found in objects], lambda wanted: held & set(wanted))


def test_one_object_for_one_address_is_an_orphan_with_that_address() -> None:
    done = operation(create())
    [one] = findings(role("app"), by=explainer(done))
    assert (one.verdict, one.address, one.operation_id) == (Verdict.ORPHANED, "aws_iam_role.app", done.id)
    assert one.actions == ("import", "retain", "destroy")
    assert one.id == role("app").finding_id


def test_several_objects_for_one_address_are_duplicates_and_none_is_picked() -> None:
    done = operation(network(Outcome.UNKNOWN), baseline=[baseline("aws_vpc")])
    both = findings(vpc("vpc-1", created=INSIDE), vpc("vpc-2", created=INSIDE), by=explainer(done))
    assert [one.verdict for one in both] == [Verdict.DUPLICATED, Verdict.DUPLICATED]
    assert all(one.actions == ("import", "retain", "destroy") for one in both)
    assert "2 objects for" in str(both[0].evidence)


def test_an_object_whose_address_has_another_one_in_the_state_is_a_duplicate() -> None:
    held = frozenset([Claim(*WHERE, "aws_iam_role.app")])
    [one] = findings(role("app"), by=explainer(operation(create())), held=held)
    assert one.verdict is Verdict.DUPLICATED


def test_what_a_replace_left_behind_is_an_orphan_though_its_address_has_the_new_one() -> None:
    left = operation(delete(Outcome.UNKNOWN, StepStatus.ERROR))
    [one] = findings(role("app", LONG_AGO), by=explainer(left), held=frozenset([Claim(*WHERE, "aws_iam_role.app")]))
    assert one.verdict is Verdict.ORPHANED


def test_two_stacks_that_explain_one_object_are_both_told_and_neither_is_picked() -> None:
    one, other = operation(create()), operation(create(), started=START + timedelta(seconds=1))
    asked = explainer(one, more=(Stack(*OTHER, (other,)),))
    [found] = findings(role("app"), by=asked)
    assert (found.address, found.confidence) == (None, Confidence.LIKELY)
    assert one.id in str(found.evidence) and other.id in str(found.evidence)


def test_an_object_that_fits_two_addresses_of_one_operation_has_none() -> None:
    steps = [planned(f"aws_vpc.v{n}", outcome=Outcome.UNKNOWN, desired={"cidr_block": "10.0.0.0/16"}) for n in (1, 2)]
    [found] = findings(vpc("vpc-1", created=INSIDE), by=explainer(operation(*steps)))
    assert (found.address, found.addresses) == (None, ("aws_vpc.v1", "aws_vpc.v2"))


def test_the_surest_operation_names_the_finding_and_older_ones_stay_as_evidence() -> None:
    seen = operation(create(Outcome.ORPHANED, observed=(stray(role("app")),)))
    later = operation(delete(Outcome.UNKNOWN), started=START + timedelta(hours=1))
    [found] = findings(role("app", created=None), by=explainer(seen, later))
    assert found.operation_id == seen.id
    assert later.id in str(found.evidence)


def test_what_nothing_explains_is_unmanaged_and_says_what_could_not_be_read() -> None:
    found = strays.unmanaged(role("app"), 3, ())
    assert (found.verdict, found.confidence) == (Verdict.UNMANAGED, Confidence.CERTAIN)
    assert found.actions == ("import", "retain", "destroy")
    assert "3 states" in found.evidence[0].detail
    doubtful = strays.unmanaged(role("app"), 3, ("s3://state/x.tfguard",))
    assert doubtful.confidence is Confidence.LIKELY and "x.tfguard" in str(doubtful.evidence)


def test_the_audit_log_makes_an_orphan_of_what_a_recorded_operation_made() -> None:
    stranger = strays.unmanaged(role("app"), 1, ())
    made = Creation(INSIDE, "CreateRole", "ci", operation_id="01J0", engine="Terraform 1.11.4")
    by_ours = strays.with_creation(stranger, {stranger.id: made}, {"01J0"})
    assert (by_ours.verdict, by_ours.operation_id) == (Verdict.ORPHANED, "01J0")
    by_others = strays.with_creation(stranger, {stranger.id: made}, {"01J1"})
    assert by_others.verdict is Verdict.UNMANAGED and "whose record was not read" in str(by_others.evidence)
    by_hand = strays.with_creation(stranger, {stranger.id: Creation(INSIDE, "CreateRole", "jo")}, set())
    assert by_hand.verdict is Verdict.UNMANAGED and "CreateRole" in str(by_hand.evidence)


def test_a_call_that_may_have_made_another_of_its_name_is_evidence_alone() -> None:
    stranger = strays.unmanaged(replace(role("app"), created_at=None), 1, ())
    made = Creation(INSIDE, "CreateRole", "ci", operation_id="01J0")
    told = strays.with_creation(stranger, {stranger.id: made}, {"01J0"})
    assert (told.verdict, told.operation_id, told.evidence[:-1]) == (Verdict.UNMANAGED, None, stranger.evidence)
    assert "in operation 01J0" in told.evidence[-1].detail


def test_a_decision_to_keep_is_shown_with_the_finding() -> None:
    kept = Disposition(
        role("app").finding_id, DispositionKind.RETAIN, END, "me", "for later", "01J0", "aws_iam_role.app"
    )
    found = strays.ruled(role("app"), Ruling(Verdict.RETAINED, "retained", kept.reason, kept))
    assert (found.verdict, found.disposition, found.address) == (Verdict.RETAINED, kept, "aws_iam_role.app")


def test_an_object_that_repeats_a_marked_value_is_told_without_it() -> None:
    shown = strays.without_secrets(role("hunter22"), frozenset(["hunter22"]))
    assert "hunter22" not in repr(shown) and shown.account == ACCOUNT
    assert strays.without_secrets(role("app"), frozenset(["hunter22"])) == role("app")


def test_an_object_that_is_attached_to_what_a_parameter_names_is_still_told() -> None:
    attached = replace(role("app"), identity={"name": "app", "vpc_id": "vpc-0123"})
    shown = strays.without_secrets(attached, frozenset(["vpc-0123"]))
    assert (shown.id, shown.name, shown.identity) == (attached.id, "app", {"name": "app"})
