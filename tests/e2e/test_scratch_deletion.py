"""An object is deleted through the engine in a folder of its own: exactly that one, with the stack's provider."""

from __future__ import annotations

import json
import os
import signal
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.terraform_env import AWS_PROVIDER
from tests.e2e.helpers import StackFactory
from tfguard.catalog.loader import load_catalog
from tfguard.engine.backend import locate_state
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.locate import read_version
from tfguard.engine.terraform import TerraformEngine
from tfguard.errors import OperationAliveError
from tfguard.model.event import EngineEvent, EventKind
from tfguard.model.lease import ProcessIdentity
from tfguard.model.plan import ProviderConfig
from tfguard.ports import Deletion, DeletionTarget

pytestmark = pytest.mark.e2e

TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
READ_ALL = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*"}]}
)
PLAIN = {"region": "us-east-1", "s3_use_path_style": "true"}
BUILTIN = "terraform.io/builtin/terraform"
# None of it may reach the engine in the scratch folder.
DISTURBING = {
    "TF_CLI_ARGS": "-no-such-flag",
    "TF_CLI_ARGS_apply": "-no-such-flag",
    "TF_WORKSPACE": "elsewhere",
    "TF_VAR_setting_0": "nowhere",
    "TF_DATA_DIR": ".terraform",
}


class Silent:
    """Nobody reads what the engine would tell the user."""

    def out(self, text: str) -> None:
        """Not shown."""

    def err(self, text: str) -> None:
        """Not shown."""


class Watcher:
    """Keeps what it is told of the run that deletes."""

    def __init__(self) -> None:
        self.processes: list[ProcessIdentity] = []
        self.events: list[EngineEvent] = []
        self.signals: list[tuple[str, bool]] = []

    def started(self, process: ProcessIdentity) -> None:
        self.processes.append(process)

    def event(self, event: EngineEvent) -> None:
        self.events.append(event)

    def interrupted(self, signal_name: str, forwarded: bool) -> None:
        self.signals.append((signal_name, forwarded))


class Scratch:
    """The engine of a stack as tfguard builds it, and one folder to delete in."""

    def __init__(self, binary: Path, stack: Path, environ: Mapping[str, str], folder: Path) -> None:
        self.folder, self.watcher = folder, Watcher()
        self.environ = {**environ, **DISTURBING}
        self._binary, self._stack = binary, stack

    def _engine(self, gate: SignalGate) -> TerraformEngine:
        installed = read_version(self._binary, self._stack)
        location = locate_state(self._stack, {}, None, installed.info)
        return TerraformEngine(installed, location, load_catalog(), self.environ, (), Silent(), gate)

    def prepare(self, target: DeletionTarget) -> Deletion:
        """Import, as a new tfguard would."""
        with SignalGate() as gate:
            return self._engine(gate).prepare_deletion(target, self.folder, "tfguard/op-1")

    def delete(self, target: DeletionTarget) -> Deletion:
        """Delete, as a new tfguard would."""
        with SignalGate() as gate:
            return self._engine(gate).delete_object(target, self.folder, "tfguard/op-1", self.watcher, lambda: False)


MakeScratch = Callable[[Path], Scratch]


@pytest.fixture
def make_scratch(engine: Path, run_env: dict[str, str], workdir: Path, monkeypatch: pytest.MonkeyPatch) -> MakeScratch:
    """Makes the engine of a stack; what it asks by itself has the same environment."""
    for name in list(os.environ):
        if name.startswith(("TF_", "AWS_")):
            monkeypatch.delenv(name)
    for name, value in run_env.items():
        monkeypatch.setenv(name, value)
    return lambda stack: Scratch(engine, stack, run_env, workdir / "run" / "scratch")


@pytest.fixture
def scratch(make_scratch: MakeScratch, stack_factory: StackFactory) -> Scratch:
    """The engine of a stack on the AWS provider."""
    return make_scratch(stack_factory(""))


def target(kind: str, import_id: str, region: str | None = None, **settings: str) -> DeletionTarget:
    """An object behind the stack's AWS provider."""
    return DeletionTarget(kind, import_id, ProviderConfig("aws", AWS_PROVIDER, {**PLAIN, **settings}), region)


def test_a_vpc_of_another_region_is_deleted_though_an_earlier_try_was_killed_after_its_import(
    scratch: Scratch, proxy: FaultProxy, moto: MotoServer
) -> None:
    far = moto.client("ec2", region="eu-west-1")
    vpc = far.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    near = [item["VpcId"] for item in moto.client("ec2").describe_vpcs()["Vpcs"]]
    wanted = target("aws_vpc", vpc, "eu-west-1")

    assert scratch.prepare(wanted).found is True  # and here that tfguard was killed
    read = scratch.prepare(wanted)
    assert (read.found, read.errors) == (True, ())
    assert read.read is not None
    assert (read.read.type, read.read.identity["id"]) == ("aws_vpc", vpc)
    assert f":eu-west-1:123456789012:vpc/{vpc}" in read.read.identity["arn"]
    assert stat.S_IMODE(scratch.folder.stat().st_mode) == 0o700

    done = scratch.delete(wanted)
    assert (done.found, done.deleted, done.errors) == (True, True, ())
    assert vpc not in [item["VpcId"] for item in far.describe_vpcs()["Vpcs"]]
    assert [item["VpcId"] for item in moto.client("ec2").describe_vpcs()["Vpcs"]] == near
    (call,) = [entry for entry in proxy.log.entries() if entry.action == "DeleteVpc"]
    assert call.region == "eu-west-1"
    assert (call.user_agent or "").endswith("tfguard/op-1")
    assert EventKind.APPLY_COMPLETE in {event.kind for event in scratch.watcher.events}
    assert len(scratch.watcher.processes) == 1


def test_a_queue_behind_a_role_is_deleted_as_that_role_and_no_credential_is_written(
    scratch: Scratch, proxy: FaultProxy, moto: MotoServer
) -> None:
    sqs = moto.client("sqs")
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    role = moto.client("iam").create_role(RoleName="deployer", AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
    block = {
        "access_key": "own-key-id",
        "secret_key": "own-secret-key",
        "allowed_account_ids.0": "123456789012",
        "assume_role.role_arn": role,
        "assume_role.session_name": "tfguard",
        "assume_role.tags.team.name": "platform",
        "default_tags.tags.kubernetes.io/name": "x",
    }
    wanted = target("aws_sqs_queue", url, None, **block)

    assert scratch.prepare(wanted).found is True
    written = b"".join(path.read_bytes() for path in scratch.folder.iterdir() if path.is_file())
    assert b"own-secret-key" not in written
    assert b"own-key-id" not in written
    assert scratch.delete(wanted).deleted

    assert "QueueUrls" not in sqs.list_queues()
    assumed = [entry.access_key_id for entry in proxy.log.entries() if entry.action == "AssumeRole"]
    assert set(assumed) == {"own-key-id"}
    (deleting,) = [entry for entry in proxy.log.entries() if entry.action == "DeleteQueue"]
    assert deleting.access_key_id not in ("own-key-id", "testing")


def test_policies_that_are_attached_to_a_role_are_never_detached_and_an_interrupt_ends_the_waiting(
    scratch: Scratch, proxy: FaultProxy, moto: MotoServer
) -> None:
    iam = moto.client("iam")
    policy = iam.create_policy(PolicyName="read", PolicyDocument=READ_ALL)["Policy"]["Arn"]
    iam.create_role(RoleName="app", AssumeRolePolicyDocument=TRUST)
    iam.attach_role_policy(RoleName="app", PolicyArn=policy)
    wanted = target("aws_iam_role", "app", "global")
    assert scratch.prepare(wanted).found is True

    def interrupt() -> None:
        proxy.wait_for("DeleteRole", timeout=120)  # refused: the provider would try again for two minutes
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    done = scratch.delete(wanted)
    waiting.join()

    assert (done.found, done.deleted, done.interrupted) == (True, False, True)
    assert scratch.watcher.signals == [("SIGINT", True)]
    refused = "deleting IAM Role (app): DeleteConflict: Cannot delete entity, must detach all policies first."
    assert (refused in done.errors, done.blocked) == (True, True)
    assert [item["PolicyName"] for item in iam.list_attached_role_policies(RoleName="app")["AttachedPolicies"]] == [
        "read"
    ]


def test_a_bucket_with_objects_blocks_its_deletion_and_keeps_them(scratch: Scratch, moto: MotoServer) -> None:
    s3 = moto.client("s3")
    s3.create_bucket(Bucket="audit-logs")
    s3.put_object(Bucket="audit-logs", Key="a", Body=b"x")
    wanted = target("aws_s3_bucket", "audit-logs")
    assert scratch.prepare(wanted).found is True
    done = scratch.delete(wanted)
    assert (done.found, done.deleted, done.blocked) == (True, False, True)
    assert done.errors == (
        "deleting S3 Bucket (audit-logs): BucketNotEmpty: The bucket you tried to delete is not empty",
    )
    assert s3.list_objects_v2(Bucket="audit-logs")["KeyCount"] == 1


def test_what_is_attached_shared_or_protected_is_neither_detached_nor_deleted(
    scratch: Scratch, proxy: FaultProxy, moto: MotoServer
) -> None:
    ec2, iam, ssm = moto.client("ec2"), moto.client("iam"), moto.client("ssm")
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    image = ec2.describe_images()["Images"][0]["ImageId"]
    instance = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    ec2.modify_instance_attribute(InstanceId=instance, DisableApiTermination={"Value": True})
    iam.create_role(RoleName="app", AssumeRolePolicyDocument=TRUST)
    iam.create_instance_profile(InstanceProfileName="app")
    iam.add_role_to_instance_profile(InstanceProfileName="app", RoleName="app")
    step = {"action": "aws:runShellScript", "name": "ls", "inputs": {"runCommand": ["ls"]}}
    content = json.dumps({"schemaVersion": "2.2", "description": "runs", "mainSteps": [step]})
    ssm.create_document(Content=content, Name="runs", DocumentType="Command")
    ssm.modify_document_permission(Name="runs", PermissionType="Share", AccountIdsToAdd=["222222222222"])
    replicas = [{"Region": "eu-west-1"}]
    secret = moto.client("secretsmanager").create_secret(Name="db", SecretString="x", AddReplicaRegions=replicas)["ARN"]

    def refused(kind: str, name: str, region: str | None = None) -> str:
        wanted = target(kind, name, region)
        assert scratch.prepare(wanted).found is True
        done = scratch.delete(wanted)
        assert (done.found, done.deleted) == (True, False)
        return "; ".join(done.errors)

    def interrupt() -> None:
        proxy.wait_for("DeleteInternetGateway", timeout=120)  # refused: the provider would try again for a long time
        os.kill(os.getpid(), signal.SIGINT)

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    assert "DependencyViolation" in refused("aws_internet_gateway", gateway)
    waiting.join()
    assert "must remove roles" in refused("aws_iam_instance_profile", "app", "global")
    assert "Must unshare document first" in refused("aws_ssm_document", "runs")
    assert "still has replica regions" in refused("aws_secretsmanager_secret", secret)
    assert "protected from being terminated" in refused("aws_instance", instance)
    assert set(proxy.log.actions(mutating=True)) == {
        "DeleteInternetGateway", "DeleteInstanceProfile", "DeleteDocument", "DeleteSecret"
    }  # fmt: skip


def test_a_secret_keeps_its_recovery_window(scratch: Scratch, moto: MotoServer) -> None:
    secrets = moto.client("secretsmanager")
    arn = secrets.create_secret(Name="db", SecretString="x")["ARN"]
    wanted = target("aws_secretsmanager_secret", arn)
    assert scratch.prepare(wanted).found is True
    assert scratch.delete(wanted).deleted
    (left,) = secrets.list_secrets(IncludePlannedDeletion=True)["SecretList"]
    assert (left["ARN"], "DeletedDate" in left) == (arn, True)


def test_an_object_that_is_gone_meanwhile_is_told_as_such_by_the_engine_itself(scratch: Scratch) -> None:
    assert scratch.prepare(target("aws_vpc", "vpc-0123456789abcdef0")) == Deletion(False)


def test_a_provider_setting_that_is_not_known_stops_it_before_the_engine_starts(scratch: Scratch) -> None:
    unresolved = frozenset({"assume_role.role_arn", "default_tags.tags", "max_retries", "region"})
    provider = ProviderConfig("aws", AWS_PROVIDER, {}, unresolved)
    done = scratch.prepare(DeletionTarget("aws_vpc", "vpc-1", provider, "eu-west-1"))
    assert done.found is None
    assert "assume_role.role_arn" in done.errors[0]
    assert not {"default_tags", "max_retries", "region"} & set(done.errors[0].replace(",", " ").split())
    assert not scratch.folder.exists()


def test_a_provider_that_the_stack_has_not_installed_and_that_cannot_be_had_is_said(
    make_scratch: MakeScratch, plain_stack: StackFactory, run_env: dict[str, str], tmp_path: Path
) -> None:
    nothing = tmp_path / "nothing.rc"
    nothing.write_text(f'provider_installation {{\n  filesystem_mirror {{\n    path = "{tmp_path}"\n  }}\n}}\n')
    run_env["TF_CLI_CONFIG_FILE"] = str(nothing)
    done = make_scratch(plain_stack("")).prepare(target("aws_vpc", "vpc-1"))
    assert done.found is None
    assert done.errors[0].startswith(f"the provider {AWS_PROVIDER} cannot be set up here: Failed to query available")


def test_a_provider_without_settings_serves_and_nothing_is_deleted_without_an_import(
    make_scratch: MakeScratch, plain_stack: StackFactory
) -> None:
    scratch = make_scratch(plain_stack(""))
    wanted = DeletionTarget("terraform_data", "some-id", ProviderConfig("terraform", BUILTIN))
    assert scratch.prepare(wanted).found is True
    (scratch.folder / "terraform.tfstate").write_bytes(b"")  # what a kill can leave
    assert scratch.delete(wanted).errors == ("nothing was imported to be deleted",)
    assert scratch.prepare(wanted).found is True
    assert scratch.delete(wanted).deleted
    assert not (scratch.folder / "plan").exists()


def test_a_folder_in_which_an_engine_still_works_is_left_alone(
    make_scratch: MakeScratch, plain_stack: StackFactory
) -> None:
    scratch = make_scratch(plain_stack(""))
    wanted = DeletionTarget("terraform_data", "some-id", ProviderConfig("terraform", BUILTIN))
    assert scratch.prepare(wanted).found is True
    before = sorted(path.name for path in scratch.folder.iterdir())
    with (scratch.folder / "apply.stdout").open("wb") as held:
        child = os.posix_spawn(
            "/bin/sleep", ["sleep", "300"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, held.fileno(), 1)]
        )
    try:
        for step in (scratch.prepare, scratch.delete):
            with pytest.raises(OperationAliveError, match="still works in"):
                step(wanted)
        assert sorted(path.name for path in scratch.folder.iterdir()) == sorted([*before, "apply.stdout"])
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
