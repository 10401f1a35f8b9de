"""Objects that a state has as attributes of others: found by the catalogue's paths, without what is marked."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.loader import load_catalog
from tfguard.engine.owned import mask_of_paths, owned_by
from tfguard.engine.state import parse_any_state, parse_state
from tfguard.model.state import OwnedObject

OWNS = {
    "aws_ebs_volume": {"id": ("root_block_device[].volume_id", "ebs_block_device[].volume_id")},
    "aws_iam_role_policy": {"id": ("{id}:{inline[].name}",)},
}
REAL = load_catalog()
INSTANCE = REAL.types["aws_instance"]
CATALOG = replace(REAL, types={**REAL.types, "aws_instance": replace(INSTANCE, owns=OWNS)})
VALUES = {
    "id": "i-1",
    "root_block_device": [{"volume_id": "vol-1", "tags": {"Name": "secret"}}],
    "ebs_block_device": [{"volume_id": "vol-2"}, {"volume_id": ""}, {"volume_id": None}, "odd", {"volume_id": "vol-1"}],
}


def volume(value: str) -> OwnedObject:
    return OwnedObject("aws_ebs_volume", "id", value)


def state(attributes: object, sensitive: list[object], catalog: Catalog = CATALOG) -> tuple[OwnedObject, ...]:
    instance = {"attributes": attributes, "sensitive_attributes": sensitive}
    resource = {"mode": "managed", "type": "aws_instance", "name": "a", "provider": "", "instances": [instance]}
    return parse_state(json.dumps({"version": 4, "resources": [resource]}).encode(), "x", catalog).instances[0].owned


def step(name: str) -> dict[str, object]:
    return {"type": "get_attr", "value": name}


def index(value: object, kind: str = "number") -> dict[str, object]:
    return {"type": "index", "value": {"value": value, "type": kind}}


def test_each_value_at_a_path_is_an_object_once() -> None:
    assert state(VALUES, []) == (volume("vol-1"), volume("vol-2"))


def test_a_template_gives_a_text_for_each_combination() -> None:
    found = state({"id": "app", "inline": [{"name": "a"}, {"name": "b"}]}, [])
    assert [one.value for one in found] == ["app:a", "app:b"]
    assert state({"id": "app", "inline": []}, []) == ()


def test_a_template_joins_what_stands_in_one_element() -> None:
    values = {"id": "app", "rule": [{"way": "in", "to": ["a", "b"]}, {"way": "out", "to": ["c"]}, {"way": "none"}]}
    owns = {"aws_ebs_volume": {"held": ("{id} {rule[].way} {rule[].to[]}",)}}
    catalog = replace(REAL, types={**REAL.types, "aws_instance": replace(INSTANCE, owns=owns)})
    found = owned_by(catalog, "aws_instance", values, {}, frozenset())
    assert [one.value for one in found] == ["app in a", "app in b", "app out c"]
    mask = {"rule": [{"to": [False, True]}]}
    assert owned_by(catalog, "aws_instance", values, mask, frozenset()) == ()  # a part of it would say that others lack


@pytest.mark.parametrize(
    ("sensitive", "left"),
    [
        ([[step("root_block_device"), index(0), step("tags")]], ("vol-1", "vol-2")),
        ([[step("root_block_device"), index(0), step("volume_id")], [step("ebs_block_device"), index(4)]], ("vol-2",)),
        ([[step("root_block_device")], [step("ebs_block_device"), index(4)]], ("vol-2",)),
        ([[step("ebs_block_device"), index({"volume_id": "vol-2"}, "object")]], ("vol-1",)),
        ([[]], ()),
    ],
)
def test_what_is_marked_is_left_out_and_nothing_beside_it(sensitive: list[object], left: tuple[str, ...]) -> None:
    values = VALUES if left else {**VALUES, "id": ""}
    assert state(values, sensitive) == tuple(volume(value) for value in left)


def test_a_copy_of_a_marked_value_is_left_out() -> None:
    sensitive: list[object] = [[step("password")]]
    assert state({**VALUES, "password": "vol-1"}, sensitive) == (volume("vol-2"),)


def test_the_masks_of_show_json_hide_as_much() -> None:
    mask = {"root_block_device": [{"volume_id": True}], "ebs_block_device": [{"tags": {}}, {"volume_id": False}]}
    assert owned_by(CATALOG, "aws_instance", VALUES, mask, frozenset()) == (volume("vol-2"), volume("vol-1"))
    assert owned_by(CATALOG, "aws_instance", VALUES, True, frozenset()) == ()


def test_a_flat_state_owns_the_same() -> None:
    flat = {"root_block_device.#": "1", "root_block_device.0.volume_id": "vol-1"}
    held = {"type": "aws_instance", "primary": {"id": "i-1", "attributes": flat}, "provider": "provider.aws"}
    document = {"version": 3, "modules": [{"path": ["root"], "resources": {"aws_instance.a": held}}]}
    assert parse_any_state(json.dumps(document).encode(), "x", CATALOG).instances[0].owned == (volume("vol-1"),)


def test_another_name_of_the_type_owns_as_its_own_type_does() -> None:
    called = replace(CATALOG, also_called={"aws_odd_instance": "aws_instance"})
    assert owned_by(called, "aws_odd_instance", VALUES, {}, frozenset()) == (volume("vol-1"), volume("vol-2"))
    assert owned_by(called, "aws_unknown", VALUES, {}, frozenset()) == ()


def test_paths_of_marks_become_a_mask() -> None:
    assert mask_of_paths([[step("a"), index(1), step("b")], [step("a"), index(1)]]) == {"a": {1: True}}
    assert mask_of_paths([[step("a")], [step("a"), index(1)]]) == {"a": True}
    assert mask_of_paths([]) == {}
