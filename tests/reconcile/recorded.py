"""Small builders for recorded operations, as a scan reads them of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from scene import AWS, END, START

from tfguard.model.engine import EngineInfo
from tfguard.model.evidence import Confidence
from tfguard.model.ids import new_operation_id
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import (
    Actor,
    BaselineEntry,
    Intent,
    ObservedObject,
    Operation,
    OperationStatus,
    Result,
    Stack,
    Step,
    StepStatus,
    StreamHealth,
)
from tfguard.model.plan import Action
from tfguard.reconcile.marks import observe, with_finding

WHERE = ("s3://state/app.tfstate", "default")


def planned(address: str, action: Action = Action.CREATE, status: StepStatus = StepStatus.ERROR, **fields: Any) -> Step:
    """A step as a record keeps it; it failed, unless something else is said."""
    kind = address.rsplit(".", 2)[-2]
    return Step(address, kind, AWS, action, status, **{"provider_key": "aws", **fields})


def stray(found: CloudObject, confidence: Confidence = Confidence.CERTAIN, **fields: Any) -> ObservedObject:
    """An object as the operation itself saw it, in no state."""
    return with_finding(replace(observe(found, in_state=False, confidence=confidence), **fields))


def operation(
    *steps: Step,
    ended: bool = True,
    started: datetime = START,
    baseline: Sequence[BaselineEntry] = (),
    whole: bool = True,
) -> Operation:
    """An apply of these steps, of five minutes; without its result unless it has `ended`."""
    operation_id = new_operation_id(started)
    stack = Stack("s3", WHERE[0], WHERE[1], "/work")
    pending = tuple(replace(step, status=StepStatus.PENDING, outcome=None, observed=(), evidence=()) for step in steps)
    intent = Intent(
        operation_id, "apply", ("apply",), stack, EngineInfo("terraform", "1.11.4"), Actor("me", "here"), started,
        "lineage", 1, pending, tuple(baseline),
    )  # fmt: skip
    ended_at = started + (END - START)
    result = Result(operation_id, OperationStatus.ERROR, ended_at, steps, stream=StreamHealth(whole=whole))
    return Operation(intent, result if ended else None)


LATER = END + timedelta(days=3)
