"""The exact next commands for an operation. Pure."""

from __future__ import annotations

import shlex

from tfguard.model.evidence import EvidenceKind
from tfguard.model.operation import Operation, Outcome, Step


def next_actions(operation: Operation, command: str = "tfguard") -> tuple[str, ...]:
    """What to run next; nothing for a settled operation. `command` is how tfguard was called, `-chdir` included."""
    if not operation.open:
        return ()
    errored = operation.result.errored_state if operation.result else None
    if operation.result is None or (errored is not None and not errored.pushed):
        return (f"{command} recover",)
    actions = [action for step in operation.steps if step.open for action in _for_step(step, command)]
    return tuple(dict.fromkeys(actions))


def _for_step(step: Step, command: str) -> tuple[str, ...]:
    strays = [seen for seen in step.observed if seen.finding_id and not seen.in_state]
    if step.outcome is Outcome.ORPHANED and len(strays) == 1 and len(strays[0].addresses) <= 1 and step.action.creates:
        return (f"{command} import --orphan {strays[0].finding_id}",)
    if strays:
        return (f"{command} orphans list",)
    if any(item.kind in (EvidenceKind.NOT_LOOKED_FOR, EvidenceKind.SEVERAL_CANDIDATES) for item in step.evidence):
        # No later look will tell more: a person has to, with the engine's own import or with their word.
        address = shlex.quote(step.address)
        return (f"{command} import {address} ID", f"{command} recover --confirm-absent {address} --reason TEXT")
    return (f"{command} recover",)
