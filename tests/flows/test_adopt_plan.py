"""Which of many findings one plan can adopt; with a fake engine that says what a real one said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tfguard.catalog.loader import load_catalog
from tfguard.errors import InputError, InterruptedRunError
from tfguard.flows.adopt_plan import Candidate, Planned, Planner
from tfguard.model.evidence import Confidence
from tfguard.model.finding import Finding, Verdict
from tfguard.model.importing import ImportTarget, ImportTrouble
from tfguard.model.inventory import CloudObject
from tfguard.model.plan import Action, Plan, PlannedChange
from tfguard.model.state import EMPTY_STATE

AWS = "registry.terraform.io/hashicorp/aws"


def candidate(number: int, kind: str = "aws_iam_role", **fields: object) -> Candidate:
    """A finding with an address."""
    found = CloudObject("aws", "123456789012", "global", kind, f"id-{number}", f"id-{number}")
    address = f"{kind}.n{number}"
    finding = Finding(f"o-{number:08x}", Verdict.ORPHANED, Confidence.CERTAIN, address, None, found)
    return Candidate(finding, ImportTarget(address, found.import_id), **fields)  # type: ignore[arg-type]


def imported(target: ImportTarget, action: Action = Action.NOOP, **fields: object) -> PlannedChange:
    """The change that imports a target."""
    kind = target.address.partition(".")[0]
    return PlannedChange(target.address, kind, AWS, action, importing=target.import_id, **fields)  # type: ignore[arg-type]


@dataclass
class FakeEngine:
    """An engine that refuses what it is told to refuse, and notes what it was asked to plan."""

    refuses: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, PlannedChange] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    general: str | None = None
    unread: str | None = None
    asked: list[tuple[str, ...]] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)

    def plan_imports(
        self, targets: Sequence[ImportTarget], draft: str, arguments: Sequence[str], plan_file: Path
    ) -> tuple[ImportTrouble, ...]:
        """The troubles of these targets."""
        assert [word for word in arguments if word.startswith("-target")] == [
            f"-target={one.address}" for one in targets
        ]
        self.asked.append(tuple(one.address for one in targets))
        self.drafts.append(draft)
        self.targets = list(targets)
        plan_file.touch()
        if self.general:
            return (ImportTrouble(None, self.general, general=True),)
        if self.unread in [one.import_id for one in targets]:
            return (ImportTrouble(None, "reading App: AccessDenied", general=True),)
        return tuple(
            ImportTrouble(one.address, self.refuses[one.import_id]) for one in targets if one.import_id in self.refuses
        )

    def show_plan(self, plan_file: Path) -> Plan:  # noqa: ARG002 (the port's signature)
        """The plan of what was asked last."""
        made = {self.needs[one.address] for one in self.targets if one.address in self.needs}
        also = [PlannedChange(address, "aws_vpc", AWS, Action.CREATE) for address in sorted(made)]
        named = [
            replace(self.changes.get(one.address) or imported(one), importing=one.import_id) for one in self.targets
        ]
        return Plan("1.11.4", (*also, *named))


def planner(folder: Path, engine: FakeEngine, **fields: object) -> Planner:
    """A planner on fakes of everything."""
    around = SimpleNamespace(catalog=load_catalog())
    clock = SimpleNamespace(interrupted=fields.pop("interrupted", False))
    plan_now = fields.pop("plan_now", lambda _arguments: "not now")
    context = SimpleNamespace(engine=engine, around=around, clock=clock, plan_now=plan_now)
    may_update = bool(fields.pop("may_update", False))
    return Planner(context, EMPTY_STATE, folder, folder / "plan", ("-var=a=b",), may_update)  # type: ignore[arg-type]


def adopted(planned: Planned | None) -> list[str]:
    """The addresses in a plan."""
    return [one.address for one in planned.candidates] if planned else []


def test_two_hundred_at_once_are_one_plan(tmp_path: Path) -> None:
    engine = FakeEngine()
    many = [candidate(number) for number in range(200)]
    assert len(adopted(planner(tmp_path, engine).plan(many))) == 200
    assert len(engine.asked) == 1


def test_what_the_engine_refuses_is_left_out_and_the_others_are_planned_again(tmp_path: Path) -> None:
    engine = FakeEngine(refuses={"id-1": "AccessDenied", "id-3": "no such object"})
    asked = planner(tmp_path, engine)
    assert adopted(asked.plan([candidate(number) for number in range(4)])) == ["aws_iam_role.n0", "aws_iam_role.n2"]
    assert len(engine.asked) == 2
    assert {name: error.what for name, error in asked.refused.items()} == {
        "o-00000001": "the import cannot be planned: AccessDenied",
        "o-00000003": "the import cannot be planned: no such object",
    }


def test_what_the_plan_would_replace_or_update_is_left_out(tmp_path: Path) -> None:
    targets = [candidate(number).target for number in range(3)]
    changes = {
        targets[0].address: imported(targets[0], Action.REPLACE, forced_by=("name",)),
        targets[1].address: imported(targets[1], Action.UPDATE, differs=("tags",)),
    }
    strict = planner(tmp_path, FakeEngine(changes=changes))
    assert adopted(strict.plan([candidate(number) for number in range(3)])) == [targets[2].address]
    assert "as name differs" in strict.refused["o-00000000"].what
    assert "in place: tags" in strict.refused["o-00000001"].what
    assert "--allow-update" in strict.refused["o-00000001"].advice

    lenient = planner(tmp_path, FakeEngine(changes=changes), may_update=True)
    assert adopted(lenient.plan([candidate(number) for number in range(3)])) == [one.address for one in targets[1:]]
    drafted = planner(tmp_path, FakeEngine(changes=changes), may_update=True)
    assert adopted(drafted.plan([candidate(1, text="resource"), candidate(2)])) == [targets[2].address]
    filled = replace(candidate(1, text="resource"), fills=("tags", "window"))
    asked = planner(tmp_path, FakeEngine(changes=changes), may_update=True)
    assert adopted(asked.plan([filled, candidate(2)])) == [targets[1].address, targets[2].address]
    unasked = planner(tmp_path, FakeEngine(changes=changes))
    assert adopted(unasked.plan([filled, candidate(2)])) == [targets[2].address]
    assert "--allow-update" in unasked.refused["o-00000001"].advice


def test_one_that_needs_what_is_not_there_is_found_among_many(tmp_path: Path) -> None:
    engine = FakeEngine(needs={"aws_iam_role.n5": "aws_vpc.missing"})
    asked = planner(tmp_path, engine)
    assert len(adopted(asked.plan([candidate(number) for number in range(16)]))) == 15
    assert list(asked.refused) == ["o-00000005"]
    assert "it would also create aws_vpc.missing" in asked.refused["o-00000005"].what
    assert engine.asked[-1] == tuple(f"aws_iam_role.n{number}" for number in range(16) if number != 5)


def test_where_all_need_what_is_not_there_the_search_ends(tmp_path: Path) -> None:
    engine = FakeEngine(needs={f"aws_iam_role.n{number}": "aws_vpc.missing" for number in range(200)})
    asked = planner(tmp_path, engine)
    assert asked.plan([candidate(number) for number in range(200)]) is None
    assert len(asked.refused) == 200
    assert len(engine.asked) < 60


def test_what_is_about_no_object_ends_it_at_once(tmp_path: Path) -> None:
    engine = FakeEngine(general="No value for required variable")
    with pytest.raises(InputError, match="No value for required variable"):
        planner(tmp_path, engine).plan([candidate(number) for number in range(8)])
    assert len(engine.asked) == 1


def test_one_that_cannot_be_read_is_found_although_the_provider_does_not_say_which(tmp_path: Path) -> None:
    engine = FakeEngine(unread="id-6")
    asked = planner(tmp_path, engine, plan_now=lambda _arguments: Plan("1.11.4", ()))
    assert len(adopted(asked.plan([candidate(number) for number in range(16)]))) == 15
    assert [(name, error.what) for name, error in asked.refused.items()] == [
        ("o-00000006", "the import cannot be planned: reading App: AccessDenied")
    ]


def test_nothing_is_planned_after_an_interrupt(tmp_path: Path) -> None:
    engine = FakeEngine()
    with pytest.raises(InterruptedRunError):
        planner(tmp_path, engine, interrupted=True).plan([candidate(0)])
    assert engine.asked == []


def test_an_id_in_another_spelling_is_made_of_the_configurations_own_values_once(tmp_path: Path) -> None:
    record = candidate(0, "aws_route53_record")
    desired = {"zone_id": "Z1", "name": "www", "type": "A"}
    change = imported(record.target, Action.REPLACE, desired=desired, forced_by=("name",))
    stubborn = planner(tmp_path, FakeEngine(changes={record.address: change}))
    assert stubborn.plan([record, candidate(1)]) is not None
    assert list(stubborn.refused) == [record.finding.id]

    # The listed object's id is no id for the import at all: then a plan without it tells the values.
    engine = FakeEngine(refuses={"id-0": "unexpected format"})
    told = Plan("1.11.4", (replace(change, importing=None, action=Action.CREATE),))
    asked = planner(tmp_path, engine, plan_now=lambda _arguments: told)
    planned = asked.plan([record, candidate(1)])
    assert planned is not None
    assert [one.target.import_id for one in planned.candidates] == ["Z1_www_A", "id-1"]


def test_drafts_are_planned_with_their_targets(tmp_path: Path) -> None:
    engine = FakeEngine(refuses={"id-0": "AccessDenied"})
    planner(tmp_path, engine).plan([candidate(0, text="one\n"), candidate(1, text="two\n"), candidate(2)])
    assert engine.drafts == ["one\n\ntwo\n", "two\n"]
