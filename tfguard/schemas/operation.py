"""`tfguard.operation/v1`: an operation as `status --format json` shows it. What is not known is null, not left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from tfguard.model.disposition import Disposition
from tfguard.model.finding import tainted_id
from tfguard.model.operation import ErroredState, Operation, OperationStatus, Step
from tfguard.schemas.codec import dump, format_time, hints_of
from tfguard.schemas.document import as_object, with_schema
from tfguard.schemas.json_schema import Shape

SCHEMA = "tfguard.operation/v1"

SHAPE: Shape = {
    "operation_id": str | None,
    "open": bool,
    "status": OperationStatus | None,
    "command?": str,
    "stack?": {
        "backend": str,
        "location": str,
        "workspace": str,
        "directory": str,
        "lineage": str,
        "serial_before": int,
        "serial_after": int | None,
    },
    "engine?": {"name": str, "version": str, "exit_code": int | None, "signal": int | None},
    "actor?": {
        "user": str,
        "host": str,
        "ci": dict.fromkeys(("url", "commit", "job", "actor", "system"), str | None),
    },
    "started_at?": datetime,
    "ended_at?": datetime | None,
    "steps": [{**hints_of(Step), "open": bool, "finding": str | None}],
    "error?": str | None,
    "approval?": str | None,
    "approved_by?": str | None,
    "approved_at?": datetime | None,
    "plan_digest?": str | None,
    "outputs_before?": [str],
    "on_gap_reason?": str | None,
    "errored_state?": ErroredState | None,
    "gaps?": [str],
    "notes?": [str],
    "next_actions": [str],
    "record": str,
}
"""What the document holds; a stack without any operation has no more than those that are always there."""

STATUS_SHAPE: Shape = {**SHAPE, "deletions?": [{"decision": Disposition}]}
"""The document by itself, as `status` prints it: with the deletions on the stack that were begun and have no end."""


def status_document(
    operation: Operation | None,
    record_location: str,
    next_actions: Sequence[str],
    deletions: Sequence[Disposition],
    *,
    alive: bool = False,
) -> Mapping[str, object]:
    """The document for the operation that a stack is at, None where there is none, with the stack's deletions that
    were begun and have no end. The rest is as for `operation_document`."""
    begun = {"deletions": [{"decision": dump(entry, keep_none=True)} for entry in deletions]}
    if operation is not None:
        return {**operation_document(operation, record_location, next_actions, alive=alive), **begun}
    empty = {"operation_id": None, "open": False, "status": None, "steps": [], "next_actions": list(next_actions)}
    return with_schema(SCHEMA, {**empty, "record": record_location, **begun})


def operation_document(
    operation: Operation, record_location: str, next_actions: Sequence[str], *, alive: bool = False
) -> Mapping[str, object]:
    """The document for `operation`.

    `record_location` is where its record lies, `next_actions` the commands that lead on, `alive` whether its process
    still runs: an operation without a result is `running` then, and `interrupted` else.
    """
    intent, result = operation.intent, operation.result
    body = {
        "operation_id": operation.id,
        "open": operation.open,
        "status": operation_status(operation, alive=alive).value,
        "command": intent.command,
        "stack": _stack(operation),
        "engine": _engine(operation),
        "actor": _actor(operation),
        "started_at": format_time(intent.started_at),
        "ended_at": format_time(result.ended_at) if result else None,
        "steps": [_step(step, operation.lineage) for step in operation.steps],
        "error": result.error if result else None,
        "approval": intent.approval.how if intent.approval else None,
        "approved_by": intent.approval.by if intent.approval else None,
        "approved_at": format_time(intent.approval.at) if intent.approval else None,
        "plan_digest": intent.plan_digest,
        "outputs_before": list(intent.outputs_before),
        "on_gap_reason": intent.on_gap_reason,
        "errored_state": dump(result.errored_state, keep_none=True) if result else None,
        "gaps": list(result.gaps) if result else [],
        "notes": list(result.notes) if result else [],
        "next_actions": list(next_actions),
        "record": record_location,
    }
    return with_schema(SCHEMA, body)


def operation_status(operation: Operation, *, alive: bool) -> OperationStatus:
    """The status of an operation, whose process is `alive` or not."""
    if operation.result is not None:
        return operation.result.status
    return OperationStatus.RUNNING if alive else OperationStatus.INTERRUPTED


def _stack(operation: Operation) -> Mapping[str, object]:
    intent, result = operation.intent, operation.result
    return {
        "backend": intent.stack.backend,
        "location": intent.stack.location,
        "workspace": intent.stack.workspace,
        "directory": intent.stack.directory,
        "lineage": operation.lineage,
        "serial_before": intent.serial_before,
        "serial_after": result.serial_after if result else None,
    }


def _engine(operation: Operation) -> Mapping[str, object]:
    engine, result = operation.intent.engine, operation.result
    return {
        "name": engine.name,
        "version": engine.version,
        "exit_code": result.exit_code if result else None,
        "signal": result.signal if result else None,
    }


def _actor(operation: Operation) -> Mapping[str, object]:
    actor = operation.intent.actor
    ci = {
        "url": actor.ci_url,
        "commit": actor.ci_commit,
        "job": actor.ci_job,
        "actor": actor.ci_actor,
        "system": actor.ci_system,
    }
    return {"user": actor.user, "host": actor.host, "ci": ci}


def _step(step: Step, lineage: str) -> Mapping[str, object]:
    findings = [found.finding_id for found in step.observed if found.finding_id and not found.in_state]
    findings += [tainted_id(lineage, step.address)] if step.tainted else []
    return {
        **as_object(dump(step, keep_none=True)),
        "open": step.open,
        "finding": findings[0] if findings else None,
    }
