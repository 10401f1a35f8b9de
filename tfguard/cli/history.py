"""`tfguard history`."""

from __future__ import annotations

import click

from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, state_option
from tfguard.cli.wiring import stack_context
from tfguard.flows.history import operations
from tfguard.reconcile.advice import next_actions
from tfguard.report.operation import history_line
from tfguard.schemas.operation import operation_document, operation_status


@click.command("history")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many to show.")
@state_option()
@format_option()
@click.pass_obj
def command(invocation: Invocation, limit: int, state_path: str | None, form: str) -> None:
    """Show the stack's operations, newest first."""
    with own_command() as gate:
        context = stack_context(invocation, gate, state_path)
        found = operations(context.records, limit, context.console)
        live = context.records.live_operation()
    if form == "json":
        where = context.records.location
        bodies = []
        for item in found:
            alive = item.id == live
            actions = () if alive else next_actions(item, invocation.command)
            bodies.append(operation_document(item, where, actions, alive=alive))
        print_document({"schema": "tfguard.history/v1", "operations": bodies})
        return
    for item in found:
        click.echo(history_line(item, operation_status(item, alive=item.id == live)))
    if not found:
        click.echo(f"no operation is recorded at {context.records.location}")
