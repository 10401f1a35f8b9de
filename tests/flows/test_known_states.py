"""Whether a state has an object already, for types of every kind of key, and objects that a list or a record tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.loader import load_catalog
from tfguard.engine.identities import identity_of, place_of
from tfguard.engine.owned import owned_by
from tfguard.errors import UsageError
from tfguard.flows import known_states
from tfguard.flows.known_states import is_this_object, refuse_if_held, refuse_if_known, types_in
from tfguard.inventory.items import to_object
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject, Scope
from tfguard.model.state import EMPTY_STATE, StateInstance

CATALOG = load_catalog()
ACCOUNT, REGION = "123456789012", "eu-west-1"


@dataclass(frozen=True)
class Case:
    """A type, what a state has of an object of it, and the item by which its list tells the object."""

    type: str
    attributes: Mapping[str, object]
    item: Mapping[str, object]
    parent: Mapping[str, str] | None = None
    listed_as: str = ""

    @property
    def held(self) -> StateInstance:
        """The object as a state has it."""
        account, region = place_of(CATALOG, self.type, self.attributes, False)
        return StateInstance(
            f"{self.type}.x",
            self.type,
            "registry.terraform.io/hashicorp/aws",
            "aws",
            identity_of(CATALOG, self.type, self.attributes, False, frozenset()),
            owned=owned_by(CATALOG, self.type, self.attributes, False, frozenset()),
            account=account,
            region=region,
        )

    @property
    def listed(self) -> CloudObject:
        """The object as a list tells it."""
        kind = CATALOG.get(self.listed_as or self.type)
        assert kind is not None
        scope = Scope("aws", ACCOUNT, "global" if kind.is_global else REGION, "aws")
        found = to_object(kind, self.item, scope, "aws", self.parent or {})
        assert found is not None
        return found

    def __str__(self) -> str:
        return self.type


LB = f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}:loadbalancer/app/web/50dc6c495c0c9188"
CASES = (
    Case("aws_iam_role", {"id": "app", "name": "app"}, {"RoleName": "app", "Arn": f"arn:aws:iam::{ACCOUNT}:role/app"}),
    Case(
        "aws_route53_record",
        {"id": "Z1_www.example.com_A", "zone_id": "Z1", "name": "www", "fqdn": "www.example.com", "type": "A"},
        {"Name": "www.example.com.", "Type": "A"},
        {"parent_zone_id": "Z1"},
    ),
    Case(
        "aws_route_table_association",
        {"id": "rtbassoc-1", "subnet_id": "subnet-1", "route_table_id": "rtb-1", "gateway_id": ""},
        {"RouteTableAssociationId": "rtbassoc-1", "SubnetId": "subnet-1", "RouteTableId": "rtb-1"},
    ),
    Case(
        "aws_cognito_user_pool_client",
        {"id": "client1", "user_pool_id": "eu_1", "name": "web"},
        {"ClientId": "client1", "UserPoolId": "eu_1", "ClientName": "web"},
    ),
    Case("aws_alb", {"id": LB, "arn": LB, "name": "web"}, {"LoadBalancerArn": LB, "Type": "application"}, {}, "aws_lb"),
)


def finding(found: CloudObject) -> Finding:
    return Finding(found.finding_id, Verdict.ORPHANED, Confidence.CERTAIN, None, None, found)


def as_recorded(found: CloudObject) -> CloudObject:
    """The object as a record tells it, which keeps ids alone."""
    return replace(found, identity={}, tags={})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_object_in_a_state_is_known_as_a_list_and_as_a_record_tell_it(case: Case) -> None:
    for found in (case.listed, as_recorded(case.listed)):
        assert is_this_object(CATALOG, case.held, found)
        state = replace(EMPTY_STATE, instances=(case.held,))
        refuse_if_held(CATALOG, state, case.held.address, finding(found))
        assert CATALOG.canonical(found.type) in types_in(CATALOG, state)
        with pytest.raises(UsageError, match=rf"managed already: the state other has it at {case.type}\.x"):
            refuse_if_known(CATALOG, state, "other", finding(found))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_another_object_of_the_type_is_not_taken_for_it(case: Case) -> None:
    other = {name: f"{value}2" for name, value in case.item.items()} | {"Type": case.item.get("Type", "")}
    elsewhere = replace(case, item=other).listed
    for found in (elsewhere, as_recorded(elsewhere)):
        assert not is_this_object(CATALOG, case.held, found)
        refuse_if_known(CATALOG, replace(EMPTY_STATE, instances=(case.held,)), "other", finding(found))
        with pytest.raises(UsageError, match="a second object for one address"):
            refuse_if_held(CATALOG, replace(EMPTY_STATE, instances=(case.held,)), case.held.address, finding(found))


def test_an_object_is_compared_with_those_of_its_own_type_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The more so since each child of what is deleted is looked for in each state."""
    role, balancer = CASES[0], CASES[-1]
    many = [replace(role.held, address=f"aws_iam_role.x[{number}]") for number in range(100)]
    state = replace(EMPTY_STATE, instances=(*many, balancer.held))
    compared: list[str] = []

    def compares(catalog: Catalog, held: StateInstance, found: CloudObject) -> bool:
        compared.append(held.address)
        return is_this_object(catalog, held, found)

    monkeypatch.setattr(known_states, "is_this_object", compares)
    for found in (balancer.listed, as_recorded(balancer.listed)):
        assert known_states.is_held(CATALOG, state, found)
        with pytest.raises(UsageError, match="managed already"):
            refuse_if_known(CATALOG, state, "other", finding(found))
    assert set(compared) == {balancer.held.address}


def test_a_rule_that_the_older_resource_holds_is_known_by_its_own_id() -> None:
    rule = Case(
        "aws_security_group_rule",
        {"id": "sgrule-1", "security_group_rule_id": "sgr-1", "security_group_id": "sg-1", "type": "ingress"},
        {"SecurityGroupRuleId": "sgr-1", "GroupId": "sg-1", "IpProtocol": "-1"},
        {},
        "aws_vpc_security_group_ingress_rule",
    )
    state = replace(EMPTY_STATE, instances=(rule.held,))
    assert "aws_vpc_security_group_ingress_rule" in types_in(CATALOG, state)
    with pytest.raises(UsageError, match="managed already"):
        refuse_if_known(CATALOG, state, "other", finding(rule.listed))
    other = replace(rule, item={**rule.item, "SecurityGroupRuleId": "sgr-2"})
    refuse_if_known(CATALOG, state, "other", finding(other.listed))


@pytest.mark.parametrize("changes", [{"account": "999999999999"}, {"region": "us-east-1"}])
def test_equal_names_in_another_account_or_region_are_another_object(changes: dict[str, str]) -> None:
    group = Case(
        "aws_cloudwatch_log_group",
        {"id": "app", "name": "app", "arn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:app"},
        {"logGroupName": "app", "arn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:app:*"},
    )
    assert is_this_object(CATALOG, group.held, group.listed)
    for found in (group.listed, as_recorded(group.listed)):
        there = replace(found, arn=None, identity={k: v for k, v in found.identity.items() if k != "arn"}, **changes)
        assert not is_this_object(CATALOG, group.held, there)
    told = replace(group.held, identity={"name": "app"}, account=ACCOUNT, region=REGION)
    assert not is_this_object(CATALOG, told, replace(as_recorded(group.listed), arn=None, **changes))
