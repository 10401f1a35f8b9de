"""`tfguard catalog`: what is known, how it is told, and the policy that a scan needs."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from tfguard.cli.catalog import command
from tfguard.errors import UsageError
from tfguard.schemas.published import schemas


def run(*arguments: str) -> Result:
    """The command with these arguments."""
    return CliRunner().invoke(command, arguments, catch_exceptions=True)


def printed(*arguments: str) -> Any:
    """The JSON that it prints."""
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_list_tells_what_can_be_done_with_each_type() -> None:
    lines = run("list").output.splitlines()
    told = {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines}
    assert [line.split()[0] for line in lines] == sorted(told)
    assert told["aws_s3_bucket"] == ["global", "list, import, delete, stateful"]
    assert told["aws_security_group_rule"] == ["regional", "import, delete"]


def test_pattern_chooses_types_by_their_other_names_too() -> None:
    names = [line.split()[0] for line in run("list", "aws_default_vp*", "aws_iam_role").output.splitlines()]
    assert names == ["aws_iam_role", "aws_vpc", "aws_vpc_dhcp_options"]


def test_documents_are_as_their_schema_says() -> None:
    schema = schemas()["catalog.v1.schema.json"]
    for document in (printed("list", "--format", "json"), printed("show", "aws_vpc", "--format", "json")):
        jsonschema.validate(document, schema)
    (shown,) = printed("show", "aws_alb", "--format", "json")["types"]
    assert shown["type"] == "aws_lb"
    assert shown["also_called"] == ["aws_alb"]
    assert shown["actions"] == ["elasticloadbalancing:DescribeLoadBalancers", "elasticloadbalancing:DescribeTags"]


def test_show_tells_why_objects_are_ignored() -> None:
    output = run("show", "aws_default_network_acl").output
    assert "aws_network_acl" in output
    assert "default network ACL of its VPC" in output


def test_policy_is_a_document_for_iam() -> None:
    (statement,) = printed("policy", "aws_sqs_*", "--explain-with-cloudtrail")["Statement"]
    assert statement["Resource"] == "*"
    assert {"sqs:ListQueues", "sqs:GetQueueAttributes", "sqs:ListQueueTags"} <= {*statement["Action"]}
    assert {"sts:GetCallerIdentity", "cloudtrail:LookupEvents"} <= {*statement["Action"]}


def test_policy_of_google_types_is_a_custom_role() -> None:
    told = printed("policy", "google_pubsub_*", "--explain-with-cloudtrail")
    assert {"pubsub.topics.get", "cloudasset.assets.searchAllResources", "logging.logEntries.list"} <= {
        *told["includedPermissions"]
    }
    assert told["stage"] == "GA"


@pytest.mark.parametrize(
    ("name", "able"),
    [
        ("google_pubsub_topic", (True, True)),
        ("google_kms_key_ring", (True, False)),
        ("google_service_account_key", (False, True)),
        ("aws_iot_certificate", (False, True)),
    ],
)
def test_what_can_be_deleted_is_what_the_engine_or_a_call_deletes_and_nothing_forbids(
    name: str, able: tuple[bool, bool]
) -> None:
    (told,) = printed("show", name, "--format", "json")["types"]
    assert (told["import"], told["delete"]) == able
    assert ("delete" in run("show", name).output.splitlines()[2]) == able[1]
    assert bool(told["never_destroyed"]) != able[1]


def test_show_tells_what_is_never_destroyed() -> None:
    assert "not deleted   Cloud KMS keeps key rings for ever" in run("show", "google_kms_key_ring").output
    assert "not deleted" not in run("show", "google_pubsub_topic").output


def test_policy_without_a_type_is_for_all_types() -> None:
    (statement,) = printed("policy")["Statement"]
    assert {"s3:ListAllMyBuckets", "ec2:DescribeVpcs", "iam:ListRoles"} <= {*statement["Action"]}


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("list", "aws_nothing*"), "the pattern aws_nothing* matches no type of the catalogue"),
        (("show", "aws_nothing"), "the catalogue has no type aws_nothing"),
        (("policy", "aws_vpc", "aws_nothing"), "the pattern aws_nothing matches no type of the catalogue"),
        (("policy", "aws_security_group_rule"), "aws_security_group_rule cannot be listed"),
        (("policy", "aws_vpc", "google_compute_network"), "the types are of several clouds: aws, google"),
    ],
)
def test_type_that_is_not_known_is_a_mistake_and_no_empty_answer(arguments: tuple[str, ...], what: str) -> None:
    error = run(*arguments).exception
    assert isinstance(error, UsageError)
    assert error.what == what
