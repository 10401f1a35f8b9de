"""The rules of docs/design.md as properties, over any mixture of steps, lists, states and times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from scene import (
    AFTER,
    CATALOG,
    END,
    IN_GRACE,
    INSIDE,
    LONG_AGO,
    REFUSED,
    START,
    baseline,
    held,
    listing,
    look,
    role,
    step,
    vpc,
)

from tfguard.model.evidence import EvidenceKind
from tfguard.model.failure import Failure, FailureKind
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Outcome, Step, StepStatus
from tfguard.model.plan import Action
from tfguard.ports import ImportProbe
from tfguard.reconcile.look import Look, listing_key
from tfguard.reconcile.matching import same_object
from tfguard.reconcile.outcomes import conclude

few = settings(max_examples=50, deadline=None)

TIMES = st.sampled_from([None, LONG_AGO, START - timedelta(minutes=5), INSIDE, END + timedelta(hours=1)])
ROLES = st.lists(st.builds(role, st.sampled_from("abc"), TIMES), unique_by=lambda one: one.id, max_size=3)
CIDRS, NAMES = st.sampled_from(["10.0.0.0/16", "10.1.0.0/16"]), st.sampled_from([None, "n"])
VPCS = st.lists(
    st.builds(vpc, st.sampled_from(["vpc-1", "vpc-2", "vpc-3", "vpc-4"]), CIDRS, NAMES, TIMES),
    unique_by=lambda one: one.id,
    max_size=4,
)
STATUSES = st.sampled_from([StepStatus.PENDING, StepStatus.RUNNING, StepStatus.ERROR, StepStatus.OK])
ACTIONS = st.sampled_from([Action.CREATE, Action.CREATE, Action.REPLACE, Action.DELETE, Action.UPDATE, Action.FORGET])
FAILURES = st.none() | st.builds(
    Failure, st.sampled_from(FailureKind), st.just("-"), st.sampled_from(["CreateRole", "CreateVpc", "GetRole", None])
)
PROBES = st.none() | st.builds(ImportProbe, st.sampled_from([True, False, None]), st.just("-"), st.just("x"))


@dataclass(frozen=True)
class Scene:
    """Steps, and what is known when they are concluded."""

    steps: tuple[Step, ...]
    look: Look


@st.composite
def scenes(draw: Callable[[st.SearchStrategy[object]], object]) -> Scene:
    """Any scene of roles, VPCs, role policies and functions."""
    take: Callable[[st.SearchStrategy[object]], object] = draw

    def some(pool: list[CloudObject]) -> list[CloudObject]:
        return [one for one in pool if take(st.booleans())]

    roles, vpcs = list(take(ROLES)), list(take(VPCS))  # type: ignore[call-overload]
    steps: list[Step] = []
    for number in range(take(st.integers(1, 4))):  # type: ignore[arg-type]
        steps.append(_step(take, number, roles, vpcs))
    holds = [
        held(one.address, found)
        for one in steps
        if (found := take(st.none() | st.sampled_from([*roles, *vpcs] or [None]))) is not None
        and isinstance(found, CloudObject)
        and found.type == one.type
    ]
    gaps = {kind: REFUSED if take(st.booleans()) else None for kind in ("aws_iam_role", "aws_vpc")}
    before = [
        baseline(kind, *some(pool), complete=bool(take(st.booleans())))
        for kind, pool in (("aws_iam_role", roles), ("aws_vpc", vpcs))
        if take(st.booleans())
    ]
    asked = [
        listing(kind, *pool, gap=gaps[kind])
        for kind, pool in (("aws_iam_role", some(roles)), ("aws_vpc", some(vpcs)))
        if take(st.booleans())
    ]
    now = take(st.sampled_from([IN_GRACE, AFTER, AFTER + timedelta(days=3)]))
    assert isinstance(now, datetime)
    seen = look(
        *asked,
        before=before,
        holds=holds,
        now=now,
        stream_whole=take(st.booleans()),
        failures={one.address: failure for one in steps if (failure := take(FAILURES)) is not None},
        probes={one.address: probe for one in steps if (probe := take(PROBES)) is not None},
        open_creates=frozenset(one.address for one in steps if take(st.booleans())),
    )
    return Scene(tuple(steps), seen)


def _step(
    take: Callable[[st.SearchStrategy[object]], object], number: int, roles: list[CloudObject], vpcs: list[CloudObject]
) -> Step:
    kind = take(st.sampled_from(["aws_iam_role", "aws_vpc", "aws_iam_role_policy", "aws_unlisted"]))
    pool = {"aws_iam_role": roles, "aws_vpc": vpcs}.get(str(kind), [])
    old = take(st.sampled_from(pool)) if pool else None
    wishes = {
        "aws_iam_role": st.fixed_dictionaries({}, optional={"name": st.sampled_from("abc")}),
        "aws_vpc": st.fixed_dictionaries({}, optional={"cidr_block": CIDRS, "tags.Name": st.just("n")}),
        "aws_iam_role_policy": st.just({"role": "a", "name": "p"}),
        "aws_unlisted": st.just({}),
    }
    action, status = take(ACTIONS), take(STATUSES)
    assert isinstance(action, Action)
    assert isinstance(status, StepStatus)
    desired = take(wishes[str(kind)])
    before = old.identity if isinstance(old, CloudObject) and action is not Action.CREATE else {}
    if kind == "aws_iam_role_policy" and action is not Action.CREATE:
        before = {"role": "a", "name": "p"}
    return step(f"{kind}.s{number}", action, status, desired=desired if action.creates else {}, before=before)


def held_there(scene: Scene, found_type: str, finding_id: str) -> bool:
    """Whether the state has the listed object with this finding id."""
    kind = CATALOG.get(found_type)
    objects = [o for one in scene.look.listings.values() for o in one.objects if o.finding_id == finding_id]
    return kind is not None and any(
        i.type == found_type and same_object(kind, i.identity, found)
        for i in scene.look.state.instances
        for found in objects
    )


@few
@given(scenes())
def test_nothing_is_absent_without_proof(scene: Scene) -> None:
    seen = scene.look
    for planned, one in zip(scene.steps, conclude(scene.steps, seen, CATALOG), strict=True):
        if one.outcome is not Outcome.ABSENT:
            continue
        kind = CATALOG.get(one.type)
        never_started = planned.status is StepStatus.PENDING and seen.stream_whole
        probe, failure = seen.probes.get(one.address), seen.failures.get(one.address)
        read_by_engine = probe is not None and probe.exists is False and seen.grace_over
        parent_key = ("aws_iam_role", planned.provider_key, "")
        parent = seen.listings.get(parent_key) if kind and kind.parent else None
        parent_gone = (
            parent is not None
            and parent.complete
            and seen.grace_over
            and not any(found.identity["name"] == "a" for found in parent.objects)
        )
        answer = seen.listings.get(listing_key(one))
        refused = failure is not None and failure.kind is FailureKind.REFUSED
        existed = {evidence.kind for evidence in one.evidence} == {EvidenceKind.EXISTED_BEFORE}
        deleting = not planned.action.creates  # gone is gone: only a create can show up late
        looked = answer is not None and answer.complete and (seen.grace_over or refused or existed or deleting)
        done = planned.status is StepStatus.OK and planned.action in (Action.DELETE, Action.UPDATE) and answer is None
        assert never_started or looked or parent_gone or read_by_engine or done, (planned, one)


@few
@given(scenes())
def test_a_gap_never_becomes_absent_for_what_was_started(scene: Scene) -> None:
    refused = {
        key: answer if answer.gap else replace(answer, gap=listing(key[0], gap=REFUSED).gap)
        for key, answer in scene.look.listings.items()
    }
    steps = tuple(
        replace(one, status=StepStatus.RUNNING) for one in scene.steps if CATALOG.get(one.type) and one.action.creates
    )
    for one in conclude(steps, replace(scene.look, listings=refused, probes={}), CATALOG):
        assert one.outcome is not Outcome.ABSENT


@few
@given(scenes())
def test_what_was_listed_before_the_run_is_never_taken_for_what_a_create_made(scene: Scene) -> None:
    old = {found for entry in scene.look.baseline for found in entry.object_ids}
    creates = tuple(replace(one, action=Action.CREATE, before={}) for one in scene.steps)
    for one in conclude(creates, scene.look, CATALOG):
        assert not old & {seen.finding_id for seen in one.observed if seen.finding_id}


@few
@given(scenes())
def test_what_a_state_has_is_never_a_finding(scene: Scene) -> None:
    for one in conclude(scene.steps, scene.look, CATALOG):
        for seen in one.observed:
            if seen.finding_id:
                assert not seen.in_state
                assert not held_there(scene, seen.type, seen.finding_id)


@few
@given(scenes())
def test_an_open_step_that_names_no_object_says_why(scene: Scene) -> None:
    for one in conclude(scene.steps, scene.look, CATALOG):
        assert one.evidence
        if one.open and one.outcome in (Outcome.ORPHANED, Outcome.DUPLICATED):
            assert any(seen.finding_id for seen in one.observed)
        if one.outcome in (Outcome.RECORDED, Outcome.TAINTED):
            assert scene.look.state.at(one.address) is not None
            assert not any(seen.finding_id for seen in one.observed)


@few
@given(scenes(), st.randoms(use_true_random=False))
def test_the_order_of_the_steps_and_of_the_lists_changes_no_outcome(scene: Scene, random: object) -> None:
    def told(steps: tuple[Step, ...], seen: Look) -> dict[str, tuple[object, ...]]:
        return {
            one.address: (one.outcome, one.status, frozenset(each.finding_id for each in one.observed))
            for one in conclude(steps, seen, CATALOG)
        }

    # A twin that fits several recorded siblings is held against one of them alone, the first.
    missing = tuple(one for one in scene.steps if scene.look.state.at(one.address) is None)
    shuffled = list(missing)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    turned = {key: replace(one, objects=one.objects[::-1]) for key, one in scene.look.listings.items()}
    assert told(missing, scene.look) == told(tuple(shuffled), replace(scene.look, listings=turned))
