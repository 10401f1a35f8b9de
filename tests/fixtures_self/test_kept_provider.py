"""The provider that stays up: which runs use it, and that they start none."""

from __future__ import annotations

import json
import shutil
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from fixtures.aws_sim import MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.kept_provider import ATTACH, KeptProvider
from fixtures.terraform_env import write_stack

USER = 'resource "aws_iam_user" "app" {\n  name = "app"\n}\n'
SETTINGS = {"AWS_REGION": "us-east-1", "PATH": "/bin"}


def test_an_attached_engine_needs_no_provider_of_its_own(moto: MotoServer, stack_factory: Any, tf: Any) -> None:
    stack = stack_factory(USER)
    shutil.rmtree(stack / ".terraform" / "providers")
    tf("apply", "-auto-approve", "-input=false", cwd=stack)
    assert [user["UserName"] for user in moto.client("iam").list_users()["Users"]] == ["app"]


def test_it_ends_with_its_context(seed: Path, mirror_env: dict[str, str]) -> None:
    with KeptProvider(seed, mirror_env) as kept:
        (told,) = json.loads(kept.attached).values()
        provider = Path("/proc") / str(told["Pid"])
        assert "terraform-provider-aws" in (provider / "cmdline").read_text()
    deadline = time.monotonic() + 60
    while _runs(provider):
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.02)


def _runs(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


@pytest.mark.own_provider
def test_a_test_can_ask_for_providers_that_are_started(stack_factory: Any, tf: Any) -> None:
    stack = stack_factory(USER)
    shutil.rmtree(stack / ".terraform" / "providers")
    done = tf("plan", "-input=false", cwd=stack, check=False)
    assert done.returncode == 1
    assert "Required plugins are not installed" in done.stderr


@pytest.mark.parametrize(
    ("more", "attached"),
    [
        ({}, True),
        ({"PATH": "/elsewhere", "TF_CLI_ARGS": "-no-color"}, True),
        ({"AWS_REGION": "eu-west-1"}, False),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, False),
        ({"TF_APPEND_USER_AGENT": "somebody"}, False),
    ],
)
def test_a_run_whose_provider_would_see_other_settings_is_not_attached(
    tmp_path: Path, more: dict[str, str], attached: bool
) -> None:
    kept = KeptProvider(tmp_path, SETTINGS)
    assert kept.environment(SETTINGS | more, tmp_path) == SETTINGS | more | ({ATTACH: ""} if attached else {})


def test_a_stack_with_an_alias_is_not_attached(tmp_path: Path) -> None:
    kept = KeptProvider(tmp_path, SETTINGS)
    one = write_stack(tmp_path / "one", USER)
    assert ATTACH in kept.environment(SETTINGS, one)
    assert ATTACH not in kept.environment(SETTINGS, write_stack(tmp_path / "two", USER, aliases={"far": "eu-west-1"}))


def test_one_proxy_after_the_other_serves_one_port(moto: MotoServer) -> None:
    moto.reset()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(2):
            with FaultProxy(moto.url, listener=listener) as proxy:
                assert proxy.url == f"http://127.0.0.1:{listener.getsockname()[1]}"
                moto.client("iam", url=proxy.url).list_users()
                assert proxy.log.actions() == ["ListUsers"]


def test_an_init_installs_the_provider_so_it_is_not_attached(tmp_path: Path) -> None:
    kept = KeptProvider(tmp_path, SETTINGS)
    assert kept.environment(SETTINGS, tmp_path, ("init", "-input=false")) == SETTINGS
    assert kept.environment(SETTINGS, tmp_path, ("-chdir=one", "init")) == SETTINGS
    assert ATTACH in kept.environment(SETTINGS, tmp_path, ("apply",))
