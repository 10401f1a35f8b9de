"""Every state that is known is searched for an object before anybody adopts or deletes it (rule 15)."""

from __future__ import annotations

from collections.abc import Iterator

from tfguard.errors import InputError, NoStateError, UsageError
from tfguard.flows.context import StackContext
from tfguard.model.arn import names_elsewhere
from tfguard.model.finding import Finding
from tfguard.model.inventory import CloudObject
from tfguard.model.secrets import Withholding
from tfguard.model.state import StateInstance, StateSnapshot


def known_states(context: StackContext, own: StateSnapshot) -> Iterator[tuple[str, StateSnapshot]]:
    """This stack's state and every other one that is known. Raises `InputError` for one that cannot be read."""
    yield context.stack.location, own
    for source in context.known_places():
        try:
            for known in source.read():
                if known.location == context.stack.location:
                    continue
                if known.snapshot is None:
                    raise InputError(
                        f"{known.failure}; whether it has the object already is not known",
                        "make it readable, or take it out of `scan: {stacks: [...]}` in tfguard.yaml",
                    )
                yield known.location, known.snapshot
        except NoStateError:
            continue  # a pattern for what does not exist yet


def refuse_if_held(state: StateSnapshot, address: str, finding: Finding) -> None:
    """Raise `UsageError` when the address has another object already."""
    held = state.at(address)
    if held is not None and finding.object and not is_this_object(held, finding.object):
        hidden = Withholding(state.secrets)
        name = hidden.text(next(iter(held.identity.values()), address), "an object")
        at = hidden.address(address)
        raise UsageError(
            f"the state already holds {name} at {at}; {finding.id} would be a second object for one address",
            "delete the one that is not needed at the provider, then run `tfguard recover`",
        )


def refuse_if_known(state: StateSnapshot, where: str, finding: Finding) -> None:
    """Raise `UsageError` when a state has the object already, at whatever address (case B59)."""
    for instance in state.instances:
        if finding.object and is_this_object(instance, finding.object):
            at = Withholding(state.secrets).address(instance.address)
            raise UsageError(
                f"{finding.id} is managed already: the state {where} has it at {at}",
                "run `tfguard recover`; if the other stack should not have it, take it out there with `state rm` first",
            )


def is_this_object(instance: StateInstance, known: CloudObject) -> bool:
    """Whether an instance of a state is this very object: equal names in another region or account are none."""
    key = next((name for name, value in known.identity.items() if value == known.arn), "arn")
    arn = instance.identity.get(key)
    if instance.type != known.type or names_elsewhere(arn or "", known.account, known.region):
        return False
    return arn == known.arn if arn and known.arn else known.import_id in instance.identity.values()
