"""A plan, reduced to what may be kept."""

from __future__ import annotations

import json

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.engine.plan import parse_plan
from tfguard.errors import InputError
from tfguard.model.plan import Action, Plan

CATALOG = load_catalog()


def change(actions: list[str], address: str = "aws_iam_role.app", **more: object) -> dict[str, object]:
    """One resource change of a plan."""
    inner: dict[str, object] = {"actions": actions, "before": None, "after": {"name": "app"}, "after_sensitive": {}}
    known = {key: more.pop(key) for key in list(more) if key not in ("mode", "deposed", "previous_address")}
    provider = "registry.terraform.io/hashicorp/aws"
    base = {"address": address, "mode": "managed", "type": "aws_iam_role", "provider_name": provider}
    return {**base, **more, "change": {**inner, **known}}


def plan(*changes: object, **more: object) -> Plan:
    return parse_plan(json.dumps({"terraform_version": "1.11.4", "resource_changes": changes, **more}), "p", CATALOG)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (["create"], Action.CREATE),
        (["update"], Action.UPDATE),
        (["delete"], Action.DELETE),
        (["delete", "create"], Action.REPLACE),
        (["create", "delete"], Action.REPLACE),
        (["forget"], Action.FORGET),
        (["no-op"], Action.NOOP),
        (["teleport"], Action.UPDATE),
    ],
)
def test_actions_are_read_and_one_that_is_not_known_is_a_change(actions: list[str], expected: Action) -> None:
    assert plan(change(actions)).changes[0].action is expected


def test_identities_are_kept_and_nothing_that_is_marked_sensitive() -> None:
    after = {"name": "app", "path": "/x/", "description": "hunter2"}
    (kept,) = plan(change(["create"], after=after)).changes
    assert kept.desired["name"] == "app"
    assert "description" not in kept.desired
    for mask in (True, {"name": True}):
        assert "name" not in plan(change(["create"], after=after, after_sensitive=mask)).changes[0].desired


def test_a_copy_of_a_sensitive_value_is_left_out_wherever_it_stands() -> None:
    secret = change(["create"], "aws_iam_role.one", after={"name": "hunter2"}, after_sensitive={"name": True})
    copy = change(["create"], "aws_iam_role.two", after={"name": "hunter2"})
    found = plan(secret, copy)
    assert [dict(kept.desired) for kept in found.changes] == [{}, {}]
    assert "hunter2" in found.secrets
    assert "hunter2" not in repr(found)


def test_data_sources_are_no_steps_and_pure_imports_are() -> None:
    found = plan(change(["read"], mode="data"), change(["no-op"], importing={"id": "app"}), change(["no-op"], "x.y"))
    assert [kept.importing for kept in found.changing] == ["app"]


@pytest.mark.parametrize(
    ("more", "asks_nothing"),
    [
        ({"applyable": True}, False),
        ({"applyable": False}, True),
        ({}, True),
        ({"resource_drift": [{"address": "x.y"}]}, True),
        ({"output_changes": {"o": {"actions": ["create"]}}}, False),
        ({"output_changes": {"o": {"actions": ["no-op"]}}}, True),
    ],
)
def test_a_plan_asks_nothing_when_the_engine_says_so_or_when_it_changes_nothing(
    more: dict[str, object], asks_nothing: bool
) -> None:
    assert plan(**more).asks_nothing(refresh_only=False) is asks_nothing
    assert not plan(change(["create"])).asks_nothing(refresh_only=False)


def test_without_the_engines_word_reads_moves_and_drift_are_told_as_the_engine_counts_them() -> None:
    assert not plan(change(["read"], "data.x.y", mode="data")).asks_nothing(refresh_only=False)
    assert not plan(change(["no-op"], previous_address="aws_iam_role.old")).asks_nothing(refresh_only=False)
    assert not plan(resource_drift=[{"address": "x.y"}]).asks_nothing(refresh_only=True)


@pytest.mark.parametrize("output", ["", "{", "[]", '{"values": {}}'])
def test_what_is_no_plan_is_refused(output: str) -> None:
    with pytest.raises(InputError, match="p is not a plan"):
        parse_plan(output, "p", CATALOG)


def test_a_resource_in_a_module_finds_its_provider_configuration() -> None:
    module = {"resources": [{"address": "aws_iam_role.app", "provider_config_key": "module.m:aws.eu"}]}
    configuration = {"root_module": {"module_calls": {"m": {"module": module}}}}
    address = 'module.m["a.b"].aws_iam_role.app["c.d"]'
    (kept,) = plan(change(["create"], address), configuration=configuration).changes
    assert kept.provider_key == "module.m:aws.eu"


@pytest.mark.parametrize(
    "document",
    [
        {"resource_drift": [{"change": {"before": {"a": ["hunter2"]}, "before_sensitive": {"a": [True]}}}]},
        {"prior_state": {"values": {"root_module": {"resources": [{"values": 1, "sensitive_values": {}}]}}}},
        {"prior_state": {"values": {"outputs": {"o": {"sensitive": True, "value": {"a": "hunter2"}}}}}},
        {"planned_values": {"outputs": {"o": {"sensitive": True, "value": "hunter2"}}}},
        {"output_changes": {"o": {"after": "hunter2", "after_sensitive": True}}},
        {"some_new_part": [{"deep": {"values": {"a": "hunter2"}, "sensitive_values": {"a": True}}}]},
        {"configuration": {"root_module": {"variables": {"v": {"sensitive": True, "default": "hunter2"}}}}},
    ],
)
def test_what_any_part_of_the_document_marks_is_a_secret(document: dict[str, object]) -> None:
    assert ("hunter2" in plan(**document).secrets) is ("hunter2" in json.dumps(document))


def test_a_constant_that_a_module_takes_as_a_sensitive_variable_is_a_secret() -> None:
    inner = {"variables": {"password": {"sensitive": True}, "open": {}}}
    given = {"password": {"constant_value": "hunter2"}, "open": {"constant_value": "no secret"}}
    deep = {"module_calls": {"db": {"expressions": given, "module": inner}}}
    found = plan(configuration={"root_module": {"module_calls": {"outer": {"module": deep}}}})
    assert found.secrets == {"hunter2"}


def test_a_longer_key_of_a_marked_map_is_a_secret_and_a_word_of_a_schema_is_none() -> None:
    value = {"a-token-of-somebody": "hunter2", "user": "app"}
    found = plan(change(["create"], after={"x": value}, after_sensitive={"x": True}))
    assert found.secrets == {"a-token-of-somebody", "hunter2", "app"}


def test_an_object_whose_name_is_marked_and_not_known_yet_is_silent() -> None:
    unknown = {"after": {}, "after_unknown": {"name": True}, "after_sensitive": {"name": True}}
    (kept,) = plan(change(["create"], **unknown)).changes
    assert (kept.silent, kept.withheld) == (True, ("name",))
    (kept,) = plan(change(["create"], after={}, after_unknown={"name": True})).changes
    assert (kept.silent, kept.withheld) == (False, ())


def test_what_differs_is_told_by_name_and_nothing_is_no_difference() -> None:
    before = {"name": "app", "tags": {"a": "1"}, "force": None, "block": [{"x": None}], "secret": "old", "arn": "arn:1"}
    after = {"name": "new", "tags": {"a": "2"}, "force": False, "block": [{"x": 0}], "secret": "hunter2"}
    found = plan(
        change(
            ["delete", "create"],
            before=before,
            after=after,
            after_sensitive={"secret": True},
            after_unknown={"arn": True, "tags": {}},
            replace_paths=[["name"], ["block", 0, "x"], ["name"]],
        )
    )
    assert found.changes[0].differs == ("name", "secret", "tags")
    assert found.changes[0].forced_by == ("name", "block.x")
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    ("effective", "expected"),
    [
        ({"team": "a"}, ()),
        ({"team": "b"}, ("effective_labels", "labels", "terraform_labels")),
        (None, ("labels", "terraform_labels")),
    ],
    ids=["the same", "others", "not known"],
)
def test_whose_the_labels_of_an_imported_object_are_is_no_difference(
    effective: dict[str, str] | None, expected: tuple[str, ...]
) -> None:
    before = {"labels": {}, "terraform_labels": {}, "effective_labels": {"team": "a"}}
    after = {"labels": {"team": "a"}, "terraform_labels": {"team": "a"}, "effective_labels": effective}
    unknown = {"effective_labels": True} if effective is None else {}
    (found,) = plan(change(["update"], before=before, after=after, after_unknown=unknown)).changes
    assert found.differs == expected


@pytest.mark.parametrize(("given", "expected"), [(["policy"], ("policy",)), ([], ())])
def test_an_argument_that_is_not_known_yet_may_differ(given: list[str], expected: tuple[str, ...]) -> None:
    resource = {"address": "aws_iam_role.app", "expressions": {name: {"references": ["x"]} for name in given}}
    found = plan(
        change(["update"], before={"policy": "a"}, after={}, after_unknown={"policy": True}),
        configuration={"root_module": {"resources": [resource]}},
    )
    # An `after` that is empty stands for an object that goes away.
    assert found.changes[0].differs == ()
    found = plan(
        change(["update"], before={"policy": "a"}, after={"name": None}, after_unknown={"policy": True}),
        configuration={"root_module": {"resources": [resource]}},
    )
    assert found.changes[0].differs == expected
