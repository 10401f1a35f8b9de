"""Objects of many types that a scan finds: kept till a date that passes, then deleted, as another client sees it.

`TFGUARD_SETTLE=all` takes all the types; a plain run takes a few, for the engine needs seconds for each.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from botocore.exceptions import ClientError
from helpers import Json, Run, StackFactory, settings

from fixtures.aws_sim import MotoServer
from fixtures.labelled.states import state_v4
from tests.contract.aws_creators import CREATORS, REGION, Cloud
from tfguard.catalog.loader import load_catalog

pytestmark = pytest.mark.e2e

ALL = (
    *("aws_cloudwatch_event_rule", "aws_cloudwatch_log_group", "aws_cloudwatch_metric_alarm", "aws_dynamodb_table"),
    *("aws_ebs_volume", "aws_ecr_repository", "aws_ecs_cluster", "aws_efs_file_system", "aws_eip", "aws_iam_group"),
    *("aws_iam_instance_profile", "aws_iam_openid_connect_provider", "aws_iam_policy", "aws_iam_role", "aws_iam_user"),
    *("aws_internet_gateway", "aws_key_pair", "aws_kinesis_stream", "aws_launch_template", "aws_network_acl"),
    *("aws_route53_zone", "aws_route_table", "aws_s3_bucket", "aws_security_group", "aws_sns_topic", "aws_sqs_queue"),
    *("aws_ssm_parameter", "aws_subnet", "aws_vpc", "aws_secretsmanager_secret"),
    # Of these the import takes an id that is made of several. (A rule of a security group is no stray by a scan alone:
    # it may be its group's own.)
    *("aws_cognito_user_pool_client", "aws_route53_record", "aws_route_table_association"),
)
FEW = ("aws_cognito_user_pool_client", "aws_iam_role", "aws_subnet", "aws_vpc")
TYPES = ALL if os.environ.get("TFGUARD_SETTLE") == "all" else FEW
CATALOG = load_catalog()
# What a plain list call does not tell: objects that are listed for each of another, and those that only wait.
ASKED: dict[str, Callable[[Any, str], Any]] = {
    "aws_cloudwatch_event_rule": lambda events, name: events.list_rules(EventBusName=name.split("/")[0]),
    "aws_cognito_user_pool_client": lambda idp, name: idp.list_user_pool_clients(UserPoolId=name.split("/")[0]),
    "aws_route53_record": lambda route53, name: route53.list_resource_record_sets(HostedZoneId=name.split("_")[0]),
    "aws_secretsmanager_secret": lambda secrets, _: secrets.list_secrets(),
}


def plain_record(cloud: Cloud) -> None:
    """A record as most are: the simulation does not delete one with capitals and a set's identifier."""
    route53 = cloud.client("route53")
    zone = route53.create_hosted_zone(Name="plain.example.com.", CallerReference="plain")["HostedZone"]["Id"]
    record = {"Name": "www.plain.example.com.", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "192.0.2.1"}]}
    batch = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch=batch)


@pytest.fixture
def stack(moto: MotoServer, stack_factory: StackFactory) -> Path:
    """A stack without resources, in an account with an object of each type."""
    for name in TYPES:
        (plain_record if name == "aws_route53_record" else CREATORS[name])(Cloud(moto.url))
    made = settings(stack_factory("", region=REGION), consistency_grace="0s", owner="audit")
    (made / "terraform.tfstate").write_bytes(state_v4([], "settled"))
    return made


def scanned(tfguard: Run, stack: Path) -> dict[str, Json]:
    """What a scan of these types tells of stray objects, by finding id; kept in a file as well."""
    # Else whether one of these has made a record is not known.
    makers = [f"aws_service_discovery_{kind}_dns_namespace" for kind in ("private", "public")]
    kinds = [word for name in (*TYPES, *makers) for word in ("--type", name)]
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


def is_there(moto: MotoServer, found: Json) -> bool:
    """Whether a client that is none of tfguard's sees an object in its type's own list."""
    kind = CATALOG.types[found["type"]]
    assert kind.list is not None
    client = moto.client(kind.service, region=REGION)
    try:
        if ask := ASKED.get(kind.type):
            told = ask(client, found["import_id"])
        else:
            told = getattr(client, kind.list.operation)(**kind.list.arguments)
    except ClientError as error:  # what it was part of is gone, too
        assert "NotFound" in str(error) or "NoSuch" in str(error), error
        return False
    words = {
        "aws_cloudwatch_event_rule": f'"{found["name"]}"',
        "aws_route53_record": "www.plain.example.com",
        "aws_sqs_queue": f"/{found['name']}",  # the host of its url varies
    }
    return words.get(kind.type, found["id"]) in json.dumps(told, default=str)


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
    words = ("--for", "1s", "--reason", "not that long", "--findings", "kept.json")
    shorter = tfguard("orphans", "retain", *found, *words, cwd=stack)
    assert shorter.returncode == 0, shorter.stderr
    time.sleep(1.1)  # the dates pass, also where the machine is quick
    assert scanned(tfguard, stack).keys() == found.keys()
    assert [one["object"]["import_id"] for one in found.values() if not is_there(moto, one["object"])] == []

    rest = [one for one in found.values() if not one["object"]["stateful"]]
    with_data = [one for one in found.values() if one["object"]["stateful"]]
    for group in (rest, *([one] for one in with_data)):
        done = destroy(tfguard, stack, group)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("deleted, and verified") == len(group), done.stdout  # a secret only waits for its end
    assert scanned(tfguard, stack) == {}
    assert [one["object"]["import_id"] for one in found.values() if is_there(moto, one["object"])] == []
