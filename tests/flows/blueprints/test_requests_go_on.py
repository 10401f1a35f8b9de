"""A request through failure, repair, cancel and clean-up: what its steps and its states say, with stand-ins for all
that is outside."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from request_stand_ins import FIVE, HEAD, Crash, Desk, Host, StandInStack

from tfguard.blueprint_ports import CallEnd, Command, Output, StackCall, Verified
from tfguard.errors import CorruptRecordError, OpenOperationError, OperationAliveError, RecordError, UsageError
from tfguard.flows.blueprints.cancel import CancelOptions, cancel
from tfguard.flows.blueprints.deciding import decisions
from tfguard.flows.blueprints.provide import ProvideOptions, provide
from tfguard.flows.blueprints.requests import Requests
from tfguard.flows.heads import Heads
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import TRANSITIONS, RequestState
from tfguard.model.lease import Liveness
from tfguard.model.plan import Action, Plan, PlannedChange
from tfguard.model.preflight import CheckName, CheckResult, CheckStatus
from tfguard.stores.local import LocalStore

S = RequestState
HOSTS = (
    HEAD
    + """
steps:
  network:   {stack: network}
  instance:  {stack: instance, needs: [network]}
  bootstrap: {run: [boot], needs: [instance], owned_by: instance}
  service:   {probe: {http: "http://x"}, needs: [bootstrap]}
"""
)

COMPENSATED = (
    HEAD
    + """
steps:
  a: {{stack: a, {said}compensate: {{destroy: true}}}}
  b: {{stack: b, needs: [a], compensate: {{destroy: true}}}}
"""
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, FIVE)


@pytest.fixture
def hosts(tmp_path: Path) -> Desk:
    return Desk(tmp_path, HOSTS)


def test_all_goes_well(desk: Desk) -> None:
    request = desk.provide()
    assert request.state is S.READY
    assert set(desk.statuses().values()) == {"ok"}
    states = [change.after for change in request.transitions]
    assert states == [S.REQUESTED, S.VALIDATED, S.PROVISIONING, S.READY]


def test_every_transition_that_is_told_is_one_that_is_allowed(desk: Desk) -> None:
    desk.world.faults["binding"] = ["refused"]
    desk.provide()
    desk.provide()
    desk.destroy(stateful=True)
    for change in desk.request.transitions[1:]:
        assert change.before is not None
        assert change.after in TRANSITIONS[change.before]


def test_what_was_not_attempted_is_pending_and_no_error(hosts: Desk) -> None:
    hosts.world.faults["instance"] = ["refused"]
    assert hosts.provide().state is S.PARTIAL_FAILURE
    assert hosts.statuses() == {"network": "ok", "instance": "error", "bootstrap": "pending", "service": "pending"}
    assert decisions(hosts.context, hosts.request)["service"].behind == ("bootstrap",)


def test_a_lost_reply_is_looked_up_and_adopted_and_never_made_again(desk: Desk) -> None:
    desk.world.faults["database"] = ["lost"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.statuses()["database"] == "retained"  # something of it exists
    assert desk.provide().state is S.READY
    assert desk.world.stacks["database"].exists == 1
    assert [call for call in desk.world.calls if call[1] == "database"] == [
        ("apply", "database"), ("adopt", "database"), ("apply", "database")
    ]  # fmt: skip


def test_a_failed_binding_keeps_the_database_for_a_time_and_an_owner(desk: Desk) -> None:
    desk.world.faults["binding"] = ["refused"]
    request = desk.provide()
    kept = request.step("database")
    assert (request.state, kept.status.value, kept.owner) == (S.PARTIAL_FAILURE, "retained", "team")
    assert kept.until is not None and (kept.until - desk.clock.time).days in (6, 7)
    assert ("unbind", "binding") in desk.world.calls
    assert desk.provide().state is S.READY
    assert desk.statuses()["database"] == "ok"


def test_what_is_retained_or_holds_data_stays_until_told_otherwise(desk: Desk) -> None:
    desk.world.faults["binding"] = ["refused"]
    desk.provide()
    request = desk.destroy()
    assert request is not None and request.state is S.RETAINED_FOR_REVIEW
    assert desk.world.stacks["database"].exists == 1
    assert desk.world.stacks["network"].exists == 1, "what is kept needs it"
    desk.destroy(dispose=True)
    assert desk.world.stacks["database"].exists == 1, "it holds data"
    request = desk.destroy(dispose=True, stateful=True)
    assert request is not None and request.state is S.CLEANED
    assert not any(stack.exists for stack in desk.world.stacks.values())


def test_never_ready_while_a_probe_fails(desk: Desk) -> None:
    desk.world.services["sql"] = False
    request = desk.provide()
    assert request.state is S.PARTIAL_FAILURE
    assert request.failing_probes == ("sql",)
    desk.world.services["sql"] = True
    assert desk.provide().state is S.READY


def test_never_ready_while_an_object_is_not_at_its_provider(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk.world, "verify", lambda _: Verified(missing=("x.y",)))
    request = desk.provide()
    assert request.state is S.PARTIAL_FAILURE
    assert request.step("network").status.value == "error"
    assert "x.y" in request.step("network").why


def test_a_child_goes_only_after_its_parent_is_confirmed_gone(hosts: Desk) -> None:
    hosts.provide()
    hosts.world.faults["instance"] = ["refused"]
    request = hosts.destroy()
    assert request is not None and request.state is S.SETTLED
    statuses = hosts.statuses()
    assert (statuses["instance"], statuses["bootstrap"], statuses["network"]) == ("error", "ok", "ok")
    request = hosts.destroy()
    assert request is not None and request.state is S.CLEANED
    assert hosts.statuses()["bootstrap"] == "destroyed"


def test_a_failed_request_is_taken_away_with_all_that_it_made(hosts: Desk) -> None:
    hosts.world.faults["instance"] = ["lost"]
    hosts.provide()
    request = hosts.destroy()
    assert request is not None and request.state is S.CLEANED
    assert not any(stack.exists for stack in hosts.world.stacks.values())
    assert ("adopt", "instance") in hosts.world.calls, "what was not known was settled before it was destroyed"


def test_a_state_that_was_lost_is_neither_made_again_nor_called_gone(hosts: Desk) -> None:
    hosts.provide()
    hosts.world.stacks["network"] = StandInStack(exists=1, operations=1)
    assert hosts.provide().state is S.PARTIAL_FAILURE
    assert hosts.world.stacks["network"].exists == 1
    request = hosts.destroy()
    assert request is not None and request.state is not S.CLEANED
    assert hosts.statuses()["network"] == "error"


def test_a_compensation_that_fails_halfway_is_finished_before_the_step_is_made_again(desk: Desk) -> None:
    desk.world.faults["binding"] = ["refused", "3"]  # the apply, then its compensation
    request = desk.provide()
    assert request.step("binding").undoing
    assert "compensation ended with 3" in request.step("binding").why
    desk.world.calls.clear()
    assert desk.provide().state is S.READY
    assert [call[0] for call in desk.world.calls if call[1] == "binding"] == ["unbind", "apply"]


def test_what_is_compensated_waits_for_what_needs_it(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
steps:
  a: {stack: a, compensate: {destroy: true}}
  b: {stack: b, needs: [a], on_failure: retain}
  c: {stack: c, needs: [b], compensate: {destroy: true}}
"""
    )
    desk = Desk(tmp_path, text)
    desk.world.faults["c"] = ["refused"]
    desk.provide()
    assert desk.statuses() == {"a": "ok", "b": "retained", "c": "absent"}
    assert desk.world.stacks["a"].exists == 1


def test_data_is_never_deleted_as_a_compensation_also_where_only_the_object_tells(tmp_path: Path) -> None:
    desk = Desk(tmp_path, COMPENSATED.format(said=""))
    desk.world.stacks["a"] = StandInStack(stateful=True)
    desk.world.faults["b"] = ["refused"]
    desk.provide()
    assert desk.world.stacks["a"].exists == 1
    assert desk.statuses()["a"] == "ok"


def test_a_step_that_is_said_to_hold_no_data_is_deleted_whatever_its_objects_are(tmp_path: Path) -> None:
    desk = Desk(tmp_path, COMPENSATED.format(said="stateful: false, "))
    desk.world.stacks["a"] = StandInStack(stateful=True)
    desk.world.faults["b"] = ["refused"]
    desk.provide()
    assert desk.world.stacks["a"].exists == 0
    assert desk.statuses()["a"] == "destroyed"


def test_a_command_that_may_have_worked_is_not_run_again_without_a_word(hosts: Desk) -> None:
    hosts.world.faults["bootstrap"] = ["7"]
    assert hosts.provide().state is S.PARTIAL_FAILURE
    assert hosts.provide().state is S.PARTIAL_FAILURE
    assert hosts.world.calls.count(("boot", "bootstrap")) == 1
    assert hosts.provide({"bootstrap": Told(True, "looked")}).state is S.READY
    assert hosts.world.calls.count(("boot", "bootstrap")) == 1


def test_a_check_decides_whether_a_command_runs(tmp_path: Path) -> None:
    text = HEAD + "steps:\n  a: {run: [work], check: [is-done]}\n"
    desk = Desk(tmp_path, text)
    desk.world.faults["a"] = ["1", "0", "0"]  # not done; the work; done
    assert desk.provide().state is S.READY
    desk.world.faults["a"] = ["0"]
    assert desk.provide().state is S.READY
    assert [call[0] for call in desk.world.calls] == ["is-done", "work", "is-done", "is-done"]
    desk.world.faults["a"] = ["9"]
    request = desk.provide()
    assert request.state is S.PARTIAL_FAILURE
    assert "neither done (0) nor not done (1)" in request.step("a").why


def test_a_cancel_begins_nothing_new_and_waits_for_what_runs(desk: Desk) -> None:
    apply = desk.world.apply

    def cancelling(call: object, step: str) -> object:
        if step == "database":
            desk.context.requests.wish_to_cancel(desk.request.id, "not needed", interrupt=False)
            desk.clock.sleep(2)
        return apply(call, step)  # type: ignore[arg-type]

    desk.world.apply = cancelling  # type: ignore[method-assign, assignment]
    request = desk.provide()
    assert request.state is S.SETTLED
    assert desk.statuses()["database"] == "ok"
    assert desk.statuses()["migrate"] == "pending"
    assert request.step("database").objects, "what it made is on record"
    with pytest.raises(OpenOperationError):
        desk.provide()
    done = desk.destroy(stateful=True)
    assert done is not None and done.state is S.CLEANED


def test_a_request_whose_process_died_is_cancelled_from_elsewhere(desk: Desk) -> None:
    desk.world.crash_at = (2, True)
    with pytest.raises(Crash):
        desk.provide()
    assert desk.request.step("database").status.value == "running"
    request = cancel(desk.context, CancelOptions("not needed"))
    assert request.state is S.SETTLED
    assert request.step("database").status.value == "error", "its operation ended well, and may be somebody else's"
    assert request.step("database").objects


def test_a_partial_failure_is_kept_for_a_review(desk: Desk) -> None:
    desk.world.faults["binding"] = ["refused"]
    desk.provide()
    request = cancel(desk.context, CancelOptions("for a review", retain=timedelta(days=3), owner="team"))
    assert request.state is S.RETAINED_FOR_REVIEW
    assert request.step("network").status.value == "retained"
    assert desk.provide().state is S.READY


def test_no_request_and_too_long_a_time_are_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="no request"):
        cancel(desk.context, CancelOptions("x"))
    desk.provide()
    with pytest.raises(UsageError, match=r"retention\.max"):
        cancel(desk.context, CancelOptions("x", retain=timedelta(days=300), owner="team"))


def test_nothing_is_called_when_the_record_cannot_be_written(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Requests.append

    def full(self: Requests, request_id: str, *events: object) -> None:
        if any(getattr(event, "step", None) == "database" for event in events):
            raise RecordError("the disk is full", "make room")
        append(self, request_id, *events)  # type: ignore[arg-type]

    monkeypatch.setattr(Requests, "append", full)
    with pytest.raises(RecordError, match="full"):
        desk.provide()
    assert ("apply", "database") not in desk.world.calls


@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
@pytest.mark.parametrize("call", range(1, 5))
def test_killed_at_any_call_it_goes_on_and_makes_nothing_twice(desk: Desk, call: int, after: bool) -> None:
    desk.world.crash_at = (call, after)
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at = None
    assert desk.provide().state is S.READY
    assert {name: stack.exists for name, stack in desk.world.stacks.items()} == {
        "network": 1, "database": 1, "binding": 1
    }  # fmt: skip


def test_faults_and_kills_in_any_order_end_ready_and_then_clean(tmp_path: Path) -> None:
    chance = random.Random(7)
    for number in range(25):
        folder = tmp_path / str(number)
        folder.mkdir()
        desk = Desk(folder, FIVE)
        for step in ("network", "database", "binding"):
            desk.world.faults[step] = [chance.choice(["refused", "lost", ""]) for _ in range(chance.randrange(3))]
        for _ in range(12):
            desk.world.crash_at = (
                (len(desk.world.calls) + chance.randrange(1, 6), chance.random() < 0.5)
                if chance.random() < 0.6
                else None
            )
            try:
                if desk.provide().state is S.READY:
                    break
            except Crash:
                continue
        desk.world.crash_at = None
        desk.world.faults.clear()
        assert desk.provide().state is S.READY
        assert all(stack.exists == 1 for stack in desk.world.stacks.values())
        done = desk.destroy(stateful=True)
        assert done is not None and done.state is S.CLEANED
        assert not any(stack.exists for stack in desk.world.stacks.values())


def test_secrets_are_kept_as_references_alone(tmp_path: Path) -> None:
    text = (
        HEAD
        + "inputs: {password: {sensitive: true, required: true}}\n"
        + "steps:\n  a: {run: [w], environment: {P: '${inputs.password}'}}\n"
    )
    desk = Desk(tmp_path, text)
    with pytest.raises(UsageError, match="kept as a reference"):
        desk.provide(password="hunter2")
    assert desk.provide(password="env:PASSWORD").state is S.READY
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"secret of" not in written
    assert b"env:PASSWORD" in written


def test_changed_inputs_are_applied_again(tmp_path: Path) -> None:
    text = (
        HEAD + "inputs: {size: {type: number, default: 1}}\nsteps:\n  a: {stack: a, vars: {size: '${inputs.size}'}}\n"
    )
    desk = Desk(tmp_path, text)
    desk.provide()
    desk.provide()
    assert desk.world.calls.count(("apply", "a")) == 1
    assert desk.provide(size="2").state is S.READY
    assert desk.world.calls.count(("apply", "a")) == 2
    assert desk.request.inputs == {"size": 2}


def test_a_new_request_begins_when_the_last_is_over_and_that_is_packed_away(desk: Desk) -> None:
    first = desk.provide().id
    desk.destroy(stateful=True)
    assert desk.request.state is S.CLEANED
    second = desk.provide().id
    assert second != first
    assert desk.context.requests.ids() == (second,)
    assert desk.context.requests.packed_ids() == (first,)
    packed = desk.context.requests.read(first)
    assert packed.state is S.CLEANED
    assert packed.step("database").status.value == "destroyed"


def test_a_journal_that_somebody_changed_is_not_believed(desk: Desk) -> None:
    desk.provide()
    path = next(desk.folder.rglob("events.jsonl"))
    lines = path.read_text().splitlines()
    told = json.loads(lines[0])
    told["state"] = "Cleaned"
    path.write_text("\n".join([json.dumps(told), *lines[1:]]) + "\n")
    with pytest.raises(CorruptRecordError):
        desk.context.requests.current()


def test_a_thousand_steps_are_planned_made_and_gone_on_with(tmp_path: Path) -> None:
    steps = "".join(f"  s{n}: {{stack: s{n}, needs: [{f's{n - 1}' if n % 10 else ''}]}}\n" for n in range(999))
    steps += f"  s999: {{stack: s999, needs: [s998, {', '.join(f's{n}' for n in range(9, 990, 10))}]}}\n"
    desk = Desk(tmp_path, HEAD + "parallel: 8\nsteps:\n" + steps)
    desk.world.faults["s999"] = ["refused"]
    assert desk.provide().state is S.PARTIAL_FAILURE
    calls = len(desk.world.calls)
    assert calls == 1000
    decided = decisions(desk.context, desk.request)
    assert sum(one.kind.value == "skip" for one in decided.values()) == 999
    assert desk.provide().state is S.READY
    assert len(desk.world.calls) == calls + 1
    events = len(next(tmp_path.rglob("events.jsonl")).read_text().splitlines())
    assert events < 4 * 1000


def test_a_step_that_has_made_something_does_not_vanish_with_its_line(desk: Desk) -> None:
    desk.provide()
    kept = desk.text
    desk.text = desk.text.replace("  network:  {stack: network}\n", "").replace("needs: [network], ", "")
    for work in (desk.provide, desk.destroy):
        with pytest.raises(UsageError, match="network: it is no longer in the blueprint"):
            work()
    desk.text = kept
    done = desk.destroy(stateful=True)
    assert done is not None and done.state is S.CLEANED


def test_what_the_engine_says_of_a_failed_look_is_not_kept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk.world, "verify", lambda _: Verified(failure="Error: the password hunter2 is wrong"))
    assert desk.provide().state is S.PARTIAL_FAILURE
    written = b"".join(path.read_bytes() for path in desk.folder.rglob("*") if path.is_file())
    assert b"hunter2" not in written
    assert any("hunter2" in line for line in desk.console.lines), "the user is told"


def test_who_has_slept_through_its_lease_begins_nothing_more(desk: Desk) -> None:
    apply = desk.world.apply

    def sleeping(call: StackCall, step: str) -> CallEnd:
        if step == "database":
            with desk.context.requests.holding():
                pass
            desk.clock.sleep(3600)
        return apply(call, step)

    desk.world.apply = sleeping  # type: ignore[method-assign]
    with pytest.raises(RecordError, match="another tfguard works on"):
        desk.provide()
    assert ("migrate", "migrate") not in desk.world.calls


def test_of_two_at_once_the_second_begins_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    apply, refused = desk.world.apply, list[str]()

    def twice(call: StackCall, step: str) -> CallEnd:
        if step == "network":
            with monkeypatch.context() as alive:
                alive.setattr(Host, "liveness", lambda *_: Liveness.ALIVE)
                for work in (desk.provide, desk.destroy):
                    with pytest.raises(OperationAliveError):
                        work()
                    refused.append(work.__name__)
        return apply(call, step)

    desk.world.apply = twice  # type: ignore[method-assign]
    assert desk.provide().state is S.READY
    assert refused == ["provide", "destroy"]
    assert desk.world.calls.count(("apply", "network")) == 1


def test_a_repair_that_fails_again_moves_no_date(desk: Desk) -> None:
    desk.world.faults["binding"] = ["refused", "", "refused", ""]
    first = desk.provide().step("database").until
    desk.clock.sleep(3 * 86400)
    assert desk.provide().step("database").until == first


def test_a_step_that_failed_and_made_nothing_is_in_no_compensation_s_way(tmp_path: Path) -> None:
    text = HEAD + "steps:\n  a: {stack: a, compensate: {destroy: true}}\n  b: {stack: b, needs: [a]}\n"
    desk = Desk(tmp_path, text)
    desk.world.faults["b"] = ["refused"]
    desk.provide()
    assert desk.statuses()["a"] == "destroyed"
    desk.world.faults["b"] = ["lost"]
    desk.provide()
    assert desk.statuses()["a"] == "ok", "what b made, and nobody has settled, needs it"


@pytest.mark.parametrize("lost", ["first", "middle"])
def test_a_journal_that_has_lost_whole_lines_is_not_believed(desk: Desk, lost: str) -> None:
    desk.provide()
    path = next(desk.folder.rglob("events.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    kept = lines[1:] if lost == "first" else [line for line in lines if '"step":"database"' not in line]
    assert len(kept) < len(lines)
    path.write_text("".join(kept))
    calls = list(desk.world.calls)
    for work in (desk.provide, desk.destroy):
        with pytest.raises(CorruptRecordError, match=r"event \d+ is missing|is followed by"):
            work()
    assert desk.world.calls == calls


@pytest.mark.parametrize(
    ("lost", "killed"),
    [
        ("the last line", False),
        ("several lines", False),
        ("all of it", False),
        ("several lines", True),
        ("all of it", True),
    ],
)
def test_a_journal_that_has_lost_its_end_is_not_believed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, lost: str, killed: bool
) -> None:
    if killed:
        # Nothing is written behind a kill: what counts is what the last transition has counted.
        desk.world.crash_at = (2, True)
        with monkeypatch.context() as dies:
            dies.setattr(Heads, "release", lambda *_: None)
            with pytest.raises(Crash):
                desk.provide()
        desk.world.crash_at = None
    else:
        desk.provide()
    path = next(desk.folder.rglob("events.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    if lost == "all of it":
        path.unlink()
    else:
        path.write_text("".join(lines[:-1] if lost == "the last line" else lines[:1]))
    calls = list(desk.world.calls)
    for work in (desk.provide, desk.destroy, desk.context.requests.current):
        with pytest.raises(CorruptRecordError, match="events, and at least"):
            work()
    assert desk.world.calls == calls
    (desk.folder / "b.tfguard").rename(desk.folder / "aside")
    assert desk.provide().state is S.READY, "as the advice says"


def test_a_pack_that_was_killed_is_finished(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.provide()
    desk.destroy(stateful=True)
    remove, first = LocalStore.remove, desk.request.id

    def dying(self: LocalStore, name: str, data: bytes) -> None:
        remove(self, name, data)
        if name.endswith("events.jsonl"):
            raise Crash

    with monkeypatch.context() as dies:
        dies.setattr(LocalStore, "remove", dying)
        with pytest.raises(Crash):
            desk.provide()
    assert desk.request.state is S.CLEANED, "the archive has it"
    assert desk.provide().state is S.READY
    assert desk.context.requests.packed_ids() == (first,)
    assert len(desk.context.requests.ids()) == 1


def test_what_a_failed_call_said_is_shown_without_the_sensitive_values_that_it_was_given(tmp_path: Path) -> None:
    steps = "steps:\n  a: {stack: a}\n  b: {run: [w], needs: [a], environment: {P: '${steps.a.outputs.token}'}}\n"
    desk = Desk(tmp_path, HEAD + steps)
    desk.world.outputs_of["a"] = {"token": Output("hunter2-token", sensitive=True)}
    run = desk.world.run

    def telling(command: Command, step: str) -> CallEnd:
        run(command, step)
        return CallEnd(1, tail=(f"cannot log in with {command.environment['P']}",))

    desk.world.run = telling  # type: ignore[method-assign]
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert any("cannot log in with (sensitive)" in line for line in desk.console.lines)
    assert not any("hunter2" in line for line in desk.console.lines)


def test_no_line_of_a_sensitive_value_is_shown_either(tmp_path: Path) -> None:
    desk = Desk(
        tmp_path, HEAD + "inputs: {k: {sensitive: true}}\nsteps:\n  b: {run: [w], environment: {K: '${inputs.k}'}}\n"
    )
    key = "-----BEGIN KEY-----\n  hunter2-first  \r\nhunter2\tsecond\n\nat\n-----END KEY-----\n"
    tail = ("-----BEGIN KEY-----", "  hunter2-first", "hunter2 second", "at the end", "-----END KEY-----")
    desk.world.run = lambda *_: CallEnd(1, tail=tail)  # type: ignore[method-assign]
    context = replace(desk.context, secret=lambda _: key)
    provide(context, ProvideOptions({"k": "env:K"}), lambda _: (), lambda _: None)
    shown = [line.removeprefix("b: ").strip() for line in desk.console.lines if line.startswith("b:   ")]
    assert shown == ["(sensitive)", "(sensitive)", "(sensitive) (sensitive)", "at the end", "(sensitive)"]


@pytest.mark.parametrize("kind", ["tcp", "dns"])
def test_a_sensitive_output_is_no_place_to_ask(tmp_path: Path, kind: str) -> None:
    probe = f"{{name: p, {kind}: '${{steps.a.outputs.token}}{':80' if kind == 'tcp' else ''}', within: 1s}}"
    desk = Desk(tmp_path, HEAD + f"steps:\n  a: {{stack: a}}\nready: {{probes: [{probe}]}}\n")
    desk.world.outputs_of["a"] = {"token": Output("hunter2-token", sensitive=True)}
    request = desk.provide()
    assert request.state is S.PARTIAL_FAILURE
    assert "would be seen" in request.probes["p"].detail
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hunter2" not in written


def test_a_chain_is_compensated_from_a_command_whose_check_says_that_it_did_nothing(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
steps:
  a: {run: [a], check: [a-done], compensate: {run: [undo-a]}}
  b: {run: [b], check: [b-done], needs: [a], compensate: {run: [undo-b]}}
  c: {run: [c], check: [c-done], needs: [b]}
"""
    )
    desk = Desk(tmp_path, text)
    desk.world.faults = {"a": ["1", "", ""], "b": ["1", "", ""], "c": ["1", "7", "1", "1"]}
    assert desk.provide().state is S.PARTIAL_FAILURE
    undone = [call[0] for call in desk.world.calls if call[0].startswith("undo")]
    assert undone == ["undo-b", "undo-a"]
    assert desk.statuses() == {"a": "destroyed", "b": "destroyed", "c": "error"}


def test_what_stood_when_it_was_ready_is_not_undone_when_a_later_step_fails(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
steps:
  a: {run: [a], compensate: {run: [undo-a]}, idempotent: true}
  p: {probe: {tcp: "x:1", within: 1s}, needs: [a]}
"""
    )
    desk = Desk(tmp_path, text)
    assert desk.provide().state is S.READY
    desk.world.services[""] = False
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert ("undo-a", "a") not in desk.world.calls
    assert desk.statuses() == {"a": "ok", "p": "error"}


@pytest.mark.parametrize("skipped", [False, True])
def test_data_that_an_earlier_step_s_change_would_destroy_is_seen_before_the_apply(
    tmp_path: Path, skipped: bool
) -> None:
    steps = "steps:\n  a: {stack: a, vars: {v: '${inputs.v}'}}\n  d: {stack: d, needs: [a], stateful: true}\n"
    desk = Desk(tmp_path, HEAD + "inputs: {v: {default: 1}}\n" + steps)
    desk.provide()
    change = PlannedChange("x.y", "x", "p", Action.REPLACE)
    plans = {"d": Plan("1.11", (change,))}
    desk.world.plan = lambda call: plans.get(call.place.directory.name, "not planned")  # type: ignore[method-assign]
    checks = [CheckResult(CheckName.DATA, CheckStatus.SKIPPED, "it is a test")] if skipped else []
    desk.world.calls.clear()
    request = provide(desk.context, ProvideOptions({"v": "2"}), lambda _: checks, lambda _: None)
    assert (("apply", "d") in desk.world.calls) is skipped
    assert request.state is (S.READY if skipped else S.PARTIAL_FAILURE)
    assert skipped or "x.y, which holds data, would be replaced or deleted" in request.step("d").why


def test_a_word_that_nothing_would_come_of_is_refused_and_one_that_was_not_needed_is_told(tmp_path: Path) -> None:
    text = HEAD + "steps:\n  a: {stack: a}\n  b: {run: [b], needs: [a]}\n  p: {probe: {tcp: 'x:1', within: 5s}}\n"
    desk = Desk(tmp_path, text)
    desk.provide()
    for step, word, why in (("p", False, "is a probe"), ("a", True, "is a stack")):
        with pytest.raises(UsageError, match=why):
            desk.provide({step: Told(word, "so")})
    desk.text = desk.text.replace("{stack: a}", "{stack: a, vars: {x: 1}}")
    desk.world.faults["a"] = ["refused"]
    desk.world.calls.clear()
    desk.provide({"b": Told(False, "so")})
    assert desk.world.calls == [("apply", "a")]
    assert any(line.startswith("b: what you said of it was not needed") for line in desk.console.lines)


def test_a_stack_is_applied_again_on_a_person_s_word(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n")
    desk.provide()
    assert desk.provide({"a": Told(False, "its files have changed")}).state is S.READY
    assert desk.world.calls.count(("apply", "a")) == 2


def test_a_review_shortens_no_retention(desk: Desk) -> None:
    desk.world.faults["binding"] = ["refused"]
    until = desk.provide().step("database").until
    request = cancel(desk.context, CancelOptions("for a review", retain=timedelta(hours=1), owner="team"))
    assert request.step("database").until == until
