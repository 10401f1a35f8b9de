"""The documents that scripts read have the shape that the interface promises."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from tfguard.model.disposition import Disposition
from tfguard.model.evidence import Confidence, Evidence, EvidenceKind
from tfguard.model.inventory import CloudObject, Coverage, Gap
from tfguard.model.operation import (
    Actor,
    Approved,
    EngineInfo,
    ErroredState,
    Intent,
    ObservedObject,
    Operation,
    OperationStatus,
    Outcome,
    Result,
    Stack,
    Step,
    StepStatus,
)
from tfguard.model.plan import Action
from tfguard.schemas.findings import findings_document
from tfguard.schemas.operation import operation_document

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
STEP = Step(
    "aws_iam_role.app",
    "aws_iam_role",
    "registry.terraform.io/hashicorp/aws",
    Action.CREATE,
    StepStatus.ERROR,
    Outcome.ORPHANED,
    desired={"name": "app"},
    observed=(
        ObservedObject("aws_iam_role", "old", "old", "aws", None, "global", True, Confidence.CERTAIN, "o-0"),
        ObservedObject("aws_iam_role", "app", "app", "aws", None, "global", False, Confidence.CERTAIN, "o-1"),
    ),
    evidence=(Evidence(EvidenceKind.DESIRED_IDENTITY, "name app"),),
    error="timed out",
)
INTENT = Intent(
    "01J",
    "apply",
    ("apply",),
    Stack("local", "/s/terraform.tfstate", "default", "/s"),
    EngineInfo("terraform", "1.11.4"),
    Actor("me", "host"),
    NOW,
    "lineage",
    3,
    (replace(STEP, outcome=None, observed=(), status=StepStatus.PENDING),),
)
RESULT = Result("01J", OperationStatus.ERROR, NOW, (STEP,), exit_code=1, serial_after=4)


class _Verdict(StrEnum):
    ORPHANED = "orphaned"


@dataclass(frozen=True)
class _Finding:
    id: str
    verdict: _Verdict
    confidence: Confidence
    address: str | None
    operation_id: str | None
    object: CloudObject | None
    evidence: Sequence[Evidence]
    disposition: Disposition | None
    actions: Sequence[str]


def test_a_failed_operation_has_every_field_of_the_interface() -> None:
    document = operation_document(Operation(INTENT, RESULT), "/s/terraform.tfstate.tfguard", ["tfguard recover"])
    document = json.loads(json.dumps(document))
    assert document["schema"] == "tfguard.operation/v1"
    expected = {
        "operation_id": "01J",
        "open": True,
        "status": "error",
        "command": "apply",
        "started_at": "2026-03-01T12:00:00Z",
        "ended_at": "2026-03-01T12:00:00Z",
        "errored_state": None,
        "next_actions": ["tfguard recover"],
        "record": "/s/terraform.tfstate.tfguard",
        "engine": {"name": "terraform", "version": "1.11.4", "exit_code": 1, "signal": None},
    }
    assert {name: document[name] for name in expected} == expected
    stack = {"backend": "local", "location": "/s/terraform.tfstate", "workspace": "default", "lineage": "lineage"}
    assert document["stack"].items() >= (stack | {"serial_before": 3, "serial_after": 4}).items()
    assert document["actor"]["user"] == "me"
    assert document["actor"]["ci"] == dict.fromkeys(("url", "commit", "job", "actor", "system"))
    (step,) = document["steps"]
    assert step.items() >= {"status": "error", "outcome": "orphaned", "error": "timed out", "finding": "o-1"}.items()
    assert step["action"] == "create"
    assert step["observed"][1].items() >= {"id": "app", "import_id": "app", "arn": None, "created_at": None}.items()
    assert step["evidence"] == [{"kind": "desired-identity", "detail": "name app"}]


def test_an_operation_without_a_result_is_running_while_its_process_lives_and_interrupted_else() -> None:
    operation = Operation(INTENT, None)
    assert operation_document(operation, "r", [], alive=True)["status"] == "running"
    dead = operation_document(operation, "r", [])
    assert (dead["status"], dead["open"], dead["ended_at"]) == ("interrupted", True, None)
    assert dead["engine"] == {"name": "terraform", "version": "1.11.4", "exit_code": None, "signal": None}


def test_an_approval_is_told_with_who_and_when() -> None:
    approved = replace(INTENT, approval=Approved("prompt", "ada", NOW), plan_digest="c0ffee")
    document = operation_document(Operation(approved, None), "r", [])
    told = {"approval": "prompt", "approved_by": "ada", "approved_at": "2026-03-01T12:00:00Z", "plan_digest": "c0ffee"}
    assert document.items() >= told.items()
    nobody = operation_document(Operation(INTENT, None), "r", [])
    assert [nobody[name] for name in told] == [None] * 4


def test_an_errored_state_is_told_until_it_is_pushed() -> None:
    left = replace(RESULT, steps=(), errored_state=ErroredState("/s/errored.tfstate", None, "lineage", 5))
    document = operation_document(Operation(INTENT, left), "r", [])
    assert document["open"] is True
    assert document["errored_state"] == {
        "path": "/s/errored.tfstate",
        "rescued": None,
        "lineage": "lineage",
        "serial": 5,
        "pushed": False,
    }


def test_findings_have_every_field_of_the_interface() -> None:
    found = CloudObject("aws", "123456789012", "global", "aws_iam_role", "app", "app", name="app", created_at=NOW)
    finding = _Finding(
        found.finding_id,
        _Verdict.ORPHANED,
        Confidence.CERTAIN,
        "aws_iam_role.app",
        "01J",
        found,
        (Evidence(EvidenceKind.CREATED_IN_WINDOW, "d"),),
        None,
        ("import", "retain", "destroy"),
    )
    coverage = Coverage(4, 61, (Gap("aws 123456789012 eu-west-1 aws_sqs_queue", "AccessDenied"),))
    document = json.loads(json.dumps(findings_document([finding], coverage, {"managed": 498, "orphaned": 1})))
    assert document["schema"] == "tfguard.findings/v1"
    assert document["coverage"] == {
        "complete": False,
        "states_read": 4,
        "types_listed": 61,
        "gaps": [{"scope": "aws 123456789012 eu-west-1 aws_sqs_queue", "reason": "AccessDenied"}],
    }
    assert document["summary"] == {"managed": 498, "orphaned": 1}
    (entry,) = document["findings"]
    assert (
        entry["object"].items()
        >= {
            "cloud": "aws",
            "account": "123456789012",
            "region": "global",
            "type": "aws_iam_role",
            "id": "app",
            "import_id": "app",
            "arn": None,
            "name": "app",
            "created_at": "2026-03-01T12:00:00Z",
            "parent": None,
            "stateful": False,
        }.items()
    )
    assert entry["object"]["tags"] == {}
    assert entry["disposition"] is None
    assert entry["actions"] == ["import", "retain", "destroy"]
