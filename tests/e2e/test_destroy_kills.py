"""`orphans destroy` that is killed or interrupted on its way: what comes next goes on from the ledger, and verifies."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import (
    APPLY,
    Run,
    StackFactory,
    Start,
    children,
    in_flight,
    kill,
    orphans,
    record,
    role,
    run_folders,
    runs,
    settings,
    status,
    wait_until,
)

from fixtures.aws_calls import ApiCall
from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy, Watch

pytestmark = pytest.mark.e2e


@pytest.fixture
def lost(proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, moto: MotoServer) -> tuple[Path, str]:
    """A stack whose apply has left the role `app` behind, and the finding's id. The role `other` is nobody's here."""
    stack = settings(stack_factory(role()), consistency_grace="0s")
    moto.client("iam").create_role(RoleName="other", AssumeRolePolicyDocument="{}")
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (found,) = orphans(tfguard, stack, code=2)["findings"]
    proxy.clear()
    return stack, found["id"]


def stages(stack: Path) -> list[str]:
    """How far the ledger says the deletion has come, from its beginning."""
    path = record(stack) / "dispositions.jsonl"
    return [json.loads(line)["stage"] for line in path.read_text().splitlines()] if path.exists() else []


def roles(moto: MotoServer) -> list[str]:
    """The names of the roles that another client sees."""
    return sorted(one["RoleName"] for one in moto.client("iam").list_roles()["Roles"])


class Strike(Watch):
    """Does something at the first call that `here` is true of; the service gets this call only when `served`."""

    def __init__(self, here: Callable[[ApiCall], bool], strike: Callable[[], None], *, served: bool = False) -> None:
        self._here, self._strike, self._served, self.struck = here, strike, served, False

    def before(self, call: ApiCall) -> bool:
        if not self.struck and not self._served and self._here(call):
            self.struck = True
            self._strike()
            return False
        return True

    def after(self, call: ApiCall, status: int, body: bytes) -> bool:  # noqa: ARG002 (the fixture's)
        if not self.struck and self._served and self._here(call):
            self.struck = True
            self._strike()
            return False
        return True


@pytest.mark.parametrize("with_engine", [False, True], ids=["tfguard", "tfguard and engine"])
def test_a_deletion_that_is_killed_anywhere_is_gone_on_with_and_verified(
    lost: tuple[Path, str],
    proxy: FaultProxy,
    moto: MotoServer,
    tfguard: Run,
    tfguard_popen: Start,
    with_engine: bool,
) -> None:
    stack, finding = lost
    go = ("orphans", "destroy", finding, "--yes", "--confirm", "app")

    def killed(here: Callable[[ApiCall], bool], *, served: bool = False) -> None:
        """Start the deletion, and kill it where `here` says; with its engine, or the engine comes to its end alone."""
        running = tfguard_popen(*go, cwd=stack)
        engines: list[int] = []

        def strike() -> None:
            engines.extend(children(running.pid))
            # A provider that outlives its engine for a moment would try the call again.
            providers = [pid for engine in engines for pid in children(engine)]
            for pid in (running.pid, *((*providers, *engines) if with_engine else ())):
                kill(pid)

        watch = Strike(here, strike, served=served)
        proxy.watch(watch)
        assert running.wait(timeout=120) == -signal.SIGKILL
        assert watch.struck
        wait_until(lambda: not any(runs(pid) for pid in engines), 120)
        proxy.watch(Watch())

    def recovered(stage: str) -> None:
        """The deletion is named by `status`, and by `recover`, which leaves it as it is: the object is there."""
        assert f"({finding}) is {stage} since" in tfguard("status", cwd=stack).stdout
        still = tfguard("recover", cwd=stack)
        assert still.returncode == 11, still.stdout + still.stderr
        assert f"({finding}) is {stage} since" in still.stderr
        assert f"it is still there; `tfguard orphans destroy {finding}` goes on" in still.stderr
        assert (roles(moto), stages(stack)[-1]) == (["app", "other"], stage)

    killed(lambda _: stages(stack)[-1:] == ["requested"])
    recovered("requested")
    killed(lambda _: stages(stack)[-1:] == ["in-progress"])
    recovered("in-progress")
    if with_engine:  # alone it would try the call again that did not reach the service
        killed(lambda call: call.action == "DeleteRole")
        recovered("in-progress")
    killed(lambda call: call.action == "DeleteRole", served=True)

    assert roles(moto) == ["other"]
    assert stages(stack)[-1] == "in-progress"
    gone = tfguard("recover", cwd=stack)
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert "verified to be gone by recover" in gone.stderr
    assert stages(stack)[-1] == "absent"
    assert orphans(tfguard, stack, code=0)["findings"] == []
    assert not status(tfguard, stack, code=0)["open"]
    assert set(proxy.log.actions(mutating=True)) == {"DeleteRole"}
    assert run_folders(stack) == []


def test_an_engine_that_lost_its_tfguard_is_waited_for_and_the_next_destroy_verifies(
    lost: tuple[Path, str], proxy: FaultProxy, moto: MotoServer, tfguard: Run, tfguard_popen: Start
) -> None:
    stack, finding = lost
    go = ("orphans", "destroy", finding, "--yes", "--confirm", "app")
    proxy.add_rule("delay:300", action="DeleteRole")
    running = tfguard_popen(*go, cwd=stack)
    in_flight(proxy, "DeleteRole")
    (engine,) = children(running.pid)
    kill(running.pid)
    running.wait()
    for command in (go, ("recover",)):
        early = tfguard(*command, cwd=stack)
        assert early.returncode == 12, early.stdout + early.stderr
        assert "its engine still runs, without its tfguard" in early.stderr
    assert stages(stack) == ["requested", "in-progress"]

    proxy.release()
    wait_until(lambda: not runs(engine), 120)
    done = tfguard(*go, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it is gone already: looked for, and not there" in done.stdout
    assert (roles(moto), stages(stack)[-1]) == (["other"], "absent")
    assert len(proxy.log.entries("DeleteRole")) == 1
    assert run_folders(stack) == []


def test_an_interrupt_during_the_deletion_reaches_the_engine_once_and_the_truth_is_told(
    lost: tuple[Path, str], proxy: FaultProxy, moto: MotoServer, tfguard: Run, tfguard_popen: Start
) -> None:
    stack, finding = lost
    running = tfguard_popen("orphans", "destroy", finding, "--yes", "--confirm", "app", cwd=stack)
    strike = Strike(lambda call: call.action == "DeleteRole", lambda: running.send_signal(signal.SIGINT), served=True)
    proxy.watch(strike)
    out, err = running.communicate(timeout=200)
    assert strike.struck
    assert err.count("SIGINT: passed on to the engine") == 1, err
    assert roles(moto) == ["other"]
    # The reply was lost: the provider may have asked again, and heard that it is gone, before it heard the signal.
    verified = "verified to be gone" in out
    assert (running.returncode, stages(stack)[-1]) == ((0, "absent") if verified else (1, "stopped")), out + err
    after = tfguard("recover", cwd=stack)
    assert (after.returncode, stages(stack)[-1]) == (0, "absent"), after.stdout + after.stderr
