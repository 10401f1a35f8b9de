"""The identity attributes of a resource, by the catalogue's allow-list, with every marked value left out (rule 10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tfguard.catalog.loader import Catalog
from tfguard.engine.documents import at_path, masked
from tfguard.model.secrets import is_secret


def identity_of(
    catalog: Catalog, resource_type: str, values: object, mask: object, secrets: frozenset[str]
) -> Mapping[str, str]:
    """The allow-listed attributes in `values` that no mask covers and that equal no value in `secrets`."""
    known = catalog.get(catalog.canonical(resource_type))
    if known is None:
        return {}
    found = {path: at_path(values, path) for path in known.attributes if not masked(mask, path)}
    single = {path: value for path, value in found.items() if value and not is_secret(value, secrets)}
    hidden = {path for path in known.attributes if path not in single and at_path(values, path)}
    return {**single, **known.joined(single, hidden)}


def withheld_of(
    catalog: Catalog, resource_type: str, values: object, mask: object, secrets: frozenset[str]
) -> frozenset[str]:
    """The allow-listed attributes that have a value in `values` and that `identity_of` leaves out."""
    known = catalog.get(catalog.canonical(resource_type))
    if known is None:
        return frozenset()
    present = {path for path in known.attributes if at_path(values, path)}
    return frozenset(present - identity_of(catalog, resource_type, values, mask, secrets).keys())


def copies_in(catalog: Catalog, resource_type: str, values: object, secrets: frozenset[str]) -> Iterator[str]:
    """The allow-listed values that carry a marked one, whether or not they are marked themselves."""
    kind = catalog.get(catalog.canonical(resource_type))
    found = (at_path(values, path) for path in kind.attributes) if kind else ()
    yield from (value for value in found if value and is_secret(value, secrets))


def unseen_of(catalog: Catalog, resource_type: str, mask: object, unknown: object) -> frozenset[str]:
    """The allow-listed attributes whose values are marked and not known yet."""
    kind = catalog.get(catalog.canonical(resource_type))
    return (
        frozenset(path for path in kind.attributes if masked(mask, path) and masked(unknown, path))
        if kind
        else frozenset()
    )
