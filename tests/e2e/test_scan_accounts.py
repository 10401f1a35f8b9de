"""Scans through roles into several accounts, in other partitions, and with list calls that go wrong on the way."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from helpers import Json

from fixtures.aws_sim import ACCESS_KEY, ACCOUNT_ID, REGION, SECRET_KEY, MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.labelled.states import state_v4
from fixtures.leftovers import end_processes_in
from fixtures.terraform_env import terraform_environment
from tests.conftest import ROOT, TFGUARD
from tfguard.errors import ExitCode

pytestmark = pytest.mark.e2e

ONE, OTHER = "111111111111", "222222222222"
TRUST = '{"Version": "2012-10-17", "Statement": []}'
QUEUES, GROUPS, ROLES = "aws_sqs_queue", "aws_cloudwatch_log_group", "aws_iam_role"
MANY_GROUPS = 60  # a page holds 50


def role_in(account: str, partition: str = "aws") -> str:
    """The role that the scan assumes in an account."""
    return f"arn:{partition}:iam::{account}:role/scan"


@dataclass(frozen=True)
class Scanned:
    """How a scan ended, and what it told."""

    code: int
    document: Json
    stderr: str

    @property
    def gaps(self) -> dict[str, str]:
        """The reason of each gap, by its scope."""
        return {gap["scope"]: gap["reason"] for gap in self.document["coverage"]["gaps"]}

    def named(self, verdict: str) -> set[tuple[str, str]]:
        """Account and name of the objects with a verdict."""
        found = (one["object"] for one in self.document["findings"] if one["verdict"] == verdict and one["object"])
        return {(one["account"], one["name"]) for one in found}

    @property
    def missing(self) -> set[str]:
        """The addresses of what states have, and lists have not."""
        return {one["address"] for one in self.document["findings"] if one["verdict"] == "missing"}


@dataclass
class Cloud:
    """The simulated cloud, and a folder from which it is scanned."""

    moto: MotoServer
    proxy: FaultProxy
    folder: Path
    environment: Mapping[str, str]
    held: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def client(self, service: str, region: str = REGION, role: str | None = None) -> Any:
        """A client of the SDK, in the account of a role where one is named."""
        keys = (ACCESS_KEY, SECRET_KEY, None)
        if role:
            sts = self.client("sts", region)
            given = sts.assume_role(RoleArn=role, RoleSessionName="seed")["Credentials"]
            keys = (given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
        return boto3.client(
            service,
            region,
            endpoint_url=self.moto.url,
            aws_access_key_id=keys[0],
            aws_secret_access_key=keys[1],
            aws_session_token=keys[2],
        )

    def write(self, aws: Mapping[str, object], held: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        """What tfguard.yaml says of AWS, and what the one state holds."""
        (self.folder / "tfguard.yaml").write_text(json.dumps({"scan": {"stacks": ["a.tfstate"], "aws": aws}}))
        (self.folder / "a.tfstate").write_bytes(state_v4(held, "accounts"))

    def run(self, *arguments: str, through: bool = True, env: Mapping[str, str] | None = None) -> Any:
        """Scan as a user would, through the proxy."""
        self.proxy.log.clear()
        endpoint = {"AWS_ENDPOINT_URL": self.proxy.url} if through else {}
        return subprocess.run(
            [*TFGUARD, "scan", *arguments],
            cwd=self.folder,
            env={**self.environment, **endpoint, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def scan(self, *arguments: str, env: Mapping[str, str] | None = None) -> Scanned:
        """The same, with what it told as a document."""
        done = self.run(*arguments, "--no-audit-log", "--format", "json", env=env)
        assert done.returncode in (ExitCode.DONE, ExitCode.FOUND, ExitCode.INCOMPLETE), done.stderr
        return Scanned(done.returncode, json.loads(done.stdout), done.stderr)


@pytest.fixture(scope="module")
def running(cli_config: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MotoServer, FaultProxy, Any]]:
    """A cloud of this module's own, since its accounts and partitions are not those of the other tests."""
    home = tmp_path_factory.mktemp("home")
    environment = terraform_environment(cli_config) | {"PYTHONPATH": str(ROOT), "HOME": str(home)}
    with MotoServer() as moto, FaultProxy(moto.url) as proxy:
        yield moto, proxy, environment


@pytest.fixture
def cloud(running: tuple[MotoServer, FaultProxy, Any], tmp_path: Path) -> Iterator[Cloud]:
    """An empty one."""
    moto, proxy, environment = running
    moto.reset()
    proxy.clear()
    yield Cloud(moto, proxy, tmp_path, environment)
    end_processes_in(tmp_path)


def queue(cloud: Cloud, name: str, **where: Any) -> dict[str, str]:
    """Make a queue; the attributes that a state has of it."""
    client = cloud.client("sqs", **where)
    url = client.create_queue(QueueName=name)["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return {"id": url, "url": url, "name": name, "arn": arn}


# --- accounts through roles -------------------------------------------------------------------------------------------


ACCOUNTS = [{"id": account, "role": role_in(account)} for account in (ONE, OTHER)]


@pytest.fixture
def two_accounts(cloud: Cloud) -> Cloud:
    """In each account a queue that the state has and one that it has not; and its role `scan`, which it has."""
    held: list[tuple[str, dict[str, str]]] = []
    for account in (ONE, OTHER):
        held.append((QUEUES, queue(cloud, "kept", role=role_in(account))))
        queue(cloud, "stray", role=role_in(account))
        made = cloud.client("iam", role=role_in(account)).create_role(RoleName="scan", AssumeRolePolicyDocument=TRUST)
        held.append((ROLES, {"id": "scan", "name": "scan", "arn": made["Role"]["Arn"]}))
    cloud.held = held
    cloud.write({"regions": [REGION], "types": [QUEUES, ROLES], "accounts": ACCOUNTS}, held)
    return cloud


def test_each_account_is_listed_in_its_role_and_an_equal_name_elsewhere_is_another_object(two_accounts: Cloud) -> None:
    found = two_accounts.scan()
    assert (found.code, found.gaps) == (ExitCode.FOUND, {})
    assert found.named("unmanaged") == {(ONE, "stray"), (OTHER, "stray")}
    assert found.document["summary"] == {"managed": 4, "unmanaged": 2}
    assert found.document["coverage"]["types_listed"] == 2
    # `--account` leaves the other one alone: its objects are neither listed nor missing.
    alone = two_accounts.scan("--account", OTHER)
    assert (alone.named("unmanaged"), alone.gaps, alone.missing) == ({(OTHER, "stray")}, {}, set())


def test_a_role_in_another_account_than_the_configured_one_lists_nothing(two_accounts: Cloud) -> None:
    astray = {"id": OTHER, "role": role_in(ONE)}
    two_accounts.write({"regions": [REGION], "types": [QUEUES, ROLES], "accounts": [astray]}, two_accounts.held)
    refused = two_accounts.run()
    assert (refused.returncode, refused.stdout) == (ExitCode.ERROR, "")
    assert f"those of account {ONE}" in refused.stderr
    assert {entry.action for entry in two_accounts.proxy.log} == {"AssumeRole", "GetCallerIdentity"}
    for accounts in ([ACCOUNTS[0], astray], [astray, ACCOUNTS[0]]):
        two_accounts.write({"regions": [REGION], "types": [QUEUES, ROLES], "accounts": accounts}, two_accounts.held)
        found = two_accounts.scan()
        assert set(found.gaps) == {f"aws {OTHER} {REGION} {QUEUES}", f"aws {OTHER} global {ROLES}"}
        assert all(f"those of account {ONE}" in reason for reason in found.gaps.values())
        assert found.missing == set()
        assert (found.code, found.named("unmanaged")) == (ExitCode.FOUND, {(ONE, "stray")})
        assert found.document["summary"] == {"managed": 2, "unmanaged": 1}


def test_where_one_role_is_refused_the_other_account_is_complete_and_the_scan_is_not_clean(two_accounts: Cloud) -> None:
    two_accounts.client("sqs", role=role_in(ONE)).delete_queue(
        QueueUrl=two_accounts.client("sqs", role=role_in(ONE)).get_queue_url(QueueName="stray")["QueueUrl"]
    )
    rule = two_accounts.proxy.add_rule("deny", action="AssumeRole", contains=OTHER, count=None)
    found = two_accounts.scan()
    assert rule.fired
    assert found.gaps == {
        f"aws {OTHER} {REGION} {QUEUES}": "AccessDenied on AssumeRole",
        f"aws {OTHER} global {ROLES}": "AccessDenied on AssumeRole",
    }
    # Nothing of the account that could not be looked into is missing, and all of the other one is managed.
    assert (found.code, found.document["findings"]) == (ExitCode.INCOMPLETE, [])
    assert found.document["summary"] == {"managed": 2}

    text = two_accounts.run("--no-audit-log")
    assert text.returncode == ExitCode.INCOMPLETE
    *_, gaps, last = text.stdout.splitlines()
    where = "; ".join(scope.replace(" aws_", ": aws_") for scope in sorted(found.gaps))
    assert gaps == f"2 gaps: {where}: AccessDenied on AssumeRole"
    assert last == "coverage: incomplete, 2 gaps (1 state, 2 types)"


def test_an_account_that_cannot_be_asked_for_is_never_taken_for_the_configured_one(two_accounts: Cloud) -> None:
    two_accounts.write({"regions": [REGION], "types": [QUEUES], "accounts": [{"id": ACCOUNT_ID}]}, two_accounts.held)
    queue(two_accounts, "here")
    assert two_accounts.scan().named("unmanaged") == {(ACCOUNT_ID, "here")}
    two_accounts.proxy.add_rule("deny", action="GetCallerIdentity", count=None)
    refused = two_accounts.run()
    assert (refused.returncode, refused.stdout) == (ExitCode.ERROR, "")
    assert "AccessDenied on GetCallerIdentity" in refused.stderr
    assert "ListQueues" not in {entry.action for entry in two_accounts.proxy.log}


# --- partitions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "regions", "once"),
    [
        ("aws-us-gov", ("us-gov-east-1", "us-gov-west-1"), "us-gov-west-1"),
        ("aws-cn", ("cn-northwest-1", "cn-north-1"), "cn-north-1"),
    ],
)
def test_in_another_partition_states_match_and_what_is_there_once_is_asked_for_once(
    cloud: Cloud, partition: str, regions: tuple[str, str], once: str
) -> None:
    scan_role = role_in(ONE, partition)
    held = []
    for region in regions:
        held.append((QUEUES, queue(cloud, "kept", region=region, role=scan_role)))
        queue(cloud, f"stray-{region}", region=region, role=scan_role)
    iam = cloud.client("iam", once, role=scan_role)
    for name in ("kept", "stray"):
        arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
        held += [(ROLES, {"id": name, "name": name, "arn": arn})] if name == "kept" else []
    gone = f"arn:{partition}:iam::{ONE}:role/gone"
    held.append((ROLES, {"id": "gone", "name": "gone", "arn": gone}))
    assert all(attributes["arn"].startswith(f"arn:{partition}:") for _, attributes in held)
    accounts = [{"id": ONE, "role": scan_role}]
    cloud.write({"regions": list(regions), "types": [QUEUES, ROLES], "accounts": accounts}, held)

    found = cloud.scan(env={"AWS_REGION": regions[0], "AWS_DEFAULT_REGION": regions[0]})
    assert (found.code, found.gaps) == (ExitCode.FOUND, {})
    assert found.document["summary"] == {"managed": 3, "unmanaged": 3, "missing": 1}
    assert found.named("unmanaged") == {(ONE, "stray"), *((ONE, f"stray-{region}") for region in regions)}
    assert len(found.missing) == 1
    arns = [one["object"]["arn"] for one in found.document["findings"] if one["object"]]
    assert all(arn.startswith(f"arn:{partition}:") for arn in arns)
    asked = [(entry.action, entry.region) for entry in cloud.proxy.log if entry.action in ("ListRoles", "ListQueues")]
    assert sorted(asked) == sorted([("ListRoles", once), *(("ListQueues", region) for region in regions)])


# --- list calls that go wrong -----------------------------------------------------------------------------------------


@pytest.fixture
def pages(cloud: Cloud) -> Cloud:
    """Log groups on two pages and a queue, all of which the state has."""
    logs = cloud.client("logs")
    names = [f"group-{number:02}" for number in range(MANY_GROUPS)]
    for name in names:
        logs.create_log_group(logGroupName=name)
    arn = f"arn:aws:logs:{REGION}:{ACCOUNT_ID}:log-group:"
    cloud.held = [(GROUPS, {"id": name, "name": name, "arn": arn + name}) for name in names]
    cloud.held.append((QUEUES, queue(cloud, "kept")))
    cloud.write({"regions": [REGION], "types": [GROUPS, QUEUES]}, cloud.held)
    return cloud


Fault = Callable[[FaultProxy], Any]


def throttled(times: int | None) -> Fault:
    """Too many calls, this often; None for ever."""
    return lambda proxy: proxy.add_rule("throttle", action="DescribeLogGroups", count=times)


def at_page_two(fault: str, **answer: Any) -> Fault:
    """The first page comes, and no other."""
    return lambda proxy: proxy.add_rule(fault, action="DescribeLogGroups", skip=1, count=None, **answer)


def test_a_throttled_list_is_asked_again_until_it_answers(pages: Cloud) -> None:
    rule = throttled(2)(pages.proxy)
    done = pages.run("--no-audit-log")
    assert rule.fired == 2
    assert done.returncode == ExitCode.DONE, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "coverage: complete (1 state, 2 types)"
    assert f"objects: {MANY_GROUPS + 1} managed" in done.stdout


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (throttled(None), "Throttling"),
        (at_page_two("deny"), "AccessDenied"),
        (at_page_two("error:400", code="ExpiredTokenException"), "ExpiredToken"),
        (at_page_two("error:500"), "InternalFailure"),
        (at_page_two("cut"), "UnreadableAnswerError"),
    ],
    ids=["throttled for ever", "denied at page two", "expired at page two", "failing at page two", "cut at page two"],
)
def test_a_list_that_stops_midway_is_a_gap_and_what_it_did_not_reach_is_not_missing(
    pages: Cloud, fault: Fault, reason: str
) -> None:
    rule = fault(pages.proxy)
    found = pages.scan()
    assert rule.fired
    (scope, told), *others = found.gaps.items()
    assert (scope, others) == (f"aws {ACCOUNT_ID} {REGION} {GROUPS}", [])
    assert reason in told
    assert told.endswith("on DescribeLogGroups") or "Error" in told
    # Nothing that nobody saw is called missing, the other type is complete, and it is not clean.
    assert (found.code, found.missing) == (ExitCode.INCOMPLETE, set())
    assert found.document["coverage"]["types_listed"] == 1
    assert found.document["summary"]["managed"] == (1 if reason == "Throttling" else 51)


def test_a_stray_on_the_page_before_the_failing_one_is_told_and_the_scan_is_incomplete(pages: Cloud) -> None:
    pages.client("logs").create_log_group(logGroupName="aaa")
    at_page_two("deny")(pages.proxy)
    done = pages.run("--no-audit-log")
    assert done.returncode == ExitCode.FOUND
    assert f"{GROUPS} aaa" in done.stdout
    assert done.stdout.splitlines()[-1] == "coverage: incomplete, 1 gap (1 state, 1 type)"


def test_credentials_that_end_in_the_middle_leave_gaps_for_all_that_comes_after(pages: Cloud) -> None:
    rule = pages.proxy.add_rule("error:403", code="ExpiredToken", skip=2, count=None)
    done = pages.run("--no-audit-log", "--workers", "1")
    assert rule.fired
    assert done.returncode == ExitCode.INCOMPLETE, done.stdout
    gaps = [line for line in done.stdout.splitlines() if re.match(r"(\d+ gaps|gap): ", line)]
    assert gaps and all("ExpiredToken" in line for line in gaps)
    assert "missing" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("coverage: incomplete, ")


def test_kept_findings_that_are_damaged_stop_the_scan_before_anything_is_listed_and_stay_as_they_are(
    pages: Cloud,
) -> None:
    pages.client("sqs").create_queue(QueueName="stray")
    kept = pages.folder / "kept.json"
    assert pages.run("--no-audit-log", "--state-file", str(kept)).returncode == ExitCode.FOUND
    whole = kept.read_bytes()
    ways = ((), ("--since", "last"), ("--since", str(kept)))
    for damaged, since in zip((b"", whole[:-40], whole.replace(b"stray", b"strax")), ways, strict=True):
        kept.write_bytes(damaged)
        done = pages.run("--state-file", str(kept), *since)
        assert (done.returncode, done.stdout) == (ExitCode.ERROR, "")
        assert f"{kept} cannot be read as the findings of a scan" in done.stderr
        assert (kept.read_bytes(), list(pages.proxy.log)) == (damaged, [])


def test_a_region_that_does_not_exist_is_refused_before_anything_is_listed(pages: Cloud) -> None:
    done = pages.run("--region", "eu-wset-1", through=False)
    assert done.returncode == ExitCode.ERROR
    assert "eu-wset-1 is no region of AWS" in done.stderr
    assert "coverage: complete" not in done.stdout
    assert list(pages.proxy.log) == []
