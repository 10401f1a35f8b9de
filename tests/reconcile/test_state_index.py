"""Which state claims an object: the index answers as a comparison with every instance would, whatever the world."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scene import ACCOUNT, CATALOG, OTHER_ACCOUNT, held, queue, role, state, vpc

from tfguard.model.inventory import CloudObject
from tfguard.model.state import OwnedObject, StateInstance, StateSnapshot
from tfguard.reconcile.matching import same_object
from tfguard.reconcile.state_index import Claim, StateIndex

HERE = ("s3://bucket/a.tfstate", "default")


def index_of(*instances: StateInstance, secrets: frozenset[str] = frozenset()) -> StateIndex:
    """An index of one state."""
    index = StateIndex(CATALOG)
    index.add(*HERE, replace(state(*instances), secrets=secrets))
    return index


ACCOUNTS = st.sampled_from([ACCOUNT, OTHER_ACCOUNT])
REGIONS = st.sampled_from(["eu-west-1", "us-east-1"])
NAMES = st.sampled_from(["a", "b", "A"])


@st.composite
def queues(draw: st.DrawFn) -> CloudObject:
    """A queue; its account, and with it its ARN, need not be known."""
    found = queue(draw(NAMES), draw(REGIONS), account=draw(ACCOUNTS))
    hidden = draw(st.sampled_from([(), ("arn",), ("url",), ("arn", "url")]))
    identity = {key: value for key, value in found.identity.items() if key not in hidden}
    return replace(found, identity=identity, account=draw(st.sampled_from([found.account, None])))


@st.composite
def instances(draw: st.DrawFn) -> StateInstance:
    """An instance for such a queue, of which the state need not tell every key."""
    whole = queue(draw(NAMES), draw(REGIONS), account=draw(ACCOUNTS))
    kept = draw(st.sets(st.sampled_from(["arn", "url", "name"])))
    identity = {key: value for key, value in whole.identity.items() if key in kept}
    return held(f"aws_sqs_queue.q{draw(st.integers(0, 3))}", whole, identity=identity)


WORLDS = st.lists(st.lists(instances(), max_size=4), max_size=3)


@given(WORLDS, st.lists(queues(), max_size=6), st.booleans())
def test_the_index_agrees_with_a_comparison_of_each_object_with_each_instance(
    worlds: list[list[StateInstance]], listed: list[CloudObject], again: bool
) -> None:
    index, kind = StateIndex(CATALOG), CATALOG.types["aws_sqs_queue"]
    for _ in range(2 if again else 1):
        for number, held_there in enumerate(worlds):
            index.add(f"state-{number}", "default", state(*held_there))
        index.begin_reading()
    for found in listed:
        claiming = {
            Claim(f"state-{number}", "default", one.address)
            for number, held_there in enumerate(worlds)
            for one in held_there
            if same_object(kind, one.identity, found)
        }
        told = index.match(found)
        assert (told in claiming) if claiming else told is None


@given(WORLDS)
def test_a_state_that_is_read_again_adds_nothing(worlds: list[list[StateInstance]]) -> None:
    index = StateIndex(CATALOG)
    sizes = []
    for _ in range(3):
        for number, held_there in enumerate(worlds):
            index.add(f"state-{number}", "default", state(*held_there))
        sizes.append(len(index))
        index.begin_reading()
    distinct = {
        (number, one.address, tuple(sorted(one.identity.items())))
        for number, held_there in enumerate(worlds)
        for one in held_there
    }
    assert sizes[1] == sizes[2] >= len({(number, address) for number, address, _ in distinct})
    assert sizes[2] == sizes[0]


def test_keys_are_compared_as_the_service_compares_them() -> None:
    kind = replace(CATALOG.types["aws_iam_role"], folded={"name": "case-dot"})
    index = StateIndex(replace(CATALOG, types={**CATALOG.types, kind.type: kind}))
    index.add(*HERE, state(held("aws_iam_role.x", identity={"name": "Some.Name"})))
    assert index.match(role("some.NAME."))
    assert index.match(role("some-name")) is None


def test_another_name_of_a_type_claims_the_same_objects() -> None:
    index = StateIndex(replace(CATALOG, also_called={"aws_default_vpc": "aws_vpc"}))
    index.add(*HERE, state(held("aws_default_vpc.x", vpc("vpc-1"))))
    assert index.match(vpc("vpc-1")) == Claim(*HERE, "aws_default_vpc.x")


def test_what_an_instance_brought_along_is_claimed_too() -> None:
    server = held("aws_instance.web", owned=(OwnedObject("aws_vpc", "id", "vpc-9"),), identity={"id": "i-1"})
    index = index_of(server)
    assert index.match(vpc("vpc-9")) == Claim(*HERE, "aws_instance.web")
    assert index.match(vpc("vpc-8")) is None


def test_an_instance_whose_keys_are_withheld_leaves_every_other_object_of_its_type_in_doubt() -> None:
    blind = held("aws_iam_role.x", withheld=("name", "arn"))
    index = index_of(blind)
    assert index.match(role("app")) is None
    assert index.doubt(role("app")) == Claim(*HERE, "aws_iam_role.x")
    assert index.doubt(vpc("vpc-1")) is None


def test_a_key_that_is_visible_leaves_no_doubt() -> None:
    index = index_of(held("aws_iam_role.x", identity={"name": "other"}, withheld=("arn",)))
    assert index.doubt(role("app")) is None


def test_an_instance_in_doubt_lies_in_the_account_of_its_provider_configuration() -> None:
    beside = held("aws_iam_role.seen", role("seen", account=OTHER_ACCOUNT))
    index = index_of(beside, held("aws_iam_role.x", withheld=("name", "arn")))
    assert index.doubt(role("app")) is None
    assert index.doubt(role("app", account=OTHER_ACCOUNT))
    other_provider = held("aws_iam_role.y", withheld=("name", "arn"), provider_key="aws.eu")
    assert index_of(beside, other_provider).doubt(role("app"))


def test_the_hash_of_an_id_tells_whose_object_it_is_where_no_key_does() -> None:
    import hashlib

    print_ = hashlib.sha256(b"aws_iam_role\0app").hexdigest()[:16]
    index = index_of(held("aws_iam_role.x", withheld=("name", "arn"), fingerprint=print_))
    assert index.recognised([role("other"), role("app")]) == {1: Claim(*HERE, "aws_iam_role.x")}
    assert index.doubt(role("other")) is None  # the instance has its object


def test_an_id_that_two_accounts_have_tells_nothing() -> None:
    import hashlib

    print_ = hashlib.sha256(b"aws_iam_role\0app").hexdigest()[:16]
    index = index_of(held("aws_iam_role.x", withheld=("name", "arn"), fingerprint=print_))
    assert index.recognised([role("app"), role("app", account=OTHER_ACCOUNT)]) == {}
    assert index.doubt(role("app"))


ROLES = ("aws_iam_role", ACCOUNT, "global")
QUEUES = ("aws_sqs_queue", ACCOUNT, "eu-west-1")


def test_what_a_complete_list_has_not_is_missing() -> None:
    index = index_of(held("aws_iam_role.a", role("a")), held("aws_iam_role.b", role("b")))
    index.match(role("a"))
    assert [lost.claim.address for lost in index.unlisted({ROLES})] == ["aws_iam_role.b"]


@pytest.mark.parametrize(
    ("instance", "complete"),
    [
        (held("aws_iam_role.b", role("b")), {QUEUES}),
        (held("aws_iam_role.b", role("b", account=OTHER_ACCOUNT)), {ROLES}),
        (held("aws_sqs_queue.q", queue("q", "us-east-1")), {QUEUES}),
        (held("aws_iam_role.b", identity={"name": "b"}), {ROLES}),
    ],
)
def test_what_may_lie_elsewhere_is_not_missing(instance: StateInstance, complete: set[tuple[str, str, str]]) -> None:
    assert list(index_of(instance).unlisted(complete)) == []


def test_what_the_second_reading_has_not_is_not_missing_but_still_claimed() -> None:
    index = index_of(held("aws_iam_role.a", role("a")))
    index.begin_reading()
    index.add(*HERE, state())
    assert list(index.unlisted({ROLES})) == []
    assert index.match(role("a"))


def test_an_address_is_held_as_long_as_the_last_reading_has_it() -> None:
    claim, other = Claim(*HERE, "aws_iam_role.a"), Claim(*HERE, "aws_iam_role.b")
    index = index_of(held("aws_iam_role.a", role("a")))
    assert index.held([claim, other]) == {claim}
    index.begin_reading()
    assert index.held([claim]) == frozenset()


def test_a_key_of_an_address_that_is_marked_is_not_shown() -> None:
    index = index_of(held('aws_iam_role.x["hunter2"]', role("a")), secrets=frozenset(["hunter2"]))
    told = index.match(role("a"))
    assert told is not None and "hunter2" not in told.address


def test_a_deposed_object_is_claimed_and_told_apart() -> None:
    index = index_of(held("aws_iam_role.x", role("a"), deposed="0123abcd"))
    assert index.match(role("a")) == Claim(*HERE, "aws_iam_role.x (deposed 0123abcd)")


def test_an_empty_state_claims_nothing() -> None:
    index = StateIndex(CATALOG)
    index.add(*HERE, StateSnapshot("", 0))
    assert (len(index), index.match(role("a"))) == (0, None)


def test_a_parent_is_known_by_its_key_in_its_own_place() -> None:
    index = index_of(held("aws_iam_role.a", role("a")), held("aws_vpc.v", identity={"id": "vpc-1"}))
    assert index.knows("aws_iam_role", "name", "a", ACCOUNT, "eu-west-1")
    assert not index.knows("aws_iam_role", "name", "a", OTHER_ACCOUNT, "eu-west-1")
    assert not index.knows("aws_iam_role", "name", "b", ACCOUNT, "eu-west-1")
    assert index.knows("aws_vpc", "id", "vpc-1", OTHER_ACCOUNT, "us-east-1")
    assert index.knows("aws_iam_role", "arn", role("a").identity["arn"], ACCOUNT, "global")
