"""What keeps an operation open, and the exact next commands for it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tfguard.model.evidence import EvidenceKind
from tfguard.model.finding import tainted_id
from tfguard.model.operation import ObservedObject, Operation, Outcome, Step
from tfguard.model.secrets import is_withheld


def next_actions(operation: Operation, command: str = "tfguard") -> tuple[str, ...]:
    """What to run next: what settles an open operation, and what keeps each object that it left tainted.

    `command` is how tfguard was called, `-chdir` included.
    """
    state = _state_option(operation.intent.argv)
    errored = operation.result.errored_state if operation.result else None
    if operation.result is None or (errored is not None and not errored.pushed):
        return (f"{command} recover{state}",)
    opened = [step for step in operation.steps if step.open]
    actions = [action for step in opened for action in _for_step(step, command, state)]
    adoptable = tuple(dict.fromkeys(name for step in opened for name in _adoptable(step)))
    if adoptable:
        actions.append(f"{command} import{state} --orphan {' '.join(adoptable)}")
    if operation.intent.command != "taint":  # which marks what the user wants to be replaced
        marked = [tainted_id(operation.lineage, step.address) for step in operation.steps if step.tainted]
        actions += [f"{command} orphans retain{state} {finding_id} --reason TEXT" for finding_id in marked]
    return tuple(dict.fromkeys(actions))


def _state_option(argv: Sequence[str]) -> str:
    """The run's own `-state`, without which its record is not found again."""
    found = ""
    for word, value in zip(argv, (*argv[1:], ""), strict=False):
        name, equals, given = word.removeprefix("-").partition("=")
        if word.startswith("-") and name in ("state", "-state"):
            found = given if equals else value
    return f" -state={shlex.quote(found)}" if found else ""


def what_lives(operation: Operation) -> list[str]:
    """A line for everything that keeps an operation open."""
    lines = [_line(step) for step in operation.steps if step.open or step.outcome is None]
    errored = operation.result.errored_state if operation.result else None
    if errored is not None and not errored.pushed:
        lines.append(f"{errored.path} has not been pushed: `tfguard recover`")
    return lines


def _line(step: Step) -> str:
    strays = [seen for seen in step.observed if not seen.in_state]
    names = ", ".join(f"{seen.import_id} ({seen.finding_id})" if seen.finding_id else seen.import_id for seen in strays)
    outcome = step.outcome.value if step.outcome else "not looked up"
    why = step.evidence[0].detail if step.evidence else ""
    return f"{step.address} is {outcome}: {names or why}"


def _adoptable(step: Step) -> tuple[str, ...]:
    """The finding of a step that can be adopted without a choice, if it has one; several go in one command."""
    strays = _strays(step)
    alone = step.outcome is Outcome.ORPHANED and len(strays) == 1 and len(strays[0].addresses) <= 1
    return (strays[0].finding_id or "",) if alone and step.action.creates and not is_withheld(step.address) else ()


def _strays(step: Step) -> list[ObservedObject]:
    return [seen for seen in step.observed if seen.finding_id and not seen.in_state]


def _for_step(step: Step, command: str, state: str) -> tuple[str, ...]:
    """The commands for a step, but for one that goes with others into one command."""
    strays = _strays(step)
    if _adoptable(step):
        return ()
    if step.outcome is Outcome.ORPHANED and len(strays) == 1 and len(strays[0].addresses) <= 1 and step.action.creates:
        return (f"{command} import{state} --orphan {strays[0].finding_id} --address ADDRESS",)  # it is withheld
    if strays:
        return (f"{command} orphans list{state}",)
    if any(item.kind in (EvidenceKind.NOT_LOOKED_FOR, EvidenceKind.SEVERAL_CANDIDATES) for item in step.evidence):
        # No later look will tell more: a person has to, with the engine's own import or with their word.
        address = shlex.quote(step.address)
        confirm = f"{command} recover{state} --confirm-absent {address} --reason TEXT"
        return (confirm,) if is_withheld(step.address) else (f"{command} import{state} {address} ID", confirm)
    return (f"{command} recover{state}",)
