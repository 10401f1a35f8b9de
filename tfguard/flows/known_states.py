"""Every state that is known is searched for an object before anybody adopts or deletes it (rule 15)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.types import HELD, JOINT, PLACEHOLDER, ResourceType
from tfguard.errors import InputError, NoStateError, UsageError
from tfguard.flows.context import StackContext
from tfguard.model.finding import Finding
from tfguard.model.inventory import CloudObject
from tfguard.model.secrets import Withholding
from tfguard.model.state import OwnedObject, StateInstance, StateSnapshot
from tfguard.ports import StateSource
from tfguard.reconcile.adoption import own_import_id
from tfguard.reconcile.matching import lies_elsewhere, same_object


def known_states(context: StackContext, own: StateSnapshot) -> Iterator[tuple[str, StateSnapshot]]:
    """This stack's state, every other one that is known, and those that a scan looked into: what it has found may have
    been adopted there since. Raises `InputError` for one that cannot be read."""
    yield context.stack.location, own
    for source in context.known_places():
        with suppress(NoStateError):  # a pattern for what does not exist yet
            yield from _others_in(context, source, "take it out of `scan: {stacks: [...]}` in tfguard.yaml")
    for source in context.scanned_places():
        try:
            yield from _others_in(context, source, "scan anew without it")
        except NoStateError as error:
            raise InputError(
                f"{error.what}, where the scan looked; whether a state there has the object by now is not known",
                "make it readable here, or scan anew without it",
            ) from error


def _others_in(context: StackContext, source: StateSource, otherwise: str) -> Iterator[tuple[str, StateSnapshot]]:
    for known in source.read():
        if known.location == context.stack.location:
            continue
        if known.snapshot is None:
            raise InputError(
                f"{known.failure}; whether it has the object already is not known", f"make it readable, or {otherwise}"
            )
        yield known.location, known.snapshot


def types_in(catalog: Catalog, state: StateSnapshot) -> frozenset[str]:
    """The types, as lists name them, of which a state can have objects: its instances' own, and those in others."""
    return frozenset(map(catalog.canonical, state.by_type))


def refuse_if_held(catalog: Catalog, state: StateSnapshot, address: str, finding: Finding) -> None:
    """Raise `UsageError` when the address has another object already."""
    held = state.at(address)
    if held is not None and finding.object and not is_this_object(catalog, held, finding.object):
        hidden = Withholding(state.secrets)
        name = hidden.text(next(iter(held.identity.values()), address), "an object")
        at = hidden.address(address)
        raise UsageError(
            f"the state already holds {name} at {at}; {finding.id} would be a second object for one address",
            "delete the one that is not needed at the provider, then run `tfguard recover`",
        )


def refuse_if_known(catalog: Catalog, state: StateSnapshot, where: str, finding: Finding) -> None:
    """Raise `UsageError` when a state has the object already, at whatever address (case B59), be it in another one."""
    held = next(_holders(catalog, state, finding.object), None) if finding.object else None
    if held is not None:
        at = Withholding(state.secrets).address(held.address)
        raise UsageError(
            f"{finding.id} is managed already: the state {where} has it at {at}",
            "run `tfguard recover`; if the other stack should not have it, take it out there with `state rm` first",
        )


def is_held(catalog: Catalog, state: StateSnapshot, known: CloudObject) -> bool:
    """Whether a state has an object, at whatever address."""
    return next(_holders(catalog, state, known), None) is not None


def _holders(catalog: Catalog, state: StateSnapshot, known: CloudObject) -> Iterator[StateInstance]:
    """The instances that have an object. Others than of its type are not looked at: there may be very many."""
    wanted = catalog.canonical(known.type)
    for name, instances in state.by_type.items():
        if catalog.canonical(name) == wanted:
            yield from (instance for instance in instances if _has(catalog, instance, known))


def is_this_object(catalog: Catalog, instance: StateInstance, known: CloudObject) -> bool:
    """Whether an instance of a state is this very object: equal names in another region or account are none.

    It may be of another type that manages the same objects. An object that a record or a ledger tells has ids alone,
    and is compared by these.
    """
    kind = catalog.get(catalog.canonical(instance.type))
    if kind is None or kind.type != catalog.canonical(known.type) or _lies_elsewhere(kind, instance, known):
        return False
    if known.identity:
        return same_object(kind, instance.identity, known)
    return _same_ids(kind, instance.identity, known)


def _has(catalog: Catalog, instance: StateInstance, known: CloudObject) -> bool:
    """Whether an instance is this object, or has it as an attribute alone, as an instance has its root volume."""
    if is_this_object(catalog, instance, known):
        return True
    wanted = catalog.canonical(known.type)
    return any(
        one.key != HELD and catalog.canonical(one.type) == wanted and _is_owned(catalog, instance, one, known)
        for one in instance.owned
    )


def _is_owned(catalog: Catalog, instance: StateInstance, one: OwnedObject, known: CloudObject) -> bool:
    told = StateInstance(
        instance.address,
        one.type,
        instance.provider,
        identity={one.key: one.value},
        account=instance.account,
        region=instance.region,
    )
    return is_this_object(catalog, told, known)


def _lies_elsewhere(kind: ResourceType, instance: StateInstance, known: CloudObject) -> bool:
    """Whether its ARN, or else what it says itself, tells of another account or region."""
    if lies_elsewhere(kind, instance.identity, known.account, known.region):
        return True
    other_account = known.account is not None and instance.account not in ("", known.account)
    return other_account or (instance.region != "" and known.region not in ("", "global", instance.region))


def _same_ids(kind: ResourceType, identity: Mapping[str, str], known: CloudObject) -> bool:
    arn = identity.get(kind.arn_key) if kind.arn_key else None
    if arn and known.arn:
        return arn == known.arn
    # Of a key made of several attributes the last may be missing: what set it off stays at the end.
    joined = {value.rstrip("_") for name, value in identity.items() if JOINT in name}
    told = {*identity.values(), *joined, _import_id(kind, identity)}
    return known.import_id in told or known.id == identity.get("id")


def _import_id(kind: ResourceType, identity: Mapping[str, str]) -> str | None:
    """What `import` would want for an instance, where the catalogue makes it of attributes."""
    if kind.import_as is not None:
        return own_import_id(kind, identity)
    names = PLACEHOLDER.findall(kind.import_id)
    return kind.import_id.format_map(identity) if names and identity.keys() >= set(names) else None
