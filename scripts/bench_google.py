"""A simulated organization of a million objects, listed through Google's own client libraries: time and memory.

The fake of Google Cloud makes its objects up page by page; the listing is a process of its own, whose memory is that of
nothing else. Its searches are not held to Google's quota: the waiting would say nothing.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from fixtures.google_sim import GoogleSim

ROOT = Path(__file__).parent.parent
OBJECTS = 1_000_000
PROJECTS = 500
TYPES = ("google_compute_instance", "google_compute_disk", "google_storage_bucket", "google_pubsub_topic")
ORGANIZATION = 123456789012


def child(url: str) -> None:
    """List the organization at `url` in this process; what it took, as JSON on stdout."""
    from fixtures.google_sim import endpoints
    from tfguard.catalog.loader import load_catalog
    from tfguard.inventory.google import GoogleInventory
    from tfguard.inventory.google_access import GoogleAccesses, Pace
    from tfguard.model.plan import ProviderConfig

    settings = {"access_token": "bench", "organization": str(ORGANIZATION), **endpoints(url)}
    provider = ProviderConfig("google", "registry.terraform.io/hashicorp/google", settings)
    inventory = GoogleInventory(load_catalog(), GoogleAccesses(Pace(10_000_000, 1_000)))
    warm = sum(1 for _ in inventory.list_many(["google_kms_key_ring"], provider))  # imports, clients, the projects
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, count, listings, largest = time.perf_counter(), 0, 0, 0
    for listing in inventory.list_many(TYPES, provider):
        assert listing.complete, listing.gap
        count, listings, largest = count + len(listing.objects), listings + 1, max(largest, len(listing.objects))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = {"objects": count, "listings": listings, "largest": largest, "seconds": seconds, "warm": warm}
    print(json.dumps({**told, "before": before, "peak": peak}))


def google_figures(objects: int = OBJECTS) -> str:
    """The text for the report."""
    each = objects // (PROJECTS * len(TYPES))
    with GoogleSim() as sim:
        sim.add_organization(ORGANIZATION)
        names = [f"project-{number:04d}" for number in range(PROJECTS)]
        for name in names:
            sim.add_project(name, f"organizations/{ORGANIZATION}")
        for kind in TYPES:
            sim.make_up(kind, names, each)
        run = subprocess.run(
            [sys.executable, "-m", "scripts.bench_google", sim.url],
            cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        told = json.loads(run.stdout)
        searches = sum(call.path.endswith(":searchAllResources") for call in sim.calls)
    if told["objects"] != each * PROJECTS * len(TYPES):
        sys.exit(f"{told['objects']} objects were listed of {objects}")
    return (
        f"{told['objects']:,} objects of {len(TYPES)} types in {PROJECTS} projects of one organization, told by the "
        f"fake of Google Cloud in another process, {searches:,} searches. At the pace that keeps within Google's quota "
        f"(320 a minute) they take at least {searches / 320:.1f} minutes; here nobody waits for that.\n\n"
        "| listings | objects in the largest | seconds | objects a second | memory before, MiB | peak, MiB |\n"
        "|---|---|---|---|---|---|\n"
        f"| {told['listings']:,} | {told['largest']:,} | {told['seconds']:.0f} "
        f"| {told['objects'] / told['seconds']:,.0f} "
        f"| {told['before'] / 1024:.0f} | {told['peak'] / 1024:.0f} |\n"
    )


if __name__ == "__main__":
    child(sys.argv[1])
