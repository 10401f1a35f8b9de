"""Which state claims an object: as it is in a made-up world, of which the states tell only a part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scene import ACCOUNT, CATALOG, OTHER_ACCOUNT, held, queue, role, state, vpc

from tfguard.model.inventory import CloudObject
from tfguard.model.state import OwnedObject, StateInstance, StateSnapshot
from tfguard.reconcile.state_index import Claim, StateIndex
from tfguard.reconcile.whereabouts import Fit, Whereabouts

HERE = ("s3://bucket/a.tfstate", "default")


def index_of(*instances: StateInstance, secrets: frozenset[str] = frozenset()) -> StateIndex:
    """An index of one state."""
    index = StateIndex(CATALOG)
    index.add(*HERE, replace(state(*instances), secrets=secrets))
    return index


LOG_GROUP = "aws_cloudwatch_log_group"
KINDS = ("aws_cloudwatch_log_metric_filter", "aws_iam_role_policy", "aws_db_snapshot", "aws_sqs_queue")
REGIONS = ("eu-west-1", "us-east-1")
ARNS = {"aws_db_snapshot": "db_snapshot_arn", "aws_sqs_queue": "arn"}
NAMES = {
    "aws_cloudwatch_log_metric_filter": "log_group_name+name",
    "aws_iam_role_policy": "id",
    "aws_db_snapshot": "db_snapshot_identifier",
    "aws_sqs_queue": "name",
}


@dataclass(frozen=True)
class Thing:
    """Something that exists: what it is called, and where."""

    kind: str
    name: str
    account: str
    region: str

    @property
    def arn(self) -> dict[str, str]:
        """Its ARN, if it has one."""
        key = ARNS.get(self.kind)
        return {key: f"arn:aws:x:{self.region}:{self.account}:{self.name}"} if key else {}

    def listed(self, *, arn: bool = True) -> CloudObject:
        """The object that a list shows."""
        identity = {NAMES[self.kind]: self.name, **(self.arn if arn else {})}
        return CloudObject("aws", self.account, self.region, self.kind, self.name, self.name, identity)


@dataclass(frozen=True)
class Record:
    """An instance of a state, what it stands for, and how much it tells of where that is."""

    thing: Thing
    number: int
    account: bool
    region: bool
    arn: bool
    state: int
    beside: bool  # the provider configuration has made a log group too

    @property
    def instances(self) -> tuple[StateInstance, ...]:
        """What stands in the state."""
        thing = self.thing
        where = "eu-west-1" if thing.region == "global" else thing.region
        key = f"aws.{thing.account}-{where}"
        said = {"account": thing.account} if self.account else {}
        said |= {"region": thing.region} if self.region and thing.region != "global" else {}
        identity = {NAMES[thing.kind]: thing.name, **(thing.arn if self.arn else {})}
        own = held(f"{thing.kind}.x[{self.number}]", identity=identity, provider_key=key, **said)
        arn = {"arn": f"arn:aws:logs:{where}:{thing.account}:log-group:g"}
        group = held(f"{LOG_GROUP}.g[{self.number}]", identity=arn, provider_key=key)
        return (own, group) if self.beside else (own,)


@dataclass(frozen=True)
class World:
    """What exists and is listed, and what the states say."""

    listed: tuple[Thing, ...]
    records: tuple[Record, ...]

    def tells(self, record: Record) -> tuple[bool, bool]:
        """Whether anything tells the account, and the region, of what an instance stands for: itself, or what else its
        provider configuration has made in its state."""
        place = (record.thing.account, record.thing.region)
        near = [
            other
            for other in self.records
            if other.state == record.state and (other.thing.account, other.thing.region) == place
        ]
        by_arn = any(other.beside or (other.arn and other.thing.arn) for other in near)
        region = any(other.region for other in near) or record.thing.region == "global"
        return by_arn or any(other.account for other in near), by_arn or region

    def can_be(self, record: Record, thing: Thing) -> bool:
        """Whether an instance can stand for a thing, by all that is told of it."""
        account, region = self.tells(record)
        own = record.thing
        return own.name == thing.name and (
            (not account or own.account == thing.account) and (not region or own.region == thing.region)
        )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A world of things of one type, some of one name."""
    kind = draw(st.sampled_from(KINDS))
    regions = ("global",) if CATALOG.types[kind].is_global else REGIONS
    things = st.builds(
        Thing, st.just(kind), st.sampled_from("ab"), st.sampled_from([ACCOUNT, OTHER_ACCOUNT]), st.sampled_from(regions)
    )
    flags = st.booleans()
    records = st.lists(st.tuples(things, flags, flags, flags, st.integers(0, 1), flags), max_size=5)
    made = [Record(thing, number, *rest) for number, (thing, *rest) in enumerate(draw(records))]
    return World(tuple(draw(st.lists(things, unique=True, max_size=6))), tuple(made))


def answers(world: World, *, again: bool = False, arn: bool = True) -> dict[Thing, str | None]:
    """What the index says of each thing that is listed: managed, open, or nothing."""
    index = StateIndex(CATALOG)
    for _ in range(2 if again else 1):
        for number in (0, 1):
            held_there = [one for record in world.records if record.state == number for one in record.instances]
            index.add(f"state-{number}", "default", state(*held_there))
        index.begin_reading()
    objects = {thing: thing.listed(arn=arn) for thing in world.listed}
    told: dict[Thing, str | None] = {
        thing: "managed" if index.match(found) else None for thing, found in objects.items()
    }
    for thing in [thing for thing, answer in told.items() if answer is None]:
        told[thing] = "managed" if index.alone(objects[thing]) else None
        if told[thing] is None and index.rivals(objects[thing]):
            told[thing] = "open"
    return told


@given(worlds(), st.booleans(), st.booleans())
def test_whatever_the_states_tell_no_thing_of_theirs_is_a_stray_and_no_stray_is_theirs_that_can_be_told_apart(
    world: World, again: bool, arn: bool
) -> None:
    for thing, answer in answers(world, again=again, arn=arn).items():
        own = [record for record in world.records if record.thing == thing]
        fitting = [record for record in world.records if world.can_be(record, thing)]
        several = [record for record in fitting if sum(world.can_be(record, other) for other in world.listed) > 1]
        told_apart = any(all(world.tells(record)) for record in own)
        if own:
            assert answer is not None
        if told_apart:
            assert answer == "managed"
        if answer == "managed" and not own:
            # Nobody could know: what the state means is not listed, and nothing else has the name.
            lone = [record for record in fitting if record not in several]
            assert any(record.thing not in world.listed for record in lone)
        if answer == "open":
            assert several and not told_apart
        if answer is None:
            assert not fitting


@given(worlds())
def test_what_exists_in_one_place_alone_is_never_left_open(world: World) -> None:
    one_of_each = {thing.name: thing for thing in world.listed}
    alone = replace(world, listed=tuple(one_of_each.values()))
    assert "open" not in answers(alone).values()


def test_of_one_name_in_two_places_the_place_decides_for_every_type_that_can_be_listed() -> None:
    """Each type, with every key that a person can choose, in two accounts, and in two regions where it has one."""
    tried = 0
    for kind in CATALOG:
        for key in [key for key in kind.keys if key != kind.arn_key and not kind.is_unique_anywhere(key)]:
            here = CloudObject(
                "aws", ACCOUNT, "global" if kind.is_global else "eu-west-1", kind.type, "x", "x", {key: "x"}
            )
            region = here.region if kind.is_global else "us-east-1"
            others = [replace(here, account=OTHER_ACCOUNT), replace(here, account=OTHER_ACCOUNT, region=region)]
            others += [] if kind.is_global else [replace(here, region=region)]
            told = index_of(held(f"{kind.type}.x", here, account=ACCOUNT, region="eu-west-1"))
            assert told.match(here), kind.type
            assert not any(told.match(other) or told.may_be_known(other) for other in others), kind.type
            untold = index_of(held(f"{kind.type}.x", here))
            assert not any(untold.match(found) for found in (here, *others)), kind.type
            assert not any(untold.alone(found) for found in (here, *others)), kind.type
            assert all(untold.rivals(found) for found in (here, *others)), kind.type
            tried += 1
    assert tried > 100


def test_an_arn_decides_by_whatever_name_the_type_has_it() -> None:
    for kind in (kind for kind in CATALOG if kind.arn_key):
        arn = f"arn:aws:x:eu-west-1:{ACCOUNT}:x"
        found = CloudObject("aws", ACCOUNT, "eu-west-1", kind.type, "x", "x", {kind.arn_key or "": arn})
        other = replace(
            found, account=OTHER_ACCOUNT, identity={kind.arn_key or "": arn.replace(ACCOUNT, OTHER_ACCOUNT)}
        )
        index = index_of(held(f"{kind.type}.x", found))
        assert index.match(found), kind.type
        assert index.match(other) is None and not index.may_be_known(other), kind.type


TOPIC = f"arn:aws:sns:us-east-1:{OTHER_ACCOUNT}:t"
ATTACHMENT = f"arn:aws:ec2:us-east-1:{OTHER_ACCOUNT}:transit-gateway-attachment/tgw-attach-1"


@pytest.mark.parametrize(
    "other",
    [
        held("aws_sns_topic_subscription.s", identity={"topic_arn": TOPIC, "arn": f"{TOPIC}:1234"}),
        held("aws_ec2_transit_gateway_vpc_attachment_accepter.a", identity={"arn": ATTACHMENT}),
        held("aws_sqs_queue.q", queue("q", account=OTHER_ACCOUNT), provider_key="aws.other"),
        held("aws_iam_role.shown", role("shown", account=OTHER_ACCOUNT), provider_key=""),
    ],
)
def test_what_can_be_in_another_account_does_not_tell_where_a_configuration_works(other: StateInstance) -> None:
    key = other.provider_key if not other.provider_key else "aws"
    policy = held("aws_iam_role_policy.p", identity={"id": "app:p"}, provider_key=key)
    found = CloudObject("aws", ACCOUNT, "global", policy.type, "app:p", "app:p", policy.identity)
    index = index_of(other, policy)
    assert index.match(found) is None
    assert index.alone(found)


def test_an_instance_that_moves_to_another_region_is_claimed_where_it_is_now() -> None:
    found = Thing("aws_cloudwatch_log_metric_filter", "a", ACCOUNT, "eu-west-1").listed()
    index = index_of(held(f"{found.type}.x", found, account=ACCOUNT, region="us-east-1"))
    index.begin_reading()
    index.add(*HERE, state(held(f"{found.type}.x", found, account=ACCOUNT, region="eu-west-1")))
    assert index.match(found)


def test_what_the_second_reading_tells_of_a_place_counts() -> None:
    found = Thing("aws_cloudwatch_log_metric_filter", "a", ACCOUNT, "eu-west-1").listed()
    instance = held(f"{found.type}.x", found)
    index = index_of(instance)
    assert index.match(found) is None
    index.begin_reading()
    index.add(*HERE, state(replace(instance, account=ACCOUNT, region="eu-west-1")))
    assert (len(index), index.match(found)) == (1, Claim(*HERE, f"{found.type}.x"))
    assert index.match(replace(found, region="us-east-1")) is None


@given(worlds())
def test_a_state_that_is_read_again_adds_nothing(world: World) -> None:
    index, sizes = StateIndex(CATALOG), []
    for _ in range(3):
        for number in (0, 1):
            held_there = [one for record in world.records if record.state == number for one in record.instances]
            index.add(f"state-{number}", "default", state(*held_there))
        sizes.append(len(index))
        index.begin_reading()
    assert sizes == [sum(len(record.instances) for record in world.records)] * 3


def test_keys_are_compared_as_the_service_compares_them() -> None:
    kind = replace(CATALOG.types["aws_iam_role"], folded={"name": "case-dot"})
    index = StateIndex(replace(CATALOG, types={**CATALOG.types, kind.type: kind}))
    index.add(*HERE, state(held("aws_iam_role.x", identity={"name": "Some.Name"}, account=ACCOUNT)))
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


def test_many_instances_in_doubt_cost_no_more_for_each_object_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    whole = Whereabouts.fit

    def counted(where: Whereabouts, account: str | None, region: str) -> Fit:
        nonlocal asked
        asked += 1
        return whole(where, account, region)

    def cost(count: int, **fields: Any) -> int:
        nonlocal asked
        index = index_of(*(held(f"aws_iam_role.x[{n}]", withheld=("arn",), **fields) for n in range(count)))
        asked = 0
        for number in range(count):
            index.doubt(role(f"stray-{number}"))
        return asked

    monkeypatch.setattr(Whereabouts, "fit", counted)
    for fields in ({}, {"identity": {"name": "other"}}):
        assert cost(300, **fields) <= 30 * cost(10, **fields)


def test_of_instances_in_doubt_those_that_have_their_object_count_no_more() -> None:
    held_there = [held(f"aws_iam_role.x[{n}]", identity={"name": f"r{n}"}, withheld=("arn",)) for n in range(3)]
    index = index_of(*held_there, held("aws_iam_role.beside", role("beside")))
    bare = CloudObject("aws", ACCOUNT, "global", "aws_iam_role", "z", "z", {"unique_id": "z"})
    for number in range(3):
        assert index.doubt(bare) == Claim(*HERE, f"aws_iam_role.x[{number}]")
        assert index.match(role(f"r{number}"))
    assert index.doubt(bare) is None


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


def test_what_the_second_reading_has_first_was_in_no_list_and_is_not_missing() -> None:
    index = index_of(held("aws_iam_role.gone", role("gone")))
    index.begin_reading()
    index.add(*HERE, state(held("aws_iam_role.gone", role("gone")), held("aws_iam_role.new", role("new"))))
    assert [lost.claim.address for lost in index.unlisted({ROLES})] == ["aws_iam_role.gone"]


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
