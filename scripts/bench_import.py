"""Adopting many stray objects in one command, and how much of that time no engine ran.

The engine is called through a script of the same name that notes when each of its commands starts and ends.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fixtures.aws_sim import REGION, MotoServer
from fixtures.labelled.states import state_v4
from fixtures.terraform_env import find_engine, find_mirror, terraform_environment, write_cli_config, write_stack

GROUPS = 200
ROOT = Path(__file__).parent.parent

_NOTING = """#!/bin/sh
start=$(date +%s.%N)
{engine} "$@"
code=$?
echo "$start $(date +%s.%N)" >> {log}
exit $code
"""


def import_figures(count: int = GROUPS) -> str:
    """The text for the report."""
    engine = find_engine()
    if engine is None:
        sys.exit("terraform or tofu is needed on the PATH")
    with tempfile.TemporaryDirectory(prefix="tfguard-bench-") as folder, MotoServer() as moto:
        work = Path(folder)
        environ = terraform_environment(write_cli_config(work / "cli.tfrc", find_mirror()), endpoint=moto.url)
        environ |= {"PYTHONPATH": str(ROOT), "PATH": f"{work / 'bin'}{os.pathsep}{environ['PATH']}"}
        stack = write_stack(work / "stack", "")
        subprocess.run([engine, "init", "-no-color"], cwd=stack, env=environ, check=True, stdout=subprocess.DEVNULL)
        (stack / "terraform.tfstate").write_bytes(state_v4([], "import"))
        logs = moto.client("logs")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda n: logs.create_log_group(logGroupName=f"/stray/{n:03}"), range(count)))

        def tfguard(*words: str) -> subprocess.CompletedProcess[str]:
            argv = [sys.executable, "-m", "tfguard", *words]
            return subprocess.run(
                argv, cwd=stack, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True
            )

        kind = ("--type", "aws_cloudwatch_log_group", "--region", REGION)
        found = json.loads(tfguard("scan", ".", *kind, "--state-file", "kept.json", "--format", "json").stdout)
        ids = [finding["id"] for finding in found["findings"]]
        if len(ids) != count:
            sys.exit(f"the scan found {len(ids)} log groups of {count}")
        log = _note_engine(work / "bin", engine)
        start = time.perf_counter()
        done = tfguard("orphans", "import", *ids, "--findings", "kept.json", "--yes")
        whole = time.perf_counter() - start
        if done.returncode != 0 or f"{count} imported, 0 added, 0 changed, 0 destroyed" not in done.stdout:
            sys.exit(f"the adoption ended with {done.returncode}: {done.stderr[-2000:]}")
        clean = subprocess.run(
            [engine, "plan", "-detailed-exitcode", "-input=false"], cwd=stack, env=environ, stdout=subprocess.DEVNULL
        )
        if clean.returncode != 0:
            sys.exit(f"a plan after the adoption gives {clean.returncode}")
        calls = [line.split() for line in log.read_text().splitlines()]
    runs = [(float(begin), float(end)) for begin, end in calls]
    own = _covered(runs)
    return (
        f"{count} log groups that another client has made, adopted in one command with drafted configuration; the plan "
        f"afterwards is clean.\n\n"
        "| | s |\n|---|---|\n"
        f"| the whole command | {whole:.1f} |\n"
        f"| of it, while an engine ran ({len(runs)} commands) | {own:.1f} |\n"
        f"| beyond the engine's own time | {whole - own:.1f} |\n"
    )


def _note_engine(folder: Path, engine: Path) -> Path:
    """Put a script in the engine's place that notes its times; the file with the notes."""
    folder.mkdir()
    log, script = folder / "times", folder / engine.name
    script.write_text(_NOTING.format(engine=engine, log=log))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return log


def _covered(runs: Sequence[tuple[float, float]]) -> float:
    """How long at least one of these lasted: what runs side by side counts once."""
    total, until = 0.0, 0.0
    for begin, end in sorted(runs):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total
