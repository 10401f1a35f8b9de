"""The engine's state, reduced to identities; an unreadable one is never an empty one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.engine.state import parse_any_state, parse_shown_state, parse_state, provider_key, read_state_file
from tfguard.errors import EmptyStateError, InputError
from tfguard.model.state import EMPTY_STATE

CATALOG = load_catalog()
AWS = 'provider["registry.terraform.io/hashicorp/aws"]'


def state(*resources: object) -> bytes:
    return json.dumps(
        {"version": 4, "serial": 7, "lineage": "l", "outputs": {"b": {}, "a": {}}, "resources": resources}
    ).encode()


def resource(**changes: object) -> dict[str, object]:
    base: dict[str, object] = {"mode": "managed", "type": "aws_iam_role", "name": "app", "provider": AWS}
    return {**base, "instances": [{"attributes": {"name": "app", "arn": "arn:app", "description": "x"}}], **changes}


def test_addresses_are_written_as_the_engine_writes_them() -> None:
    instances = [{"index_key": 0}, {"index_key": 'a"b${c}'}, {"index_key": "x", "deposed": "1a2b"}]
    found = parse_state(state(resource(module='module.m["k"]', instances=instances)), "here", CATALOG)
    assert [held.address for held in found.instances] == [
        'module.m["k"].aws_iam_role.app[0]',
        'module.m["k"].aws_iam_role.app["a\\"b$${c}"]',
        'module.m["k"].aws_iam_role.app["x"]',
    ]
    assert found.addresses == {held.address for held in found.instances[:2]}


def test_only_identities_are_kept() -> None:
    found = parse_state(state(resource()), "here", CATALOG)
    assert (found.lineage, found.serial, found.outputs) == ("l", 7, ("a", "b"))
    assert dict(found.instances[0].identity) == {"name": "app", "arn": "arn:app"}


@pytest.mark.parametrize("path", [[{"type": "get_attr", "value": "name"}], [{"type": "get_attr", "value": "name"}, {}]])
def test_a_sensitive_attribute_is_left_out(path: list[object]) -> None:
    instance = {"attributes": {"name": "hunter2", "arn": "arn:app"}, "sensitive_attributes": [path]}
    found = parse_state(state(resource(instances=[instance])), "here", CATALOG)
    assert dict(found.instances[0].identity) == {"arn": "arn:app"}


def test_marked_values_are_known_for_what_copies_them_and_named_as_withheld() -> None:
    tags = {"Name": "hunter2-name", "team": "audit"}
    paths = [
        [{"type": "get_attr", "value": "tags"}, {"type": "index", "value": {"value": "Name", "type": "string"}}],
        [{"type": "get_attr", "value": "list"}, {"type": "index", "value": {"value": 1, "type": "number"}}],
        [{"type": "get_attr", "value": "name"}],
        [{"type": "get_attr", "value": "gone"}, {"type": "index", "value": {"value": 7, "type": "number"}}],
    ]
    attributes = {"name": "hunter2", "arn": "arn:hunter2", "tags": tags, "list": ["open", "hunter2-list"]}
    instance = {"attributes": attributes, "sensitive_attributes": paths}
    found = parse_state(state(resource(instances=[instance])), "here", CATALOG)
    assert found.secrets == {"hunter2", "hunter2-name", "hunter2-list"}
    assert "name" in found.instances[0].withheld
    assert "hunter2" not in repr(found).replace("arn:hunter2", "")


def test_tainted_objects_and_data_sources_are_told_apart() -> None:
    found = parse_state(state(resource(instances=[{"status": "tainted"}]), resource(mode="data")), "here", CATALOG)
    assert [held.tainted for held in found.instances] == [True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (AWS, ("registry.terraform.io/hashicorp/aws", "aws")),
        (f"{AWS}.eu", ("registry.terraform.io/hashicorp/aws", "aws.eu")),
        (f"module.net.{AWS}.eu", ("registry.terraform.io/hashicorp/aws", "module.net:aws.eu")),
        ("something else", ("something else", "")),
    ],
)
def test_the_provider_configuration_is_named_as_a_plan_names_it(text: str, expected: tuple[str, str]) -> None:
    assert provider_key(text) == expected


@pytest.mark.parametrize(
    "data", [b"{", state()[:-5], b"\xff\xfe", b"[]", b'{"version": 3}', b'{"encrypted_data": "x"}']
)
def test_an_unreadable_state_is_an_error(data: bytes) -> None:
    with pytest.raises(InputError, match="the state at here cannot be read") as caught:
        parse_state(data, "here", CATALOG)
    assert not isinstance(caught.value, EmptyStateError)


@pytest.mark.parametrize("data", [b"", b"\n"])
def test_an_empty_file_is_an_error_of_its_own(data: bytes) -> None:
    with pytest.raises(EmptyStateError):
        parse_state(data, "here", CATALOG)


def test_a_file_that_is_not_there_is_no_state(tmp_path: Path) -> None:
    assert read_state_file(tmp_path / "none", CATALOG) is EMPTY_STATE
    with pytest.raises(InputError, match="cannot be read"):
        read_state_file(tmp_path, CATALOG)


def test_outputs_data_sources_and_values_of_any_type_are_read_for_marks_too() -> None:
    path = [{"type": "get_attr", "value": "input"}, {"type": "get_attr", "value": "deep"}]
    dynamic = {"input": {"value": {"deep": ["hunter2-any"]}, "type": ["object", {"deep": ["tuple", ["string"]]}]}}
    instance = {"attributes": dynamic, "sensitive_attributes": [path]}
    data = {"attributes": {"input": {"deep": "hunter2-data"}}, "sensitive_attributes": [path]}
    document = json.loads(state(resource(instances=[instance]), resource(mode="data", instances=[data])))
    document["outputs"] = {"o": {"value": ["hunter2-out"], "sensitive": True}, "p": {"value": "open"}}
    found = parse_state(json.dumps(document).encode(), "here", CATALOG)
    assert found.secrets == {"hunter2-any", "hunter2-data", "hunter2-out"}


def test_a_path_without_a_step_marks_the_whole_object() -> None:
    instance = {"attributes": {"name": "hunter2", "arn": "arn:hunter2"}, "sensitive_attributes": [[]]}
    found = parse_state(state(resource(instances=[instance])), "here", CATALOG)
    assert dict(found.instances[0].identity) == {}
    assert found.secrets == {"hunter2", "arn:hunter2"}


def test_an_id_that_is_marked_leaves_no_fingerprint() -> None:
    path = [{"type": "get_attr", "value": "secret"}]
    for attributes, kept in (({"id": "x-hunter2", "secret": "hunter2"}, False), ({"id": "i-1", "secret": "s"}, True)):
        instance = {"attributes": attributes, "sensitive_attributes": [path]}
        found = parse_state(state(resource(instances=[instance])), "here", CATALOG)
        assert bool(found.instances[0].fingerprint) is kept


ROLE = "arn:aws:iam::123456789012:role/r"
NODES = "arn:aws:eks:eu-west-1:123456789012:nodegroup/c/n/1"


@pytest.mark.parametrize(
    ("kind", "attributes", "expected"),
    [
        ("aws_cloudwatch_log_metric_filter", {"region": "eu-west-1"}, ("", "eu-west-1")),  # as provider 6 writes it
        ("aws_cloudwatch_log_metric_filter", {}, ("", "")),
        ("aws_s3_bucket", {"region": "eu-west-1"}, ("", "")),  # a name of the whole account, wherever its data is
        ("aws_eks_node_group", {"arn": NODES}, ("123456789012", "eu-west-1")),
        ("aws_eks_node_group", {"arn": NODES, "region": "eu-west-2"}, ("123456789012", "eu-west-2")),
        ("aws_config_configuration_recorder", {"role_arn": ROLE}, ("123456789012", "")),
        ("aws_iam_role_policy_attachment", {"policy_arn": "arn:aws:iam::aws:policy/ReadOnlyAccess"}, ("", "")),
        ("aws_cloudwatch_event_target", {"arn": NODES}, ("", "")),  # that of what it is sent to
        ("unknown_type", {"region": "eu-west-1", "arn": NODES}, ("", "")),
    ],
)
def test_where_an_instance_is_is_read_as_far_as_it_says(
    kind: str, attributes: dict[str, str], expected: tuple[str, str]
) -> None:
    one = resource(type=kind, instances=[{"attributes": attributes}])
    (found,) = parse_state(state(one), "here", CATALOG).instances
    assert (found.account, found.region) == expected
    marked = [[{"type": "get_attr", "value": name}] for name in attributes]
    hidden = resource(type=kind, instances=[{"attributes": attributes, "sensitive_attributes": marked}])
    (found,) = parse_state(state(hidden), "here", CATALOG).instances
    assert (found.account, found.region) == ("", "")


def test_what_the_engine_shows_of_a_state_tells_the_region_too() -> None:
    values = {"log_group_name": "g", "name": "n", "region": "eu-west-1"}
    kind = "aws_cloudwatch_log_metric_filter"
    shown = {"address": f"{kind}.x", "mode": "managed", "type": kind, "name": "x", "values": values}
    document = {"format_version": "1.0", "values": {"root_module": {"resources": [shown]}}}
    (found,) = parse_shown_state(json.dumps(document), EMPTY_STATE, "here", CATALOG).instances
    assert found.region == "eu-west-1"


@pytest.mark.parametrize(
    "doubled",
    [
        lambda text: text[:-1] + ', "resources": []}',
        lambda text: text.replace('"name": "app", "provider"', '"name": "b", "name": "app", "provider"'),
        lambda text: text.replace('"arn": "arn:app"', '"arn": "arn:b", "arn": "arn:app"'),
        lambda text: text.replace('"version": 4', '"version": 4, "version": 3'),
    ],
    ids=["at the top", "in a resource", "in an instance", "version"],
)
def test_a_state_that_says_one_thing_twice_is_unreadable(doubled: Callable[[str], str]) -> None:
    """The engine takes the last of the two, and what it had in the first is no stray."""
    text = state(resource()).decode()
    assert len(parse_state(text.encode(), "here", CATALOG).instances) == 1
    for parse in (parse_state, parse_any_state):
        with pytest.raises(InputError, match="a key is there twice"):
            parse(doubled(text).encode(), "here", CATALOG)
