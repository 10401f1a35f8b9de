"""The catalogue loader: what it gives, and that it refuses everything that is not as described."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfguard.catalog import loader
from tfguard.catalog.catalog import Catalog
from tfguard.catalog.cross_checks import check_entry
from tfguard.catalog.loader import load_catalog, read_catalog, read_state_only, read_types
from tfguard.catalog.types import Asset, GetCall, IgnoreRule, ListCall, MadeByRule, PerParent, TagRule
from tfguard.errors import ConfigError
from tfguard.model.preflight import Quota

GOOD = """
cloud: aws
ignore_tags:
  "aws:x:": made by x
  "aws:y:": {reason: made by y, type: aws_box, parent_attribute: id, named_by: ["aws:y:id", "y/*"]}
action_prefix: {thing: things}
also_called: {aws_default_thing: aws_thing}
endpoint_names: {logs: [cloudwatchlogs]}
types:
  aws_thing:
    service: thing
    scope: regional
    create: CreateThing
    quotas: [{service: thing, code: L-0123ABCD, only: {name: big}}, {service: thing, code: L-00000000}]
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
    gone_after: GoneAt
    restore: [{operation: restore_thing, arguments: {Name: "{name}"}}]
    fills: [grace_days]
    importable: false
    folded: {name: case-dot}
    made_by:
      - {type: aws_box, attribute: name, parent_attribute: id, reason: made by its box}
      - {type: aws_bag, value: "Bag.Id", parent_attribute: id, when: Bag, reason: of its bag, certain: false,
         held: ["of {name}"]}
    owns: {aws_disk: {id: ["root[].disk_id", disk_id], held: ["{name} {disk[].size}"]}}
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
    assert entry.ignore_tags == {
        "aws:x:": TagRule("made by x"),
        "aws:y:": TagRule("made by y", "aws_box", "id", ("aws:y:id", "y/*")),
    }
    assert set(entry.makers) == {("aws_box", "id"), ("aws_bag", "id")}
    assert (entry.owner, entry.only) == ("OwnerId", "Kind == 'thing'")
    assert (entry.gone, entry.soft_deleted, entry.permissions) == ("Gone", "DeletedAt", ("thing:Look",))
    assert (entry.gone_after, entry.importable, entry.fills) == ("GoneAt", False, ("grace_days",))
    assert entry.quotas == (Quota("thing", "L-0123ABCD", {"name": "big"}), Quota("thing", "L-00000000"))
    assert catalog.counted_by(Quota("thing", "L-0123ABCD")) == ((entry, entry.quotas[0]),)
    assert [(call.operation, call.arguments) for call in entry.restore] == [("restore_thing", {"Name": "{name}"})]
    assert entry.made_by == (
        MadeByRule("aws_box", "{name}", "id", "made by its box"),
        MadeByRule("aws_bag", "Bag.Id", "id", "of its bag", when="Bag", certain=False, held=("of {name}",)),
    )
    assert entry.owns == {"aws_disk": {"id": ("root[].disk_id", "disk_id"), "held": ("{name} {disk[].size}",)}}
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
        ("L-0123ABCD", "VPCs", "aws_thing: quotas[0].code: is no quota code"),
        ("only: {name: big}", "only: {size: big}", "aws_thing: quotas[0].only: 'size' is neither a key nor a trait"),
        ('    list: {operation: list_things, result: "Things[]", page_size: 10}\n', "",
         "aws_thing: quotas: needs a `list`"),
        ("page_size: 10", "page_size: 0", "aws_thing: list.page_size: must be a whole number"),
        ("page_size: 10", "page: 10", "aws_thing: list.page: unknown key"),
        (", tags: Tags}]", "}]", "aws_thing: details[0].operation: gives none of"),
        ("    soft_deleted: DeletedAt\n", "", "aws_thing: restore: goes with `soft_deleted`"),
        ('restore_thing, arguments: {Name: "{name}"}', 'restore_thing, arguments: {Name: "{nam}"}',
         "aws_thing: restore[0].arguments: {nam} is not a key or trait"),
        ('    delete: {operation: delete_thing, arguments: {Name: "{name}"}}\n', "", "aws_thing: delete: is missing"),
        ('importable: false\n', "by_call: maybe\n", "aws_thing: by_call: must be true or false"),
        ('{Name: "{name}"}, tags', '{Name: "{nam}"}, tags', "aws_thing: details[0].arguments: {nam} is not"),
        ("[{when: IsDefault, reason: default}]", "[{when: IsDefault}]", "aws_thing: ignore[0].reason: is missing"),
        ("[{when: IsDefault, reason: default}]", "{when: x}", "aws_thing: ignore: must be a list"),
        ("[{when: IsDefault, reason: default}]", "[7]", "aws_thing: ignore[0]: must be a mapping"),
        ("attribute: name, parent_attribute: id, reason", "parent_attribute: id, reason",
         "made_by[0].attribute: either"),
        ("attribute: name, parent_attribute: id, reason", "attribute: nam, parent_attribute: id, reason",
         "aws_thing: made_by[0]: {nam} is not a key or trait"),
        ("of {name}", "of {nam}", "aws_thing: made_by[1].held[0]: {nam} is not a key or trait"),
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
        ('"aws:x:": made by x', '"aws:x:": {reason: made by x}', "(head): ignore_tags.aws:x:.type: is missing"),
        ('"aws:x:": made by x', '"aws:x:": 7', "(head): ignore_tags.aws:x:: must be a mapping"),
        ("named_by: [", "named: [", "(head): ignore_tags.aws:y:.named: unknown key"),
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


@pytest.mark.parametrize("fqdn", ["www.example.com", "www.example.com.", "WWW.Example.COM."])
def test_the_parts_of_a_joint_key_are_compared_as_the_service_does(fqdn: str) -> None:
    """Before version 2 of the AWS provider, states had names of records as they were written."""
    kind = load_catalog().get("aws_route53_record")
    assert kind is not None
    values = {"zone_id": "Z1A", "fqdn": fqdn, "type": "A", "set_identifier": "Blue."}
    assert list(kind.joined(values).values()) == ["Z1A_www.example.com_A_Blue."]


BOXES = """
cloud: aws
types:
  aws_box: &box
    service: thing
    scope: regional
    keys: {id: Id, name: Name}
    id: "{id}"
    import_id: "{id}"
    list: {operation: list_boxes, result: "Boxes[]"}
  aws_bag: *box
  aws_disk: {service: disk, scope: regional, keys: {id: Id}, id: "{id}", import_id: "{id}"}
"""
PROVIDERS = "providers: [a/b/c]"
PER_BOX = 'per: {type: aws_box, arguments: {Box: "{name}"}}'


def test_files_that_name_each_others_entries_make_one_catalogue() -> None:
    catalog = read_catalog({"x.yaml": GOOD, "x_more.yaml": BOXES}, PROVIDERS)
    assert list(catalog.types) == ["aws_thing", "aws_box", "aws_bag", "aws_disk"]
    assert catalog.state_only("a/b/c")
    assert list(catalog.types["aws_box"].ignore_tags) == ["aws:x:", "aws:y:"]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("parent: {type: aws_box", "parent: {type: aws_bok", "aws_thing: parent.type: aws_bok is not in the"),
        ("attribute: name, parent_attribute: id}\n    delete", "attribute: name, parent_attribute: ids}\n    delete",
         "aws_thing: parent.parent_attribute: 'ids' is neither a key nor a trait of aws_box"),
        ("type: aws_bag,", "type: aws_sack,", "aws_thing: made_by[1].type: aws_sack is not in the catalogue"),
        ("parent_attribute: id, when: Bag", "parent_attribute: ids, when: Bag",
         "aws_thing: made_by[1].parent_attribute: 'ids' is neither"),
        ("importable: false", "detaches: [aws_bok]", "aws_thing: detaches: aws_bok is not in the catalogue"),
        ("importable: false", "detaches: [aws_disk]", "aws_thing: detaches: aws_disk cannot be listed"),
        ("owns: {aws_disk:", "owns: {aws_disc:", "aws_thing: owns.aws_disc: aws_disc is not in the catalogue"),
        ("{aws_disk: {id:", "{aws_disk: {name:", "aws_thing: owns.aws_disk.name: is no key of aws_disk"),
        ("reason: made by y, type: aws_box", "reason: made by y, type: aws_bok",
         "(head): ignore_tags.aws:y:.type: aws_bok is not in the catalogue"),
        ("type: aws_box, parent_attribute: id, named", "type: aws_box, parent_attribute: ids, named",
         "(head): ignore_tags.aws:y:.parent_attribute: 'ids' is neither"),
        ("aws_default_thing: aws_thing", "aws_default_thing: aws_thin",
         "(head): also_called.aws_default_thing: aws_thin is not in the catalogue"),
        ("aws_default_thing: aws_thing", "aws_box: aws_thing", "(head): also_called.aws_box: has an entry of its own"),
        ("page_size: 10", PER_BOX.replace("aws_box", "aws_bok"), "aws_thing: list.per.type: aws_bok is not in the"),
        ("page_size: 10", PER_BOX.replace("aws_box", "aws_disk"), "aws_thing: list.per.type: aws_disk cannot be"),
        ("page_size: 10", PER_BOX.replace("aws_box", "aws_thing"), "aws_thing: list.per.type: aws_thing is itself"),
        ("page_size: 10", PER_BOX.replace("{name}", "{nam}"), "list.per.arguments: {nam} is not a key or trait of"),
        ('page_size: 10}\n', PER_BOX + '}\n    handles: {box: "{parent_nam}"}\n',
         "aws_thing: list.per: {parent_nam} is used, which aws_box has not"),
    ],
)  # fmt: skip
def test_what_an_entry_says_of_others_is_looked_up_in_all_files(old: str, new: str, where: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        read_catalog({"x.yaml": GOOD.replace(old, new, 1), "x_more.yaml": BOXES}, PROVIDERS)
    assert caught.value.what.startswith("x.yaml: ")
    assert where in caught.value.what


def test_what_owns_data_holds_data() -> None:
    types = load_catalog().types
    request = types["aws_spot_instance_request"]
    assert request.stateful
    with pytest.raises(ConfigError, match="aws_instance is stateful and goes along"):
        check_entry("x.yaml", replace(request, stateful=False), types)


@pytest.mark.parametrize(("left", "why"), [("aws_nothing", "aws_nothing"), ("aws_sqs_queue", "no rule in ignore_tags")])
def test_what_a_container_leaves_must_be_told_by_a_tag(left: str, why: str) -> None:
    whole = load_catalog().types
    cluster = whole["aws_eks_cluster"]
    assert (cluster.container, "aws_lb" in cluster.leaves) == (True, True)
    queue = replace(whole["aws_sqs_queue"], ignore_tags={})
    with pytest.raises(ConfigError, match=f"leaves: .*{why}"):
        check_entry("f.yaml", replace(cluster, leaves=(left,)), {**whole, "aws_sqs_queue": queue})


def test_a_type_that_is_in_two_files_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"x_more\.yaml: aws_bag: is in another file too"):
        read_catalog({"x.yaml": BOXES, "x_more.yaml": BOXES}, PROVIDERS)


ASSETS = """
cloud: google
types:
  google_thing:
    service: thing
    scope: global
    asset:
      type: thing.googleapis.com/Thing
      names: ["//thing.googleapis.com/projects/{project}/zones/{place}/things/{name}",
              "//thing.googleapis.com/projects/{project}/locations/{place}/things/{name}"]
      others: ["//thing.googleapis.com/folders/{folder}/things/{name}"]
    unverified: [asset, created]
    undeletable: it stays for ever
    keys: {id: "projects/{project}/things/{name}"}
    traits: {project: at.project, name: at.name}
    id: "{id}"
    import_id: "{id}"
    created: createTime
    get:
      url: "https://thing.googleapis.com/v1/{id}"
      created: createTime
      tags: labels
      gone: deleted
      ignore: [{when: auto, reason: made by itself}]
"""


def test_type_of_an_inventory_is_listed_by_its_search() -> None:
    entry = read_types("x.yaml", ASSETS).types["google_thing"]
    assert entry.list == ListCall("search_all_resources", "results[]", {"asset_types": ["thing.googleapis.com/Thing"]})
    assert entry.get == GetCall(
        "https://thing.googleapis.com/v1/{id}",
        "createTime",
        "labels",
        "deleted",
        (IgnoreRule("auto", "made by itself"),),
    )
    assert (entry.unverified, entry.never_destroyed) == (("asset", "created"), "it stays for ever")
    assert "what the inventory calls it and the creation time" in str(replace(entry, undeletable=None).never_destroyed)
    assert replace(entry, undeletable=None, unverified=()).never_destroyed is None


def test_full_name_tells_its_parts_by_the_form_that_it_has() -> None:
    asset = read_types("x.yaml", ASSETS).types["google_thing"].asset
    assert asset is not None
    for place in ("zones", "locations"):
        told = asset.parts(f"//thing.googleapis.com/projects/example.com:app/{place}/b/things/a.b")
        assert told == {"project": "example.com:app", "place": "b", "name": "a.b"}
    for name in (
        "//thing.googleapis.com/projects/app/zones/b/things/",
        "//thing.googleapis.com/projects/app/zones/b/things/a/parts/c",
        "//thingXgoogleapis.com/projects/app/zones/b/things/a",
        "//thing.googleapis.com/folders/1/things/a",
    ):
        assert asset.parts(name) is None
        assert asset.is_other(name) == name.endswith("folders/1/things/a")


def test_a_name_that_a_form_has_twice_is_one() -> None:
    asset = Asset("T", ("//a/{x}/b/{x}",))
    assert asset.parts("//a/1/b/1") == {"x": "1"}
    assert asset.parts("//a/1/b/2") is None


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("    unverified", "    list: {operation: things, result: x}\n    unverified", "asset: stands in the place of"),
        ("      others:", "      name: //x\n      others:", "asset.name: either `name` or `names` must be there"),
        ("//thing.googleapis.com/folders", "thing.googleapis.com/folders", "asset.others: 'thing.googleapis.com/fold"),
        ("{place}", "{a place}", "asset.name: '//thing.googleapis.com/projects/{project}/zones/{a place}"),
        ("https://thing.googleapis.com", "http://thing.googleapis.com", "get.url: is no https address"),
        ("https://thing.googleapis.com", "https://thing.example.com", "get.url: is no https address"),
        ("https://thing.googleapis.com/v1/{id}", "https://thing.googleapis.com/v1/{zone}", "get.url: {zone} is not a"),
        ("[asset, created]", "[asset, name]", "unverified: 'name' is none of asset, created"),
        ("      created: createTime\n", "", "unverified: 'created' is none of"),
    ],
)
def test_what_is_said_of_an_inventory_is_checked(old: str, new: str, where: str) -> None:
    text = (
        ASSETS
        if where != "unverified: 'created' is none of"
        else ASSETS.replace("    created: createTime\n    get", "    get")
    )
    assert old in text
    with pytest.raises(ConfigError) as caught:
        read_types("x.yaml", text.replace(old, new, 1))
    assert f"google_thing: {where}" in caught.value.what


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


def test_catalogue_is_read_once() -> None:
    first = load_catalog()
    assert len(first) > 200
    assert load_catalog() is first


def test_a_cloud_is_read_when_something_of_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noting(file: str, text: str, shared: dict[str, TagRule] | None = None) -> Catalog:
        read.append(file)
        return read_types(file, text, shared)

    monkeypatch.setattr(loader, "read_types", noting)
    load_catalog.cache_clear()
    catalog = load_catalog()
    assert (catalog.get("terraform_data"), catalog.canonical("random_id"), catalog.state_only("a/b/c")) == (
        None, "random_id", False)  # fmt: skip
    assert read == []
    assert catalog.get("aws_vpc") is not None
    assert catalog.canonical("aws_default_vpc") == "aws_vpc"
    assert {file.partition("_")[0].removesuffix(".yaml") for file in read} == {"aws"}
    assert len(read) == len(set(read))
    assert {entry.cloud for entry in catalog} == {"aws", "google"}
    load_catalog.cache_clear()


def test_every_name_of_a_type_begins_with_its_cloud() -> None:
    """By which its files are found."""
    catalog = load_catalog()
    assert [entry.type for entry in catalog if not entry.type.startswith(f"{entry.cloud}_")] == []
    assert [name for name, of in catalog.also_called.items() if name.partition("_")[0] != of.partition("_")[0]] == []
    assert catalog.endpoint_names("logs") == ("logs", *catalog.endpoint_aliases.get("logs", ()))
    assert len(catalog.types) == len({**catalog.types}) == len(catalog)


def test_the_key_that_is_an_arn_is_named_or_called_arn() -> None:
    assert read_types("x.yaml", GOOD).types["aws_thing"].arn_key == "arn"
    other = GOOD.replace('arn: "arn:{', 'thing_arn: "arn:{').replace(
        "    unique:", "    arn_key: thing_arn\n    unique:"
    )
    assert read_types("x.yaml", other).types["aws_thing"].arn_key == "thing_arn"
    without = other.replace("    arn_key: thing_arn", "    placed_by: [role_arn]")
    entry = read_types("x.yaml", without).types["aws_thing"]
    assert (entry.arn_key, entry.placed_by) == (None, ("role_arn",))
    with pytest.raises(ConfigError, match="arn_key: 'path' is not one of the keys"):
        read_types("x.yaml", other.replace("arn_key: thing_arn", "arn_key: path"))


def test_every_type_has_an_arn_among_its_keys_or_none_that_a_state_could_have() -> None:
    """A type whose key is an ARN, and does not say so, would not tell equal names in two places apart."""
    silent = [
        entry.type
        for entry in load_catalog()
        for key, value in entry.keys.items()
        if entry.arn_key is None and (key.endswith("arn") or value.startswith("arn:") or value.lower().endswith("arn"))
    ]
    assert silent == ["aws_iam_role_policy_attachment", "aws_iam_user_policy_attachment",
                      "aws_iam_group_policy_attachment"]  # fmt: skip
