"""What a run keeps out of everything that it writes: marked values, and keys of addresses that carry one (rule 10).

An instance key that may not be written becomes a mask, made with a key that lies in the stack's folder of runs and in
no record (docs/decisions/0012).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tfguard.flows.kept_steps import without_secrets
from tfguard.model.operation import BaselineEntry, Intent, Operation, RecordedProvider
from tfguard.model.plan import Plan
from tfguard.model.secrets import (
    WITHHELD_PLACE,
    WITHHELD_WORD,
    Withholding,
    is_withheld,
    keys_in,
    masks_in,
    without_keys,
)
from tfguard.model.state import StateInstance, StateSnapshot

_FILE = "masks"


def of_plan(plan: Plan, before: StateSnapshot, folder: Path) -> Withholding:
    """What a run keeps back that applies a plan to this state; `folder` is where the stack's run folders lie."""
    hidden = replace(_kept(folder), secrets=plan.secrets | before.secrets)
    addresses = [hidden.address(change.address) for change in plan.changes]
    masks = {mask for address in addresses for mask in masks_in(address)}
    _remember(folder, hidden, (masks - hidden.masks) | (set(map(hidden.digest, plan.copies)) - hidden.values))
    silent = frozenset(change.address for change in plan.changes if change.silent)
    return replace(hidden, silent=silent | frozenset(map(hidden.address, silent)))


def of_state(state: StateSnapshot | None, named: Sequence[str], last: Operation | None, folder: Path) -> Withholding:
    """What a command without a plan keeps back: the state's marked values, and what was kept back before.

    `named` are the addresses on its command line, `last` is the stack's newest operation, whose record tells elsewhere
    too what of its objects was kept back.
    """
    instances = state.instances if state else ()
    named = [*named, *(held.address for held in instances)]
    hidden = also_hiding(_kept(folder), *((state,) if state else ()))
    if last is not None:
        hidden = replace(hidden, secrets=hidden.secrets | _kept_back_by(last, instances, named, hidden))
    addresses = map(hidden.address, named)
    _remember(folder, hidden, {mask for address in addresses for mask in masks_in(address)} - hidden.masks)
    return hidden


def of_record(operation: Operation) -> tuple[Withholding, bool]:
    """What tells the masked addresses of an operation again, and whether anything here does.

    Only addresses that the record masks are masked: what is marked by now was not known then.
    """
    intent = operation.intent
    names = [*(step.address for step in operation.steps), *(step.address for step in intent.steps), *intent.moved]
    masks = frozenset(mask for name in names for mask in masks_in(name))
    known = _kept(Path(intent.run_directory).parent) if intent.run_directory else Withholding()
    # A mask that this folder does not know was made with another folder's key.
    told = masks <= known.masks and WITHHELD_WORD not in names
    return replace(known, masks=masks if told else frozenset()), told


def also_hiding(hidden: Withholding, *states: StateSnapshot) -> Withholding:
    """What may not be written once these states are known: the providers' own secrets come up in them first."""
    copies = {
        name
        for state in states
        for held in state.instances
        for name in (held.identity.values() if hidden.values else ())
        if hidden.digest(name) in hidden.values
    }
    return replace(hidden, secrets=hidden.secrets.union(copies, *(state.secrets for state in states)))


def withheld_texts(texts: Sequence[str], hidden: Withholding) -> tuple[str, ...]:
    """Gaps as they may be written: that something was kept back is said."""
    return tuple(dict.fromkeys(hidden.text(text, "a place whose name is withheld: not looked at") for text in texts))


def _kept_back_by(
    last: Operation, instances: Iterable[StateInstance], named: Iterable[str], hidden: Withholding
) -> frozenset[str]:
    """The values that an earlier operation kept back, found by the place where it did."""
    withheld = {step.address: set(step.withheld) for step in last.steps}
    # Of a resource with a mask that cannot be told again, every key counts that was not written in clear.
    masked: dict[str, set[str]] = {}
    for address, names in withheld.items():
        if not masks_in(address) <= hidden.masks:
            masked.setdefault(without_keys(address), set()).update(names)
    keys = {key for name in named if without_keys(name) in masked and name not in withheld for key in keys_in(name)}
    copies: set[str] = set()
    for held in instances:
        names = withheld.get(hidden.address(held.address)) or masked.get(without_keys(held.address), set())
        copies.update(value for name, value in held.identity.items() if name in names)
    return frozenset(keys | copies)


def remember_copies(state: StateSnapshot, hidden: Withholding, folder: Path) -> None:
    """Note which names in a state carry a marked value: a command without a plan cannot tell that any more."""
    names = {name for held in state.instances for name in held.identity.values() if hidden.tells(name)}
    _remember(folder, hidden, set(map(hidden.digest, names)) - hidden.values)


def _kept(folder: Path) -> Withholding:
    """The stack's own key, and what was kept back with it before; another key where there is none."""
    try:
        first, *known = (folder / _FILE).read_text().splitlines()
        key = bytes.fromhex(first)
    except (OSError, ValueError):
        return Withholding()
    masks = frozenset(line for line in known if is_withheld(line))
    return Withholding(key=key, masks=masks, values=frozenset(known) - masks)


def _remember(folder: Path, hidden: Withholding, added: Collection[str]) -> None:
    """Add to what is kept in the private folder; nothing is where nothing was kept back. What cannot be kept there
    serves this run alone."""
    if not added:
        return
    path = folder / _FILE
    with suppress(OSError):
        begun = path.exists()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write("".join(f"{line}\n" for line in (*(() if begun else (hidden.key.hex(),)), *sorted(added))))


def withheld_intent(intent: Intent, hidden: Withholding) -> Intent:
    """An intent as it may be written. Who ran it and where comes from the machine and not from the plan, and stays."""
    named = len(intent.command.split())
    return replace(
        intent,
        argv=(*intent.argv[:named], *map(hidden.word, intent.argv[named:])),
        steps=without_secrets(intent.steps, hidden),
        baseline=tuple(_entry(entry, hidden) for entry in intent.baseline),
        providers=tuple(_provider(provider, hidden) for provider in intent.providers),
        targets=tuple(map(hidden.address, intent.targets)),
        var_files=tuple(name for name in intent.var_files if not hidden.tells(name)),
        on_gap_reason=hidden.text(intent.on_gap_reason, WITHHELD_WORD) if intent.on_gap_reason else None,
        moved=tuple(map(hidden.address, intent.moved)),
    )


def _entry(entry: BaselineEntry, hidden: Withholding) -> BaselineEntry:
    return replace(
        entry,
        account=hidden.text(entry.account, WITHHELD_PLACE) if entry.account else entry.account,
        region=hidden.text(entry.region, WITHHELD_PLACE),
        asked_region=hidden.text(entry.asked_region, WITHHELD_PLACE),
        reason=hidden.text(entry.reason, WITHHELD_WORD) if entry.reason else entry.reason,
    )


def _provider(provider: RecordedProvider, hidden: Withholding) -> RecordedProvider:
    kept = {name: value for name, value in provider.settings.items() if not hidden.tells(value)}
    return replace(
        provider,
        key=hidden.address(provider.key),
        settings=kept,
        partial=provider.partial or len(kept) < len(provider.settings),
    )
