"""Tainted objects: shown with what the next apply would do, kept after a check, and refused where nothing is left."""

from __future__ import annotations

import json
from pathlib import Path

import boto3
import pytest
from helpers import APPLY, Json, Run, StackFactory, kinds, operations, orphans, settings, status, step

from fixtures.aws_sim import REGION, MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

BUCKET = """
resource "aws_s3_bucket" "jobs" {
  bucket = "jobs"
  provisioner "local-exec" {
    command = "exit 1"
  }
}
"""
PLAIN = """
variable "size" { default = 1 }
resource "terraform_data" "job" {
  for_each = toset(["a", "b c"])
  triggers_replace = var.size
  provisioner "local-exec" {
    command = "exit 1"
  }
}
"""
KEEP = ("--reason", "the provisioner is at fault")


def ledger(stack: Path) -> list[Json]:
    """What stands in the ledger; nothing where there is none."""
    return [json.loads(line) for path in stack.glob("*.tfguard/dispositions.jsonl") for line in path.open()]


def tainted_in(stack: Path) -> list[str]:
    """The instances that the local state marks, by resource and key."""
    found = json.loads((stack / "terraform.tfstate").read_text())["resources"]
    return [
        f"{one['type']}.{one['name']}{inner.get('index_key', '')}"
        for one in found
        for inner in one["instances"]
        if inner.get("status") == "tainted"
    ]


def left_tainted(stack: Path, tfguard: Run) -> Json:
    """The finding that an apply whose provisioner fails has left."""
    applied = tfguard(*APPLY, cwd=stack)
    assert applied.returncode == 1
    (found,) = orphans(tfguard, stack, code=0)["findings"]
    assert "the next apply will destroy it and create it anew" in applied.stderr
    assert f"next: tfguard orphans retain {found['id']} --reason TEXT" in applied.stderr
    return found


def test_a_tainted_object_is_shown_and_kept_and_the_plan_says_no_changes(
    stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(BUCKET))
    found = left_tainted(stack, tfguard)
    assert (found["verdict"], found["address"], found["actions"]) == ("tainted", "aws_s3_bucket.jobs", ["retain"])
    assert (found["object"]["type"], found["object"]["name"]) == ("aws_s3_bucket", "jobs")
    assert "tainted-in-state" in kinds(found["evidence"])
    document = status(tfguard, stack, code=0)
    assert (step(document, "aws_s3_bucket.jobs")["finding"], document["open"]) == (found["id"], False)
    shown = tfguard("orphans", "show", found["id"], cwd=stack)
    assert "the next apply will destroy it and create it anew, unless it is kept; it HOLDS DATA" in shown.stdout
    assert found["id"] in tfguard("recover", cwd=stack).stdout

    for words, said in ((("destroy", found["id"]), "the next apply replaces it"), (("import", found["id"]), "tainted")):
        refused = tfguard("orphans", *words, "--yes", cwd=stack)
        assert (refused.returncode, said in refused.stderr) == (1, True), refused.stderr
    dated = tfguard("orphans", "retain", found["id"], "--for", "1d", *KEEP, cwd=stack)
    assert (dated.returncode, "is kept for good" in dated.stderr) == (1, True)
    assert (tainted_in(stack), ledger(stack)) == (["aws_s3_bucket.jobs"], [])

    unasked = tfguard("orphans", "retain", found["id"], *KEEP, cwd=stack)
    assert (unasked.returncode, "approve it with --yes" in unasked.stderr) == (1, True)
    assert (tainted_in(stack), ledger(stack)) == (["aws_s3_bucket.jobs"], [])

    kept = tfguard("orphans", "retain", found["id"], "--yes", *KEEP, cwd=stack)
    assert kept.returncode == 0, kept.stderr
    assert "is untainted, and the next apply leaves it as it is" in kept.stdout
    assert "No changes" in tfguard("plan", "-no-color", cwd=stack).stdout
    (entry,) = ledger(stack)
    assert (entry["kind"], entry["reason"], entry["finding_id"]) == ("untaint", KEEP[1], found["id"])
    assert (entry["operation_id"], entry["object"]["name"]) == (operations(stack)[-1], "jobs")
    assert orphans(tfguard, stack, code=0)["findings"] == []
    (settled,) = json.loads(tfguard("orphans", "list", "--all", "--format", "json", cwd=stack).stdout)["findings"]
    assert (settled["id"], settled["disposition"]["kind"]) == (found["id"], "untaint")


def test_what_is_gone_at_the_provider_is_not_kept_whoever_says_so(
    stack_factory: StackFactory, tfguard: Run, proxy: FaultProxy, moto: MotoServer
) -> None:
    stack = settings(stack_factory(BUCKET))
    found = left_tainted(stack, tfguard)
    s3 = boto3.client("s3", endpoint_url=moto.url, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")
    s3.delete_bucket(Bucket="jobs")
    for by_a_list in (True, False):
        if not by_a_list:
            proxy.add_rule("deny", action="ListBuckets", count=None)
        proxy.log.clear()
        refused = tfguard("orphans", "retain", found["id"], "--yes", *KEEP, cwd=stack)
        assert refused.returncode == 1
        assert "the state knows an object at aws_s3_bucket.jobs that is not there any more" in refused.stderr
        assert ("HeadBucket" in proxy.log.actions()) is not by_a_list, "the engine was asked where no list told"
    assert (tainted_in(stack), len(operations(stack)), ledger(stack)) == (["aws_s3_bucket.jobs"], 1, [])


def test_of_several_each_is_told_and_one_that_would_be_replaced_all_the_same_is_said_so(
    plain_stack: StackFactory, tfguard: Run
) -> None:
    stack = settings(plain_stack(PLAIN))
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    found = {one["address"]: one["id"] for one in orphans(tfguard, stack, code=0)["findings"]}
    assert list(found) == ['terraform_data.job["a"]', 'terraform_data.job["b c"]']
    one, other = found.values()
    replaced = tfguard("orphans", "retain", one, "--yes", "-var", "size=2", *KEEP, cwd=stack)
    assert replaced.returncode == 1
    assert "is untainted, and the next apply would replace it all the same, since triggers_replace" in replaced.stderr
    assert tainted_in(stack) == ["terraform_data.jobb c"]

    again = tfguard("orphans", "retain", one, other, "--yes", *KEEP, cwd=stack)
    assert again.returncode == 1
    assert f"{one} is not kept: the state has nothing tainted at {next(iter(found))} any more" in again.stderr
    assert f'{other}: terraform_data.job["b c"] is untainted, and the next apply leaves it as it is' in again.stdout
    assert (tainted_in(stack), len(ledger(stack))) == ([], 2)

    assert tfguard("taint", 'terraform_data.job["a"]', cwd=stack).returncode == 0
    (marked,) = orphans(tfguard, stack, code=0)["findings"]
    assert (marked["id"], marked["disposition"]) == (one, None), "the state is what tells"


def test_a_state_that_cannot_be_read_leaves_what_the_record_tells_and_a_gap(
    plain_stack: StackFactory, tfguard: Run
) -> None:
    stack = settings(plain_stack(PLAIN))
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (stack / "terraform.tfstate").write_text("{")
    listed = orphans(tfguard, stack, code=3)
    assert [one["confidence"] for one in listed["findings"]] == ["likely", "likely"]
    assert listed["coverage"]["gaps"][0]["scope"] == "what is tainted"
