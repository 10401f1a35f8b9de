"""What real runs write, and what the commands print, fits the published JSON Schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import APPLY, Run, StackFactory, record, role, settings
from jsonschema import Draft202012Validator, FormatChecker

from fixtures.fault_proxy import FaultProxy

pytestmark = pytest.mark.e2e

SCHEMAS = Path(__file__).parent.parent.parent / "docs" / "schemas"
BODY = """
resource "terraform_data" "a" {
  input = "one"
}
resource "terraform_data" "bad" {
  depends_on = [terraform_data.a]
  provisioner "local-exec" {
    command = "exit 3"
  }
}
"""
# Lines that name their version alone.
SHORT = {"events.jsonl": "journal", "transitions.jsonl": "transition"}


def check(document: Any, name: str | None = None) -> str:
    """Check a document against the schema that it names, which may go without saying; that schema's name."""
    told = name or document["schema"].removeprefix("tfguard.").partition("/v")[0]
    version = document["v"] if name else document["schema"].partition("/v")[2]
    schema = json.loads((SCHEMAS / f"{told}.v{version}.schema.json").read_text())
    Draft202012Validator(schema, format_checker=FormatChecker(["date-time"])).validate(document)
    unknown = set(document) - set(schema["properties"])
    assert not unknown, f"{told} says nothing of {unknown}"
    return told


def check_record(stack: Path) -> set[str]:
    """Check every document of a stack's record; the names of their schemas."""
    found: set[str] = set()
    for path in (path for path in record(stack).rglob("*.json*") if path.is_file()):
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        found |= {check(json.loads(line), SHORT.get(path.name)) for line in lines}
    return found


def check_printed(tfguard: Run, stack: Path, *commands: tuple[str, ...]) -> list[str]:
    """Check what these commands print as JSON; the names of their schemas."""
    return [check(json.loads(tfguard(*command, "--format", "json", cwd=stack).stdout)) for command in commands]


def test_the_whole_record_of_real_runs_and_all_that_is_printed_of_it(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(BODY)
    assert check_printed(tfguard, stack, ("status",)) == ["operation"]
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    assert tfguard("plan", "-out=p", cwd=stack).returncode == 0
    assert tfguard("apply", "p", cwd=stack).returncode == 1
    assert tfguard("taint", "terraform_data.a", cwd=stack).returncode == 0
    assert check_record(stack) >= {"head", "intent", "outcome", "journal", "applied-plan"}
    commands = [("status",), ("history",), ("recover",), ("orphans", "list"), ("doctor",), ("version",)]
    names = ["operation", "history", "recovery", "findings", "doctor", "version"]
    assert check_printed(tfguard, stack, *commands) == names


def test_a_run_that_leaves_an_orphan_and_what_is_decided_about_it(
    proxy: FaultProxy, stack_factory: StackFactory, tfguard: Run
) -> None:
    stack = settings(stack_factory(role()))
    proxy.add_rule("drop", action="CreateRole")
    assert tfguard(*APPLY, cwd=stack).returncode == 1
    found = json.loads(tfguard("orphans", "list", "--format", "json", cwd=stack).stdout)["findings"][0]
    commands = [("status",), ("history",), ("orphans", "list"), ("orphans", "show", found["id"])]
    assert check_printed(tfguard, stack, *commands) == ["operation", "history", "findings", "findings"]
    word = ("recover", "--not-ours", found["id"], "--reason", "made by the network team")
    assert check_printed(tfguard, stack, word, ("orphans", "list", "--all")) == ["recovery", "findings"]
    assert check_record(stack) >= {"head", "intent", "outcome", "journal", "disposition"}
