"""How a blueprint's request stands, as its owner sees it: what `blueprint status` shows as text, JSON and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tfguard.model.blueprint import ProbeKind, StepKind
from tfguard.model.blueprint_decision import DecisionKind
from tfguard.model.blueprint_request import Activity, RequestState, StateChange
from tfguard.model.operation import StepStatus


@dataclass(frozen=True, slots=True)
class ObjectView:
    """An object of a step. `disposition` is what was decided about it, or became of it: `retain` (with `until` and
    `owner`), `destroy`, `import`; None while it simply belongs to its step."""

    address: str
    type: str
    desired: Mapping[str, str]
    observed_id: str | None
    created_at: datetime | None
    cost_owner: str
    disposition: str | None
    owner: str
    until: datetime | None
    stateful: bool
    finding: str | None


@dataclass(frozen=True, slots=True)
class PlanOutline:
    """What the engine plans for a stack, counted as it counts: what is `replaced` is destroyed and added. `deleted` and
    `replaced` are addresses. It was planned by the outputs that the steps of `by_outputs_of` have now, and these are
    applied before. With `untold`, which says why, nothing was planned; `refused`: though its turn has come."""

    add: int = 0
    change: int = 0
    destroy: int = 0
    deleted: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    by_outputs_of: tuple[str, ...] = ()
    untold: str = ""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class StepView:
    """A step. `kind` is None for one that the request has made and the blueprint does not have any more.

    `blocked_by` are the nearest needs that a pending step waits for, `held_up_by` the steps at the root of that, which
    wait for no other. `decision` and `reason` tell what is done next, `asks` what a person has to do before;
    `why` is the record's last word, `failure` why its work last failed, also where it was undone since. `interrupted`:
    it was running, and no tfguard is at work any more. `depth` counts the longest way of needs before it. `plan` is
    what the engine would do, where it was asked.
    """

    id: str
    kind: StepKind | None
    status: StepStatus
    needs: tuple[str, ...]
    blocked_by: tuple[str, ...]
    held_up_by: tuple[str, ...]
    owned_by: str | None
    operation_id: str | None
    decision: DecisionKind | None
    reason: str
    asks: str
    why: str
    failure: str
    activity: Activity | None
    attempts: int
    began_at: datetime | None
    since: datetime | None
    interrupted: bool
    owner: str
    cost_owner: str
    until: datetime | None
    overdue: bool
    stateful: bool
    depth: int
    objects: tuple[ObjectView, ...]
    plan: PlanOutline | None = None


@dataclass(frozen=True, slots=True)
class ProbeView:
    """A probe of `ready:`: `pending` until it was asked, then what the last look said."""

    name: str
    kind: ProbeKind
    status: StepStatus
    detail: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class NextAction:
    """A command that can be given now, and what it does."""

    command: str
    why: str


@dataclass(frozen=True, slots=True)
class BlueprintView:
    """A request at the moment `now`; without a request (`request_id` and `state` are None) what would be made.

    `live`: a tfguard is at work on it. `stuck`: it is in a state that a tfguard has to bring to an end, and none is at
    work; `moved_at` is its last sign of life. A partial failure is to be repaired by `repair_by`. `overdue`: it was
    not, or a step is kept beyond its date. `ready_now`: `Ready`, each step is done, and each probe's last look said so;
    `changed_steps` are those that are not as they were when it became Ready.
    `notes` are for a person.
    """

    blueprint: str
    file: str
    now: datetime
    request_id: str | None
    state: RequestState | None
    created_at: datetime | None
    since: datetime | None
    failing_since: datetime | None
    repair_by: datetime | None
    moved_at: datetime | None
    live: bool
    stuck: bool
    overdue: bool
    ready_now: bool
    failing_probes: tuple[str, ...]
    changed_steps: tuple[str, ...]
    owner: str
    cost_owner: str
    notes: tuple[str, ...]
    steps: tuple[StepView, ...]
    probes: tuple[ProbeView, ...]
    transitions: tuple[StateChange, ...]
    next_actions: tuple[NextAction, ...]


@dataclass(frozen=True, slots=True)
class ListedRequest:
    """A request among the others of its blueprint. `ended_at` is when it was over; `archived`: packed away. With a
    `trouble` its record is damaged, and nothing else is known. `ready_now`: it is Ready, and nothing that was last seen
    of it speaks against that."""

    request_id: str
    state: RequestState | None = None
    owner: str = ""
    cost_owner: str = ""
    actor: str = ""
    created_at: datetime | None = None
    ended_at: datetime | None = None
    archived: bool = False
    trouble: str = ""
    ready_now: bool = False


@dataclass(frozen=True, slots=True)
class BlueprintCounts:
    """What an alert asks of a blueprint. Ages are in seconds, and 0 where there is nothing of that kind.

    `duplicates` counts ids that two steps or addresses have, and addresses or planned identities with several ids.
    `ready_not_now`: it is Ready, and what was last seen of it says otherwise.
    """

    blueprint: str
    file: str
    state: RequestState | None
    state_age: float = 0
    stuck: bool = False
    stuck_age: float = 0
    duplicates: int = 0
    partial_failure_overdue: bool = False
    overdue_age: float = 0
    retained_overdue: int = 0
    ready_probes_failing: int = 0
    ready_not_now: bool = False
    steps: Mapping[StepStatus, int] = field(default_factory=dict)
