"""What `tfguard doctor` checks about a stack: state, record, and the right to list what the state holds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tfguard.errors import TfguardError
from tfguard.flows.context import StackContext
from tfguard.flows.verify import Looking, provider_for
from tfguard.model.operation import Step
from tfguard.model.plan import Action, ProviderConfig
from tfguard.model.state import StateSnapshot


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: whether it is well, and what was seen."""

    name: str
    ok: bool
    detail: str


def check_stack(context: StackContext) -> list[Check]:
    """Look at the stack without changing anything; a failed check never stops the next one."""
    checks = [Check("state", True, f"{context.stack.location} (workspace {context.stack.workspace})")]
    state: StateSnapshot | None = None
    try:
        state = context.engine.pull_state()
        held = f"serial {state.serial}, {len(state.instances)} objects" if state.lineage else "no state yet"
        checks.append(Check("state read", True, held))
    except TfguardError as error:
        checks.append(Check("state read", False, f"{error.what}; {error.advice}"))
    checks.append(_record(context))
    return [*checks, *(_lists(context, state) if state else ())]


def _record(context: StackContext) -> Check:
    try:
        head = context.records.head()
    except TfguardError as error:
        return Check("record", False, f"{error.what}; {error.advice}")
    opened = head.open_operations
    detail = f"{context.records.location}: " + (f"not settled: {', '.join(opened)}" if opened else "nothing open")
    return Check("record", not opened, detail)


def _lists(context: StackContext, state: StateSnapshot) -> Iterator[Check]:
    inventory = context.around.inventory
    wanted = {
        (instance.type, instance.provider_key): instance.provider
        for instance in state.instances
        if inventory.covers(instance.type)
    }
    if not wanted:
        return
    providers = _providers(context)
    keys = {}
    for (kind, key), source in wanted.items():
        step = Step("", kind, source, Action.READ, provider_key=key)
        keys[(kind, key, "")] = provider_for(step, providers, context.around.config)
    for listed, listing in sorted(Looking(context.around, keys).result().items()):
        where = f"{listed[0]} in {listing.scope}"
        if listing.gap:
            yield Check("list", False, f"{where}: {listing.gap.reason}")
        else:
            yield Check("list", True, f"{where}: {len(listing.objects)} objects")


def _providers(context: StackContext) -> Mapping[str, ProviderConfig]:
    with tempfile.TemporaryDirectory(prefix="tfguard-") as folder:
        plan_file = Path(folder) / "plan"
        if context.engine.quiet_plan(("-refresh=false",), plan_file) is not None:
            return {}
        return context.engine.show_plan(plan_file).providers
