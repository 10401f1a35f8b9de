"""Listing 20,000 objects of 20 types, by tfguard and by bare SDK calls, side by side against one simulated AWS.

The simulated AWS is a process of its own, which fills itself before it serves. Both sides ask as many services at once,
make their clients anew each time, read all pages with the same page sizes, and take turns.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

EACH = 1_000
WORKERS = 8
REGION = "eu-west-1"
RIGHTS = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}
)
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})

# Type -> what makes number N of it, from a client.
_Make = Callable[[Any, int], object]
MAKERS: dict[str, tuple[str, _Make]] = {
    "aws_sqs_queue": ("sqs", lambda c, n: c.create_queue(QueueName=f"q{n}")),
    "aws_sns_topic": ("sns", lambda c, n: c.create_topic(Name=f"t{n}")),
    "aws_s3_bucket": ("s3", lambda c, n: c.create_bucket(Bucket=f"bucket-{n}", CreateBucketConfiguration=_LOCATION)),
    "aws_iam_role": ("iam", lambda c, n: c.create_role(RoleName=f"r{n}", AssumeRolePolicyDocument=TRUST)),
    "aws_iam_user": ("iam", lambda c, n: c.create_user(UserName=f"u{n}")),
    "aws_iam_group": ("iam", lambda c, n: c.create_group(GroupName=f"g{n}")),
    "aws_iam_instance_profile": ("iam", lambda c, n: c.create_instance_profile(InstanceProfileName=f"p{n}")),
    "aws_vpc": ("ec2", lambda c, n: c.create_vpc(CidrBlock=f"10.{n // 250}.{n % 250}.0/24")),
    "aws_eip": ("ec2", lambda c, n: c.allocate_address(Domain="vpc")),  # noqa: ARG005 (one signature for all)
    "aws_key_pair": ("ec2", lambda c, n: c.create_key_pair(KeyName=f"k{n}", KeyType="ed25519")),
    "aws_internet_gateway": ("ec2", lambda c, n: c.create_internet_gateway()),  # noqa: ARG005
    "aws_cloudwatch_log_group": ("logs", lambda c, n: c.create_log_group(logGroupName=f"l{n}")),
    "aws_cloudwatch_metric_alarm": ("cloudwatch", lambda c, n: c.put_metric_alarm(AlarmName=f"a{n}", **_ALARM)),
    "aws_cloudwatch_event_rule": ("events", lambda c, n: c.put_rule(Name=f"e{n}", ScheduleExpression="rate(1 day)")),
    "aws_ecr_repository": ("ecr", lambda c, n: c.create_repository(repositoryName=f"c{n}")),
    "aws_secretsmanager_secret": ("secretsmanager", lambda c, n: c.create_secret(Name=f"s{n}", SecretString="x")),
    "aws_sfn_activity": ("stepfunctions", lambda c, n: c.create_activity(name=f"f{n}")),
    "aws_iam_policy": ("iam", lambda c, n: c.create_policy(PolicyName=f"o{n}", PolicyDocument=RIGHTS)),
    "aws_db_parameter_group": ("rds", lambda c, n: c.create_db_parameter_group(DBParameterGroupName=f"d{n}", **_RDS)),
    "aws_cognito_user_pool": ("cognito-idp", lambda c, n: c.create_user_pool(PoolName=f"o{n}")),
}
_LOCATION = {"LocationConstraint": REGION}
_RDS = {"DBParameterGroupFamily": "postgres15", "Description": "d"}
_ALARM = {
    "MetricName": "m", "Namespace": "n", "Period": 60, "EvaluationPeriods": 1, "Threshold": 1.0,
    "Statistic": "Sum", "ComparisonOperator": "GreaterThanThreshold",
}  # fmt: skip


def serve() -> None:
    """Fill a simulated AWS in this process, serve it, and tell where; until standard input ends."""
    import boto3
    from moto import mock_aws
    from moto.server import ThreadedMotoServer

    with mock_aws():
        for service, make in MAKERS.values():
            client = boto3.client(service, REGION, aws_access_key_id="a", aws_secret_access_key="b")
            for number in range(EACH):
                make(client, number)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        print(f"http://{host}:{port}", flush=True)
        sys.stdin.read()
        server.stop()


def bare(url: str) -> int:
    """List the same objects with the SDK alone: the catalogue's operations and page sizes, every page; how many."""
    from boto3.session import Session

    from tfguard.catalog.loader import load_catalog

    catalog, session = load_catalog(), Session(aws_access_key_id="a", aws_secret_access_key="b", region_name=REGION)
    by_service: dict[str, list[str]] = {}
    for kind, (service, _) in MAKERS.items():
        by_service.setdefault(service, []).append(kind)

    def one_service(service: str) -> int:
        client, count = session.client(service, endpoint_url=url), 0
        for kind in by_service[service]:
            entry = catalog.get(kind)
            assert entry is not None and entry.list is not None
            call, found = entry.list, 0
            pages: Any
            if client.can_paginate(call.operation):
                size = {"PageSize": call.page_size} if call.page_size else {}
                pages = client.get_paginator(call.operation).paginate(**call.arguments, PaginationConfig=size)
            else:
                pages = _by_token(client, call)
            for page in pages:
                found += len(page[call.result.removesuffix("[]")])
            count += found
        return count

    with ThreadPoolExecutor(WORKERS) as pool:
        return sum(pool.map(one_service, by_service))


def _by_token(client: Any, call: Any) -> Any:
    token: dict[str, str] = {}
    while True:
        page = getattr(client, call.operation)(**call.arguments, **token)
        yield page
        if call.token is None or not page.get(call.token.answer):
            return
        token = {call.token.argument: page[call.token.answer]}


def ours(url: str) -> int:
    """List them as a scan does; how many."""
    from tfguard.catalog.loader import load_catalog
    from tfguard.inventory.shards import lister_for, shards_for
    from tfguard.model.plan import ProviderConfig

    settings = {"region": REGION, "endpoint_url": url, "access_key": "a", "secret_key": "b"}
    provider = ProviderConfig("aws", "registry.terraform.io/hashicorp/aws", settings)
    shards = shards_for(load_catalog(), provider, [REGION], tuple(MAKERS))
    count = 0
    for listing in lister_for("threads", lambda: False, WORKERS).list(shards, lambda _: None):
        assert listing.complete, listing.gap
        count += len(listing.objects)
    return count


def scan_figures(runs: int = 5) -> str:
    """The text for the report."""
    root = Path(__file__).parent.parent
    child = subprocess.Popen(
        [sys.executable, "-m", "scripts.bench_scan"],
        cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    try:
        url = child.stdout.readline().strip()
        if not url:
            sys.exit("the simulated AWS did not start")
        times: dict[str, list[float]] = {"bare": [], "ours": []}
        counts: dict[str, int] = {}
        for turn in range(runs + 1):  # the first one of each is not counted: it reads the SDK's models
            for name, run in (("bare", bare), ("ours", ours)):
                gc.collect()
                start = time.perf_counter()
                counts[name] = run(url)
                if turn:
                    times[name].append(time.perf_counter() - start)
    finally:
        child.stdin.close()
        child.wait(30)
    middle = {name: statistics.median(told) for name, told in times.items()}
    rows = "".join(
        f"| {label} | {counts[name]:,} | {min(times[name]):.2f} | {middle[name]:.2f} | {max(times[name]):.2f} |\n"
        for name, label in (("bare", "bare boto3 calls"), ("ours", "tfguard"))
    )
    return (
        f"{len(MAKERS)} types with {EACH:,} objects each on one simulated AWS in its own process, {WORKERS} services "
        f"at once, {runs} runs of each in turn, clients made anew in each. Seconds.\n\n"
        f"| | objects | min | median | max |\n|---|---|---|---|---|\n{rows}\n"
        f"Median against median: {middle['ours'] / middle['bare']:.2f} times.\n"
    )


if __name__ == "__main__":
    serve()
