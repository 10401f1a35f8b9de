"""The shipped static site: up, changed by applying again, and taken away with all its pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from blueprint_places import SEARCH_PATH, document, shipped, statuses
from helpers import Run

from fixtures.aws_sim import MotoServer
from fixtures.chaos.world import World

pytestmark = pytest.mark.e2e


@pytest.fixture
def run_env(world: World) -> dict[str, str]:
    world.reset()
    return world.environment | {"PATH": f"{SEARCH_PATH}:{world.environment['PATH']}"}


def test_a_site_is_served_follows_its_files_and_leaves_nothing(
    world: World, workdir: Path, seed: Path, tfguard: Run
) -> None:
    file, moto = shipped("static-site", workdir, seed), world.moto
    reached = (f"--input=url={moto.url}/site", "--input=bucket=site")
    words = ("--yes", "--format", "json", "--skip-check=stacks=planned when they are applied")

    told = document(tfguard("blueprint", "apply", str(file), *reached, *words), code=0)
    assert (told["state"], set(statuses(told).values())) == ("Ready", {"ok"})
    assert pages(moto) == {"index.html": "text/html", "missing.html": "text/html", "style.css": "text/css"}

    (file.parent / "site" / "news.html").write_text("<h1>News</h1>")
    (file.parent / "site" / "style.css").unlink()
    told = document(tfguard("blueprint", "apply", str(file), *words), code=0)
    assert told["state"] == "Ready"
    assert set(pages(moto)) == {"index.html", "missing.html", "news.html"}

    told = document(tfguard("blueprint", "destroy", str(file), *words[:3]), code=0)
    assert (told["state"], set(statuses(told).values())) == ("Cleaned", {"destroyed"})
    assert "site" not in [bucket["Name"] for bucket in moto.client("s3").list_buckets()["Buckets"]]


def pages(moto: MotoServer) -> dict[str, str]:
    """The pages that another client sees, with their types."""
    s3 = moto.client("s3")
    names = [found["Key"] for found in s3.list_objects_v2(Bucket="site")["Contents"]]
    return {name: s3.head_object(Bucket="site", Key=name)["ContentType"].partition(";")[0] for name in names}
