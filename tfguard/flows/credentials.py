"""Credentials that end before an apply is likely to: said before anybody approves it."""

from __future__ import annotations

from datetime import timedelta

from tfguard.errors import CorruptRecordError, NewerRecordError, RecordError
from tfguard.flows.context import StackContext
from tfguard.flows.records import Records
from tfguard.model.durations import in_words
from tfguard.model.plan import Plan

_RUNS = ("apply", "destroy", "refresh")
_COUNTED = 5
_LOOKED_AT = 10
# The shortest session that AWS gives out; with less than that left it is an older one, and of the run nothing is known.
_WITHOUT_HISTORY = timedelta(minutes=15)
_LEAST_MARGIN = timedelta(minutes=2)


def warn_of_expiry(context: StackContext, plan: Plan) -> None:
    """Warn when the credentials of this run have ended, or are likely to end before it does.

    It is likely when less is left than the longest of the last five runs took, and half of that again, two minutes at
    least: runs differ, somebody has yet to approve, and the state is saved last of all. A stack without runs on record
    gets a quarter of an hour. The record is read where an end is known, and nowhere else; reading it never fails a run.
    """
    if context.credentials is None or not (plan.changing or plan.changes_outputs):
        return
    now = context.clock.now()
    ends = context.credentials.expiries(tuple(plan.providers.values()))
    if not ends:
        return
    longest = longest_run(context.records)
    needed = _WITHOUT_HISTORY if longest is None else longest + max(_LEAST_MARGIN, longest / 2)
    for expiry in ends:
        left = expiry.at - now
        if left <= timedelta():
            context.console.warn(f"the credentials expired {in_words(-left)} ago ({expiry.source}); renew them first")
            return
        if left < needed and not expiry.for_sign_in:
            took = (
                f"the last runs of this stack took up to {in_words(longest)}" if longest else "no run is on record here"
            )
            context.console.warn(
                f"the credentials expire in {in_words(left)} ({expiry.source}), and {took}; "
                "renew them first, or the run may end half-way and its state stay unsaved"
            )
            return


def longest_run(records: Records) -> timedelta | None:
    """The longest of the last runs; None where none is known."""
    found: list[timedelta] = []
    try:
        for operation_id in records.operation_ids()[::-1][:_LOOKED_AT]:
            took = _duration(records, operation_id)
            found += [took] if took is not None else []
            if len(found) == _COUNTED:
                break
    except RecordError:
        pass  # whether the record can be used is told where it is written
    return max(found, default=None)


def _duration(records: Records, operation_id: str) -> timedelta | None:
    try:
        return records.duration(operation_id, _RUNS)
    except (CorruptRecordError, NewerRecordError):
        return None
