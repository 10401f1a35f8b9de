"""Allow-listed identity attributes alone leave a plan or a state, none that a mask covers or that copies a secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tfguard.catalog.loader import load_catalog
from tfguard.engine.documents import masked, masked_values
from tfguard.engine.identities import identity_of
from tfguard.model.secrets import is_secret

CATALOG = load_catalog()
NOTHING: frozenset[str] = frozenset()
SECRET = "hunter2"
VPC = {"id": "vpc-1", "cidr_block": "10.0.0.0/16", "tags": {"Name": "main", "Owner": "me"}, "instance_tenancy": "x"}


def identity(values: object, mask: object = None, secrets: frozenset[str] = NOTHING) -> Mapping[str, str]:
    """The identity of a VPC."""
    return identity_of(CATALOG, "aws_vpc", values, mask, secrets)


def test_identity_attributes_alone_are_kept() -> None:
    assert identity(VPC) == {"id": "vpc-1", "cidr_block": "10.0.0.0/16", "tags.Name": "main"}
    assert identity_of(CATALOG, "aws_nothing", {"id": "f", "name": "f"}, None, NOTHING) == {}


def test_a_type_with_another_name_has_the_identity_of_the_one_that_is_listed() -> None:
    assert identity_of(CATALOG, "aws_default_vpc", VPC, None, NOTHING) == identity(VPC)


@pytest.mark.parametrize(
    ("mask", "hidden"),
    [
        (True, {"id", "cidr_block", "tags.Name"}),
        ({"id": True}, {"id"}),
        ({"tags": True}, {"tags.Name"}),
        ({"tags": {"Name": True}}, {"tags.Name"}),
        ({"tags": {"Owner": True}}, set()),
        ({"id": False, "tags": {"Name": False}}, set()),
        (False, set()),
        ({}, set()),
        (None, set()),
        ({"tags": []}, set()),
    ],
)
def test_a_mask_hides_what_lies_at_it_and_below(mask: object, hidden: set[str]) -> None:
    assert set(identity(VPC)) - set(identity(VPC, mask)) == hidden


@pytest.mark.parametrize(
    ("value", "secrets", "kept"),
    [
        (SECRET, [SECRET], False),
        (f"app-{SECRET}-x", [SECRET], False),
        ("app", [SECRET], True),
        ("hunt", [SECRET], True),
        ("eu", ["eu"], False),
        ("eu-app", ["eu"], True),  # a marked value this short says nothing inside another
        ("true-app", ["true"], True),  # a boolean that is marked is nobody's secret
        ("true", ["true"], True),
        ("", [""], False),
        ("app", [""], True),
    ],
)
def test_a_value_that_is_or_carries_a_marked_value_is_dropped(value: str, secrets: list[str], kept: bool) -> None:
    assert ("id" in identity({"id": value}, None, frozenset(secrets))) is kept


@pytest.mark.parametrize(
    "values",
    [None, 3, "text", [], {"id": None}, {"id": []}, {"id": {"a": "b"}}, {"tags": "main"}, {"tags": {"Name": {}}}],
)
def test_a_value_of_another_shape_is_none(values: object) -> None:
    assert identity(values) == {}


def test_numbers_and_booleans_are_written_as_the_engine_writes_them() -> None:
    assert identity({"id": 7, "cidr_block": True}) == {"id": "7", "cidr_block": "true"}


TEXTS = st.text(st.sampled_from("abcd"), min_size=1, max_size=6)
KEYS = st.sampled_from(["id", "arn", "cidr_block", "tags", "Name"])
VALUES = st.recursive(
    TEXTS | st.integers(0, 9) | st.none(), lambda inner: st.dictionaries(KEYS, inner) | st.lists(inner)
)
MASKS = st.recursive(
    st.booleans(), lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2), max_leaves=6
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
few = settings(max_examples=30)


@few
@given(DOCUMENTS, MASKS, st.frozensets(TEXTS, max_size=3))
def test_whatever_is_marked_stays_out_of_the_identity(
    values: dict[str, object], mask: object, others: frozenset[str]
) -> None:
    secrets = others | frozenset(masked_values(values, mask))
    for path, value in identity(values, mask, secrets).items():
        assert not masked(mask, path)
        assert value not in secrets
        assert not any(secret in value for secret in secrets if len(secret) >= 4)


def nest(depth: int, leaf: object, make: Callable[[object], object]) -> object:
    """`leaf` under `depth` layers."""
    for _ in range(depth):
        leaf = make(leaf)
    return leaf


@pytest.mark.parametrize("depth", [0, 1, 2, 9])
@pytest.mark.parametrize("make", [lambda inner: {"k": inner}, lambda inner: [inner]], ids=["map", "list"])
def test_marked_values_are_found_at_any_depth(depth: int, make: Callable[[object], object]) -> None:
    value = nest(depth, {"a": SECRET, "b": [1, True, None]}, make)
    assert set(masked_values(value, nest(depth, True, make))) == {SECRET, "1", "true"}
    assert set(masked_values(value, nest(depth, {"a": True}, make))) == {SECRET}
    assert set(masked_values(value, nest(depth, {"a": False}, make))) == set()
    assert set(masked_values(value, True)) == {SECRET, "1", "true"}


@few
@given(VALUES, MASKS)
def test_a_mask_of_another_shape_than_the_value_breaks_nothing(values: object, mask: object) -> None:
    assert all(isinstance(found, str) for found in masked_values(values, mask))


@given(st.text(max_size=8), st.text(min_size=4, max_size=8), st.text(max_size=8))
def test_a_secret_is_found_wherever_it_stands(before: str, secret: str, after: str) -> None:
    assume(secret not in ("null", "true", "false"))  # which tell nothing, marked or not
    assert is_secret(before + secret + after, [secret])
