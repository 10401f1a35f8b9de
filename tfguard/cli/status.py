"""`tfguard status`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import click

from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, state_option, stdout_paint
from tfguard.cli.wiring import stack_context
from tfguard.errors import ConfigError, ExitCode, InputError, OperationAliveError
from tfguard.flows.context import StackContext
from tfguard.flows.deletions import under_way
from tfguard.flows.history import current_operation, find_operation
from tfguard.flows.leftovers import lapsed_findings, lapsed_line
from tfguard.model.disposition import Disposition
from tfguard.model.finding import Finding
from tfguard.model.operation import Operation
from tfguard.model.printable import printable
from tfguard.model.state import EMPTY_STATE
from tfguard.reconcile.advice import next_actions
from tfguard.report.operation import deletion_line, status_text
from tfguard.schemas.operation import operation_status, status_document


@click.command("status")
@click.argument("operation_id", required=False)
@state_option()
@format_option()
@click.pass_obj
def command(invocation: Invocation, operation_id: str | None, state_path: str | None, form: str) -> int:
    """Show the stack's current operation: its steps, what became of each, the evidence, and what to do next.

    The current operation is the newest one that is not settled, else the newest one. Exit code 11 when it is open,
    when `orphans destroy` has begun a deletion that has no end, and when a decision about what a settled operation left
    does not hold any more: a retention that was released, or whose date has passed.
    """
    with own_command() as gate:
        context = stack_context(invocation, gate, state_path)
        records = context.records
        operation = find_operation(records, operation_id) if operation_id else current_operation(records)
        records.warn_of_ledger(context.console)
        told = _Status.of(context, operation, invocation.command, state_path)
        _print(told, form)
    unfinished = bool(told.deletions or told.lapsed) and operation_id is None
    return ExitCode.OPEN if unfinished or (operation is not None and operation.open) else 0


@dataclass(frozen=True, slots=True)
class _Status:
    """What is told of a stack: `operation` is the one that was asked for, `deletions` those that have no end, `lapsed`
    what settled operations left and no decision holds for, `alive` tells whether the operation runs now, and `holder`
    which run holds the stack's lease, be it this or another one."""

    operation: Operation | None
    deletions: tuple[Disposition, ...]
    lapsed: tuple[Finding, ...]
    alive: bool
    holder: OperationAliveError | None
    actions: tuple[str, ...]
    location: str

    @classmethod
    def of(cls, context: StackContext, operation: Operation | None, command: str, state: str | None) -> _Status:
        """Read the rest of the record. The run that holds the lease may only plan, and have no operation yet."""
        records = context.records
        alive = operation is not None and records.live_operation() == operation.id
        holder = None
        try:
            records.refuse_if_alive()
        except OperationAliveError as error:
            holder = error
        deletions = under_way(records)
        actions = next_actions(operation, command) if operation and not alive else ()
        if deletions and holder is None:
            actions = tuple(dict.fromkeys((*actions, f"{command} recover")))
        begun = {entry.finding_id for entry in deletions}
        lapsed = tuple(finding for finding in _lapsed(context) if finding.id not in begun)
        if lapsed and holder is None:
            where = f" -state={shlex.quote(state)}" if state else ""
            actions = tuple(dict.fromkeys((*actions, f"{command} orphans list{where}")))
        return cls(operation, deletions, lapsed, alive, holder, actions, records.location)


def _lapsed(context: StackContext) -> Sequence[Finding]:
    """What settled operations left and no decision holds for, as the record has it where the state cannot be read."""
    try:
        return [finding for finding, _ in lapsed_findings(context, context.state_before)]
    except (ConfigError, InputError, OperationAliveError):
        return [finding for finding, _ in lapsed_findings(context, lambda: EMPTY_STATE)]


def _print(told: _Status, form: str) -> None:
    if form == "json":
        document = status_document(told.operation, told.location, told.actions, told.deletions, alive=told.alive)
        print_document(document)
        return
    lines = [f"  {deletion_line(entry)}" for entry in told.deletions]
    lines += [f"  {lapsed_line(finding)}" for finding in told.lapsed]
    if told.holder is not None:
        lines += [f"  {told.holder.what}", f"  {told.holder.advice}"]
    if told.operation is None:
        yet = " yet" if told.holder else ""
        lines.insert(0, f"no operation is recorded at {told.location}{yet}")
        lines += [f"  next: {action}" for action in told.actions]
    else:
        status = operation_status(told.operation, alive=told.alive)
        click.echo(status_text(told.operation, status, told.actions, stdout_paint()), nl=False)
    for line in lines:
        click.echo(printable(line))
