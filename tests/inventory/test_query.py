"""Streams of `terraform query -json`, as its documentation has them: what they hold, and what they leave open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.errors import InputError, UsageError
from tfguard.inventory.exported import ExportedLister
from tfguard.inventory.query import is_stream, read_stream
from tfguard.inventory.query_limits import limits_in
from tfguard.model.inventory import CloudObject, Listing

ACCOUNT, REGION = "123456789012", "eu-west-1"
PLACE = {"account_id": ACCOUNT, "region": REGION}
VPCS = "list.aws_vpc.all"


def line(kind: str, **message: object) -> str:
    ui = {"@level": "info", "@message": "x", "@module": "terraform.ui", "@timestamp": "2026-01-02T03:04:05Z"}
    return json.dumps({**ui, kind: message, "type": kind})


def start(address: str, **config: object) -> str:
    more = {"input_config": config} if config else {}
    return line("list_start", address=address, resource_type=address.split(".")[1], **more)


def found(address: str, identity: Mapping[str, object], **more: object) -> str:
    kind = address.split(".")[1]
    given = {"display_name": "shown", "identity": identity, "identity_version": 0, **more}
    return line("list_resource_found", address=address, resource_type=kind, **given)


def complete(address: str, total: int) -> str:
    return line("list_complete", address=address, resource_type=address.split(".")[1], total=total)


def error(summary: str, **more: object) -> str:
    return line("diagnostic", severity="error", summary=summary, detail="it holds a s3cret", **more)


def vpcs(count: int, address: str = VPCS, total: int | None = None, **config: object) -> list[str]:
    """A whole list of VPCs."""
    each = [found(address, {**PLACE, "id": f"vpc-{number}"}) for number in range(count)]
    return [start(address, **config), *each, complete(address, count if total is None else total)]


VERSION = json.dumps({"@module": "terraform.ui", "type": "version", "terraform": "1.14.0", "ui": "1.2"})


def listed(
    *lines: str, types: str = "aws_vpc", limits: Mapping[str, int | None] | None = None, failure: str = ""
) -> list[Listing]:
    """What a scan is told, the types of the catalogue that no list is about included."""
    catalog = load_catalog()
    export = read_stream("\n".join([VERSION, *lines]), "found.jsonl", catalog, types.split(), limits or {}, failure)
    lister = ExportedLister([export], catalog)
    return list(lister.list(lister.shards(), lambda _shard: None))


def reasons(*lines: str, limits: Mapping[str, int | None] | None = None, failure: str = "") -> list[str]:
    """Why the listings of VPCs are not complete."""
    return [one.gap.reason for one in listed(*lines, limits=limits, failure=failure) if one.gap]


def only(*lines: str, types: str) -> CloudObject:
    (listing,) = listed(*lines, types=types)
    (one,) = listing.objects
    return one


def test_what_an_identity_names_is_an_object_at_its_place() -> None:
    (listing,) = listed(*vpcs(2))
    assert listing.complete
    assert (listing.scope.cloud, listing.scope.account, listing.scope.region) == ("aws", ACCOUNT, REGION)
    assert [(one.id, one.import_id, one.identity) for one in listing.objects] == [
        (f"vpc-{number}", f"vpc-{number}", {"id": f"vpc-{number}"}) for number in range(2)
    ]
    assert {one.name for one in listing.objects} == {"shown"}


def test_the_resource_adds_keys_tags_and_whose_it_is_and_nothing_that_may_be_secret() -> None:
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/app"
    resource = {
        "arn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:app",
        "name": "app",
        "url": url,
        "policy": "s3cret",
        "tags": {"aws:autoscaling:groupName": "x"},
    }
    list_of = "list.aws_sqs_queue.some"
    one = only(found(list_of, {"url": url}, resource_object=resource), complete(list_of, 1), types="aws_sqs_queue")
    assert one.identity == {"url": url, "name": "app", "arn": resource["arn"]}
    assert (one.account, one.region, one.name, one.import_id, one.stateful) == (ACCOUNT, REGION, "app", url, True)
    assert one.ignored_because == "made by an Auto Scaling group"
    assert "s3cret" not in repr(one)


def test_a_key_of_several_attributes_is_made_of_them() -> None:
    list_of = "list.aws_iam_role_policy_attachment.all"
    identity = {"account_id": ACCOUNT, "role": "app", "policy_arn": "arn:aws:iam::aws:policy/X"}
    one = only(found(list_of, identity), complete(list_of, 1), types="aws_iam_role_policy_attachment")
    assert one.identity["role+policy_arn"] == "app/arn:aws:iam::aws:policy/X"
    assert (one.account, one.region) == (ACCOUNT, "global")


def test_an_empty_list_is_an_answer_whose_place_nobody_knows() -> None:
    (listing,) = listed(*vpcs(0))
    assert (listing.complete, listing.objects, listing.scope.account) == (True, (), None)


def test_a_type_without_a_list_is_a_gap() -> None:
    gaps = {one.type: one.gap.reason for one in listed(*vpcs(1), types="aws_vpc aws_subnet") if one.gap}
    assert gaps == {"aws_subnet": "not in the export: none exist, or they were left out"}


@pytest.mark.parametrize(
    ("count", "limits", "why"),
    [
        (99, {}, None),
        (100, {}, "may be cut: the limit of a list block that does not say another is 100"),
        (100, {VPCS: 500}, None),
        (7, {VPCS: 7}, "list.aws_vpc.all found 7, and may be cut: its limit is 7"),
        (1, {VPCS: None}, "its limit is no plain number"),
        (0, {VPCS: None}, None),
    ],
)
def test_a_list_that_found_as_many_as_its_limit_may_be_cut(
    count: int, limits: Mapping[str, int | None], why: str | None
) -> None:
    told = reasons(*vpcs(count), limits=limits)
    assert len(told) == (why is not None)
    assert (why or "") in "".join(told)


def test_the_limit_of_a_block_counts_for_each_of_its_instances() -> None:
    assert "its limit is 2" in reasons(*vpcs(2, f'{VPCS}["a"]'), limits={VPCS: 2})[0]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (vpcs(1)[:-1], "list.aws_vpc.all did not come to its end"),
        (vpcs(1)[:1], "list.aws_vpc.all did not come to its end"),
        (vpcs(1, total=3), "list.aws_vpc.all found 3, and 1 are in the stream"),
        ([*vpcs(1)[:-1], error("not authorized", address=VPCS)], "not authorized"),
        ([*vpcs(1), error("no credentials")], "no credentials"),
        (vpcs(1, region=REGION, vpc_ids=["vpc-0"]), "list.aws_vpc.all was asked for some only (vpc_ids)"),
    ],
)
def test_a_list_that_may_lack_objects_is_a_gap(lines: list[str], why: str) -> None:
    told = reasons(*lines)
    assert why in told
    assert "s3cret" not in "".join(told)


def test_a_region_and_settings_that_are_not_set_filter_nothing() -> None:
    assert reasons(*vpcs(1, region=REGION, vpc_ids=None, filter=[])) == []


def test_an_error_that_names_its_list_leaves_the_others_complete() -> None:
    subnets = "list.aws_subnet.all"
    lines = [start(subnets), *vpcs(1), error("not authorized", address=subnets)]
    gaps = {one.type: one.gap for one in listed(*lines, types="aws_vpc aws_subnet", failure="the engine ended with 1")}
    assert gaps["aws_vpc"] is None
    assert gaps["aws_subnet"] is not None
    assert gaps["aws_subnet"].reason == "not authorized"


def test_an_engine_that_fails_without_a_word_leaves_nothing_complete() -> None:
    assert reasons(*vpcs(1), failure="the engine ended with 1") == ["the engine ended with 1"] * 2


def test_a_cut_line_is_a_gap_and_what_came_before_counts() -> None:
    subnets = "list.aws_subnet.all"
    gaps = [one.gap.reason for one in listed(*vpcs(1), start(subnets)[:40]) if one.gap]
    assert gaps == ["line 5 is cut or not JSON"]
    assert "line 5 is no list_start message as it is known" in reasons(*vpcs(1), line("list_start", address=subnets))


def test_objects_that_name_no_key_are_a_gap_and_never_unknown_to_every_state() -> None:
    listings = listed(start(VPCS), found(VPCS, {"nonsense": "x"}), complete(VPCS, 1))
    assert [(one.objects, one.gap and one.gap.reason) for one in listings] == [
        ((), "1 objects tell none of id, arn; set include_resource = true")
    ]


def test_buckets_that_are_listed_in_one_region_are_not_all_buckets() -> None:
    buckets, roles = "list.aws_s3_bucket.all", "list.aws_iam_role.all"
    lines = [
        found(buckets, {**PLACE, "bucket": "logs"}),
        complete(buckets, 1),
        found(roles, {"account_id": ACCOUNT, "name": "app"}),
        complete(roles, 1),
    ]
    told = {one.type: (one.scope.region, one.complete) for one in listed(*lines, types="aws_s3_bucket aws_iam_role")}
    assert told == {"aws_s3_bucket": ("global", False), "aws_iam_role": ("global", True)}


def test_types_that_nobody_knows_are_counted_and_their_errors_told() -> None:
    strange = "list.aws_new_thing.all"
    lines = [*vpcs(1), start(strange), found(strange, {"id": "x"}), error("denied", address=strange)]
    told = [one.gap.reason for one in listed(*lines, types="aws_*") if one.gap and not one.type]
    assert told == [
        "list.aws_new_thing.all: denied",
        "1 objects of types that the catalogue does not have: aws_new_thing",
    ]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "nothing was listed: it has no `list_start` message"),
        ([error("Inconsistent dependency lock file")], "nothing was listed: Inconsistent dependency lock file"),
        ([json.dumps({"type": "version", "ui": "2.0"})], "its messages have version 2.0"),
    ],
)
def test_a_stream_that_lists_nothing_is_an_error_and_never_clean(lines: list[str], why: str) -> None:
    with pytest.raises(InputError) as raised:
        listed(*lines)
    assert why in raised.value.what


def test_a_pattern_that_matches_no_type_is_refused() -> None:
    for types in ("aws_nothing", "aws_vpc aws_nothing"):
        with pytest.raises(UsageError, match="aws_nothing matches no type"):
            listed(*vpcs(1), types=types)


def test_a_stream_is_told_from_the_other_exports() -> None:
    assert is_stream(f"a wrapper's word\n{VERSION}\n")
    assert is_stream(complete(VPCS, 0))
    assert not is_stream('{"type": "aws_sqs_queue", "id": "x"}\n')
    assert not is_stream("type,id\naws_sqs_queue,x\n")
    assert not is_stream("")
    assert not is_stream(VERSION[:30])


def test_limits_are_read_from_the_list_blocks(tmp_path: Path) -> None:
    (tmp_path / "main.tfquery.hcl").write_text(
        """
        # list "aws_vpc" "commented" { limit = 1
        list "aws_vpc" "none" {
          provider = aws   # limit = 3
        }
        list "aws_vpc" "own" {
          provider = aws
          limit    = 2500 /* enough */
          config {
            limit = 7
            filter {
              name   = "tag:a{b"
              values = ["limit = 8", "a#b"]
            }
          }
        }
        list aws_vpc bare { limit = 5 }
        list "aws_vpc" "computed" {
          limit = var.limit
        }
        list "aws_vpc" "quoted" {
          limit = "9"
        }
        variable "x" { default = { limit = 4 } }
        list "aws_vpc" "told" {
          config {
            text = <<-EOT
              } limit = 6
            EOT
          }
          limit = 60
        }
        """
    )
    (tmp_path / "more.tfquery.hcl").write_text('list "aws_subnet" "all" {\n  limit = 10\n}\n')
    (tmp_path / "main.tf").write_text('list "aws_vpc" "elsewhere" {\n}\n')
    assert limits_in(tmp_path) == {
        "list.aws_vpc.none": 100,
        "list.aws_vpc.own": 2500,
        "list.aws_vpc.bare": 5,
        "list.aws_vpc.computed": None,
        "list.aws_vpc.quoted": None,
        "list.aws_vpc.told": 60,
        "list.aws_subnet.all": 10,
    }


def test_a_folder_without_list_blocks_has_no_limits(tmp_path: Path) -> None:
    (tmp_path / "gone.tfquery.hcl").symlink_to(tmp_path / "nowhere")
    assert limits_in(tmp_path) == {}
    assert limits_in(tmp_path / "nowhere") == {}
