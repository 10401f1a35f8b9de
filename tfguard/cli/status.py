"""`tfguard status`."""

from __future__ import annotations

import click

from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, state_option, stdout_paint
from tfguard.cli.wiring import stack_context
from tfguard.errors import ExitCode, OperationAliveError
from tfguard.flows.context import StackContext
from tfguard.flows.deletions import under_way
from tfguard.flows.history import current_operation, find_operation
from tfguard.model.operation import Operation
from tfguard.reconcile.advice import next_actions
from tfguard.report.operation import deletion_line, status_text
from tfguard.schemas.operation import SCHEMA, operation_document, operation_status


@click.command("status")
@click.argument("operation_id", required=False)
@state_option()
@format_option()
@click.pass_obj
def command(invocation: Invocation, operation_id: str | None, state_path: str | None, form: str) -> int:
    """Show the stack's current operation: its steps, what became of each, the evidence, and what to do next.

    The current operation is the newest one that is not settled, else the newest one. Exit code 11 when it is open.
    """
    with own_command() as gate:
        context = stack_context(invocation, gate, state_path)
        records = context.records
        operation = find_operation(records, operation_id) if operation_id else current_operation(records)
        if operation is None:
            _print_nothing(context, form, invocation.command)
            return 0
        _print(context, operation, invocation, form)
        return ExitCode.OPEN if operation.open else 0


def _print_nothing(context: StackContext, form: str, command: str) -> None:
    if form == "json":
        empty: dict[str, object] = {
            "operation_id": None,
            "open": False,
            "status": None,
            "steps": [],
            "next_actions": [],
        }
        print_document({"schema": SCHEMA, **empty, "record": context.records.location})
    else:
        click.echo(f"no operation is recorded at {context.records.location}")
        _say_what_goes_on(context, command)


def _print(context: StackContext, operation: Operation, invocation: Invocation, form: str) -> None:
    alive = context.records.live_operation() == operation.id
    actions = () if alive else next_actions(operation, invocation.command)
    if form == "json":
        print_document(operation_document(operation, context.records.location, actions, alive=alive))
    else:
        status = operation_status(operation, alive=alive)
        click.echo(status_text(operation, status, actions, stdout_paint()), nl=False)
        _say_what_goes_on(context, invocation.command)


def _say_what_goes_on(context: StackContext, command: str) -> None:
    """The run that holds the stack's lease: the operation shown, or one that still plans and has no record yet; and
    the deletions that have no end."""
    deletions = under_way(context.records)
    for entry in deletions:
        click.echo(f"  {deletion_line(entry)}")
    try:
        context.records.refuse_if_alive()
    except OperationAliveError as error:
        click.echo(f"  {error.what}\n  {error.advice}")
    else:
        if deletions:
            click.echo(f"  next: {command} recover")
