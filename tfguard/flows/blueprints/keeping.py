"""Keep what a step has made, for a time and for somebody (rule 14)."""

from __future__ import annotations

from datetime import datetime

from tfguard.flows.blueprints.requests import Journal
from tfguard.model.blueprint_request import Activity, Request, RequestEvent
from tfguard.model.operation import StepStatus


def retain_step(journal: Journal, name: str, why: str, until: datetime, owner: str) -> Request:
    """Write that a step's objects are kept, until when, and for whom. Raises `RecordError`."""
    return journal.write(
        lambda at, by: RequestEvent(
            at,
            by,
            why,
            step=name,
            status=StepStatus.RETAINED,
            activity=Activity.RETAIN,
            until=until,
            owner=owner,
        )
    )
