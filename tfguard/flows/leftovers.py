"""What closed operations left behind and nobody answers for any more.

A destroy must not call the stack clean, and an apply would make a second one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfguard.flows.context import StackContext
from tfguard.flows.history import findings
from tfguard.flows.known_states import is_held
from tfguard.flows.stray_findings import OwnOperations
from tfguard.flows.stray_look import Waits, provider_of, surely_now
from tfguard.flows.tainted import ReadState
from tfguard.model.cloud import cloud_named
from tfguard.model.config import OnGap
from tfguard.model.finding import Finding
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Step, StepStatus
from tfguard.model.plan import Action, ProviderConfig
from tfguard.model.state import EMPTY_STATE
from tfguard.reconcile.disposal import Refusal


@dataclass(frozen=True, slots=True)
class Leftover:
    """A finding whose operation is closed, whose last decision does not hold, and that is not known to be gone.

    `object` is as it is now, where that was looked at; `provider` is whom to ask, None where nobody knows.
    """

    finding: Finding
    object: CloudObject
    provider: ProviderConfig | None

    @property
    def line(self) -> str:
        """What it is, in one line."""
        return lapsed_line(self.finding)


def lapsed_line(finding: Finding) -> str:
    """What a finding's operation left, and why no decision holds for it any more, in one line."""
    found, why = finding.object, finding.evidence[-1].detail if finding.evidence else ""
    left = f"{finding.address or found.type} left {found.import_id}" if found else f"{finding.address} left an object"
    return f"{left} ({finding.id}): {why}"


def leftovers(context: StackContext, on_gap: OnGap, arguments: tuple[str, ...]) -> tuple[Leftover, ...]:
    """What this stack's closed operations left behind, but for what its state has by now. Unless `on_gap` says to stop
    at once, each is looked for, and left out where it is gone.

    `arguments` are the engine's `-var` and `-var-file`. Raises `RecordError` when the record cannot be read, and as
    `StackContext.state_before` does where there is something that the state could have.
    """
    undecided = lapsed_findings(context, context.state_before)
    if on_gap is OnGap.BLOCK:
        return tuple(Leftover(finding, found, None) for finding, found in undecided)
    own = OwnOperations(context.records)
    looked = (_looked_for(context, own, finding, found, arguments) for finding, found in undecided)
    return tuple(one for one in looked if one is not None)


def lapsed_findings(context: StackContext, read_state: ReadState) -> Sequence[tuple[Finding, CloudObject]]:
    """The findings, with their objects, whose operation is closed and whose last decision does not hold; without what
    the state has. Nothing is looked up, and the state is not read where there are none.

    Raises `RecordError` when the record cannot be read, and as `read_state` does.
    """
    if not context.records.dispositions():
        return ()  # only a decision closes an operation beside what it left
    opened = context.records.head().open_operations
    undecided = [
        (finding, finding.object)
        for finding in findings(context.records)[0]
        if finding.needs_action and finding.object and finding.operation_id not in opened
    ]
    state = read_state() if undecided else EMPTY_STATE
    return [(finding, found) for finding, found in undecided if not is_held(context.around.catalog, state, found)]


def _looked_for(
    context: StackContext, own: OwnOperations, finding: Finding, found: CloudObject, arguments: tuple[str, ...]
) -> Leftover | None:
    provider = provider_of(context, own, finding, found, arguments, lambda _: None)
    now = surely_now(context, own, finding, found, provider) if provider else found
    if now is None or isinstance(now, Waits):
        context.console.say(f"{found.type} {found.import_id} ({finding.id}) is gone by now")
        return None
    return Leftover(finding, found if isinstance(now, Refusal) else now, provider)


def steps_to_look_for(context: StackContext, left: Sequence[Leftover]) -> tuple[Step, ...]:
    """A step for each leftover that no engine takes: it is looked for at the end, and keeps the operation open."""
    return tuple(_step(context, one) for one in left)


def _step(context: StackContext, one: Leftover) -> Step:
    found, kind = one.object, context.around.catalog.get(one.object.type)
    cloud = cloud_named(found.cloud)
    told = {"id": found.id, "arn": found.arn, "name": found.name, **found.identity}
    return Step(
        address=one.finding.address or next(iter(one.finding.addresses), one.finding.id),
        type=found.type,
        provider=one.provider.source if one.provider else "",
        action=Action.NOOP,
        status=StepStatus.ERROR,
        before={name: value for name, value in told.items() if value and kind and name in kind.attributes},
        cloud=found.cloud,
        account=found.account,
        region=None if found.region == "global" else found.region,
        provider_key=one.provider.key if one.provider else "",
        own_account=found.account if cloud is not None and cloud.place_is_account else None,
    )


def providers_to_ask(left: Sequence[Leftover]) -> Mapping[str, ProviderConfig]:
    """The provider configurations that `steps_to_look_for` name."""
    return {one.provider.key: one.provider for one in left if one.provider}
