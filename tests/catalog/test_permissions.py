"""Which permissions a scan needs: the actions of the calls that the catalogue makes, and none that changes anything."""

from __future__ import annotations

import re

import botocore.session
import pytest

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.loader import load_catalog
from tfguard.catalog.permissions import actions_of, api_name, policy, role
from tfguard.catalog.types import ResourceType


def entry(name: str) -> ResourceType:
    """An entry of the catalogue."""
    found = load_catalog().get(name)
    assert found is not None
    return found


def actions(*names: str, cloudtrail: bool = False) -> list[str]:
    """The actions of the one statement of a policy for these types."""
    document = policy(load_catalog(), [entry(name) for name in names], cloudtrail=cloudtrail)
    assert document["Version"] == "2012-10-17"
    statements = document["Statement"]
    assert isinstance(statements, list)
    (statement,) = statements
    assert (statement["Effect"], statement["Resource"]) == ("Allow", "*")
    return list(statement["Action"])


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("list_roles", "ListRoles"),
        ("describe_db_instances", "DescribeDBInstances"),
        ("describe_vpcs", "DescribeVpcs"),
        ("list_tags_of_resource", "ListTagsOfResource"),
    ],
)
def test_methods_of_the_sdk_are_named_as_the_service_does(operation: str, name: str) -> None:
    assert api_name(operation) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aws_vpc", {"ec2:DescribeVpcs"}),
        ("aws_iam_role", {"iam:ListRoles", "iam:ListRoleTags"}),
        ("aws_kms_key", {"kms:ListKeys", "kms:DescribeKey", "kms:ListResourceTags"}),
        ("aws_s3_bucket", {"s3:ListAllMyBuckets", "s3:GetBucketTagging"}),
        ("aws_lb", {"elasticloadbalancing:DescribeLoadBalancers", "elasticloadbalancing:DescribeTags"}),
        ("aws_db_instance", {"rds:DescribeDBInstances"}),
        ("aws_network_acl", {"ec2:DescribeNetworkAcls"}),
    ],
)
def test_actions_are_those_of_the_service_authorization_reference(name: str, expected: set[str]) -> None:
    assert actions_of(load_catalog(), entry(name)) == expected


def test_a_type_that_is_listed_for_each_parent_needs_the_parents_list_too() -> None:
    assert actions_of(load_catalog(), entry("aws_lb_listener_rule")) == {
        f"elasticloadbalancing:{name}"
        for name in ("DescribeLoadBalancers", "DescribeListeners", "DescribeRules", "DescribeTags")
    }


def test_policy_is_sorted_and_lets_the_scan_learn_whose_account_it_is() -> None:
    assert actions("aws_vpc", "aws_eip", "aws_vpc") == [
        "ec2:DescribeAddresses",
        "ec2:DescribeVpcs",
        "sts:GetCallerIdentity",
    ]


def test_cloudtrail_is_asked_only_where_that_is_wanted() -> None:
    assert "cloudtrail:LookupEvents" not in actions("aws_vpc")
    assert "cloudtrail:LookupEvents" in actions("aws_vpc", cloudtrail=True)


def test_role_of_google_has_the_search_the_services_own_questions_and_what_parents_need() -> None:
    assert actions_of(load_catalog(), entry("google_compute_network")) == {
        "cloudasset.assets.searchAllResources",
        "compute.networks.get",
    }
    told = role(load_catalog(), [entry("google_sql_database")])["includedPermissions"]
    assert isinstance(told, list)
    assert told == sorted(
        [
            "cloudasset.assets.searchAllResources",
            "cloudsql.databases.list",
            "cloudsql.instances.get",
            *(f"resourcemanager.{name}.{verb}" for name in ("folders", "projects") for verb in ("get", "list")),
        ]
    )
    logged = role(load_catalog(), [entry("google_sql_database")], audit_log=True)["includedPermissions"]
    assert isinstance(logged, list)
    assert {*logged} - {*told} == {"logging.logEntries.list"}


def test_no_action_changes_anything() -> None:
    catalog = load_catalog()
    reads = re.compile(
        r"[a-z0-9-]+:(Describe|List|Get|View|GET$|Lookup|BatchGet|Search)"
        r"|[a-z]+\.\w+\.(get|list|listTagBindings|searchAllResources)$"
    )
    every = {action for one in catalog for action in actions_of(catalog, one)}
    assert [action for action in sorted(every) if not reads.match(action)] == []


def test_operations_are_called_as_in_the_models_of_the_sdk() -> None:
    catalog: Catalog = load_catalog()
    session = botocore.session.get_session()
    wrong = []
    for one in catalog:
        if one.cloud == "aws" and one.list is not None and not one.permissions:
            known = session.get_service_model(one.service).operation_names
            own = {f"{catalog.action_prefix.get(one.service, one.service)}:{name}" for name in known}
            parent = catalog.get(one.list.per.type) if one.list.per else None
            allowed = own | (actions_of(catalog, parent) if parent else frozenset())
            wrong.extend(sorted(actions_of(catalog, one) - allowed))
    assert wrong == []
