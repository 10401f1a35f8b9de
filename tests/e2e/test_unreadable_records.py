"""A document of the record that is newer or damaged counts as live: it stops what would go on over it, is named, and is
moved aside by `recover` alone, if at all. For each document and each command that reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import APPLY, DESTROY, Run, StackFactory, head, operations, outcome, record, reopen

pytestmark = pytest.mark.e2e

ONE = 'resource "terraform_data" "a" {\n}\n'
TAINT = ("taint", "terraform_data.a")
ORPHANS = ("orphans", "list")
LEDGER = "dispositions.jsonl"
# The status tells what became of the steps, and needs no ledger for it.
STATUS_READS: dict[str, list[tuple[str, ...]]] = {LEDGER: []}
NEWER = {
    "intent.json": '{"schema": "tfguard.intent/v99", "operation_id": {"now": "an object"}}\n',
    "outcome.json": '{"schema": "tfguard.outcome/v99"}\n',
    "events.jsonl": '{"v": 99}\n',
    LEDGER: '{"schema": "tfguard.disposition/v99"}\n',
}
DAMAGED = {
    "intent.json": '{"schema": "tfguard.intent/v2", "steps": 1}\n',
    "outcome.json": '{"schema": "tfguard.outcome/v1"}\n',
    "events.jsonl": '{"v": 1, "at": "now", "kind": "apply_start"}\n',
    LEDGER: '{"schema": "tfguard.disposition/v1"}\n',
}


def applied(plain_stack: StackFactory, tfguard: Run, name: str, text: str, *, opened: bool = True) -> tuple[Path, Path]:
    """A stack with one operation, and the document that was made unreadable; the operation is open or settled."""
    stack = plain_stack(ONE)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    (operation,) = operations(stack)
    path = record(stack) / name if name == LEDGER else record(stack) / "operations" / operation / name
    path.write_text(text)
    if opened:
        reopen(stack, operation)
    return stack, path


def kept(stack: Path) -> dict[str, bytes]:
    """The state and the record but for the head, which a run that is turned away claims and gives back."""
    files = [stack / "terraform.tfstate", *record(stack).rglob("*")]
    return {str(path): path.read_bytes() for path in files if path.is_file() and path.name != "head.json"}


@pytest.mark.parametrize("name", sorted(NEWER))
def test_a_newer_document_of_an_open_operation_stops_everything_and_stays_as_it_is(
    plain_stack: StackFactory, tfguard: Run, name: str
) -> None:
    stack, path = applied(plain_stack, tfguard, name, NEWER[name])
    before = kept(stack)
    commands = [APPLY, DESTROY, TAINT, ("recover", "--yes"), ORPHANS]
    for command in [*commands, *STATUS_READS.get(name, [("status",)])]:
        done = tfguard(*command, cwd=stack)
        assert done.returncode == 10, (command, done.stderr)
        assert f"{name}" in done.stderr
        assert "newer tfguard" in done.stderr
        assert "Traceback" not in done.stderr
        assert kept(stack) == before, command
    assert head(stack)["open_operations"] == operations(stack)
    assert path.read_text() == NEWER[name]


@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_a_damaged_document_of_an_open_operation_stops_the_next_run_and_is_told(
    plain_stack: StackFactory, tfguard: Run, name: str
) -> None:
    stack, _ = applied(plain_stack, tfguard, name, DAMAGED[name])
    before = kept(stack)
    for command in [APPLY, DESTROY, ORPHANS, *STATUS_READS.get(name, [("status",)])]:
        done = tfguard(*command, cwd=stack)
        assert done.returncode == 11, (command, done.stderr)
        assert name in done.stderr
        assert kept(stack) == before, command
    assert tfguard("doctor", cwd=stack).returncode == 1


@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_recover_moves_what_is_damaged_aside_but_for_an_intent_which_nothing_stands_for(
    plain_stack: StackFactory, tfguard: Run, name: str
) -> None:
    stack, path = applied(plain_stack, tfguard, name, DAMAGED[name])
    (operation,) = operations(stack)
    done = tfguard("recover", cwd=stack)
    assert name in done.stderr
    if name == "intent.json":
        assert done.returncode == 11
        assert path.read_text() == DAMAGED[name]
        assert head(stack)["open_operations"] == [operation]
        return
    assert done.returncode == 0, done.stderr
    assert path.with_name(f"{name}.unreadable-1").read_text() == DAMAGED[name]
    settled = outcome(stack, operation)
    assert settled is not None
    assert settled["steps"][0]["outcome"] == "recorded"
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    assert path.with_name(f"{name}.unreadable-1").read_text() == DAMAGED[name]


@pytest.mark.parametrize(("text", "code"), [(NEWER[LEDGER], 10), (DAMAGED[LEDGER], 11)], ids=["newer", "damaged"])
def test_no_run_begins_whose_decisions_could_not_be_read_afterwards(
    plain_stack: StackFactory, tfguard: Run, text: str, code: int
) -> None:
    stack, path = applied(plain_stack, tfguard, LEDGER, text, opened=False)
    before = kept(stack)
    for command in (APPLY, DESTROY, (*APPLY, "--on-gap=ignore", "--reason", "because")):
        done = tfguard(*command, cwd=stack)
        assert done.returncode == code, done.stderr
        assert LEDGER in done.stderr
        assert kept(stack) == before
    assert "FAIL" in tfguard("doctor", cwd=stack).stdout
    assert tfguard("recover", cwd=stack).returncode == (10 if code == 10 else 0)
    assert tfguard(*APPLY, cwd=stack).returncode == (10 if code == 10 else 0)
    aside = path if code == 10 else path.with_name(f"{LEDGER}.unreadable-1")
    assert aside.read_text() == text


def test_a_repair_goes_on_beside_a_damaged_ledger_and_says_so(plain_stack: StackFactory, tfguard: Run) -> None:
    stack, path = applied(plain_stack, tfguard, LEDGER, DAMAGED[LEDGER], opened=False)
    done = tfguard(*TAINT, cwd=stack)
    assert done.returncode == 0
    assert LEDGER in done.stderr
    assert path.read_text() == DAMAGED[LEDGER]
    assert tfguard("recover", cwd=stack).returncode == 0
    assert path.with_name(f"{LEDGER}.unreadable-1").read_text() == DAMAGED[LEDGER]


def test_a_newer_head_stops_repairs_and_lists_too(plain_stack: StackFactory, tfguard: Run) -> None:
    stack = plain_stack(ONE)
    assert tfguard(*APPLY, cwd=stack).returncode == 0
    path = record(stack) / "head.json"
    path.write_text('{"schema": "tfguard.head/v99"}\n')
    before = kept(stack)
    for command in (TAINT, ORPHANS, ("history",), ("recover",)):
        assert tfguard(*command, cwd=stack).returncode == 10
    assert kept(stack) == before
    assert path.read_text() == '{"schema": "tfguard.head/v99"}\n'


def test_a_damaged_head_and_a_newer_document_below_it_are_both_left_alone(
    plain_stack: StackFactory, tfguard: Run
) -> None:
    stack, _ = applied(plain_stack, tfguard, "outcome.json", NEWER["outcome.json"])
    path = record(stack) / "head.json"
    path.write_text("{")
    before = kept(stack)
    assert tfguard("recover", cwd=stack).returncode == 10
    assert path.read_text() == "{"
    assert kept(stack) == before
