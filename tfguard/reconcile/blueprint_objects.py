"""What a step has made, by all looks together, and which of that holds data. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from tfguard.blueprint_ports import StackLook
from tfguard.model.blueprint import BlueprintStep
from tfguard.model.blueprint_request import UNSEEN, BlueprintObject, StepRecord
from tfguard.model.operation import StepStatus

Key = tuple[str, str | None]
"""What tells one object of a step from another: its address, and its id."""


def holds_data(step: BlueprintStep | None, objects: Iterable[BlueprintObject]) -> bool:
    """Whether a step with these objects, or one object of it, holds data: as the blueprint says, else as a type is
    known to. `step` is None for one that the blueprint does not have any more."""
    if step is not None and step.stateful is not None:
        return step.stateful
    return any(found.stateful for found in objects)


def merged(
    before: Sequence[BlueprintObject], seen: Sequence[BlueprintObject], removed: Collection[Key]
) -> tuple[BlueprintObject, ...]:
    """All that a step has made, by what a look has seen of it: nothing is forgotten since it was not seen (rule 2).

    What is `removed` was taken away by an operation that has come to a good end.
    """
    found = {_key(one): one for one in seen}
    addresses = {one.address for one in seen}
    for old in before:
        key = _key(old)
        if key in found or (old.observed_id is None and old.address in addresses):
            continue
        gone = old.gone or key in removed
        found[key] = replace(old, disposition=StepStatus.DESTROYED.value if gone else UNSEEN)
    return tuple(_still_known(one, before) for one in found.values())


def taken_by(before: Iterable[BlueprintObject], after: StackLook) -> frozenset[Key]:
    """What an operation has taken away, where it was settled: what the state had before, and has no more."""
    if after.open or after.failure:
        return frozenset()
    return frozenset(_key(found) for found in before if found.finding is None)


def managed_of(record: StepRecord) -> Sequence[BlueprintObject]:
    """The objects that stand, by the record, and that no finding tells of: a state had them."""
    return [found for found in record.standing if found.finding is None]


def vanished_data(record: StepRecord, holding: Collection[str]) -> Collection[str]:
    """The addresses among those `holding` data of which an apply that creates them would make something anew: it was
    made before, and nobody has taken it away."""
    return () if record.undone else {found.address for found in managed_of(record)}.intersection(holding)


def _still_known(found: BlueprintObject, before: Sequence[BlueprintObject]) -> BlueprintObject:
    """An object with what was known of it earlier, where this look does not tell."""
    old = next((one for one in before if (one.address, one.type) == (found.address, found.type)), None)
    if old is None or old.gone or (old.observed_id and found.observed_id and old.observed_id != found.observed_id):
        return found
    return replace(found, desired=found.desired or old.desired, created_at=found.created_at or old.created_at)


def _key(found: BlueprintObject) -> Key:
    return found.address, found.observed_id
