"""The `Outputs:` block, with every value written the way the engine writes it for a person.

The stream carries outputs as JSON with their type; the form below was taken from Terraform 1.11.4 by comparing its
human output, value by value (tests/engine/test_outputs.py keeps that comparison).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import chain, repeat
from typing import Final

_INDENT: Final = 2
_ESCAPES: Final[Mapping[str, str]] = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_SCALAR_NULLS: Final[Mapping[str, str]] = {
    "string": "tostring(null)",
    "number": "tonumber(null)",
    "bool": "tobool(null)",
}
_CONVERSIONS: Final[Mapping[str, str]] = {"list": "tolist", "set": "toset", "map": "tomap"}


def outputs_text(outputs: Mapping[str, object]) -> str:
    """One `name = value` for each output, sorted by name; a sensitive one shows no value, for the stream has none."""
    return "".join(f"{name} = {_output_value(outputs[name])}\n" for name in sorted(outputs))


def _output_value(output: object) -> str:
    if not isinstance(output, dict) or output.get("sensitive"):
        return "<sensitive>"
    return format_value(output.get("value"), output.get("type"))


def format_value(value: object, type_: object, indent: int = 0) -> str:
    """A value of the given type (in the engine's JSON notation for types) as it is shown at this indentation."""
    constructor, argument = _split_type(type_)
    if constructor == "dynamic" and isinstance(value, dict) and {"value", "type"} == value.keys():
        return format_value(value["value"], value["type"], indent)
    if value is None:
        return _null(constructor, argument)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return format(value, "d" if isinstance(value, int) else "f")
    if isinstance(value, str):
        return _string(value, indent)
    if isinstance(value, list):
        return _converted(constructor, _sequence(value, _element_types(constructor, argument), indent))
    if isinstance(value, dict):
        return _converted(constructor, _mapping(value, argument, indent))
    return str(value)


def _split_type(type_: object) -> tuple[str, object]:
    """`"string"` -> ("string", None); `["list", T]` -> ("list", T). A type that cannot be read counts as dynamic."""
    if isinstance(type_, str):
        return type_, None
    if isinstance(type_, list) and len(type_) >= 2 and isinstance(type_[0], str):
        return type_[0], type_[1]
    return "dynamic", None


def _null(constructor: str, argument: object) -> str:
    if constructor in _SCALAR_NULLS:
        return _SCALAR_NULLS[constructor]
    if constructor in _CONVERSIONS:
        return f"{_CONVERSIONS[constructor]}(null) /* of {_friendly_name(argument)} */"
    return "null" if constructor == "dynamic" else f"null /* {constructor} */"


def _friendly_name(type_: object) -> str:
    constructor, argument = _split_type(type_)
    return f"{constructor} of {_friendly_name(argument)}" if constructor in _CONVERSIONS else constructor


def _converted(constructor: str, text: str) -> str:
    return f"{_CONVERSIONS[constructor]}({text})" if constructor in _CONVERSIONS else text


def _sequence(items: list[object], types: Iterable[object], indent: int) -> str:
    inner = indent + _INDENT
    lines = (f"{' ' * inner}{format_value(item, type_, inner)},\n" for item, type_ in zip(items, types, strict=False))
    return _bracketed("[", lines, "]", indent)


def _element_types(constructor: str, argument: object) -> Iterable[object]:
    """A tuple names a type for each element, a list or set has one for all."""
    if constructor == "tuple" and isinstance(argument, list):
        return chain(argument, repeat("dynamic"))
    return repeat(argument)


def _mapping(items: Mapping[str, object], argument: object, indent: int) -> str:
    inner = indent + _INDENT
    lines = (
        f"{' ' * inner}{_string(key, inner)} = {format_value(items[key], _attribute_type(argument, key), inner)}\n"
        for key in sorted(items)
    )
    return _bracketed("{", lines, "}", indent)


def _attribute_type(argument: object, key: str) -> object:
    """An object names a type for each attribute, a map has one for all."""
    return argument.get(key, "dynamic") if isinstance(argument, dict) else argument


def _bracketed(opening: str, lines: Iterable[str], closing: str, indent: int) -> str:
    body = "".join(lines)
    return f"{opening}\n{body}{' ' * indent}{closing}" if body else opening + closing


def _string(value: str, indent: int) -> str:
    return _heredoc(value, indent) if "\n" in value else f'"{"".join(map(_escaped, value))}"'


def _heredoc(value: str, indent: int) -> str:
    """A text of several lines; the delimiter grows until no line of the text is equal to it."""
    lines = value.split("\n")
    delimiter = "EOT"
    while delimiter in {line.strip() for line in lines}:
        delimiter += "_"
    margin = " " * indent
    body = "".join(f"{margin}{line}\n" for line in lines)
    return f"<<{'-' if indent else ''}{delimiter}\n{body}{margin}{delimiter}"


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
