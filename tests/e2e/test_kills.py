"""SIGKILL at every place where it can strike: the wrapper, the engine, the provider, and all of them at once."""

from __future__ import annotations

import signal

import pytest
from helpers import (
    APPLY,
    DESTROY,
    QUEUE,
    Run,
    StackFactory,
    Start,
    addresses,
    engine_pid,
    head,
    in_flight,
    kill,
    kinds,
    operations,
    orphans,
    outcome,
    provider_pid,
    role,
    run_folders,
    runs,
    settings,
    status,
    step,
    wait_until,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e


def test_after_the_death_of_all_processes_the_queue_is_looked_for_and_never_made_twice(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(QUEUE))
    proxy.add_rule("delay:300", action="CreateQueue")
    running = tfguard_popen(*APPLY, cwd=stack)
    in_flight(proxy, "CreateQueue")
    assert step(status(tfguard, stack, code=11), "aws_sqs_queue.jobs")["outcome"] is None
    engine = engine_pid(stack)
    provider = provider_pid(engine)
    kill(running.pid)
    kill(engine)
    kill(provider)
    running.wait()
    wait_until(lambda: not runs(engine) and not runs(provider))
    assert (stack / "terraform.tfstate").read_bytes() == b"", "the engine died before its first write"
    assert (status(tfguard, stack, code=11)["status"], outcome(stack, operations(stack)[0])) == ("interrupted", None)

    proxy.clear()
    blocked = tfguard(*APPLY, cwd=stack)
    assert blocked.returncode == 11
    assert "it was ended before its work was finished" in blocked.stderr
    assert "aws_sqs_queue.jobs is orphaned" in blocked.stderr
    assert proxy.log.actions(mutating=True) == []
    assert run_folders(stack) == []
    found = step(status(tfguard, stack, code=11), "aws_sqs_queue.jobs")
    assert (found["status"], found["observed"][0]["stateful"]) == ("error", True)

    adopted = tfguard("import", "--orphan", found["finding"], "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stderr
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 0, done.stderr
    assert "CreateQueue" not in proxy.log.actions()
    assert addresses(stack) == {"aws_sqs_queue.jobs"}
    assert not status(tfguard, stack, code=0)["open"]


def test_the_engines_death_by_a_signal_is_an_interruption_with_an_orphan_not_a_plain_failure(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("delay:300", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack)
    in_flight(proxy, "CreateRole")
    kill(engine_pid(stack))
    assert running.wait(timeout=60) == 128 + signal.SIGKILL
    document = status(tfguard, stack, code=11)
    assert (document["status"], document["engine"]["signal"]) == ("interrupted", int(signal.SIGKILL))
    assert step(document, "aws_iam_role.app")["outcome"] == "orphaned"
    assert run_folders(stack) == []


def test_a_provider_that_dies_after_the_object_was_made_leaves_an_orphan(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role() + role("sibling", more="depends_on = [aws_iam_role.app]")))
    proxy.add_rule("delay:300", action="CreateRole", contains="RoleName=app")
    running = tfguard_popen(*APPLY, cwd=stack)
    in_flight(proxy, "CreateRole")
    kill(provider_pid(engine_pid(stack)))
    out, err = running.communicate(timeout=60)
    assert running.returncode == 1, out + err
    # Which of the two the engine says, depends on when it notices.
    assert "Plugin did not respond" in err or "Request cancelled" in err
    document = status(tfguard, stack, code=11)
    lost, sibling = step(document, "aws_iam_role.app"), step(document, "aws_iam_role.sibling")
    assert (lost["status"], lost["outcome"], lost["error"]) == ("error", "orphaned", "the provider plugin died")
    assert (sibling["status"], sibling["outcome"]) == ("pending", "absent")
    assert kinds(sibling["evidence"]) == {"never-started"}


@pytest.mark.parametrize("command", ["apply", "recover"])
def test_an_engine_that_lost_its_wrapper_finishes_alone_and_the_next_command_closes_the_operation(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start, command: str
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("delay:300", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack)
    in_flight(proxy, "CreateRole")
    engine = engine_pid(stack)
    kill(running.pid)
    running.wait()
    (operation,) = operations(stack)

    for refused in (APPLY, ("recover",), DESTROY):
        early = tfguard(*refused, cwd=stack)
        assert early.returncode == 12, early.stderr
        assert f"operation {operation}" in early.stderr
        assert f"its engine still runs, without its tfguard (pid {engine})" in early.stderr
    assert status(tfguard, stack, code=11)["status"] == "running"

    proxy.release()
    wait_until(lambda: not runs(engine))
    assert addresses(stack) == {"aws_iam_role.app"}
    arguments = APPLY if command == "apply" else (command,)
    done = tfguard(*arguments, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the engine went on alone and finished its work" in done.stderr
    assert head(stack)["open_operations"] == []
    closed = status(tfguard, stack, operation, code=0)
    assert (closed["status"], step(closed, "aws_iam_role.app")["outcome"]) == ("ok", "recorded")
    assert len(proxy.log.entries("CreateRole")) == 1
    assert run_folders(stack) == []


def test_a_role_that_is_tainted_since_it_could_not_be_read_back_is_no_orphan(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("deny", action="GetRole", count=None)
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 1
    document = status(tfguard, stack, code=0)
    assert (document["open"], document["status"]) == (False, "error")
    assert step(document, "aws_iam_role.app")["outcome"] == "tainted"
    (marked,) = orphans(tfguard, stack, code=0)["findings"]
    assert (marked["verdict"], marked["address"]) == ("tainted", "aws_iam_role.app")


def test_a_run_that_died_before_its_first_call_is_a_harmless_doubt_that_the_next_run_settles(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role()))
    # The engine asks who it is before it creates anything.
    proxy.add_rule("delay:300", action="GetCallerIdentity", count=None, skip=2)
    running = tfguard_popen(*APPLY, cwd=stack)
    engine = engine_pid(stack)
    kill(running.pid)
    kill(engine)
    running.wait()
    proxy.clear()
    assert moto.client("iam").list_roles()["Roles"] == []
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    first, _second = operations(stack)
    settled = status(tfguard, stack, first, code=0)
    assert (settled["status"], step(settled, "aws_iam_role.app")["outcome"]) == ("interrupted", "absent")
