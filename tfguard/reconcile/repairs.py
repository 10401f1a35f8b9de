"""What a `refresh`, `import`, `taint` or `state ...` did to the state, told by comparing before and after. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tfguard.catalog.catalog import Catalog
from tfguard.model.address import is_address, lies_below, normal_address, resource_type
from tfguard.model.disposition import Disposition, DispositionKind
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.operation import Intent, JournalEntry, Operation, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.model.request import REPAIRS, Effect
from tfguard.model.secrets import is_secret
from tfguard.model.state import StateInstance, StateSnapshot
from tfguard.reconcile.claims import is_same, same_identity
from tfguard.reconcile.marks import name_of, recorded

STARTED = "command_start"
ENDED = "command_end"
"""The kinds of the two journal entries that a command without an event stream has."""


def is_repair(intent: Intent) -> bool:
    """Whether an operation was one of `REPAIRS`; an adoption, which is an `import` too, was an apply."""
    return intent.command in REPAIRS and not intent.adopts


def repair_steps(effect: Effect, operands: Sequence[str], before: StateSnapshot) -> tuple[Step, ...]:
    """What a repair may do, a step for each object: written down before, so that a killed one can be told from after.

    `forget` is an object that is to leave the state on purpose, `no-op` one that may leave it against the user's will,
    `update` one that is to be marked or put in.
    """
    if effect in (Effect.READS, Effect.OVERWRITES):
        return tuple(_step(held, Action.NOOP, before.secrets) for held in before.instances)
    if effect in (Effect.TAKES_OUT, Effect.MOVES):
        named = [normal_address(operand) for operand in (operands if effect is Effect.TAKES_OUT else operands[:1])]
        chosen = [held for held in before.instances if any(lies_below(held.address, name) for name in named)]
        action = Action.FORGET if effect is Effect.TAKES_OUT else Action.NOOP
        return tuple(_step(held, action, before.secrets) for held in chosen)
    if effect in (Effect.MARKS, Effect.PUTS_IN) and operands:
        address = normal_address(operands[0])
        held = before.at(address)
        if held is None:
            # Whatever else was typed there is not kept.
            return (Step(address, resource_type(address), "", Action.UPDATE),) if is_address(address) else ()
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
        fingerprint=held.fingerprint,
    )


def left_besides(
    effect: Effect, steps: Sequence[Step], before: StateSnapshot, after: StateSnapshot
) -> tuple[Step, ...]:
    """Steps for objects that left the state although no step foresaw it: there are more ways to write an address."""
    action = Action.FORGET if effect is Effect.TAKES_OUT else Action.NOOP
    known = {(step.address, step.deposed) for step in steps} | {
        (held.address, held.deposed) for held in after.instances
    }
    return tuple(
        _step(held, action, before.secrets) for held in before.instances if (held.address, held.deposed) not in known
    )


@dataclass(frozen=True, slots=True)
class Compared:
    """The steps that the states alone conclude, and those whose objects no state has any more."""

    told: tuple[Step, ...]
    lost: tuple[Step, ...]


def compare(
    intent: Intent,
    steps: Sequence[Step],
    state: StateSnapshot,
    destination: StateSnapshot,
    elsewhere: Sequence[StateSnapshot],
    catalog: Catalog,
) -> Compared:
    """Conclude from the states what they can tell. An object that simply stayed where it was needs no step.

    `destination` is the state that a `state mv` moves to, mostly this one; `elsewhere` are the other states that are
    known: what one of them has is not lost.
    """
    places = {(held.address, held.deposed): held for held in state.instances}
    arrivals = {(held.address, held.deposed): held for held in destination.instances} if intent.moved else {}
    in_place = REPAIRS[intent.command] is Effect.READS  # which swaps no object, though it may learn another id of it
    told: list[Step] = []
    lost: list[Step] = []
    for step in steps:
        held = places.get((step.address, step.deposed))
        if step.action is Action.UPDATE:
            told.append(recorded(step, held) if held else _not_done(step))
        elif held is not None and (in_place or is_same(step, held, catalog)):
            if step.action is Action.FORGET:
                told.append(recorded(step, held))
        elif (arrived := _arrived(step, intent, arrivals)) and is_same(step, arrived, catalog):
            told.append(_moved(step, arrived, f"{intent.moved_to or 'the state'} holds"))
        elif (moved := _elsewhere(step, state, elsewhere, catalog)) is not None:
            told.append(moved)
        else:
            lost.append(step)
    return Compared(tuple(told), tuple(lost))


def _not_done(step: Step) -> Step:
    detail = "the state has nothing at this address; the object, if there is one, is as it was"
    return replace(step, status=StepStatus.ERROR, outcome=None, evidence=(Evidence(EvidenceKind.ENGINE_EVENT, detail),))


def _elsewhere(step: Step, state: StateSnapshot, elsewhere: Sequence[StateSnapshot], catalog: Catalog) -> Step | None:
    """The step of an object that went to another address, or that another known state has."""
    for snapshot in (state, *elsewhere):
        for held in snapshot.instances:
            if held.type == step.type and _is_certainly_same(step, held, catalog):
                return _moved(step, held, "the state holds" if snapshot is state else "another known state holds")
    return None


def _is_certainly_same(step: Step, held: StateInstance, catalog: Catalog) -> bool:
    kind = catalog.get(step.type)
    if kind is not None and same_identity(kind, step.before, held.identity):
        return True
    return bool(step.fingerprint) and step.fingerprint == held.fingerprint


def _arrived(
    step: Step, intent: Intent, arrivals: Mapping[tuple[str, str | None], StateInstance]
) -> StateInstance | None:
    """What lies where `state mv` puts what was at the step's address."""
    if len(intent.moved) != 2:
        return None
    source, destination = map(normal_address, intent.moved)
    return arrivals.get((destination + step.address.removeprefix(source), step.deposed))


def _moved(step: Step, held: StateInstance, where: str) -> Step:
    done = recorded(replace(step, status=StepStatus.OK), held)
    return replace(done, evidence=(Evidence(EvidenceKind.IN_STATE, f"{where} {name_of(held)} at {held.address}"),))


def told_by_exit(effect: Effect, steps: Sequence[Step], exit_code: int) -> tuple[Step, ...]:
    """What the engine's exit code says about the steps; that a state was pushed or moved says nothing of an object."""
    if effect in (Effect.OVERWRITES, Effect.MOVES):
        return tuple(steps)
    status = StepStatus.OK if exit_code == 0 else StepStatus.ERROR
    return tuple(replace(step, status=status) for step in steps)


def exit_code_in(journal: Sequence[JournalEntry]) -> int | None:
    """The exit code that a repair's journal tells; None when nobody was there to see its end."""
    words = [entry.detail or "" for entry in journal if entry.kind == ENDED]
    return int(words[-1].rpartition(" ")[2]) if words and words[-1].rpartition(" ")[2].isdecimal() else None


def removed_alive(steps: Sequence[Step]) -> list[Step]:
    """The steps whose objects were taken out of the state on purpose, and live."""
    return [step for step in steps if step.action is Action.FORGET and any(seen.finding_id for seen in step.observed)]


def removals(operation: Operation, steps: Sequence[Step], decided: Mapping[str, Disposition]) -> list[Disposition]:
    """The ledger's entries for live objects that this operation took out of the state on purpose.

    `decided` are the decisions that were made since the operation began, by finding id.
    """
    actor = operation.intent.actor.signature
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
