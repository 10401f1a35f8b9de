"""What a listed object is, by which rule, and in which order the rules count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from scene import ACCOUNT, AFTER, CATALOG, END, LONG_AGO, OTHER_ACCOUNT, START, held, listing, queue, role, state, vpc

from tfguard.catalog.types import MadeByRule
from tfguard.model.config import IgnoreRule
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.finding import Verdict
from tfguard.model.inventory import ANY_VALUE, NAMED_IN, CloudObject, Listing, MadeBy, Scope
from tfguard.model.state import StateInstance
from tfguard.reconcile.state_index import StateIndex
from tfguard.reconcile.verdicts import IgnoreRules, Judge, Makers, kept_by, soft_deleted

BY_ROLE = MadeBy("aws_iam_role", "name", "maker", "made by its role")
_QUEUE = CATALOG.types["aws_sqs_queue"]
_RULE = MadeByRule(type="aws_iam_role", value="{name}", parent_attribute="name", reason="made by its role")
_BY_QUEUE = MadeByRule(type="aws_sqs_queue", value="{name}", parent_attribute="name", reason="made by its queue")
_MADE = {
    "aws_sqs_queue": replace(_QUEUE, made_by=(_RULE,)),
    "aws_iam_role": replace(CATALOG.types["aws_iam_role"], made_by=(_BY_QUEUE,)),
}
MAKERS = replace(CATALOG, types={**CATALOG.types, **_MADE})


class Court:
    """A judge with everything around it."""

    def __init__(
        self,
        *instances: StateInstance,
        rules: Sequence[IgnoreRule] = (),
        kept: Mapping[str, Disposition] | None = None,
        mentioned: bool = False,
        listed: Sequence[Listing] = (),
    ) -> None:
        index = StateIndex(MAKERS)
        index.add("s3://state/a", "default", state(*instances))
        self.rules = IgnoreRules(rules, AFTER, CATALOG)
        makers = Makers(MAKERS, index)
        for one in listed:
            makers.note(one)
        self.judge = Judge(index, makers, self.rules, kept or {}, lambda _: mentioned)

    def all_the_way(self, found: CloudObject, *, explained: bool = False) -> tuple[Verdict, str] | None:
        """The first ruling that an object gets; None for one that nothing rules out."""
        judge = self.judge
        ruling = (
            judge.at_once(found)
            or judge.when_listed(found)
            or judge.claimed(found)
            or judge.in_detail(found, explained=explained)
            or (None if explained else judge.by_uncertain_maker(found))
        )
        return (ruling.verdict, ruling.rule) if ruling else None


def keep(found: CloudObject, **fields: Any) -> Mapping[str, Disposition]:
    """The ledger's word that an object stays."""
    entry = Disposition(found.finding_id, DispositionKind.RETAIN, END, "me", "for later", "01J0")
    return kept_by([[replace(entry, **fields)]], START)


ALL = IgnoreRule("*", "whatever it is")
FOREIGN = replace(role("app"), owner=OTHER_ACCOUNT)
IGNORED = replace(role("app"), ignored_because="made by AWS")
CHILD = replace(queue("child"), made_by=(BY_ROLE,))


def test_a_stray_that_no_rule_fits_is_left_for_the_operations_to_explain() -> None:
    assert Court().all_the_way(role("app")) is None


def test_managed_goes_before_everything_else() -> None:
    everything = replace(FOREIGN, ignored_because="made by AWS", made_by=(BY_ROLE,))
    court = Court(held("aws_iam_role.a", role("app")), rules=[ALL], kept=keep(role("app")))
    assert court.all_the_way(everything) == (Verdict.MANAGED, "")


def test_retained_goes_before_foreign_and_ignored() -> None:
    for found in (FOREIGN, IGNORED, role("app")):
        assert Court(rules=[ALL], kept=keep(found)).all_the_way(found) == (Verdict.RETAINED, "retained")


def test_foreign_goes_before_ignored() -> None:
    found = replace(FOREIGN, ignored_because="made by AWS")
    assert Court(rules=[ALL]).all_the_way(found) == (Verdict.FOREIGN, "foreign")


def test_what_the_catalogue_ignores_goes_before_the_configuration() -> None:
    assert Court(rules=[ALL]).all_the_way(IGNORED) == (Verdict.IGNORED, "catalogue: made by AWS")


def test_its_maker_goes_before_the_configuration() -> None:
    court = Court(rules=[ALL], listed=[listing("aws_iam_role", role("maker"))])
    assert court.all_the_way(CHILD) == (Verdict.IGNORED, "child: made by its role")


def test_an_owner_that_is_the_account_or_not_known_is_not_foreign() -> None:
    assert Court().all_the_way(replace(role("app"), owner=ACCOUNT)) is None
    assert Court().all_the_way(replace(role("app"), account=None, owner=OTHER_ACCOUNT)) is None


# Decisions


def test_the_last_decision_about_an_object_counts() -> None:
    retain = Disposition("o-1", DispositionKind.RETAIN, END, "me", "r", "01J0")
    destroy = replace(retain, kind=DispositionKind.DESTROY, at=END + timedelta(hours=1))
    assert kept_by([[destroy], [retain]], START) == {}
    assert kept_by([[retain], [replace(destroy, at=START)]], START) == {"o-1": retain}


def test_an_object_that_was_made_after_the_decision_needs_one_anew() -> None:
    court = Court(kept=keep(role("app")))
    assert court.all_the_way(role("app", created=END + timedelta(days=1))) is None
    assert court.all_the_way(role("app", created=LONG_AGO)) == (Verdict.RETAINED, "retained")


def test_a_retention_with_a_date_holds_until_then_though_its_clock_was_behind_the_providers() -> None:
    court = Court(kept=keep(role("app"), until=END + timedelta(days=30)))
    assert court.all_the_way(role("app", created=END + timedelta(days=1))) == (Verdict.RETAINED, "retained")


def test_a_decision_that_was_made_before_the_account_was_known_counts() -> None:
    assert Court(kept=keep(replace(role("app"), account=None))).all_the_way(role("app"))


# What operations say goes before what a service usually makes


def test_what_an_operation_names_is_not_ignored_as_made_by_a_service() -> None:
    assert Court(mentioned=True).judge.at_once(IGNORED) is None
    assert Court(mentioned=True).all_the_way(IGNORED, explained=True) is None
    assert Court(mentioned=True).all_the_way(IGNORED) == (Verdict.IGNORED, "catalogue: made by AWS")


def test_what_an_operation_explains_is_no_child_of_a_maker_however_certain_that_one_is() -> None:
    court = Court(mentioned=True, listed=[listing("aws_iam_role", role("maker"))])
    assert court.judge.when_listed(CHILD) is None
    assert court.all_the_way(CHILD, explained=True) is None
    assert court.all_the_way(CHILD) == (Verdict.IGNORED, "child: made by its role")
    assert Court(mentioned=True).all_the_way(CHILD, explained=True) is None  # though nobody looked for the maker


def test_a_rule_of_the_configuration_goes_before_an_explanation() -> None:
    assert Court(rules=[ALL]).all_the_way(role("app"), explained=True) == (
        Verdict.IGNORED, "scan.ignore[0]: whatever it is",
    )  # fmt: skip


# Children


@pytest.mark.parametrize(
    ("instances", "listed", "expected"),
    [
        ([held("aws_iam_role.m", role("maker"))], [listing("aws_iam_role")], Verdict.IGNORED),
        ([], [listing("aws_iam_role", role("maker"))], Verdict.IGNORED),
        ([], [listing("aws_iam_role", replace(role("maker"), ignored_because="by AWS"))], Verdict.IGNORED),
        ([], [listing("aws_iam_role", role("maker", account=OTHER_ACCOUNT)), listing("aws_iam_role")], None),
        ([], [listing("aws_iam_role", role("other"))], None),
        ([], [listing("aws_iam_role", gap="AccessDenied")], Verdict.UNKNOWN),
        ([], [], Verdict.UNKNOWN),
    ],
)
def test_a_child_is_ignored_while_its_maker_exists_and_unknown_where_nobody_looked(
    instances: list[StateInstance], listed: list[Listing], expected: Verdict | None
) -> None:
    ruling = Court(*instances, listed=listed).all_the_way(CHILD)
    assert (ruling[0] if ruling else None) is expected


def test_a_maker_that_only_waits_for_its_end_is_a_maker_still() -> None:
    waiting = replace(listing("aws_iam_role"), soft_deleted=(role("maker"),))
    assert Court(listed=[waiting]).all_the_way(CHILD) == (Verdict.IGNORED, "child: made by its role")


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ([listing("aws_iam_role", role("whichever"))], Verdict.IGNORED),
        ([listing("aws_iam_role")], None),
        ([listing("aws_iam_role", role("far", account=OTHER_ACCOUNT)), listing("aws_iam_role")], None),
        ([], Verdict.UNKNOWN),
    ],
)
def test_a_maker_that_is_not_named_may_be_any_of_its_type(listed: list[Listing], expected: Verdict | None) -> None:
    child = replace(CHILD, made_by=(replace(BY_ROLE, value=ANY_VALUE),))
    ruling = Court(listed=listed).all_the_way(child)
    assert (ruling[0] if ruling else None) is expected


@pytest.mark.parametrize(
    ("maker", "expected"),
    [
        ("dead", Verdict.IGNORED),
        ("dead-cluster-with-a-long-name", Verdict.IGNORED),  # cut in the child's name
        ("live", None),
        ("ead", None),
    ],
)
def test_a_maker_that_the_name_of_its_child_begins_with_is_the_one_that_is_called_so(
    maker: str, expected: Verdict | None
) -> None:
    child = replace(CHILD, made_by=(replace(BY_ROLE, value=f"{NAMED_IN}gke-dead-cluster-1a2b-all", certain=False),))
    ruling = Court(listed=[listing("aws_iam_role", role(maker))]).all_the_way(child)
    assert (ruling[0] if ruling else None) is expected
    assert Court().all_the_way(child) == (Verdict.UNKNOWN, "")


STACK = f"arn:aws:cloudformation:eu-west-1:{ACCOUNT}:stack/s/1"


@pytest.mark.parametrize(("region", "expected"), [("eu-west-1", None), ("us-east-1", Verdict.UNKNOWN)])
def test_the_maker_of_a_global_object_is_looked_for_in_the_region_of_its_arn(
    region: str, expected: Verdict | None
) -> None:
    by_stack = MadeBy("aws_cloudformation_stack", "id", STACK, "made by CloudFormation")
    stacks = Listing("aws_cloudformation_stack", Scope("aws", ACCOUNT, region, "aws"))
    ruling = Court(listed=[stacks]).all_the_way(replace(role("kept"), made_by=(by_stack,)))
    assert (ruling[0] if ruling else None) is expected


def test_what_a_person_can_make_too_is_a_child_only_where_nothing_explains_it() -> None:
    maybe = replace(CHILD, made_by=(replace(BY_ROLE, certain=False),))
    court = Court(listed=[listing("aws_iam_role", role("maker"))])
    assert court.all_the_way(maybe) == (Verdict.IGNORED, "child: made by its role")
    assert court.all_the_way(maybe, explained=True) is None
    assert Court().all_the_way(maybe, explained=True) is None
    assert Court(listed=[listing("aws_iam_role")]).all_the_way(maybe) is None


@pytest.mark.parametrize("listed", [[], [listing("aws_iam_role", gap="AccessDenied")]])
@pytest.mark.parametrize("when_ignored", [True, False])
def test_what_may_be_a_child_is_unknown_where_nobody_looked_for_the_maker(
    listed: list[Listing], when_ignored: bool
) -> None:
    """In a scan of some types alone: with the others it would be ignored."""
    maybe = replace(CHILD, made_by=(replace(BY_ROLE, certain=False, when_ignored=when_ignored),))
    assert Court(listed=listed).all_the_way(maybe) == (Verdict.UNKNOWN, "")
    assert Court(listed=listed).all_the_way(maybe, explained=True) is None


def test_a_maker_in_any_region_may_have_made_what_exists_once_in_an_account() -> None:
    """A zone by its namespace: where that one is named, it would be in one of the regions that were looked at."""
    by_queue = MadeBy("aws_sqs_queue", "name", "maker", "made by its queue", certain=False)
    maybe = replace(role("child"), made_by=(by_queue,))
    assert Court(listed=[listing("aws_sqs_queue")]).all_the_way(maybe) is None
    assert Court(listed=[listing("aws_sqs_queue", queue("maker"))]).all_the_way(maybe) is not None
    missed = listing("aws_sqs_queue", gap="AccessDenied", region="us-east-1")
    assert Court(listed=[listing("aws_sqs_queue"), missed]).all_the_way(maybe) == (Verdict.UNKNOWN, "")


def test_some_makers_count_only_where_they_are_ignored_themselves() -> None:
    beside = replace(CHILD, made_by=(replace(BY_ROLE, when_ignored=True),))
    default = replace(role("maker"), ignored_because="made with the account")
    assert Court(listed=[listing("aws_iam_role", default)]).all_the_way(beside)
    assert Court(listed=[listing("aws_iam_role", role("maker"))]).all_the_way(beside) is None
    assert Court(held("aws_iam_role.m", role("maker")), listed=[listing("aws_iam_role")]).all_the_way(beside) is None
    assert Court().all_the_way(beside) == (Verdict.UNKNOWN, "")


# Rules of the configuration


TAGGED = replace(role("app"), tags={"team": "blue", "keep": ""}, created_at=AFTER - timedelta(hours=2))


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (IgnoreRule("aws_iam_*", "r"), True),
        (IgnoreRule("aws_sqs_*", "r"), False),
        (IgnoreRule("*", "r", name="a?p"), True),
        (IgnoreRule("*", "r", name="b*"), False),
        (IgnoreRule("*", "r", id="app"), True),
        (IgnoreRule("*", "r", account=ACCOUNT), True),
        (IgnoreRule("*", "r", account="9*"), False),
        (IgnoreRule("*", "r", region="eu-*"), False),
        (IgnoreRule("*", "r", region="global"), True),
        (IgnoreRule("*", "r", tag="keep"), True),
        (IgnoreRule("*", "r", tag="team=blue"), True),
        (IgnoreRule("*", "r", tag="te*=bl*"), True),
        (IgnoreRule("*", "r", tag="team=red"), False),
        (IgnoreRule("*", "r", tag="owner"), False),
        (IgnoreRule("*", "r", younger_than=timedelta(hours=3)), True),
        (IgnoreRule("*", "r", younger_than=timedelta(hours=1)), False),
        (IgnoreRule("*", "r", name="app", tag="owner"), False),
        (IgnoreRule("*", "r", expires=AFTER.date()), True),
        (IgnoreRule("*", "r", expires=AFTER.date() - timedelta(days=1)), False),
    ],
)
def test_a_rule_ignores_what_fits_all_of_it(rule: IgnoreRule, fits: bool) -> None:
    court = Court(rules=[rule])
    assert court.all_the_way(TAGGED) == ((Verdict.IGNORED, "scan.ignore[0]: r") if fits else None)
    expired = rule.expires is not None and not fits
    assert bool(court.rules.expired) is expired
    assert bool(court.rules.unused()) is (not fits and not expired)


def test_an_object_whose_age_nobody_tells_is_not_young() -> None:
    court = Court(rules=[IgnoreRule("*", "r", younger_than=timedelta(days=9))])
    assert court.all_the_way(vpc("vpc-1")) is None


def test_a_rule_about_details_waits_for_them() -> None:
    rules = IgnoreRules([IgnoreRule("*", "r", tag="keep"), IgnoreRule("*", "later")], AFTER, CATALOG)
    told = rules.ruling(TAGGED, whole=False)
    assert told is not None and told.reason == "later"


def test_only_the_first_rule_that_fits_is_used() -> None:
    court = Court(rules=[IgnoreRule("aws_iam_role", "first"), IgnoreRule("*", "second")])
    assert court.all_the_way(TAGGED) == (Verdict.IGNORED, "scan.ignore[0]: first")
    assert [text.split()[0] for text in court.rules.unused()] == ["scan.ignore[1]"]


def test_soft_deleted_is_a_ruling_with_a_name() -> None:
    ruling = soft_deleted(role("ending"))
    assert (ruling.verdict, ruling.rule) == (Verdict.SOFT_DELETED, "soft-deleted")


HERE, THERE = ("aws", "123456789012", "eu-west-1"), ("aws", "210987654321", "us-east-1")


@pytest.mark.parametrize(
    ("rule", "untested", "told"),
    [
        (IgnoreRule("aws_vpc", "r"), (), True),
        (IgnoreRule("aws_vpc", "r"), ((*HERE, "aws_sqs_queue"),), True),
        (IgnoreRule("aws_vpc", "r"), ((*HERE, "aws_vpc"),), False),
        (IgnoreRule("aws_*", "r"), ((*HERE, "aws_vpc"),), False),
        (IgnoreRule("aws_default_vpc", "r"), ((*HERE, "aws_vpc"),), False),
        (IgnoreRule("*", "r", region="eu-*"), ((*THERE, "aws_vpc"),), True),
        (IgnoreRule("*", "r", account="123456789012"), ((*THERE, "aws_vpc"),), True),
        (IgnoreRule("*", "r", account="123456789012"), (("aws", None, "eu-west-1", "aws_vpc"),), False),
    ],
)
def test_a_rule_for_what_was_not_looked_at_is_not_called_unused(
    rule: IgnoreRule, untested: tuple[tuple[str, str | None, str, str], ...], told: bool
) -> None:
    assert bool(IgnoreRules([rule], AFTER, CATALOG).unused(untested)) is told


def test_a_rule_for_a_type_that_nobody_knows_is_said_to_be_one_however_little_was_looked_at() -> None:
    rules = IgnoreRules([IgnoreRule("aws_vpx", "r"), IgnoreRule("aws_vpc", "r")], AFTER, CATALOG)
    (told,) = rules.unused([(*HERE, "aws_vpc"), (*HERE, "aws_vpx")])
    assert told == "scan.ignore[0] (aws_vpx: r): its type matches none of the catalogue"


def test_a_rule_for_another_name_of_a_type_is_a_rule_for_it() -> None:
    rules = IgnoreRules([IgnoreRule("aws_default_vpc", "r")], AFTER, CATALOG)
    assert rules.ruling(vpc("vpc-1"), whole=True) is not None
