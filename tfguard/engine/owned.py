"""The objects that a state has as attributes of others alone (a root volume), by the catalogue's `owns`.

The catalogue's paths are names joined by dots, `[]` behind one for each element of a list, and nothing else; so this
walks them itself, and needs no library for it: a marked value has to be known by where it stands, which no library
for queries tells. A text with `{PATH}` in it is a template over such paths.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from tfguard.catalog.catalog import Catalog
from tfguard.engine.documents import both_mark, mapping, scalar, sequence
from tfguard.model.secrets import is_secret
from tfguard.model.state import OwnedObject

_EACH = "[]"
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


def owned_by(
    catalog: Catalog, resource_type: str, values: object, mask: object, secrets: frozenset[str]
) -> tuple[OwnedObject, ...]:
    """What an instance of `resource_type` with these `values` owns, without what `mask` or `secrets` hide."""
    known = catalog.get(catalog.canonical(resource_type))
    if known is None or not known.owns:
        return ()
    found = (
        OwnedObject(owned, key, value)
        for owned, keys in known.owns.items()
        for key, paths in keys.items()
        for path in paths
        for value in _texts(values, mask, path)
        if not is_secret(value, secrets)
    )
    return tuple(dict.fromkeys(found))


def mask_of_paths(paths: object) -> object:
    """The mask that the paths of `sensitive_attributes` mean.

    Where a path leads into a set, whose elements have no number, all of that set is marked.
    """
    mask: dict[object, object] = {}
    for path in sequence(paths):
        steps = [_step(step) for step in sequence(path)]
        if not steps or steps[0] is None:
            return True
        _mark(mask, steps)
    return mask


def _mark(mask: dict[object, object], steps: list[str | int | None]) -> None:
    for number, step in enumerate(steps):
        inner = mask.setdefault(step, {})
        if not isinstance(inner, dict):
            return  # marked as a whole
        if number + 1 == len(steps) or steps[number + 1] is None:
            mask[step] = True
            return
        mask = inner


def _step(step: object) -> str | int | None:
    value = mapping(step).get("value")
    key = mapping(value).get("value") if isinstance(value, Mapping) else value
    return key if isinstance(key, str | int) else None


def _texts(values: object, mask: object, path: str) -> Iterator[str]:
    """The values at a path, or a template's texts: one for each way in which all its paths lead to a value."""
    literals, paths = _PLACEHOLDER.split(path)[::2], _PLACEHOLDER.findall(path)
    if not paths:
        yield from _values(values, mask, path)
        return
    for found in itertools.product(*(list(_values(values, mask, inner)) for inner in paths)):
        yield literals[0] + "".join(value + text for value, text in zip(found, literals[1:], strict=True))


def _values(value: object, mask: object, path: str) -> Iterator[str]:
    if mask is True:
        return
    if not path:
        found = scalar(value)
        if found and not both_mark(mask, True):
            yield found
        return
    head, _, rest = path.partition(".")
    name = head.removesuffix(_EACH)
    inner, below = mapping(value).get(name), _below(mask, name)
    if name == head:
        yield from _values(inner, below, rest)
    elif below is not True:
        for number, item in enumerate(sequence(inner)):
            yield from _values(item, _below(below, number), rest)


def _below(mask: object, step: str | int) -> object:
    if isinstance(mask, Mapping):
        return mask.get(step, False)
    if isinstance(mask, list) and isinstance(step, int):
        return mask[step] if step < len(mask) else False
    return mask
