"""tfguard's own calls at the cloud: what is deleted comes back, what no engine imports goes, what is kept is tagged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import APPLY, Json, Run, StackFactory, addresses, kinds, orphans, settings, state_attribute

from fixtures.aws_sim import REGION, MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("proxy")]

SECRET = """
resource "aws_secretsmanager_secret" "token" {
  name = "token"
}
"""
KEY = """
resource "aws_kms_key" "ledger" {
  description = "ledger"
}
"""


def ledger(stack: Path) -> list[tuple[str, str | None]]:
    """What stands in the ledger: kinds and stages."""
    (path,) = stack.glob("*.tfguard/dispositions.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [(line["kind"], line.get("stage")) for line in lines]


def scanned(tfguard: Run, stack: Path, kind: str, *more: str) -> list[Json]:
    """The findings of a scan of one type, which are kept in a file as well."""
    words = ("scan", ".", "--type", kind, "--region", REGION, "--state-file", "kept.json", "--format", "json", *more)
    done = tfguard(*words, cwd=stack)
    assert done.returncode in (0, 2), done.stdout + done.stderr
    found: list[Json] = json.loads(done.stdout)["findings"]
    return found


def empty_stack(stack_factory: StackFactory, configuration: str = "") -> Path:
    """A stack whose state was written, and holds nothing."""
    stack = settings(stack_factory(configuration), consistency_grace="0s", owner="audit")
    state = {"version": 4, "terraform_version": "1.5.0", "serial": 1, "lineage": "l", "outputs": {}, "resources": []}
    (stack / "terraform.tfstate").write_text(json.dumps(state))
    return stack


def test_a_deleted_secret_says_until_when_it_can_come_back_and_is_restored_to_be_imported(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, moto: MotoServer
) -> None:
    stack = settings(stack_factory(SECRET), consistency_grace="0s")
    proxy.add_rule("drop", action="CreateSecret")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (found,) = orphans(tfguard, stack, code=2)["findings"]
    secrets = moto.client("secretsmanager")

    go = ("orphans", "destroy", found["id"], "--yes", "--confirm", "token", "--stateful")
    done = tfguard(*go, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    end = secrets.describe_secret(SecretId="token")["DeletedDate"]
    told = f"it is deleted, and gone after {end:%Y-%m-%d %H:%M}Z"
    assert told in done.stdout
    assert orphans(tfguard, stack, code=0)["findings"] == []
    shown = tfguard("orphans", "list", "--all", cwd=stack)
    assert "soft-deleted" in shown.stdout and f"gone after {end:%Y-%m-%d %H:%M}Z" in shown.stdout

    again = tfguard(*go, cwd=stack)
    assert (again.returncode, "not deleted again" in again.stdout, told in again.stdout) == (0, True, True)
    assert secrets.describe_secret(SecretId="token")["DeletedDate"] == end

    asked = tfguard("orphans", "import", found["id"], cwd=stack)
    assert (asked.returncode, "it was not restored" in asked.stderr) == (1, True), asked.stderr
    assert "RestoreSecret" in asked.stderr and "gone after" in asked.stderr
    assert "DeletedDate" in secrets.describe_secret(SecretId="token")

    # Restored, and then the plan would replace it: it exists again, and somebody has to know.
    main = stack / "main.tf"
    main.write_text(SECRET.replace('"token"\n}', '"other"\n}'))
    early = tfguard("orphans", "import", found["id"], "--yes", cwd=stack)
    assert (early.returncode, "--allow-update; it was not restored" in early.stderr) == (1, True), early.stderr
    assert "DeletedDate" in secrets.describe_secret(SecretId="token")
    failed = tfguard("orphans", "import", found["id"], "--yes", "--allow-update", cwd=stack)
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "was restored (RestoreSecret) and NOT imported" in failed.stderr
    assert "DeletedDate" not in secrets.describe_secret(SecretId="token")
    (back,) = orphans(tfguard, stack, code=2)["findings"]
    assert (back["id"], back["verdict"]) == (found["id"], "orphaned")
    assert "restored-not-imported" in kinds(back["evidence"])

    main.write_text(SECRET)
    adopted = tfguard("orphans", "import", found["id"], "--yes", "--allow-update", cwd=stack)
    assert adopted.returncode == 0, adopted.stdout + adopted.stderr
    assert addresses(stack) == {"aws_secretsmanager_secret.token"}
    assert ledger(stack)[-3:] == [("restore", "requested"), ("restore", None), ("import", None)]
    assert orphans(tfguard, stack, code=0)["findings"] == []


def test_a_key_pending_deletion_is_told_apart_and_comes_back_enabled(
    stack_factory: StackFactory, tfguard: Run, moto: MotoServer
) -> None:
    stack, kms = empty_stack(stack_factory, KEY), moto.client("kms")
    key = kms.create_key(Description="ledger", KeyUsage="ENCRYPT_DECRYPT")["KeyMetadata"]["KeyId"]
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)

    def told() -> tuple[str, Any]:
        metadata = kms.describe_key(KeyId=key)["KeyMetadata"]
        return metadata["KeyState"], metadata.get("DeletionDate")

    state, end = told()
    assert state == "PendingDeletion"
    assert scanned(tfguard, stack, "aws_kms_key") == []
    (found,) = scanned(tfguard, stack, "aws_kms_key", "--all")
    assert (found["verdict"], found["actions"], kinds(found["evidence"])) == (
        "soft-deleted",
        ["import"],
        {"soft-deleted"},
    )
    assert f"gone after {end:%Y-%m-%d %H:%M}Z" in found["evidence"][0]["detail"]
    kept = ("--findings", "kept.json")
    shown = tfguard("orphans", "list", *kept, cwd=stack)
    assert "soft-deleted" in shown.stdout and f"gone after {end:%Y-%m-%d %H:%M}Z" in shown.stdout

    left = tfguard("orphans", "destroy", found["id"], "--stateful", *kept, cwd=stack)
    assert f"gone after {end:%Y-%m-%d %H:%M}Z; it is not deleted again" in left.stdout
    assert told() == (state, end)

    to = ("--to", "aws_kms_key.ledger", "--yes", "--allow-update")
    done = tfguard("orphans", "import", found["id"], *to, *kept, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CancelKeyDeletion, EnableKey" in done.stderr
    assert "NOT imported" not in done.stderr
    assert told() == ("Enabled", None)
    assert state_attribute(stack, "aws_kms_key.ledger", "key_id") == key


def test_what_no_engine_imports_is_deleted_by_its_own_call(
    stack_factory: StackFactory, tfguard: Run, moto: MotoServer
) -> None:
    stack, iot = empty_stack(stack_factory), moto.client("iot")
    name = iot.create_keys_and_certificate(setAsActive=True)["certificateId"]
    (found,) = scanned(tfguard, stack, "aws_iot_certificate")
    kept = ("--yes", "--findings", "kept.json")
    refused = tfguard("orphans", "import", found["id"], *kept, cwd=stack)
    assert (refused.returncode, "no engine can import" in refused.stderr) == (1, True), refused.stderr

    go = ("orphans", "destroy", found["id"], *kept, "--confirm", name)
    done = tfguard(*go, cwd=stack)
    assert (done.returncode, "CertificateStateException on DeleteCertificate" in done.stdout) == (1, True), done.stdout
    assert ledger(stack) == [("destroy", "requested"), ("destroy", "in-progress"), ("destroy", "stopped")]

    iot.update_certificate(certificateId=name, newStatus="INACTIVE")
    done = tfguard(*go, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it is deleted by DeleteCertificate" in done.stderr
    assert "verified to be gone" in done.stdout
    assert iot.list_certificates()["certificates"] == []
    assert ledger(stack)[-1] == ("destroy", "absent")


def test_a_retention_travels_with_its_object_as_far_as_it_can_be_tagged(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, moto: MotoServer
) -> None:
    stack, sns = empty_stack(stack_factory), moto.client("sns")
    topic = sns.create_topic(Name="jobs", Tags=[{"Key": "team", "Value": "blue"}])["TopicArn"]

    def tags() -> Json:
        return {tag["Key"]: tag["Value"] for tag in sns.list_tags_for_resource(ResourceArn=topic)["Tags"]}

    (found,) = scanned(tfguard, stack, "aws_sns_topic")
    keep = ("orphans", "retain", found["id"], "--reason", "later", "--findings", "kept.json")
    done = tfguard(*keep, "--for", "1d", "--tag", cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    first = tags()["tfguard:retain-until"]
    assert tags() == {"team": "blue", "tfguard:retain-until": first, "tfguard:retain-owner": "audit"}

    # Somebody else, with another place for records, is told, and decides.
    other = stack.with_name("other")
    other.mkdir()
    (other / "terraform.tfstate").write_bytes((stack / "terraform.tfstate").read_bytes())
    (seen,) = scanned(tfguard, other, "aws_sns_topic")
    assert seen["verdict"] == "unmanaged"
    assert f"a tag says that it is kept until {first} by audit" in [item["detail"] for item in seen["evidence"]]

    moved = tfguard(*keep, "--for", "9d", cwd=stack)
    assert moved.returncode == 0, moved.stdout + moved.stderr
    assert tags()["tfguard:retain-until"] > first
    released = tfguard("orphans", "release", found["id"], "--reason", "done", cwd=stack)
    assert released.returncode == 0, released.stdout + released.stderr
    assert tags() == {"team": "blue"}
    back = tfguard("orphans", "list", "--format", "json", cwd=stack)  # without the scan's file
    assert (back.returncode, [one["id"] for one in json.loads(back.stdout)["findings"]]) == (2, [found["id"]])

    proxy.add_rule("deny", action="TagResources")
    refused = tfguard(*keep, "--for", "1d", "--tag", cwd=stack)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "the tag was not put on it: AccessDenied" in refused.stderr and "kept all the same" in refused.stderr
    listed = json.loads(tfguard("orphans", "list", "--retained", "--format", "json", cwd=stack).stdout)["retained"]
    assert [(one["decision"]["finding_id"], one["decision"]["tagged"]) for one in listed] == [(found["id"], False)]
    assert tags() == {"team": "blue"}
