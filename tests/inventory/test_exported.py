"""Exported listings: what they hold, what they leave open, and what is no listing at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.errors import InputError, UsageError
from tfguard.inventory.exported import ExportedLister, read_export
from tfguard.model.inventory import Listing

QUEUE = {
    "type": "aws_sqs_queue",
    "id": "https://sqs.eu-west-1.amazonaws.com/123456789012/app",
    "arn": "arn:aws:sqs:eu-west-1:123456789012:app",
    "name": "app",
    "created_at": "2026-01-02T03:04:05Z",
    "tags": {"team": "blue"},
}


def listed(path: Path, *patterns: str) -> list[Listing]:
    catalog = load_catalog()
    lister = ExportedLister([read_export(path, catalog, patterns)], catalog)
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
    assert first.complete
    assert [one.id for one in second.objects] == ["b"]  # whose place nobody told


def test_a_table_with_a_head_is_read_too_and_packed(tmp_path: Path) -> None:
    path = tmp_path / "list.csv.gz"
    text = 'type,id,account,region,tags\naws_iam_role,app,123456789012,,"{""a"": ""b""}"\n'
    path.write_bytes(gzip.compress(text.encode()))
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

    items = [item("here"), item("gone", configurationItemStatus="ResourceDeleted")]
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"fileVersion": "1.0", "configurationItems": items}))
    (listing,) = listed(path, "aws_s3_bucket")
    assert [(one.identity["bucket"], one.region, one.import_id) for one in listing.objects] == [
        ("here", "global", "here")
    ]


def test_what_an_export_leaves_open_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text(json.dumps(QUEUE) + "\n" + json.dumps({"type": "AWS::New::Thing", "id": "x"}))
    gaps = {listing.type: listing.gap.reason for listing in listed(path, "*") if listing.gap}
    assert gaps.pop("") == "1 objects of types that the catalogue does not have: AWS::New::Thing"
    assert set(gaps) == {entry.type for entry in load_catalog() if entry.list} - {"aws_sqs_queue"}
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
    ],
)
def test_what_is_no_listing_is_refused_and_never_empty(tmp_path: Path, text: str | bytes, why: str) -> None:
    path = tmp_path / "list"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as error:
        read_export(path, load_catalog(), ("*",))
    assert why in error.value.what


def test_a_pattern_that_matches_no_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no resource type matches aws_nothing"):
        read_export(tmp_path / "x", load_catalog(), ("aws_nothing",))
