"""Which other stacks' states an apply compares with: all local ones that `scan.stacks` means, and none is a failure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from packed import START, MovedClock, OneHost, intent

from tfguard.catalog.loader import load_catalog
from tfguard.cli.invocation import Invocation
from tfguard.cli.kept_files import patterns_meant, states_meant
from tfguard.cli.wiring import known_files, stack_context
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import ConfigError, InputError, NoStateError
from tfguard.flows.context import StackContext
from tfguard.flows.known_states import known_states
from tfguard.flows.looking import Surroundings
from tfguard.model.config import Config, ScanConfig
from tfguard.model.inventory import Coverage
from tfguard.model.scan import ScanScope
from tfguard.model.since import KeptScan, KeptTimes
from tfguard.model.state import StateSnapshot
from tfguard.ports import KnownState


class Heard:
    """A fake of the port `Console` that keeps the warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def say(self, text: str) -> None:
        raise AssertionError(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


class Source:
    """A fake of the port `StateSource`."""

    pattern = "x"

    def __init__(self, *found: KnownState | Exception) -> None:
        self._found = found

    def read(self) -> Iterator[KnownState]:
        for one in self._found:
            if isinstance(one, Exception):
                raise one
            yield one


OWN = intent("01", START).stack


def context_with(known_files: Callable[[], list[Any]]) -> tuple[StackContext, Heard]:
    console = Heard()
    around = Surroundings(None, load_catalog(), Config(), MovedClock(), console)  # type: ignore[arg-type]
    return StackContext(OWN, None, None, around, OneHost(), known_files), console  # type: ignore[arg-type]


def snapshot(lineage: str) -> StateSnapshot:
    return StateSnapshot(lineage=lineage, serial=1)


def test_of_the_other_states_those_that_can_be_read_count_and_the_rest_is_told() -> None:
    sources: list[Any] = [
        Source(KnownState(OWN.location, "default", snapshot("own")), KnownState("a", "", snapshot("a"))),
        Source(NoStateError("absent/** matches no state", "correct it")),
        Source(KnownState("cut", "", None, "the state cut is cut"), KnownState("b", "", snapshot("b"))),
        Source(InputError("s cannot be listed", "look")),
    ]
    context, console = context_with(lambda: sources)
    assert [one.lineage for one in context.other_states()] == ["a", "b"]
    said = "; what it holds may be named as a stray object here"
    assert console.warnings == [f"the state cut is cut{said}", f"s cannot be listed{said}"]


def test_a_pattern_that_names_no_place_does_not_end_what_goes_on_after_the_engine() -> None:
    context, console = context_with(_refused)
    assert context.other_states() == ()
    assert console.warnings == ["of a folder only ?workspace=NAME; what it holds may be named as a stray object here"]


def _refused() -> list[Any]:
    raise ConfigError("of a folder only ?workspace=NAME", "take the rest out")


def test_a_pattern_means_the_same_local_states_to_an_apply_as_to_a_scan(tmp_path: Path) -> None:
    for name in ("infra/net/terraform.tfstate", "infra/terraform.tfstate.d/dev/terraform.tfstate", "odd/state.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"version": 4, "serial": 1, "lineage": name, "resources": []}))
    remote = tmp_path / "infra/remote"
    remote.mkdir()
    (remote / "main.tf").write_text('terraform {\n  backend "s3" {}\n}\n')
    backend = {"type": "s3", "config": {"bucket": "b", "key": "k", "region": "eu-west-1"}}
    (remote / ".terraform").mkdir()
    (remote / ".terraform/terraform.tfstate").write_text(json.dumps({"version": 3, "backend": backend}))
    stacks = ("infra", f"file://{tmp_path}/odd/*.json", "s3://bucket/**", "absent")
    sources = known_files(Invocation(), Config(scan=ScanConfig(stacks=stacks)), tmp_path / "tfguard.yaml")
    found: list[str] = []
    for source in sources:
        try:
            found += [one.snapshot.lineage if one.snapshot else one.failure for one in source.read()]
        except NoStateError:
            assert source.pattern == "absent"
    assert sorted(found) == [
        "infra/net/terraform.tfstate",
        "infra/terraform.tfstate.d/dev/terraform.tfstate",
        "odd/state.json",
    ]


def test_the_states_of_a_scan_are_searched_too_and_one_that_is_not_there_any_more_stops_it() -> None:
    context, _ = context_with(list)
    found: list[Any] = [Source(KnownState(OWN.location, "", snapshot("own")), KnownState("b", "", snapshot("b")))]
    known: list[Any] = [Source(NoStateError("absent/** matches no state", "correct it"))]
    context = replace(context, known_places=lambda: known, scanned_places=lambda: found)
    assert [where for where, _ in known_states(context, snapshot("own"))] == [OWN.location, "b"]
    found.append(Source(KnownState("cut", "", None, "the state cut is cut")))
    with pytest.raises(InputError, match="the state cut is cut; whether it has the object already is not known"):
        list(known_states(context, snapshot("own")))
    found[1] = known[0]
    with pytest.raises(InputError, match=r"absent/\*\* matches no state, where the scan looked"):
        list(known_states(context, snapshot("own")))


@pytest.mark.parametrize("workspaces", [(), ("one", "two")])
def test_the_states_that_a_scan_kept_are_found_again_from_another_folder(
    tmp_path: Path, workspaces: tuple[str, ...]
) -> None:
    meant = states_meant(["net (old)/*.tfstate", "s3://states/x"], tmp_path, workspaces)
    folder = str(tmp_path / "net (old)/*.tfstate")
    assert list(patterns_meant(meant)) == [(folder, workspaces), ("s3://states/x", workspaces)]


def test_a_state_that_the_scan_read_is_read_again_before_a_finding_is_settled(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    state = {"version": 4, "serial": 1, "lineage": "theirs", "resources": []}
    (tmp_path / "theirs.tfstate").write_text(json.dumps(state))
    scope = ScanScope(states_meant(["theirs.tfstate"], tmp_path, ()))
    kept = KeptScan(KeptTimes(START, START), Coverage(), (), scope=scope)
    context = stack_context(Invocation(engine_arguments=(f"-chdir={tmp_path / 'mine'}",)), SignalGate(), kept=kept)
    assert [one.lineage for _, one in known_states(context, snapshot("own"))] == ["own", "theirs"]
