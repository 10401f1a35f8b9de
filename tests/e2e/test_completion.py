"""Shell completion, asked for as bash, zsh and fish ask for it, and typed on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from helpers import APPLY, Run, StackFactory, operations

from tfguard.cli.main import COMMANDS

pytestmark = pytest.mark.e2e

BREAKS = " \t\n\"'><=;|&(:"
PROGRAM = "import sys\nfrom tfguard.cli.main import run\nsys.exit(run())"
ONE = 'resource "terraform_data" "one" {}\n'


def needs(shell: str) -> str:
    """The shell's path; a test that needs it is skipped where it is not installed."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


@pytest.fixture
def env(run_env: dict[str, str], engine: Path, tmp_path: Path) -> dict[str, str]:
    """An environment in which a shell finds tfguard, and tfguard the engine."""
    for name in ("tfguard", "terraform"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\n{PROGRAM}\n")
        path.chmod(0o755)
    search = os.pathsep.join((str(tmp_path / "bin"), run_env["PATH"]))
    return run_env | {"PATH": search, "TFGUARD_ENGINE": str(engine), "TERM": "xterm", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def folder(workdir: Path) -> Path:
    """A working folder with files of all kinds."""
    for name in ("vars/prod.tfvars", "vars/deep/x.tfvars", "dev.tfvars", "my plan.bin", ".hidden/x", "other/y"):
        path = workdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return workdir


class Asked:
    """Asks as a shell does, and tells the words that were suggested."""

    def __init__(self, env: Mapping[str, str], folder: Path) -> None:
        self.env = env
        self.folder = folder

    def __call__(self, line: str, shell: str = "zsh") -> list[str]:
        """The suggestions for a line whose end is the cursor."""
        settings = {"COMP_WORDS": line, "COMP_WORDBREAKS": BREAKS, "_TFGUARD_COMPLETE": f"{shell}_complete"}
        done = subprocess.run(
            ["tfguard"], cwd=self.folder, env={**self.env, **settings}, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        column = 1 if shell == "bash" else 0
        return [shown.split("\t")[column] for shown in done.stdout.splitlines()]


@pytest.fixture
def asked(env: dict[str, str], folder: Path) -> Asked:
    """Ask what may be typed in the folder."""
    return Asked(env, folder)


def test_commands_are_the_engines_and_tfguards(asked: Asked) -> None:
    found = asked("tfguard ")
    assert {"init", "fmt", "workspace", *COMMANDS} <= set(found)
    assert len(found) == len(set(found))
    assert asked("tfguard sta") == ["state", "status"]
    assert asked("tfguard -chdir=vars in") == ["init"]
    assert asked("TF_LOG=1 tfguard hist") == ["history"]
    assert asked("tfguard no-such") == []


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("tfguard -", {"-chdir=", "-help", "-version", "--engine", "--config"}),
        ("tfguard --", {"--engine", "--config"}),
        ("tfguard init -", {"-backend-config=", "-reconfigure", "-backend=false"}),
        ("tfguard apply -", {"-auto-approve", "-var-file=", "-lock=false", "-target=", "-replace="}),
        ("tfguard apply --", {"--auto-approve", "--var-file=", "--on-gap", "--no-verify"}),
        ("tfguard destroy -", {"-auto-approve", "-target="}),
        ("tfguard destroy -auto-approve --", {"--on-gap", "--reason"}),
        ("tfguard plan -", {"-out=", "-detailed-exitcode", "-generate-config-out="}),
        ("tfguard state rm -", {"-dry-run", "-state="}),
        ("tfguard import --", {"--orphan", "--address", "--yes"}),
        ("tfguard status --", {"--format", "--state"}),
        ("tfguard orphans list --", {"--all", "--format"}),
    ],
)
def test_flags_are_those_of_the_engines_help_and_the_own_ones(asked: Asked, line: str, some: set[str]) -> None:
    found = asked(line)
    assert some <= set(found)
    assert all(word.startswith(line.split()[-1]) for word in found)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("tfguard apply --on-gap ", ["reconcile", "block", "ignore"]),
        ("tfguard apply --on-gap=b", ["--on-gap=block"]),
        ("tfguard status --format j", ["json"]),
        ("tfguard --engine t", ["terraform", "tofu"]),
        ("tfguard --engine=to", ["--engine=tofu"]),
        ("tfguard --config d", ["dev.tfvars"]),
        ("tfguard orphans ", ["list", "show", "import", "retain", "release", "destroy"]),
        ("tfguard state r", ["replace-provider", "rm"]),
        ("tfguard workspace s", ["select", "show"]),
        ("tfguard -chdir=", ["-chdir=other/", "-chdir=vars/"]),
        ("tfguard -chdir=v", ["-chdir=vars/"]),
        ("tfguard apply -var-file=d", ["-var-file=dev.tfvars"]),
        ("tfguard apply --var-file=vars/", ["--var-file=vars/deep/", "--var-file=vars/prod.tfvars"]),
        ("tfguard apply -var-file v", ["vars/"]),
        ("tfguard -chdir=vars plan -var-file=", ["-var-file=deep/", "-var-file=prod.tfvars"]),
        ("tfguard plan -out=.h", ["-out=.hidden/"]),
        ("tfguard apply my", ["my plan.bin"]),
        ('tfguard apply "my p', ["my plan.bin"]),
        ("tfguard apply my\\ ", ["my plan.bin"]),
        ("tfguard show ", ["dev.tfvars", "my plan.bin", "other/", "vars/"]),
        ("tfguard a-command-of-the-future de", ["dev.tfvars"]),
        ("tfguard destroy my", []),
        ("tfguard apply -var x", []),
        ("tfguard apply -var-file=no/where/", []),
    ],
)
def test_values_and_files_are_what_can_stand_there(asked: Asked, line: str, found: list[str]) -> None:
    assert asked(line) == found


def test_bash_gets_what_comes_after_its_own_word_break(asked: Asked) -> None:
    assert asked("tfguard -chdir=va", "bash") == ["vars"]  # bash itself puts the slash behind a folder
    assert asked("tfguard -chdir=vars plan -var-file=de", "bash") == ["deep/"]
    assert asked("tfguard apply --on-gap=b", "bash") == ["block"]
    assert asked("tfguard apply -par", "bash") == ["-parallelism="]


def test_operations_and_findings_of_a_record_on_disk_are_known(
    asked: Asked, plain_stack: StackFactory, tfguard: Run, workdir: Path
) -> None:
    stack = plain_stack(ONE)
    for _ in range(2):
        assert tfguard(*APPLY, "-replace=terraform_data.one", "-state=x.tfstate", cwd=stack).returncode == 0
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert asked("tfguard -chdir=stack status ") == operations(stack)
    newest_first = [path.name for path in sorted((stack / "x.tfstate.tfguard/operations").iterdir(), reverse=True)]
    assert asked("tfguard -chdir=stack status -state=x.tfstate ") == newest_first
    assert asked(f"tfguard -chdir=stack status -state=x.tfstate {newest_first[0]}") == newest_first[:1]
    assert asked("tfguard -chdir=stack orphans show ")[:1] in ([], ["--findings"])
    assert workdir.is_dir()


def test_a_record_in_a_cloud_is_not_asked(asked: Asked, folder: Path) -> None:
    (folder / "tfguard.yaml").write_text("records: s3://bucket/prefix\n")
    asked.env = {**asked.env, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"}
    code = "import sys; from tfguard.cli.suggestions import suggestions as asked; "
    code += "print([item.value for item in asked(['status'], '')])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; assert not {{'boto3', 'botocore'}} & set(sys.modules)"],
        cwd=folder,
        env=dict(asked.env),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.replace("'", '"')) == ["--state", "--format"]


@pytest.mark.parametrize(
    "line", ["tfguard ", "tfguard apply -", "tfguard status ", "tfguard 'ap", "", "tfguard --engine "]
)
def test_whatever_is_broken_a_shell_gets_no_error(asked: Asked, folder: Path, line: str) -> None:
    (folder / "tfguard.yaml").write_text("engine: [\n")
    (folder / ".terraform").mkdir()
    (folder / ".terraform/terraform.tfstate").write_text("{")
    asked.env = {**asked.env, "TFGUARD_ENGINE": "/no/such/engine"}
    for shell in ("bash", "zsh", "fish"):
        found = subprocess.run(
            ["tfguard"],
            cwd=folder,
            env={**asked.env, "COMP_WORDS": line, "_TFGUARD_COMPLETE": f"{shell}_complete"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert found.returncode == 0
        assert "Traceback" not in found.stdout + found.stderr


def test_without_an_engine_tfguards_own_commands_are_known(asked: Asked) -> None:
    asked.env = {**asked.env, "TFGUARD_ENGINE": "/no/such/engine"}
    assert set(asked("tfguard ")) == set(COMMANDS)
    assert "--on-gap" in asked("tfguard apply --")


@pytest.mark.parametrize("words", [("version",), ("status",), ("apply", "-auto-approve")])
def test_a_variable_that_is_left_in_the_environment_stops_no_command(
    plain_stack: StackFactory, tfguard: Run, words: tuple[str, ...]
) -> None:
    done = tfguard(*words, cwd=plain_stack(ONE), env={"_TFGUARD_COMPLETE": "bash_source"})
    assert done.returncode == 0
    assert "complete -" not in done.stdout


@pytest.mark.parametrize("value", ["ksh_source", "bash", "bash_other"])
def test_a_shell_that_is_not_known_is_told(tfguard: Run, value: str) -> None:
    done = tfguard(env={"_TFGUARD_COMPLETE": value})
    assert (done.returncode, done.stdout) == (1, "")
    assert "bash_source, zsh_source, fish_source" in done.stderr


@pytest.mark.parametrize("name", ["tfguard", "terraform"])
def test_bash_completes_through_its_own_function(env: dict[str, str], folder: Path, name: str) -> None:
    script = f"""
    eval "$(_TFGUARD_COMPLETE=bash_source {name})"
    complete -p {name}
    ask() {{
        COMP_LINE=$1 COMP_POINT=${{#1}}
        _{name}_completion {name}
        printf '%s|' "${{COMPREPLY[@]}}"
        echo
    }}
    ask '{name} fm'
    ask '{name} -chdir=vars apply -var-file=p'
    ask '{name} apply m'
    ask '{name} nothing-like -this'
    """
    done = subprocess.run(
        [needs("bash"), "--norc", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    registered, *replies = done.stdout.splitlines()
    assert f"_{name}_completion {name}" in registered
    assert replies == ["fmt|", "prod.tfvars|", "my plan.bin|", "|"]


class Typed:
    """A shell on a terminal, and what is typed there."""

    def __init__(self, argv: list[str], env: Mapping[str, str], folder: Path) -> None:
        self._owner, terminal = pty.openpty()
        self._shell = subprocess.Popen(
            argv, cwd=folder, env=dict(env), stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
        )
        os.close(terminal)

    def type(self, text: str, until: str) -> str:
        """Type, and wait until something is shown; all that was shown since."""
        os.write(self._owner, text.encode())
        shown, deadline = "", time.monotonic() + 60
        while until not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([self._owner], [], [], 1)[0]:
                shown += os.read(self._owner, 65536).decode("utf-8", "replace")
        return shown

    def close(self) -> None:
        """End the shell that was started here."""
        self._shell.kill()
        self._shell.wait()
        os.close(self._owner)


@pytest.fixture
def stand_in(tmp_path: Path, engine: Path) -> Path:
    """The real engine's help, and for every other call a line with its arguments."""
    path = tmp_path / "stand-in-engine"
    path.write_text(f'#!/bin/sh\nfor word; do [ "$word" = -help ] && exec {engine} "$@"; done\n')
    with path.open("a") as file:
        file.write("printf '<%s>' \"$@\"; echo; echo the-end\n")
    path.chmod(0o755)
    return path


@pytest.fixture(params=["bash", "zsh"])
def typed(request: pytest.FixtureRequest, env: dict[str, str], folder: Path, stand_in: Path) -> Iterator[Typed]:
    """A shell that has tfguard's completion, and a stand-in for an engine."""
    shell = needs(request.param)
    flags = ["--norc", "--noprofile", "-i"] if request.param == "bash" else ["-f", "-i"]
    running = Typed([shell, *flags], env | {"TFGUARD_ENGINE": str(stand_in)}, folder)
    start = "" if request.param == "bash" else "autoload -Uz compinit && compinit -u -D && "
    running.type(f'{start}eval "$(_TFGUARD_COMPLETE={request.param}_source tfguard)" && echo re"ad"y\n', "ready\r")
    yield running
    running.close()


@pytest.mark.parametrize(
    ("keys", "arguments"),
    [
        (("tfguard fm\t", "-che\t"), "<fmt><-check>"),
        (("tfguard -chdir=va\t", " init -reco\t"), "<-chdir=vars/><init><-reconfigure>"),
        (("tfguard init -backend-config=d\t",), "<init><-backend-config=dev.tfvars>"),
        (("tfguard show my\t",), "<show><my plan.bin>"),
        (('tfguard show "my\t',), "<show><my plan.bin>"),
        (("tfguard workspace se\t", "x"), "<workspace><select><x>"),
        (("tfguard init -lockf\t", "x"), "<init><-lockfile=x>"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_is_typed_with_the_tab_key_is_what_runs(typed: Typed, keys: tuple[str, ...], arguments: str) -> None:
    for text in keys:
        before = text.partition("\t")[0]
        typed.type(text, before[-2:])
        time.sleep(1.5)  # nothing on the terminal tells that a completion has ended
    assert arguments in typed.type("\n", "the-end")


def test_fish_completes_through_its_own_function(env: dict[str, str], folder: Path) -> None:
    script = "_TFGUARD_COMPLETE=fish_source tfguard | source; for line in $argv; complete -C $line; echo .; end"
    lines = ["tfguard fm", "tfguard -chdir=vars apply -var-file=p", "tfguard apply --on-gap=", "tfguard show my"]
    done = subprocess.run(
        [needs("fish"), "--no-config", "-c", script, *lines],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert shown == [
        "fmt",
        ".",
        "-var-file=prod.tfvars",
        ".",
        "--on-gap=reconcile",
        "--on-gap=block",
        "--on-gap=ignore",
        ".",
        "my plan.bin",
        ".",
    ]
