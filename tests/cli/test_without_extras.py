"""tfguard installed without its optional packages says which one a command needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tfguard.cli.main import COMMANDS

OPTIONAL = ("azure", "boto3", "botocore", "distributed", "google", "psycopg")

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))  # as if they were not installed
from tfguard.cli.main import exit_code_of
sys.exit(exit_code_of(sys.argv[2:]))
"""


def run_without(modules: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command where these modules cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, modules, *arguments], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_a_scan_without_the_sdk_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "a.tfstate").write_text('{"version": 4, "serial": 1, "lineage": "a", "resources": []}')
    done = run_without("boto3,botocore", "scan", "a.tfstate", "--region", "eu-west-1", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "tfguard: `scan` needs boto3, which is not installed",
        "tfguard: install it: `pip install boto3`",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_its_help_without_any_optional_package(tmp_path: Path, command: str) -> None:
    done = run_without(",".join(OPTIONAL), command, "--help", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "not installed" not in done.stderr


def test_a_blueprint_needs_no_cloud_s_package(tmp_path: Path) -> None:
    head = "apiVersion: tfguard/v1\nkind: Blueprint\nname: one\nowner: a\ncost_owner: b\nsteps:\n"
    (tmp_path / "one.yaml").write_text(head + "  say: {run: ['true'], check: ['true']}\n")
    done = run_without(",".join(OPTIONAL), "blueprint", "apply", "one.yaml", "--yes", folder=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_module_that_nobody_installs_apart_is_a_defect(tmp_path: Path) -> None:
    done = run_without("tfguard.cli.scan", "scan", folder=tmp_path)
    assert "this is a defect in tfguard: ModuleNotFoundError" in done.stderr
