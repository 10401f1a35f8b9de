"""Captured queries to the engine: `version`, `show -json`, `state pull`.

python-terraform is sound for these (they change nothing and their output is read to the end) and for nothing else
(cases B73 to B77); whatever changes state goes through `process.py`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfguard.engine.signals import signals_let_through

# Inserted by the engine into every command line, `show` and `state` too, where they would change what is parsed here.
CLI_ARGUMENT_VARIABLES = "TF_CLI_ARGS"
_OF_THE_STACK = ("TF_WORKSPACE", "TF_DATA_DIR")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a captured query printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def reason(self) -> str:
        """The first line of the engine's error, without colour and frame."""
        plain = re.sub(r"\x1b\[[0-9;]*m", "", self.stderr)
        lines = [line.strip("│╷╵ \t") for line in plain.splitlines()]
        found = next((line for line in lines if line.startswith("Error")), next((line for line in lines if line), ""))
        return found or "the engine gave no reason"


def captured(
    binary: Path,
    directory: Path,
    *arguments: str,
    offline: bool = False,
    elsewhere: bool = False,
    workspace: str | None = None,
) -> Answer:
    """Run a query in `directory` and wait for its end.

    `offline` keeps the engine from asking its vendor for news; `elsewhere` tells that `directory` is not the stack's,
    so that its workspace and its data folder are not meant; `workspace` is meant instead of the selected one. An engine
    that cannot be started gives exit code 127.
    """
    with _query_environment(offline, elsewhere, workspace), signals_let_through():
        try:
            exit_code, stdout, stderr = _runner(binary, directory).cmd(*arguments)
        except OSError as error:
            return Answer(127, "", str(error))
        except UnicodeDecodeError:
            # A wrapper or a provider may print anything, and the library reads it strictly.
            return _leniently(binary, directory, arguments)
        except subprocess.SubprocessError as error:
            return Answer(1, "", str(error))
    return Answer(int(exit_code or 0), stdout or "", stderr or "")


def asked_to_list(binary: Path, directory: Path) -> Answer:
    """The event stream of `query`, which lists what the `.tfquery.hcl` files in `directory` ask for.

    Nobody is asked for a variable that has no value: that fails, as the engine tells it.
    """
    with _query_environment(offline=True), signals_let_through():
        try:
            return _leniently(binary, directory, ("query", "-json", "-no-color"))
        except OSError as error:
            return Answer(127, "", str(error))


def without_arguments(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment without what the engine would insert into the command line of a query."""
    return {name: value for name, value in environ.items() if not name.startswith(CLI_ARGUMENT_VARIABLES)}


def _leniently(binary: Path, directory: Path, arguments: Sequence[str]) -> Answer:
    done = subprocess.run([binary, *arguments], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True)
    return Answer(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def _runner(binary: Path, directory: Path) -> Any:
    from python_terraform import Terraform  # costs 25 ms, and pass-through commands never need it

    class StatelessTerraform(Terraform):  # type: ignore[misc]
        """Without the library's own look at the state: it fails on one of 0 bytes, which an engine that was killed
        leaves behind, and costs time and memory on a large one."""

        def read_state_file(self, file_path: str | None = None) -> None:
            """Nothing is read."""

    return StatelessTerraform(working_dir=str(directory), terraform_bin_path=str(binary))


@contextmanager
def _query_environment(offline: bool, elsewhere: bool = False, workspace: str | None = None) -> Iterator[None]:
    """python-terraform hands os.environ on, so what would bend the answer is taken out of it meanwhile."""
    # Only these names change: lists run in other threads, and read AWS_REGION and its like.
    bending = (CLI_ARGUMENT_VARIABLES, *(_OF_THE_STACK if elsewhere else ()))
    taken = [name for name in os.environ if name.startswith(bending)]
    given = {"CHECKPOINT_DISABLE": "1"} if offline else {}
    if workspace is not None:
        given["TF_WORKSPACE"] = workspace
    before = {name: os.environ.get(name) for name in (*taken, *given)}
    for name in taken:
        del os.environ[name]
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
