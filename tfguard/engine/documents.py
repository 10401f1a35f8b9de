"""Read the engine's JSON without trusting it: every step either has the expected shape or gives nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

Json = Mapping[str, object]
_NOTHING: Json = {}
_NOT_MANAGED = ("data", "ephemeral", "list")
_SURROGATE = re.compile("[\ud800-\udfff]")

_MASKED = (("before", "before_sensitive"), ("after", "after_sensitive"), ("values", "sensitive_values"))
# Shorter keys below a mark are mostly names in a schema (`user`, `host`, `password`), and stand in many names.
_SHORTEST_KEY = 10


class DoubledKeyError(ValueError):
    """A JSON object has a key twice: which of the two counts is each reader's own choice."""


def parse_json(data: bytes | str, *, keys_once: bool = False) -> object:
    """`data` as JSON. Raises `ValueError` for what is none, `RecursionError` for what is nested without an end.

    With `keys_once`, an object with a key twice raises `DoubledKeyError`; else the last one counts.
    """
    text = data if isinstance(data, str) else data.decode("utf-8")
    pairs = _each_once if keys_once else None
    value: object = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=pairs)
    return without_lone_surrogates(value) if "\\ud" in text or "\\uD" in text else value


def _each_once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DoubledKeyError("a key is there twice")
    return found


def without_lone_surrogates(value: object) -> object:
    """A lone surrogate is legal in JSON but cannot be written to any terminal or file: U+FFFD stands for it."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_lone_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_SURROGATE.sub("\ufffd", key): without_lone_surrogates(item) for key, item in value.items()}
    return value


def _refuse_constant(name: str) -> NoReturn:
    """NaN and Infinity are not JSON."""
    raise ValueError(name)


def mapping(value: object) -> Json:
    """`value` when it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else _NOTHING


class WrongShapeError(ValueError):
    """A document has something else at `part` than it should have there; what it says is then not known."""

    def __init__(self, part: str) -> None:
        super().__init__(part)
        self.part = part


def objects(holder: Json, name: str, *, optional: bool = False) -> Iterator[Json]:
    """The objects of an array, one by one. Raises `WrongShapeError` where it is none, or holds anything else."""
    items = holder.get(name)
    if items is None and optional:
        return
    if not isinstance(items, list):
        raise WrongShapeError(name)
    for item in items:
        if not isinstance(item, Mapping):
            raise WrongShapeError(name)
        yield item


def optional_object(holder: Json, name: str) -> Json:
    """An object, empty where there is none. Raises `WrongShapeError` for anything else."""
    value = holder.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise WrongShapeError(name)
    return mapping(value)


def optional_text(holder: Json, name: str) -> str:
    """A string, empty where there is none. Raises `WrongShapeError` for anything else."""
    value = holder.get(name)
    if not isinstance(value, str | None):
        raise WrongShapeError(name)
    return value or ""


def is_managed(resource: Json) -> bool:
    """Whether a resource of a state or a plan is one that the engine makes, and no data source.

    Raises `WrongShapeError` for a mode that is not known: what is passed over is nowhere told of.
    """
    mode = resource.get("mode")
    if mode == "managed":
        return True
    if mode not in _NOT_MANAGED:
        raise WrongShapeError("mode of a resource")
    return False


def sequence(value: object) -> Sequence[object]:
    """`value` when it is an array, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def text(value: object) -> str:
    """`value` when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def scalar(value: object) -> str | None:
    """A string, number or boolean as Terraform writes it in a string; None for everything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    return None


def at_path(value: object, path: str) -> str | None:
    """The scalar at a dotted attribute path such as `tags.Name`; a map key may itself contain dots.

    `*` stands for all scalars of a list, joined as import ids join them.
    """
    if path == "*":
        return "_".join(filter(None, map(scalar, sequence(value)))) or None
    head, dot, rest = path.partition(".")
    inner = mapping(value).get(head)
    return at_path(inner, rest) if dot else scalar(inner)


def masked(mask: object, path: str) -> bool:
    """Whether a sensitivity mask covers `path`: `true` at it or above it (docs/facts/terraform.md, section 5).

    A mask of another shape than the path covers it when it marks anything.
    """
    if not isinstance(mask, Mapping):
        return _marks(mask)
    head, dot, rest = path.partition(".")
    inner = mask.get(head, False)
    return masked(inner, rest) if dot else _marks(inner)


def masked_values(value: object, mask: object) -> Iterator[str]:
    """Every scalar and every longer key that a sensitivity mask covers, so that a copy of it under another name can be
    refused too. A mask of another shape than the value covers all of it when it marks anything."""
    waiting = [(value, mask)]
    while waiting:
        value, mask = waiting.pop()
        if isinstance(mask, Mapping) and isinstance(value, Mapping):
            waiting.extend((value.get(key), inner) for key, inner in mask.items())
        elif isinstance(mask, list) and isinstance(value, list):
            waiting.extend(zip(value, mask, strict=False))
        elif _marks(mask):
            yield from everything_in(value)


def everything_in(value: object) -> Iterator[str]:
    """Every scalar in a value, as text, and every key that is long enough to be more than a word of a schema."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            yield from (key for key in value if len(key) >= _SHORTEST_KEY)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif (found := scalar(value)) is not None:
            yield found


def _marks(mask: object) -> bool:
    """Whether a mask marks anything at all."""
    waiting = [mask]
    while waiting:
        mask = waiting.pop()
        if mask is True:
            return True
        if isinstance(mask, Mapping):
            waiting.extend(mask.values())
        elif isinstance(mask, list):
            waiting.extend(mask)
    return False


def both_mark(one: object, other: object) -> bool:
    """Whether two masks of one value mark something in common."""
    if one is True or other is True:
        return _marks(one) and _marks(other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return any(both_mark(inner, other.get(key)) for key, inner in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return any(both_mark(inner, another) for inner, another in zip(one, other, strict=False))
    return False


def marked_values(document: object) -> Iterator[str]:
    """Every value that a document of `show -json` or a state marks, in whichever of its parts.

    Parts come with every other release, and all of them mark in one of these ways: a mask beside the values, or
    `sensitive` beside one value, a default or a constant.
    """
    waiting = [document]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, Mapping):
            taken = {"value"}
            for name, mask in _MASKED:
                if mask in node:
                    yield from masked_values(node.get(name), node[mask])
                    taken |= {name, mask}
            if node.get("sensitive") is True:
                yield from everything_in(node.get("value"))
                yield from everything_in(node.get("default"))
                yield from everything_in(mapping(node.get("expression")).get("constant_value"))
            waiting.extend(inner for name, inner in node.items() if name not in taken)
