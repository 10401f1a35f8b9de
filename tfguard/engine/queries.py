"""Captured queries to the engine: `version`, `show -json`, `state pull`.

python-terraform is sound for these (they change nothing and their output is read to the end) and for nothing else
(cases B73 to B77); whatever changes state goes through `process.py`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Inserted by the engine into every command line, `show` and `state` too, where they would change what is parsed here.
CLI_ARGUMENT_VARIABLES = "TF_CLI_ARGS"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a captured query printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str


def captured(binary: Path, directory: Path, *arguments: str, offline: bool = False) -> Answer:
    """Run a query in `directory` and wait for its end.

    `offline` keeps the engine from asking its vendor for news. An engine that cannot be started gives exit code 127.
    """
    with _query_environment(offline):
        try:
            exit_code, stdout, stderr = _runner(binary, directory).cmd(*arguments)
        except OSError as error:
            return Answer(127, "", str(error))
        except subprocess.SubprocessError as error:
            return Answer(1, "", str(error))
    return Answer(int(exit_code or 0), stdout or "", stderr or "")


def _runner(binary: Path, directory: Path) -> Any:
    from python_terraform import Terraform  # costs 25 ms, and pass-through commands never need it

    class StatelessTerraform(Terraform):  # type: ignore[misc]
        """Without the library's own look at the state: it fails on one of 0 bytes, which an engine that was killed
        leaves behind, and costs time and memory on a large one."""

        def read_state_file(self, file_path: str | None = None) -> None:
            """Nothing is read."""

    return StatelessTerraform(working_dir=str(directory), terraform_bin_path=str(binary))


@contextmanager
def _query_environment(offline: bool) -> Iterator[None]:
    """python-terraform hands os.environ on, so what would bend the answer is taken out of it meanwhile."""
    # Only these names change: lists run in other threads, and read AWS_REGION and its like.
    taken = [name for name in os.environ if name.startswith(CLI_ARGUMENT_VARIABLES)]
    changed = [*taken, "CHECKPOINT_DISABLE"] if offline else taken
    before = {name: os.environ.get(name) for name in changed}
    for name in taken:
        del os.environ[name]
    if offline:
        os.environ["CHECKPOINT_DISABLE"] = "1"
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
