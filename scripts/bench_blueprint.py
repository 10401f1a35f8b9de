"""A blueprint of very many steps: what each command takes as a whole process, and how much its record grows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

_STEPS = 1000
_CHAIN = 10
_HEAD = "apiVersion: tfguard/v1\nkind: Blueprint\nname: many\nowner: bench\ncost_owner: bench\nsteps:\n"
_NOT_READY = 11


def blueprint_figures(environ: Mapping[str, str]) -> str:
    """Chains of steps whose command is a stand-in that makes a file; the last step of each chain fails at first."""
    with tempfile.TemporaryDirectory(prefix="tfguard-bench-") as name:
        folder = Path(name)
        (folder / "made").mkdir()
        file = folder / "many.yaml"
        file.write_text(_HEAD + "".join(_step(number) for number in range(_STEPS)))
        journals = []
        rows = ""
        for command, words, code in (
            ("validate", ("validate",), 0),
            ("plan of a new request", ("plan",), 0),
            ("apply, in which the last of each chain fails", ("apply", "--yes"), _NOT_READY),
            ("plan of the rest", ("plan",), 0),
            ("resume, which does the rest", ("resume", "--yes"), 0),
            ("plan of what is Ready", ("plan",), 0),
            ("status", ("status",), 0),
        ):
            if words[0] == "resume":
                (folder / "mended").touch()
            rows += f"| {command} | {_seconds(file, words, environ, code):.2f} |\n"
            journals.append(sum(path.stat().st_size for path in folder.rglob("events.jsonl")))
        made = len(list((folder / "made").iterdir()))
    if made != _STEPS:
        sys.exit(f"{made} of {_STEPS} steps have run")
    return (
        f"{_STEPS:,} steps in chains of {_CHAIN}, each a command that makes a file, with a check of its own.\n\n"
        f"| `tfguard blueprint ...` | s |\n|---|---|\n{rows}\n"
        f"The journal has {max(journals) / _STEPS:.0f} bytes a step in the end.\n"
    )


def _step(number: int) -> str:
    needs = f"needs: [s{number - 1}], " if number % _CHAIN else ""
    when = "[ -e mended ] && " if number % _CHAIN == _CHAIN - 1 else ""
    return f"  s{number}: {{{needs}run: [sh, -c, '{when}: >made/{number}'], check: [test, -e, made/{number}]}}\n"


def _seconds(file: Path, words: tuple[str, ...], environ: Mapping[str, str], code: int) -> float:
    argv = [sys.executable, "-m", "tfguard", "blueprint", *words, file.name]
    began = time.monotonic()
    done = subprocess.run(
        argv, cwd=file.parent, env={**environ}, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode != code:
        sys.exit(f"{argv} ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
    return time.monotonic() - began
