"""`scan --inventory FILE`: what an exported listing can tell, and what it never can."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import Run

pytestmark = pytest.mark.e2e

ACCOUNT = "123456789012"
HEAD = "type,id,arn"


def queue(name: str, region: str = "eu-west-1") -> str:
    return f"arn:aws:sqs:{region}:{ACCOUNT}:{name}"


def row(name: str, region: str = "eu-west-1") -> str:
    return f"aws_sqs_queue,https://sqs/{name},{queue(name, region)}"


@pytest.fixture
def stack(workdir: Path) -> Path:
    """A folder with a state of two queues."""
    instances = [{"index_key": name, "attributes": {"name": name, "arn": queue(name)}} for name in ("a", "b")]
    resource = {"mode": "managed", "type": "aws_sqs_queue", "name": "all", "provider": "provider.aws"}
    document = {"version": 4, "serial": 1, "lineage": "l", "resources": [{**resource, "instances": instances}]}
    (workdir / "app.tfstate").write_text(json.dumps(document))
    return workdir


def test_what_an_export_leaves_out_is_neither_missing_nor_gone(stack: Path, tfguard: Run) -> None:
    asked = ("scan", "app.tfstate", "--type", "aws_sqs_queue", "--state-file", "kept", "--since", "last")
    (stack / "list.csv").write_text("\n".join([HEAD, row("a"), row("stray"), row("other")]))
    first = tfguard(*asked, "--inventory", "list.csv", cwd=stack)
    assert first.returncode == 2, first.stderr
    (stack / "list.csv").write_text("\n".join([HEAD, row("a")]))
    second = tfguard(*asked, "--inventory", "list.csv", cwd=stack)
    assert second.returncode == 0, second.stderr
    assert "missing" not in second.stdout.replace("neither missing nor gone", "")
    assert "0 new, 0 gone, 0 still there" in second.stdout
    assert second.stdout.count("not looked at again: ") == 2
    assert "note: an exported listing proves no absence" in second.stdout
    assert second.stdout.endswith("coverage: complete (1 state, 1 type)\n")


def test_only_the_region_that_is_named_counts(stack: Path, tfguard: Run) -> None:
    (stack / "list.csv").write_text("\n".join([HEAD, row("a"), row("b"), row("c", "us-east-1")]))
    asked = ("scan", "app.tfstate", "--type", "aws_sqs_queue", "--inventory", "list.csv")
    assert tfguard(*asked, cwd=stack).returncode == 2
    narrow = tfguard(*asked, "--region", "eu-west-1", "--account", ACCOUNT, cwd=stack)
    assert narrow.returncode == 0, narrow.stdout + narrow.stderr
    assert "objects: 2 managed" in narrow.stdout


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--region", "eu-wset-1"), "no export has anything in eu-wset-1"),
        (("--account", "999999999999"), "no export has anything in 999999999999"),
        (("--executor", "processes"), "--executor and --workers are about list calls"),
        (("--workers", "4"), "--executor and --workers are about list calls"),
    ],
)
def test_an_option_that_an_export_gives_no_meaning_is_refused(
    more: tuple[str, str], why: str, stack: Path, tfguard: Run
) -> None:
    (stack / "list.csv").write_text("\n".join([HEAD, row("a"), row("b")]))
    done = tfguard("scan", "app.tfstate", "--type", "aws_sqs_queue", "--inventory", "list.csv", *more, cwd=stack)
    assert (done.returncode, why in done.stderr) == (1, True), done.stderr


def test_a_folder_on_the_command_line_is_one_here_though_tfguard_yaml_names_an_equal_one(
    stack: Path, tfguard: Run
) -> None:
    (stack / "tfguard.yaml").write_text("scan: {stacks: [infra]}\n")
    (stack / "list.csv").write_text("\n".join([HEAD, row("a"), row("b")]))
    for place in ("infra", "sub/infra"):
        (stack / place).mkdir(parents=True)
    (stack / "app.tfstate").rename(stack / "sub/infra/app.tfstate")
    (stack / "infra/app.tfstate").write_text('{"version": 4, "serial": 1, "lineage": "l", "resources": []}')
    asked = ("--type", "aws_sqs_queue", "--inventory", str(stack / "list.csv"))
    here = tfguard("scan", "infra", *asked, cwd=stack / "sub")
    assert (here.returncode, "objects: 2 managed" in here.stdout) == (0, True), here.stdout + here.stderr
    configured = tfguard("scan", *asked, cwd=stack / "sub")
    assert (configured.returncode, "unmanaged (2)" in configured.stdout) == (2, True), configured.stdout
