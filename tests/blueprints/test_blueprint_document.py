"""The document of a blueprint's request has the shape that the interface promises."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from blueprint_scene import BEGUN, FAILED, READY, view
from jsonschema import Draft202012Validator, FormatChecker

from scripts.schema_files import FOLDER
from tfguard.model.blueprint_decision import Decision, DecisionKind
from tfguard.model.blueprint_request import RequestEvent
from tfguard.model.blueprint_view import BlueprintView
from tfguard.schemas.blueprint import blueprint_document


def _checked(seen: BlueprintView) -> dict[str, object]:
    document: dict[str, object] = json.loads(json.dumps(blueprint_document(seen)))
    schema = json.loads((FOLDER / "blueprint.v1.schema.json").read_text())
    Draft202012Validator(schema, format_checker=FormatChecker(["date-time"])).validate(document)
    assert set(document) == set(schema["properties"])
    return document


@pytest.mark.parametrize("events", [None, BEGUN, FAILED, READY])
def test_every_document_fits_its_schema(events: Sequence[RequestEvent] | None) -> None:
    document = _checked(view(events))
    assert document["schema"] == "tfguard.blueprint/v1"


def test_the_names_of_the_interface_are_there() -> None:
    decided = {"database": Decision(DecisionKind.SKIP, "done by operation op2")}
    document = _checked(view(FAILED, decisions=decided))
    names = ("blueprint", "request_id", "state", "owner", "cost_owner")
    assert [document[name] for name in names] == ["audit-service", "01J", "PartialFailure", "audit-team", "cc-1042"]
    steps = document["steps"]
    assert isinstance(steps, list)
    database = steps[1]
    names = ("id", "kind", "status", "needs", "blocked_by", "operation_id", "decision", "reason")
    assert [database[name] for name in names] == [
        "database",
        "stack",
        "retained",
        ["identity"],
        [],
        None,
        "skip",
        "done by operation op2",
    ]
    (found,) = database["objects"]
    names = ("desired", "observed_id", "type", "created_at", "cost_owner", "disposition")
    assert [found[name] for name in names] == [{}, "audit", "aws_db_instance", "2026-03-01T09:30:00Z", "cc-7", "retain"]
    assert [found["until"], found["owner"]] == ["2026-03-14T12:00:00Z", "dba"]
    (probe,) = document["probes"]  # type: ignore[misc]
    assert [probe[name] for name in ("name", "status", "detail")] == ["app-connection", "pending", "not asked yet"]
    last = document["transitions"][-1]  # type: ignore[index]
    assert [last[name] for name in ("from", "to", "step", "provider_ids", "at", "actor")] == [
        "Provisioning",
        "PartialFailure",
        "migrate",
        [],
        "2026-03-01T09:40:00Z",
        "ci@runner",
    ]
    assert "tfguard blueprint resume audit.yaml" in document["next_actions"]  # type: ignore[operator]


def test_a_request_of_many_kinds_of_text_is_json() -> None:
    assert _checked(replace(view(FAILED), notes=("\x00\u2028",)))["notes"] == ["\x00\u2028"]
