"""Polite signals to tfguard alone: one interrupt to the engine, patience, and the truth afterwards."""

from __future__ import annotations

import signal
import time

import pytest
from helpers import (
    APPLY,
    Run,
    StackFactory,
    Start,
    in_flight,
    operations,
    role,
    run_folders,
    settings,
    status,
    step,
    wait_until,
)

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e


def test_a_termination_reaches_the_engine_as_one_interrupt_and_the_role_in_flight_is_accounted_for(
    moto: MotoServer, proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run, tfguard_popen: Start
) -> None:
    stack = settings(stack_factory(role() + role("later", more="depends_on = [aws_iam_role.app]")))
    proxy.add_rule("delay:300", action="CreateRole")
    running = tfguard_popen(*APPLY, cwd=stack)
    in_flight(proxy, "CreateRole")
    running.send_signal(signal.SIGTERM)
    time.sleep(1.5)
    # A pipeline that loses its patience is still the same wish to stop.
    running.send_signal(signal.SIGTERM)
    running.send_signal(signal.SIGHUP)
    proxy.release()
    out, err = running.communicate(timeout=60)

    assert running.returncode == 1, out + err
    assert out.count("Interrupt received") == 1
    assert "Two interrupts received" not in out
    assert err.count("the engine was interrupted once") == 1
    document = status(tfguard, stack, code=11)
    assert (document["status"], document["engine"]["exit_code"]) == ("cancelled", 1)
    assert step(document, "aws_iam_role.app")["outcome"] == "orphaned"
    assert (step(document, "aws_iam_role.later")["status"], step(document, "aws_iam_role.later")["outcome"]) == (
        "pending",
        "absent",
    )
    assert [item["RoleName"] for item in moto.client("iam").list_roles()["Roles"]] == ["app"]
    assert run_folders(stack) == []


def test_an_interrupt_at_the_question_changes_nothing_and_records_nothing(
    plain_stack: StackFactory, tfguard_popen: Start
) -> None:
    stack = plain_stack('resource "terraform_data" "one" {}\n')
    # A pipe that stays open: nobody has answered yet.
    running = tfguard_popen("apply", "-no-color", cwd=stack, stdin=-1, stdout=(stack / "out").open("w"))
    wait_until(lambda: "Enter a value:" in (stack / "out").read_text())
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=30) == 130
    assert operations(stack) == []
    assert not (stack / "terraform.tfstate").exists()
    assert run_folders(stack) == []
