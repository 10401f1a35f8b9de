"""Guarded applies on Google Cloud: the real engine with a stand-in for the google provider, against the fake cloud."""

from __future__ import annotations

import pytest
from helpers import APPLY, DESTROY, Run, addresses, kinds, orphans, run_folders, settings, status, step

from fixtures.google_stacks import PROJECT, ZONE, GoogleCloud, GoogleStack

pytestmark = pytest.mark.e2e

NETWORK = 'resource "google_compute_network" "main" {\n  name = "main"\n}\n'
TOPIC = 'resource "google_pubsub_topic" "jobs" {\n  name = "jobs"\n}\n'
INSTANCE = """
resource "google_compute_instance" "vm" {
  name         = "vm"
  machine_type = "e2-small"
}
"""
IMPORT_IDS = {
    "google_compute_network.main": f"projects/{PROJECT}/global/networks/main",
    "google_pubsub_topic.jobs": f"projects/{PROJECT}/topics/jobs",
    "google_compute_instance.vm": f"projects/{PROJECT}/zones/{ZONE}/instances/vm",
}
PLAN = ("plan", "-detailed-exitcode", "-input=false", "-no-color")


@pytest.mark.own_provider
def test_an_apply_goes_as_the_engines_own_and_is_recorded(
    google: GoogleCloud, google_stack: GoogleStack, tfguard: Run
) -> None:
    stack = settings(google_stack(NETWORK + TOPIC))
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Apply complete! Resources: 2 added, 0 changed, 0 destroyed." in done.stdout
    assert addresses(stack) == {"google_compute_network.main", "google_pubsub_topic.jobs"}
    document = status(tfguard, stack, code=0)
    assert {(item["address"], item["outcome"]) for item in document["steps"]} == {
        ("google_compute_network.main", "recorded"),
        ("google_pubsub_topic.jobs", "recorded"),
    }
    # The operation is in what the cloud logs of the caller.
    creations = [entry for entry in google.proxy.log if entry.method in ("POST", "PUT") and entry.mutating]
    assert any(f"tfguard/{document['operation_id']}" in (entry.user_agent or "") for entry in creations)
    assert tfguard(*PLAN, cwd=stack).returncode == 0

    gone = tfguard(*DESTROY, cwd=stack)
    assert gone.returncode == 0, gone.stderr
    assert addresses(stack) == set()
    assert run_folders(stack) == []


def test_what_somebody_else_made_before_is_no_orphan_of_a_refused_apply(
    google: GoogleCloud, google_stack: GoogleStack, tfguard: Run
) -> None:
    google.sim.add("compute.googleapis.com/Network", "main", PROJECT)
    stack = settings(google_stack(NETWORK))
    done = tfguard(*APPLY, cwd=stack)
    assert done.returncode == 1
    assert "Error creating Network: googleapi: Error 409" in done.stderr
    found = step(status(tfguard, stack, code=0), "google_compute_network.main")
    assert found["finding"] is None, found
    assert orphans(tfguard, stack, code=0)["findings"] == []


def test_objects_whose_replies_were_lost_are_found_then_block_and_are_adopted(
    google: GoogleCloud, google_stack: GoogleStack, tfguard: Run
) -> None:
    stack = settings(google_stack(NETWORK + TOPIC + INSTANCE))
    google.proxy.add_rule("drop", method="POST", path="*/global/networks")
    google.proxy.add_rule("cut", method="PUT", path="*/topics/jobs")
    google.proxy.add_rule("cut", method="POST", path="*/instances")
    lost = tfguard(*APPLY, cwd=stack)
    assert lost.returncode == 1
    assert addresses(stack) == set()

    document = status(tfguard, stack, code=11)
    found = {address: step(document, address) for address in IMPORT_IDS}
    for address, seen in found.items():
        assert (seen["status"], seen["outcome"]) == ("error", "orphaned"), seen
        (observed,) = seen["observed"]
        assert (observed["import_id"], observed["in_state"]) == (IMPORT_IDS[address], False)
        assert {"desired-identity", "baseline-difference"} <= kinds(observed["evidence"])
    # The service tells when compute made something, and the provider marks what can have labels.
    told = kinds(found["google_compute_instance.vm"]["observed"][0]["evidence"])
    assert {"created-in-window", "provisioned-label"} <= told
    listed = orphans(tfguard, stack, code=2)
    assert {item["id"]: item["address"] for item in listed["findings"]} == {
        seen["finding"]: address for address, seen in found.items()
    }
    assert listed["coverage"]["complete"], listed["coverage"]

    google.proxy.log.clear()
    assert tfguard(*APPLY, cwd=stack).returncode == 11
    chosen = [part for seen in found.values() for part in ("--orphan", seen["finding"])]
    adopted = tfguard("import", *chosen, "--yes", cwd=stack)
    assert adopted.returncode == 0, adopted.stdout + adopted.stderr
    assert "update it in place" not in adopted.stderr
    assert "and note in the state what it has already" in adopted.stderr
    assert addresses(stack) == set(IMPORT_IDS)
    # Reading is all that it took.
    assert [entry.path for entry in google.proxy.log if entry.method not in ("GET", "HEAD")] == []
    planned = tfguard(*PLAN, cwd=stack)
    assert planned.returncode == 0, planned.stdout
    assert "No changes." in planned.stdout
    assert not status(tfguard, stack, code=0)["open"]


def test_an_orphan_in_a_project_of_its_own_is_deleted_once_its_service_was_asked(
    google: GoogleCloud, google_stack: GoogleStack, tfguard: Run
) -> None:
    google.sim.add_project("app-dev", google.organization)
    stack = settings(google_stack(TOPIC.replace("}", '  project = "app-dev"\n}')), consistency_grace="0s")
    google.proxy.add_rule("cut", method="PUT", path="*/topics/jobs")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    (found,) = orphans(tfguard, stack, code=2)["findings"]
    assert (found["object"]["account"], found["object"]["import_id"]) == ("app-dev", "projects/app-dev/topics/jobs")

    google.proxy.log.clear()
    destroy = ("orphans", "destroy", found["id"], "--yes", "--confirm", "jobs", "--reason", "not needed")
    done = tfguard(*destroy, cwd=stack)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "deleted, and verified to be gone" in done.stdout
    assert google.sim.names("google_pubsub_topic") == []
    asked = [entry.method for entry in google.proxy.log if entry.path.endswith("/projects/app-dev/topics/jobs")]
    assert asked.count("DELETE") == 1 and asked.index("GET") < asked.index("DELETE") < len(asked) - 1
    assert not status(tfguard, stack, code=0)["open"]
