"""Drafting for many objects at once: one that the engine cannot read keeps no other from its configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tfguard.engine.drafting import Drafting
from tfguard.engine.importing import FILE
from tfguard.engine.queries import Answer
from tfguard.model.importing import ImportTarget
from tfguard.model.plan import Action, Plan, PlannedChange

# What a provider says that died, and for the calls that were under way: no address, as the real ones.
CRASH = ("Plugin did not respond", "Request cancelled")


@dataclass
class FakeEngine:
    """Stands in for an engine whose provider fails over some objects: `refuses` maps their names to the errors."""

    directory: Path
    refuses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    only_when_planned: bool = False
    differs: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    plans: list[list[str]] = field(default_factory=list)

    def query(self, *words: str) -> Answer:
        """Run a command."""
        if words[0] != "plan":
            return Answer(0, "{}", "")
        names = re.findall(r"to = x\.(\w+)", (self.directory / FILE).read_text())
        out = next((word.partition("=")[2] for word in words if word.startswith("-generate-config-out=")), "")
        self.plans.append(names)
        failing = (
            [] if out and self.only_when_planned else [error for one in names for error in self.refuses.get(one, ())]
        )
        lines = [
            {
                "@level": "error",
                "type": "diagnostic",
                "diagnostic": {"severity": "error", "summary": what, "detail": ""},
            }
            for what in failing
        ]
        if out and not failing:
            Path(out).write_text("".join(f'resource "x" "{one}" {{\n  name = "{one}"\n}}\n' for one in names))
        return Answer(1 if failing else 0, "".join(f"{json.dumps(line)}\n" for line in lines), "")

    def show(self, path: Path) -> Plan:
        """Read the last plan."""
        assert path.name == "plan"
        changes = []
        for one in self.plans[-1]:
            differs, filled = self.differs.get(one, ((), ()))
            action = Action.UPDATE if differs else Action.NOOP
            changes.append(PlannedChange(f"x.{one}", "x", "p", action, importing=one, differs=differs, filled=filled))
        return Plan("1.11.4", tuple(changes))

    def draft(self, count: int) -> tuple[set[str], dict[str | None, str], Mapping[str, tuple[str, ...]]]:
        """Draft for so many objects: which have a configuration, why others have none, and what an apply fills in."""
        targets = [ImportTarget(f"x.n{number}", f"n{number}", drafted=True) for number in range(count)]
        draft = Drafting(self.directory, self.query, self.show).draft(targets, {}, (), self.directory)
        why = {one.address: one.what for one in draft.troubles}
        return set(draft.texts) - why.keys(), why, draft.fills


def others(count: int, *without: int) -> set[str]:
    """The addresses of all but these."""
    return {f"x.n{number}" for number in range(count) if number not in without}


def test_a_provider_that_dies_over_one_object_keeps_no_other_from_its_configuration(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path, {"n7": CRASH})
    clean, why, _ = engine.draft(20)
    assert clean == others(20, 7)
    assert why == {"x.n7": "the provider died over it (Plugin did not respond)"}
    assert len(engine.plans) < 15


def test_the_same_holds_where_it_dies_over_a_plan_of_what_was_drafted(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path, {"n2": CRASH, "n9": CRASH}, only_when_planned=True)
    clean, why, _ = engine.draft(12)
    assert (clean, set(why)) == (others(12, 2, 9), {"x.n2", "x.n9"})


def test_an_object_that_cannot_be_read_is_found_although_nobody_names_it(tmp_path: Path) -> None:
    clean, why, _ = FakeEngine(tmp_path, {"n0": ("reading App (one): AccessDenied",)}).draft(10)
    assert (clean, why) == (others(10, 0), {"x.n0": "reading App (one): AccessDenied"})


def test_what_is_said_of_all_is_not_sought_among_them(tmp_path: Path) -> None:
    engine = FakeEngine(tmp_path, {f"n{number}": ("No valid credential sources found",) for number in range(200)})
    clean, why, _ = engine.draft(200)
    assert clean == set()
    assert set(why.values()) == {"No valid credential sources found"}
    assert len(why) == 200
    assert len(engine.plans) < 8


def test_what_a_default_fills_in_is_left_to_whoever_approves_and_any_other_difference_is_none(tmp_path: Path) -> None:
    differs = {"n0": (("window",), ("window",)), "n1": (("size", "window"), ("window",))}
    clean, why, fills = FakeEngine(tmp_path, differs=differs).draft(3)
    assert clean == {"x.n0", "x.n2"}
    assert why == {"x.n1": "what exists differs from any configuration: size; window"}
    assert fills == {"x.n0": ("window",)}
