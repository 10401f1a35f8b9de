"""Adopting what no configuration knows: it is drafted, cleaned, tried, and put into a file."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

from helpers import APPLY, Run, StackFactory, operations, orphans, settings

from fixtures.aws_sim import ACCOUNT_ID, MotoServer
from tfguard.flows.drafted_file import marked_block

STACK = """
resource "aws_vpc" "main" {
  cidr_block = "10.9.0.0/16"
}
resource "aws_subnet" "main" {
  vpc_id     = aws_vpc.main.id
  cidr_block = "10.9.1.0/24"
}
"""
TYPES = (
    "aws_sns_topic",
    "aws_iam_role",
    "aws_s3_bucket",
    "aws_security_group",
    "aws_instance",
    "aws_cloudwatch_log_group",
    "aws_dynamodb_table",
    "aws_sqs_queue",
    "aws_ssm_parameter",
    "aws_lambda_function",
)


def make_unmanaged(moto: MotoServer, vpc: str, subnet: str) -> None:
    """One object of each of these types, by other hands; the topic in another region."""
    moto.client("sns", region="eu-west-1").create_topic(Name="alerts", Tags=[{"Key": "Team", "Value": "a ${b}"}])
    trust = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
    }
    arn = moto.client("iam").create_role(RoleName="worker", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    moto.client("s3").create_bucket(Bucket="old-reports")
    ec2 = moto.client("ec2")
    group = ec2.create_security_group(GroupName="web", Description="by hand", VpcId=vpc)["GroupId"]
    ec2.authorize_security_group_ingress(GroupId=group, IpProtocol="tcp", FromPort=443, ToPort=443, CidrIp="10.0.0.0/8")
    image = ec2.describe_images()["Images"][0]["ImageId"]
    ec2.run_instances(
        ImageId=image, InstanceType="t3.micro", MinCount=1, MaxCount=1, SubnetId=subnet, SecurityGroupIds=[group]
    )
    moto.client("logs").create_log_group(logGroupName="/app/old")
    moto.client("dynamodb").create_table(
        TableName="sessions",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )
    moto.client("sqs").create_queue(QueueName="jobs", Attributes={"MaximumMessageSize": "262144"})
    moto.client("ssm").put_parameter(Name="/app/token", Type="SecureString", Value="hunter2-hunter2")
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("x.py", "")
    moto.client("lambda").create_function(
        FunctionName="fn", Runtime="python3.12", Role=arn, Handler="x.y", Code={"ZipFile": code.getvalue()}
    )


def scanned(tfguard: Run, stack: Path, kept: Path) -> dict[str, str]:
    """The findings of a scan of these types, kept in a file: id by type."""
    narrowed = [word for name in TYPES for word in ("--type", name)]
    regions = ("--region", "us-east-1", "--region", "eu-west-1")
    done = tfguard("scan", *narrowed, *regions, "--state-file", str(kept), "--format", "json", cwd=stack)
    assert done.returncode == 2, done.stdout + done.stderr
    return {item["object"]["type"]: item["id"] for item in json.loads(done.stdout)["findings"]}


def test_objects_that_no_configuration_knows_get_one_that_plans_clean(
    moto: MotoServer, stack_factory: StackFactory, tfguard: Run, tf: Run, tmp_path: Path
) -> None:
    stack = settings(stack_factory(STACK, aliases={"eu": "eu-west-1"}))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    state = json.loads((stack / "terraform.tfstate").read_text())
    ids = {item["type"]: item["instances"][0]["attributes"]["id"] for item in state["resources"]}
    make_unmanaged(moto, ids["aws_vpc"], ids["aws_subnet"])
    kept = tmp_path / "scan.json"
    found = scanned(tfguard, stack, kept)
    assert set(found) == set(TYPES)
    every = ("--findings", str(kept), *(word for finding in found.values() for word in ("--orphan", finding)))

    # A file of the user's own is added to.
    (stack / "imported.tf").write_text("# ours\n")
    done = tfguard("import", *every, "--yes", "--keep", cwd=stack)
    assert done.returncode == 1
    assert "Resources: 8 imported, 0 added, 0 changed, 0 destroyed" in done.stdout, done.stdout + done.stderr
    (code,) = [line for line in done.stderr.splitlines() if f"{found['aws_lambda_function']} was not adopted" in line]
    assert "one of `filename,image_uri,s3_bucket` must be specified" in code
    (token,) = [line for line in done.stderr.splitlines() if f"{found['aws_ssm_parameter']} was not adopted" in line]
    assert "value is marked as sensitive and became var.token_value: set TF_VAR_token_value" in token
    draft = (stack / "imported.tf.draft").read_text()
    assert 'resource "aws_lambda_function" "fn"' in draft

    written = (stack / "imported.tf").read_text()
    assert written.startswith("# ours\n\n")
    assert tf("fmt", "-check", "imported.tf", cwd=stack, check=False).returncode == 0
    for kept_line in (
        "vpc_id = aws_vpc.main.id",
        "subnet_id                            = aws_subnet.main.id",
        "provider = aws.eu",
        'Team = "a $${b}"',
        'bucket = "old-reports"',
    ):
        assert kept_line in written
    assert not any(word in written for word in ("null", "tags_all", "__generated__", ACCOUNT_ID + ":role"))

    secret = {"TF_VAR_token_value": "hunter2-hunter2"}
    with_secret = tfguard(
        "import", "--findings", str(kept), "--orphan", found["aws_ssm_parameter"], "--yes", cwd=stack, env=secret
    )
    assert with_secret.returncode == 0, with_secret.stderr
    assert "var.token_value is for a value marked as sensitive" in with_secret.stderr
    planned = tf("plan", "-detailed-exitcode", "-input=false", cwd=stack, env=secret, check=False)
    assert planned.returncode == 0, planned.stdout
    recorded = [path.read_text() for path in (stack / "terraform.tfstate.tfguard").rglob("*") if path.is_file()]
    assert not any("hunter2" in text for text in [*recorded, (stack / "imported.tf").read_text()])
    again = tfguard("import", "--orphan", found["aws_s3_bucket"], "--findings", str(kept), "--yes", cwd=stack)
    assert (again.returncode, "was settled: import by" in again.stderr) == (1, True)


def test_an_orphan_whose_configuration_is_gone_goes_to_an_address_and_a_file_of_choice(
    stack_factory: StackFactory, tfguard: Run, tf: Run
) -> None:
    stack = settings(stack_factory(STACK.replace("aws_vpc.main.id", '"vpc-none"').split('resource "aws_subnet')[0]))
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    state = json.loads((stack / "terraform.tfstate").read_text())
    (stack / "older.tfstate").write_text(json.dumps({**state, "serial": state["serial"] + 1, "resources": []}))
    assert tfguard("state", "push", "older.tfstate", cwd=stack).returncode == 0
    (finding,) = orphans(tfguard, stack, code=2)["findings"]
    (stack / "main.tf").write_text("")
    adopt = ("import", "--orphan", finding["id"], "--yes", "--to", "aws_vpc.net")
    for wrong in ("net.txt", "../net.tf", "modules/net.tf"):
        refused = tfguard(*adopt, "--out", wrong, cwd=stack)
        assert (refused.returncode, f"--out {wrong}" in refused.stderr) == (1, True)
    keyed = tfguard(*adopt[:-1], 'aws_vpc.net["a"]', cwd=stack)
    assert (keyed.returncode, "none can be drafted for an address with a key" in keyed.stderr) == (1, True)

    before, runs = sorted(path.name for path in stack.iterdir()), operations(stack)
    blocks = tfguard(*adopt, "--blocks-only", cwd=stack)
    assert blocks.returncode == 0, blocks.stderr
    assert "import {\n  to = aws_vpc.net\n" in blocks.stdout
    assert 'resource "aws_vpc" "net" {' in blocks.stdout
    assert (sorted(path.name for path in stack.iterdir()), operations(stack)) == (before, runs)

    # As a kill between the writing of the file and the apply leaves it: any engine imports then, and makes nothing.
    resource = blocks.stdout[blocks.stdout.index('resource "aws_vpc"') :]
    block = marked_block(finding["id"], "aws_vpc.net", finding["object"]["import_id"])
    (stack / "net.tf").write_text(f"{block}\n{resource}")
    planned = tf("plan", "-input=false", cwd=stack)
    assert "1 to import, 0 to add, 0 to change, 0 to destroy" in planned.stdout
    done = tfguard(*adopt[:-2], cwd=stack)
    assert done.returncode == 0, done.stderr
    assert "1 imported, 0 added, 0 changed, 0 destroyed" in done.stdout
    assert 'resource "aws_vpc" "net" {' in (stack / "net.tf").read_text()
    assert "import" not in (stack / "net.tf").read_text()
    assert not (stack / "imported.tf").exists()
    assert tf("plan", "-detailed-exitcode", "-input=false", cwd=stack, check=False).returncode == 0
