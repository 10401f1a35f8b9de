"""Scans of Google Cloud, alone and beside AWS, against fakes of both; and what is then done with a finding."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import APPLY, DESTROY, Json, Run, addresses, intent, settings, status, step

from fixtures.aws_sim import REGION, MotoServer
from fixtures.fault_proxy import FaultProxy
from fixtures.google_sim import GoogleSim
from fixtures.google_stacks import PROJECT, GoogleCloud, GoogleStack

pytestmark = pytest.mark.e2e

TOPIC = 'resource "google_pubsub_topic" "kept" {\n  name = "kept"\n}\n'
LEFT = "projects/app-prod/topics/left"
STATE = {"version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "l", "outputs": {}, "resources": []}
# Loads the command as `python -m tfguard` does, and tells at its end which packages of a cloud it has loaded.
TELLS_MODULES = """
import sys
from tfguard.cli.main import exit_code_of
code = exit_code_of(sys.argv[1:])
clouds = ("boto3", "botocore", "google.cloud", "google.auth", "google.api_core", "grpc", "proto")
print([name for name in clouds if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def sim(run_env: dict[str, str]) -> Any:
    """A fake cloud of its own, and a token with which every call to it is made."""
    run_env["GOOGLE_OAUTH_ACCESS_TOKEN"] = "test"
    with GoogleSim() as running:
        yield running


def configure(folder: Path, sim: GoogleSim, scan: Mapping[str, object], **settings: object) -> None:
    """Write tfguard.yaml, which sends every call to Google to the fake."""
    document = {"providers": {"google": {**sim.endpoints}}, "scan": scan, **settings}
    (folder / "tfguard.yaml").write_text(json.dumps(document))


def scanned(tfguard: Run, folder: Path, *words: str, code: int) -> Json:
    done = tfguard("scan", "--no-audit-log", "--format", "json", *words, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    document: Json = json.loads(done.stdout)
    return document


def test_two_clouds_are_one_scan_with_one_report_and_one_exit_code(
    sim: GoogleSim,
    proxy: FaultProxy,  # noqa: ARG001 (for run_env)
    moto: MotoServer,
    tfguard: Run,
    workdir: Path,
) -> None:
    sim.add_project(PROJECT, sim.add_organization())
    sim.add("google_pubsub_topic", "left", PROJECT)
    moto.client("sqs").create_queue(QueueName="two-clouds-left")
    (workdir / "terraform.tfstate").write_text(json.dumps(STATE))
    aws: dict[str, object] = {"regions": [REGION], "types": ["aws_sqs_queue"]}
    google: dict[str, object] = {"projects": [PROJECT], "types": ["google_pubsub_topic"]}
    configure(workdir, sim, {"aws": aws, "google": google, "stacks": ["terraform.tfstate"]})
    document = scanned(tfguard, workdir, code=2)
    told = {(one["object"]["cloud"], one["object"]["name"]) for one in document["findings"]}
    assert {("aws", "two-clouds-left"), ("google", "left")} <= told
    assert {part["cloud"] for part in document["scope"]["lists"]} == {"aws", "google"}

    text = tfguard("scan", "--no-audit-log", cwd=workdir)
    assert text.returncode == 2
    (looked,) = [line for line in text.stdout.splitlines() if line.startswith("looked at: ")]
    assert "aws" in looked and f"google {PROJECT}" in looked

    sim.deny(f"projects/{PROJECT}")
    denied = scanned(tfguard, workdir, "--type", "google_pubsub_topic", code=3)
    assert [gap["scope"] for gap in denied["coverage"]["gaps"]] == [f"google {PROJECT} global google_pubsub_topic"]


@pytest.mark.parametrize(
    ("kind", "words", "loaded"),
    [
        ("aws_sqs_queue", ("--region", REGION), ["botocore", "boto3"]),
        ("google_pubsub_topic", (), ["google.cloud", "google.auth", "google.api_core", "grpc", "proto"]),
    ],
    ids=["aws", "google"],
)
def test_a_scan_of_one_cloud_loads_no_library_of_the_other(
    sim: GoogleSim,
    proxy: FaultProxy,  # noqa: ARG001 (for run_env)
    workdir: Path,
    run_env: dict[str, str],
    kind: str,
    words: tuple[str, ...],
    loaded: list[str],
) -> None:
    sim.add_project(PROJECT, sim.add_organization())
    sim.add("google_pubsub_topic", "left", PROJECT)
    (workdir / "terraform.tfstate").write_text(json.dumps(STATE))
    (workdir / "tfguard.yaml").write_text(json.dumps({"providers": {"google": {"project": PROJECT, **sim.endpoints}}}))
    command = [sys.executable, "-c", TELLS_MODULES, "scan", "terraform.tfstate", "--type", kind, *words]
    done = subprocess.run(command, cwd=workdir, env=run_env, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 2), done.stdout + done.stderr
    told = json.loads(done.stderr.splitlines()[-1].replace("'", '"'))
    assert set(told) <= set(loaded) and loaded[0] in told, told


def test_what_a_scan_finds_is_deleted_through_the_engine_after_its_own_service_was_asked(
    google: GoogleCloud, google_stack: GoogleStack, tfguard: Run
) -> None:
    google.sim.add("google_pubsub_topic", "left", PROJECT)
    stack = google_stack(TOPIC)
    configure(stack, google.sim, {"google": {"projects": [PROJECT]}}, consistency_grace="0s")
    kept = ("--type", "google_pubsub_topic", "--state-file", "kept.json")
    (stack / "terraform.tfstate").write_text(json.dumps(STATE))
    (found,) = scanned(tfguard, stack, ".", *kept, code=2)["findings"]
    assert (found["object"]["import_id"], found["verdict"]) == (LEFT, "unmanaged")

    go = ("orphans", "destroy", found["id"], "--findings", "kept.json", "--yes", "--confirm", LEFT)
    done = tfguard(*go, "--reason", "nobody needs it", cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deleted, and verified to be gone" in done.stdout
    calls = [(call.method, call.status) for call in google.sim.calls if call.path.endswith(LEFT)]
    assert calls.index(("GET", 200)) < calls.index(("DELETE", 200)) < calls.index(("GET", 404))
    assert scanned(tfguard, stack, ".", *kept, code=0)["findings"] == []


def test_what_a_scan_finds_is_adopted_by_the_stack_of_its_project(
    google: GoogleCloud, google_stack: GoogleStack, tfguard: Run
) -> None:
    google.sim.add("google_pubsub_topic", "kept", PROJECT)
    stack = google_stack(TOPIC)
    configure(stack, google.sim, {"google": {}}, consistency_grace="0s")
    (stack / "terraform.tfstate").write_text(json.dumps(STATE))
    words = ("--type", "google_pubsub_topic", "--account", PROJECT, "--state-file", "kept.json")
    (found,) = scanned(tfguard, stack, ".", *words, code=2)["findings"]
    adopt = ("import", "--orphan", found["id"], "--to", "google_pubsub_topic.kept", "--findings", "kept.json", "--yes")
    done = tfguard(*adopt, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert addresses(stack) == {"google_pubsub_topic.kept"}
    assert tfguard(*DESTROY, cwd=stack).returncode == 0


def test_what_a_resource_makes_in_a_project_of_its_own_is_looked_for_there(
    google: GoogleCloud, google_stack: GoogleStack, tfguard: Run
) -> None:
    google.sim.add_project("app-shared", google.organization)
    stack = settings(
        google_stack('resource "google_pubsub_topic" "jobs" {\n  name = "jobs"\n  project = "app-shared"\n}\n')
    )
    google.proxy.add_rule("cut", method="P[OU]*", path="*/topics/jobs")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    document = status(tfguard, stack, code=11)
    found = step(document, "google_pubsub_topic.jobs")
    assert (found["outcome"], found["own_account"], found["account"]) == ("orphaned", "app-shared", "app-shared")
    (kept,) = intent(stack, document["operation_id"])["baseline"]
    assert (kept["account"], kept["asked_region"], kept["complete"]) == ("app-shared", "app-shared", True)
    adopted = tfguard("import", "--orphan", found["finding"], "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stdout + adopted.stderr
    assert addresses(stack) == {"google_pubsub_topic.jobs"}
