"""What a blueprint tells of the objects in a stack's state."""

from __future__ import annotations

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.cli.blueprint_stacks import managed_object
from tfguard.model.state import StateInstance


@pytest.mark.parametrize(
    ("kind", "identity", "own_id"),
    [
        ("aws_db_instance", {"identifier": "audit", "resource_id": "db-1", "arn": "arn:x"}, "db-1"),
        ("aws_iam_role", {"name": "audit", "arn": "arn:x"}, "audit"),
        ("other_thing", {"id": "7", "name": "audit"}, "7"),
        ("other_thing", {}, None),
    ],
)
def test_an_object_has_the_same_id_in_the_state_as_where_it_was_found(
    kind: str, identity: dict[str, str], own_id: str | None
) -> None:
    instance = StateInstance(f"{kind}.one", kind, "p", identity=identity)
    assert managed_object(instance, None, load_catalog()).observed_id == own_id
