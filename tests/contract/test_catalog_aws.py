"""Every AWS entry of the catalogue against botocore's own models, and lived through on a simulated AWS.

A new entry needs a function that makes such an object and returns its import id and ARN: `tests/contract/aws_creators`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import jmespath
import pytest
from botocore.validate import ParamValidator
from moto.server import ThreadedMotoServer

from tests.contract.aws_creators import CREATORS, REGION, Cloud
from tfguard.catalog.loader import load_catalog
from tfguard.catalog.types import ResourceType
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.items import fill, holds, look_up, placeholders
from tfguard.model.inventory import CloudObject

ENTRIES = {entry.type: entry for entry in load_catalog() if entry.cloud == "aws"}
LISTED = {name: entry for name, entry in ENTRIES.items() if entry.list is not None}
NO_ARN_IN_THE_SIMULATION = ("aws_ssm_parameter",)

every_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
every_listed_entry = pytest.mark.parametrize("entry", LISTED.values(), ids=LISTED)


# --- against the models -----------------------------------------------------------------------------------------------


@cache
def _session() -> Any:
    return botocore.session.get_session()


@cache
def _model(service: str) -> Any:
    return _session().get_service_model(service)


@cache
def _operations(service: str) -> dict[str, Any]:
    """The models of a service's operations, by the client's method names."""
    return {
        botocore.xform_name(name): _model(service).operation_model(name) for name in _model(service).operation_names
    }


@cache
def _paginators(service: str) -> dict[str, Any]:
    return dict(_session().get_component("data_loader").load_service_model(service, "paginators-1")["pagination"])


@every_entry
def test_operations_exist(entry: ResourceType) -> None:
    named = [call.operation for call in (*entry.details, entry.delete, entry.list) if call is not None]
    if entry.list and entry.list.each:
        named.append(entry.list.each.operation)
    assert [name for name in named if name not in _operations(entry.service)] == []
    assert entry.create in _model(entry.service).operation_names
    assert entry.delete is not None


@every_entry
def test_arguments_are_those_that_the_operations_take(entry: ResourceType) -> None:
    calls = [(call.operation, call.arguments) for call in (*entry.details, entry.delete) if call is not None]
    if entry.list:
        calls.append((entry.list.operation, entry.list.arguments))
        calls.extend([(each.operation, each.arguments)] if (each := entry.list.each) else [])
    values = {name: "something-long-enough" for name in (*entry.keys, *entry.traits, "id", "import_id", "name", "arn")}
    for operation, arguments in calls:
        report = ParamValidator().validate(
            fill(dict(arguments), values), _operations(entry.service)[operation].input_shape
        )
        assert not report.has_errors(), f"{operation}: {report.generate_report()}"


@every_listed_entry
def test_list_reads_the_largest_pages(entry: ResourceType) -> None:
    assert entry.list is not None
    operation = _operations(entry.service)[entry.list.operation]
    paginator = _paginators(entry.service).get(operation.name)
    assert paginator is not None, "without a paginator only the first page is read"
    limit = paginator.get("limit_key")
    if limit is None or entry.service == "s3":  # one simulated AWS loses buckets above a page size, without a word
        assert entry.list.page_size is None
        return
    assert entry.list.page_size is not None, f"{limit} needs a page_size"
    assert entry.list.page_size <= operation.input_shape.members[limit].metadata.get("max", 1000)


@every_listed_entry
def test_item_paths_exist_in_the_answers(entry: ResourceType) -> None:
    item = _item_shape(entry)
    paths = [*entry.keys.values(), *entry.traits.values(), *(rule.when for rule in entry.ignore)]
    paths.extend(path for path in (entry.name, entry.arn, entry.created, entry.tags, entry.gone) if path)
    for path in paths:
        if "{" not in path:
            _resolve(_parse(path), item)


@every_entry
def test_detail_paths_exist_in_the_answers(entry: ResourceType) -> None:
    for call in entry.details:
        for path in (call.created, call.tags):
            if path:
                _resolve(_parse(path), (_operations(entry.service)[call.operation].output_shape,))


@every_entry
def test_expressions_bear_an_item_without_any_field(entry: ResourceType) -> None:
    expressions = [*(rule.when for rule in entry.ignore), *([entry.gone] if entry.gone else [])]
    bare: tuple[object, ...] = ({}, "", None)
    for item in bare:
        assert [text for text in expressions if holds(text, item)] == []


@every_entry
def test_no_attribute_could_hold_a_secret(entry: ResourceType) -> None:
    words = (
        "password",
        "secret_",
        "value",
        "token",
        "user_data",
        "content",
        "environment",
        "private",
        "assume_role_policy",
    )
    assert [name for name in entry.attributes if any(word in name for word in words)] == []


@every_entry
def test_parent_is_a_type_of_the_catalogue(entry: ResourceType) -> None:
    if entry.parent:
        parent = load_catalog().get(entry.parent.type)
        assert parent is not None
        assert entry.parent.parent_attribute in (*parent.keys, *parent.traits)


@pytest.fixture(scope="module")
def provider_schema(engine: Path, seed: Path, mirror_env: dict[str, str]) -> dict[str, Any]:
    """What the real provider says about its resource types."""
    command = [str(engine), "providers", "schema", "-json"]
    told = json.loads(subprocess.run(command, cwd=seed, env=mirror_env, capture_output=True, check=True).stdout)
    (schemas,) = told["provider_schemas"].values()
    return dict(schemas["resource_schemas"])


@pytest.mark.e2e
def test_attributes_are_the_providers_own_and_not_sensitive(provider_schema: dict[str, Any]) -> None:
    wrong = []
    for entry in ENTRIES.values():
        known = provider_schema[entry.type]["block"]["attributes"]
        for name in (path.split(".")[0] for path in entry.attributes):
            if name not in known or known[name].get("sensitive"):
                wrong.append(f"{entry.type}.{name}")
    assert wrong == []


def _item_shape(entry: ResourceType) -> tuple[Any, ...]:
    """The shape of a listed item; with a call for each item, of both joined."""
    assert entry.list is not None
    page = (_operations(entry.service)[entry.list.operation].output_shape,)
    found = _resolve(_parse(entry.list.result), page)
    if entry.list.each:
        answer = (_operations(entry.service)[entry.list.each.operation].output_shape,)
        found = (*found, *_resolve(_parse(entry.list.each.result), answer))
    return found


def _parse(path: str) -> dict[str, Any]:
    return dict(jmespath.compile(path).parsed)


Shapes = tuple[Any, ...]


def _resolve(node: dict[str, Any], shapes: Shapes) -> Shapes:
    """Where a JMESPath leads from `shapes`, a projection to its elements; fails for a field that no shape has."""
    children = node["children"]
    match node["type"]:
        case "field":
            return _member(node["value"], shapes)
        case "current" | "identity" | "index" | "slice":
            return shapes
        case "subexpression" | "pipe" | "index_expression":
            for child in children:
                shapes = _resolve(child, shapes)
            return shapes
        case "projection" | "filter_projection":
            elements = _elements(_resolve(children[0], shapes))
            for condition in children[2:]:
                _resolve(condition, elements)
            return _resolve(children[1], elements)
        case "flatten":
            return _elements(_resolve(children[0], shapes))
        case "or_expression" | "and_expression":
            return tuple(found for child in children for found in _resolve(child, shapes))
        case "not_expression" | "comparator" | "function_expression":
            for child in children:
                _resolve(child, shapes)
            return ()
        case "literal":
            return ()
        case other:
            pytest.fail(f"the test does not know {other}: teach it, or write the path otherwise")


def _member(name: str, shapes: Shapes) -> Shapes:
    found = [shape.members[name] for shape in shapes if shape.type_name == "structure" and name in shape.members]
    found.extend(shape.value for shape in shapes if shape.type_name == "map")
    assert found, f"no {name} in {[shape.name for shape in shapes]}"
    return tuple(found)


def _elements(shapes: Shapes) -> Shapes:
    return tuple(shape.member if shape.type_name == "list" else shape for shape in shapes)


# --- on a simulated AWS -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def aws_server() -> Iterator[Cloud]:
    """A simulated AWS of this module's own."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield Cloud(f"http://{host}:{port}")
    server.stop()


@pytest.fixture(scope="module")
def inventory() -> AwsInventory:
    """The inventory under test."""
    return AwsInventory(load_catalog())


@every_listed_entry
def test_place_without_objects_is_listed_completely(
    entry: ResourceType, aws_server: Cloud, inventory: AwsInventory
) -> None:
    listing = inventory.list(entry.type, aws_server.provider(), region="ca-central-1")
    assert listing.gap is None
    assert entry.is_global or [found for found in listing.objects if found.ignored_because is None] == []


@every_listed_entry
def test_object_is_found_described_deleted_and_gone(
    entry: ResourceType, aws_server: Cloud, inventory: AwsInventory
) -> None:
    import_id, arn = CREATORS[entry.type](aws_server)

    found = _the_one(inventory, aws_server, entry, import_id)
    simulated_arn = None if entry.type in NO_ARN_IN_THE_SIMULATION else arn
    assert (found.arn, found.account) == (simulated_arn, "123456789012")
    assert found.region == ("global" if entry.scope == "global" else REGION)
    assert found.ignored_because is None
    assert found.stateful == entry.stateful
    assert {*found.identity, *(["arn"] if simulated_arn is None else [])} == {*entry.keys, *entry.traits}
    assert found.name in ("one", "/app/one", "app/one", "one-bucket", "one.fifo")

    described = inventory.detail(found, aws_server.provider())
    dated = entry.created or any(call.created for call in entry.details)
    assert (described.created_at is not None) == bool(dated)
    assert described.tags["team"] == "blue"
    assert described.key == found.key

    assert entry.delete is not None
    arguments: Any = fill(dict(entry.delete.arguments), placeholders(described, "aws"))
    getattr(aws_server.client(entry.service), entry.delete.operation)(**arguments)
    after = inventory.list(entry.type, aws_server.provider())
    assert after.complete
    assert import_id not in [other.import_id for other in after.objects]


def test_child_without_a_list_is_not_covered(inventory: AwsInventory, aws_server: Cloud) -> None:
    assert not inventory.covers("aws_iam_role_policy")
    assert not inventory.list("aws_iam_role_policy", aws_server.provider()).complete


def test_path_outside_the_answer_is_noticed() -> None:
    page = (_operations("iam")["list_roles"].output_shape,)
    with pytest.raises(AssertionError):
        _resolve(_parse("Roles[].Nothing"), page)
    assert look_up("Roles[].RoleName", {"Roles": [{"RoleName": "a"}]}) == ["a"]


def _the_one(inventory: AwsInventory, cloud: Cloud, entry: ResourceType, import_id: str) -> CloudObject:
    listing = inventory.list(entry.type, cloud.provider())
    assert listing.gap is None
    (found,) = [other for other in listing.objects if other.import_id == import_id]
    return found
