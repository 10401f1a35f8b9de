"""A stand-in for the google provider under the real engine, against the fake cloud: it does what the real one does."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.google_stacks import PROJECT, ZONE, GoogleCloud, GoogleStack

Run = Callable[..., "subprocess.CompletedProcess[str]"]

APPLY = ("apply", "-auto-approve", "-input=false", "-no-color")
DESTROY = ("destroy", "-auto-approve", "-input=false", "-no-color")
PLAN = ("plan", "-detailed-exitcode", "-input=false", "-no-color")

NETWORK = 'resource "google_compute_network" "main" {\n  name = "main"\n}\n'
ALL = (
    NETWORK
    + """
resource "google_compute_instance" "vm" {
  name         = "vm"
  machine_type = "e2-small"
  labels       = { team = "a" }
  boot_disk {
    initialize_params {
      image = "debian-cloud/debian-12"
    }
  }
  network_interface {
    network = google_compute_network.main.id
  }
}
resource "google_storage_bucket" "logs" {
  name     = "app-prod-logs"
  location = "EU"
}
resource "google_pubsub_topic" "jobs" {
  name = "jobs"
}
resource "google_service_account" "app" {
  account_id   = "app-runner"
  display_name = "Runner"
}
resource "google_secret_manager_secret" "token" {
  secret_id = "token"
  replication {
    auto {}
  }
}
resource "google_project" "other" {
  project_id      = "app-other"
  name            = "Other"
  org_id          = "%s"
  deletion_policy = "DELETE"
}
"""
)
EMAIL = f"app-runner@{PROJECT}.iam.gserviceaccount.com"
IDS = {
    "google_compute_network.main": f"projects/{PROJECT}/global/networks/main",
    "google_compute_instance.vm": f"projects/{PROJECT}/zones/{ZONE}/instances/vm",
    "google_storage_bucket.logs": "app-prod-logs",
    "google_pubsub_topic.jobs": f"projects/{PROJECT}/topics/jobs",
    "google_service_account.app": f"projects/{PROJECT}/serviceAccounts/{EMAIL}",
    "google_secret_manager_secret.token": f"projects/{PROJECT}/secrets/token",
    "google_project.other": "projects/app-other",
}


def attributes(stack: Path) -> dict[str, dict[str, Any]]:
    """The attributes of every object in the local state, by address."""
    state = json.loads((stack / "terraform.tfstate").read_text())
    return {
        f"{item['type']}.{item['name']}": instance["attributes"]
        for item in state["resources"]
        for instance in item["instances"]
    }


def test_every_type_is_made_read_imported_and_deleted(google: GoogleCloud, google_stack: GoogleStack, tf: Run) -> None:
    body = ALL % google.organization.removeprefix("organizations/")
    stack = google_stack(body)
    tf(*APPLY, cwd=stack)
    made = attributes(stack)
    assert {address: values["id"] for address, values in made.items()} == IDS
    vm = made["google_compute_instance.vm"]
    assert (vm["labels"], vm["terraform_labels"]) == (
        {"team": "a"},
        {"team": "a", "goog-terraform-provisioned": "true"},
    )
    assert tf(*PLAN, cwd=stack, check=False).returncode == 0

    imports = "".join(f'import {{\n  to = {address}\n  id = "{value}"\n}}\n' for address, value in IDS.items())
    again = google_stack(body + imports, name="again")
    google.proxy.log.clear()
    imported = tf(*APPLY, cwd=again)
    # An import tells nothing of whose the labels are. The real one plans these updates, too, and calls nothing then.
    assert "7 imported, 0 added, 5 changed, 0 destroyed" in imported.stdout, imported.stdout
    assert google.proxy.log.entries(mutating=True) == []
    assert {address: values["id"] for address, values in attributes(again).items()} == IDS
    assert tf(*PLAN, cwd=again, check=False).returncode == 0

    tf(*DESTROY, cwd=again)
    assert attributes(again) == {}
    gone = tf(*PLAN, cwd=stack, check=False)
    assert gone.returncode == 2, gone.stdout
    assert "Plan: 7 to add, 0 to change, 0 to destroy" in gone.stdout


def test_what_exists_already_is_refused_in_the_words_of_the_service(google_stack: GoogleStack, tf: Run) -> None:
    tf(*APPLY, cwd=google_stack(NETWORK))
    refused = tf(*APPLY, cwd=google_stack(NETWORK, name="other"), check=False)
    assert refused.returncode == 1
    words = "Error creating Network: googleapi: Error 409: The resource"
    assert words in refused.stderr
    assert "alreadyExists" in refused.stderr


def test_a_reset_connection_makes_it_try_again_and_a_killed_reply_leaves_an_object_that_no_state_knows(
    google: GoogleCloud, google_stack: GoogleStack, tf: Run
) -> None:
    stack = google_stack(NETWORK)
    google.proxy.add_rule("drop", method="POST", path="*/networks")
    lost = tf(*APPLY, cwd=stack, check=False)
    assert lost.returncode == 1
    assert "Error 409" in lost.stderr
    assert attributes(stack) == {}
    google.proxy.clear()

    cut = google_stack(NETWORK.replace('"main"\n', '"cut"\n'), name="cut")
    google.proxy.add_rule("cut", method="POST", path="*/networks")
    broken = tf(*APPLY, cwd=cut, check=False)
    assert "Error creating Network: unexpected EOF" in broken.stderr
    assert [entry.done for entry in google.proxy.log if entry.method == "POST"] == ["cut"]


@pytest.mark.own_provider
def test_an_interrupted_engine_gets_to_know_what_was_under_way(
    google: GoogleCloud, google_stack: GoogleStack, engine: Path, run_env: dict[str, str]
) -> None:
    stack = google_stack(NETWORK)
    google.proxy.add_rule("delay:60", method="POST", path="*/networks")
    command = [str(engine), *APPLY]
    running = subprocess.Popen(command, cwd=stack, env=run_env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert google.proxy.log.wait_until(lambda: any(entry.method == "POST" for entry in google.proxy.log))
    running.send_signal(signal.SIGINT)
    assert running.stdout is not None
    for line in running.stdout:
        if b"Stopping operation" in line:
            google.proxy.release()
    assert running.wait(timeout=60) in (0, 1)
    assert set(attributes(stack)) == {"google_compute_network.main"}


@pytest.mark.own_provider
def test_labels_are_changed_in_place_and_the_user_agent_carries_what_the_environment_adds(
    google: GoogleCloud, google_stack: GoogleStack, tf: Run
) -> None:
    topic = 'resource "google_pubsub_topic" "jobs" {\n  name = "jobs"\n  labels = { team = "%s" }\n}\n'
    stack = google_stack(topic % "a", default_labels=None, add_terraform_attribution_label=False)
    tf(*APPLY, cwd=stack, env={"TF_APPEND_USER_AGENT": "tfguard/01JTEST"})
    assert attributes(stack)["google_pubsub_topic.jobs"]["effective_labels"] == {"team": "a"}
    (created,) = [entry for entry in google.proxy.log if entry.method == "PUT"]
    assert (created.user_agent or "").endswith("terraform-provider-google/stand-in tfguard/01JTEST")

    (stack / "main.tf").write_text(topic % "b")
    changed = tf(*APPLY, cwd=stack)
    assert "0 added, 1 changed, 0 destroyed" in changed.stdout
    assert attributes(stack)["google_pubsub_topic.jobs"]["effective_labels"] == {"team": "b"}
    assert tf(*PLAN, cwd=stack, check=False).returncode == 0
