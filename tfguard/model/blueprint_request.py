"""A blueprint's request: what was asked for, how far each step is, and every change of either, by whom and why.

The request is the sum of its events. Each is written before what it announces is called, and after it has answered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from tfguard.model.operation import StepStatus


class RequestState(StrEnum):
    """How a request stands."""

    REQUESTED = "Requested"
    VALIDATED = "Validated"
    PROVISIONING = "Provisioning"
    READY = "Ready"
    PARTIAL_FAILURE = "PartialFailure"
    REPAIRING = "Repairing"
    RETAINED_FOR_REVIEW = "RetainedForReview"
    CANCEL_PENDING = "CancelPending"
    SETTLED = "Settled"
    CLEANED = "Cleaned"


_S = RequestState
TRANSITIONS: Mapping[RequestState, Collection[RequestState]] = {
    _S.REQUESTED: (_S.VALIDATED, _S.CANCEL_PENDING),
    _S.VALIDATED: (_S.PROVISIONING, _S.CANCEL_PENDING),
    _S.PROVISIONING: (_S.READY, _S.PARTIAL_FAILURE, _S.CANCEL_PENDING),
    _S.READY: (_S.REPAIRING, _S.CANCEL_PENDING),
    _S.PARTIAL_FAILURE: (_S.REPAIRING, _S.RETAINED_FOR_REVIEW, _S.CANCEL_PENDING),
    _S.REPAIRING: (_S.READY, _S.PARTIAL_FAILURE, _S.CANCEL_PENDING),
    _S.RETAINED_FOR_REVIEW: (_S.REPAIRING, _S.CLEANED, _S.CANCEL_PENDING),
    _S.CANCEL_PENDING: (_S.SETTLED,),
    _S.SETTLED: (_S.CLEANED, _S.RETAINED_FOR_REVIEW),
    _S.CLEANED: (),
}
"""Which state may follow which. A destroy is a cancel of what stands, and can be asked for in every state but one."""


_FAILING = (_S.PARTIAL_FAILURE, _S.REPAIRING)


UNSEEN = "unseen"
"""The disposition of an object that this request made, and that the last look did not find."""


class Activity(StrEnum):
    """What is called for a step."""

    APPLY = "apply"
    RECOVER = "recover"
    ADOPT = "adopt"
    RUN = "run"
    CHECK = "check"
    PROBE = "probe"
    VERIFY = "verify"
    COMPENSATE = "compensate"
    DESTROY = "destroy"
    RETAIN = "retain"

    @property
    def undoes(self) -> bool:
        """Whether it takes a step's work away."""
        return self in (Activity.COMPENSATE, Activity.DESTROY)


_WORK = (Activity.APPLY, Activity.RUN, Activity.PROBE)


@dataclass(frozen=True, slots=True)
class BlueprintObject:
    """An object that a step made, as the step's own operation record tells it.

    `desired` is the identity that was planned, `observed_id` what the provider calls it; None where none was seen.
    """

    address: str
    type: str
    desired: Mapping[str, str] = field(default_factory=dict)
    observed_id: str | None = None
    created_at: datetime | None = None
    stateful: bool = False
    finding: str | None = None
    disposition: str | None = None

    @property
    def gone(self) -> bool:
        """Whether it was taken away, and verified to be gone."""
        return self.disposition == StepStatus.DESTROYED.value


@dataclass(frozen=True, slots=True)
class RequestIntent:
    """What was asked for. Written once, before anything else.

    `blueprint_digest` is the hash of the file's text, which is kept beside. Sensitive inputs stand in `inputs` as what
    refers to them.
    """

    request_id: str
    blueprint: str
    blueprint_file: str
    blueprint_digest: str
    created_at: datetime
    actor: str
    owner: str
    cost_owner: str
    inputs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """One line of a request's journal: a new `state`, or the new `status` of a `step` or a `probe`.

    `activity` is what is called, or has answered. `objects` are all that a step has by now (None: not looked at).
    `until` and `owner` belong to what is retained. `inputs` and `blueprint_digest` are those that hold from here on.
    `skipped` are the checks of a preflight that somebody left out, each with the reason. `work` tells what the step's
    work was done from, where that has come to a good end; `missing` are addresses that the provider does not have.
    `exit_code` is how the call of `activity` ended, where it told that itself: not by a signal, nor a timeout. `number`
    counts the events of whoever holds the request, from 1, so that a lost line is noticed. `found`: work that
    begins, or is called done, was there already, or some of it.
    """

    at: datetime
    actor: str
    why: str
    state: RequestState | None = None
    step: str | None = None
    probe: str | None = None
    status: StepStatus | None = None
    activity: Activity | None = None
    operation_id: str | None = None
    provider_ids: tuple[str, ...] = ()
    objects: tuple[BlueprintObject, ...] | None = None
    until: datetime | None = None
    owner: str = ""
    inputs: Mapping[str, object] | None = None
    blueprint_digest: str | None = None
    skipped: Mapping[str, str] | None = None
    work: str | None = None
    missing: tuple[str, ...] = ()
    exit_code: int | None = None
    number: int | None = None
    found: bool = False


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What a request's journal says of one step. `attempts` counts how often its work was begun.

    `made`: its work was begun, and was not undone since. `done`: it came to its end, and nothing was said against that.
    `found`: some of that, or all, was there before this request began it.
    `until` and `owner` are those of its retention, which lasts until it is gone or disposed of, or the request `Ready`.

    `worked_at` is when its work last came to a good end, done from what `work` tells, and `stood` what it had made then
    (address and id). `renewed_at` is when it last made something anew that had stood before, `remade_at` when it did
    so with everything. Since then, `missing` are addresses that the provider does not have, and `undone` tells that
    its work was taken away.

    `undo` is what was begun to take its work away, and is not known to have come to a good end, whatever was called
    for the step since: a compensation is a command, any other a destroy. `exit_code` is how a compensation ended by its
    own word, None where that is not known. `failure` is why its work last failed, until that is begun again: also where
    the work was undone since.
    """

    status: StepStatus = StepStatus.PENDING
    activity: Activity | None = None
    since: datetime | None = None
    began_at: datetime | None = None
    attempts: int = 0
    why: str = ""
    operation_id: str | None = None
    objects: tuple[BlueprintObject, ...] = ()
    until: datetime | None = None
    owner: str = ""
    made: bool = False
    found: bool = False
    done: bool = False
    work: str | None = None
    worked_at: datetime | None = None
    renewed_at: datetime | None = None
    remade_at: datetime | None = None
    stood: frozenset[tuple[str, str | None]] = frozenset()
    missing: frozenset[str] = frozenset()
    undone: bool = False
    undo: Activity | None = None
    exit_code: int | None = None
    failure: str = ""

    @property
    def standing(self) -> tuple[BlueprintObject, ...]:
        """The objects that are not known to be gone."""
        return tuple(found for found in self.objects if not found.gone)

    @property
    def at_its_end(self) -> bool:
        """Whether its work came to a good end, and nothing was begun or taken away since."""
        begun = self.began_at is not None and self.worked_at is not None and self.began_at > self.worked_at
        return self.worked_at is not None and not begun and not self.undone

    @property
    def undoing(self) -> bool:
        """Whether its work was being taken away, and is not known to be gone."""
        return self.undo is not None

    @property
    def retained(self) -> bool:
        """Whether it is kept for somebody, also while it is repaired."""
        return self.status is StepStatus.RETAINED or self.until is not None

    def overdue(self, now: datetime) -> bool:
        """Whether it is retained beyond its date."""
        return self.until is not None and self.until <= now


@dataclass(frozen=True, slots=True)
class ProbeRecord:
    """What the last look of a probe said: `ok` or `error`, and when."""

    status: StepStatus
    at: datetime
    detail: str


@dataclass(frozen=True, slots=True)
class StateChange:
    """One transition of a request: `step` is the one that caused it, where one did."""

    before: RequestState | None
    after: RequestState
    at: datetime
    actor: str
    why: str
    step: str | None = None
    provider_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A request as its events tell it.

    `cut` counts lines that were lost while they were written: something happened that is not known. `changed_at` is
    when its inputs or its blueprint last changed. `skipped` are the checks that its last preflight left out, and why.
    `stood` are the steps that stood when it was last Ready, or were kept for a review, and were not taken away since.
    """

    intent: RequestIntent
    state: RequestState
    steps: Mapping[str, StepRecord]
    probes: Mapping[str, ProbeRecord]
    transitions: tuple[StateChange, ...]
    inputs: Mapping[str, object]
    blueprint_digest: str
    cut: int = 0
    changed_at: datetime | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
    events: int = 0
    stood: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """The request's id."""
        return self.intent.request_id

    @property
    def since(self) -> datetime:
        """When it came into its state."""
        return self.transitions[-1].at if self.transitions else self.intent.created_at

    @property
    def terminal(self) -> bool:
        """Whether nothing of it can change any more."""
        return not TRANSITIONS[self.state]

    def step(self, name: str) -> StepRecord:
        """What is known of a step; one that was never begun is pending."""
        return self.steps.get(name, StepRecord())

    def after(self, event: RequestEvent) -> Request:
        """The request after one more event. Raises `ValueError` for a transition that is not allowed, and for an event
        before which another is missing."""
        request = self
        if event.number is not None:
            if event.number > self.events + 1:
                raise ValueError(f"event {self.events + 1} is missing")
            request = replace(request, events=max(self.events, event.number))
        if event.state is not None:
            if event.state not in TRANSITIONS[self.state]:
                raise ValueError(f"{self.state.value} is followed by {event.state.value}, which is not allowed")
            change = StateChange(
                self.state, event.state, event.at, event.actor, event.why, event.step, event.provider_ids
            )
            request = replace(request, state=event.state, transitions=(*self.transitions, change))
            if event.state is RequestState.READY:
                steps = {name: replace(record, until=None, owner="") for name, record in self.steps.items()}
                stood = frozenset(name for name, record in steps.items() if record.made)
                request = replace(request, steps=steps, stood=stood)
        elif event.step is not None and event.status is not None:
            record = _after(self.step(event.step), event)
            kept = {event.step} if record.status is StepStatus.RETAINED else set[str]()
            stood = self.stood | kept if record.made else self.stood - {event.step}
            request = replace(request, steps={**self.steps, event.step: record}, stood=stood)
        elif event.probe is not None and event.status is not None:
            seen = ProbeRecord(event.status, event.at, event.why)
            request = replace(request, probes={**self.probes, event.probe: seen})
        if event.inputs is not None or event.blueprint_digest is not None:
            request = replace(
                request,
                inputs=self.inputs if event.inputs is None else event.inputs,
                blueprint_digest=event.blueprint_digest or self.blueprint_digest,
                changed_at=event.at,
            )
        if event.skipped is not None:
            request = replace(request, skipped=event.skipped)
        return request

    @property
    def failing_since(self) -> datetime | None:
        """When the request last became a partial failure that no `Ready` has ended since: a repair that fails again
        does not begin a new window."""
        found = None
        for change in reversed(self.transitions):
            if change.after not in _FAILING:
                break
            found = change.at if change.after is RequestState.PARTIAL_FAILURE else found
        return found

    @property
    def failing_probes(self) -> Sequence[str]:
        """The probes whose last look failed."""
        return tuple(name for name, probe in self.probes.items() if probe.status is not StepStatus.OK)


def fold(intent: RequestIntent, events: Iterable[RequestEvent], cut: int = 0) -> Request:
    """The request that these events add up to, oldest first. Raises `ValueError` for a transition that is not allowed:
    the journal is not what tfguard wrote."""
    state = RequestState.REQUESTED
    asked = StateChange(None, state, intent.created_at, intent.actor, "asked for")
    request = Request(intent, state, {}, {}, (asked,), intent.inputs, intent.blueprint_digest, cut)
    for event in events:
        request = request.after(event)
    return request


def _after(record: StepRecord, event: RequestEvent) -> StepRecord:
    assert event.status is not None
    running = event.status is StepStatus.RUNNING
    gone = event.status in (StepStatus.DESTROYED, StepStatus.ABSENT)
    retained = event.status is StepStatus.RETAINED
    # What is called is announced first: an error without that made nothing. Asking whether something is done, and
    # settling what somebody else has left open, does none of its work, either; that it is done says that it was made.
    working = event.activity is not None and (event.activity in _WORK or event.activity.undoes)
    done = event.status is StepStatus.OK
    made = not gone and (record.made or done or (running and working))
    # A retention holds until the step is gone, or somebody disposes of it; `Ready` ends it, too.
    ended = gone or (running and event.activity is not None and event.activity.undoes)
    undo = _undo(record, event)
    after = replace(
        record,
        status=event.status,
        activity=event.activity or record.activity,
        since=event.at,
        began_at=event.at if running and record.status is not StepStatus.RUNNING else record.began_at,
        attempts=record.attempts + (running and event.activity in _WORK),
        why=event.why,
        operation_id=event.operation_id or record.operation_id,
        objects=record.objects if event.objects is None else event.objects,
        until=event.until if retained else None if ended else record.until,
        owner=event.owner if retained else "" if ended else record.owner,
        made=made,
        found=made and (record.found if record.made else event.found),
        done=done or (retained and record.done),
        missing=frozenset() if done else record.missing | frozenset(event.missing),
        undone=gone or record.undone,
        undo=undo,
        exit_code=_exit_code(record, event) if undo is not None else None,
        failure=_failure(record, event),
    )
    return after if event.work is None else _worked(record, after, event)


def _undo(record: StepRecord, event: RequestEvent) -> Activity | None:
    """What was begun to take a step's work away, and has not come to a good end, after one more event.

    It is begun where it is announced, and nothing but its own end ends that: an error of something else does not.
    """
    running = event.status is StepStatus.RUNNING
    if event.status in (StepStatus.DESTROYED, StepStatus.ABSENT) or (running and event.activity in _WORK):
        return None
    if event.activity is Activity.COMPENSATE and event.exit_code == 0:
        return None
    if event.status is StepStatus.RETAINED and record.undo is Activity.DESTROY:
        return None  # it is kept; what the destroy has left, the stack tells
    if not running or event.activity is None or not event.activity.undoes:
        return record.undo
    # How far a command came that undoes, nothing that was begun later tells. A stack is destroyed as its compensation,
    # too; that names the operation before it, and its state tells how far it came.
    command = event.activity is Activity.COMPENSATE and event.operation_id is None
    return Activity.COMPENSATE if command or record.undo is Activity.COMPENSATE else Activity.DESTROY


def _exit_code(record: StepRecord, event: RequestEvent) -> int | None:
    """How a compensation ended by its own word, after one more event; None where that is not known."""
    if event.activity is not Activity.COMPENSATE:
        return record.exit_code
    return event.exit_code if event.status is StepStatus.RUNNING or event.exit_code is not None else record.exit_code


def _failure(record: StepRecord, event: RequestEvent) -> str:
    """Why a step's work last failed, after one more event: what is called to undo it says nothing of that, nor does an
    error before which nothing was called anew."""
    activity = event.activity or record.activity
    if event.status is StepStatus.OK or (event.status is StepStatus.RUNNING and activity in _WORK):
        return ""
    undoes = activity is not None and activity.undoes
    called = record.status is StepStatus.RUNNING or not record.failure
    return event.why if event.status is StepStatus.ERROR and called and not undoes else record.failure


def _worked(before: StepRecord, after: StepRecord, event: RequestEvent) -> StepRecord:
    """The record of a step whose work has come to a good end."""
    stands = frozenset((found.address, found.observed_id) for found in after.standing if found.disposition != UNSEEN)
    known = {address for address, _ in before.stood}
    anew = {address for address, _ in stands - before.stood if address in known} | (before.missing & known)
    left = {address for address, _ in stands & before.stood} - anew
    whole = before.undone or bool(anew and not left)
    return replace(
        after,
        work=event.work,
        worked_at=event.at,
        undone=False,
        renewed_at=event.at if anew or whole else before.renewed_at,
        remade_at=event.at if whole else before.remade_at,
        stood=stands,
    )
