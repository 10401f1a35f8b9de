"""A stack with thousands of operations: what `status` and `history` take before and after they are archived."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tfguard.engine.host import LocalHost
from tfguard.flows.records import Records
from tfguard.model.engine import EngineInfo
from tfguard.model.evidence import Evidence, EvidenceKind
from tfguard.model.ids import new_operation_id
from tfguard.model.operation import (
    Intent,
    JournalEntry,
    OperationStatus,
    Outcome,
    Result,
    Stack,
    Step,
    StepStatus,
)
from tfguard.model.plan import Action
from tfguard.stores.local import LocalStore

MONTHS = 24
STEPS = 10


class _PastClock:
    """A clock that runs through the past two years, an operation at a time."""

    interrupted = False

    def __init__(self, time: datetime) -> None:
        self.time = time

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> bool:
        self.time += timedelta(seconds=seconds)
        return True


def fill_record(stack: Path, count: int) -> list[str]:
    """Write a record of `count` applies of ten steps each, over the last two years, as the program itself writes it."""
    start = datetime.now(UTC) - timedelta(days=30 * MONTHS)
    clock = _PastClock(start)
    records = Records(LocalStore(stack / "terraform.tfstate.tfguard"), clock, LocalHost())
    ids: list[str] = []
    for number in range(count):
        clock.time = start + timedelta(days=30 * MONTHS) * (number / count)
        ids.append(_operation(records, clock, stack))
    return ids


def _operation(records: Records, clock: _PastClock, stack: Path) -> str:
    at, operation_id = clock.now(), new_operation_id(clock.now())
    place = Stack("local", str(stack / "terraform.tfstate"), "default", str(stack))
    steps = tuple(
        Step(f"aws_ssm_parameter.p[{n}]", "aws_ssm_parameter", "registry.terraform.io/hashicorp/aws", Action.CREATE,
             desired={"name": f"/app/{n}"}, cloud="aws", provider_key="aws")
        for n in range(STEPS)
    )  # fmt: skip
    engine, actor = EngineInfo("terraform", "1.11.4"), LocalHost().actor()
    intent = Intent(operation_id, "apply", ("apply", "-auto-approve"), place, engine, actor, at, "lineage", 1, steps)
    records.begin(intent, ())
    kinds = ("apply_start", "apply_complete")
    records.journal(operation_id, [JournalEntry(at, kind, step.address, "create") for step in steps for kind in kinds])
    done = tuple(
        Step(s.address, s.type, s.provider, s.action, StepStatus.OK, Outcome.RECORDED, s.desired, cloud="aws",
             provider_key="aws", evidence=(Evidence(EvidenceKind.IN_STATE, f"the state holds {s.desired['name']}"),))
        for s in steps
    )  # fmt: skip
    clock.sleep(20)
    records.finish(Result(operation_id, OperationStatus.OK, clock.now(), done, exit_code=0), None)
    return operation_id


def archive_figures(stack: Path, count: int, runs: int, environ: Mapping[str, str]) -> str:
    """Measure on a stack that lies there, initialised and without a record; the text for the report."""
    small = stack.with_name("small")
    subprocess.run(["cp", "-a", str(stack), str(small)], check=True)
    fill_record(small, 1)
    ids = fill_record(stack, count)
    both = {"status": ["status"], "history": ["history"]}
    live = _sampled(both, [stack], runs, environ)
    pack = _seconds(["archive", "--older-than", "0s"], stack, environ)
    size = sum(path.stat().st_size for path in (stack / "terraform.tfstate.tfguard" / "archive").iterdir())
    verify = statistics.median(_seconds(["archive", "--verify"], stack, environ) for _ in range(runs))
    asked = {
        "status of one in the archive": ["status", ids[count // 2]],
        "a page of history from the archive": ["history", "--before", ids[count // 2]],
        "history --all": ["history", "--all"],
        "history --all --format json": ["history", "--all", "--format", "json"],
    }
    packed = {**_sampled(both, [small, stack], runs, environ), **_sampled(asked, [stack], runs, environ)}
    rows = "".join(
        f"| {name} | {_cell(packed, small, name)} | {_cell(live, stack, name)} | {_cell(packed, stack, name)} |\n"
        for name in (*both, *asked)
    )
    return (
        f"{count:,} operations of {STEPS} steps over {MONTHS} months beside a local state; medians of {runs} runs in "
        f"turn, each a whole process, in ms.\n\n"
        f"| `tfguard ...` | one operation | {count:,} | {count:,}, archived |\n|---|---|---|---|\n{rows}\n"
        f"`archive` packs all of them in {pack:.1f} s, into {size / 1e6:.1f} MB; "
        f"`archive --verify` takes {verify:.1f} s.\n"
    )


def _cell(times: Mapping[tuple[Path, str], Sequence[float]], stack: Path, name: str) -> str:
    found = times.get((stack, name))
    return f"{statistics.median(found) * 1000:.0f}" if found else ""


def _sampled(
    commands: Mapping[str, Sequence[str]], stacks: Sequence[Path], runs: int, environ: Mapping[str, str]
) -> Mapping[tuple[Path, str], Sequence[float]]:
    """Each command on each stack, in turn, so that a busy machine slows all of them alike."""
    times: dict[tuple[Path, str], list[float]] = {(stack, name): [] for stack in stacks for name in commands}
    for turn in range(runs + 1):
        for (stack, name), found in times.items():
            took = _seconds(commands[name], stack, environ)
            if turn:  # the first turn warms caches
                found.append(took)
    return times


def _seconds(command: Sequence[str], stack: Path, environ: Mapping[str, str]) -> float:
    start = time.perf_counter()
    argv = [sys.executable, "-m", "tfguard", *command]
    done = subprocess.run(argv, cwd=stack, env={**environ}, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{argv} ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
    return time.perf_counter() - start
