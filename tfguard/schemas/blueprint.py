"""`tfguard.blueprint/v1`: a request as `blueprint status --format json` shows it, and `tfguard.blueprint-requests/v1`:
all of them. What is not known is null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from tfguard.model.blueprint_request import RequestState, StateChange
from tfguard.model.blueprint_view import BlueprintView, ListedRequest, ProbeView, StepView
from tfguard.schemas.codec import dump, format_time
from tfguard.schemas.document import with_schema
from tfguard.schemas.json_schema import Shape

SCHEMA = "tfguard.blueprint/v1"

SHAPE: Shape = {
    "blueprint": str,
    "file": str,
    "request_id": str | None,
    "state": RequestState | None,
    "ready_now": bool,
    "live": bool,
    "stuck": bool,
    "overdue": bool,
    "owner": str,
    "cost_owner": str,
    "created_at": datetime | None,
    "since": datetime | None,
    "failing_since": datetime | None,
    "repair_by": datetime | None,
    "seen_at": datetime,
    "notes": [str],
    "steps": [StepView],
    "probes": [ProbeView],
    "transitions": [
        {
            "from": RequestState | None,
            "to": RequestState,
            "step": str | None,
            "provider_ids": [str],
            "at": datetime,
            "actor": str,
            "why": str,
        }
    ],
    "next_actions": [str],
}

LIST_SCHEMA = "tfguard.blueprint-requests/v1"
LIST_SHAPE: Shape = {"requests": [ListedRequest]}


def requests_document(listed: Sequence[ListedRequest]) -> Mapping[str, object]:
    """The document with the requests of a blueprint, in this order."""
    return with_schema(LIST_SCHEMA, {"requests": [dump(one, keep_none=True) for one in listed]})


def blueprint_document(view: BlueprintView) -> Mapping[str, object]:
    """The document with this view; without a request its `request_id` and `state` are null."""
    body = {
        "blueprint": view.blueprint,
        "file": view.file,
        "request_id": view.request_id,
        "state": view.state.value if view.state else None,
        "ready_now": view.ready_now,
        "live": view.live,
        "stuck": view.stuck,
        "overdue": view.overdue,
        "owner": view.owner,
        "cost_owner": view.cost_owner,
        "created_at": _time(view.created_at),
        "since": _time(view.since),
        "failing_since": _time(view.failing_since),
        "repair_by": _time(view.repair_by),
        "seen_at": _time(view.now),
        "notes": list(view.notes),
        "steps": [dump(step, keep_none=True) for step in view.steps],
        "probes": [dump(probe, keep_none=True) for probe in view.probes],
        "transitions": [_transition(change) for change in view.transitions],
        "next_actions": [action.command for action in view.next_actions],
    }
    return with_schema(SCHEMA, body)


def _transition(change: StateChange) -> Mapping[str, object]:
    return {
        "from": change.before.value if change.before else None,
        "to": change.after.value,
        "step": change.step,
        "provider_ids": list(change.provider_ids),
        "at": format_time(change.at),
        "actor": change.actor,
        "why": change.why,
    }


def _time(value: datetime | None) -> str | None:
    return format_time(value) if value else None
