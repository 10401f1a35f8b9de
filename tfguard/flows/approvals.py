"""One applied digest, one approval: a plan file that was applied before is named before it is applied again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

from tfguard.errors import CorruptRecordError, NewerRecordError, TfguardError
from tfguard.flows.context import StackContext
from tfguard.model.operation import AppliedPlan, Intent


@contextmanager
def plan_file_claimed(context: StackContext, intent: Intent, given: bool) -> Iterator[tuple[str, ...]]:
    """While the operation begins, its plan file is claimed for it; what is to be noted in its outcome.

    `given` tells a plan file that the user named; one of tfguard's own is used once and needs no claim. A file that was
    applied before is said aloud and stops nothing: whether it still fits the state is for the engine to say. A claim
    whose operation does not begin is given back. Raises `RecordError` when it cannot be written.
    """
    if not given or intent.approval is None or intent.plan_digest is None:
        yield ()
        return
    approval = intent.approval
    claim = AppliedPlan(intent.operation_id, approval.at, approval.by, approval.how)
    before = _applied_before(context, intent.plan_digest, claim)
    if before is not None:
        context.console.warn(before)
    try:
        yield (before,) if before is not None else ()
    except TfguardError:
        # Where nothing can be written any more the claim stays, and what is said of it later says too much.
        with contextlib.suppress(TfguardError):
            context.records.give_plan_back(intent.plan_digest, claim)
        raise


def _applied_before(context: StackContext, digest: str, claim: AppliedPlan) -> str | None:
    """What is to be said of an earlier use of the plan file; None when there is none."""
    try:
        first = context.records.claim_plan(digest, claim)
    except (CorruptRecordError, NewerRecordError) as error:
        return f"this plan file was applied before; by which operation cannot be read: {error.what}"
    if first is None:
        return None
    return (
        f"this plan file was applied before, by operation {first.operation_id} at "
        f"{first.at:%Y-%m-%dT%H:%M:%SZ} by {first.by} ({first.how})"
    )
