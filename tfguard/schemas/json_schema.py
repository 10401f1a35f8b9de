"""What a document may hold, as a JSON Schema (draft 2020-12): from the type hints that `codec` goes by, too.

Readers pass over what they do not know, so the schemas do; only a document that a person writes is closed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import get_args, get_origin

from tfguard.schemas.codec import has_default, hints_of, not_none
from tfguard.schemas.document import SUM

Shape = Mapping[str, object]
"""An object that no dataclass stands for: field name -> type hint, `[hint]` or another shape. A name that ends in `?`
may be missing."""

Json = dict[str, object]
DRAFT = "https://json-schema.org/draft/2020-12/schema"

_SCALARS: Mapping[type, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    object: {},
    timedelta: {"type": "string", "pattern": "^([0-9]{1,9}[smhd])+$"},
}
_SUM_SCHEMA: Json = {
    "description": "The first 16 hex digits of the SHA-256 of the document without this field, as JSON with sorted "
    "keys and without spaces. Documents had none once.",
    "type": "string",
}
_ANY_SCALAR: Json = {"type": ["string", "number", "boolean"]}


def document_schema(
    name: str, version: int, kind: type | Shape, about: str = "", *, short: bool = False, summed: bool = False
) -> Json:
    """The schema of a document that tfguard writes: a dataclass as the record keeps it, or a shape that is printed.

    `about` says what it is, unless the dataclass does. A `short` one has its version as `v`, a `summed` one may have a
    `sum`.
    """
    builder = _Builder(printed=not isinstance(kind, type))
    body = builder.body(kind)
    own = ("v", {"const": version}) if short else ("schema", {"const": f"{name}/v{version}"})
    whole = with_field(body, *own)
    if summed and isinstance(properties := whole["properties"], dict):
        whole["properties"] = {**properties, SUM: _SUM_SCHEMA}
    return _published(name, version, builder, whole, about)


def authored_schema(name: str, version: int, kind: type, about: str, *, typed: bool = False) -> Json:
    """The schema of a dataclass that a person writes as YAML: nothing unknown is in it, and null says nothing.

    In a `typed` file text is text: `12` or `true` where text belongs has to be quoted.
    """
    builder = _Builder(authored=True, typed=typed)
    body = builder.body(kind)
    may_be_empty = {} if body["required"] else {"type": ["object", "null"]}
    return _published(name, version, builder, {**body, **may_be_empty}, about)


def with_field(body: Json, name: str, schema: Json) -> Json:
    """The schema of an object with one more field, in front, which is always there."""
    properties, required = body["properties"], body["required"]
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise TypeError("only an object has fields")
    return {**body, "properties": {name: schema, **properties}, "required": [name, *required]}


def _published(name: str, version: int, builder: _Builder, body: Json, about: str) -> Json:
    described = {"description": about, **body} if about else body
    parts = {"$defs": dict(sorted(builder.definitions.items()))} if builder.definitions else {}
    return {"$schema": DRAFT, "$id": f"urn:{name}:v{version}", "title": f"{name}/v{version}", **described, **parts}


class _Builder:
    """Turns hints into schemas; dataclasses and enums go to `definitions`.

    What is `printed` has every field, null where nothing is known; a record leaves those out. In what is `authored` any
    scalar can stand for text, as YAML's `true` and `12` do, unless it is `typed`.
    """

    def __init__(self, *, printed: bool = False, authored: bool = False, typed: bool = False) -> None:
        self.definitions: dict[str, Json] = {}
        self._printed = printed
        self._authored = authored
        self._any_scalar_is_text = authored and not typed

    def body(self, kind: type | Shape) -> Json:
        """The schema of an object."""
        return self._dataclass(kind) if isinstance(kind, type) else self._shape(kind)

    def _of(self, hint: object) -> Json:
        origin = get_origin(hint)
        if isinstance(hint, dict):
            return self._shape(hint)
        if isinstance(hint, list):
            return {"type": "array", "items": self._of(hint[0])}
        if origin is UnionType:
            return _or_null(self._of(not_none(hint)))
        if origin is tuple:
            return {"type": "array", "items": self._of(get_args(hint)[0])}
        if origin is Mapping:
            return {"type": "object", "additionalProperties": self._of(get_args(hint)[1])}
        if isinstance(hint, type):
            return self._of_class(hint)
        raise TypeError(f"no JSON Schema for {hint!r}")

    def _of_class(self, kind: type) -> Json:
        if issubclass(kind, Enum):
            values = [member.value for member in kind]
            return self._defined(kind, {"description": _about(kind), "enum": values})
        if is_dataclass(kind):
            return self._defined(kind, self._dataclass(kind))
        return _ANY_SCALAR if self._any_scalar_is_text and kind is str else _SCALARS[kind]

    def _defined(self, kind: type, schema: Json) -> Json:
        self.definitions[kind.__name__] = schema
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def _dataclass(self, kind: type) -> Json:
        hints = hints_of(kind)
        properties: Json = {}
        required: list[str] = []
        for entry in fields(kind):
            always = self._printed or not (has_default(entry) or NoneType in get_args(hints[entry.name]))
            found = self._of(hints[entry.name])
            properties[entry.name] = _or_null(found) if self._authored and not always else found
            if always:
                required.append(entry.name)
        closed: Json = {"additionalProperties": False} if self._authored else {}
        return {"description": _about(kind), "type": "object", "properties": properties, "required": required, **closed}

    def _shape(self, shape: Shape) -> Json:
        properties: Json = {name.removesuffix("?"): self._of(hint) for name, hint in shape.items()}
        return {"type": "object", "properties": properties, "required": [n for n in shape if not n.endswith("?")]}


def _or_null(schema: Json) -> Json:
    told = schema.get("type")
    if isinstance(told, str):
        return {**schema, "type": [told, "null"]}
    if isinstance(told, list):
        return schema if "null" in told else {**schema, "type": [*told, "null"]}
    return schema if "anyOf" in schema else {"anyOf": [schema, {"type": "null"}]}


def _about(kind: type) -> str:
    """A type's docstring on one line."""
    return " ".join((inspect.getdoc(kind) or "").split())
