"""What left a state on purpose and still exists gets a line in the ledger: who took it out, when, and how."""

from __future__ import annotations

from collections.abc import Sequence

from tfguard.flows.context import StackContext
from tfguard.model.operation import Operation, Step
from tfguard.reconcile.findings import decisions_since
from tfguard.reconcile.repairs import removals


def note_removals(context: StackContext, operation: Operation, steps: Sequence[Step]) -> None:
    """Put live objects that the operation took out of the state into the ledger, once each."""
    if entries := removals(operation, steps, decisions_since(operation, context.records.dispositions())):
        context.records.decide(entries)
