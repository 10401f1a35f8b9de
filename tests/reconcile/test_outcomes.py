"""What became of each step: nothing is absent without proof, and nothing is orphaned that was there before."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from scene import (
    ACCOUNT,
    AFTER,
    CATALOG,
    END,
    IN_GRACE,
    INSIDE,
    LONG_AGO,
    OTHER_ACCOUNT,
    REFUSED,
    START,
    baseline,
    concluded,
    findings,
    held,
    kinds,
    listing,
    look,
    queue,
    role,
    state,
    step,
    through,
    vpc,
)

from tfguard.model.evidence import Confidence, EvidenceKind
from tfguard.model.failure import Failure, FailureKind
from tfguard.model.inventory import CloudObject, Listing, MadeBy
from tfguard.model.operation import Outcome, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.ports import ImportProbe
from tfguard.reconcile.look import Look, listings_for
from tfguard.reconcile.outcomes import conclude

ROLE = step("aws_iam_role.app", desired={"name": "app"})
VPC = step("aws_vpc.main", desired={"cidr_block": "10.0.0.0/16", "tags.Name": "main"})
NO_ROLES_BEFORE = baseline("aws_iam_role")
NO_VPCS_BEFORE = baseline("aws_vpc")


def ids(one: Step) -> set[str]:
    """The ids of the objects that a step was seen with, and that no state has."""
    return {seen.id for seen in one.observed if not seen.in_state}


# --- a create of which nothing is seen ---


@pytest.mark.parametrize(
    ("status", "stream_whole", "now", "gap", "outcome"),
    [
        (StepStatus.RUNNING, True, IN_GRACE, None, Outcome.UNKNOWN),
        (StepStatus.RUNNING, True, AFTER, None, Outcome.ABSENT),
        (StepStatus.RUNNING, True, AFTER - timedelta(seconds=1), None, Outcome.UNKNOWN),
        (StepStatus.RUNNING, True, AFTER, REFUSED, Outcome.UNKNOWN),
        (StepStatus.RUNNING, True, AFTER + timedelta(days=30), REFUSED, Outcome.UNKNOWN),
        (StepStatus.ERROR, True, IN_GRACE, None, Outcome.UNKNOWN),
        (StepStatus.ERROR, True, AFTER, REFUSED, Outcome.UNKNOWN),
        (StepStatus.OK, True, IN_GRACE, None, Outcome.UNKNOWN),
        (StepStatus.OK, True, AFTER, None, Outcome.ABSENT),
        (StepStatus.PENDING, True, IN_GRACE, None, Outcome.ABSENT),
        (StepStatus.PENDING, True, IN_GRACE, REFUSED, Outcome.ABSENT),
        (StepStatus.PENDING, False, IN_GRACE, None, Outcome.UNKNOWN),
        (StepStatus.PENDING, False, AFTER, REFUSED, Outcome.UNKNOWN),
        (StepStatus.PENDING, False, AFTER, None, Outcome.ABSENT),
    ],
)
def test_a_create_is_absent_only_when_it_never_started_or_a_complete_list_lacks_it_after_the_grace(
    status: StepStatus, stream_whole: bool, now: datetime, gap: str | None, outcome: Outcome
) -> None:
    seen = look(listing("aws_iam_role", gap=gap), before=[NO_ROLES_BEFORE], now=now, stream_whole=stream_whole)
    assert concluded(replace(ROLE, status=status), seen).outcome is outcome


def test_a_step_that_started_and_did_not_end_counts_as_attempted() -> None:
    assert concluded(ROLE, look(listing("aws_iam_role"), now=IN_GRACE)).status is StepStatus.ERROR


def test_a_refused_create_that_a_complete_list_lacks_is_absent_at_once() -> None:
    refused = {ROLE.address: Failure(FailureKind.REFUSED, "IAM CreateRole: HTTP 403 AccessDenied", "CreateRole", 403)}
    gone = concluded(ROLE, look(listing("aws_iam_role"), now=IN_GRACE, failures=refused))
    assert (gone.outcome, kinds(gone)) == (Outcome.ABSENT, {EvidenceKind.ENGINE_REFUSAL})
    blind = concluded(ROLE, look(listing("aws_iam_role", gap=REFUSED), now=IN_GRACE, failures=refused))
    assert blind.outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    "failure",
    [
        Failure(FailureKind.REFUSED, "IAM GetRole: HTTP 403 AccessDenied", "GetRole", 403),
        Failure(FailureKind.ALREADY_EXISTS, "IAM CreateRole: HTTP 409 EntityAlreadyExists", "CreateRole", 409),
        Failure(FailureKind.NO_REPLY, "IAM CreateRole: no usable reply", "CreateRole"),
        *(Failure(kind, "-") for kind in FailureKind if kind is not FailureKind.REFUSED),
    ],
    ids=lambda failure: f"{failure.kind}-{failure.operation}",
)
def test_no_other_failure_shortens_the_grace(failure: Failure) -> None:
    seen = look(listing("aws_iam_role"), now=IN_GRACE, failures={ROLE.address: failure})
    assert concluded(ROLE, seen).outcome is Outcome.UNKNOWN


def test_a_type_that_no_listing_answers_for_is_unknown_for_ever() -> None:
    unheard = concluded(step("aws_unlisted.f"), look(now=AFTER + timedelta(days=9)))
    assert (unheard.outcome, kinds(unheard)) == (Outcome.UNKNOWN, {EvidenceKind.NOT_LOOKED_FOR})


def test_a_provider_that_keeps_objects_in_the_state_alone_has_none_elsewhere() -> None:
    random = step("random_pet.name", provider="registry.terraform.io/hashicorp/random", provider_key="random")
    assert concluded(random, look(now=IN_GRACE)).outcome is Outcome.ABSENT


# --- a list from another place ---


@pytest.mark.parametrize(
    ("account", "region"), [(OTHER_ACCOUNT, "eu-west-1"), (ACCOUNT, "us-east-1"), (OTHER_ACCOUNT, "us-east-1")]
)
def test_a_list_from_another_account_or_region_than_the_run_worked_in_proves_nothing(account: str, region: str) -> None:
    lost = step("aws_sqs_queue.jobs", desired={"name": "jobs"})
    elsewhere = listing("aws_sqs_queue", queue("jobs", region, account=account), account=account, region=region)
    found = concluded(lost, look(elsewhere, before=[baseline("aws_sqs_queue")]))
    assert (found.outcome, found.observed, kinds(found)) == (Outcome.UNKNOWN, (), {EvidenceKind.GAP})
    assert ACCOUNT in found.evidence[0].detail


def test_a_deleted_object_is_not_looked_for_in_another_account() -> None:
    old = role("app", LONG_AGO)
    lost = step("aws_iam_role.app", Action.DELETE, before=old.identity)
    found = concluded(lost, look(listing("aws_iam_role", account=OTHER_ACCOUNT)))
    assert (found.outcome, kinds(found)) == (Outcome.UNKNOWN, {EvidenceKind.GAP})


def test_an_account_that_could_not_be_asked_for_is_no_other_account() -> None:
    before = baseline("aws_iam_role", account=None)
    assert concluded(ROLE, look(listing("aws_iam_role"), before=[before])).outcome is Outcome.ABSENT


def test_an_object_from_before_is_known_again_when_its_account_was_not_known_then() -> None:
    topic = CloudObject("aws", ACCOUNT, "eu-west-1", "aws_sns_topic", "arn:t", "arn:t", {"name": "t", "arn": "arn:t"})
    before = baseline("aws_sns_topic", replace(topic, account=None), account=None, complete=False)
    found = concluded(
        step("aws_sns_topic.t", desired={"name": "t"}), look(listing("aws_sns_topic", topic), before=[before])
    )
    assert found.outcome is not Outcome.ORPHANED
    assert not findings(found)


# --- a create of which something is seen ---


def test_a_new_object_of_the_wanted_name_is_an_orphan_with_its_evidence() -> None:
    found = concluded(ROLE, look(listing("aws_iam_role", role()), before=[NO_ROLES_BEFORE], now=IN_GRACE))
    assert (found.outcome, findings(found)) == (Outcome.ORPHANED, {"app"})
    assert found.observed[0].confidence is Confidence.CERTAIN
    assert kinds(found) == {
        EvidenceKind.DESIRED_IDENTITY,
        EvidenceKind.BASELINE_DIFFERENCE,
        EvidenceKind.CREATED_IN_WINDOW,
    }


def test_an_orphan_seen_in_an_incomplete_list_is_an_orphan_all_the_same() -> None:
    assert concluded(ROLE, look(listing("aws_iam_role", role(), gap=REFUSED))).outcome is Outcome.ORPHANED


@pytest.mark.parametrize("status", [StepStatus.RUNNING, StepStatus.ERROR, StepStatus.OK])
@pytest.mark.parametrize("by", ["baseline", "creation time"])
def test_an_object_that_existed_before_is_nobodys_orphan(status: StepStatus, by: str) -> None:
    old = role(created=None if by == "baseline" else LONG_AGO)
    before = [baseline("aws_iam_role", old)] if by == "baseline" else []
    found = concluded(replace(ROLE, status=status), look(listing("aws_iam_role", old), before=before))
    assert (found.outcome, kinds(found)) == (Outcome.ABSENT, {EvidenceKind.EXISTED_BEFORE})
    assert (ids(found), findings(found)) == ({"app"}, set())


def test_already_exists_with_an_older_namesake_means_that_the_run_made_nothing() -> None:
    met = {ROLE.address: Failure(FailureKind.ALREADY_EXISTS, "IAM CreateRole: HTTP 409", "CreateRole", 409)}
    old = role(created=LONG_AGO)
    found = concluded(
        ROLE, look(listing("aws_iam_role", old), before=[baseline("aws_iam_role", old)], failures=met, now=IN_GRACE)
    )
    assert (found.outcome, kinds(found)) == (Outcome.ABSENT, {EvidenceKind.EXISTED_BEFORE})


def test_already_exists_on_a_name_that_was_free_before_means_that_the_run_made_it() -> None:
    met = {ROLE.address: Failure(FailureKind.ALREADY_EXISTS, "IAM CreateRole: HTTP 409", "CreateRole", 409)}
    found = concluded(ROLE, look(listing("aws_iam_role", role()), before=[NO_ROLES_BEFORE], failures=met))
    assert found.outcome is Outcome.ORPHANED


def test_already_exists_on_a_name_of_unknown_age_is_not_called_an_orphan() -> None:
    met = {ROLE.address: Failure(FailureKind.ALREADY_EXISTS, "IAM CreateRole: HTTP 409", "CreateRole", 409)}
    found = concluded(ROLE, look(listing("aws_iam_role", role(created=None)), failures=met))
    assert (found.outcome, findings(found)) == (Outcome.UNKNOWN, {"app"})


def test_a_wrong_clock_of_this_host_does_not_hide_what_the_list_before_did_not_have() -> None:
    early = role(created=START - timedelta(minutes=20))
    found = concluded(ROLE, look(listing("aws_iam_role", early), before=[NO_ROLES_BEFORE]))
    assert (found.outcome, findings(found)) == (Outcome.ORPHANED, {"app"})


def test_an_object_made_long_after_the_run_is_not_certainly_the_runs() -> None:
    tomorrow = END + timedelta(days=1)
    named = concluded(
        ROLE, look(listing("aws_iam_role", role(created=tomorrow)), before=[NO_ROLES_BEFORE], now=tomorrow)
    )
    assert named.observed[0].confidence is Confidence.LIKELY
    alike = concluded(
        VPC, look(listing("aws_vpc", vpc("vpc-1", created=tomorrow)), before=[NO_VPCS_BEFORE], now=tomorrow)
    )
    assert (alike.outcome, alike.observed[0].confidence) == (Outcome.UNKNOWN, Confidence.POSSIBLE)


def test_candidates_that_nothing_ties_to_the_address_leave_it_unknown_and_are_named() -> None:
    keyless = step("aws_kms_key.k", desired={})
    new = CloudObject("aws", ACCOUNT, "eu-west-1", "aws_kms_key", "k-1", "k-1", {"key_id": "k-1"}, created_at=INSIDE)
    found = concluded(keyless, look(listing("aws_kms_key", new), before=[baseline("aws_kms_key")]))
    assert (found.outcome, findings(found)) == (Outcome.UNKNOWN, {"k-1"})
    assert found.observed[0].confidence is Confidence.POSSIBLE


def test_several_candidates_for_one_address_stay_several() -> None:
    found = concluded(VPC, look(listing("aws_vpc", vpc("vpc-1"), vpc("vpc-2")), before=[NO_VPCS_BEFORE]))
    assert (found.outcome, findings(found)) == (Outcome.DUPLICATED, {"vpc-1", "vpc-2"})


def test_an_object_that_conflicts_with_the_plan_is_no_candidate() -> None:
    other = vpc("vpc-1", cidr="10.9.0.0/16")
    assert concluded(VPC, look(listing("aws_vpc", other), before=[NO_VPCS_BEFORE])).outcome is Outcome.ABSENT


def test_what_a_service_makes_by_itself_is_a_candidate_by_its_own_name_alone() -> None:
    group = step("aws_cloudwatch_log_group.g", desired={"name": "/aws/lambda/f"})
    identity = {"name": "/aws/lambda/f"}
    made = CloudObject(
        "aws", ACCOUNT, "eu-west-1", "aws_cloudwatch_log_group", "g", "g", identity, ignored_because="made by Lambda"
    )
    before = [baseline("aws_cloudwatch_log_group")]
    for known in (before, []):
        assert concluded(group, look(listing(made.type, made), before=known)).outcome is Outcome.ORPHANED
    by_stack = MadeBy("aws_cloudformation_stack", "id", "s", "made by CloudFormation")
    for default in (
        replace(vpc("vpc-1"), ignored_because="default VPC"),
        replace(vpc("vpc-1"), made_by=(by_stack,)),
    ):
        assert concluded(VPC, look(listing("aws_vpc", default), before=[NO_VPCS_BEFORE])).outcome is Outcome.ABSENT
    maybe = replace(vpc("vpc-1"), made_by=(replace(by_stack, certain=False),))
    assert concluded(VPC, look(listing("aws_vpc", maybe), before=[NO_VPCS_BEFORE])).outcome is Outcome.ORPHANED


def test_a_step_that_never_started_is_not_blamed_for_somebody_elses_object() -> None:
    pending = replace(ROLE, status=StepStatus.PENDING)
    found = concluded(pending, look(listing("aws_iam_role", role()), before=[NO_ROLES_BEFORE]))
    assert (found.outcome, findings(found)) == (Outcome.ABSENT, set())
    unsure = concluded(pending, look(listing("aws_iam_role", role()), before=[NO_ROLES_BEFORE], stream_whole=False))
    assert unsure.outcome is Outcome.ORPHANED


def test_the_id_that_the_engine_reported_settles_which_object_is_whose() -> None:
    pair = [replace(VPC, address=f"aws_vpc.main[{i}]", status=StepStatus.OK, reported_id=f"vpc-{i}") for i in (0, 1)]
    seen = look(listing("aws_vpc", vpc("vpc-1"), vpc("vpc-0")), before=[NO_VPCS_BEFORE])
    first, second = conclude(pair, seen, CATALOG)
    assert (first.outcome, findings(first)) == (Outcome.ORPHANED, {"vpc-0"})
    assert (second.outcome, findings(second)) == (Outcome.ORPHANED, {"vpc-1"})
    assert first.observed[0].confidence is Confidence.CERTAIN
    assert first.observed[0].addresses == ("aws_vpc.main[0]",)


def test_a_reported_id_beside_an_unreported_twin_is_a_duplicate() -> None:
    made = replace(VPC, status=StepStatus.OK, reported_id="vpc-1")
    found = concluded(made, look(listing("aws_vpc", vpc("vpc-1"), vpc("vpc-2")), before=[NO_VPCS_BEFORE]))
    assert (found.outcome, findings(found)) == (Outcome.DUPLICATED, {"vpc-1", "vpc-2"})


# --- groups with equal wishes ---


def test_one_lost_of_a_group_of_three_is_bound_to_the_address_that_the_state_lacks() -> None:
    group = [replace(VPC, address=f"aws_vpc.main[{i}]") for i in range(3)]
    objects = [vpc(f"vpc-{i}") for i in range(3)]
    holds = [held(f"aws_vpc.main[{i}]", objects[i]) for i in (0, 2)]
    found = conclude(group, look(listing("aws_vpc", *objects), before=[NO_VPCS_BEFORE], holds=holds), CATALOG)
    assert [one.outcome for one in found] == [Outcome.RECORDED, Outcome.ORPHANED, Outcome.RECORDED]
    assert found[1].observed[0].addresses == ("aws_vpc.main[1]",)


@pytest.mark.parametrize(("lost", "left", "outcome"), [(2, 2, "orphaned"), (2, 1, "orphaned"), (2, 3, "duplicated")])
def test_lost_ones_of_a_group_fit_every_address_without_an_object(lost: int, left: int, outcome: str) -> None:
    group = [replace(VPC, address=f"aws_vpc.main[{i}]") for i in range(lost)]
    objects = [vpc(f"vpc-{i}") for i in range(left)]
    found = conclude(group, look(listing("aws_vpc", *objects), before=[NO_VPCS_BEFORE]), CATALOG)
    addresses = tuple(one.address for one in group)
    for one in found:
        assert (one.outcome, findings(one)) == (Outcome(outcome), {each.id for each in objects})
        assert all(seen.addresses == addresses for seen in one.observed)
        assert EvidenceKind.SEVERAL_CANDIDATES in kinds(one)


def test_names_tell_the_siblings_of_a_for_each_group_apart() -> None:
    group = [step(f'aws_iam_role.r["{key}"]', desired={"name": key}) for key in "ab"]
    first, second = conclude(group, look(listing("aws_iam_role", role("b")), before=[NO_ROLES_BEFORE]), CATALOG)
    assert (first.outcome, second.outcome) == (Outcome.ABSENT, Outcome.ORPHANED)
    assert second.observed[0].addresses == ('aws_iam_role.r["b"]',)


def test_a_lost_one_explains_a_stray_object_better_than_a_duplicate_of_a_sibling_does() -> None:
    pair = [replace(VPC, address=f"aws_vpc.main[{i}]") for i in range(2)]
    mine, stray = vpc("vpc-0"), vpc("vpc-1")
    seen = look(listing("aws_vpc", mine, stray), before=[NO_VPCS_BEFORE], holds=[held("aws_vpc.main[0]", mine)])
    first, second = conclude(pair, seen, CATALOG)
    assert (first.outcome, second.outcome) == (Outcome.RECORDED, Outcome.ORPHANED)


# --- what the state has ---


@pytest.mark.parametrize(("tainted", "outcome"), [(False, Outcome.RECORDED), (True, Outcome.TAINTED)])
def test_a_create_in_state_is_recorded_or_tainted_and_no_finding(tainted: bool, outcome: Outcome) -> None:
    made = role()
    seen = look(
        listing("aws_iam_role", made), before=[NO_ROLES_BEFORE], holds=[held(ROLE.address, made, tainted=tainted)]
    )
    found = concluded(replace(ROLE, status=StepStatus.ERROR), seen)
    assert (found.outcome, findings(found), found.open) == (outcome, set(), False)
    assert [one.in_state for one in found.observed] == [True]


def test_a_second_object_behind_a_success_is_a_duplicate() -> None:
    mine, twin = vpc("vpc-1", name="main"), vpc("vpc-2", name="main")
    seen = look(listing("aws_vpc", mine, twin), before=[NO_VPCS_BEFORE], holds=[held(VPC.address, mine)])
    found = concluded(replace(VPC, status=StepStatus.OK), seen)
    assert (found.outcome, findings(found), found.open) == (Outcome.DUPLICATED, {"vpc-2"}, True)
    assert "vpc-2" in found.evidence[-1].detail


def test_a_look_alike_that_nothing_ties_to_the_run_is_no_duplicate() -> None:
    mine, alike = vpc("vpc-1", name="main"), vpc("vpc-2", name="main")
    seen = look(listing("aws_vpc", mine, alike), holds=[held(VPC.address, mine)])  # no baseline, no creation time
    assert concluded(replace(VPC, status=StepStatus.OK), seen).outcome is Outcome.RECORDED


def test_an_object_under_another_address_of_the_state_is_no_finding() -> None:
    moved = role()
    seen = look(
        listing("aws_iam_role", moved), before=[NO_ROLES_BEFORE], holds=[held("module.m.aws_iam_role.it", moved)]
    )
    assert not findings(concluded(ROLE, seen))


def test_an_address_that_only_the_errored_state_has_is_an_orphan_until_the_push() -> None:
    made = role()
    lost = state(held(ROLE.address, made))
    found = concluded(ROLE, look(listing("aws_iam_role", made), before=[NO_ROLES_BEFORE], errored=lost))
    assert (found.outcome, found.open, kinds(found)) == (Outcome.ORPHANED, True, {EvidenceKind.ERRORED_STATE})


def test_what_the_errored_state_has_is_nobody_elses_orphan() -> None:
    pair = [replace(VPC, address=f"aws_vpc.main[{i}]") for i in range(2)]
    made = vpc("vpc-0", name="main")
    lost = state(held("aws_vpc.main[0]", made))
    seen = look(listing("aws_vpc", made), before=[NO_VPCS_BEFORE], errored=lost)
    first, second = conclude(pair, seen, CATALOG)
    assert (first.outcome, second.outcome) == (Outcome.ORPHANED, Outcome.ABSENT)
    assert not findings(first) | findings(second)


# --- two provider configurations ---

HERE = step("aws_sqs_queue.here", desired={"name": "jobs"})
THERE = replace(HERE, address="aws_sqs_queue.there", provider_key="aws.us")


def two_regions(*, account: str | None, here: bool, there: bool) -> Look:
    """A queue of one name in two regions; the state has the one here."""
    far = queue("jobs", "us-east-1", account=account)
    lists = [
        listing("aws_sqs_queue", *([queue("jobs", account=account)] if here else []), account=account),
        through("aws.us", listing("aws_sqs_queue", *([far] if there else []), account=account), "us-east-1"),
    ]
    before = [
        baseline("aws_sqs_queue", account=account),
        baseline("aws_sqs_queue", account=account, provider_key="aws.us", region="us-east-1"),
    ]
    return look(*lists, before=before, holds=[held(HERE.address, queue("jobs"))])


@pytest.mark.parametrize("account", [ACCOUNT, None], ids=["account known", "account unknown"])
def test_equal_names_in_two_regions_are_two_objects(account: str | None) -> None:
    here, there = conclude([HERE, THERE], two_regions(account=account, here=True, there=True), CATALOG)
    assert (here.outcome, there.outcome) == (Outcome.RECORDED, Outcome.ORPHANED)
    assert there.observed[0].region == "us-east-1"
    assert there.observed[0].addresses == (THERE.address,)


def test_a_queue_in_one_region_is_no_proof_of_its_namesake_in_another() -> None:
    here, there = conclude([HERE, THERE], two_regions(account=ACCOUNT, here=True, there=False), CATALOG)
    assert (here.outcome, there.outcome) == (Outcome.RECORDED, Outcome.ABSENT)


def test_a_refused_list_of_one_provider_says_nothing_about_the_other() -> None:
    seen = look(listing("aws_sqs_queue"), through("aws.us", listing("aws_sqs_queue", gap=REFUSED), "us-east-1"))
    here, there = conclude([HERE, THERE], seen, CATALOG)
    assert (here.outcome, there.outcome) == (Outcome.ABSENT, Outcome.UNKNOWN)


# --- replacements ---

OLD_VPC, NEW_VPC = vpc("vpc-old", "10.1.0.0/16"), vpc("vpc-new")
REPLACE_VPC = step("aws_vpc.main", Action.REPLACE, desired={"cidr_block": "10.0.0.0/16"}, before=OLD_VPC.identity)
VPCS_BEFORE = baseline("aws_vpc", OLD_VPC)


@pytest.mark.parametrize(
    ("now", "outcome", "found"),
    [(IN_GRACE, Outcome.UNKNOWN, set()), (AFTER, Outcome.DUPLICATED, {"vpc-old"})],
    ids=["the list may lag", "the grace is over"],
)
def test_a_replaced_object_that_stays_listed_becomes_a_duplicate_after_the_grace(
    now: datetime, outcome: Outcome, found: set[str]
) -> None:
    seen = look(
        listing("aws_vpc", OLD_VPC, NEW_VPC), before=[VPCS_BEFORE], holds=[held("aws_vpc.main", NEW_VPC)], now=now
    )
    done = concluded(replace(REPLACE_VPC, status=StepStatus.OK), seen)
    assert (done.outcome, findings(done)) == (outcome, found)


def test_a_replaced_object_that_the_state_keeps_as_deposed_is_no_finding() -> None:
    holds = [held("aws_vpc.main", NEW_VPC), held("aws_vpc.main", OLD_VPC, deposed="0a1b2c3d")]
    seen = look(listing("aws_vpc", OLD_VPC, NEW_VPC), before=[VPCS_BEFORE], holds=holds)
    done = concluded(replace(REPLACE_VPC, status=StepStatus.ERROR), seen)
    assert (done.outcome, findings(done)) == (Outcome.RECORDED, set())


def test_a_replacement_that_lost_its_new_object_finds_it() -> None:
    found = concluded(REPLACE_VPC, look(listing("aws_vpc", NEW_VPC), before=[VPCS_BEFORE]))
    assert (found.outcome, findings(found)) == (Outcome.ORPHANED, {"vpc-new"})


def test_a_replacement_that_lost_both_objects_names_both() -> None:
    found = concluded(REPLACE_VPC, look(listing("aws_vpc", NEW_VPC, OLD_VPC), before=[VPCS_BEFORE]))
    assert (found.outcome, findings(found)) == (Outcome.DUPLICATED, {"vpc-new", "vpc-old"})


REPLACE_ROLE = step("aws_iam_role.app", Action.REPLACE, desired={"name": "app"}, before=role().identity)


@pytest.mark.parametrize(
    ("created", "now", "outcome"),
    [
        (INSIDE, IN_GRACE, Outcome.ORPHANED),
        (INSIDE, AFTER, Outcome.ORPHANED),
        (LONG_AGO, IN_GRACE, Outcome.UNKNOWN),
        (LONG_AGO, AFTER, Outcome.ORPHANED),
        (None, IN_GRACE, Outcome.UNKNOWN),
        (None, AFTER, Outcome.ORPHANED),
    ],
)
def test_a_replacement_under_the_same_name_is_never_taken_for_an_older_namesake(
    created: datetime | None, now: datetime, outcome: Outcome
) -> None:
    listed = role(created=created)
    seen = look(listing("aws_iam_role", listed), before=[baseline("aws_iam_role", role(created=LONG_AGO))], now=now)
    found = concluded(REPLACE_ROLE, seen)
    assert found.outcome is outcome
    assert findings(found) == ({"app"} if outcome is Outcome.ORPHANED else set())


@pytest.mark.parametrize(
    ("now", "gap", "outcome"),
    [
        (IN_GRACE, None, Outcome.UNKNOWN),
        (AFTER, None, Outcome.RECORDED),
        (AFTER, REFUSED, Outcome.UNKNOWN),
    ],
)
def test_the_old_object_in_state_does_not_close_a_create_before_destroy_that_was_lost(
    now: datetime, gap: str | None, outcome: Outcome
) -> None:
    seen = look(
        listing("aws_vpc", OLD_VPC, gap=gap),
        before=[VPCS_BEFORE],
        holds=[held("aws_vpc.main", OLD_VPC)],
        now=now,
        open_creates=frozenset(["aws_vpc.main"]),
    )
    assert concluded(replace(REPLACE_VPC, status=StepStatus.ERROR), seen).outcome is outcome


def test_a_replacement_whose_delete_was_refused_is_recorded_at_once() -> None:
    seen = look(
        listing("aws_vpc", OLD_VPC, gap=REFUSED),
        before=[VPCS_BEFORE],
        holds=[held("aws_vpc.main", OLD_VPC)],
        now=IN_GRACE,
    )
    assert concluded(replace(REPLACE_VPC, status=StepStatus.ERROR), seen).outcome is Outcome.RECORDED


def test_a_lost_create_before_destroy_is_a_duplicate_beside_the_old_object() -> None:
    seen = look(
        listing("aws_vpc", OLD_VPC, NEW_VPC),
        before=[VPCS_BEFORE],
        holds=[held("aws_vpc.main", OLD_VPC)],
        open_creates=frozenset(["aws_vpc.main"]),
    )
    found = concluded(replace(REPLACE_VPC, status=StepStatus.ERROR), seen)
    assert (found.outcome, findings(found)) == (Outcome.DUPLICATED, {"vpc-new"})


@pytest.mark.parametrize(("now", "outcome"), [(IN_GRACE, Outcome.UNKNOWN), (AFTER, Outcome.ORPHANED)])
def test_a_create_under_a_name_that_another_step_gives_up_is_not_closed_by_the_old_object(
    now: datetime, outcome: Outcome
) -> None:
    old = role(created=None)
    steps = [
        step("aws_iam_role.old", Action.DELETE, StepStatus.OK, before=old.identity),
        step("aws_iam_role.new", desired={"name": "app"}),
    ]
    seen = look(listing("aws_iam_role", old), before=[baseline("aws_iam_role", old)], now=now)
    assert [one.outcome for one in conclude(steps, seen, CATALOG)] == [outcome, outcome]


# --- deletes ---

OLD_ROLE = role(created=LONG_AGO)
DELETE = step("aws_iam_role.app", Action.DELETE, before=OLD_ROLE.identity)


@pytest.mark.parametrize(
    ("status", "listed", "gap", "now", "outcome", "ended"),
    [
        (StepStatus.OK, False, None, IN_GRACE, Outcome.ABSENT, StepStatus.DESTROYED),
        (StepStatus.OK, True, None, IN_GRACE, Outcome.UNKNOWN, StepStatus.OK),
        (StepStatus.OK, True, None, AFTER, Outcome.ORPHANED, StepStatus.OK),
        (StepStatus.RUNNING, True, None, IN_GRACE, Outcome.ORPHANED, StepStatus.ERROR),
        (StepStatus.RUNNING, False, None, IN_GRACE, Outcome.ABSENT, StepStatus.DESTROYED),
        (StepStatus.RUNNING, False, REFUSED, AFTER, Outcome.UNKNOWN, StepStatus.ERROR),
        (StepStatus.OK, False, REFUSED, AFTER, Outcome.UNKNOWN, StepStatus.OK),
        (StepStatus.RUNNING, True, REFUSED, AFTER, Outcome.ORPHANED, StepStatus.ERROR),
    ],
)
def test_a_delete_is_over_only_when_a_complete_list_lacks_the_object(
    status: StepStatus, listed: bool, gap: str | None, now: datetime, outcome: Outcome, ended: StepStatus
) -> None:
    objects = [OLD_ROLE] if listed else []
    found = concluded(replace(DELETE, status=status), look(listing("aws_iam_role", *objects, gap=gap), now=now))
    assert (found.outcome, found.status) == (outcome, ended)
    assert findings(found) == ({"app"} if outcome is Outcome.ORPHANED else set())


def test_a_leftover_carries_its_finding_and_certainty() -> None:
    left = concluded(DELETE, look(listing("aws_iam_role", OLD_ROLE))).observed[0]
    assert (left.confidence, left.addresses, left.in_state) == (Confidence.CERTAIN, ("aws_iam_role.app",), False)
    assert left.finding_id == OLD_ROLE.finding_id


@pytest.mark.parametrize("status", [StepStatus.RUNNING, StepStatus.ERROR, StepStatus.PENDING])
def test_a_delete_of_what_is_still_in_state_stays_recorded(status: StepStatus) -> None:
    seen = look(listing("aws_iam_role", OLD_ROLE), holds=[held("aws_iam_role.app", OLD_ROLE)])
    found = concluded(replace(DELETE, status=status), seen)
    assert (found.outcome, findings(found), found.open) == (Outcome.RECORDED, set(), False)


@pytest.mark.parametrize(
    ("status", "outcome"), [(StepStatus.OK, Outcome.ABSENT), (StepStatus.RUNNING, Outcome.UNKNOWN)]
)
def test_a_delete_of_a_type_that_nobody_can_list_rests_on_the_engines_word(
    status: StepStatus, outcome: Outcome
) -> None:
    assert concluded(step("aws_unlisted.f", Action.DELETE, status), look()).outcome is outcome


@pytest.mark.parametrize(
    ("status", "outcome"), [(StepStatus.OK, Outcome.ABSENT), (StepStatus.RUNNING, Outcome.UNKNOWN)]
)
def test_a_delete_of_an_object_whose_name_may_not_be_kept_is_not_proved_by_a_list(
    status: StepStatus, outcome: Outcome
) -> None:
    nameless = replace(DELETE, before={}, status=status)
    assert concluded(nameless, look(listing("aws_iam_role", OLD_ROLE))).outcome is outcome


def test_the_delete_of_a_deposed_object_is_not_closed_by_the_current_one() -> None:
    deposed = step("aws_vpc.main", Action.DELETE, before=OLD_VPC.identity)
    current = held("aws_vpc.main", NEW_VPC)
    left = concluded(deposed, look(listing("aws_vpc", OLD_VPC, NEW_VPC), holds=[current]))
    assert (left.outcome, findings(left)) == (Outcome.ORPHANED, {"vpc-old"})
    gone = concluded(deposed, look(listing("aws_vpc", NEW_VPC), holds=[current]))
    assert gone.outcome is Outcome.ABSENT
    kept = look(
        listing("aws_vpc", OLD_VPC, NEW_VPC), holds=[current, held("aws_vpc.main", OLD_VPC, deposed="0a1b2c3d")]
    )
    assert concluded(deposed, kept).outcome is Outcome.RECORDED


def test_an_update_of_something_that_left_the_state_looks_for_the_object() -> None:
    update = replace(DELETE, action=Action.UPDATE)
    assert concluded(update, look(listing("aws_iam_role", OLD_ROLE))).outcome is Outcome.ORPHANED
    assert concluded(update, look(listing("aws_iam_role", gap=REFUSED))).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("answer", "outcome", "named"),
    [
        (listing("aws_iam_role", OLD_ROLE), Outcome.ORPHANED, {"app"}),
        (listing("aws_iam_role"), Outcome.UNKNOWN, set()),
        (listing("aws_iam_role", gap=REFUSED), Outcome.UNKNOWN, set()),
    ],
)
def test_what_was_removed_from_the_state_on_purpose_is_decided_and_never_called_absent(
    answer: Listing, outcome: Outcome, named: set[str]
) -> None:
    forgotten = concluded(replace(DELETE, action=Action.FORGET), look(answer))
    assert (forgotten.status, forgotten.disposition, forgotten.open) == (StepStatus.RETAINED, "retain", False)
    assert (forgotten.outcome, findings(forgotten)) == (outcome, named)
    assert EvidenceKind.REMOVED_FROM_STATE in kinds(forgotten)


# --- children ---

CHILD = step("aws_iam_role_policy.p", desired={"role": "app", "name": "p"})


@pytest.mark.parametrize("action", [Action.CREATE, Action.DELETE])
@pytest.mark.parametrize(
    ("parent", "gap", "now", "outcome"),
    [
        (True, None, AFTER, Outcome.UNKNOWN),
        (True, REFUSED, AFTER, Outcome.UNKNOWN),
        (False, REFUSED, AFTER, Outcome.UNKNOWN),
        (False, None, IN_GRACE, Outcome.UNKNOWN),
        (False, None, AFTER, Outcome.ABSENT),
    ],
)
def test_a_child_is_gone_only_when_its_parent_is_confirmed_gone(
    action: Action, parent: bool, gap: str | None, now: datetime, outcome: Outcome
) -> None:
    child = replace(CHILD, action=action, before=CHILD.desired)
    found = concluded(child, look(listing("aws_iam_role", *([role()] if parent else []), gap=gap), now=now))
    assert found.outcome is outcome
    assert (found.status is StepStatus.DESTROYED) is (outcome is Outcome.ABSENT and action is Action.DELETE)


def test_a_child_whose_parent_is_not_known_stays_unknown() -> None:
    orphan = replace(CHILD, desired={"name": "p"})
    assert concluded(orphan, look(listing("aws_iam_role"))).outcome is Outcome.UNKNOWN
    assert concluded(CHILD, look()).outcome is Outcome.UNKNOWN


def test_a_child_that_the_engine_itself_reads_is_an_orphan_while_its_parent_stays() -> None:
    probes = {CHILD.address: ImportProbe(True, "the engine itself reads app:p", "app:p")}
    found = concluded(CHILD, look(listing("aws_iam_role", role()), probes=probes))
    assert (found.outcome, findings(found)) == (Outcome.ORPHANED, {"app:p"})


def test_the_listing_of_a_child_is_its_parents() -> None:
    assert listings_for(CHILD, CATALOG) == (("aws_iam_role", "aws", ""),)
    assert listings_for(replace(ROLE, region="eu-west-2"), CATALOG) == (("aws_iam_role", "aws", "eu-west-2"),)
    assert listings_for(step("aws_unlisted.f"), CATALOG) == ()


# --- the engine's own read ---


@pytest.mark.parametrize(
    ("exists", "now", "outcome"),
    [
        (True, IN_GRACE, Outcome.ORPHANED),
        (False, IN_GRACE, Outcome.UNKNOWN),
        (False, AFTER, Outcome.ABSENT),
        (None, AFTER, Outcome.UNKNOWN),
    ],
)
def test_the_engines_own_read_answers_for_a_type_that_nobody_can_list(
    exists: bool | None, now: datetime, outcome: Outcome
) -> None:
    unlisted = step("aws_unlisted.f")
    probes = {unlisted.address: ImportProbe(exists, "the engine itself finds no f", "f")}
    assert concluded(unlisted, look(now=now, probes=probes)).outcome is outcome


def test_a_refused_list_is_overruled_by_what_the_engine_reads_and_by_nothing_else() -> None:
    gap = listing("aws_iam_role", gap=REFUSED)
    for exists, outcome in [(True, Outcome.ORPHANED), (False, Outcome.UNKNOWN), (None, Outcome.UNKNOWN)]:
        probes = {ROLE.address: ImportProbe(exists, "-", "app")}
        assert concluded(ROLE, look(gap, probes=probes)).outcome is outcome


# --- every outcome ---


def test_every_conclusion_comes_with_evidence() -> None:
    cases: list[Step] = [
        concluded(one, look(*lists, now=now, before=before))
        for one in (ROLE, VPC, DELETE, REPLACE_VPC, CHILD, step("aws_unlisted.f"))
        for lists in ((), (listing("aws_iam_role"), listing("aws_vpc")), (listing("aws_iam_role", role()),))
        for now in (IN_GRACE, AFTER)
        for before in ((), (NO_ROLES_BEFORE, VPCS_BEFORE))
    ]
    assert all(one.outcome is not None and one.evidence for one in cases)
    assert all(seen.finding_id is None or not seen.in_state for one in cases for seen in one.observed)


def test_a_second_look_starts_from_what_the_first_one_left() -> None:
    first = concluded(ROLE, look(listing("aws_iam_role"), now=IN_GRACE))
    again = replace(first, outcome=None, observed=(), evidence=())
    assert concluded(again, look(listing("aws_iam_role"))).outcome is Outcome.ABSENT
