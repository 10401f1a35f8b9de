"""A scan of far more objects of a type than one page holds: all of them are seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import Run
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.logs.models import logs_backends
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer
from moto.sqs.models import sqs_backends

from fixtures.aws_sim import REGION, aws_client
from fixtures.labelled.states import state_v4
from tfguard.errors import ExitCode

QUEUES, BUCKETS, GROUPS = 2500, 1500, 1200
KINDS = ("--type", "aws_sqs_queue", "--type", "aws_s3_bucket", "--type", "aws_cloudwatch_log_group")
SEPARATE = {"aws_sqs_queue": "queue-0999x", "aws_s3_bucket": "bucket-0999x", "aws_cloudwatch_log_group": "/group/0999x"}
"""One of each type that no state has, in the middle of the others."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    """An account with so many objects, made in the simulator's own memory, which is quick."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for service in ("sqs", "s3", "logs"):  # the backends of one process are one account
        _backend(service).reset()
    for number in range(QUEUES):
        _backend("sqs").create_queue(f"queue-{number:04}", None)
    for number in range(BUCKETS):
        _backend("s3").create_bucket(f"bucket-{number:04}", REGION)
    for number in range(GROUPS):
        _backend("logs").create_log_group(f"/group/{number:04}", None)
    url = f"http://{host}:{port}"
    aws_client("sqs", url).create_queue(QueueName=SEPARATE["aws_sqs_queue"])
    aws_client("s3", url).create_bucket(Bucket=SEPARATE["aws_s3_bucket"])
    aws_client("logs", url).create_log_group(logGroupName=SEPARATE["aws_cloudwatch_log_group"])
    yield url
    for service in ("sqs", "s3", "logs"):
        _backend(service).reset()
    server.stop()


def _backend(service: str) -> Any:
    backends: dict[str, Any] = {"sqs": sqs_backends, "s3": s3_backends, "logs": logs_backends}
    return backends[service][DEFAULT_ACCOUNT_ID]["aws" if service == "s3" else REGION]


def test_every_queue_bucket_and_log_group_is_seen_however_many_pages_they_fill(
    endpoint: str, tfguard: Run, workdir: Path
) -> None:
    held = [("aws_sqs_queue", {"name": f"queue-{number:04}"}) for number in range(QUEUES)]
    held += [("aws_s3_bucket", {"bucket": f"bucket-{number:04}"}) for number in range(BUCKETS)]
    held += [("aws_cloudwatch_log_group", {"name": f"/group/{number:04}"}) for number in range(GROUPS)]
    (workdir / "terraform.tfstate").write_bytes(state_v4(held, "many"))
    here = {"AWS_ENDPOINT_URL": endpoint}

    done = tfguard("scan", "terraform.tfstate", *KINDS, "--format", "json", env=here)
    assert done.returncode == ExitCode.FOUND, done.stderr
    document = json.loads(done.stdout)
    assert document["coverage"] == {"complete": True, "states_read": 1, "types_listed": 3, "gaps": []}
    # None is missing from the lists, and the one between the others is not lost either.
    assert document["summary"] == {"managed": QUEUES + BUCKETS + GROUPS, "unmanaged": 3}
    found = {one["object"]["type"]: one["object"]["name"] for one in document["findings"]}
    assert found == SEPARATE
