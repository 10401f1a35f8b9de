"""Adopting what the configuration has an address for: ids, keys, aliases, drift, and many at once."""

from __future__ import annotations

import json
from pathlib import Path

from helpers import APPLY, Run, StackFactory, operations, orphans, role, run_folders, settings

from fixtures.aws_sim import MotoServer
from tfguard.model.address import import_block

STACK = (
    role("plain")
    + role("drifted", more='description = "as written"\n  tags = { Team = "a" }')
    + role("gone")
    + role("renamed")
    + """
module "inner" {
  source = "./inner"
  names  = { "q\\"$${x} %%{y}" = "adopt-a", "b.c" = "adopt-b" }
}
resource "aws_sns_topic" "there" {
  provider = aws.eu
  name     = "same-name"
}
resource "aws_route53_record" "www" {
  zone_id = "ZONE"
  name    = "www"
  type    = "A"
  ttl     = 60
  records = ["10.0.0.1"]
}
"""
)
INNER = """
variable "names" { type = map(string) }
resource "aws_cloudwatch_log_group" "each" {
  for_each = var.names
  name     = each.value
}
"""


def record_in_a_zone(moto: MotoServer) -> str:
    """Make a zone with one record in it; the zone's id."""
    route53 = moto.client("route53")
    zone: str = route53.create_hosted_zone(Name="example.org", CallerReference="x")["HostedZone"]["Id"].split("/")[-1]
    record = {"Name": "www.example.org", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.1"}]}
    route53.change_resource_record_sets(
        HostedZoneId=zone, ChangeBatch={"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    )
    return zone


def forget(stack: Path, tfguard: Run) -> None:
    """Push a state that lacks everything: what it lacks becomes an orphan of its address."""
    state = json.loads((stack / "terraform.tfstate").read_text())
    older = {**state, "serial": state["serial"] + 1, "resources": []}
    (stack / "older.tfstate").write_text(json.dumps(older))
    assert tfguard("state", "push", "older.tfstate", cwd=stack).returncode == 0


def everything(stack: Path) -> dict[str, bytes]:
    """Each file of the stack's folder and of its record, without the provider."""
    return {
        str(path): path.read_bytes()
        for path in stack.rglob("*")
        if path.is_file() and ".terraform/" not in f"{path}/" and path.name != "head.json"
    }


def test_what_can_be_adopted_is_and_the_rest_is_told_why(
    moto: MotoServer, stack_factory: StackFactory, tfguard: Run, tf: Run
) -> None:
    stack = settings(stack_factory("", aliases={"eu": "eu-west-1"}))
    (stack / "inner").mkdir()
    (stack / "inner" / "main.tf").write_text(INNER)
    zone = record_in_a_zone(moto)
    (stack / "main.tf").write_text(STACK.replace("ZONE", zone))
    # Made by hand and imported, since the provider makes one in half a minute.
    (stack / "first.tf").write_text(import_block("aws_route53_record.www", f"{zone}_www_A"))
    tf("init", "-input=false", cwd=stack)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    (stack / "first.tf").unlink()
    forget(stack, tfguard)
    found = {item["address"]: item["id"] for item in orphans(tfguard, stack, code=2)["findings"]}
    assert len(found) == 8
    every = [word for finding in found.values() for word in ("--orphan", finding)]

    # One is deleted by hand meanwhile, one differs in place, one in what cannot be changed.
    moto.client("iam").delete_role(RoleName="gone")
    main = stack / "main.tf"
    main.write_text(main.read_text().replace("as written", "secret words").replace('name = "renamed"', 'name = "x"'))
    before, runs = everything(stack), operations(stack)
    nothing = tfguard("import", *every, cwd=stack)
    assert nothing.returncode == 1
    assert "without a terminal, --yes approves" in nothing.stderr
    assert (everything(stack), operations(stack)) == (before, runs)

    blocks = tfguard("import", "--blocks-only", "blocks.tf", *every, cwd=stack)
    assert (blocks.returncode, blocks.stdout) == (1, "")
    written = (stack / "blocks.tf").read_text()
    assert (written.count("import {"), "will update it in place: description" in written) == (6, True)
    assert 'aws_cloudwatch_log_group.each["q\\"$${x} %%{y}"]' in written
    assert tfguard("import", "--blocks-only", "blocks.tf", *every, cwd=stack).returncode == 1, "it is never overwritten"
    (stack / "blocks.tf").unlink()
    assert (everything(stack), operations(stack)) == (before, runs)

    done = tfguard("import", *every, "--yes", cwd=stack)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Resources: 5 imported, 0 added, 0 changed, 0 destroyed" in done.stdout
    told = [line for line in done.stderr.splitlines() if "was not adopted" in line]
    why = {
        address: next(line for line in told if finding in line)
        for address, finding in found.items()
        if finding in done.stderr and any(finding in line for line in told)
    }
    assert set(why) == {"aws_iam_role.gone", "aws_iam_role.renamed", "aws_iam_role.drifted"}
    assert "Cannot import non-existent remote object" in why["aws_iam_role.gone"]
    assert "as name differs from the configuration" in why["aws_iam_role.renamed"]
    assert "update aws_iam_role.drifted in place: description" in why["aws_iam_role.drifted"]
    assert "--allow-update" in why["aws_iam_role.drifted"]
    assert "secret words" not in done.stderr
    assert (run_folders(stack), list(stack.glob("tfguard_import*"))) == ([], [])

    state = json.loads((stack / "terraform.tfstate").read_text())
    ids = {
        (item["name"], instance.get("index_key")): instance["attributes"]["id"]
        for item in state["resources"]
        for instance in item["instances"]
    }
    assert "eu-west-1" in next(
        i["attributes"]["arn"] for r in state["resources"] if r["name"] == "there" for i in r["instances"]
    )
    assert ids[("each", 'q"${x} %{y}')] == "adopt-a"
    assert ids[("www", None)].endswith("_www_A")
    left = {item["address"] for item in orphans(tfguard, stack, code=2)["findings"]}
    assert left == {"aws_iam_role.renamed", "aws_iam_role.drifted"}, "what is gone is settled by that"

    agreed = tfguard("import", "--orphan", found["aws_iam_role.drifted"], "--yes", "--allow-update", cwd=stack)
    assert agreed.returncode == 0, agreed.stderr
    assert "update it in place to what the configuration says: description" in agreed.stderr
    assert moto.client("iam").get_role(RoleName="drifted")["Role"]["Description"] == "secret words"
