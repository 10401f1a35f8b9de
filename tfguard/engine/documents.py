"""Read the engine's JSON without trusting it: every step either has the expected shape or gives nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Json = Mapping[str, object]
_NOTHING: Json = {}


def mapping(value: object) -> Json:
    """`value` when it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else _NOTHING


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
    """The scalar at a dotted attribute path such as `tags.Name`; a map key may itself contain dots."""
    head, dot, rest = path.partition(".")
    inner = mapping(value).get(head)
    return at_path(inner, rest) if dot else scalar(inner)


def masked(mask: object, path: str) -> bool:
    """Whether a sensitivity mask covers `path`: `true` at it or above it (docs/facts/terraform.md, section 5)."""
    if isinstance(mask, bool):
        return mask
    head, dot, rest = path.partition(".")
    inner = mapping(mask).get(head, False)
    return masked(inner, rest) if dot else inner is True


def masked_values(value: object, mask: object) -> Iterator[str]:
    """Every scalar that a sensitivity mask covers, so that a copy of it under another name can be refused too."""
    if mask is True:
        yield from _scalars(value)
    elif isinstance(mask, Mapping):
        for key, inner in mask.items():
            yield from masked_values(mapping(value).get(key), inner)
    elif isinstance(mask, list):
        for index, inner in enumerate(mask):
            items = sequence(value)
            if index < len(items):
                yield from masked_values(items[index], inner)


def _scalars(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _scalars(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _scalars(inner)
    elif (found := scalar(value)) is not None:
        yield found
