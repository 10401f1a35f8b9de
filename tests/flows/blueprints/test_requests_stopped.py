"""A request is stopped, by a cancel, a signal or a kill: nothing new is begun, what runs is waited for, and the record
says how it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest
from request_stand_ins import FIVE, HEAD, Crash, Desk, StandInStack

from tfguard.blueprint_ports import StackCall, StackLook, Verified
from tfguard.errors import CorruptRecordError, InputError, InterruptedRunError, OpenOperationError, UsageError
from tfguard.flows.blueprints.cancel import CancelOptions, cancel
from tfguard.flows.blueprints.context import Values
from tfguard.flows.blueprints.deciding import decisions
from tfguard.flows.blueprints.provide import ProvideOptions, provide
from tfguard.flows.blueprints.requests import Requests
from tfguard.model.blueprint_decision import Told
from tfguard.model.blueprint_request import Request, RequestState
from tfguard.reconcile.blueprint_view import blueprint_view
from tfguard.report.blueprint import blueprint_text
from tfguard.report.blueprint_svg import blueprint_svg
from tfguard.report.paint import Paint
from tfguard.schemas.blueprint import blueprint_document
from tfguard.stores.local import LocalStore

S = RequestState
ONE = HEAD + "steps:\n  a: {stack: a}\n"
TWO = HEAD + "steps:\n  a: {stack: a}\n  b: {stack: b, needs: [a]}\n"
CHECKED = HEAD + "steps:\n  a: {run: [work], check: [is-done]}\n"


def stopping_at(desk: Desk, what: str) -> None:
    """Let a signal come while this is called."""
    call = desk.world._call

    def stopped(name: str, step: str, work: Callable[[str], int]) -> object:
        if name == what:
            desk.intents = 1
        return call(name, step, work)

    desk.world._call = stopped  # type: ignore[method-assign, assignment]


# It is heard at once


UNDONE = (
    HEAD + "steps:\n  a: {stack: a, on_failure: compensate, compensate: {destroy: true}}\n  b: {stack: b, needs: [a]}\n"
)


@pytest.mark.parametrize(("what", "text"), [("verify", ONE), ("destroy", UNDONE)])
def test_an_interrupt_is_told_while_one_call_takes_long(
    tmp_path: Path, what: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, told = Desk(tmp_path, text), Event()
    desk.world.faults["b"] = ["refused"]
    do, warn = getattr(desk.world, what), desk.console.warn

    def long(*arguments: object) -> object:
        desk.intents = 1
        assert told.wait(10), "nobody has heard it"
        return do(*arguments)

    def warned(line: str) -> None:
        warn(line)
        if line.startswith("cancelled: "):
            told.set()

    monkeypatch.setattr(desk.world, what, long)
    monkeypatch.setattr(desk.console, "warn", warned)
    desk.provide()
    assert told.is_set()


# Nothing new is begun


def test_a_cancel_between_a_check_and_its_command_begins_no_command(tmp_path: Path) -> None:
    desk = Desk(tmp_path, CHECKED)
    desk.world.faults["a"] = ["1"]
    stopping_at(desk, "is-done")
    assert desk.provide().state is S.SETTLED
    assert desk.world.calls == [("is-done", "a")]
    assert desk.statuses()["a"] == "pending", "nothing of it was begun"


def test_a_cancel_between_an_adoption_and_an_apply_begins_no_apply(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ONE)
    desk.world.faults["a"] = ["lost"]
    desk.provide()
    desk.world.calls.clear()
    stopping_at(desk, "adopt")
    request = desk.provide()
    assert request.state is S.SETTLED
    assert desk.world.calls == [("adopt", "a")]
    assert (request.step("a").status.value, request.step("a").made) == ("error", True)


def test_a_cancel_during_init_begins_no_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, ONE)
    initialise = desk.world.initialise

    def stopped(*given: object) -> object:
        desk.intents = 1
        return initialise(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(desk.world, "initialise", stopped)
    assert desk.provide().state is S.SETTLED
    assert desk.world.calls == []
    assert desk.statuses()["a"] == "pending"


def test_a_cancel_between_an_adoption_and_a_destroy_begins_no_destroy(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ONE)
    desk.world.faults["a"] = ["lost"]
    desk.provide()
    desk.world.calls.clear()
    stopping_at(desk, "adopt")
    request = desk.destroy()
    assert request is not None and request.state is S.SETTLED
    assert desk.world.calls == [("adopt", "a")]
    desk.intents, desk.world._call = 0, type(desk.world)._call.__get__(desk.world)  # type: ignore[method-assign]
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED


def test_a_cancel_after_a_failure_begins_no_compensation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {run: [w], compensate: {run: [undo]}}\n")
    desk.world.faults["a"] = ["1"]
    append = Requests.append

    def signalled(self: Requests, request_id: str, *events: object) -> None:
        append(self, request_id, *events)  # type: ignore[arg-type]
        if any(getattr(event, "state", None) is S.PARTIAL_FAILURE for event in events):
            desk.intents = 1

    monkeypatch.setattr(Requests, "append", signalled)
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert ("undo", "a") not in desk.world.calls


@pytest.mark.parametrize("when", ["preflight", "approve"])
@pytest.mark.parametrize("before", [None, S.READY])
def test_a_signal_before_the_first_step_leaves_everything_as_it_is(
    tmp_path: Path, when: str, before: RequestState | None
) -> None:
    desk = Desk(tmp_path, ONE)
    if before:
        desk.provide()
    asked: list[str] = []

    def preflight(_: Request, name: str = "preflight") -> tuple[()]:
        asked.append(name)
        desk.intents = int(name == when)
        return ()

    def approve(request: Request) -> None:
        preflight(request, "approve")

    with pytest.raises(InterruptedRunError):
        provide(desk.context, ProvideOptions(), preflight, approve)
    assert asked[-1] == when, "who has stopped it is not asked any more"
    found = desk.context.requests.current()
    assert (found.state if found else None) is before


def test_the_first_signal_says_what_a_second_does(tmp_path: Path) -> None:
    desk = Desk(tmp_path, CHECKED)
    desk.world.faults["a"] = ["1"]
    stopping_at(desk, "is-done")
    desk.provide()
    (told,) = [line for line in desk.console.lines if "no new step is begun" in line]
    assert "a second Ctrl-C is passed on to what runs" in told


# Whose wish it was


def test_a_wish_that_came_too_late_stops_no_later_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWO)
    apply = desk.world.apply

    def wished(call: object, step: str) -> object:
        end = apply(call, step)  # type: ignore[arg-type]
        if step == "b":
            desk.context.requests.wish_to_cancel(desk.request.id, "late", interrupt=False)
        return end

    desk.world.apply = wished  # type: ignore[method-assign, assignment]
    desk.clock.step = timedelta(0)  # nobody looks for a wish a second time
    assert desk.provide().state is S.READY
    desk.clock.step = timedelta(milliseconds=1)
    desk.clock.sleep(5)
    assert desk.provide().state is S.READY
    assert not list(tmp_path.rglob("cancel.json"))


def test_a_wish_for_an_earlier_run_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, ONE)
    desk.provide()
    with monkeypatch.context() as kept:
        kept.setattr(Requests, "forget_cancel", lambda *_: None)  # as if it had been killed before
        requests = desk.context.requests
        with requests.holding():
            requests.wish_to_cancel(desk.request.id, "late", interrupt=False)
            assert requests.cancel_wish(desk.request.id) is not None
    desk.clock.sleep(5)
    assert desk.provide().state is S.READY
    request = desk.destroy()
    assert request is not None and request.state is S.CLEANED


@pytest.mark.parametrize("retain", [None, timedelta(days=1)])
def test_a_cancel_leaves_no_wish_behind(tmp_path: Path, retain: timedelta | None) -> None:
    desk = Desk(tmp_path, TWO)
    desk.world.faults["b"] = ["refused"]
    desk.provide()
    requests = desk.context.requests
    with requests.holding():
        requests.wish_to_cancel(desk.request.id, "x", interrupt=False)
    cancel(desk.context, CancelOptions("over", retain=retain, owner="team"))
    assert not list(tmp_path.rglob("cancel.json"))


def test_a_second_wish_for_another_run_replaces_the_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ONE)
    desk.provide()
    requests = desk.context.requests
    for reason in ("first", "second"):
        with requests.holding():
            requests.wish_to_cancel(desk.request.id, reason, interrupt=False)
            wish = requests.cancel_wish(desk.request.id)
            assert wish is not None and wish.reason == reason


# What runs is waited for


def killed_in(desk: Desk, call: int = 1) -> None:
    desk.world.crash_at = (call, True)
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at = None


@pytest.mark.parametrize("how", ["cancel", "destroy"])
def test_settled_is_written_when_what_an_earlier_driver_left_has_ended(tmp_path: Path, how: str) -> None:
    desk = Desk(tmp_path, ONE)
    killed_in(desk)
    desk.world.stacks["a"].alive = 7
    began = desk.clock.time
    if how == "cancel":
        cancel(desk.context, CancelOptions("over"))
    else:
        desk.destroy()
    settled = next(change for change in desk.request.transitions if change.after is S.SETTLED)
    assert settled.at - began > timedelta(seconds=5)
    assert any("a: waits for operation op-1" in line for line in desk.console.lines)
    assert desk.request.step("a").objects, "it was looked at afterwards"


def test_who_does_not_want_to_wait_leaves_it_pending(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ONE)
    killed_in(desk)
    desk.world.stacks["a"].alive, desk.clock.interrupted = 1000, True
    assert cancel(desk.context, CancelOptions("over")).state is S.CANCEL_PENDING
    request = desk.destroy()
    assert request is not None and request.state is S.CANCEL_PENDING
    assert ("destroy", "a") not in desk.world.calls
    desk.world.stacks["a"].alive, desk.clock.interrupted = 0, False
    assert cancel(desk.context, CancelOptions("over")).state is S.SETTLED


def test_a_resume_that_is_cancelled_while_it_waits_settles_when_that_has_ended(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ONE)
    killed_in(desk)
    desk.world.stacks["a"].alive = 20
    sleep = desk.clock.sleep

    def signalled(seconds: float) -> bool:
        desk.intents = 1
        return sleep(seconds)

    desk.clock.sleep = signalled  # type: ignore[method-assign]
    request = desk.provide()
    assert request.state is S.SETTLED
    assert not desk.world.stacks["a"].alive
    assert request.step("a").status.value == "error", "its operation ended well, and may be somebody else's"


def test_a_command_that_was_cut_short_does_not_run_for_ever(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {run: [w]}\n")
    killed_in(desk)
    desk.world.running["a"] = 3
    request = cancel(desk.context, CancelOptions("over"))
    assert (request.state, request.step("a").status.value) == (S.SETTLED, "error")
    assert not desk.world.running["a"]


@pytest.mark.parametrize(("answer", "status"), [("", "ok"), ("1", "error"), ("7", "error")])
def test_a_check_tells_whether_a_command_that_was_cut_short_has_done_its_work(
    tmp_path: Path, answer: str, status: str
) -> None:
    desk = Desk(tmp_path, CHECKED)
    desk.world.faults["a"] = ["1"]  # not done yet
    desk.world.crash_at = (2, True)
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at = None
    desk.world.faults["a"] = [answer]
    desk.world.calls.clear()
    assert cancel(desk.context, CancelOptions("over")).step("a").status.value == status
    assert desk.world.calls == [("is-done", "a")]


@pytest.mark.parametrize("fault", ["", "refused"])
def test_only_an_operation_that_was_begun_and_ended_well_makes_a_step_ok_that_was_cut_short(
    tmp_path: Path, fault: str
) -> None:
    desk = Desk(tmp_path, ONE)
    # Somebody has applied the stack before; the kill comes before this request's own apply, or that fails.
    desk.world.stacks["a"] = StandInStack(exists=1, in_state=True, operations=1)
    desk.world.faults["a"] = [fault]
    desk.world.crash_at = (1, bool(fault))
    with pytest.raises(Crash):
        desk.provide()
    desk.world.crash_at = None
    assert cancel(desk.context, CancelOptions("over")).step("a").status.value == "error"


def test_a_destroy_that_was_cut_short_and_ended_well_is_known_as_such(tmp_path: Path) -> None:
    desk = Desk(tmp_path, TWO)
    desk.provide()
    desk.world.crash_at = (3, True)
    with pytest.raises(Crash):
        desk.destroy()
    desk.world.crash_at = None
    assert cancel(desk.context, CancelOptions("over")).step("b").status.value == "destroyed"


def test_a_stack_whose_place_is_not_known_any_more_stops_no_cancel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, ONE)
    killed_in(desk)

    def unknown(*_: object) -> None:
        raise InputError("the outputs of b cannot be read", "apply that step first; the engine says: hunter2")

    monkeypatch.setattr(Values, "place", unknown)
    request = cancel(desk.context, CancelOptions("over"))
    assert (request.state, request.step("a").status.value) == (S.SETTLED, "error")
    assert "could not be looked up" in request.step("a").why
    assert request.transitions[-1].why.startswith("whether a still runs, and what it made, could not be looked up")


@pytest.mark.parametrize("status", ["running", "error"])
def test_what_cannot_be_looked_at_is_not_said_to_have_settled(tmp_path: Path, status: str) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n  b: {stack: b, needs: [a]}\n  c: {stack: c}\n")
    desk.world.inits["c"] = [1]
    if status == "running":
        killed_in(desk)
    else:
        desk.world.faults["a"] = ["lost"]
        desk.provide()
    desk.world.look = lambda _: StackLook(failure="AccessDenied for hunter2")  # type: ignore[method-assign]
    request = cancel(desk.context, CancelOptions("over"))
    told = "whether a still runs, and what it made, could not be looked up; nothing else runs any more"
    assert (request.state, request.transitions[-1].why) == (S.SETTLED, told)
    assert request.step("a").status.value == "error"
    assert status == "error" or request.step("a").why == "it was cut short, and could not be looked up"
    assert "a: AccessDenied for hunter2; whether anything of it runs is not known" in desk.console.lines
    assert not any(line.startswith("c: AccessDenied") for line in desk.console.lines), "nothing of it was begun"
    assert b"hunter2" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


# What is kept


def test_a_kill_right_after_the_failure_leaves_no_retention_without_a_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a, on_failure: retain}\n  b: {stack: b, needs: [a]}\n")
    desk.world.faults["b"] = ["refused"]
    append = Requests.append

    def dying(self: Requests, request_id: str, *events: object) -> None:
        append(self, request_id, *events)  # type: ignore[arg-type]
        if any(getattr(event, "state", None) is S.PARTIAL_FAILURE for event in events):
            raise Crash

    with monkeypatch.context() as dies:
        dies.setattr(Requests, "append", dying)
        with pytest.raises(Crash):
            desk.provide()
    kept = desk.request.step("a")
    assert (desk.request.state, kept.status.value, kept.owner) == (S.PARTIAL_FAILURE, "retained", "team")
    assert kept.until is not None


def test_a_failed_step_that_is_kept_still_says_why_it_failed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a, on_failure: retain}\n")
    desk.world.faults["a"] = ["refused"]
    desk.provide()
    assert "the apply ended with 1" in desk.request.step("a").why
    for _ in range(2):
        cancel(desk.context, CancelOptions("for a review", retain=timedelta(days=1), owner="team"))
        assert desk.request.step("a").why == "for a review; it had failed: the apply ended with 1"


def test_a_probe_is_nothing_that_could_be_kept(tmp_path: Path) -> None:
    desk = Desk(tmp_path, FIVE)
    desk.world.services["sql"] = False
    desk.provide()
    cancel(desk.context, CancelOptions("for a review", retain=timedelta(days=1), owner="team"))
    assert desk.statuses() == {**dict.fromkeys(desk.statuses(), "retained"), "probe": "ok"}


# What the record says


def test_data_that_vanished_is_not_made_anew_without_a_word(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a, stateful: true}\n")
    desk.provide()
    desk.world.stacks["a"].exists = 0
    assert desk.provide().state is S.PARTIAL_FAILURE
    desk.world.calls.clear()
    decided = decisions(desk.context, desk.request)["a"]
    assert "does not have x.y" in decided.reason and "--again" in decided.asks
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert desk.world.calls == []
    desk.provide({"a": Told(False, "it was empty")})
    assert desk.world.calls == [("apply", "a")]


def test_one_apply_makes_anew_what_vanished_and_held_no_data(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HEAD + "steps:\n  a: {stack: a}\n  p: {probe: {tcp: 'x:1', within: 5s}, needs: [a]}\n")
    desk.provide()
    desk.world.stacks["a"].exists = 0
    desk.world.calls.clear()
    # What is asked behind it answers only where it is there.
    ask = desk.world.ask
    desk.world.ask = lambda probe: replace(ask(probe), ok=bool(desk.world.stacks["a"].exists))  # type: ignore[method-assign]
    assert desk.provide().state is S.READY
    assert desk.world.calls == [("apply", "a")]
    assert any("does not have x.y: it is made anew" in line for line in desk.console.lines)


def test_what_was_seen_is_looked_up_once_where_nothing_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, seen = Desk(tmp_path, TWO), list[str]()
    desk.provide()
    verify = desk.world.verify

    def counted(call: StackCall) -> Verified:
        seen.append(call.place.directory.name)
        return verify(call)

    monkeypatch.setattr(desk.world, "verify", counted)
    desk.provide()
    assert seen == ["a", "b"]
    seen.clear()
    desk.world.stacks["b"].exists = 0
    assert desk.provide().state is S.READY
    assert seen == ["a", "b", "a", "b"], "behind a call each is looked up again"


def test_a_folder_that_a_kill_left_is_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, ONE)
    keep = Requests.keep_blueprint

    def dying(self: Requests, request_id: str, text: str) -> str:
        keep(self, request_id, text)
        raise Crash

    with monkeypatch.context() as dies:
        dies.setattr(Requests, "keep_blueprint", dying)
        with pytest.raises(Crash):
            desk.provide()
    assert desk.context.requests.current() is None
    assert desk.provide().state is S.READY
    with pytest.raises(UsageError, match="Ready"):
        cancel(desk.context, CancelOptions("x"))


@pytest.mark.parametrize("first", [True, False])
def test_a_request_whose_maker_died_before_it_was_named_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    desk = Desk(tmp_path, ONE)
    if not first:
        desk.provide()
        desk.destroy()
    before = [one.request_id for one in desk.context.requests.listed()]
    create = LocalStore.create

    def dying(self: LocalStore, name: str, data: bytes) -> None:
        create(self, name, data)
        if name.endswith("request.json"):
            raise Crash

    with monkeypatch.context() as dies:
        dies.setattr(LocalStore, "create", dying)
        with pytest.raises(Crash):
            desk.provide()
    begun = desk.request
    assert begun.state is S.REQUESTED and begun.id not in before
    request = desk.provide()
    assert (request.id, request.state, desk.request.id) == (begun.id, S.READY, begun.id)
    assert [one.request_id for one in desk.context.requests.listed()] == [begun.id, *before]
    journal = next((tmp_path / "b.tfguard" / "requests").rglob("events.jsonl"))
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(CorruptRecordError, match="were written"):
        desk.context.requests.current()


def test_a_request_that_a_newer_tfguard_has_written_hides_no_other_in_the_list(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ONE)
    desk.provide()
    path = next((tmp_path / "b.tfguard").rglob("request.json"))
    path.write_text(path.read_text().replace("blueprint-request/v1", "blueprint-request/v99"))
    (one,) = desk.context.requests.listed()
    assert "newer tfguard" in one.trouble


def test_a_file_that_a_shell_would_split_is_quoted_in_advice(tmp_path: Path) -> None:
    (folder := tmp_path / "my folder").mkdir()
    desk = Desk(folder, TWO)
    desk.world.faults["b"] = ["refused"]
    desk.provide()
    desk.text = ONE.replace("a: {stack: a}", "b: {stack: b}")
    told = []
    with pytest.raises(UsageError) as error:
        desk.provide()
    told.append(error.value.advice)
    cancel(desk.context, CancelOptions("x"))
    with pytest.raises(OpenOperationError) as cancelled:
        desk.provide()
    told.append(cancelled.value.advice)
    with pytest.raises(UsageError) as unknown:
        desk.destroy(gone={"zz": "x"})
    told.append(unknown.value.advice)
    assert all(f"'{folder / 'b.yaml'}'" in advice for advice in told), told


@pytest.mark.parametrize("name", ["head.json", "request.json", "events.jsonl"])
@pytest.mark.parametrize("damage", ["lost", "changed", "no JSON"])
def test_advice_about_a_damaged_record_is_none_about_a_stack_s(tmp_path: Path, name: str, damage: str) -> None:
    desk = Desk(tmp_path, ONE)
    desk.provide()
    path = next((tmp_path / "b.tfguard").rglob(name))
    text = path.read_text()
    if damage == "lost":
        path.unlink()
    else:
        path.write_text("{" if damage == "no JSON" else text.replace('"sum"', '"zum"'))
    for act in (desk.context.requests.current, desk.provide, desk.destroy):
        with pytest.raises(CorruptRecordError) as told:
            act()
        assert "restore it" in told.value.advice
        assert "recover" not in told.value.advice


@pytest.mark.parametrize("where", ["a look", "a value"])
def test_what_the_engine_says_is_told_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    desk = Desk(tmp_path, TWO.replace("needs: [a]", "needs: [a], vars: {v: '${steps.a.outputs.v}'}"))
    if where == "a look":
        monkeypatch.setattr(desk.world, "look", lambda _: StackLook(failure="Error: hunter2 is wrong"))
    else:

        def unreadable(_: object) -> None:
            raise InputError("the outputs of a cannot be read", "apply it; the engine says: hunter2 is wrong")

        monkeypatch.setattr(desk.world, "outputs", unreadable)
    assert desk.provide().state is S.PARTIAL_FAILURE
    desk.destroy()
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hunter2" not in written
    assert any("hunter2" in line for line in desk.console.lines), "the user is told"


def test_no_document_has_the_words_of_an_engine_that_cannot_look(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ONE.replace("stack: a", "stack: 'the a'"))
    desk.provide()
    desk.world.look = lambda _: StackLook(failure="Error: hunter2 is wrong")  # type: ignore[method-assign]
    decided = decisions(desk.context, desk.request)
    seen = blueprint_view(desk.context.blueprint, desk.request, decided, desk.clock.now(), file="b.yaml")
    assert "hunter2" not in str(blueprint_document(seen)) + blueprint_svg(seen) + blueprint_text(seen, Paint())
    told = (decided["a"].reason, decided["a"].asks)
    assert told == (
        "its record or its state cannot be read",
        "see what `tfguard '-chdir=the a' status` says, and mend that",
    )


@pytest.mark.parametrize("half", range(2))
def test_killed_at_any_line_of_the_journal_it_goes_on_and_makes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: int
) -> None:
    append = Requests.append
    for line in range(1 + half, 40, 2):
        folder = tmp_path / str(line)
        folder.mkdir()
        desk, written = Desk(folder, FIVE), list[object]()
        desk.world.faults["binding"] = ["refused"]
        desk.world.inits["network"] = [1]

        def dying(
            self: Requests, request_id: str, *events: object, at: int = line, seen: list[object] = written
        ) -> None:
            append(self, request_id, *events)  # type: ignore[arg-type]
            seen.append(events)
            if len(seen) == at:
                raise Crash

        with monkeypatch.context() as dies:
            dies.setattr(Requests, "append", dying)
            try:
                for _ in range(3):
                    desk.provide()
                assert len(written) < line
            except Crash:
                pass
        for _ in range(3):
            if desk.provide().state is S.READY:
                break
        assert desk.request.state is S.READY
        assert all(stack.exists == 1 for stack in desk.world.stacks.values())
        assert len(desk.world.stacks) == 3


def test_verified_without_a_word_of_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, ONE)
    monkeypatch.setattr(desk.world, "verify", lambda _: Verified(failure="hunter2"))
    assert desk.provide().state is S.PARTIAL_FAILURE
    assert "made anew" not in decisions(desk.context, desk.request)["a"].reason, "nothing is known to have vanished"
