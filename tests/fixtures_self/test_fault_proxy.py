"""Every fault of the proxy on every protocol, with boto3 as the client and moto behind."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, HTTPClientError
from botocore.parsers import ResponseParserError

from fixtures.aws_calls import ApiCall, Protocol, classify
from fixtures.aws_sim import MotoServer, aws_client
from fixtures.fault_proxy import FaultProxy, Watch
from fixtures.fault_rules import BadRuleError, make_rule

ROOT = Path(__file__).parent.parent.parent
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
SIGNED_FORM = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/iam/aws4_request",
    "Content-Type": "application/x-www-form-urlencoded",
}


@dataclass(frozen=True)
class Case:
    """A create call of one protocol, and how to count what it made."""

    service: str
    action: str
    create: Callable[[Any], object]
    count: Callable[[Any], int]
    denied: str
    throttled: str


CASES = {
    "query": Case(
        "iam",
        "CreateRole",
        lambda iam: iam.create_role(RoleName="app", AssumeRolePolicyDocument=TRUST),
        lambda iam: len(iam.list_roles()["Roles"]),
        "AccessDenied",
        "Throttling",
    ),
    "ec2": Case(
        "ec2",
        "CreateVpc",
        lambda ec2: ec2.create_vpc(CidrBlock="10.9.0.0/16"),
        lambda ec2: len(ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.9.0.0/16"]}])["Vpcs"]),
        "UnauthorizedOperation",
        "RequestLimitExceeded",
    ),
    "json": Case(
        "sqs",
        "CreateQueue",
        lambda sqs: sqs.create_queue(QueueName="jobs"),
        lambda sqs: len(sqs.list_queues().get("QueueUrls", [])),
        "AccessDeniedException",
        "ThrottlingException",
    ),
    "rest-json": Case(
        "efs",
        "CreateFileSystem",
        lambda efs: efs.create_file_system(CreationToken="one"),
        lambda efs: len(efs.describe_file_systems()["FileSystems"]),
        "AccessDeniedException",
        "TooManyRequestsException",
    ),
    "rest-xml": Case(
        "route53",
        "CreateHostedZone",
        lambda zones: zones.create_hosted_zone(Name="example.org", CallerReference="one"),
        lambda zones: len(zones.list_hosted_zones()["HostedZones"]),
        "AccessDenied",
        "Throttling",
    ),
    "s3": Case(
        "s3",
        "CreateBucket",
        lambda s3: s3.create_bucket(Bucket="audit-logs"),
        lambda s3: len(s3.list_buckets()["Buckets"]),
        "AccessDenied",
        "SlowDown",
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def client(case: Case, proxy: FaultProxy) -> Any:
    """A client that goes through the proxy and does not retry."""
    return aws_client(case.service, proxy.url)


@pytest.fixture
def made(case: Case, moto: MotoServer) -> Callable[[], int]:
    """Counts what exists, asking moto itself."""
    direct = moto.client(case.service)
    return lambda: case.count(direct)


def test_without_a_rule_a_call_goes_through(case: Case, client: Any, proxy: FaultProxy, made: Any) -> None:
    case.create(client)
    assert made() == 1
    assert [(entry.action, entry.done, entry.mutating) for entry in proxy.log] == [(case.action, "forward", True)]


def test_dropped_call_took_effect(case: Case, client: Any, proxy: FaultProxy, made: Any) -> None:
    proxy.add_rule("drop", action=case.action)
    with pytest.raises((ConnectionClosedError, HTTPClientError)):
        case.create(client)
    assert made() == 1
    assert [(entry.done, entry.forwarded) for entry in proxy.log] == [("drop", True)]


def test_refused_connection_has_no_effect(case: Case, client: Any, proxy: FaultProxy, made: Any) -> None:
    proxy.add_rule("refuse", action=case.action)
    with pytest.raises((ConnectionClosedError, HTTPClientError)):
        case.create(client)
    assert made() == 0
    assert [(entry.done, entry.forwarded) for entry in proxy.log] == [("refuse", False)]


def test_cut_reply_took_effect(case: Case, client: Any, proxy: FaultProxy, made: Any) -> None:
    proxy.add_rule("cut", action=case.action)
    # boto3 does not check a reply's length, so what it makes of half a reply depends on the parser.
    with contextlib.suppress(BotoCoreError, ResponseParserError):
        case.create(client)
    assert made() == 1
    assert [(entry.done, entry.forwarded) for entry in proxy.log] == [("cut", True)]


def test_cut_reply_is_shorter_than_it_promises(proxy: FaultProxy) -> None:
    proxy.add_rule("cut", action="ListUsers")
    connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc)
    connection.request("POST", "/", body="Action=ListUsers&Version=2010-05-08", headers=SIGNED_FORM)
    with pytest.raises(http.client.IncompleteRead):
        connection.getresponse().read()
    connection.close()


def test_denied_call_has_no_effect(case: Case, client: Any, proxy: FaultProxy, made: Any) -> None:
    proxy.add_rule("deny", action=case.action)
    with pytest.raises(ClientError) as caught:
        case.create(client)
    assert caught.value.response["Error"]["Code"] == case.denied
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert made() == 0
    assert [(entry.done, entry.forwarded) for entry in proxy.log] == [("deny", False)]


def test_throttled_call_has_no_effect(case: Case, client: Any, proxy: FaultProxy, made: Any) -> None:
    proxy.add_rule("throttle", action=case.action)
    with pytest.raises(ClientError) as caught:
        case.create(client)
    assert caught.value.response["Error"]["Code"] == case.throttled
    assert made() == 0


def test_error_answers_with_the_status_asked_for(case: Case, client: Any, proxy: FaultProxy, made: Any) -> None:
    proxy.add_rule("error:502", action=case.action, code="Broken", message="no luck")
    with pytest.raises(ClientError) as caught:
        case.create(client)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 502
    assert caught.value.response["Error"]["Code"] == "Broken"
    assert made() == 0


def test_forwarded_error_hides_an_effect(case: Case, client: Any, proxy: FaultProxy, made: Any) -> None:
    proxy.add_rule("error:500", action=case.action, forward=True)
    with pytest.raises(ClientError):
        case.create(client)
    assert made() == 1


def test_object_exists_while_its_reply_is_delayed(case: Case, client: Any, proxy: FaultProxy, made: Any) -> None:
    proxy.add_rule("delay:1", action=case.action)
    began = time.monotonic()
    caller = threading.Thread(target=case.create, args=(client,))
    caller.start()
    proxy.wait_for(case.action)
    assert made() == 1
    assert caller.is_alive()
    caller.join()
    assert time.monotonic() - began >= 1
    assert [(entry.done, entry.client_gone) for entry in proxy.log] == [("delay", False)]


def test_delay_ends_when_it_is_released(proxy: FaultProxy) -> None:
    proxy.add_rule("delay:60", action="ListRoles")
    caller = threading.Thread(target=_succeeds, args=(aws_client("iam", proxy.url).list_roles,))
    caller.start()
    proxy.wait_for("ListRoles")
    proxy.release()
    caller.join(timeout=10)
    assert not caller.is_alive()
    assert not proxy.log[0].client_gone


def test_client_that_leaves_during_a_delay_is_noted(proxy: FaultProxy) -> None:
    proxy.add_rule("delay:60", method="POST")
    address = urlsplit(proxy.url)
    leaving = http.client.HTTPConnection(address.netloc)
    leaving.request("POST", "/", body="Action=ListUsers&Version=2010-05-08", headers=SIGNED_FORM)
    proxy.wait_for("ListUsers")
    leaving.close()
    assert proxy.log.wait_until(lambda: proxy.log[0].client_gone, timeout=5)


def test_count_and_skip_choose_which_calls_fail(proxy: FaultProxy) -> None:
    rule = proxy.add_rule("deny", action="List*", skip=1, count=2)
    iam = aws_client("iam", proxy.url)
    answers = [_succeeds(iam.list_roles) for _ in range(5)]
    assert answers == [True, False, False, True, True]
    assert (rule.matched, rule.fired) == (5, 2)


def test_rule_without_count_never_ends(proxy: FaultProxy) -> None:
    proxy.add_rule("deny", action="ListRoles", count=None)
    iam = aws_client("iam", proxy.url)
    assert [_succeeds(iam.list_roles) for _ in range(4)] == [False] * 4


def test_rules_can_tell_calls_apart_by_body_path_service_and_region(proxy: FaultProxy) -> None:
    proxy.add_rule("deny", action="CreateRole", contains="RoleName=second", count=None)
    proxy.add_rule("deny", method="PUT", path="/closed-*", count=None)
    proxy.add_rule("deny", service="sqs", region="eu-west-1", count=None)
    iam, s3 = aws_client("iam", proxy.url), aws_client("s3", proxy.url)
    assert _succeeds(lambda: iam.create_role(RoleName="first", AssumeRolePolicyDocument=TRUST))
    assert not _succeeds(lambda: iam.create_role(RoleName="second", AssumeRolePolicyDocument=TRUST))
    assert _succeeds(lambda: s3.create_bucket(Bucket="open-one"))
    assert not _succeeds(lambda: s3.create_bucket(Bucket="closed-one"))
    assert _succeeds(aws_client("sqs", proxy.url).list_queues)
    assert not _succeeds(aws_client("sqs", proxy.url, region="eu-west-1").list_queues)


def test_retries_after_a_drop_make_a_second_vpc(moto: MotoServer, proxy: FaultProxy) -> None:
    proxy.add_rule("drop", action="CreateVpc")
    aws_client("ec2", proxy.url, retries=2).create_vpc(CidrBlock="10.9.0.0/16")
    assert CASES["ec2"].count(moto.client("ec2")) == 2


def test_log_tells_reads_from_changes_and_keeps_no_secret(proxy: FaultProxy) -> None:
    iam, s3 = aws_client("iam", proxy.url), aws_client("s3", proxy.url, region="eu-west-1")
    iam.create_role(RoleName="app", AssumeRolePolicyDocument=TRUST)
    iam.get_role(RoleName="app")
    s3.create_bucket(Bucket="audit-logs", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    s3.head_bucket(Bucket="audit-logs")
    s3.put_object(Bucket="audit-logs", Key="a/b", Body=b"hidden text")
    s3.list_objects_v2(Bucket="audit-logs")
    assert proxy.log.actions(mutating=True) == ["CreateRole", "CreateBucket", "PutObject"]
    assert proxy.log.actions(mutating=False) == ["GetRole", "HeadBucket", "ListObjectsV2"]
    entry = proxy.log.entries("CreateBucket")[0]
    assert (entry.region, entry.access_key_id, entry.upstream_status) == ("eu-west-1", "testing", 200)
    assert "Boto3" in (entry.user_agent or "")
    written = json.dumps([entry.as_dict() for entry in proxy.log])
    assert "hidden text" not in written and "Signature" not in written


def test_big_and_multipart_bodies_arrive_whole(moto: MotoServer, proxy: FaultProxy) -> None:
    s3 = aws_client("s3", proxy.url)
    s3.create_bucket(Bucket="big-one")
    data = bytes(range(256)) * 80_000
    s3.put_object(Bucket="big-one", Key="whole", Body=data)
    upload = s3.create_multipart_upload(Bucket="big-one", Key="parts")["UploadId"]
    etag = s3.upload_part(Bucket="big-one", Key="parts", UploadId=upload, PartNumber=1, Body=data)["ETag"]
    s3.complete_multipart_upload(
        Bucket="big-one",
        Key="parts",
        UploadId=upload,
        MultipartUpload={"Parts": [{"ETag": etag, "PartNumber": 1}]},
    )
    for key in ("whole", "parts"):
        assert s3.get_object(Bucket="big-one", Key=key)["Body"].read() == data
        assert s3.head_object(Bucket="big-one", Key=key)["ContentLength"] == len(data)
    assert proxy.log.actions(mutating=True) == [
        "CreateBucket",
        "PutObject",
        "CreateMultipartUpload",
        "UploadPart",
        "CompleteMultipartUpload",
    ]
    assert moto.client("s3").get_object(Bucket="big-one", Key="whole")["Body"].read() == data


def test_chunked_body_arrives_whole(moto: MotoServer, proxy: FaultProxy) -> None:
    connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc)
    chunks = iter([b"Action=CreateUser&", b"Version=2010-05-08&UserName=chunky"])
    connection.request("POST", "/", body=chunks, headers=SIGNED_FORM, encode_chunked=True)
    assert connection.getresponse().read()
    connection.request("POST", "/", body="Action=ListUsers&Version=2010-05-08", headers=SIGNED_FORM)
    assert b"chunky" in connection.getresponse().read()
    connection.close()
    assert [user["UserName"] for user in moto.client("iam").list_users()["Users"]] == ["chunky"]


def test_unreachable_upstream_is_a_bad_gateway() -> None:
    with FaultProxy("http://127.0.0.1:9") as proxy:
        with pytest.raises(ClientError) as caught:
            aws_client("iam", proxy.url).list_roles()
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 502
        assert [entry.done for entry in proxy.log] == ["upstream-error"]


class _Renamed(Watch):
    def reply(self, call: ApiCall, body: bytes) -> bytes:
        return body.replace(b"<RoleName>one", b"<RoleName>another") if call.action == "ListRoles" else body


def test_an_answer_can_be_changed_on_its_way(moto: MotoServer, proxy: FaultProxy) -> None:
    moto.client("iam").create_role(RoleName="one", AssumeRolePolicyDocument=TRUST)
    proxy.watch(_Renamed())
    iam = moto.client("iam", url=proxy.url)
    assert [role["RoleName"] for role in iam.list_roles()["Roles"]] == ["another"]
    assert iam.get_role(RoleName="one")["Role"]["RoleName"] == "one"


def test_closing_the_proxy_ends_a_delay(moto: MotoServer) -> None:
    with FaultProxy(moto.url) as proxy:
        proxy.add_rule("delay:60", action="ListRoles")
        caller = threading.Thread(target=_succeeds, args=(aws_client("iam", proxy.url).list_roles,))
        caller.start()
        proxy.wait_for("ListRoles")
    caller.join(timeout=10)
    assert not caller.is_alive()


@pytest.mark.parametrize(
    ("method", "target", "action"),
    [
        ("GET", "/", "ListBuckets"),
        ("PUT", "/b/", "CreateBucket"),
        ("HEAD", "/b", "HeadBucket"),
        ("GET", "/b?versioning=", "GetBucketVersioning"),
        ("PUT", "/b?tagging", "PutBucketTagging"),
        ("DELETE", "/b", "DeleteBucket"),
        ("POST", "/b?delete", "DeleteObjects"),
        ("GET", "/b?list-type=2&prefix=x", "ListObjectsV2"),
        ("PUT", "/b/a/deep/key", "PutObject"),
        ("GET", "/b/key?x-id=GetObject", "GetObject"),
        ("PUT", "/b/key?partNumber=1&uploadId=u", "UploadPart"),
        ("DELETE", "/b/key?uploadId=u", "AbortMultipartUpload"),
        ("GET", "/b?lifecycle", "GetBucketLifecycleConfiguration"),
        ("GET", "/b?policy", "GetBucketPolicy"),
    ],
)
def test_s3_requests_get_their_operation_names(method: str, target: str, action: str) -> None:
    headers = {"Authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu-west-1/s3/aws4_request, Signature=x"}
    call = classify(method, target, headers, b"")
    assert (call.action, call.protocol, call.region) == (action, Protocol.S3, "eu-west-1")


def test_copy_is_told_from_put_by_its_header() -> None:
    headers = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu-west-1/s3/aws4_request",
        "x-amz-copy-source": "/b/other",
    }
    assert classify("PUT", "/b/key", headers, b"").action == "CopyObject"


@pytest.mark.parametrize(
    "bad", [{"fault": "explode"}, {"fault": "drop", "verb": "PUT"}, {"fault": "drop", "contains": "("}]
)
def test_rule_that_makes_no_sense_is_refused(bad: dict[str, str]) -> None:
    with pytest.raises(BadRuleError):
        make_rule(**bad)


def test_rules_and_log_can_be_driven_over_http(proxy: FaultProxy) -> None:
    status, added = _control(proxy.url, "POST", "rules", [{"fault": "deny", "action": "ListRoles"}])
    assert (status, added[0]["count"]) == (201, 1)
    assert not _succeeds(aws_client("iam", proxy.url).list_roles)
    assert _control(proxy.url, "GET", "rules")[1][0]["fired"] == 1
    assert [entry["action"] for entry in _control(proxy.url, "GET", "log")[1]] == ["ListRoles"]
    assert _control(proxy.url, "GET", "wait?action=ListRoles&timeout=1")[1]["done"] == "deny"
    assert _control(proxy.url, "GET", "wait?action=CreateVpc&timeout=0.1")[0] == 504
    assert _control(proxy.url, "POST", "rules", {"action": "ListRoles"})[0] == 400
    _control(proxy.url, "DELETE", "rules")
    _control(proxy.url, "DELETE", "log")
    assert _control(proxy.url, "GET", "rules")[1] == []
    assert _control(proxy.url, "GET", "log")[1] == []
    assert _control(proxy.url, "GET", "nothing")[0] == 404


def test_command_reads_rules_and_writes_a_log(moto: MotoServer, tmp_path: Path) -> None:
    rules, log = tmp_path / "rules.json", tmp_path / "log.jsonl"
    rules.write_text(json.dumps([{"fault": "throttle", "service": "iam"}]))
    command = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "fixtures.fault_proxy",
            "--upstream",
            moto.url,
            "--rules",
            str(rules),
            "--log",
            str(log),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert command.stdout is not None
    iam = aws_client("iam", command.stdout.readline().strip())
    assert [_succeeds(iam.list_roles), _succeeds(iam.list_roles)] == [False, True]
    command.send_signal(signal.SIGTERM)
    command.communicate(timeout=20)
    assert command.returncode == 0
    assert [json.loads(line)["done"] for line in log.read_text().splitlines()] == ["throttle", "forward"]


def _succeeds(call: Callable[[], object]) -> bool:
    try:
        call()
    except (ClientError, HTTPClientError):
        return False
    return True


def _control(url: str, method: str, what: str, value: object = None) -> tuple[int, Any]:
    body = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(f"{url}/__proxy__/{what}", data=body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
