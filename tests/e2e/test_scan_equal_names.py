"""Objects of one name in two regions: what a real provider's state says of one tells nothing of the other."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from helpers import APPLY, Run, StackFactory

from fixtures.aws_sim import REGION, MotoServer

pytestmark = pytest.mark.e2e

FAR = "eu-central-1"
GROUP = """
resource "aws_cloudwatch_log_group" "app" {
  name = "/app"
}
"""
FILTER = """
resource "aws_cloudwatch_log_metric_filter" "err" {
  name           = "err"
  log_group_name = "/app"
  pattern        = "ERROR"
  metric_transformation {
    name      = "errors"
    namespace = "app"
    value     = "1"
  }
}
"""


def make_the_same(moto: MotoServer, region: str) -> None:
    """A log group of the stack's name with a filter of its name, made by hand in a region."""
    logs = moto.client("logs", region=region)
    logs.create_log_group(logGroupName="/app")
    transformation = {"metricName": "errors", "metricNamespace": "app", "metricValue": "1"}
    logs.put_metric_filter(
        logGroupName="/app", filterName="err", filterPattern="ERROR", metricTransformations=[transformation]
    )


def told(done: subprocess.CompletedProcess[str], code: int) -> dict[tuple[str, str], str]:
    """The verdicts of the findings, by type and region."""
    assert done.returncode == code, done.stderr
    found = json.loads(done.stdout)["findings"]
    return {(one["object"]["type"], one["object"]["region"]): one["verdict"] for one in found}


def scan(tfguard: Run, workdir: Path, stack: Path, *regions: str) -> subprocess.CompletedProcess[str]:
    """A scan of the filters and groups of these regions."""
    kinds = ("--type", "aws_cloudwatch_log_metric_filter", "--type", "aws_cloudwatch_log_group")
    where = [word for region in regions for word in ("--region", region)]
    return tfguard("scan", str(stack), *kinds, *where, "--format", "json", cwd=workdir)


def test_what_stands_in_one_region_is_not_managed_in_another(
    moto: MotoServer, stack_factory: StackFactory, tfguard: Run, workdir: Path
) -> None:
    stack = stack_factory(GROUP + FILTER.replace('"/app"', "aws_cloudwatch_log_group.app.name"))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert told(scan(tfguard, workdir, stack, REGION, FAR), 0) == {}
    make_the_same(moto, FAR)
    assert told(scan(tfguard, workdir, stack, REGION, FAR), 2) == {
        ("aws_cloudwatch_log_metric_filter", FAR): "unmanaged",
        ("aws_cloudwatch_log_group", FAR): "unmanaged",
    }


def test_where_a_state_tells_no_region_equal_names_in_two_are_unknown_and_one_alone_is_managed(
    moto: MotoServer, stack_factory: StackFactory, tfguard: Run, workdir: Path
) -> None:
    moto.client("logs").create_log_group(logGroupName="/app")
    stack = stack_factory(FILTER)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    kind = "aws_cloudwatch_log_metric_filter"
    group = ("aws_cloudwatch_log_group", REGION)
    assert told(scan(tfguard, workdir, stack, REGION, FAR), 2) == {group: "unmanaged"}
    make_the_same(moto, FAR)
    assert told(scan(tfguard, workdir, stack, REGION, FAR), 2) == {
        (kind, REGION): "unknown", (kind, FAR): "unknown", group: "unmanaged",
        ("aws_cloudwatch_log_group", FAR): "unmanaged",
    }  # fmt: skip
