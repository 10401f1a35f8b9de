"""From an item of an answer to an object."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tfguard.catalog.loader import load_catalog, read_types
from tfguard.catalog.types import ResourceType
from tfguard.inventory.items import as_parent, fill, holds, look_up, to_object, to_tags, to_time
from tfguard.model.inventory import CloudObject, MadeBy, Scope

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


@pytest.mark.parametrize("answered", [None, False, True, "soon", "long-ago", [], {}])
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


def test_segment_counts_from_either_end_and_is_nothing_outside() -> None:
    arn = {"Arn": "arn:aws:ecs:r:1:service/c/s"}
    assert look_up("segment(Arn, ':', `3`)", arn) == "r"
    assert look_up("segment(Arn, '/', `-2`)", arn) == "c"
    assert [look_up(f"segment(Arn, '/', `{n}`)", arn) for n in (3, -4)] == [None, None]
    assert look_up("segment(Arn, ':', `3`)", {"Arn": "arn:aws:s3:::b"}) is None
    assert look_up("segment(Arn, ':', `3`)", {}) is None


def test_lower_is_the_text_in_small_letters() -> None:
    assert look_up("lower(Name)", {"Name": "A.b"}) == "a.b"


def test_id_of_a_route_is_made_of_the_checksum_of_its_destination() -> None:
    assert look_up("to_string(crc32(@))", "0.0.0.0/0") == "1080289494"


def test_plain_path_leads_nowhere_through_what_is_no_mapping() -> None:
    assert look_up("A.B", {"A": {"B": "c"}}) == "c"
    for item in ({"A": ["B"]}, {"A": "B"}, {"A": None}, "A", None, []):
        assert look_up("A.B", item) is None


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
        ("aws_cloudwatch_log_group", {"logGroupName": "/aws/sagemaker/Endpoints/f"}, "made by SageMaker"),
        ("aws_instance", {"InstanceId": "i", "Tags": [{"Key": "aws:autoscaling:groupName", "Value": "g"}]},
         "made by an Auto Scaling group"),
        ("aws_instance", {"InstanceId": "i", "Tags": [{"Key": "aws:ec2launchtemplate:id", "Value": "t"}]}, None),
    ],
)  # fmt: skip
def test_what_nobody_made_with_terraform_is_marked(name: str, item: object, reason: str | None) -> None:
    found = to_object(entry(name), item, HERE, "aws")
    assert found is not None
    assert found.ignored_because == reason


OF_A_BOX = """
cloud: aws
types:
  aws_thing:
    service: thing
    scope: regional
    list: {operation: list_things, result: "Things[]", per: {type: aws_box, arguments: {Box: "{name}"}}}
    keys: {arn: "{id}/arn", id: "{box}/{name}", name: Name}
    traits: {box: "{parent_name}"}
    id: "{id}"
    import_id: "{parent_arn}|{name}"
    owner: OwnerId
    made_by:
      - {type: aws_box, attribute: box, parent_attribute: name, when: Automatic, reason: made by its box}
      - {type: aws_bag, value: "Bag.Id", parent_attribute: id, reason: of its bag, certain: false}
"""


def of_a_box(item: object) -> CloudObject:
    """A thing that was listed for a box."""
    box = CloudObject("aws", HERE.account, HERE.region, "aws_box", "b-1", "b-1", {"name": "box"}, arn="arn:b")
    kind = read_types("x.yaml", OF_A_BOX).get("aws_thing")
    assert kind is not None
    found = to_object(kind, item, HERE, "aws", as_parent(box))
    assert found is not None
    return found


def test_values_of_the_parent_and_templates_of_templates_are_filled_in() -> None:
    found = of_a_box({"Name": "n"})
    assert found.identity == {"arn": "box/n/arn", "id": "box/n", "name": "n", "box": "box"}
    assert (found.id, found.import_id, found.owner) == ("box/n", "arn:b|n", None)


def test_makers_are_named_where_the_item_tells_of_them() -> None:
    by_box = MadeBy("aws_box", "name", "box", "made by its box")
    by_bag = MadeBy("aws_bag", "id", "bag-1", "of its bag", certain=False)
    assert of_a_box({"Name": "n"}).made_by == ()
    assert of_a_box({"Name": "n", "Automatic": True}).made_by == (by_box,)
    assert of_a_box({"Name": "n", "Bag": {"Id": "bag-1"}}).made_by == (by_bag,)
    assert of_a_box({"Name": "n", "OwnerId": "999999999999"}).owner == "999999999999"
