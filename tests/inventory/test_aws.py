"""Listings of AWS: complete ones, and what becomes of refusals, half answers and silence."""

from __future__ import annotations

import gc
import json
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto.backends import get_backend

from tfguard.catalog.loader import read_types
from tfguard.inventory import aws_access, aws_listing
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.aws_places import Place
from tfguard.model.inventory import CloudObject, Detail, Scope
from tfguard.model.plan import ProviderConfig

Answers = Callable[[str, dict[str, Any]], tuple[int, str]]
Answering = Callable[[Answers], ProviderConfig]
Block = Callable[..., ProviderConfig]
Clients = Callable[..., Any]

TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
DENIED = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"


def roles_page(*names: str, marker: str = "") -> str:
    """One page of ListRoles."""
    members = "".join(f"<member><RoleName>{name}</RoleName><Path>/</Path></member>" for name in names)
    more = f"<IsTruncated>{'true' if marker else 'false'}</IsTruncated><Marker>{marker}</Marker>"
    return f"<ListRolesResponse><ListRolesResult><Roles>{members}</Roles>{more}</ListRolesResult></ListRolesResponse>"


# --- complete ---------------------------------------------------------------------------------------------------------


def test_every_page_is_read(inventory: AwsInventory, aws: ProviderConfig) -> None:
    backend = get_backend("sqs")["123456789012"]["eu-west-1"]  # the server's own: a thousand calls would take seconds
    for number in range(1050):
        backend.create_queue(f"many-{number}")
    listing = inventory.list("aws_sqs_queue", aws)
    assert listing.complete
    assert len([found for found in listing.objects if (found.name or "").startswith("many-")]) == 1050


def test_region_of_the_resource_goes_before_the_blocks(
    inventory: AwsInventory, aws: ProviderConfig, client: Clients
) -> None:
    client("sns", "us-west-2").create_topic(Name="elsewhere")
    assert "elsewhere" not in [found.name for found in inventory.list("aws_sns_topic", aws).objects]
    listing = inventory.list("aws_sns_topic", aws, region="us-west-2")
    assert listing.scope.region == "us-west-2"
    assert [found.region for found in listing.objects if found.name == "elsewhere"] == ["us-west-2"]


def test_global_type_is_listed_without_a_region(inventory: AwsInventory, aws_server: str, block: Block) -> None:
    listing = inventory.list("aws_iam_role", block(("region",), region="", endpoint_url=aws_server))
    assert listing.complete
    assert listing.scope.region == "global"


@pytest.mark.parametrize("variable", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_region_comes_from_the_environment_as_for_the_provider(
    inventory: AwsInventory, aws_server: str, block: Block, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "ap-south-1")
    listing = inventory.list("aws_sqs_queue", block(region="", endpoint_url=aws_server))
    assert (listing.scope.region, listing.gap) == ("ap-south-1", None)


def test_profile_gives_region_credentials_and_endpoint(
    inventory: AwsInventory, aws_server: str, block: Block, tmp_path: Path
) -> None:
    (tmp_path / "own").write_text(
        f"[profile blue]\nregion = sa-east-1\nendpoint_url = {aws_server}\n"
        "aws_access_key_id = a\naws_secret_access_key = b\n"
    )
    settings = {"region": "", "access_key": "", "secret_key": "", "profile": "blue"}
    listing = inventory.list("aws_sqs_queue", block(shared_config_files__0=str(tmp_path / "own"), **settings))
    assert (listing.scope.region, listing.scope.account, listing.gap) == ("sa-east-1", "123456789012", None)


def test_role_to_assume_leads_to_its_account(
    inventory: AwsInventory, aws: ProviderConfig, aws_server: str, block: Block
) -> None:
    role = "arn:aws:iam::222222222222:role/deploy"
    assumed = boto3.client(
        "sts", "eu-west-1", endpoint_url=aws_server, aws_access_key_id="a", aws_secret_access_key="b"
    ).assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    boto3.client(
        "iam", "eu-west-1", endpoint_url=aws_server, aws_access_key_id=assumed["AccessKeyId"],
        aws_secret_access_key=assumed["SecretAccessKey"], aws_session_token=assumed["SessionToken"],
    ).create_role(RoleName="theirs", AssumeRolePolicyDocument=TRUST)  # fmt: skip
    listing = inventory.list("aws_iam_role", block(endpoint_url=aws_server, assume_role__role_arn=role))
    assert listing.scope.account == "222222222222"
    assert "theirs" in [found.name for found in listing.objects]
    assert "theirs" not in [found.name for found in inventory.list("aws_iam_role", aws).objects]


def test_services_of_the_block_are_asked_at_their_own_endpoints(
    inventory: AwsInventory, aws_server: str, block: Block
) -> None:
    listing = inventory.list(
        "aws_cloudwatch_log_group",
        block(endpoints__cloudwatchlogs=aws_server, endpoints__sts=aws_server, endpoint_url="http://127.0.0.1:1"),
    )
    assert listing.complete


def test_what_aws_makes_by_itself_is_listed_but_marked(
    inventory: AwsInventory, aws: ProviderConfig, client: Clients
) -> None:
    client("iam").create_service_linked_role(AWSServiceName="autoscaling.amazonaws.com")
    for name in ("aws_vpc", "aws_subnet", "aws_security_group"):
        listing = inventory.list(name, aws, region="eu-north-1")
        assert listing.objects
        assert [found for found in listing.objects if found.ignored_because is None] == []
    roles = inventory.list("aws_iam_role", aws).objects
    assert [r.ignored_because for r in roles if "AutoScaling" in (r.name or "")] == ["service-linked role"]


def test_instances_of_a_group_are_marked(inventory: AwsInventory, aws: ProviderConfig, client: Clients) -> None:
    region = "ap-northeast-1"
    ec2, group = client("ec2", region), client("autoscaling", region)
    image = ec2.describe_images()["Images"][0]["ImageId"]
    group.create_launch_configuration(LaunchConfigurationName="l", ImageId=image, InstanceType="t3.micro")
    group.create_auto_scaling_group(
        AutoScalingGroupName="g", LaunchConfigurationName="l", MinSize=1, MaxSize=1, AvailabilityZones=[f"{region}a"]
    )
    listing = inventory.list("aws_instance", aws, region=region)
    assert [found.ignored_because for found in listing.objects] == ["made by an Auto Scaling group"]


def test_threads_share_clients(inventory: AwsInventory, aws: ProviderConfig) -> None:
    names = ["aws_sqs_queue", "aws_sns_topic", "aws_iam_role", "aws_vpc", "aws_s3_bucket", "aws_kms_key"] * 3
    with ThreadPoolExecutor(8) as pool:
        listings = list(pool.map(lambda name: inventory.list(name, aws), names))
    assert [listing.gap for listing in listings if listing.gap] == []


# --- not complete -----------------------------------------------------------------------------------------------------


def test_refused_list_is_a_gap(inventory: AwsInventory, answering: Answering) -> None:
    listing = inventory.list("aws_iam_role", answering(lambda *_: (403, DENIED)))
    assert listing.gap is not None
    assert listing.gap.scope == "aws 123456789012 global aws_iam_role"
    assert listing.gap.reason == "AccessDenied on ListRoles"


def test_refused_role_is_told_by_its_own_call(inventory: AwsInventory, answering: Answering, block: Block) -> None:
    url = answering(lambda *_: (403, DENIED)).settings["endpoint_url"]
    listing = inventory.list(
        "aws_iam_role", block(endpoint_url=url, assume_role__role_arn="arn:aws:iam::1:role/deploy")
    )
    assert listing.gap is not None
    assert listing.gap.reason == "AccessDenied on AssumeRole"


def test_cut_list_is_a_gap_and_keeps_what_was_seen(inventory: AwsInventory, answering: Answering) -> None:
    def answers(_: str, arguments: dict[str, Any]) -> tuple[int, str]:
        return (403, DENIED) if "Marker" in arguments else (200, roles_page("a", "b", marker="next"))

    listing = inventory.list("aws_iam_role", answering(answers))
    assert [found.name for found in listing.objects] == ["a", "b"]
    assert not listing.complete


def test_throttled_page_is_asked_for_again(inventory: AwsInventory, answering: Answering) -> None:
    asked: list[str] = []

    def answers(operation: str, _: dict[str, Any]) -> tuple[int, str]:
        asked.append(operation)
        return (400, DENIED.replace("AccessDenied", "Throttling")) if len(asked) < 2 else (200, roles_page("a"))

    assert inventory.list("aws_iam_role", answering(answers)).complete
    assert len(asked) == 2


def test_answer_that_is_no_answer_is_a_gap(inventory: AwsInventory, answering: Answering) -> None:
    listing = inventory.list("aws_iam_role", answering(lambda *_: (200, "<html><body>Please sign in<br></html>")))
    assert listing.gap is not None
    assert listing.gap.reason == "ResponseParserError on ListRoles"


@pytest.mark.parametrize("name", ["aws_sqs_queue", "aws_dynamodb_table", "aws_kms_key", "aws_cloudwatch_log_group"])
def test_answer_without_a_list_is_empty_only_when_the_service_gave_it(
    inventory: AwsInventory, answering: Answering, name: str
) -> None:
    listing = inventory.list(name, answering(lambda *_: (200, "<html><body>Please sign in</body></html>")))
    assert listing.gap is not None
    assert listing.gap.reason.startswith("UnreadableAnswerError on ")


def test_missing_credentials_are_a_gap(inventory: AwsInventory, aws_server: str, block: Block) -> None:
    nobody = block(access_key="", secret_key="", endpoint_url=aws_server)
    listings = [inventory.list(name, nobody) for name in ("aws_iam_role", "aws_vpc")]
    # One and the same for all: nobody could be asked, and no list call is made that cannot be signed.
    assert {one.gap.reason for one in listings if one.gap} == {"NoCredentialsError on GetCallerIdentity"}
    assert [one.asked for one in listings] == [False, False]


def test_a_refused_list_call_was_asked_all_the_same(inventory: AwsInventory, answering: Answering) -> None:
    listing = inventory.list("aws_iam_role", answering(lambda *_: (403, "<html>no</html>")))
    assert (listing.gap is not None, listing.asked) == (True, True)


@pytest.mark.parametrize(
    "settings",
    [
        {"profile": "not-there"},
        {"endpoint_url": "no url"},
        {"region": "Not A Region"},
        {"custom_ca_bundle": "/not/there", "endpoint_url": "https://127.0.0.1:1"},
        {"endpoint_url": "http://127.0.0.1:1"},
        {"http_proxy": "http://someone:hunter2@127.0.0.1:1"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_what_cannot_be_reached_is_a_gap_without_a_credential(
    inventory: AwsInventory, block: Block, settings: dict[str, str]
) -> None:
    listing = inventory.list("aws_sqs_queue", block(**{"endpoint_url": "http://sqs.invalid"} | settings))
    assert listing.gap is not None
    assert "hunter2" not in listing.gap.reason
    assert "\n" not in listing.gap.reason


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield server.getsockname()[1]


def test_silence_is_waited_for_once(
    inventory: AwsInventory, block: Block, silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws_access, "_READ_SECONDS", 1)
    monkeypatch.setattr(aws_access, "_ACCOUNT_READ_SECONDS", 1)
    began = time.monotonic()
    listing = inventory.list("aws_iam_role", block(endpoint_url=f"http://127.0.0.1:{silent_port}"))
    assert listing.gap is not None
    assert "ReadTimeoutError on ListRoles" in listing.gap.reason
    assert time.monotonic() - began < 5


def test_region_that_the_plan_does_not_carry_is_never_guessed(
    inventory: AwsInventory, aws_server: str, block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    provider = block(("region",), key="aws.eu", region="", endpoint_url=aws_server)
    listing = inventory.list("aws_sqs_queue", provider)
    assert listing.gap is not None
    assert "providers: {aws.eu: {region: ...}}" in listing.gap.reason
    assert inventory.list("aws_sqs_queue", provider, region="eu-west-1").complete


def test_no_region_at_all_is_a_gap(inventory: AwsInventory, aws_server: str, block: Block) -> None:
    listing = inventory.list("aws_sqs_queue", block(region="", endpoint_url=aws_server))
    assert listing.gap is not None
    assert listing.gap.reason.startswith("aws has no region")


def test_type_that_is_not_listed_is_a_gap(inventory: AwsInventory, aws: ProviderConfig) -> None:
    for name in ("aws_nothing", "google_project"):
        assert not inventory.covers(name)
        assert not inventory.list(name, aws).complete


def test_credentials_of_another_account_list_nothing(inventory: AwsInventory, aws_server: str, block: Block) -> None:
    listing = inventory.list("aws_vpc", block(endpoint_url=aws_server, allowed_account_ids__0="999999999999"))
    assert listing.objects == ()
    assert listing.gap is not None
    assert "account 123456789012" in listing.gap.reason


def test_account_that_cannot_be_asked_for_is_a_gap(inventory: AwsInventory, aws_server: str, block: Block) -> None:
    listing = inventory.list("aws_vpc", block(endpoint_url=aws_server, endpoints__sts="http://127.0.0.1:1"))
    assert listing.objects
    assert {found.account for found in listing.objects} == {None}
    assert listing.gap is not None
    assert listing.gap.reason == "EndpointConnectionError on GetCallerIdentity"


def test_block_without_an_account_to_ask_for_is_listed(inventory: AwsInventory, aws_server: str, block: Block) -> None:
    listing = inventory.list("aws_vpc", block(endpoints__ec2=aws_server, skip_requesting_account_id="true"))
    assert listing.complete
    assert listing.scope.account is None


# --- one call for each item -------------------------------------------------------------------------------------------


def kms(states: dict[str, tuple[int, dict[str, Any]]]) -> Answers:
    """ListKeys with these keys, and DescribeKey with these answers."""

    def answers(operation: str, arguments: dict[str, Any]) -> tuple[int, str]:
        if operation == "ListKeys":
            return 200, json.dumps({"Keys": [{"KeyId": k, "KeyArn": f"arn:aws:kms:r:1:key/{k}"} for k in states]})
        status, answer = states[arguments["KeyId"]]
        return status, json.dumps(answer)

    return answers


def described(key: str, **more: str) -> tuple[int, dict[str, Any]]:
    """An answer to DescribeKey."""
    return 200, {"KeyMetadata": {"KeyId": key, "KeyManager": "CUSTOMER", "KeyState": "Enabled", **more}}


def test_keys_are_told_apart_by_their_own_calls(inventory: AwsInventory, answering: Answering) -> None:
    keys = {
        "ours": described("ours"),
        "theirs": described("theirs", KeyManager="AWS"),
        "dying": described("dying", KeyState="PendingDeletion"),
        "gone": (400, {"__type": "NotFoundException"}),
    }
    listing = inventory.list("aws_kms_key", answering(kms(keys)))
    assert listing.complete
    assert {found.id: found.ignored_because for found in listing.objects} == {"ours": None, "theirs": "managed by AWS"}
    assert [found.id for found in listing.soft_deleted] == ["dying"]


def test_key_that_may_not_be_described_is_listed_with_a_gap(inventory: AwsInventory, answering: Answering) -> None:
    keys = {"ours": described("ours"), "closed": (400, {"__type": "AccessDeniedException"})}
    listing = inventory.list("aws_kms_key", answering(kms(keys)))
    assert [found.id for found in listing.objects] == ["ours", "closed"]
    assert listing.gap is not None
    assert listing.gap.reason == "AccessDeniedException on DescribeKey (1 of 2 objects)"


# --- one list for each parent -----------------------------------------------------------------------------------------

ROLES_AND_POLICIES = """
cloud: aws
types:
  aws_iam_role:
    service: iam
    scope: global
    list: {operation: list_roles, result: "Roles[]"}
    keys: {name: RoleName}
    id: "{name}"
    import_id: "{name}"
    ignore: [{when: "RoleName == 'awss'", reason: of AWS}]
  aws_iam_role_policy:
    service: iam
    scope: global
    list:
      operation: list_role_policies
      result: "PolicyNames[]"
      per: {type: aws_iam_role, arguments: {RoleName: "{name}"}}
    keys: {id: "{role}:{name}"}
    traits: {role: "{parent_name}", name: "@"}
    id: "{id}"
    import_id: "{id}"
"""


@pytest.fixture
def policies() -> AwsInventory:
    """An inventory of roles, and of policies that are listed for each role."""
    return AwsInventory(read_types("x.yaml", ROLES_AND_POLICIES))


def policies_page(*names: str) -> str:
    """An answer to ListRolePolicies."""
    members = "".join(f"<member>{name}</member>" for name in names)
    result = f"<ListRolePoliciesResult><PolicyNames>{members}</PolicyNames></ListRolePoliciesResult>"
    return f"<ListRolePoliciesResponse>{result}</ListRolePoliciesResponse>"


def with_policies(refused: str = "", error: str = "AccessDenied") -> Answers:
    """ListRoles with the roles `a`, `b` and `awss`, and ListRolePolicies with one policy for each."""

    def answers(operation: str, arguments: dict[str, Any]) -> tuple[int, str]:
        if operation == refused or arguments.get("RoleName") == refused:
            return 403, DENIED.replace("AccessDenied", error)
        if operation == "ListRoles":
            return 200, roles_page("a", "b", "awss")
        return 200, policies_page(f"of-{arguments['RoleName']}")

    return answers


def test_children_are_listed_for_each_parent(policies: AwsInventory, answering: Answering) -> None:
    listing = policies.list("aws_iam_role_policy", answering(with_policies()))
    assert listing.complete
    assert [found.import_id for found in listing.objects] == ["a:of-a", "b:of-b", "awss:of-awss"]


def test_parents_of_aws_itself_are_left_out_where_the_entry_says_so(answering: Answering) -> None:
    text = ROLES_AND_POLICIES.replace('{RoleName: "{name}"}}', '{RoleName: "{name}"}, only_own: true}')
    listing = AwsInventory(read_types("x.yaml", text)).list("aws_iam_role_policy", answering(with_policies()))
    assert [found.import_id for found in listing.objects] == ["a:of-a", "b:of-b"]


@pytest.mark.parametrize(
    ("refused", "reason", "left"),
    [
        ("b", "AccessDenied on ListRolePolicies (1 of 3 aws_iam_role)", ["a:of-a", "awss:of-awss"]),
        ("ListRolePolicies", "AccessDenied on ListRolePolicies (3 of 3 aws_iam_role)", []),
        ("ListRoles", "aws_iam_role: AccessDenied on ListRoles", []),
    ],
)
def test_child_list_that_is_refused_for_one_parent_is_a_gap(
    policies: AwsInventory, answering: Answering, refused: str, reason: str, left: list[str]
) -> None:
    listing = policies.list("aws_iam_role_policy", answering(with_policies(refused)))
    assert [found.import_id for found in listing.objects] == left
    assert listing.gap is not None
    assert listing.gap.reason == reason


def test_parent_that_is_gone_by_now_has_no_children(policies: AwsInventory, answering: Answering) -> None:
    listing = policies.list("aws_iam_role_policy", answering(with_policies("b", "NoSuchEntity")))
    assert listing.complete
    assert [found.import_id for found in listing.objects] == ["a:of-a", "awss:of-awss"]


def test_parents_are_listed_once_for_many_types(policies: AwsInventory, answering: Answering) -> None:
    asked: list[str] = []

    def answers(operation: str, arguments: dict[str, Any]) -> tuple[int, str]:
        asked.append(operation)
        return with_policies()(operation, arguments)

    provider = answering(answers)
    for _ in range(2):
        names = ["aws_iam_role_policy", "aws_iam_role", "aws_nothing"]
        listings = {listing.type: listing for listing in policies.list_many(names, provider)}
        assert {name: len(listing.objects) for name, listing in listings.items()} == {
            "aws_iam_role_policy": 3,
            "aws_iam_role": 3,
            "aws_nothing": 0,
        }
    assert asked.count("ListRoles") == 2, "once for each round, and anew in the next"


# --- what is in a list ------------------------------------------------------------------------------------------------


def test_items_of_another_kind_and_those_that_are_gone_are_left_out(answering: Answering) -> None:
    text = ROLES_AND_POLICIES.replace(
        "keys: {name: RoleName}",
        "keys: {name: RoleName}\n    only: \"RoleName != 'other'\"\n    gone: \"contains(RoleName, 'gone')\"\n"
        "    soft_deleted: \"starts_with(RoleName, 'soft')\"\n"
        '    restore: [{operation: tag_role, arguments: {RoleName: "{name}"}}]',
    )
    provider = answering(lambda *_: (200, roles_page("a", "other", "gone", "soft", "soft-and-gone")))
    listing = AwsInventory(read_types("x.yaml", text)).list("aws_iam_role", provider)
    assert listing.complete
    assert [found.id for found in listing.objects] == ["a"]
    assert [found.id for found in listing.soft_deleted] == ["soft", "soft-and-gone"]


BUSES = """
cloud: aws
types:
  aws_cloudwatch_event_bus:
    service: events
    scope: regional
    list: {operation: list_event_buses, result: "EventBuses[]", token: {argument: NextToken, answer: NextToken}}
    keys: {name: Name}
    id: "{name}"
    import_id: "{name}"
"""


@pytest.mark.parametrize("last", ["", "ever the same"])
def test_pages_are_followed_where_the_sdk_has_no_paginator(answering: Answering, last: str) -> None:
    pages = {None: ("a", "1"), "1": ("b", "2"), "2": ("c", last), last: ("d", last)}

    def answers(_: str, arguments: dict[str, Any]) -> tuple[int, str]:
        name, token = pages[arguments.get("NextToken")]
        return 200, json.dumps({"EventBuses": [{"Name": name}], **({"NextToken": token} if token else {})})

    listing = AwsInventory(read_types("x.yaml", BUSES)).list("aws_cloudwatch_event_bus", answering(answers))
    assert [found.id for found in listing.objects] == (["a", "b", "c", "d"] if last else ["a", "b", "c"])
    assert listing.complete == (not last), "pages without an end are a gap"


class Item(dict[str, str]):
    """An item of an answer, which a weak reference can lead to."""


def test_the_items_of_a_page_are_not_kept_once_they_are_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[weakref.ref[Item]] = []
    alive: list[int] = []

    def list_event_buses(NextToken: str = "0") -> dict[str, Any]:
        gc.collect()
        alive.append(sum(ref() is not None for ref in answered))
        number = int(NextToken)
        item = Item(Name=f"bus-{number}")
        answered.append(weakref.ref(item))
        return {"EventBuses": [item], **({"NextToken": str(number + 1)} if number < 9 else {})}

    client = SimpleNamespace(list_event_buses=list_event_buses, can_paginate=lambda _: False)
    here = Place(client, Scope("aws", "1", "eu-west-1"), "aws")
    monkeypatch.setattr(aws_listing.AwsLister, "_place", lambda *_: here)
    catalog = read_types("x.yaml", BUSES)
    provider = ProviderConfig("aws", "registry.terraform.io/hashicorp/aws", {})
    listing = aws_listing.AwsLister(catalog).list(catalog.types["aws_cloudwatch_event_bus"], provider, None)
    assert (len(listing.objects), listing.complete) == (10, True)
    assert max(alive) <= 2, "the page that is read, and the one before"


# --- detail -----------------------------------------------------------------------------------------------------------


NO_SUCH_ROLE = DENIED.replace("AccessDenied", "NoSuchEntity")


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (403, DENIED, "AccessDenied on ListRoleTags"),
        (503, DENIED.replace("AccessDenied", "Throttling"), "Throttling on ListRoleTags"),
        (404, NO_SUCH_ROLE, None),
    ],
)
def test_refused_detail_leaves_the_object_as_it_was_and_is_a_gap_unless_there_is_none(
    inventory: AwsInventory, answering: Answering, status: int, body: str, reason: str | None
) -> None:
    def answers(operation: str, _: dict[str, Any]) -> tuple[int, str]:
        return (200, roles_page("a")) if operation == "ListRoles" else (status, body)

    provider = answering(answers)
    (found,) = inventory.list("aws_iam_role", provider).objects
    detail = inventory.detail(found, provider)
    assert detail.found == found
    assert (detail.gap.reason if detail.gap else None) == reason
    assert detail.gap is None or detail.gap.scope.endswith(" global aws_iam_role")


def test_what_the_list_has_told_is_not_asked_for_again(inventory: AwsInventory, answering: Answering) -> None:
    provider = answering(lambda operation, _: (200, roles_page("a")) if operation == "ListRoles" else (403, DENIED))
    (found,) = inventory.list("aws_iam_role", provider).objects
    known = replace(found, tags={"team": "blue"})
    assert inventory.detail(known, provider) == Detail(known)


def test_details_of_whom_nobody_knows_are_a_gap(inventory: AwsInventory, block: Block) -> None:
    found = CloudObject("aws", "1", "eu-west-1", "aws_sqs_queue", "u", "u", {"url": "u"})
    gap = inventory.detail(found, block(unresolved=("profile",))).gap
    assert gap is not None
    assert "profile of aws is not in the plan" in gap.reason


def test_detail_marks_what_its_tags_give_away(inventory: AwsInventory, answering: Answering) -> None:
    tags = "<member><Key>aws:cloudformation:stack-name</Key><Value>s</Value></member>"

    def answers(operation: str, _: dict[str, Any]) -> tuple[int, str]:
        if operation == "ListRoles":
            return 200, roles_page("a")
        result = f"<ListRoleTagsResult><Tags>{tags}</Tags></ListRoleTagsResult>"
        return 200, f"<ListRoleTagsResponse>{result}</ListRoleTagsResponse>"

    provider = answering(answers)
    (found,) = inventory.list("aws_iam_role", provider).objects
    assert found.ignored_because is None
    (maker,) = inventory.detail(found, provider).found.made_by
    assert (maker.type, maker.reason) == ("aws_cloudformation_stack", "made by CloudFormation")


def test_detail_is_not_asked_of_another_account(
    inventory: AwsInventory, aws: ProviderConfig, aws_server: str, block: Block, client: Clients
) -> None:
    client("sqs", "eu-south-1").create_queue(QueueName="dated")
    (found,) = inventory.list("aws_sqs_queue", aws, region="eu-south-1").objects
    theirs = block(endpoint_url=aws_server, assume_role__role_arn="arn:aws:iam::222222222222:role/x")
    detail = inventory.detail(found, theirs)
    assert (detail.found, detail.gap and detail.gap.reason) == (
        found, "the credentials are those of account 222222222222 now",
    )  # fmt: skip
    assert inventory.detail(found, aws).found.created_at is not None


# --- cost -------------------------------------------------------------------------------------------------------------


def test_sdk_is_not_imported_before_the_first_listing() -> None:
    script = (
        "import sys\n"
        "from tfguard.catalog.loader import load_catalog\n"
        "from tfguard.inventory.aws import AwsInventory\n"
        "from tfguard.inventory.combined import CombinedInventory\n"
        "assert CombinedInventory([AwsInventory(load_catalog())]).covers('aws_vpc')\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('boto3', 'botocore', 'jmespath')])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
