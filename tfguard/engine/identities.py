"""The identity attributes of a resource, by the catalogue's allow-list, with every marked value left out (rule 10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import ResourceType
from tfguard.engine.documents import at_path, masked
from tfguard.model.arn import account_in, place_in
from tfguard.model.cloud import cloud_named
from tfguard.model.secrets import is_secret

_REGION = "region"


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


def place_of(catalog: Catalog, resource_type: str, values: object, mask: object) -> tuple[str, str]:
    """The account and region in which an instance says that it is, beside its own ARN; each empty where it does not.

    Provider 6 writes the region into every instance of a type that has one. Nothing that a mask covers tells anything.
    """
    known = catalog.get(catalog.canonical(resource_type))
    if known is None:
        return "", ""
    names = [at_path(values, name) or "" for name in known.placed_by if not masked(mask, name)]
    account = next(filter(None, map(account_in, names)), "") or _own_account(known, values, mask)
    own = "" if known.is_global or masked(mask, _REGION) else at_path(values, _REGION)
    return account, own or next((region for _, region in map(place_in, names) if region), "")


def _own_account(known: ResourceType, values: object, mask: object) -> str:
    """The account that an instance names itself: the id of its project, and no number, which nothing else names."""
    cloud = cloud_named(known.cloud)
    if cloud is None or not cloud.place_is_account or masked(mask, cloud.own_place):
        return ""
    account = at_path(values, cloud.own_place) or ""
    return "" if account.isdecimal() else account


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
