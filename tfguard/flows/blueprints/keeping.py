"""Keep what a step has made, for a time and for somebody (rule 14)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tfguard.model.blueprint_request import Activity, RequestEvent, StepRecord
from tfguard.model.operation import StepStatus

_FAILED = "; it had failed: "


def retention(
    name: str, before: StepRecord, why: str, until: datetime, owner: str
) -> Callable[[datetime, str], RequestEvent]:
    """The event that a step's objects are kept, until when, and for whom; of one that has failed also why it did."""
    failed = before.why if before.status is StepStatus.ERROR else ""
    if before.status is StepStatus.RETAINED:
        failed = before.why.partition(_FAILED)[2]
    told = f"{why}{_FAILED}{failed}" if failed else why
    return lambda at, by: RequestEvent(
        at,
        by,
        told,
        step=name,
        status=StepStatus.RETAINED,
        activity=Activity.RETAIN,
        until=until,
        owner=owner,
    )
