"""A scan of an organization of Google Cloud whose every object is known: it names every orphan, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from fixtures.google_organization import ORGANIZATION, VERDICTS, GoogleOrganization, Why, build
from fixtures.google_sim import GoogleSim
from tests.conftest import Run

SOME = ("google_compute_network", "google_pubsub_topic", "google_storage_bucket")


@pytest.fixture
def sim() -> Iterator[GoogleSim]:
    with GoogleSim() as running:
        yield running


def furnish(made: GoogleOrganization, folder: Path) -> None:
    """Write the states, their operations and a tfguard.yaml that names the organization."""
    made.write(folder / "infra")
    settings = {
        "consistency_grace": "0s",
        "scan": {"stacks": ["infra/**"], "google": {"organization": ORGANIZATION.partition("/")[2]}},
        "providers": {"google": {**made.sim.endpoints, "access_token": "any"}},
    }
    (folder / "tfguard.yaml").write_text(yaml.safe_dump(settings))


def wrong(made: GoogleOrganization, findings: list[Any], types: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """What a scan says otherwise than it should: why the object exists, its name, and what was said of it."""
    said: dict[str, list[str]] = {}
    for finding in findings:
        names = [one.asset for one in made.known if one.fits(finding["object"])]
        said.setdefault(names[0] if len(names) == 1 else f"{len(names)} have this name", []).append(finding["verdict"])
    owed = {one.asset: [VERDICTS[one.why]] for one in made.known if one.why in VERDICTS}
    reasons = {one.asset: one.why.name for one in made.known}
    if types:
        owed = {one.asset: owed[one.asset] for one in made.known if one.asset in owed and one.type in types}
    return sorted(
        (reasons.get(asset, "UNKNOWN"), asset, *said.get(asset, ()))
        for asset in said.keys() | owed.keys()
        if said.get(asset, []) != owed.get(asset, [])
    )


def test_a_scan_of_an_organization_names_every_orphan_and_nothing_else(
    sim: GoogleSim, tfguard: Run, workdir: Path
) -> None:
    made = build(sim, organization_wide=True)
    furnish(made, workdir)
    done = tfguard("scan", "--all", "--format", "json")
    assert done.returncode == 2, done.stderr
    told = json.loads(done.stdout)
    assert wrong(made, told["findings"]) == []
    assert told["summary"]["orphaned"] == len(made.orphans)
    assert told["coverage"]["complete"] is True


def test_a_project_without_permission_is_a_gap_and_the_rest_is_told(
    sim: GoogleSim, tfguard: Run, workdir: Path
) -> None:
    made = build(sim)
    sim.number_only = True  # and names that carry no project's id make no difference
    furnish(made, workdir)
    # Project by project every type costs searches, and these have a quota.
    done = tfguard("scan", "--all", "--format", "json", *(part for name in SOME for part in ("--type", name)))
    assert done.returncode == 2, done.stderr
    told = json.loads(done.stdout)
    assert wrong(made, told["findings"], SOME) == []
    assert made.of(Why.UNSEEN)
    gaps = told["coverage"]["gaps"]
    assert sorted(gap["scope"] for gap in gaps) == [f"google {made.denied} global {name}" for name in SOME]
    assert {gap["reason"] for gap in gaps} == {"PERMISSION_DENIED on SearchAllResources"}
