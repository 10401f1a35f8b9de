"""References in the texts of a blueprint."""

from __future__ import annotations

import pytest

from tfguard.model.reference import Reference, references_in, resolve

VALUES = {
    "inputs.name": "web",
    "inputs.many": 3,
    "steps.db.outputs.url": "postgres://db",
    "steps.db.outputs.hosts": ["a", "b"],
    "inputs.flag": True,
    "inputs.nothing": None,
}


def value_of(reference: Reference) -> object:
    return VALUES[str(reference)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${inputs.many}", 3),
        ("${ inputs.name }", "web"),
        ("n-${inputs.name}-${inputs.many}", "n-web-3"),
        ("${steps.db.outputs.hosts}", ["a", "b"]),
        ("$${inputs.name}", "${inputs.name}"),
        ("x$${", "x${"),
        ("${inputs.flag}!", "true!"),
        ("<${inputs.nothing}>", "<>"),
        ("100% $ {x}", "100% $ {x}"),
        ({"a": ["${inputs.name}", 4]}, {"a": ["web", 4]}),
    ],
    ids=str,
)
def test_what_a_text_becomes(text: object, expected: object) -> None:
    assert resolve(text, value_of) == expected


@pytest.mark.parametrize(
    "text",
    ["${", "${inputs}", "${input.name}", "${steps.db}", "${steps.db.output.url}", "${env.HOME}", "${}", "a ${inputs.x"],
)
def test_an_unknown_form_is_refused_and_never_taken_as_it_stands(text: str) -> None:
    with pytest.raises(ValueError, match="no reference"):
        list(references_in(text))
    with pytest.raises(ValueError, match="no reference"):
        resolve(text, value_of)


def test_a_list_has_no_place_inside_a_text() -> None:
    with pytest.raises(ValueError, match=r"steps\.db\.outputs\.hosts.*list"):
        resolve("hosts: ${steps.db.outputs.hosts}", value_of)


def test_what_is_named_is_found_wherever_it_stands() -> None:
    named = references_in({"a": ["${inputs.name}", {"b": "${steps.db.outputs.url}"}], "c": 3})
    assert [str(one) for one in named] == ["inputs.name", "steps.db.outputs.url"]
