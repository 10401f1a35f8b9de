"""The engine's surroundings: provider mirror, environment, stacks, and the pytest fixtures that use them."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fixtures.fault_proxy import FaultProxy
from fixtures.leftovers import end_processes_in
from fixtures.terraform_env import (
    AWS_PROVIDER,
    clean_environment,
    find_mirror,
    needs_own_init,
    plant,
    s3_backend,
    terraform_environment,
    write_cli_config,
    write_stack,
)


def test_named_mirror_wins_even_if_it_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "opt/unpacked" / AWS_PROVIDER).mkdir(parents=True)
    assert find_mirror({"TFGUARD_PROVIDER_MIRROR": "/named"}, tmp_path) == Path("/named")


def test_implied_mirror_wins_over_opt(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "opt/unpacked" / AWS_PROVIDER).mkdir(parents=True)
    assert find_mirror({"HOME": str(home)}, tmp_path) == tmp_path / "opt/unpacked"
    (tmp_path / "usr/share/terraform/plugins" / AWS_PROVIDER).mkdir(parents=True)
    assert find_mirror({"HOME": str(home)}, tmp_path) == tmp_path / "usr/share/terraform/plugins"
    (home / ".terraform.d/plugins" / AWS_PROVIDER).mkdir(parents=True)
    assert find_mirror({"HOME": str(home)}, tmp_path) == home / ".terraform.d/plugins"


def test_without_a_mirror_the_registry_is_asked(tmp_path: Path) -> None:
    assert find_mirror({"HOME": str(tmp_path)}, tmp_path) is None
    assert "provider_installation" not in write_cli_config(tmp_path / "rc", None).read_text()


def test_environment_keeps_nothing_that_steers_from_outside(tmp_path: Path) -> None:
    outside = {
        "PATH": "/bin",
        "TF_CLI_ARGS": "-json",
        "AWS_PROFILE": "prod",
        "AWS_CA_BUNDLE": "/x",
        "TFGUARD_CONFIG": "/y",
    }
    assert clean_environment(outside).keys() == {"PATH", "NO_PROXY", "no_proxy"}
    chosen = terraform_environment(tmp_path / "rc", endpoint="http://127.0.0.1:1", environ=outside)
    assert chosen["TF_CLI_CONFIG_FILE"] == str(tmp_path / "rc")
    assert chosen["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert "AWS_PROFILE" not in chosen and "TF_CLI_ARGS" not in chosen
    assert "AWS_ENDPOINT_URL" not in terraform_environment(tmp_path / "rc", environ=outside)


def test_stack_with_a_backend_or_a_module_needs_its_own_init() -> None:
    assert needs_own_init("", s3_backend("state"))
    assert needs_own_init('module "net" {\n}', None)
    assert not needs_own_init('resource "aws_vpc" "module" {\n}', None)


def test_run_without_the_proxy_reaches_no_cloud(run_env: dict[str, str]) -> None:
    assert "AWS_ENDPOINT_URL" not in run_env


def test_run_with_the_proxy_goes_through_it(run_env: dict[str, str], proxy: FaultProxy) -> None:
    assert run_env["AWS_ENDPOINT_URL"] == proxy.url


@pytest.mark.e2e
def test_plain_stack_runs_without_a_provider(plain_stack: Any, tf: Any) -> None:
    stack = plain_stack('resource "terraform_data" "one" {}')
    assert "1 added" in tf("apply", "-auto-approve", "-no-color", cwd=stack).stdout


@pytest.mark.e2e
def test_written_stacks_are_valid(workdir: Path, seed: Path, tf: Any) -> None:
    stack = write_stack(workdir / "stack", "", endpoint="http://127.0.0.1:1", aliases={"eu": "eu-west-1"})
    plant(seed, stack)
    tf("validate", cwd=stack)


def test_process_left_in_a_folder_is_ended_and_no_other(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    started = []
    for folder in (inside, outside):
        folder.mkdir()
        started.append(subprocess.Popen(["sleep", "60"], cwd=folder, start_new_session=True))
    left, other = started
    assert end_processes_in(inside) == [left.pid]
    assert left.wait() == -signal.SIGKILL
    assert other.poll() is None
    other.kill()
    other.wait()


def test_popen_starts_tfguard_in_a_session_of_its_own(tfguard_popen: Any) -> None:
    process = tfguard_popen("--help")
    assert os.getsid(process.pid) == process.pid
    process.wait(timeout=30)
