"""The catalogue loader: what it gives, and that it refuses everything that is not as described."""

from __future__ import annotations

import time

import pytest

from tfguard.catalog.loader import load_catalog, read_state_only, read_types
from tfguard.catalog.types import MadeByRule, PerParent
from tfguard.errors import ConfigError

GOOD = """
cloud: aws
ignore_tags: {"aws:x:": made by x}
action_prefix: {thing: things}
also_called: {aws_default_thing: aws_thing}
endpoint_names: {logs: [cloudwatchlogs]}
types:
  aws_thing:
    service: thing
    scope: regional
    create: CreateThing
    keys: {name: Name, arn: "arn:{partition}:thing:{region}:{account}:{name}"}
    unique: [name]
    traits: {tags.Name: Path}
    prefixes: {name_prefix: name}
    id: "{name}"
    import_id: "{name}"
    list: {operation: list_things, result: "Things[]", page_size: 10}
    owner: OwnerId
    only: "Kind == 'thing'"
    gone: Gone
    soft_deleted: DeletedAt
    folded: {name: case-dot}
    made_by:
      - {type: aws_box, attribute: name, parent_attribute: id, reason: made by its box}
      - {type: aws_bag, value: "Bag.Id", parent_attribute: id, when: Bag, reason: of its bag, certain: false}
    owns: {aws_disk: {id: ["root[].disk_id", disk_id]}}
    permissions: ["thing:Look"]
    details: [{operation: get_thing, arguments: {Name: "{name}"}, tags: Tags}]
    ignore: [{when: IsDefault, reason: default}]
    parent: {type: aws_box, attribute: name, parent_attribute: id}
    delete: {operation: delete_thing, arguments: {Name: "{name}"}}
"""


def test_entry_is_read_whole() -> None:
    catalog = read_types("x.yaml", GOOD)
    entry = catalog.get("aws_thing")
    assert entry is not None
    assert (entry.type, entry.cloud, entry.name, entry.stateful) == ("aws_thing", "aws", "Name", False)
    assert entry.arn == entry.keys["arn"]
    assert entry.attributes == ("name", "arn", "tags.Name", "name_prefix")
    assert entry.list is not None
    assert (entry.list.page_size, entry.list.arguments, entry.list.each) == (10, {}, None)
    assert entry.delete is not None
    assert entry.delete.arguments == {"Name": "{name}"}
    assert entry.ignore_tags == {"aws:x:": "made by x"}
    assert (entry.owner, entry.only) == ("OwnerId", "Kind == 'thing'")
    assert (entry.gone, entry.soft_deleted, entry.permissions) == ("Gone", "DeletedAt", ("thing:Look",))
    assert entry.made_by == (
        MadeByRule("aws_box", "{name}", "id", "made by its box"),
        MadeByRule("aws_bag", "Bag.Id", "id", "of its bag", when="Bag", certain=False),
    )
    assert entry.owns == {"aws_disk": {"id": ("root[].disk_id", "disk_id")}}
    assert catalog.action_prefix == {"thing": "things"}
    assert catalog.endpoint_names("logs") == ("logs", "cloudwatchlogs")
    assert catalog.endpoint_names("sqs") == ("sqs",)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("service: thing", "service: thing\n    servise: x", "aws_thing: servise: unknown key"),
        ("    service: thing\n", "", "aws_thing: service: is missing"),
        ("service: thing", "service: 7", "aws_thing: service: must be a text"),
        ("scope: regional", "scope: zonal", "aws_thing: scope: must be one of regional, global"),
        ("scope: regional", "scope: regional\n    stateful: maybe", "aws_thing: stateful: must be true or false"),
        ("unique: [name]", "unique: [nam]", "aws_thing: unique: 'nam' is not one of the keys"),
        ("unique: [name]", "unique: name", "aws_thing: unique: must be a list of texts"),
        ("name_prefix: name", "name_prefix: nam", "aws_thing: prefixes.name_prefix: 'nam' is neither"),
        ("name, parent_attribute: id}", "box, parent_attribute: id}", "aws_thing: parent.attribute: 'box' is neither"),
        ('id: "{name}"\n    import', 'id: "{nam}"\n    import', "aws_thing: id: {nam} is not a key or trait"),
        ("page_size: 10", "page_size: 0", "aws_thing: list.page_size: must be a whole number"),
        ("page_size: 10", "page: 10", "aws_thing: list.page: unknown key"),
        (", tags: Tags}]", "}]", "aws_thing: details[0].operation: gives neither"),
        ('{Name: "{name}"}, tags', '{Name: "{nam}"}, tags', "aws_thing: details[0].arguments: {nam} is not"),
        ("[{when: IsDefault, reason: default}]", "[{when: IsDefault}]", "aws_thing: ignore[0].reason: is missing"),
        ("[{when: IsDefault, reason: default}]", "{when: x}", "aws_thing: ignore: must be a list"),
        ("[{when: IsDefault, reason: default}]", "[7]", "aws_thing: ignore[0]: must be a mapping"),
        ("attribute: name, parent_attribute: id, reason", "parent_attribute: id, reason",
         "made_by[0].attribute: either"),
        ("attribute: name, parent_attribute: id, reason", "attribute: nam, parent_attribute: id, reason",
         "aws_thing: made_by[0]: {nam} is not a key or trait"),
        ("{name: case-dot}", "{name: upper}", "aws_thing: folded.name: must be one of case, dot, case-dot"),
        ("{name: case-dot}", "{nam: case}", "aws_thing: folded: 'nam' is not one of the keys"),
        ("root[].disk_id", "root[0].disk_id", "aws_thing: owns.aws_disk.id: 'root[0].disk_id' is no plain path"),
        ("page_size: 10", "per: {arguments: {Box: x}}", "aws_thing: list.per.type: is missing"),
        ("page_size: 10", "token: {argument: NextToken}", "aws_thing: list.token.answer: is missing"),
        ("traits: {tags.Name: Path}", 'traits: {tags.Name: "{parent_name}"}',
         "aws_thing: tags.Name: {parent_name} is not a key or trait"),
        ("page_size: 10", 'arguments: {Box: "{name}"}', "aws_thing: list.arguments: {name} is not a key or trait"),
        ("service: thing", 'service: thing\n    handles: {box: "{bag}"}', "aws_thing: box: {bag} is not a key"),
        ("service: thing", "service: thing\n    handles: {name: Box}", "aws_thing: handles.name: is a key or a trait"),
        ("service: thing", "service: thing\n    service: other", "'service' is there twice"),
        ("cloud: aws", "cloud: aws\ncolour: blue", "(head): colour: unknown key"),
        ("cloud: aws\n", "", "(head): cloud: is missing"),
        ("types:", "types: [", "x.yaml: "),
    ],
)  # fmt: skip
def test_what_is_not_as_described_is_refused_with_its_place(old: str, new: str, where: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        read_types("x.yaml", GOOD.replace(old, new, 1))
    assert caught.value.what.startswith("x.yaml: ")
    assert where in caught.value.what
    assert "\n" not in caught.value.what


def test_list_for_each_parent_lets_templates_name_the_parents_values() -> None:
    per = GOOD.replace("page_size: 10", 'per: {type: aws_box, arguments: {Box: "{name}"}, only_own: true}')
    entry = read_types("x.yaml", per.replace("traits: {tags.Name: Path}", 'traits: {box: "{parent_name}"}')).get(
        "aws_thing"
    )
    assert entry is not None and entry.list is not None
    assert entry.list.per == PerParent("aws_box", {"Box": "{name}"}, only_own=True)


def test_handles_are_for_calls_and_ids_alone() -> None:
    with_box = GOOD.replace("scope: regional", "scope: regional\n    handles: {box: Box}")
    entry = read_types("x.yaml", with_box.replace('id: "{name}"', 'id: "{box}/{name}"', 1)).get("aws_thing")
    assert entry is not None
    assert (entry.handles, entry.id) == ({"box": "Box"}, "{box}/{name}")
    assert "box" not in (*entry.attributes, *entry.keys, *entry.traits)


def test_type_with_another_name_is_known_by_the_one_that_is_listed() -> None:
    catalog = read_types("x.yaml", GOOD)
    assert catalog.canonical("aws_default_thing") == catalog.canonical("aws_thing") == "aws_thing"
    assert catalog.get("aws_default_thing") is None


@pytest.mark.parametrize(
    ("how", "expected"),
    [("case", "a.b."), ("dot", "A.b"), ("case-dot", "a.b")],
)
def test_keys_are_compared_as_the_service_does(how: str, expected: str) -> None:
    entry = read_types("x.yaml", GOOD.replace("name: case-dot", f"name: {how}")).get("aws_thing")
    assert entry is not None
    assert entry.comparable("name", "A.b.") == expected
    assert entry.comparable("arn", "A.b.") == "A.b."


def test_entry_without_a_key_is_refused() -> None:
    text = GOOD.replace('{name: Name, arn: "arn:{partition}:thing:{region}:{account}:{name}"}', "{}")
    with pytest.raises(ConfigError, match="aws_thing: keys"):
        read_types("x.yaml", text)


def test_file_that_is_no_mapping_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be a mapping"):
        read_types("x.yaml", "- a")
    with pytest.raises(ConfigError, match="must be a list of texts"):
        read_state_only("x.yaml", "providers: {a: b}")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("terraform.io/builtin/terraform", True),
        ("registry.terraform.io/hashicorp/random", True),
        ("registry.opentofu.org/hashicorp/null", True),
        ("registry.terraform.io/hashicorp/time", True),
        ("registry.terraform.io/hashicorp/tls", True),
        ("registry.terraform.io/hashicorp/aws", False),
        ("registry.terraform.io/someone/random", False),
        ("registry.terraform.io/hashicorp/local", False),
        ("", False),
    ],
)
def test_providers_that_own_nothing_outside_the_state(source: str, expected: bool) -> None:
    assert load_catalog().state_only(source) is expected


def test_catalogue_of_the_package_is_whole() -> None:
    catalog = load_catalog()
    assert len(catalog) == len(list(catalog)) >= 17
    assert catalog.get("aws_nothing") is None
    role = catalog.get("aws_iam_role")
    assert role is not None
    assert (role.unique, role.prefixes, role.is_global) == (("name",), {"name_prefix": "name"}, True)
    child = catalog.get("aws_iam_role_policy")
    assert child is not None
    assert child.list is not None
    assert (child.list.per is not None, child.parent is not None, child.asks_parent) == (True, True, True)
    assert not role.asks_parent


def test_catalogue_is_read_once_and_fast() -> None:
    load_catalog()
    load_catalog.cache_clear()
    began = time.process_time()  # whatever else runs here
    first = load_catalog()
    assert time.process_time() - began < 0.3
    assert load_catalog() is first
