"""Credentials that are about to end: the user hears of it before the question, and nothing else changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers import APPLY, DESTROY, Run, StackFactory, Start, operations, run_folders, wait_until

pytestmark = pytest.mark.e2e

ONE = 'resource "terraform_data" "one" {}\n'


def ends_in(minutes: float) -> dict[str, str]:
    """An environment whose credentials end so many minutes from now."""
    at = datetime.now(UTC) + timedelta(minutes=minutes)
    return {"AWS_CREDENTIAL_EXPIRATION": at.strftime("%Y-%m-%dT%H:%M:%SZ")}


def warnings(text: str) -> list[str]:
    """The lines about credentials."""
    return [line for line in text.splitlines() if line.startswith("tfguard: warning: the credentials")]


def test_an_apply_whose_credentials_end_soon_warns_and_goes_on_until_a_history_says_that_there_is_time(
    plain_stack: StackFactory, tfguard: Run
) -> None:
    stack = plain_stack(ONE)
    done = tfguard(*APPLY, cwd=stack, env=ends_in(10))
    assert done.returncode == 0, done.stderr
    (line,) = warnings(done.stderr)
    assert "expire in 9 min (AWS_CREDENTIAL_EXPIRATION), and no run is on record here" in line
    again = tfguard(*DESTROY, cwd=stack, env=ends_in(10))
    assert (again.returncode, warnings(again.stderr)) == (0, [])
    last = tfguard(*APPLY, cwd=stack, env=ends_in(1))
    assert last.returncode == 0
    assert "and the last runs of this stack took up to " in warnings(last.stderr)[0]


def test_a_plan_file_is_warned_of_too_and_stdout_stays_the_engines(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    assert tfguard("plan", "-out=plan.bin", "-input=false", cwd=stack, env=ends_in(-5)).stderr == ""
    done = tfguard("apply", "-no-color", "plan.bin", cwd=stack, env=ends_in(-5))
    assert done.returncode == 0, done.stderr
    assert "the credentials expired 5 min ago (AWS_CREDENTIAL_EXPIRATION)" in warnings(done.stderr)[0]
    assert "credentials" not in done.stdout


def test_the_warning_comes_before_the_question(plain_stack: StackFactory, tfguard_popen: Start) -> None:
    stack = plain_stack(ONE)
    both = stack / "both"
    with both.open("w") as file:
        # A pipe that stays open: nobody has answered yet.
        running = tfguard_popen("apply", "-no-color", cwd=stack, env=ends_in(3), stdin=-1, stdout=file, stderr=file)
        wait_until(lambda: "Enter a value:" in both.read_text())
        text = both.read_text()
        assert text.index("will be created") < text.index("the credentials expire in") < text.index("Enter a value:")
        assert running.stdin is not None
        running.stdin.write("no\n")
        running.stdin.close()
        assert running.wait(timeout=60) == 1
    assert (operations(stack), run_folders(stack)) == ([], [])


@pytest.mark.parametrize("value", ["soon", "", "\x1b[31m", "9" * 500])
def test_an_end_that_nobody_can_read_is_no_end(plain_stack: StackFactory, tfguard: Run, value: str) -> None:
    done = tfguard(*APPLY, cwd=plain_stack(ONE), env={"AWS_CREDENTIAL_EXPIRATION": value})
    assert (done.returncode, warnings(done.stderr)) == (0, [])


def test_a_profile_of_the_shared_file_is_asked_where_an_aws_provider_uses_it(
    stack_factory: StackFactory, tfguard: Run, tmp_path: Path
) -> None:
    stack = stack_factory('resource "aws_iam_group" "one" {\n  name = "one"\n}\n')
    keys = tmp_path / "keys"
    at = datetime.now(UTC) + timedelta(minutes=5)
    keys.write_text(
        "[work]\naws_access_key_id = testing\naws_secret_access_key = testing\n"
        f"x_security_token_expires = {at.isoformat()}\n"
    )
    profile = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "work"}
    done = tfguard(*APPLY, cwd=stack, env=profile | {"AWS_SHARED_CREDENTIALS_FILE": str(keys)})
    assert done.returncode == 0, done.stderr
    assert f"x_security_token_expires of the profile work in {keys}" in warnings(done.stderr)[0]
