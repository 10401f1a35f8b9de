"""Objects of many types that a scan finds: kept for a time, then deleted, as another client sees it.

`TFGUARD_SETTLE=all` takes all the types; a plain run takes a few, for the engine needs seconds for each.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from helpers import Json, Run, StackFactory, settings

from fixtures.aws_sim import MotoServer
from fixtures.labelled.states import state_v4
from tests.contract.aws_creators import CREATORS, REGION, Cloud

pytestmark = pytest.mark.e2e

ALL = (
    *("aws_cloudwatch_event_rule", "aws_cloudwatch_log_group", "aws_cloudwatch_metric_alarm", "aws_dynamodb_table"),
    *("aws_ebs_volume", "aws_ecr_repository", "aws_ecs_cluster", "aws_efs_file_system", "aws_eip", "aws_iam_group"),
    *("aws_iam_instance_profile", "aws_iam_openid_connect_provider", "aws_iam_policy", "aws_iam_role", "aws_iam_user"),
    *("aws_internet_gateway", "aws_key_pair", "aws_kinesis_stream", "aws_launch_template", "aws_network_acl"),
    *("aws_route53_zone", "aws_route_table", "aws_s3_bucket", "aws_security_group", "aws_sns_topic", "aws_sqs_queue"),
    *("aws_ssm_parameter", "aws_subnet", "aws_vpc", "aws_secretsmanager_secret"),
)
FEW = ("aws_iam_role", "aws_sqs_queue", "aws_subnet", "aws_vpc")
TYPES = ALL if os.environ.get("TFGUARD_SETTLE") == "all" else FEW


@pytest.fixture
def stack(moto: MotoServer, stack_factory: StackFactory) -> Path:
    """A stack without resources, in an account with an object of each type."""
    for name in TYPES:
        CREATORS[name](Cloud(moto.url))
    made = settings(stack_factory("", region=REGION), consistency_grace="1s", owner="audit")
    (made / "terraform.tfstate").write_bytes(state_v4([], "settled"))
    return made


def scanned(tfguard: Run, stack: Path) -> dict[str, Json]:
    """What a scan of these types tells of stray objects, by finding id; kept in a file as well."""
    kinds = [word for name in TYPES for word in ("--type", name)]
    words = ("scan", ".", *kinds, "--region", REGION, "--state-file", "kept.json", "--format", "json")
    done = tfguard(*words, cwd=stack)
    assert done.returncode in (0, 2, 3), done.stderr
    found = json.loads(done.stdout)
    return {one["id"]: one for one in found["findings"] if one["verdict"] in ("unmanaged", "orphaned")}


def destroy(tfguard: Run, stack: Path, findings: list[Json]) -> CompletedProcess[str]:
    """Delete the objects of these findings, each by its name."""
    names = [word for one in findings for word in ("--confirm", one["object"]["name"] or one["object"]["import_id"])]
    words = ("--yes", *names, "--stateful", "--max", str(len(findings)), "--findings", "kept.json")
    return tfguard("orphans", "destroy", *(one["id"] for one in findings), *words, cwd=stack, timeout=1800)


def test_what_a_scan_finds_is_kept_and_then_deleted(stack: Path, tfguard: Run, moto: MotoServer) -> None:
    found = scanned(tfguard, stack)
    assert {one["object"]["type"] for one in found.values()} == set(TYPES)
    kept = tfguard(
        "orphans", "retain", *found, "--for", "1d", "--reason", "later", "--findings", "kept.json", cwd=stack
    )
    assert kept.returncode == 0, kept.stderr
    assert scanned(tfguard, stack) == {}
    listed = json.loads(tfguard("orphans", "list", "--retained", "--format", "json", cwd=stack).stdout)["retained"]
    assert {one["decision"]["finding_id"] for one in listed} == set(found)
    released = tfguard("orphans", "release", *found, "--reason", "not needed", cwd=stack)
    assert released.returncode == 0, released.stderr
    assert scanned(tfguard, stack).keys() == found.keys()

    rest = [one for one in found.values() if not one["object"]["stateful"]]
    with_data = [one for one in found.values() if one["object"]["stateful"]]
    for group in (rest, *([one] for one in with_data)):
        done = destroy(tfguard, stack, group)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("verified to be gone") == len(group), done.stdout
    assert scanned(tfguard, stack) == {}
    assert [
        one["VpcId"] for one in moto.client("ec2", region=REGION).describe_vpcs()["Vpcs"] if not one["IsDefault"]
    ] == []
    assert moto.client("iam").list_roles()["Roles"] == []
