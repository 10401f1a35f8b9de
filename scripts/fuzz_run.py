"""The long fuzz run: every target gets its share of the inputs, spread over the processors."""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from fixtures.fuzz.running import Fault, Outcome, Tally, run_many, run_one
from fixtures.fuzz.targets import TARGETS

_AT_ONCE = 250

Work = tuple[str, int, int]


def work(names: Sequence[str], inputs: int, seed: int) -> Iterator[Work]:
    """Parts of the run, as (target, number of inputs, seed): each target's share, in small parts."""
    shares = sum(TARGETS[name].share for name in names)
    part = 0
    for name in names:
        left = math.ceil(inputs * TARGETS[name].share / shares)
        while left > 0:
            yield name, min(left, _AT_ONCE), seed * 1_000_003 + part
            left -= _AT_ONCE
            part += 1


def do(item: Work) -> tuple[str, Tally]:
    """One part of the run, in a process of its own."""
    name, count, seed = item
    return name, run_many(TARGETS[name], count, seed)


def table(tallies: dict[str, Tally]) -> str:
    """What became of each target's inputs."""
    head = ["target", "inputs", *(outcome.value for outcome in Outcome)]
    rows = [[name, tally.counts.total(), *(tally.counts[o] for o in Outcome)] for name, tally in tallies.items()]
    sums = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    lines = [head, *rows, ["all", *sums]]
    return "\n".join(f"{line[0]!s:<18}" + "".join(f"{cell!s:>13}" for cell in line[1:]) for line in lines)


def kept(faults: Sequence[Fault]) -> Iterator[str]:
    """Writes the input of each fault to a file of its own; a few lines on each."""
    folder = Path(tempfile.mkdtemp(prefix="tfguard-fuzz-"))
    for number, fault in enumerate(faults, start=1):
        path = folder / f"{fault.target}-{number}"
        path.write_bytes(fault.data)
        again = f"--target {fault.target} --replay {path}"
        yield f"\n{fault.outcome.value} in {fault.target}; again with: {again}\n{fault.text}"


def replay(name: str, path: Path) -> int:
    """Feed one file to one target."""
    outcome, text = run_one(TARGETS[name], path.read_bytes())
    print(f"{outcome.value}\n{text}")
    return int(outcome.fault)


def main() -> int:
    """The exit code: 1 when anything is wrong."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000, help="how many inputs in all")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same inputs")
    parser.add_argument("--target", choices=sorted(TARGETS), help="only this one")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="feed this file to the target, once")
    options = parser.parse_args()
    if options.replay:
        if not options.target:
            parser.error("--replay needs --target")
        return replay(options.target, options.replay)
    began = time.monotonic()
    names = [options.target] if options.target else list(TARGETS)
    tallies = {name: Tally() for name in names}
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for name, tally in pool.imap_unordered(do, work(names, options.inputs, options.seed)):
            tallies[name].add(tally)
    print(table(tallies))
    print(f"seed {options.seed}, {time.monotonic() - began:.0f} s")
    faults = [fault for tally in tallies.values() for fault in tally.faults.values()]
    for text in kept(faults) if faults else ():
        print(text, file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
