"""CloudTrail tells who made an object: read over HTTP from a small fake of LookupEvents, the only operation it has."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.inventory import aws_trail
from tfguard.inventory.aws_trail import CloudTrail
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import ProviderConfig

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OPERATION = "01HZX4Y3T0ABCDEFGHJKMNPQRS"
OURS = f"APN/1.0 HashiCorp/1.0 Terraform/1.11.4 terraform-provider-aws/5.100.0 tfguard/{OPERATION}"


class FakeTrail:
    """Answers LookupEvents by ResourceName, in pages of `page`."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[str] = []
        self.page = 50
        self.refuse: str | None = None

    def add(self, resource: str, call: str, at: datetime, agent: str = OURS, **detail: Any) -> None:
        told = {"userAgent": agent, **detail}
        event = {
            "EventName": call,
            "EventTime": at.timestamp(),
            "Username": "deployer",
            "ReadOnly": "false",
            "CloudTrailEvent": json.dumps(told),
        }
        self.events.append((resource, event))

    def answer(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        (wanted,) = request["LookupAttributes"]
        self.asked.append(wanted["AttributeValue"])
        if self.refuse:
            return 400, {"__type": self.refuse, "message": "no"}
        start = int(request.get("NextToken", "0"))
        found = [event for resource, event in self.events if resource == wanted["AttributeValue"]]
        more = {"NextToken": str(start + self.page)} if start + self.page < len(found) else {}
        return 200, {"Events": found[start : start + self.page], **more}


@pytest.fixture
def trail() -> Iterator[tuple[FakeTrail, ProviderConfig]]:
    """The fake, and a provider block that leads to it."""
    fake = FakeTrail()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = fake.answer(body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    settings = {"access_key": "test", "secret_key": "test", "endpoint_url": url, "region": "eu-west-1"}
    yield fake, ProviderConfig("aws", "registry.terraform.io/hashicorp/aws", settings)
    server.shutdown()
    server.server_close()


def role(name: str, created_at: datetime | None = NOW) -> CloudObject:
    arn = f"arn:aws:iam::123456789012:role/{name}"
    return CloudObject(
        "aws", "123456789012", "global", "aws_iam_role", name, name, arn=arn, name=name, created_at=created_at
    )


def asker() -> tuple[CloudTrail, list[float]]:
    pauses: list[float] = []

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return True

    return CloudTrail(load_catalog(), pause, lambda: NOW + timedelta(days=1)), pauses


def test_the_call_that_made_an_object_is_found_with_its_operation(trail: tuple[FakeTrail, ProviderConfig]) -> None:
    fake, provider = trail
    fake.page = 1
    fake.add("app", "TagRole", NOW + timedelta(minutes=1), agent="console.amazonaws.com")
    fake.add("app", "CreateRole", NOW)
    found = role("app")
    answer = asker()[0].creations([(found, provider)])
    creation = answer.creations[found.finding_id]
    assert (creation.call, creation.actor, creation.operation_id) == ("CreateRole", "deployer", OPERATION)
    assert (creation.engine, creation.at) == ("Terraform 1.11.4", NOW)
    assert answer.notes == ()


def test_a_refused_call_another_call_and_one_of_another_time_made_nothing(
    trail: tuple[FakeTrail, ProviderConfig],
) -> None:
    fake, provider = trail
    fake.add("app", "CreateRole", NOW, errorCode="EntityAlreadyExists")
    fake.add("app", "CreateUser", NOW)
    fake.add("app", "CreateRole", NOW - timedelta(hours=3))
    assert asker()[0].creations([(role("app"), provider)]).creations == {}


def topic(name: str, created_at: datetime | None = None) -> CloudObject:
    arn = f"arn:aws:sns:eu-west-1:123456789012:{name}"
    return CloudObject(
        "aws", "123456789012", "eu-west-1", "aws_sns_topic", arn, arn, arn=arn, name=name, created_at=created_at
    )


CONSOLE = "console.amazonaws.com"
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("events", "made"),
    [
        ([("CreateTopic", 20, OURS), ("DeleteTopic", 5, CONSOLE), ("CreateTopic", 1, CONSOLE)], 1),
        ([("CreateTopic", 20, OURS), ("DeleteTopic", 5, OURS), ("CreateTopic", 2, OURS), ("CreateTopic", 1, OURS)], 2),
        ([("CreateTopic", 20, OURS), ("CreateTopic", 1, CONSOLE)], 1),
        ([("CreateTopic", 20, OURS), ("DeleteTopic", 5, CONSOLE)], None),
        ([("CreateTopic", 20, OURS)], 20),
    ],
)  # fmt: skip
def test_of_several_under_one_name_the_call_that_made_the_last_is_told(
    trail: tuple[FakeTrail, ProviderConfig], events: list[tuple[str, int, str]], made: int | None
) -> None:
    fake, provider = trail
    found = topic("jobs")
    for call, days, agent in events:
        fake.add("jobs", call, NOW - days * DAY, agent=agent)
    creation = asker()[0].creations([(found, provider)]).creations.get(found.finding_id)
    assert (creation.at if creation else None) == (NOW - made * DAY if made is not None else None)


def test_a_delete_that_was_refused_deleted_nothing(trail: tuple[FakeTrail, ProviderConfig]) -> None:
    fake, provider = trail
    found = topic("jobs")
    fake.add("jobs", "CreateTopic", NOW - 9 * DAY)
    fake.add("jobs", "DeleteTopic", NOW - DAY, errorCode="AuthorizationError")
    assert asker()[0].creations([(found, provider)]).creations[found.finding_id].at == NOW - 9 * DAY


def test_a_delete_is_known_under_another_name_than_the_create(trail: tuple[FakeTrail, ProviderConfig]) -> None:
    fake, provider = trail
    found = topic("jobs")
    fake.add("jobs", "CreateTopic", NOW - 20 * DAY)
    fake.add(found.id, "DeleteTopic", NOW - 5 * DAY)
    assert asker()[0].creations([(found, provider)]).creations == {}


def test_with_a_creation_time_the_nearest_call_is_told(trail: tuple[FakeTrail, ProviderConfig]) -> None:
    fake, provider = trail
    found = role("app")
    for minutes in (-10, 1, 12):
        fake.add("app", "CreateRole", NOW + timedelta(minutes=minutes))
    assert asker()[0].creations([(found, provider)]).creations[found.finding_id].at == NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("region", "asked"),
    [("eu-west-1", "us-east-1"), ("cn-northwest-1", "cn-north-1"), ("us-gov-east-1", "us-gov-west-1")],
)
def test_what_exists_once_in_an_account_is_asked_for_in_its_own_partition(
    trail: tuple[FakeTrail, ProviderConfig], region: str, asked: str
) -> None:
    fake, provider = trail
    fake.refuse = "AccessDeniedException"
    answer = asker()[0].creations([(role("app"), replace(provider, settings={**provider.settings, "region": region}))])
    assert answer.notes == (
        f"CloudTrail was not asked in aws 123456789012 {asked}: AccessDeniedException on LookupEvents",
    )


def test_a_look_alike_user_agent_is_no_operation(trail: tuple[FakeTrail, ProviderConfig]) -> None:
    fake, provider = trail
    fake.add("app", "CreateRole", NOW, agent=f"not-tfguard/{OPERATION} xtfguard/{OPERATION}x")
    found = role("app")
    assert asker()[0].creations([(found, provider)]).creations[found.finding_id].operation_id is None


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_a_refusal_ends_the_asking_and_is_said_once(trail: tuple[FakeTrail, ProviderConfig], code: str) -> None:
    fake, provider = trail
    fake.refuse = code
    answer = asker()[0].creations([(role(f"r{number}"), provider) for number in range(5)])
    assert answer.creations == {}
    assert answer.notes == (f"CloudTrail was not asked in aws 123456789012 us-east-1: {code} on LookupEvents",)
    assert len(fake.asked) == 1


def test_requests_wait_for_each_other_and_their_number_is_bounded(
    trail: tuple[FakeTrail, ProviderConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, provider = trail
    monkeypatch.setattr(aws_trail, "time", SimpleNamespace(monotonic=lambda: 60.0))  # however slow the machine is
    asking, pauses = asker()
    answer = asking.creations([(role(f"r{number}"), provider) for number in range(60)])
    assert answer.notes == ("CloudTrail was not asked about 10 more objects in aws 123456789012 us-east-1",)
    assert {name for name in fake.asked if "/" not in name} == {f"r{number}" for number in range(50)}
    # The SDK's own second try of a dropped connection is no request of ours.
    assert len(pauses) == len(set(fake.asked)) - 1
    assert all(0 < seconds <= 0.5 for seconds in pauses)


def test_what_is_older_than_the_log_is_not_asked_about(trail: tuple[FakeTrail, ProviderConfig]) -> None:
    fake, provider = trail
    asker()[0].creations([(role("old", NOW - timedelta(days=120)), provider)])
    assert fake.asked == []
