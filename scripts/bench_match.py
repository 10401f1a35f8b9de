"""Matching listed objects against the instances of many states: time and memory, in processes of their own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

SIZES = (10_000, 100_000, 1_000_000)
TYPES = ("aws_sqs_queue", "aws_iam_role", "aws_vpc", "aws_ssm_parameter")
OBJECTS_IN_A_LISTING = 1_000
STRAYS_IN = 100
"""Of so many objects one is known to no state."""


def match_figures(sizes: tuple[int, ...] = SIZES) -> str:
    """The text for the report; each size is measured in a process of its own, whose memory is nobody else's."""
    rows = []
    for size in sizes:
        done = subprocess.run(
            [sys.executable, "-m", "scripts.bench_match", str(size)],
            cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            sys.exit(done.stderr)
        told = json.loads(done.stdout)
        rows.append(
            f"| {size:,} | {told['states']:,} | {told['index']:.2f} | {told['match']:.2f} "
            f"| {told['index'] + told['match']:.2f} | {told['peak']:.0f} |\n"
        )
    return (
        f"As many listed objects as instances in the states, of {len(TYPES)} types with ARNs; one of {STRAYS_IN} is "
        "known to no state. A state is dropped once it is added, a listing once it is matched. Seconds are of matching "
        "alone, not of making up the objects; the memory is the most that the whole process had.\n\n"
        "| objects | states | adding the states, s | matching, s | together, s | most memory, MB |\n"
        "|---|---|---|---|---|---|\n" + "".join(rows)
    )


def measure(size: int) -> dict[str, float]:
    """Add `size` instances in up to 1,000 states, then match as many objects."""
    from tfguard.catalog.loader import load_catalog
    from tfguard.model.state import StateInstance, StateSnapshot
    from tfguard.reconcile.state_index import StateIndex

    index, states = StateIndex(load_catalog()), min(1_000, size // 100)
    indexing = matching = 0.0
    each = size // states
    for number in range(states):
        held = tuple(
            StateInstance(f"module.app.{kind}.this[{n}]", kind, "registry.terraform.io/hashicorp/aws", "aws", identity)
            for n, (kind, identity) in enumerate(_identities(number * each, each))
        )
        snapshot = StateSnapshot(f"lineage-{number}", 1, held)
        start = time.perf_counter()
        index.add(f"s3://state/{number}/terraform.tfstate", "default", snapshot)
        indexing += time.perf_counter() - start
    known = 0
    for first in range(0, size, OBJECTS_IN_A_LISTING):
        objects = list(_objects(first, min(OBJECTS_IN_A_LISTING, size - first)))
        start = time.perf_counter()
        known += sum(index.match(found) is not None for found in objects)
        matching += time.perf_counter() - start
    if known != size - size // STRAYS_IN:
        sys.exit(f"{known} of {size} objects were known")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"states": states, "index": indexing, "match": matching, "peak": peak}


def _identities(first: int, count: int, *, strays: bool = False) -> Iterator[tuple[str, dict[str, str]]]:
    for number in range(first, first + count):
        kind = TYPES[number % len(TYPES)]
        name = f"application-{number}" + ("-stray" if strays and number % STRAYS_IN == 0 else "")
        where = "eu-west-1:123456789012"
        if kind == "aws_sqs_queue":
            url = f"https://sqs.eu-west-1.amazonaws.com/123456789012/{name}"
            yield kind, {"url": url, "name": name, "arn": f"arn:aws:sqs:{where}:{name}"}
        elif kind == "aws_iam_role":
            yield kind, {"name": name, "arn": f"arn:aws:iam::123456789012:role/{name}"}
        elif kind == "aws_vpc":
            yield kind, {"id": f"vpc-{name}", "arn": f"arn:aws:ec2:{where}:vpc/vpc-{name}"}
        else:
            yield kind, {"name": f"/{name}", "arn": f"arn:aws:ssm:{where}:parameter/{name}"}


def _objects(first: int, count: int) -> Iterator[object]:
    from tfguard.model.inventory import CloudObject

    for kind, identity in _identities(first, count, strays=True):
        name = next(iter(identity.values()))
        region = "global" if kind == "aws_iam_role" else "eu-west-1"
        yield CloudObject("aws", "123456789012", region, kind, name, name, identity, identity["arn"])


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
