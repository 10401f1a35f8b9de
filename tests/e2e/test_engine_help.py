"""Help and versions: the engine's own, with tfguard's additions after it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from helpers import Run, operations

from tfguard import __version__
from tfguard.cli.main import COMMANDS

pytestmark = pytest.mark.e2e

OWN = ("status", "recover", "history", "scan", "orphans", "archive", "catalog", "metrics", "blueprint", "doctor")
ADDED_TO_APPLY = ("--on-gap", "--reason", "--baseline", "--fail-on-gap", "--no-verify")


def both(tf: Run, tfguard: Run, cwd: Path, *words: str, **settings: object) -> tuple[str, str]:
    """What the engine prints, and what tfguard prints after the same; exit code and stderr are the same."""
    real, ours = tf(*words, cwd=cwd, check=False, **settings), tfguard(*words, cwd=cwd, **settings)
    assert (ours.returncode, ours.stderr) == (real.returncode, real.stderr)
    assert ours.stdout.startswith(real.stdout)
    return real.stdout, ours.stdout.removeprefix(real.stdout)


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "-help"),
        ("apply", "-h"),
        ("apply", "--help"),
        ("-help", "apply"),
        ("-chdir=.", "apply", "-help"),
        ("apply", "-auto-approve", "-var", "-help"),
        ("apply", "my.plan", "-bogus", "--help", "--", "x"),
        ("-bogus", "-help", "apply"),
        ("destroy", "-help"),
    ],
    ids=" ".join,
)
def test_the_engines_help_comes_first_and_tfguards_options_after_it(
    tf: Run, tfguard: Run, workdir: Path, words: tuple[str, ...]
) -> None:
    shown, added = both(tf, tfguard, workdir, *words)
    assert "Usage:" in shown
    assert "tfguard adds:" in added
    for option in ADDED_TO_APPLY:
        assert re.search(rf"^  {option}\b", added, re.MULTILINE)
    assert not re.search(r"\[ARGUMENTS\]|--help", added)
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in OWN])
def test_every_command_that_tfguard_adds_to_says_what(tf: Run, tfguard: Run, workdir: Path, command: str) -> None:
    shown, added = both(tf, tfguard, workdir, command, "-help")
    assert f" {command}" in shown.splitlines()[0]
    assert added.startswith("\ntfguard adds:\n")


def test_help_that_the_environment_asks_for_is_the_same(tf: Run, tfguard: Run, workdir: Path) -> None:
    _, added = both(tf, tfguard, workdir, "apply", "-auto-approve", env={"TF_CLI_ARGS_apply": "-help"})
    assert "--on-gap" in added


@pytest.mark.parametrize(
    "words",
    [
        ("init", "-help"),
        ("fmt", "--help"),
        ("-help", "output"),
        ("state", "list", "-help"),
        ("workspace", "-help"),
        ("apply", "--", "-help"),
        ("help",),
        ("version", "-bogus"),
    ],
    ids=" ".join,
)
def test_where_tfguard_adds_nothing_it_says_nothing(
    tf: Run, tfguard: Run, workdir: Path, words: tuple[str, ...]
) -> None:
    real, ours = tf(*words, cwd=workdir, check=False), tfguard(*words, cwd=workdir)
    assert ours.returncode == real.returncode
    if words != ("apply", "--", "-help"):
        assert (ours.stdout, ours.stderr) == (real.stdout, real.stderr)
    assert "--on-gap" not in ours.stdout


@pytest.mark.parametrize("words", [("-help",), ("--help",), ("-h",), (), ("-chdir=.", "-help")], ids=" ".join)
def test_the_list_of_commands_is_the_engines_and_then_tfguards(
    tf: Run, tfguard: Run, workdir: Path, words: tuple[str, ...]
) -> None:
    shown, added = both(tf, tfguard, workdir, *words)
    assert "init " in shown
    for name in COMMANDS:
        assert re.search(rf"^  {name}\s", added, re.MULTILINE)
    assert re.search(r"^  --engine\b", added, re.MULTILINE)
    assert re.search(r"^  --config\b", added, re.MULTILINE)


@pytest.mark.parametrize(
    "words", [("-chdir=nowhere", "-help"), ("-chdir=", "-help"), ("-chdir=nowhere", "apply", "-h")]
)
def test_help_from_a_folder_that_is_not_there_is_the_engines_error(
    tf: Run, tfguard: Run, workdir: Path, words: tuple[str, ...]
) -> None:
    shown, added = both(tf, tfguard, workdir, *words)
    assert (shown, added) == ("", "")


@pytest.mark.parametrize("command", OWN)
@pytest.mark.parametrize("spelling", ["-h", "-help", "--help"])
def test_an_own_command_has_its_own_help(tfguard: Run, command: str, spelling: str) -> None:
    before, after = tfguard(spelling, command), tfguard(command, spelling)
    assert (after.returncode, after.stderr) == (0, "")
    assert after.stdout.startswith(f"Usage: tfguard {command} ")
    assert before.stdout == after.stdout
    if command == "orphans":
        assert tfguard("orphans", "list", spelling).stdout.startswith("Usage: tfguard orphans list ")


def test_without_an_engine_the_help_is_tfguards_own(tfguard: Run) -> None:
    for words, code in ((("-help",), 0), (("apply", "-help"), 0), (("-help", "plan"), 0), ((), 13)):
        done = tfguard("--engine", "no-such-engine", *words)
        assert done.returncode == code
        assert done.stdout.startswith("Usage: tfguard ")
        assert done.stderr.startswith("tfguard: the engine 'no-such-engine' is not there")
    assert tfguard("--engine", "no-such-engine", "status", "-h").returncode == 0


@pytest.mark.parametrize(
    "words", [("-version",), ("-v",), ("--version",), ("version", "-json"), ("plan", "-version"), ("apply", "-v")]
)
def test_what_tools_read_a_version_from_is_the_engines_own(
    tf: Run, tfguard: Run, workdir: Path, words: tuple[str, ...]
) -> None:
    shown, added = both(tf, tfguard, workdir, *words)
    assert (added, "erraform" in shown or "OpenTofu" in shown) == ("", True)
    assert operations(workdir) == []


@pytest.mark.parametrize("env", [{}, {"TF_CLI_ARGS": "-no-color"}])
def test_the_version_is_the_engines_and_then_a_line_about_tfguard(
    tf: Run, tfguard: Run, engine: Path, workdir: Path, env: dict[str, str]
) -> None:
    shown, added = both(tf, tfguard, workdir, "version", env=env)
    assert re.match(r"(Terraform|OpenTofu) v\d+\.", shown)
    assert added == f"tfguard {__version__} (engine {engine})\n"


def test_the_version_as_json_is_the_engines_or_tfguards(tf: Run, tfguard: Run, workdir: Path) -> None:
    shown, added = both(tf, tfguard, workdir, "version", env={"TF_CLI_ARGS_version": "-json"})
    assert added == ""
    own = json.loads(tfguard("version", "--format", "json", cwd=workdir).stdout)
    assert own["tfguard"] == __version__
    assert own["engine"]["version"] == json.loads(shown)["terraform_version"]


def test_without_an_engine_the_version_is_tfguards_own(tfguard: Run) -> None:
    done = tfguard("--engine", f"{os.sep}no{os.sep}engine", "version")
    assert (done.returncode, done.stdout) == (13, f"tfguard {__version__}\n")
    assert len(done.stderr.splitlines()) == 2
