"""What the engine gets of a command line that is handed through: a stand-in for the engine tells its arguments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Not an engine: it prints what it was called with.
STAND_IN = """#!{python}
import json, os, sys
told = {{"arguments": sys.argv[1:]}}
told["environment"] = {{name: value for name, value in os.environ.items() if name.startswith(("TF_", "AN_"))}}
print(json.dumps(told))
sys.exit(7)
"""
WEIRD = (
    "",
    "-",
    "--",
    "a b",
    "a\nb",
    "'",
    '"',
    "$HOME",
    "\\",
    "ä☃",
    os.fsdecode(b"\xff\xfe"),
    "-x=",
    "--x=y",
    "-x=-y=z",
)


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """The stand-in's path."""
    path = tmp_path / "stand-in-engine"
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(0o755)
    return path


def told(tfguard: Run, stand_in: Path, *words: str, code: int = 7, **settings: Any) -> dict[str, Any]:
    """What the stand-in was called with; its exit code must have come through."""
    done = tfguard("--engine", str(stand_in), *words, **settings)
    assert (done.returncode, done.stderr) == (code, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("init", "-backend-config=key=value", "-backend-config", "file", "-reconfigure"),
        ("fmt", "-recursive", "-check", "-", "dir"),
        ("a-command-that-does-not-exist-yet", "-flag", "--flag=1", "--", "-flag"),
        ("output", "-raw", "x"),
        ("workspace", "select", "-or-create=true", "dev"),
        ("state", "list", "-state=x", "a.b"),
        ("state", "of-the-future", "-x"),
        ("console", "-var", "--reason=x", "--engine", "none", "--config=none"),
        ("test", "-help"),
        ("init", "-version"),
        ("-chdir=.", "init", "-chdir=x"),
        ("-chdir=.", "-of-the-future=1", "--also", "init"),
        ("-of-the-future",),
        ("--", "init"),
        ("", "init"),
        ("",),
        ("-chdir", ".", "init"),
        ("-chdir=", "init"),
        ("--chdir=.", "init"),
        ("-chdir=.", "-chdir=.", "init"),
        ("-version",),
        ("-v",),
        ("--version",),
        ("-chdir=.", "-version", "apply", "-auto-approve"),
        ("plan", "-out=x", "-detailed-exitcode", "--", "-y"),
        ("plan", "-generate-config-out", "x.tf", "-json", "-compact-warnings", "-state", "s"),
        ("version", "-json"),
        ("version", "--json=true"),
        ("apply", "-json"),
        ("init", *WEIRD),
        ("plan", "-no-color", *WEIRD),
        (*(f"-x{number}" for number in range(50)), "init", *("word" for _ in range(20_000))),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_every_word_arrives_as_it_was_typed(tfguard: Run, stand_in: Path, words: tuple[str, ...]) -> None:
    assert told(tfguard, stand_in, *words)["arguments"] == list(words)


def test_tfguards_own_options_before_the_command_do_not_arrive(tfguard: Run, stand_in: Path, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("on_gap: block\n")
    words = ("-chdir=.", "--config", str(tmp_path / "c.yaml"), "init", "--config=x")
    assert told(tfguard, stand_in, *words)["arguments"] == ["-chdir=.", "init", "--config=x"]


@pytest.mark.parametrize(
    "words", [("apply", "-v"), ("apply", "-auto-approve", "-var", "--version"), ("state", "rm", "-v")]
)
def test_a_call_that_would_show_the_version_can_do_nothing_else(
    tfguard: Run, stand_in: Path, words: tuple[str, ...]
) -> None:
    assert told(tfguard, stand_in, *words)["arguments"] == ["version", *words]


def test_the_environment_arrives_as_it_is(tfguard: Run, stand_in: Path) -> None:
    env = {"TF_CLI_ARGS": "-a 'b", "TF_CLI_ARGS_init": "-x", "TF_WORKSPACE": "w", "TF_DATA_DIR": "d", "TF_INPUT": "0"}
    env |= {"TF_IN_AUTOMATION": "1", "TF_LOG": "", "AN_OTHER": os.fsdecode(b"\xff")}
    found = told(tfguard, stand_in, "init", env=env)["environment"]
    assert {name: value for name, value in found.items() if name in env} == env


def test_the_engine_ignores_no_signal_that_it_would_not_ignore_without_tfguard(tfguard: Run, stand_in: Path) -> None:
    # `tfguard output | head`: an engine that ignores SIGPIPE hands that on to every program that it starts.
    stand_in.write_text("#!/bin/sh\nexec grep SigIgn /proc/self/status\n")
    assert tfguard("--engine", str(stand_in), "init").stdout.split() == ["SigIgn:", "0" * 16]


def test_the_engine_of_a_tfguard_yaml_with_a_mistake_is_taken_all_the_same(
    tfguard: Run, stand_in: Path, workdir: Path
) -> None:
    for text in (f"on_gap: no-such-word\nengine: {stand_in}\n", f'engine: "{stand_in}" # ours\n\tnot yaml'):
        (workdir / "tfguard.yaml").write_text(text)
        for command in ("init", "plan", "-version"):
            done = tfguard(command)
            assert done.returncode == 7, done.stderr
            assert json.loads(done.stdout)["arguments"] == [command]
            (line,) = done.stderr.splitlines()
            assert line.startswith(f"tfguard: {workdir}/tfguard.yaml:")


def test_a_tfguard_yaml_that_is_named_and_cannot_be_read_is_an_error(tfguard: Run, stand_in: Path) -> None:
    done = tfguard("--engine", str(stand_in), "--config", "missing.yaml", "init")
    assert (done.returncode, done.stdout) == (1, "")
    assert "missing.yaml" in done.stderr


def test_without_an_engine_nothing_is_handed_on(tfguard: Run) -> None:
    for words in (("init",), ("-version",), ("apply",), ("version", "-json"), ("a-new-command",)):
        done = tfguard("--engine", "no-such-engine", *words)
        assert (done.returncode, done.stdout) == (13, "")
        assert len(done.stderr.splitlines()) == 2
