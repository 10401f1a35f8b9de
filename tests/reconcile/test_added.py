"""What somebody added to what a state has: a rule of a group, a volume of an instance, a route of a table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scene import ACCOUNT, AFTER, CATALOG, listing

from tfguard.engine.state import parse_state
from tfguard.inventory.items import to_object
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Verdict
from tfguard.model.inventory import CloudObject, Scope
from tfguard.reconcile import strays
from tfguard.reconcile.state_index import StateIndex
from tfguard.reconcile.verdicts import IgnoreRules, Judge, Makers

HERE = Scope("aws", ACCOUNT, "eu-west-1", "aws")
GROUP = "sg-1"
SSH = {"ip": "tcp", "from": 22, "to": 22, "CidrIpv4": "0.0.0.0/0"}
WEB = {"ip": "tcp", "from": 80, "to": 80, "CidrIpv4": "10.0.0.0/8"}
WEB_BLOCK = {"protocol": "tcp", "from_port": 80, "to_port": 80, "cidr_blocks": ["10.9.0.0/16", "10.0.0.0/8"]}
MARKED_INGRESS = [
    [{"type": "get_attr", "value": "ingress"}, {"type": "index", "value": {"value": 0, "type": "number"}}]
]


def instance(kind: str, attributes: dict[str, Any], marked: Any = ()) -> dict[str, Any]:
    """A resource of a state, with its one instance."""
    one = {"attributes": attributes, "sensitive_attributes": list(marked)}
    return {"mode": "managed", "type": kind, "name": "a", "provider": "", "instances": [one]}


def group(**rules: Any) -> dict[str, Any]:
    """A security group as the provider writes it into a state."""
    empty = {"cidr_blocks": [], "ipv6_cidr_blocks": [], "prefix_list_ids": [], "security_groups": [], "self": False}
    blocks = {name: [{**empty, **block} for block in rules.get(name, ())] for name in ("ingress", "egress")}
    return instance("aws_security_group", {"id": GROUP, "name": "web", **blocks}, rules.get("marked", ()))


def listed(kind: str, item: dict[str, Any]) -> CloudObject:
    """An item of a list as an object."""
    found = to_object(CATALOG.types[kind], item, HERE, "aws")
    assert found is not None
    return found


def rule(ip: str, egress: bool = False, **fields: Any) -> CloudObject:
    """A rule of the group, as the service lists it."""
    ports = {"FromPort": fields.pop("from", -1), "ToPort": fields.pop("to", -1)}
    item = {"SecurityGroupRuleId": "sgr-1", "GroupId": GROUP, "IsEgress": egress, "IpProtocol": ip, **ports, **fields}
    return listed(f"aws_vpc_security_group_{'egress' if egress else 'ingress'}_rule", item)


def judge(*resources: dict[str, Any]) -> Judge:
    """A judge that knows a state with these resources, and has listed nothing."""
    index = StateIndex(CATALOG)
    document = json.dumps({"version": 4, "lineage": "l", "serial": 1, "resources": resources})
    index.add("s3://state/a", "default", parse_state(document.encode(), "a", CATALOG))
    makers = Makers(CATALOG, index)
    for kind in ("aws_vpc_endpoint", "aws_security_group", "aws_route_table"):
        makers.note(listing(kind))
    return Judge(index, makers, IgnoreRules([], AFTER, CATALOG), {}, lambda _: False)


def is_added(found: CloudObject, *resources: dict[str, Any]) -> bool:
    """Whether an object is none of its maker's; else it counts as made by that one."""
    court = judge(*resources)
    ruling = court.at_once(found) or court.when_listed(found) or court.in_detail(found, explained=False)
    ruling = ruling or court.by_uncertain_maker(found)
    assert ruling is None or ruling.verdict is Verdict.IGNORED
    assert ruling is not None or court.added_to(found) is not None
    return ruling is None


@pytest.mark.parametrize(
    ("found", "block"),
    [
        (WEB, WEB_BLOCK),
        ({"ip": "-1", "CidrIpv4": "10.0.0.0/8"},
         {"protocol": "-1", "from_port": 0, "to_port": 0, "cidr_blocks": ["10.0.0.0/8"]}),
        ({"ip": "50", "CidrIpv4": "10.0.0.0/8"},
         {"protocol": "50", "from_port": 0, "to_port": 0, "cidr_blocks": ["10.0.0.0/8"]}),
        ({"ip": "icmp", "from": 8, "to": 0, "CidrIpv6": "::/0"},
         {"protocol": "icmp", "from_port": 8, "to_port": 0, "ipv6_cidr_blocks": ["::/0"]}),
        ({**WEB, "CidrIpv4": None, "PrefixListId": "pl-1"}, {**WEB_BLOCK, "prefix_list_ids": ["pl-1"]}),
        ({**WEB, "CidrIpv4": None, "ReferencedGroupInfo": {"GroupId": "sg-2", "UserId": ACCOUNT}},
         {**WEB_BLOCK, "security_groups": ["sg-2"]}),
        ({**WEB, "CidrIpv4": None, "ReferencedGroupInfo": {"GroupId": "sg-2", "UserId": "999999999999"}},
         {**WEB_BLOCK, "security_groups": ["999999999999/sg-2"]}),
        ({**WEB, "CidrIpv4": None, "ReferencedGroupInfo": {"GroupId": GROUP, "UserId": ACCOUNT}},
         {**WEB_BLOCK, "self": True}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", ["ingress", "egress"])
def test_a_rule_that_the_groups_state_has_is_its_own_and_every_other_one_was_added(
    found: dict[str, Any], block: dict[str, Any], way: str
) -> None:
    fields = {key: value for key, value in found.items() if value is not None}
    one = rule(egress=way == "egress", **fields)
    assert not is_added(one, group(**{way: [block]}))
    assert is_added(one, group(**{way: [{**block, "protocol": "udp", "from_port": 9}]}))
    other = "ingress" if way == "egress" else "egress"
    assert is_added(one, group(**{other: [block]}))
    assert is_added(rule(egress=way == "egress", **SSH), group(**{way: [block]}))


def test_no_rule_is_made_of_parts_of_two() -> None:
    blocks = [WEB_BLOCK, {**WEB_BLOCK, "from_port": 22, "to_port": 22, "cidr_blocks": ["10.2.0.0/16"]}]
    assert not is_added(rule(**{**SSH, "CidrIpv4": "10.2.0.0/16"}), group(ingress=blocks))
    assert is_added(rule(**{**SSH, "CidrIpv4": "10.0.0.0/8"}), group(ingress=blocks))


def test_that_a_rule_in_a_state_is_not_for_its_own_group_names_no_rule() -> None:
    """A state says `self = false` of each of the others."""
    assert is_added(rule(**{**WEB, "CidrIpv4": "0.0.0.0/0"}), group(ingress=[WEB_BLOCK]))


def test_of_a_group_of_which_no_state_tells_any_rule_each_may_be_its_own() -> None:
    assert not is_added(rule(**SSH), group())


def test_what_a_state_marks_is_not_told_and_nothing_follows_from_it() -> None:
    assert not is_added(rule(**SSH), group(ingress=[WEB_BLOCK], marked=MARKED_INGRESS))


def test_a_rule_resource_tells_of_its_group_in_whatever_state_it_is() -> None:
    own = {"id": "sgr-9", "security_group_rule_id": "sgr-9", "security_group_id": GROUP, "ip_protocol": "tcp"}
    assert is_added(rule(**SSH), group(), instance("aws_vpc_security_group_ingress_rule", own))
    old = {"id": "sgrule-1", "security_group_id": GROUP, "type": "ingress", **WEB_BLOCK, "self": False}
    several = instance("aws_security_group_rule", old)
    assert is_added(rule(**SSH), group(), several)
    assert not is_added(rule(**WEB), group(), several)  # one of the several that have no id there


def test_a_volume_that_an_instances_state_does_not_have_was_attached_later() -> None:
    volume = listed("aws_ebs_volume", {"VolumeId": "vol-9", "Attachments": [{"InstanceId": "i-1"}]})
    root = {"root_block_device": [{"volume_id": "vol-1"}]}
    assert is_added(volume, instance("aws_instance", {"id": "i-1", **root}))
    assert not is_added(volume, instance("aws_instance", {"id": "i-1"}))  # it tells of no volume at all
    launched = {"VolumeId": "vol-9", "Attachments": [{"InstanceId": "i-1", "DeleteOnTermination": True}]}
    assert not is_added(listed("aws_ebs_volume", launched), instance("aws_instance", {"id": "i-1", **root}))


def test_a_route_that_its_tables_state_does_not_have_was_added() -> None:
    table = {"id": "rtb-1", "route": [{"cidr_block": "10.0.0.0/8", "ipv6_cidr_block": ""}]}
    item = {"RouteTableId": "rtb-1", "Origin": "CreateRoute", "GatewayId": "igw-1"}
    assert not is_added(
        listed("aws_route", item | {"DestinationCidrBlock": "10.0.0.0/8"}), instance("aws_route_table", table)
    )
    assert is_added(
        listed("aws_route", item | {"DestinationCidrBlock": "10.1.0.0/16"}), instance("aws_route_table", table)
    )


def test_a_gateway_endpoints_route_stands_in_no_table_and_is_none_that_was_added() -> None:
    table = instance("aws_route_table", {"id": "rtb-1", "route": [{"cidr_block": "10.0.0.0/8"}]})
    item = {"RouteTableId": "rtb-1", "Origin": "CreateRoute", "GatewayId": "vpce-1", "DestinationPrefixListId": "pl-1"}
    court = judge(table, instance("aws_vpc_endpoint", {"id": "vpce-1"}))
    ruling = court.when_listed(listed("aws_route", item))
    assert ruling is not None and ruling.rule == "child: made by its gateway endpoint"


def test_what_is_known_by_its_looks_alone_is_only_possibly_unmanaged() -> None:
    court = judge(
        group(ingress=[WEB_BLOCK]), instance("aws_instance", {"id": "i-1", "root_block_device": [{"volume_id": "v"}]})
    )
    volume = listed("aws_ebs_volume", {"VolumeId": "vol-9", "Attachments": [{"InstanceId": "i-1"}]})
    told = [strays.unmanaged(one, 1, (), (), court.added_to(one)) for one in (rule(**SSH), volume)]
    assert [one.confidence for one in told] == [Confidence.POSSIBLE, Confidence.CERTAIN]
    assert "aws_security_group sg-1" in str(told[0].evidence)
