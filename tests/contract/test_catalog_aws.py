"""Every AWS entry of the catalogue against botocore's own models, and lived through on a simulated AWS.

A new entry needs a function that makes such an object and returns its import id and ARN: `tests/contract/aws_creators`.
"""

from __future__ import annotations

import json
import re
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

from tests.contract.aws_creators import CREATORS, LIMITS, REGION, Cloud, Limits
from tfguard.catalog.loader import load_catalog
from tfguard.catalog.permissions import api_name, calls_of
from tfguard.catalog.types import PLACEHOLDER, ResourceType
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.items import fill, holds, look_up, placeholders
from tfguard.model.inventory import CloudObject

CATALOG = load_catalog()
ENTRIES = {entry.type: entry for entry in CATALOG if entry.cloud == "aws"}
LISTED = {name: entry for name, entry in ENTRIES.items() if entry.list is not None}
# What the service is called in a policy, by hand: AWS's service authorization reference.
PREFIX_THAT_IS_NOT_THE_SIGNING_NAME = {"cloudwatch": "cloudwatch"}
PAGE_WORDS = ("token", "marker", "startingposition", "exclusivestart")

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
    calls = (*entry.details, *entry.restore, entry.delete, entry.list)
    named = [call.operation for call in calls if call is not None]
    if entry.list and entry.list.each:
        named.append(entry.list.each.operation)
    assert [name for name in named if name not in _operations(entry.service)] == []
    assert entry.create in _model(entry.service).operation_names
    assert entry.delete is not None or LIMITS[entry.type].delete


@every_entry
def test_arguments_are_those_that_the_operations_take(entry: ResourceType) -> None:
    all_calls = (*entry.details, *entry.restore, entry.delete)
    calls = [(call.operation, call.arguments) for call in all_calls if call is not None]
    if entry.list:
        per = entry.list.per.arguments if entry.list.per else {}
        calls.append((entry.list.operation, {**entry.list.arguments, **per}))
        calls.extend([(each.operation, each.arguments)] if (each := entry.list.each) else [])
    parent = _names_of(ENTRIES[entry.list.per.type]) if entry.list and entry.list.per else set()
    values = dict.fromkeys(_names_of(entry) | parent, "as-long-as-the-longest-identifier".ljust(64, "-"))
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
    if paginator is None:
        _check_page_token(entry, operation)
        return
    assert entry.list.token is None, "boto3 has a paginator"
    limit = paginator.get("limit_key")
    if limit is None or entry.service == "s3":  # one simulated AWS loses buckets above a page size, without a word
        assert entry.list.page_size is None
        return
    assert entry.list.page_size is not None, f"{limit} needs a page_size"
    assert entry.list.page_size <= operation.input_shape.members[limit].metadata.get("max", 1000)


def _check_page_token(entry: ResourceType, operation: Any) -> None:
    assert entry.list is not None and entry.list.page_size is None
    members = operation.input_shape.members if operation.input_shape else {}
    if entry.list.token:
        assert entry.list.token.argument in members
        _resolve(_parse(entry.list.token.answer), (operation.output_shape,))
        return
    pages = [name for name in members if name.lower().endswith(PAGE_WORDS)]
    assert pages == [], "without a paginator or a token only the first page is read"


@every_listed_entry
def test_item_paths_exist_in_the_answers(entry: ResourceType) -> None:
    item = _item_shape(entry)
    paths = [*entry.keys.values(), *entry.traits.values(), *entry.handles.values()]
    paths.extend(rule.when for rule in entry.ignore)
    paths.extend([*(rule.value for rule in entry.made_by), *(rule.when for rule in entry.made_by if rule.when)])
    single = (entry.name, entry.arn, entry.created, entry.tags, entry.only, entry.gone, entry.soft_deleted, entry.owner)
    paths.extend(path for path in (*single, entry.gone_after) if path)
    for path in paths:
        if "{" not in path:
            _resolve(_parse(path), item)


@every_entry
def test_detail_paths_exist_in_the_answers(entry: ResourceType) -> None:
    for call in entry.details:
        for path in (call.created, call.tags, call.gone_after):
            if path:
                _resolve(_parse(path), (_operations(entry.service)[call.operation].output_shape,))


@every_entry
def test_expressions_bear_an_item_without_any_field(entry: ResourceType) -> None:
    expressions = [*(rule.when for rule in entry.ignore), *filter(None, (entry.gone, entry.soft_deleted))]
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
    named_after_an_environment = ("compute_environment_name", "compute_environment_name_prefix")
    doubtful = [name for name in entry.attributes if any(word in name for word in words)]
    assert [name for name in doubtful if name not in named_after_an_environment] == []


@every_entry
def test_calls_are_named_as_their_permissions_are(entry: ResourceType) -> None:
    """What IAM calls another name than the SDK has `permissions` in its entry, or is in this table for its prefix."""
    if entry.permissions:
        assert all(re.fullmatch(r"[a-z0-9-]+:[A-Z]\w+", action) for action in entry.permissions)
        return
    signing_name = _model(entry.service).signing_name
    prefix = CATALOG.action_prefix.get(entry.service, entry.service)
    assert prefix == PREFIX_THAT_IS_NOT_THE_SIGNING_NAME.get(entry.service, signing_name)
    api_names = {method: operation.name for method, operation in _operations(entry.service).items()}
    assert [api_name(call) for call in calls_of(entry)] == [api_names[call] for call in calls_of(entry)]


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
        for name in (path.split(".")[0] for path in (*entry.attributes, *entry.placed_by)):
            if name not in known or known[name].get("sensitive"):
                wrong.append(f"{entry.type}.{name}")
        inside = {*known, *provider_schema[entry.type]["block"].get("block_types", {})}
        owned = [text for keys in entry.owns.values() for found in keys.values() for text in found]
        paths = [path for text in owned for path in PLACEHOLDER.findall(text) or [text]]
        wrong.extend(f"{entry.type}.{path}" for path in paths if re.split(r"[.\[]", path)[0] not in inside)
    assert wrong == []


@pytest.mark.e2e
def test_types_with_another_name_are_the_providers_and_have_a_key_of_the_canonical_one(
    provider_schema: dict[str, Any],
) -> None:
    without = [
        other
        for other, canonical in CATALOG.also_called.items()
        if canonical in ENTRIES
        and not ENTRIES[canonical].keys.keys() & provider_schema[other]["block"]["attributes"].keys()
    ]
    assert without == []


def _names_of(entry: ResourceType) -> set[str]:
    """What templates over an object of the type may name."""
    own = {*entry.keys, *entry.traits, *entry.handles}
    return {*own, "id", "import_id", "name", "arn", "account", "partition", "region"}


def _item_shape(entry: ResourceType) -> tuple[Any, ...]:
    """The shape of a listed item; with a call for each item, of both joined."""
    assert entry.list is not None
    page = (_operations(entry.service)[entry.list.operation].output_shape,)
    outermost, *inner = entry.list.result.removesuffix("[]").split("[].")
    found = _elements(_resolve(_parse(outermost), page))
    for name in inner:
        found = (*_elements(_resolve(_parse(name), found)), *found)
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
        case "current" | "identity" | "slice":
            return shapes
        case "index":
            return _elements(shapes)
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
        case "not_expression" | "comparator" | "function_expression" | "multi_select_list":
            for child in children:
                _resolve(child, shapes)
            return ()
        case "literal":
            return ()
        case "multi_select_list":
            return tuple(found for child in children for found in _resolve(child, shapes))
        case other:
            pytest.fail(f"the test does not know {other}: teach it, or write the path otherwise")


def _member(name: str, shapes: Shapes) -> Shapes:
    found = [shape.members[name] for shape in shapes if shape.type_name == "structure" and name in shape.members]
    found.extend(shape.value for shape in shapes if shape.type_name == "map")
    found.extend(shape for shape in shapes if shape.type_name == "string" and name == "Item")
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
    limits = LIMITS.get(entry.type, Limits())
    listing = inventory.list(entry.type, aws_server.provider(), region="ca-central-1")
    assert bool(listing.gap) == bool(limits.list)
    left = [found for found in listing.objects if found.ignored_because is None and not found.made_by]
    assert entry.is_global or bool(left) == bool(limits.empty), left


@every_listed_entry
def test_object_is_found_described_deleted_and_gone(
    entry: ResourceType, aws_server: Cloud, inventory: AwsInventory
) -> None:
    limits = LIMITS.get(entry.type, Limits())
    if limits.list:
        pytest.skip(limits.list)
    import_id, arn = CREATORS[entry.type](aws_server)

    found = _the_one(inventory, aws_server, entry, import_id)
    assert (found.arn, found.account) == (None if limits.arn else arn or None, "123456789012")
    assert found.owner == (None if limits.owner or not entry.owner else "123456789012")
    assert found.region == ("global" if entry.scope == "global" else REGION)
    assert found.ignored_because is None
    assert found.stateful == entry.stateful
    without_arn = ["arn"] if limits.arn and "arn" in entry.keys else []
    assert {*found.identity, *limits.attributes, *without_arn} == {*entry.keys, *entry.traits, *entry.handles}
    assert found.identity.keys() & limits.attributes.keys() == set(), "a limit that is none"
    assert ("one" in (found.name or "").lower()) == (entry.name is not None and not limits.name), found.name

    detail = inventory.detail(found, aws_server.provider())
    described = detail.found
    assert detail.gap is None or limits.tags or limits.created, detail.gap
    dated = entry.created or any(call.created for call in entry.details)
    assert (described.created_at is not None) == bool(dated and not limits.created)
    tagged = entry.tags or any(call.tags for call in entry.details)
    assert (described.tags.get("team") == "blue") == bool(tagged and not limits.tags), described.tags
    assert described.key == found.key

    if not limits.delete:
        _delete(aws_server, entry, described)
        after = inventory.list(entry.type, aws_server.provider())
        assert after.complete
        assert import_id not in [other.import_id for other in after.objects]
        waiting = import_id in [other.import_id for other in after.soft_deleted]
        assert waiting == bool(entry.soft_deleted)


def _delete(cloud: Cloud, entry: ResourceType, found: CloudObject) -> None:
    assert entry.delete is not None
    arguments: Any = fill(dict(entry.delete.arguments), placeholders(found, "aws"))
    getattr(cloud.client(entry.service), entry.delete.operation)(**arguments)


def test_every_listed_type_has_a_maker_or_cannot_be_simulated() -> None:
    unlisted = {name for name, limits in LIMITS.items() if limits.list}
    assert CREATORS.keys() | unlisted == LISTED.keys()
    assert LIMITS.keys() <= LISTED.keys()


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
