"""The exact next commands for an operation. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tfguard.model.evidence import EvidenceKind
from tfguard.model.finding import tainted_id
from tfguard.model.operation import Operation, Outcome, Step
from tfguard.model.secrets import is_withheld


def next_actions(operation: Operation, command: str = "tfguard") -> tuple[str, ...]:
    """What to run next: what settles an open operation, and what keeps each object that it left tainted.

    `command` is how tfguard was called, `-chdir` included.
    """
    state = _state_option(operation.intent.argv)
    errored = operation.result.errored_state if operation.result else None
    if operation.result is None or (errored is not None and not errored.pushed):
        return (f"{command} recover{state}",)
    actions = [action for step in operation.steps if step.open for action in _for_step(step, command, state)]
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


def _for_step(step: Step, command: str, state: str) -> tuple[str, ...]:
    strays = [seen for seen in step.observed if seen.finding_id and not seen.in_state]
    if step.outcome is Outcome.ORPHANED and len(strays) == 1 and len(strays[0].addresses) <= 1 and step.action.creates:
        where = " --address ADDRESS" if is_withheld(step.address) else ""
        return (f"{command} import{state} --orphan {strays[0].finding_id}{where}",)
    if strays:
        return (f"{command} orphans list{state}",)
    if any(item.kind in (EvidenceKind.NOT_LOOKED_FOR, EvidenceKind.SEVERAL_CANDIDATES) for item in step.evidence):
        # No later look will tell more: a person has to, with the engine's own import or with their word.
        address = shlex.quote(step.address)
        confirm = f"{command} recover{state} --confirm-absent {address} --reason TEXT"
        return (confirm,) if is_withheld(step.address) else (f"{command} import{state} {address} ID", confirm)
    return (f"{command} recover{state}",)
