"""`tfguard history`."""

from __future__ import annotations

import shlex

import click

from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, state_option
from tfguard.cli.wiring import stack_context
from tfguard.errors import CorruptRecordError, ExitCode, NewerRecordError
from tfguard.flows.context import StackContext
from tfguard.flows.history import page
from tfguard.model.operation import Operation
from tfguard.model.transition import Transition
from tfguard.reconcile.advice import next_actions
from tfguard.reconcile.transitions import audit_trail
from tfguard.report.operation import history_line, transition_lines
from tfguard.schemas.history import history_document
from tfguard.schemas.operation import operation_document, operation_status

_PAGE = 20
_MOST = 1_000_000


@click.command("history")
@click.option(
    "--limit", type=click.IntRange(min=1, max=_MOST), default=_PAGE, show_default=True, help="How many to show."
)
@click.option("--before", metavar="OPERATION", help="Show those that are older than this one: the next page.")
@click.option("--all", "everything", is_flag=True, help="Show all of them, whatever the limit.")
@click.option(
    "--transitions", is_flag=True, help="Show every change of each, with who, when and why; `--all` in JSON has them."
)
@state_option()
@format_option()
@click.pass_obj
def command(
    invocation: Invocation,
    limit: int,
    before: str | None,
    everything: bool,
    transitions: bool,
    state_path: str | None,
    form: str,
) -> int:
    """Show the stack's operations, newest first, those in the archive too.

    What only a newer tfguard can read is named and left out: exit code 10, with all others shown.
    """
    with own_command() as gate:
        context = stack_context(invocation, gate, state_path)
        found = page(context.records, None if everything else limit, before, context.console)
        live = context.records.live_operation()
        with_trails = transitions or (everything and form == "json")
        newer: list[str] = []
        trails = {item.id: _trail(context, item, newer) for item in found.operations} if with_trails else {}
    code = ExitCode.NO_RECORD if found.newer or newer else ExitCode.DONE
    if form == "json":
        where = context.records.location
        bodies = []
        for item in found.operations:
            alive = item.id == live
            actions = next_actions(item, invocation.command) if item.open and not alive else ()
            bodies.append(operation_document(item, where, actions, alive=alive))
        print_document(history_document(bodies, trails, found.next))
        return code
    for item in found.operations:
        click.echo(history_line(item, operation_status(item, alive=item.id == live)))
        for line in transition_lines(trails.get(item.id, ())):
            click.echo(line)
    if found.next is not None:
        more = f" --limit {limit}" if limit != _PAGE else ""
        more += " --transitions" if transitions else ""
        more += f" -state={shlex.quote(state_path)}" if state_path else ""
        click.echo(f"older: {invocation.command} history --before {found.next}{more}")
    if not found.operations and before is None and not found.newer:
        click.echo(f"no operation is recorded at {context.records.location}")
    return code


def _trail(context: StackContext, operation: Operation, newer: list[str]) -> tuple[Transition, ...]:
    """An operation's audit trail; of one that cannot be read the beginning, and why not is said aloud.

    `newer` is told the operation whose trail only a newer tfguard can read.
    """
    try:
        return audit_trail(operation, context.records.transitions(operation.id))
    except (CorruptRecordError, NewerRecordError) as error:
        if isinstance(error, NewerRecordError):
            newer.append(operation.id)
        context.console.warn(error.what)
        return audit_trail(operation, ())
