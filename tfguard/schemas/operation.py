"""`tfguard.operation/v1`: an operation as `status --format json` shows it. What is not known is null, not left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfguard.model.operation import Operation, OperationStatus, Step
from tfguard.schemas.codec import dump, format_time
from tfguard.schemas.document import as_object, with_schema

SCHEMA = "tfguard.operation/v1"


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
        "steps": [_step(step) for step in operation.steps],
        "error": result.error if result else None,
        "approval": intent.approval,
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
        "lineage": (result.lineage if result else "") or intent.lineage,
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


def _step(step: Step) -> Mapping[str, object]:
    findings = [found.finding_id for found in step.observed if found.finding_id and not found.in_state]
    return {
        **as_object(dump(step, keep_none=True)),
        "open": step.open,
        "finding": findings[0] if findings else None,
    }
