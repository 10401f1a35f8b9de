"""What the command line leaves out of the scan that tfguard.yaml configures."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.cli.scan_places import aws_shards, lists_left_out
from tfguard.model.config import AwsAccount, AwsScan, Config, IgnoreRule, ScanConfig

CATALOG = load_catalog()
ONE, OTHER = "111111111111", "222222222222"
CONFIG = Config(
    scan=ScanConfig(
        aws=AwsScan(
            ("eu-west-1", "us-east-1"), (AwsAccount(ONE), AwsAccount(OTHER)), ("aws_sqs_queue", "aws_iam_role")
        ),
        ignore=(IgnoreRule("*", "r"),),
    )
)
QUEUE, ROLE = "aws_sqs_queue", "aws_iam_role"


@pytest.mark.parametrize(
    ("regions", "types", "accounts", "expected"),
    [
        ((), (), (), set()),
        (("eu-west-1",), (), (), {(ONE, "us-east-1", QUEUE), (OTHER, "us-east-1", QUEUE)}),
        ((), (), (ONE,), {(OTHER, "eu-west-1", QUEUE), (OTHER, "us-east-1", QUEUE), (OTHER, "global", ROLE)}),
        ((), (QUEUE,), (), {(ONE, "global", ROLE), (OTHER, "global", ROLE)}),
    ],
)
def test_what_is_configured_and_was_not_asked_for_is_left_out(
    regions: Sequence[str], types: Sequence[str], accounts: Sequence[str], expected: set[tuple[str, str, str]]
) -> None:
    shards = aws_shards(CONFIG, CATALOG, regions, types, accounts)
    left = lists_left_out(CONFIG, CATALOG, shards, (regions, types, accounts), exported=False)
    assert {place[1:] for place in left} == expected


def test_a_region_of_the_command_line_leaves_nothing_out_where_none_is_configured() -> None:
    config = Config(scan=ScanConfig(ignore=CONFIG.scan.ignore))
    shards = aws_shards(config, CATALOG, ("eu-west-1",), (), ())
    assert lists_left_out(config, CATALOG, shards, (("eu-west-1",), (), ()), exported=False) == frozenset()
