"""Every boundary of a guarded apply, with its record in a folder and in S3, is one to be killed at without a loss."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.aws_calls import ApiCall, Protocol
from fixtures.chaos.main import play
from fixtures.chaos.oracle import Place, Tally, Witness, absent_steps, ids_in_state
from fixtures.chaos.plans import STORES, make_plan, plan_for
from fixtures.chaos.processes import Victims
from fixtures.chaos.stops import APPENDED, AROUND, EVENTS, WHOLE, At, Stop
from fixtures.chaos.world import World

pytestmark = pytest.mark.e2e

SEED = "ci"
# Where each kind of write is cut: one that must not overwrite, one that compares and replaces, one that adds.
WRITES = (("intent.json", WHOLE), ("head.json", WHOLE), ("events.jsonl", APPENDED), ("outcome.json", AROUND))
PUTS = ("intent.json", "head.json", "events.jsonl", "outcome.json", "state", "lock")


@pytest.fixture(scope="module")
def world(seed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:  # noqa: ARG001 (skips without one)
    """A cloud behind a proxy, initialised stacks, and a provider that stays up."""
    with World(tmp_path_factory.mktemp("chaos").resolve()) as running:
        yield running


def stops(store: str) -> list[Stop]:
    """One stop for every kind of boundary; the events before tfguard has looked at them, or in S3 after."""
    writes = [Stop(At.WRITE, name, 1, phase) for name, phases in WRITES for phase in phases]
    puts = [Stop(At.PUT, name, 1, phase) for name in PUTS for phase in AROUND]
    spawns = [Stop(At.SPAWN, "apply", 1, phase) for phase in AROUND]
    calls = [Stop(At.CALL, "change", 2, phase) for phase in AROUND]
    events = [Stop(At.EVENT, name, 1, AROUND[store == "s3"]) for name in EVENTS]
    return [*(writes if store == "local" else puts), *spawns, *calls, *events]


@pytest.mark.parametrize("store", STORES)
def test_after_a_kill_at_any_boundary_every_object_is_known_and_none_is_made_twice(world: World, store: str) -> None:
    chance = random.Random(f"{SEED}/{store}")
    faults: list[str] = []
    missed: list[str] = []
    kills = 0
    for number, stop in enumerate(stops(store)):
        victims = (Victims.ALL, Victims.TFGUARD, Victims.ALL, Victims.ENGINE)[number % 4]
        plan = replace(
            plan_for(f"{SEED}/{number}", store, (replace(stop, victims=victims),), chance),
            labels=("topic", "group", "prefixed"),
            lock=stop.name == "lock",
            scenario="create",
            changed=(),
            new_first=(),
            provisioner=True,
            saved_plan=True,
            settles=number % 8 == 0,
        )
        tally, lines, _ = play(world, plan)
        faults += [f"{plan}\n" + "\n".join([*lines, f"** {fault}"]) for fault in tally.faults]
        missed += tally.missed
        kills += tally.kills
    assert not faults, "\n".join(faults)
    assert missed == []
    assert kills == len(stops(store))


def test_a_run_is_made_of_its_name_alone() -> None:
    assert make_plan("7", 12) == make_plan("7", 12)
    assert make_plan("7", 12) != make_plan("8", 12)
    reached = {plan.stops[0].kind for plan in (make_plan("7", number) for number in range(300))}
    assert {stop.kind for store in STORES for stop in stops(store)} <= reached


def test_the_witness_counts_a_create_that_nobody_meant_and_one_of_what_is_there(tmp_path: Path) -> None:
    tally = Tally()
    witness = Witness(Place(tmp_path, None), [], tally)
    call = _create_role("chaos-role-g0", "01A")
    assert witness.before(call)
    assert [line.partition(":")[2].strip() for line in tally.without_intent] == ["no intent of operation 01A"]
    witness.after(call, 200, b"")
    assert (tally.made, tally.second_creates) == (1, [])

    _write_document(tmp_path, "01A", "intent.json", "create", None)
    witness.before(call)
    assert len(tally.without_intent) == 1
    assert tally.second_creates == ["CreateRole of chaos-role-g0, which was there"]

    _write_document(tmp_path, "01A", "outcome.json", "create", "absent")
    witness.before(call)
    assert "had ended on record" in tally.without_intent[-1]
    assert witness.creator("chaos-role-g0") == "01A"


def test_an_object_that_is_called_absent_or_that_nobody_names_is_counted(tmp_path: Path) -> None:
    _write_document(tmp_path, "01A", "outcome.json", "create", "absent")
    outcome = Place(tmp_path, None).document("01A", "outcome.json")
    assert outcome is not None
    assert list(absent_steps(outcome)) == [("role", "create")]
    state = {"resources": [{"instances": [{"attributes": {"id": "chaos-role-g0", "arn": None}}]}]}
    assert ids_in_state(state) == {"chaos-role-g0"}


def _create_role(name: str, operation: str) -> ApiCall:
    body = f"Action=CreateRole&RoleName={name}".encode()
    return ApiCall(
        "POST", "/", Protocol.QUERY, "iam", "CreateRole", user_agent=f"APN/1.0 tfguard/{operation}", body=body
    )


def _write_document(stack: Path, operation: str, name: str, action: str, outcome: str | None) -> None:
    folder = stack / "terraform.tfstate.tfguard/operations" / operation
    folder.mkdir(parents=True, exist_ok=True)
    step = {"address": "aws_iam_role.role", "action": action, "outcome": outcome}
    (folder / name).write_text(json.dumps({"steps": [step]}))
