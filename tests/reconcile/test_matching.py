"""Whether an object looks like what a step wanted, and whether an identity means this very object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scene import ACCOUNT, CATALOG, END, INSIDE, LONG_AGO, OTHER_ACCOUNT, START, queue, role, vpc

from tfguard.model.evidence import Confidence, EvidenceKind
from tfguard.model.inventory import CloudObject
from tfguard.reconcile import strays
from tfguard.reconcile.matching import (
    CLOCK_SKEW,
    Likeness,
    Window,
    candidate,
    lies_elsewhere,
    likeness,
    same_object,
)

GROUP = CloudObject(
    "aws",
    ACCOUNT,
    "eu-west-1",
    "aws_security_group",
    "sg-1",
    "sg-1",
    {"id": "sg-1", "name": "web-20260301", "vpc_id": "vpc-1", "description": "d", "tags.Name": "web"},
)
EMPTY = Window(START, END, frozenset(), baseline_complete=True)
BLIND = Window(START, END, frozenset(), baseline_complete=False)


@pytest.mark.parametrize(
    ("desired", "found", "expected"),
    [
        ({"name": "app"}, role("app"), Likeness.KEY),
        ({"name": "app"}, role("App"), Likeness.CONFLICT),
        ({"name": "app", "arn": "arn:aws:iam::1:role/app"}, role("app"), Likeness.CONFLICT),
        ({}, role("app"), Likeness.NOTHING_TO_COMPARE),
        ({"path": "/x/"}, role("app"), Likeness.NOTHING_TO_COMPARE),
        ({"name_prefix": "ap"}, role("app"), Likeness.PREFIX),
        ({"name_prefix": "zz"}, role("app"), Likeness.CONFLICT),
        ({"cidr_block": "10.0.0.0/16"}, vpc("vpc-1"), Likeness.TRAITS),
        ({"cidr_block": "10.0.0.0/16", "tags.Name": "a"}, vpc("vpc-1"), Likeness.TRAITS),
        ({"cidr_block": "10.0.0.0/16", "tags.Name": "a"}, vpc("vpc-1", name="b"), Likeness.CONFLICT),
        ({"cidr_block": "10.9.0.0/16", "tags.Name": "a"}, vpc("vpc-1", name="a"), Likeness.CONFLICT),
        ({"tags.Name": "a"}, vpc("vpc-1"), Likeness.NOTHING_TO_COMPARE),
        ({"name_prefix": "web-", "vpc_id": "vpc-1"}, GROUP, Likeness.PREFIX),
        ({"name_prefix": "web-", "vpc_id": "vpc-2"}, GROUP, Likeness.CONFLICT),
        ({"name_prefix": "web-"}, replace(GROUP, identity={"id": "sg-1"}), Likeness.CONFLICT),
        ({"name": "web-20260301"}, GROUP, Likeness.TRAITS),  # unique within a VPC only
    ],
)
def test_an_object_is_as_like_as_its_attributes_say(
    desired: Mapping[str, str], found: CloudObject, expected: Likeness
) -> None:
    like, said = likeness(CATALOG.types[found.type], desired, found)
    assert like is expected
    assert bool(said) is (like > Likeness.NOTHING_TO_COMPARE)


@pytest.mark.parametrize(
    ("identity", "found", "same"),
    [
        ({"name": "app"}, role("app"), True),
        ({"name": "app"}, role("other"), False),
        ({}, role("app"), False),
        ({"arn": role("app").identity["arn"], "name": "renamed"}, role("app"), True),
        ({"arn": "arn:aws:iam::123456789012:role/other", "name": "app"}, role("app"), False),
        ({"arn": f"arn:aws:iam::{OTHER_ACCOUNT}:role/app", "name": "app"}, role("app"), False),
        ({"url": "https://localhost:5000/1/jobs", "name": "jobs"}, queue("jobs"), True),  # a url's host varies
        (queue("jobs").identity, queue("jobs", "us-east-1"), False),
        (queue("jobs").identity, queue("jobs", "us-east-1", account=None), False),
        (queue("jobs").identity, queue("jobs", account=None), True),
        ({"cidr_block": "10.0.0.0/16"}, vpc("vpc-1"), False),  # a trait is shared
        ({"id": "vpc-1"}, vpc("vpc-1"), True),
    ],
)
def test_one_equal_key_means_the_same_object_and_an_arn_decides(
    identity: Mapping[str, str], found: CloudObject, same: bool
) -> None:
    assert same_object(CATALOG.types[found.type], identity, found) is same


@pytest.mark.parametrize(
    ("arn", "account", "region", "elsewhere"),
    [
        (f"arn:aws:sqs:eu-west-1:{ACCOUNT}:q", ACCOUNT, "eu-west-1", False),
        (f"arn:aws:sqs:eu-west-1:{ACCOUNT}:q", ACCOUNT, "eu-west-2", True),
        (f"arn:aws:sqs:eu-west-1:{ACCOUNT}:q", OTHER_ACCOUNT, "eu-west-1", True),
        (f"arn:aws:sqs:eu-west-1:{ACCOUNT}:q", None, "eu-west-1", False),
        (f"arn:aws:iam::{ACCOUNT}:role/a", ACCOUNT, "global", False),
        (f"arn:aws:iam::{ACCOUNT}:role/a", OTHER_ACCOUNT, "global", True),
        ("arn:aws:s3:::b", OTHER_ACCOUNT, "global", False),
        ("no arn", OTHER_ACCOUNT, "eu-west-1", False),
    ],
)
def test_an_arn_tells_account_and_region_as_far_as_it_has_them(
    arn: str, account: str | None, region: str, elsewhere: bool
) -> None:
    assert lies_elsewhere(CATALOG.types["aws_sqs_queue"], {"arn": arn}, account, region) is elsewhere
    assert lies_elsewhere(CATALOG.types["aws_db_snapshot"], {"db_snapshot_arn": arn}, account, region) is elsewhere
    assert not lies_elsewhere(None, {"arn": arn}, account, region)


@pytest.mark.parametrize(
    ("desired", "found", "window", "confidence"),
    [
        ({"name": "app"}, role(), EMPTY, Confidence.CERTAIN),
        ({"name": "app"}, role(created=None), EMPTY, Confidence.CERTAIN),
        ({"name": "app"}, role(), BLIND, Confidence.CERTAIN),
        ({"name": "app"}, role(created=None), BLIND, Confidence.LIKELY),
        ({"name": "app"}, role(created=None), replace(EMPTY, end_seen=False), Confidence.LIKELY),
        ({"name": "app"}, role(), replace(EMPTY, end_seen=False), Confidence.CERTAIN),
        ({"name": "app"}, role(created=END + timedelta(days=1)), EMPTY, Confidence.LIKELY),
        ({"name_prefix": "a"}, role(), EMPTY, Confidence.LIKELY),
        ({"name_prefix": "a"}, role(created=None), BLIND, Confidence.POSSIBLE),
        ({"cidr_block": "10.0.0.0/16"}, vpc("vpc-1"), EMPTY, Confidence.LIKELY),
        ({"cidr_block": "10.0.0.0/16"}, vpc("vpc-1"), BLIND, Confidence.POSSIBLE),
        ({}, role(), EMPTY, Confidence.POSSIBLE),
        ({"name": "other"}, role(), EMPTY, None),
        ({"name": "app"}, role(created=LONG_AGO), BLIND, None),
        ({"name": "app"}, role(created=LONG_AGO), EMPTY, None),
        ({"name": "app"}, role(), replace(EMPTY, before=frozenset([role().finding_id])), None),
    ],
)
def test_a_candidate_is_as_sure_as_its_name_and_its_time_make_it(
    desired: Mapping[str, str], found: CloudObject, window: Window, confidence: Confidence | None
) -> None:
    match = candidate(CATALOG.types[found.type], desired, found, window)
    assert (match.confidence if match else None) is confidence


@pytest.mark.parametrize(
    ("created", "inside", "older"),
    [
        (START - CLOCK_SKEW, True, False),
        (START - CLOCK_SKEW - timedelta(seconds=1), False, True),
        (END + CLOCK_SKEW, True, False),
        (END + CLOCK_SKEW + timedelta(seconds=1), False, False),
        (None, False, False),
    ],
)
def test_the_window_allows_for_clocks_that_differ_by_a_minute(
    created: datetime | None, inside: bool, older: bool
) -> None:
    found = role(created=created)
    assert (BLIND.made_inside(found), BLIND.existed_before(found)) == (inside, older)


def test_a_label_of_the_provider_is_evidence_and_makes_nothing_surer() -> None:
    kind = CATALOG.types["google_pubsub_topic"]
    topic = CloudObject(
        cloud="google",
        account="app-prod",
        region="global",
        type="google_pubsub_topic",
        id="projects/app-prod/topics/jobs",
        import_id="projects/app-prod/topics/jobs",
        identity={"name": "jobs", "project": "app-prod"},
    )
    labelled = replace(topic, tags={"goog-terraform-provisioned": "true"})
    without, bears = (candidate(kind, {"name": "jobs"}, one, EMPTY) for one in (topic, labelled))
    assert without is not None and bears is not None
    assert bears.confidence is without.confidence
    (added,) = set(bears.evidence) - set(without.evidence)
    assert (added.kind, "goog-terraform-provisioned" in added.detail) == (EvidenceKind.PROVISIONED, True)
    assert added in strays.unmanaged(labelled, 1, ()).evidence
    assert added not in strays.unmanaged(replace(labelled, cloud="aws"), 1, ()).evidence


def test_evidence_is_told_only_where_there_is_some() -> None:
    kind = CATALOG.types["aws_iam_role"]
    assert candidate(kind, {}, role(created=None), BLIND).evidence == ()  # type: ignore[union-attr]
    full = candidate(kind, {"name": "app"}, role(), EMPTY)
    assert full is not None
    assert [item.kind for item in full.evidence] == [
        EvidenceKind.DESIRED_IDENTITY,
        EvidenceKind.BASELINE_DIFFERENCE,
        EvidenceKind.CREATED_IN_WINDOW,
    ]
    assert full.evidence[0].detail == "name = app"


TEXTS = st.text(st.sampled_from("ab-"), max_size=3)
WISHES = st.dictionaries(st.sampled_from(["name", "arn", "name_prefix", "other"]), TEXTS, max_size=4)
IDENTITIES = st.dictionaries(st.sampled_from(["name", "arn", "other"]), TEXTS, max_size=3)


@given(WISHES, IDENTITIES)
def test_one_attribute_that_differs_is_a_conflict_and_an_unknown_one_never_is(
    desired: dict[str, str], identity: dict[str, str]
) -> None:
    found = replace(role(), identity=identity)
    differs = any(identity.get(key, desired[key]) != desired[key] for key in ("name", "arn") if key in desired)
    differs |= not identity.get("name", "").startswith(desired.get("name_prefix", ""))
    like, _ = likeness(CATALOG.types["aws_iam_role"], desired, found)
    assert (like is Likeness.CONFLICT) is differs


@given(WISHES, st.sampled_from([None, LONG_AGO, INSIDE, END + timedelta(days=2)]), st.booleans(), st.booleans())
def test_what_was_listed_before_is_no_candidate_whatever_it_looks_like(
    desired: dict[str, str], created: datetime | None, complete: bool, known: bool
) -> None:
    found = role("a", created)
    before = found if known else replace(found, account=None)
    window = Window(START, END, frozenset([before.finding_id]), complete, frozenset([before.account]))
    assert candidate(CATALOG.types["aws_iam_role"], desired, found, window) is None
