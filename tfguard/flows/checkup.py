"""What `tfguard doctor` checks about a stack: state, record, and the right to list what the state holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tfguard.errors import TfguardError
from tfguard.flows.context import StackContext
from tfguard.flows.kept_steps import planned_steps
from tfguard.flows.looking import Looking
from tfguard.flows.providers import provider_for
from tfguard.model.cloud import cloud_of_source
from tfguard.model.config import Config
from tfguard.model.inventory import Listing
from tfguard.model.naming import first_of
from tfguard.model.operation import Step
from tfguard.model.plan import Action, Plan, ProviderConfig
from tfguard.model.state import EMPTY_STATE, StateSnapshot
from tfguard.reconcile.look import listings_for

_MOST_TYPES = 6


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
        checks.append(_failed("state read", error))
    checks.append(_record(context))
    return [*checks, *_rights(context, state)]


def _failed(name: str, error: TfguardError) -> Check:
    return Check(name, False, f"{error.what}; {error.advice}")


def _record(context: StackContext) -> Check:
    try:
        context.records.check_writable()
        opened = context.records.head().open_operations
        context.records.dispositions()
    except TfguardError as error:
        return _failed("record", error)
    if opened:
        return Check("record", False, f"{context.records.location}: not settled: {', '.join(opened)}; `tfguard status`")
    return Check("record", True, f"{context.records.location}: nothing open")


def _rights(context: StackContext, state: StateSnapshot | None) -> Iterator[Check]:
    """Whether everything can be listed that the state holds, that a plan would make, and that is open."""
    planned = context.plan_now()
    plan = planned if isinstance(planned, Plan) else None
    if plan is None:
        detail = f"the stack cannot be planned here ({planned}); only the types in its state are looked at"
        yield Check("plan", False, detail)
    steps = [*_held(state), *(planned_steps(plan, state or EMPTY_STATE) if plan else ()), *_open(context)]
    providers = plan.providers if plan else {}
    inventory, catalog = context.around.inventory, context.around.catalog
    config = context.around.config

    def asked(step: Step) -> ProviderConfig:
        provider = provider_for(step, providers, config)
        return provider if plan else as_scanned(provider, config)

    keys = {key: asked(step) for step in steps for key in listings_for(step, catalog) if inventory.covers(key[0])}
    yield from list_checks(listing for _, listing in sorted(Looking(context.around, keys).result().items()))
    for kind in sorted(
        {step.type for step in steps if not catalog.get(step.type) and not catalog.state_only(step.provider)}
    ):
        yield Check("list", True, f"{kind}: not in the catalogue; a stray object of it goes unseen")


def list_checks(listings: Iterable[Listing]) -> Iterator[Check]:
    """What these lists say; those that one reason is in the way of are one check, after the others."""
    failed: dict[tuple[str, str], list[str]] = {}
    for listing in listings:
        if listing.gap is None:
            detail = f"{listing.type} in {listing.scope}: {len(listing.objects)} objects"
            yield Check("list", listing.complete, detail)
        else:
            failed.setdefault((str(listing.scope), listing.gap.reason), []).append(listing.type)
    for (scope, reason), types in failed.items():
        yield Check("list", False, f"{first_of(types, _MOST_TYPES)} in {scope}: {reason}")


def as_scanned(provider: ProviderConfig, config: Config) -> ProviderConfig:
    """The provider configuration; where it names no account, as in a stack that cannot be planned, with the
    organization or folder that a scan looks at."""
    cloud = cloud_of_source(provider.source)
    above = config.scan.above(cloud.name) if cloud else ()
    if cloud is None or not above or cloud.guard in provider.settings:
        return provider
    setting, number = above[0]
    return replace(provider, settings={**provider.settings, setting: number})


def _held(state: StateSnapshot | None) -> Iterator[Step]:
    for instance in state.instances if state else ():
        yield Step("", instance.type, instance.provider, Action.READ, provider_key=instance.provider_key)


def _open(context: StackContext) -> Iterator[Step]:
    try:
        for operation in context.records.open_operations():
            yield from operation.steps
    except TfguardError:
        return  # the check of the record says it
