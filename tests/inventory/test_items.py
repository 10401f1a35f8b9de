"""From an item of an answer to an object."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.catalog.types import ResourceType
from tfguard.inventory.items import fill, holds, look_up, to_object, to_tags, to_time
from tfguard.model.inventory import Scope

HERE = Scope("aws", "123456789012", "eu-west-1")


def entry(name: str) -> ResourceType:
    found = load_catalog().get(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "answered",
    [
        datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
        datetime(2024, 1, 2, 5, 4, 5, tzinfo=timezone(timedelta(hours=2))),
        1704164645,
        1704164645000,
        "1704164645.0",
    ],
)
def test_time_comes_in_many_forms(answered: object) -> None:
    assert to_time(answered) == datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize("answered", [None, False, True, "soon", [], {}])
def test_what_is_no_time_is_none(answered: object) -> None:
    assert to_time(answered) is None


@pytest.mark.parametrize(
    "answered",
    [
        {"a": "b"},
        [{"Key": "a", "Value": "b"}],
        [{"key": "a", "value": "b"}],
        [{"TagKey": "a", "TagValue": "b"}],
    ],
)
def test_tags_come_in_many_forms(answered: object) -> None:
    assert to_tags(answered) == {"a": "b"}


def test_templates_are_filled_at_every_depth() -> None:
    assert fill({"Ids": ["{id}", 7], "Deep": {"Name": "x-{id}"}}, {"id": "i"}) == {
        "Ids": ["i", 7],
        "Deep": {"Name": "x-i"},
    }
    with pytest.raises(KeyError):
        fill("{nothing}", {})


def test_last_segment_is_the_name_in_a_url_or_an_arn() -> None:
    assert look_up("last_segment(@, '/')", "https://sqs/1/name.fifo") == "name.fifo"
    assert look_up("last_segment(TopicArn, ':')", {"TopicArn": "arn:aws:sns:r:1:name"}) == "name"
    assert look_up("last_segment(TopicArn, ':')", {}) is None


def test_condition_is_false_where_the_field_is_missing_or_empty() -> None:
    items: tuple[object, ...] = ({}, {"a": []}, {"a": False}, {"a": ""}, None)
    assert not any(holds("a", item) for item in items)
    assert holds("a", {"a": 0})


def test_arn_is_left_out_while_the_account_is_not_known() -> None:
    found = to_object(entry("aws_sqs_queue"), "http://h/123456789012/q", replace(HERE, account=None), "aws")
    assert found is not None
    assert (found.arn, found.name, found.import_id) == (None, "q", "http://h/123456789012/q")
    assert "arn" not in found.identity


def test_partition_is_part_of_the_arn() -> None:
    found = to_object(entry("aws_dynamodb_table"), "t", replace(HERE, region="cn-north-1"), "aws-cn")
    assert found is not None
    assert found.arn == "arn:aws-cn:dynamodb:cn-north-1:123456789012:table/t"


def test_item_without_an_id_is_no_object() -> None:
    assert to_object(entry("aws_vpc"), {"CidrBlock": "10.0.0.0/8"}, HERE, "aws") is None


def test_id_of_a_database_is_not_what_imports_it() -> None:
    item = {"DBInstanceIdentifier": "one", "DbiResourceId": "db-ABC", "DBInstanceArn": "arn:aws:rds:r:1:db:one"}
    found = to_object(entry("aws_db_instance"), item, HERE, "aws")
    assert found is not None
    assert (found.id, found.import_id) == ("db-ABC", "one")


def test_instance_is_as_old_as_its_first_interface() -> None:
    item = {
        "InstanceId": "i-1",
        "LaunchTime": datetime(2024, 5, 1, tzinfo=UTC),
        "NetworkInterfaces": [
            {"Attachment": {"DeviceIndex": 1, "AttachTime": datetime(2024, 2, 1, tzinfo=UTC)}},
            {"Attachment": {"DeviceIndex": 0, "AttachTime": datetime(2024, 1, 1, tzinfo=UTC)}},
        ],
    }
    found = to_object(entry("aws_instance"), item, HERE, "aws")
    assert found is not None
    assert found.created_at == datetime(2024, 1, 1, tzinfo=UTC)


def test_parameter_written_again_tells_no_creation_time() -> None:
    item = {"Name": "/a", "Version": 2, "LastModifiedDate": datetime(2024, 1, 1, tzinfo=UTC)}
    found = to_object(entry("aws_ssm_parameter"), item, HERE, "aws")
    assert found is not None
    assert found.created_at is None


@pytest.mark.parametrize(
    ("name", "item", "reason"),
    [
        ("aws_iam_role", {"RoleName": "r", "Path": "/aws-service-role/x/"}, "service-linked role"),
        ("aws_iam_role", {"RoleName": "AWSReservedSSO_a", "Path": "/"}, "made by IAM Identity Center"),
        ("aws_iam_role", {"RoleName": "r", "Path": "/service-role/"}, None),
        ("aws_vpc", {"VpcId": "v", "IsDefault": True}, "default VPC"),
        ("aws_vpc", {"VpcId": "v", "IsDefault": False}, None),
        ("aws_subnet", {"SubnetId": "s", "DefaultForAz": True}, "default subnet"),
        ("aws_security_group", {"GroupId": "g", "GroupName": "default"}, "default security group of its VPC"),
        ("aws_kms_key", {"KeyId": "k", "KeyManager": "AWS"}, "managed by AWS"),
        ("aws_kms_key", {"KeyId": "k", "KeyManager": "CUSTOMER"}, None),
        ("aws_secretsmanager_secret", {"ARN": "a", "OwningService": "rds"}, "made by the service that owns it"),
        ("aws_cloudwatch_log_group", {"logGroupName": "/aws/lambda/f"}, "made by Lambda at the first call"),
        ("aws_instance", {"InstanceId": "i", "Tags": [{"Key": "aws:autoscaling:groupName", "Value": "g"}]},
         "made by an Auto Scaling group"),
        ("aws_instance", {"InstanceId": "i", "Tags": [{"Key": "eks:nodegroup-name", "Value": "g"}]},
         "made by an EKS node group"),
        ("aws_instance", {"InstanceId": "i", "Tags": [{"Key": "aws:ec2launchtemplate:id", "Value": "t"}]}, None),
    ],
)  # fmt: skip
def test_what_nobody_made_with_terraform_is_marked(name: str, item: object, reason: str | None) -> None:
    found = to_object(entry(name), item, HERE, "aws")
    assert found is not None
    assert found.ignored_because == reason
