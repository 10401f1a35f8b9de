"""The flat attributes of Terraform 0.11, which also stand in a version 4 state until their resource is refreshed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_COUNT_OF_LIST, _COUNT_OF_MAP = "#", "%"
_LONGEST_NUMBER = 18


def unflattened(flat: Mapping[str, object]) -> Mapping[str, object]:
    """The attributes as later states have them: `ebs.#`, `ebs.0.id` -> a list, `tags.%`, `tags.Name` -> an object.

    Scalars stay what they are, mostly texts. The elements of a set, whose numbers are hashes, come in their order.
    """
    return {name: _value(parts) for name, parts in _by_first_part(flat).items()}


def _by_first_part(flat: Mapping[str, object]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for name, value in flat.items():
        first, _, rest = name.partition(".")
        found.setdefault(first, {})[rest] = value
    return found


def _value(parts: Mapping[str, object]) -> object:
    """What stands under a name; `parts` are its values by the rest of their names, empty for the name itself."""
    if "" in parts:
        return parts[""]
    if _COUNT_OF_MAP in parts:
        return {key: value for key, value in parts.items() if key != _COUNT_OF_MAP}  # a key may have dots in it
    inner = {name: _value(below) for name, below in _by_first_part(parts).items() if name != _COUNT_OF_LIST}
    return [inner[name] for name in _in_order(list(inner))] if _COUNT_OF_LIST in parts else inner


def _in_order(names: Sequence[str]) -> Sequence[str]:
    def rank(name: str) -> tuple[bool, int, str]:
        is_number = name.isdecimal() and len(name) <= _LONGEST_NUMBER
        return (not is_number, int(name) if is_number else 0, name)

    return sorted(names, key=rank)
