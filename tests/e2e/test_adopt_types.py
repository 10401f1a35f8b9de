"""Objects of many types that no configuration knows: adopted in one run with drafted configuration, and planned clean.

`TFGUARD_SETTLE=all` takes all the types; a plain run takes a few, for the engine needs seconds for each.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from helpers import Run, StackFactory, settings, state_attribute

from fixtures.aws_sim import MotoServer
from fixtures.labelled.states import state_v4
from tests.contract.aws_creators import CREATORS, REGION, Cloud

pytestmark = pytest.mark.e2e

ALL = (
    *("aws_autoscaling_group", "aws_cloudfront_origin_access_control", "aws_cloudwatch_event_rule"),
    *("aws_cloudwatch_log_group", "aws_cloudwatch_metric_alarm", "aws_db_instance", "aws_dynamodb_table"),
    *("aws_ebs_volume", "aws_ecr_repository", "aws_ecs_cluster", "aws_efs_file_system", "aws_eip", "aws_iam_group"),
    *("aws_iam_instance_profile", "aws_iam_openid_connect_provider", "aws_iam_policy", "aws_iam_role", "aws_iam_user"),
    *("aws_instance", "aws_internet_gateway", "aws_kinesis_stream", "aws_launch_template", "aws_network_acl"),
    *("aws_route53_zone", "aws_route_table", "aws_s3_bucket", "aws_secretsmanager_secret", "aws_security_group"),
    *("aws_sns_topic", "aws_sqs_queue", "aws_ssm_parameter", "aws_subnet", "aws_vpc"),
)
# Each of these has something that is not plain: a default of the provider's, two names for one thing, a value that is
# read in another form than it is written, one that cannot be read, or a flag that an import sets.
FEW = (
    *("aws_autoscaling_group", "aws_db_instance", "aws_iam_openid_connect_provider", "aws_route53_zone"),
    *("aws_secretsmanager_secret", "aws_ssm_parameter", "aws_subnet"),
)
LEFT = {
    "aws_key_pair": ("the provider wants the public key and cannot read it", '"public_key" is required'),
    "aws_kms_key": ("the simulation tells of no key usage, which AWS does", "key_usage"),
    "aws_lambda_function": ("the provider wants the code and cannot read it", "`filename,image_uri,s3_bucket`"),
}
"""Types that cannot be drafted: why, and what is told of it."""

EVERYTHING = os.environ.get("TFGUARD_SETTLE") == "all"
TYPES = ALL if EVERYTHING else FEW
NOT = LEFT if EVERYTHING else {"aws_key_pair": LEFT["aws_key_pair"]}
SECRET = {"TF_VAR_one_value": "x"}


@pytest.fixture
def stack(moto: MotoServer, stack_factory: StackFactory) -> Path:
    """A stack without resources, in an account with an object of each type."""
    for name in (*TYPES, *NOT):
        made = CREATORS[name](Cloud(moto.url))
        if name == "aws_sqs_queue":
            # The simulation has queues for a megabyte, as AWS by now; providers of this version take no such value.
            size = {"MaximumMessageSize": "262144"}
            moto.client("sqs", region=REGION).set_queue_attributes(QueueUrl=made[0], Attributes=size)
    folder = settings(stack_factory("", region=REGION), consistency_grace="1s")
    (folder / "terraform.tfstate").write_bytes(state_v4([], "adopted"))
    return folder


def test_one_run_adopts_objects_of_many_types_and_a_plan_finds_nothing_to_do(
    stack: Path, tfguard: Run, tf: Run
) -> None:
    kinds = [word for name in (*TYPES, *NOT) for word in ("--type", name)]
    words = ("scan", ".", *kinds, "--region", REGION, "--state-file", "kept.json", "--format", "json")
    looked = tfguard(*words, cwd=stack)
    assert looked.returncode == 2, looked.stdout + looked.stderr
    found = {one["id"]: one["object"]["type"] for one in json.loads(looked.stdout)["findings"]}
    assert set(found.values()) == {*TYPES, *NOT}

    adopt = ("orphans", "import", *found, "--findings", "kept.json", "--yes", "--allow-update")
    done = tfguard(*adopt, cwd=stack, env=SECRET, timeout=900)
    assert done.returncode == 1, done.stdout + done.stderr
    told = done.stderr.splitlines()
    for finding, kind in found.items():
        if kind in NOT:
            (why,) = [line for line in told if f"{finding} was not adopted" in line]
            assert NOT[kind][1] in why
        else:
            assert any(f"{finding} was adopted: {kind}." in line for line in told), done.stderr

    planned = tf("plan", "-detailed-exitcode", "-input=false", cwd=stack, env=SECRET, check=False, timeout=900)
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "No changes" in planned.stdout
    held = {one["type"] for one in json.loads((stack / "terraform.tfstate").read_text())["resources"]}
    assert held == set(TYPES)
    # An import alone would have left these so that a deletion leaves neither a snapshot nor time to think.
    assert state_attribute(stack, "aws_db_instance.one", "skip_final_snapshot") is False
    assert state_attribute(stack, "aws_secretsmanager_secret.one", "recovery_window_in_days") == 30
    left = json.loads(tfguard(*words, cwd=stack).stdout)["findings"]
    assert {one["object"]["type"] for one in left} == set(NOT)
