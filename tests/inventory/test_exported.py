"""Exported listings: what they hold, what they leave open, and what is no listing at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.errors import InputError, UsageError
from tfguard.inventory.exported import ExportedLister, read_export
from tfguard.model.evidence import Confidence
from tfguard.model.inventory import Coverage, Listing
from tfguard.model.scan import ScanResult
from tfguard.reconcile.strays import unmanaged

QUEUE = {
    "type": "aws_sqs_queue",
    "id": "https://sqs.eu-west-1.amazonaws.com/123456789012/app",
    "arn": "arn:aws:sqs:eu-west-1:123456789012:app",
    "name": "app",
    "created_at": "2026-01-02T03:04:05Z",
    "tags": {"team": "blue"},
}


def listed(path: Path, *patterns: str, regions: Sequence[str] = (), accounts: Sequence[str] = ()) -> list[Listing]:
    catalog = load_catalog()
    lister = ExportedLister([read_export(path, catalog, patterns)], catalog, regions, accounts)
    told: list[object] = []
    shards = lister.shards()
    found = list(lister.list(shards, told.append))
    assert told == list(shards)
    assert sum(len(shard.types) for shard in shards) == len([one for one in found if one.type])
    return found


def test_a_line_is_an_object_with_its_place_from_its_arn(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text(json.dumps(QUEUE) + "\n\n" + json.dumps({"finding": 1, "object": {**QUEUE, "arn": "", "id": "b"}}))
    (first, second) = listed(path, "aws_sqs_*")
    (found,) = first.objects
    assert (found.account, found.region, found.name) == ("123456789012", "eu-west-1", "app")
    assert (found.identity["arn"], found.stateful) == (QUEUE["arn"], True)
    assert found.created_at is not None
    assert (found.created_at.isoformat(), found.tags) == ("2026-01-02T03:04:05+00:00", {"team": "blue"})
    assert (first.gap, first.complete) == (None, False)  # others may exist, and were not exported
    assert [one.id for one in second.objects] == ["b"]  # whose place nobody told


def test_a_table_with_a_head_is_read_too_and_packed(tmp_path: Path) -> None:
    path = tmp_path / "list.csv.gz"
    text = 'type,id,account,region,tags\naws_iam_role,app,123456789012,,"{""a"": ""b""}"\n'
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    (listing,) = listed(path, "aws_iam_role")
    assert (listing.scope.region, listing.objects[0].tags) == ("global", {"a": "b"})
    assert (listing.objects[0].identity["name"], listing.objects[0].import_id) == ("app", "app")


def test_a_snapshot_of_aws_config_is_read_without_what_was_deleted(tmp_path: Path) -> None:
    def item(name: str, **more: Any) -> dict[str, Any]:
        return {
            "resourceType": "AWS::S3::Bucket",
            "resourceId": name,
            "resourceName": name,
            "ARN": f"arn:aws:s3:::{name}",
            "awsAccountId": "123456789012",
            "awsRegion": "eu-west-1",
            "configurationItemStatus": "OK",
            "configuration": {"secret": "x"},
            **more,
        }

    items = [
        item("here"),
        item("unrecorded", configurationItemStatus="ResourceNotRecorded"),  # by Config, but it exists
        item("gone", configurationItemStatus="ResourceDeleted"),
        item("gone too", configurationItemStatus="ResourceDeletedNotRecorded"),
    ]
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"fileVersion": "1.0", "configurationItems": items}))
    (listing,) = listed(path, "aws_s3_bucket")
    assert [(one.identity["bucket"], one.region, one.import_id) for one in listing.objects] == [
        ("here", "global", "here"),
        ("unrecorded", "global", "unrecorded"),
    ]


def test_the_findings_of_a_scan_are_a_listing_and_what_is_missing_is_no_object(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    text = {**QUEUE, "tags": {"note": "one\u2028line"}}
    lines = [{"verdict": "missing", "object": None}, {"verdict": "unmanaged", "object": text}]
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines))
    (listing,) = listed(path, "aws_sqs_*")
    assert [found.tags for found in listing.objects] == [text["tags"]]


def test_a_single_finding_of_a_scan_is_a_listing_too(tmp_path: Path) -> None:
    path = tmp_path / "findings.jsonl"
    path.write_text(json.dumps({"id": "o-1", "verdict": "unmanaged", "object": QUEUE}) + "\n")
    (listing,) = listed(path, "aws_sqs_*")
    assert [found.name for found in listing.objects] == ["app"]
    path.write_text(json.dumps({"id": "o-1", "verdict": "missing", "object": None}) + "\n")
    (absent,) = listed(path, "aws_sqs_queue")
    assert (absent.objects, absent.gap is not None) == ((), True)


ROLE = "AWSServiceRoleForSupport"
SLASH_ROLE = f"arn:aws:iam::123456789012:role/aws-service-role/support.amazonaws.com/{ROLE}"


@pytest.mark.parametrize(
    ("text", "types", "because"),
    [
        (f"type,id,arn\naws_iam_role,{ROLE},{SLASH_ROLE}\n", "aws_iam_role", "service-linked role"),
        (f"type,id,arn\naws_iam_role,app,{SLASH_ROLE.rpartition('/')[0]}/app\n", "aws_iam_role", "service-linked role"),
        ("type,id,arn\naws_iam_role,app,arn:aws:iam::123456789012:role/app\n", "aws_iam_role", None),
        ("type,id\naws_kms_alias,alias/aws/s3\n", "aws_kms_alias", "alias of a key that AWS manages"),
        ("type,id\naws_kms_alias,alias/own\n", "aws_kms_alias", None),
        ('type,id,tags\naws_vpc,vpc-1,"{""aws:autoscaling:groupName"": ""a""}"\n', "aws_vpc", "Auto Scaling group"),
    ],
)
def test_what_nobody_made_with_terraform_is_recognised_by_name_path_and_tags(
    tmp_path: Path, text: str, types: str, because: str | None
) -> None:
    path = tmp_path / "list.csv"
    path.write_text(text)
    (listing,) = listed(path, types)
    told = listing.objects[0].ignored_because
    assert told is None if because is None else because in (told or "")


def test_the_configuration_in_a_snapshot_tells_defaults_owners_and_makers_and_is_not_kept(tmp_path: Path) -> None:
    def item(kind: str, name: str, **configuration: object) -> dict[str, object]:
        where = {"awsAccountId": "123456789012", "awsRegion": "eu-west-1"}
        return {"resourceType": kind, "resourceId": name, "configuration": configuration, **where}

    group = item("AWS::EC2::SecurityGroup", "sg-1", groupName="eks-cluster-sg-x", ownerId="999999999999")
    items = [
        item("AWS::EC2::VPC", "vpc-default", isDefault=True, note="s3cret"),
        item("AWS::EC2::VPC", "vpc-own", isDefault=False),
        group,
    ]
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"configurationItems": items}))
    found = {one.id: one for listing in listed(path, "aws_vpc", "aws_security_group") for one in listing.objects}
    assert found["vpc-default"].ignored_because == "default VPC"
    assert found["vpc-own"].ignored_because is None
    assert found["sg-1"].owner == "999999999999"
    assert "s3cret" not in repr(found)


def test_a_child_in_an_export_names_what_may_have_made_it(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("type,id\naws_cloudwatch_log_group,/aws/lambda/app\n")
    (listing,) = listed(path, "aws_cloudwatch_log_group")
    assert [(maker.type, maker.value) for maker in listing.objects[0].made_by] == [("aws_lambda_function", "app")]
    assert listing.objects[0].ignored_because is None


def test_an_export_is_narrowed_to_regions_and_accounts(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    places = [("1" * 12, "eu-west-1"), ("1" * 12, "us-east-1"), ("2" * 12, "eu-west-1")]
    queues = [{"type": "aws_sqs_queue", "id": f"{a[0]}-{r}", "account": a, "region": r} for a, r in places]
    role = {"type": "aws_iam_role", "id": "role", "account": "1" * 12}
    nowhere = {"type": "aws_sqs_queue", "id": "nowhere"}
    path.write_text("\n".join(json.dumps(line) for line in [*queues, role, nowhere]))

    def ids(**narrowed: Sequence[str]) -> set[str]:
        return {
            one.id for listing in listed(path, "aws_sqs_queue", "aws_iam_role", **narrowed) for one in listing.objects
        }

    assert ids(regions=["eu-west-1"]) == {"1-eu-west-1", "2-eu-west-1", "role", "nowhere"}
    assert ids(accounts=["1" * 12]) == {"1-eu-west-1", "1-us-east-1", "role", "nowhere"}
    assert ids(regions=["eu-west-1"], accounts=["2" * 12]) == {"2-eu-west-1", "nowhere"}


@pytest.mark.parametrize(
    ("narrowed", "what"), [({"regions": ["eu-wset-1"]}, "eu-wset-1"), ({"accounts": ["3" * 12]}, "3" * 12)]
)
def test_a_region_or_account_that_no_export_has_is_refused(
    tmp_path: Path, narrowed: dict[str, Sequence[str]], what: str
) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text(json.dumps(QUEUE))
    with pytest.raises(UsageError, match=f"no export has anything in {what}"):
        listed(path, "aws_sqs_queue", **narrowed)


def test_what_is_in_no_state_is_not_certainly_unmanaged_where_an_export_cannot_tell_defaults(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    vpc = {"type": "aws_vpc", "id": "vpc-1", "account": "1" * 12, "region": "eu-west-1"}
    table = {"type": "aws_dynamodb_table", "id": "app", "account": "1" * 12, "region": "eu-west-1"}
    path.write_text("\n".join(json.dumps(line) for line in (vpc, table)))
    catalog = load_catalog()
    lister = ExportedLister([read_export(path, catalog, ["aws_vpc", "aws_dynamodb_table"])], catalog)
    objects = [one for listing in lister.list(lister.shards(), lambda _: None) for one in listing.objects]
    now = datetime.now(UTC)
    whole = ScanResult(tuple(unmanaged(one, 1, ()) for one in objects), Coverage(), {}, {}, now, now, notes=("old",))
    weighed = lister.weighed(whole)
    sure = {one.object.type: one.confidence for one in weighed.findings if one.object}
    assert sure == {"aws_vpc": Confidence.LIKELY, "aws_dynamodb_table": Confidence.CERTAIN}
    assert len(weighed.notes) == 2
    assert "proves no absence" in weighed.notes[-1]


def test_what_an_export_leaves_open_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text(json.dumps(QUEUE) + "\n" + json.dumps({"type": "AWS::New::Thing", "id": "x"}))
    gaps = {listing.type: listing.gap.reason for listing in listed(path, "*") if listing.gap}
    assert gaps.pop("") == "1 objects of types that the catalogue does not have: AWS::New::Thing"
    listable = {entry.type for entry in load_catalog() if entry.list and entry.cloud == "aws"}
    assert set(gaps) == listable - {"aws_sqs_queue"}
    assert {listing.type for listing in listed(path, "aws_sqs_*") if listing.gap} == set()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("no, columns\nof, ours\n", "is no export"),
        ('{"type": "aws_sqs_queue"}', "entry 1 has no type, or neither id, import_id nor arn"),
        (json.dumps(QUEUE) + '\n{"type"', ":2: is cut or not JSON"),
        ('{"id": "x", "type": "aws_sqs_queue"}\n[]', ":2: is no JSON object"),
        ('{"configurationItems": "none"}', "configurationItems is no list"),
        ("\0\ud800".encode("utf-8", "surrogatepass"), "is not UTF-8 text"),
        ('{"type": "aws_sqs_queue", "id": ["a"]}', "entry 1 has no type, or neither id, import_id nor arn"),
        ("type,id,account\naws_iam_role,a,1\naws_iam_role,b\n", ":3: has not as many cells as the first line"),
        ("type,id\naws_iam_role,a,b\n", ":2: has not as many cells as the first line"),
        (gzip.compress(b"{}" * 99, mtime=0)[:-12], "it is cut or damaged"),
        (gzip.compress(b"{}" * 99, mtime=0)[:12] + b"\xff" * 20, "it is cut or damaged"),
    ],
)
def test_what_is_no_listing_is_refused_and_never_empty(tmp_path: Path, text: str | bytes, why: str) -> None:
    path = tmp_path / "list"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as error:
        read_export(path, load_catalog(), ("*",))
    assert why in error.value.what


def test_a_pattern_that_matches_no_type_is_refused(tmp_path: Path) -> None:
    for patterns in (("aws_nothing",), ("aws_vpc", "aws_nothing")):
        with pytest.raises(UsageError, match="aws_nothing matches no type"):
            read_export(tmp_path / "x", load_catalog(), patterns)


def test_an_object_of_google_is_in_the_project_that_its_unique_name_tells(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    rows = [
        {"type": "google_pubsub_topic", "id": "projects/app-prod/topics/jobs", "name": "jobs"},
        {"type": "google_pubsub_topic", "id": "projects/4711/topics/jobs", "account": "app-test"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    told = listed(path, "google_pubsub_topic")
    assert [(one.scope.cloud, one.scope.account, one.scope.region) for one in told] == [
        ("google", "app-prod", "global"),
        ("google", "app-test", "global"),
    ]
    (found,) = told[0].objects
    assert found.identity == {"id": "projects/app-prod/topics/jobs", "name": "jobs"}
