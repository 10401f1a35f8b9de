"""tfguard under the engine's name: it takes the next real engine on the PATH, and never calls itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import APPLY, StackFactory, operations, outcome, run_folders

pytestmark = pytest.mark.e2e

ONE = 'resource "terraform_data" "one" {}\noutput "said" {\n  value = "yes"\n}\n'


def script(path: Path, text: str, interpreter: str = "/bin/sh") -> Path:
    """A script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{interpreter}\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def console_script(tmp_path: Path) -> Path:
    """`tfguard` as an installation puts it on the PATH; written here where there is none."""
    installed = Path(sys.executable).with_name("tfguard")
    if installed.is_file():
        return installed
    return script(
        tmp_path / "venv/tfguard", "import sys\nfrom tfguard.cli.main import run\nsys.exit(run())", sys.executable
    )


Shim = Callable[[Path, Path], object]

SHIMS: dict[str, Shim] = {
    "link": lambda shim, itself: shim.symlink_to(itself),
    "link-to-link": lambda shim, itself: (
        shim.with_name("tf").symlink_to(itself),
        shim.symlink_to(shim.with_name("tf")),
    ),
    "copy": lambda shim, itself: shutil.copy(itself, shim),
    "script-that-execs": lambda shim, _: script(shim, 'exec tfguard "$@"'),
    "script-that-calls": lambda shim, _: script(shim, 'tfguard "$@"'),
    "script-with-module": lambda shim, _: script(shim, f'exec "{sys.executable}" -m tfguard "$@"'),
}


@pytest.fixture(params=SHIMS)
def shim(request: pytest.FixtureRequest, tmp_path: Path, console_script: Path) -> Path:
    """A `terraform` that is tfguard, in a folder where `tfguard` lies too."""
    folder = tmp_path / "shims"
    folder.mkdir()
    (folder / "tfguard").symlink_to(console_script)
    SHIMS[request.param](folder / "terraform", console_script)
    return folder / "terraform"


def call(program: Path, *arguments: str, cwd: Path, env: dict[str, str], path: str) -> subprocess.CompletedProcess[str]:
    """Call a program with its folder first on the PATH."""
    search = os.pathsep.join((str(program.parent), path))
    return subprocess.run(
        [str(program), *arguments],
        cwd=cwd,
        env=env | {"PATH": search},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def without_engines(path: str) -> str:
    """A PATH on which neither terraform nor tofu is."""
    folders = path.split(os.pathsep)
    return os.pathsep.join(f for f in folders if not any(shutil.which(name, path=f) for name in ("terraform", "tofu")))


def test_under_the_engines_name_everything_works_through_the_next_real_engine(
    shim: Path, plain_stack: StackFactory, run_env: dict[str, str]
) -> None:
    stack = plain_stack(ONE)

    def terraform(*arguments: str) -> subprocess.CompletedProcess[str]:
        return call(shim, *arguments, cwd=stack, env=run_env, path=run_env["PATH"])

    planned = terraform("plan", "-no-color", "-detailed-exitcode")
    assert planned.returncode == 2, planned.stderr
    applied = terraform(*APPLY)
    assert applied.returncode == 0, applied.stderr
    assert applied.stdout.count("Apply complete! Resources: 1 added") == 1
    assert len(operations(stack)) == 1  # by tfguard, and by one of them
    assert terraform("output", "-raw", "said").stdout == "yes"
    assert terraform("version").stdout.startswith("Terraform v")
    status = terraform("status")
    assert status.returncode == 0
    assert run_folders(stack) == []


@pytest.mark.parametrize("arguments", [("plan",), APPLY, ("fmt",), ("status",)], ids=lambda value: value[0])
def test_without_a_real_engine_it_ends_with_one_clear_line(
    shim: Path, workdir: Path, run_env: dict[str, str], arguments: tuple[str, ...]
) -> None:
    (workdir / "main.tf").write_text(ONE)
    done = call(shim, *arguments, cwd=workdir, env=run_env, path=without_engines(run_env["PATH"]))
    assert done.returncode == 13, done.stdout + done.stderr
    assert done.stdout == ""
    what, advice = done.stderr.splitlines()
    assert "neither terraform nor tofu is on the PATH" in what
    assert f"{shim} is tfguard itself" in what
    assert "--engine" in advice


@pytest.mark.parametrize("text", ['exec renamed "$@"', 'renamed "$@"', '( renamed "$@" )'])
@pytest.mark.parametrize("arguments", [("plan",), APPLY, ("fmt",), ("status",)], ids=lambda value: value[0])
def test_what_nobody_can_recognise_is_seen_when_it_calls_back(
    workdir: Path, tmp_path: Path, run_env: dict[str, str], console_script: Path, text: str, arguments: tuple[str, ...]
) -> None:
    (workdir / "main.tf").write_text(ONE)
    shim = script(tmp_path / "shims/terraform", text)
    script(tmp_path / "shims/renamed", f'exec "{console_script}" "$@"')
    done = call(shim.with_name("renamed"), *arguments, cwd=workdir, env=run_env, path=run_env["PATH"])
    assert done.returncode == 13, done.stdout + done.stderr
    assert "itself" in done.stderr or "leads back to tfguard" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_tfguard_that_a_provisioner_starts_in_another_folder_works(
    plain_stack: StackFactory, run_env: dict[str, str], tmp_path: Path, console_script: Path
) -> None:
    inner = plain_stack(ONE, name="inner")
    outer = plain_stack(
        'resource "terraform_data" "outer" {\n  provisioner "local-exec" {\n'
        '    command = "terraform -chdir=../inner apply -auto-approve && terraform -chdir=../inner output"\n  }\n}\n',
        name="outer",
    )
    shim = tmp_path / "shims/terraform"
    shim.parent.mkdir()
    shim.symlink_to(console_script)
    done = call(shim, *APPLY, cwd=outer, env=run_env, path=run_env["PATH"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'said = "yes"' in done.stdout
    for stack in (inner, outer):
        (operation,) = operations(stack)
        found = outcome(stack, operation)
        assert found is not None
        assert found["status"] == "ok"
