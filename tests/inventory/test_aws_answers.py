"""Answers of AWS that are not whole, or nobody's: none of them is ever taken for an empty list."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import IDENTITY

from tfguard.catalog.loader import load_catalog
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.aws_trail import CloudTrail
from tfguard.model.inventory import CloudObject, Listing
from tfguard.model.plan import ProviderConfig

Block = Callable[..., ProviderConfig]

OWN = {"x-amzn-RequestId": "one", "x-amz-request-id": "one", "Content-Type": "application/x-amz-json-1.0"}
SQS_QUEUES = b'{"QueueUrls": ["https://sqs.eu-west-1.amazonaws.com/123456789012/app"]}'
QUERIED = b"<ListUsersResponse><ListUsersResult><Users/>%s</ListUsersResult></ListUsersResponse>"
DISTRIBUTIONS = b"<DistributionList><Quantity>0</Quantity>%s</DistributionList>"
BUCKETS = b"<ListAllMyBucketsResult><Buckets/><Owner><ID>me</ID></Owner></ListAllMyBucketsResult>"


class Service:
    """A server that answers every call with the same bytes and with a service's headers, and says who asks."""

    def __init__(self) -> None:
        self.body = b""
        self.caller = IDENTITY.encode()
        self.headers: Mapping[str, str] = {}
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = service.caller if b"GetCallerIdentity" in asked else service.body
                more = {} if b"GetCallerIdentity" in asked else service.headers
                self.send_response(200)
                for name, value in {"Content-Length": str(len(body)), **OWN, **more}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    started = Service()
    yield started
    started.close()


@pytest.fixture(scope="module")
def inventory() -> AwsInventory:
    """One for all, as its clients are made once."""
    return AwsInventory(load_catalog())


@pytest.fixture
def listed(service: Service, inventory: AwsInventory, block: Block) -> Callable[..., Listing]:
    """Lists a type from a service that answers so."""

    def ask(resource_type: str, body: bytes, **headers: str) -> Listing:
        service.body = body
        service.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return inventory.list(resource_type, block(endpoint_url=service.url))

    return ask


@pytest.mark.parametrize(
    "body",
    [b"", b"<html><body>Sign in</body></html>", b"<x/>", b"[]", b"null", b'{"Queue', b'{"error": "sign in"}'],
    ids=["nothing", "a page", "another document", "a list", "null", "half a document", "another object"],
)
def test_no_type_is_completely_listed_by_an_answer_that_is_not_its_services(
    listed: Callable[..., Listing], body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)  # S3's are asked for again
    types = [entry.type for entry in load_catalog() if entry.cloud == "aws" and entry.list is not None]
    assert len(types) > 100
    assert [name for name in types if listed(name, body).complete] == []


@pytest.mark.parametrize(
    ("resource_type", "body"),
    [
        ("aws_sqs_queue", SQS_QUEUES),
        ("aws_dynamodb_table", b'{"TableNames": ["app"]}'),
        ("aws_efs_file_system", b'{"FileSystems": []}'),
        ("aws_iam_user", QUERIED % b"<IsTruncated>false</IsTruncated>"),
        ("aws_vpc", b"<DescribeVpcsResponse><vpcSet/><requestId>r</requestId></DescribeVpcsResponse>"),
        ("aws_cloudfront_distribution", DISTRIBUTIONS % b"<IsTruncated>false</IsTruncated>"),
        ("aws_s3_bucket", BUCKETS),
    ],
)
def test_an_answer_is_whole_when_all_bytes_came_that_it_announces(
    listed: Callable[..., Listing], resource_type: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    assert listed(resource_type, body).gap is None
    # What came is well-formed by itself: only its length tells that it is not all.
    assert not listed(resource_type, body, Content_Length=str(len(body) + 10)).complete
    for cut in (1, len(body) // 2, len(body) - 1):
        assert not listed(resource_type, body[:cut], Content_Length=str(len(body))).complete
        assert not listed(resource_type, body[:cut]).complete


@pytest.mark.parametrize(
    ("resource_type", "complete"),
    [
        ("aws_sqs_queue", True),  # leaves the list out when there is none
        ("aws_sfn_state_machine", False),  # its model says that it never does
        ("aws_eks_cluster", True),
    ],
)
def test_an_empty_object_is_an_empty_list_where_the_service_may_leave_it_out(
    listed: Callable[..., Listing], resource_type: str, complete: bool
) -> None:
    assert listed(resource_type, b"{}").complete is complete
    assert not listed(resource_type, b"{}", Content_Type="text/html").complete


@pytest.mark.parametrize(
    ("resource_type", "body"),
    [
        ("aws_iam_user", QUERIED % b"<IsTruncated>true</IsTruncated>"),
        ("aws_cloudfront_distribution", DISTRIBUTIONS % b"<IsTruncated>true</IsTruncated>"),
        ("aws_kinesis_stream", b'{"StreamNames": [], "StreamSummaries": [], "HasMoreStreams": true}'),
        ("aws_kms_alias", b'{"Aliases": [], "Truncated": true}'),
        # Followed by a token of the catalogue's own, which is taken from a list that is empty.
        ("aws_kinesis_firehose_delivery_stream", b'{"DeliveryStreamNames": [], "HasMoreDeliveryStreams": true}'),
    ],
)
def test_a_page_that_tells_of_more_without_telling_where_is_not_the_last(
    listed: Callable[..., Listing], resource_type: str, body: bytes
) -> None:
    listing = listed(resource_type, body)
    assert listing.gap is not None
    assert listing.gap.reason.startswith("UnreadableAnswerError on ")


def test_a_page_whose_token_the_sdk_cannot_follow_is_not_the_last(
    listed: Callable[..., Listing], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert listed("aws_sqs_queue", SQS_QUEUES).complete
    monkeypatch.setattr("botocore.client.BaseClient.can_paginate", lambda *_: False)  # as an older SDK
    assert listed("aws_sqs_queue", SQS_QUEUES).complete
    listing = listed("aws_sqs_queue", SQS_QUEUES[:-1] + b', "NextToken": "more"}')
    assert ([found.name for found in listing.objects], listing.complete) == (["app"], False)


@pytest.mark.parametrize("caller", [b"", b"<x/>", b"{}", IDENTITY.encode()[:-40], IDENTITY.encode()[:-90]])
def test_half_an_answer_about_the_account_proves_none(
    service: Service, block: Block, caller: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "caller", caller)
    monkeypatch.setattr(service, "body", SQS_QUEUES)
    guarded = block(endpoint_url=service.url, allowed_account_ids__0="123456789012")
    listing = AwsInventory(load_catalog()).list("aws_sqs_queue", guarded)
    assert (listing.objects, listing.complete) == ((), False)


QUEUE_OF_ONE = CloudObject("aws", "123456789012", "eu-west-1", "aws_sqs_queue", "https://x/app", "app", name="app")


def test_half_an_answer_to_a_detail_call_is_a_gap(service: Service, inventory: AwsInventory, block: Block) -> None:
    service.body, service.headers = b'{"Tags": {"team"', {}
    told = inventory.detail(QUEUE_OF_ONE, block(endpoint_url=service.url))
    assert (told.found, told.gap is not None) == (QUEUE_OF_ONE, True)


def test_half_an_answer_of_cloudtrail_is_told_and_explains_nothing(service: Service, block: Block) -> None:
    service.body, service.headers = b'{"Events": [', {}
    trail = CloudTrail(load_catalog(), lambda _: True, lambda: datetime(2026, 3, 1, tzinfo=UTC))
    answer = trail.creations([(QUEUE_OF_ONE, block(endpoint_url=service.url))])
    assert answer.creations == {}
    assert answer.notes == (
        "CloudTrail was not asked in aws 123456789012 eu-west-1: UnreadableAnswerError on LookupEvents",
    )
