"""The next run starts at the gap: what was left open is settled first, or stops it (rule 6)."""

from __future__ import annotations

from collections.abc import Sequence

from tfguard.errors import OpenOperationError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.leftovers import Leftover
from tfguard.flows.settle import Settling, settle
from tfguard.model.config import OnGap
from tfguard.reconcile.advice import what_lives

_DECIDE = "run `tfguard orphans list`, and import, retain or destroy each"


def settle_open_operations(
    context: StackContext,
    on_gap: OnGap,
    reason: str | None,
    arguments: tuple[str, ...],
    left: Sequence[Leftover] = (),
) -> tuple[str, ...]:
    """Settle what earlier runs left open; the ids of open operations that this run goes on beside.

    `reason` is why they are ignored, `arguments` are the engine's `-var` and `-var-file`, `left` is what closed
    operations left behind, where that stands in the way as well. Raises `OpenOperationError`
    when something stays open and the user did not say to ignore it (--on-gap), and `RecordError` when the ledger cannot
    be read: what this run leaves could not be settled either.
    """
    opened = context.records.head().open_operations
    context.records.dispositions()
    if not opened and not left:
        return ()
    if on_gap is OnGap.IGNORE and not reason:
        what = f"operation {opened[-1]} is open" if opened else f"{left[0].line}"
        raise UsageError(f"{what}, and ignoring it needs a reason", "add --reason TEXT")
    if on_gap is OnGap.IGNORE:
        if opened:
            context.console.warn(f"operation {opened[-1]} stays open and is ignored: {reason}")
        for one in left:
            context.console.warn(f"{one.line}; it is ignored: {reason}")
        return opened
    if on_gap is OnGap.RECONCILE:
        how = Settling(arguments=arguments)
        remaining = [op for op in context.records.open_operations() if settle(context, op, how).open]
        opened = tuple(op.id for op in remaining)
        if not opened and not left:
            return ()
    lines = [line for opened_id in opened for line in what_lives(context.records.operation(opened_id))]
    lines += [one.line for one in left]
    what = f"operation {opened[-1]} is not settled" if opened else "what earlier operations left is not settled"
    evidence = "run `tfguard status` for the evidence, and the command it names" if opened else _DECIDE
    raise OpenOperationError(
        what + "".join(f"\n  {line}" for line in lines),
        f"{evidence}; or go on beside it with --on-gap=ignore --reason TEXT",
    )
