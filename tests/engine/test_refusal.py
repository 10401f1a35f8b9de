"""The engine's own words about a command line, asked for in an empty folder where they cannot do anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from two_forms import TERRAFORM, environment, needs_terraform

from tfguard.engine.interrupts import SignalGate
from tfguard.engine.refusal import NO_CONFIGURATION, refusal

# A stand-in: it tells how it was called, and what lies where it stands.
TELLING = """#!/bin/sh
echo "$@"
cd "${1#-chdir=}" && ls -A
env | grep '^TF_'
read line && echo "read $line"
echo words >&2
exit ${CODE:-1}
"""


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    """The stand-in engine."""
    path = tmp_path / "engine"
    path.write_text(TELLING)
    path.chmod(0o755)
    return path


def asked(
    binary: Path, *arguments: str, command: str = "apply", environ: dict[str, str] | None = None
) -> list[str] | None:
    """The lines that the stand-in tells."""
    environ = {"PATH": "/usr/bin:/bin"} | (environ or {})
    answer = refusal(binary, command, arguments, environ, SignalGate())
    return None if answer is None else answer.stdout.splitlines()


def test_nothing_of_the_stack_goes_along(telling: Path) -> None:
    environ = {"TF_DATA_DIR": "/data", "TF_WORKSPACE": "w", "TF_CLI_ARGS_apply": "-x", "TF_IN_AUTOMATION": "1"}
    lines = asked(telling, "-auto-approve", "-var", "a=b", "--auto-approve=true", environ=environ)
    assert lines is not None
    folder, _, rest = lines[0].partition(" ")
    assert folder.startswith("-chdir=")
    assert rest == "apply -var a=b"
    assert lines[1:] == ["TF_IN_AUTOMATION=1"]
    assert not Path(folder.removeprefix("-chdir=")).exists()


def test_an_approval_goes_along_only_where_it_changes_nothing(telling: Path) -> None:
    lines = asked(telling, "-json", "-auto-approve")
    assert lines is not None
    assert lines[0].endswith("apply -json -auto-approve")
    assert asked(telling, "-json", "-auto-approve", "-destroy") is None
    assert asked(telling, "-json", "-auto-approve", command="destroy") is None


@pytest.mark.parametrize("code", ["0", "2", "3"])
def test_what_is_no_refusal_is_no_answer(telling: Path, code: str) -> None:
    assert asked(telling, environ={"CODE": code}) is None


@needs_terraform
def test_the_engine_refuses_in_its_words(tmp_path: Path) -> None:
    assert TERRAFORM is not None
    environ = environment(tmp_path)
    answer = refusal(Path(TERRAFORM), "apply", ("-no-color", "-target=x"), environ, SignalGate())
    assert answer is not None
    assert 'Invalid target "x"' in answer.stderr
    assert "apply -help" in answer.stderr
    answer = refusal(Path(TERRAFORM), "apply", ("-no-color", "-auto-approve"), environ, SignalGate())
    assert answer is not None
    assert NO_CONFIGURATION in answer.stderr
