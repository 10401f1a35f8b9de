"""Runs the flows over random scenes full of secrets, and tells how many there were and whether one was written."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from fixtures.canaries.garden import Garden
from fixtures.canaries.pipeline import Found, run_scene


def main(arguments: list[str]) -> int:
    """Run it; 1 when a canary was written or a conclusion is wrong."""
    parser = argparse.ArgumentParser(prog="scripts/canaries", description=__doc__)
    parser.add_argument("--plans", type=int, default=1000, metavar="N", help="how many scenes (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first one's seed (default: 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes (default: one a CPU)")
    chosen = parser.parse_args(arguments)
    planted = looked_at = masked = failed = 0
    started = time.monotonic()
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for seed, count, found in pool.map(_one, range(chosen.seed, chosen.seed + chosen.plans), chunksize=50):
            planted += count
            looked_at += found.looked_at
            masked += found.masked
            for line in (*(f"leaked: {text!r}" for text in found.leaks), *found.wrong):
                failed += 1
                print(f"seed {seed}: {line}", flush=True)
    print(
        f"plans {chosen.plans}, canaries planted {planted}, bytes looked at {looked_at}, masked addresses {masked}, "
        f"leaks and wrong conclusions {failed}, {time.monotonic() - started:.0f} s"
    )
    return 1 if failed else 0


def _one(seed: int) -> tuple[int, int, Found]:
    scene = Garden(Random(seed)).scene()
    with tempfile.TemporaryDirectory(prefix="canaries-") as folder:
        return seed, len(scene.canaries), run_scene(scene, Path(folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
