"""The objects that a state has as attributes of others alone (a root volume), by the catalogue's `owns`.

The catalogue's paths are names joined by dots, `[]` behind one for each element of a list, and nothing else; so this
walks them itself, and needs no library for it: a marked value has to be known by where it stands, which no library
for queries tells. A text with `{PATH}` in it is a template over such paths.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import HELD
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
        # Of what is told only in part, nobody could say that something is not among it.
        if key != HELD or not any(_hides(mask, path) for path in paths)
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
    """The values at a path, or a template's texts: one for each way in which all its paths lead to a value.

    What a template names below one list (`rule[].from`, `rule[].to`) is of one element of it.
    """
    literals, paths = _PLACEHOLDER.split(path)[::2], _PLACEHOLDER.findall(path)
    for found in _rows(values, mask, dict.fromkeys(paths or [path])):
        if not paths:
            yield found[path]
        else:
            texts = zip(paths, literals[1:], strict=True)
            yield literals[0] + "".join(found[inner] + text for inner, text in texts)


def _rows(value: object, mask: object, paths: Iterable[str]) -> Iterator[Mapping[str, str]]:
    """Each way in which these paths lead to values, by path."""
    heads: dict[str, list[str]] = {}
    for path in paths:
        head, _, rest = path.partition(".")
        heads.setdefault(head, []).append(rest)
    for parts in itertools.product(*(list(_below_head(value, mask, *one)) for one in heads.items())):
        yield {path: found for part in parts for path, found in part.items()}


def _below_head(value: object, mask: object, head: str, rests: Sequence[str]) -> Iterator[Mapping[str, str]]:
    name = head.removesuffix(_EACH)
    inner, below = mapping(value).get(name), _below(mask, name)
    several = [(item, _below(below, number)) for number, item in enumerate(sequence(inner))]
    for item, hidden in [(inner, below)] if name == head else several if below is not True else []:
        if hidden is True:
            continue
        if rests != [""]:
            yield from ({f"{head}.{rest}": found for rest, found in row.items()} for row in _rows(item, hidden, rests))
        elif (found := scalar(item)) and not both_mark(hidden, True):
            yield {head: found}


def _hides(mask: object, path: str) -> bool:
    """Whether anything below the first names of a path, or of a template's paths, is marked."""
    heads = {inner.partition(".")[0].removesuffix(_EACH) for inner in _PLACEHOLDER.findall(path) or [path]}
    return any(_has_mark(_below(mask, head)) for head in heads)


def _has_mark(mask: object) -> bool:
    inner = mask.values() if isinstance(mask, Mapping) else mask if isinstance(mask, list) else ()
    return mask is True or any(map(_has_mark, inner))


def _below(mask: object, step: str | int) -> object:
    if isinstance(mask, Mapping):
        return mask.get(step, False)
    if isinstance(mask, list) and isinstance(step, int):
        return mask[step] if step < len(mask) else False
    return mask
