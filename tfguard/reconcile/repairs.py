"""What a `refresh`, `import`, `taint` or `state ...` did to the state, told by comparing before and after. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tfguard.catalog.loader import Catalog
from tfguard.model.address import lies_below, resource_type
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.operation import Intent, Operation, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.request import REPAIRS, Effect
from tfguard.model.secrets import is_secret
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.reconcile.claims import same_identity
from tfguard.reconcile.marks import name_of, recorded

_ACTIONS: Mapping[Effect, Action] = {
    Effect.READS: Action.NOOP,
    Effect.OVERWRITES: Action.NOOP,
    Effect.MOVES: Action.NOOP,
    Effect.TAKES_OUT: Action.FORGET,
}


def is_repair(intent: Intent) -> bool:
    """Whether an operation was one of `REPAIRS`; an adoption, which is an `import` too, was an apply."""
    return intent.command in REPAIRS and not intent.adopts


def repair_steps(effect: Effect, operands: Sequence[str], before: StateSnapshot) -> tuple[Step, ...]:
    """What a repair may do, a step for each object: written down before, so that a killed one can be told from after.

    `forget` is an object that is to leave the state on purpose, `no-op` one that may leave it against the user's will,
    `update` one that is to be marked or put in.
    """
    if effect in (Effect.READS, Effect.OVERWRITES):
        return tuple(_step(held, _ACTIONS[effect], before.secrets) for held in before.instances)
    if effect in (Effect.TAKES_OUT, Effect.MOVES):
        named = operands if effect is Effect.TAKES_OUT else operands[:1]
        chosen = [held for held in before.instances if any(lies_below(held.address, name) for name in named)]
        return tuple(_step(held, _ACTIONS[effect], before.secrets) for held in chosen)
    if effect in (Effect.MARKS, Effect.PUTS_IN) and operands:
        held = before.at(operands[0])
        if held is None:
            return (Step(operands[0], resource_type(operands[0]), "", Action.UPDATE),)
        return (_step(held, Action.UPDATE, before.secrets),)
    return ()


def _step(held: StateInstance, action: Action, secrets: frozenset[str]) -> Step:
    copies = {name for name, value in held.identity.items() if is_secret(value, secrets)}
    return Step(
        address=held.address,
        type=held.type,
        provider=held.provider,
        action=action,
        before={name: value for name, value in held.identity.items() if name not in copies},
        provider_key=held.provider_key,
        deposed=held.deposed,
        withheld=tuple(sorted({*held.withheld, *copies})),
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """The steps that the states alone conclude, and those whose objects no state has any more."""

    told: tuple[Step, ...]
    lost: tuple[Step, ...]


def compare(
    intent: Intent, steps: Sequence[Step], state: StateSnapshot, elsewhere: Sequence[StateSnapshot], catalog: Catalog
) -> Compared:
    """Conclude from the states what they can tell. An object that simply stayed where it was needs no step.

    `elsewhere` are the other states that are known: what one of them has is not lost.
    """
    places = {(held.address, held.deposed): held for held in state.instances}
    moves = REPAIRS[intent.command] is Effect.MOVES
    told: list[Step] = []
    lost: list[Step] = []
    for step in steps:
        held = places.get((step.address, step.deposed))
        if step.action is Action.UPDATE:
            told.append(recorded(step, held) if held else _not_done(step))
        elif held is not None and _is_same(step, held, catalog):
            if step.action is Action.FORGET:
                told.append(recorded(step, held))
        elif moves and (held := places.get((_destination(step.address, intent.operands), step.deposed))):
            told.append(_moved(step, held, "the state holds"))
        elif (moved := _elsewhere(step, state, elsewhere, catalog)) is not None:
            told.append(moved)
        else:
            lost.append(step)
    return Compared(tuple(told), tuple(lost))


def _not_done(step: Step) -> Step:
    detail = "the state has nothing at this address; the object, if there is one, is as it was"
    return replace(step, status=StepStatus.ERROR, outcome=None, evidence=(Evidence(EvidenceKind.ENGINE_EVENT, detail),))


def _is_same(step: Step, held: StateInstance, catalog: Catalog) -> bool:
    """Whether an address still has the object that it had; where nothing tells objects apart, it has."""
    kind = catalog.get(step.type)
    comparable = kind is not None and kind.keys and step.before and held.identity
    return not (comparable and kind) or same_identity(kind, step.before, held.identity)


def _elsewhere(step: Step, state: StateSnapshot, elsewhere: Sequence[StateSnapshot], catalog: Catalog) -> Step | None:
    """The step of an object that went to another address, or that another known state has."""
    for snapshot in (state, *elsewhere):
        for held in snapshot.instances:
            kind = catalog.get(step.type) if held.type == step.type else None
            if kind is not None and same_identity(kind, step.before, held.identity):
                return _moved(step, held, "the state holds" if snapshot is state else "another known state holds")
    return None


def _destination(address: str, operands: Sequence[str]) -> str:
    """Where `state mv SOURCE DESTINATION` puts what was at `address`."""
    source, destination = operands
    return destination + address.removeprefix(source)


def _moved(step: Step, held: StateInstance, where: str) -> Step:
    done = recorded(replace(step, status=StepStatus.OK), held)
    return replace(done, evidence=(Evidence(EvidenceKind.IN_STATE, f"{where} {name_of(held)} at {held.address}"),))


def removals(operation: Operation, steps: Sequence[Step], decided: Mapping[str, Disposition]) -> list[Disposition]:
    """The ledger's entries for live objects that this operation took out of the state on purpose.

    `decided` are the decisions that were made since the operation began, by finding id.
    """
    actor = f"{operation.intent.actor.user}@{operation.intent.actor.host}"
    at = operation.intent.started_at
    return [
        Disposition(
            finding_id=seen.finding_id,
            kind=DispositionKind.RETAIN,
            at=at,
            actor=actor,
            reason=f"removed from state by {actor} at {at:%Y-%m-%dT%H:%M:%SZ} ({operation.intent.command})",
            operation_id=operation.id,
            address=step.address,
            import_id=seen.import_id,
        )
        for step in steps
        if step.action is Action.FORGET
        for seen in step.observed
        if seen.finding_id and not seen.in_state and seen.finding_id not in decided
    ]
