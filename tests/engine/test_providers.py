"""Provider configurations, as far as a plan tells them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tfguard.engine.providers import literal_settings, provider_configs, sensitive_variables, unkept_variables

LITERAL = {("region", "region"), ("region", "a"), ("region", "b")}


def configured(expressions: dict[str, Any], variables: dict[str, Any] | None = None, **block: object) -> Any:
    """The configuration `aws` of a plan with these expressions."""
    document = {
        "variables": {name: {"value": value} for name, value in (variables or {}).items()},
        "configuration": {"provider_config": {"aws": {"full_name": "aws", "expressions": expressions, **block}}},
    }
    return provider_configs(document, LITERAL)["aws"]


def constant(value: object) -> dict[str, object]:
    return {"constant_value": value}


def test_constants_are_read_and_nested_blocks_get_dotted_names() -> None:
    found = configured(
        {
            "region": constant("eu-west-1"),
            "skip_credentials_validation": constant(True),
            "assume_role": [{"role_arn": constant("arn")}],
            "default_tags": [{"tags": constant({"a.b": "c"})}],
            "allowed_account_ids": constant(["1", "2"]),
        }
    )
    assert found.settings == {
        "region": "eu-west-1",
        "skip_credentials_validation": "true",
        "assume_role.role_arn": "arn",
        "default_tags.tags.a.b": "c",
        "allowed_account_ids.0": "1",
        "allowed_account_ids.1": "2",
    }
    assert not found.unresolved


def test_one_variable_alone_is_taken_for_the_setting() -> None:
    found = configured({"region": {"references": ["var.region"]}}, {"region": "eu-west-1"})
    assert (dict(found.settings), found.unresolved) == ({"region": "eu-west-1"}, frozenset())


@pytest.mark.parametrize(
    ("line", "is_literal"),
    [
        ("region = var.region", True),
        ("  region=var.region # the main one", True),
        ('provider "aws" {\n  region = var.region\n}', True),
        ("assume_role { region = var.region }", True),
        ('region = replace(var.region, "east", "west")', False),
        ('region = var.region == "x" ? "a" : "b"', False),
        ('region = "${var.region}-1"', False),
        ("region = var.region.name", False),
        ("region = var.region\n region = upper(var.region)", False),
        ("profile = var.region", False),
        ("", False),
    ],
)
def test_a_variable_is_the_setting_only_where_the_configuration_says_so_and_nothing_else(
    tmp_path: Path, line: str, is_literal: bool
) -> None:
    (tmp_path / "main.tf").write_text(line + "\n")
    assert (("region", "region") in literal_settings(tmp_path)) is is_literal


def test_what_cannot_be_the_whole_setting_is_unresolved_and_never_guessed() -> None:
    for references, variables in (
        (["var.other"], {"other": "eu-west-1"}),
        (["var.region"], {}),
        (["var.a", "var.b"], {"a": "eu-west-1", "b": "x"}),
        (["local.region"], {"region": "eu-west-1"}),
    ):
        found = configured({"region": {"references": references}}, variables)
        assert (dict(found.settings), found.unresolved) == ({}, frozenset({"region"}))


def test_declared_variables_without_a_value_in_the_plan_are_those_that_no_plan_keeps() -> None:
    document = {
        "variables": {"kept": {"value": 1}},
        "configuration": {"root_module": {"variables": {"kept": {}, "token": {}}}},
    }
    assert unkept_variables(document) == {"token"}


def test_a_modules_variables_are_not_the_root_modules() -> None:
    expressions = {"region": {"references": ["var.region"]}}
    found = configured(expressions, {"region": "eu-west-1"}, module_address="module.m")
    assert found.unresolved == frozenset({"region"})


def test_settings_are_not_shown() -> None:
    assert "hunter2" not in repr(configured({"secret_key": constant("hunter2")}))


def test_the_values_of_sensitive_variables_are_known_at_every_depth() -> None:
    document = {
        "variables": {"a": {"value": {"x": ["one", {"y": 2}]}}, "b": {"value": "open"}},
        "configuration": {"root_module": {"variables": {"a": {"sensitive": True}, "b": {}}}},
    }
    assert sensitive_variables(document) == {"one", "2"}
