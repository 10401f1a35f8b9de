"""Which deposed object is being destroyed: from the plan, and from a local state while the apply runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfguard.engine.deposed import DeposedKeys
from tfguard.model.plan import Action, Plan, PlannedChange

ADDRESS = 'module.m["k"].aws_log.l[0]'


def change(action: Action, deposed: str | None = None, create_first: bool = False, id_: str = "") -> PlannedChange:
    """A change of the one address; `id_` is what identifies its object before."""
    before = {"name": id_} if id_ else {}
    return PlannedChange(
        address=ADDRESS,
        type="aws_log",
        provider="p",
        action=action,
        deposed=deposed,
        create_first=create_first,
        before=before,
    )


def plan(*changes: PlannedChange) -> Plan:
    """A plan with these changes."""
    return Plan("1.11.4", changes)


def state(path: Path, *instances: tuple[str | None, str]) -> Path:
    """A state file whose one resource has (deposed key, id) objects at the address."""
    found = [{"index_key": 0, "attributes": {"id": id_}, **({"deposed": key} if key else {})} for key, id_ in instances]
    resource = {"module": 'module.m["k"]', "mode": "managed", "type": "aws_log", "name": "l", "instances": found}
    path.write_text(json.dumps({"version": 4, "resources": [resource]}))
    return path


def test_a_planned_destruction_of_a_deposed_object_has_its_key_in_the_plan() -> None:
    keys = DeposedKeys(plan(change(Action.DELETE, "1a2b3c4d"), change(Action.NOOP)), None)
    assert keys(ADDRESS, "old") == "1a2b3c4d"
    assert keys("aws_log.other", "old") is None


def test_a_current_object_has_no_key() -> None:
    assert DeposedKeys(plan(change(Action.DELETE)), None)(ADDRESS, "x") is None
    assert DeposedKeys(plan(change(Action.REPLACE)), None)(ADDRESS, "x") is None


def test_of_several_destructions_at_one_address_the_id_tells() -> None:
    keys = DeposedKeys(plan(change(Action.DELETE, "1a2b3c4d", id_="old"), change(Action.DELETE, id_="now")), None)
    assert (keys(ADDRESS, "old"), keys(ADDRESS, "now"), keys(ADDRESS, "who")) == ("1a2b3c4d", None, None)


def test_a_replacement_that_creates_first_has_its_key_in_the_local_state_by_then(tmp_path: Path) -> None:
    path = state(tmp_path / "s", (None, "new"), ("99999999", "older"), ("1a2b3c4d", "old"))
    keys = DeposedKeys(plan(change(Action.REPLACE, create_first=True)), path)
    assert (keys(ADDRESS, "old"), keys(ADDRESS, "new")) == ("1a2b3c4d", None)


def test_a_key_that_only_another_state_has_is_not_known() -> None:
    assert DeposedKeys(plan(change(Action.REPLACE, create_first=True)), None)(ADDRESS, "old") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"resources": 3}', None])
def test_a_state_that_is_being_written_gives_no_key(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "s"
    if content is not None:
        path.write_bytes(content)
    assert DeposedKeys(plan(change(Action.REPLACE, create_first=True)), path)(ADDRESS, "old") is None
