"""A probe's references get their values, and a value that no probe can have is told without quoting it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tfguard.errors import InputError
from tfguard.flows.blueprints.context import Values
from tfguard.model.blueprint import BlueprintInput, Probe


def values(**inputs: Any) -> Values:
    """The values of a request with these inputs."""
    kinds = {name: BlueprintInput() for name in inputs}
    return Values(SimpleNamespace(blueprint=SimpleNamespace(inputs=kinds)), inputs)  # type: ignore[arg-type]


def test_headers_get_their_values_as_text() -> None:
    probe = Probe(http="https://${inputs.host}/", headers={"x-size": "${inputs.size}"})
    resolved = values(host="app.example", size=3).probe(probe, "health")
    assert (resolved.http, resolved.headers) == ("https://app.example/", {"x-size": "3"})


def test_a_value_that_no_probe_can_have_is_an_error_of_the_input() -> None:
    with pytest.raises(InputError) as told:
        values(url="https//canary").probe(Probe(http="${inputs.url}"), "health")
    assert told.value.what == "health: http is not an http:// or https:// URL"
