"""`tfguard recover`."""

from __future__ import annotations

import click

from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, stdout_paint, yes_option
from tfguard.cli.passthrough import ENGINE_ARGUMENTS
from tfguard.cli.wiring import stack_context
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import ExitCode
from tfguard.flows.recover import RecoverOptions, recover
from tfguard.reconcile.advice import next_actions
from tfguard.report.operation import status_text
from tfguard.schemas.operation import operation_document, operation_status


@click.command("recover", context_settings=ENGINE_ARGUMENTS)
@yes_option()
@click.option(
    "--confirm-absent",
    multiple=True,
    metavar="ADDRESS",
    help="Close an unknown step that nobody can look up, on your word that nothing exists; needs --reason.",
)
@click.option(
    "--not-ours",
    multiple=True,
    metavar="FINDING",
    help="Keep an object that is not this stack's, on your word; it is no finding any more. Needs --reason.",
)
@click.option("--reason", metavar="TEXT", default="", help="How you know it; kept in the record with your name.")
@format_option()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(
    invocation: Invocation,
    yes: bool,
    confirm_absent: tuple[str, ...],
    not_ours: tuple[str, ...],
    reason: str,
    form: str,
    arguments: tuple[str, ...],
) -> int:
    """Settle what an earlier run left open. Deletes nothing.

    Pushes an errored.tfstate (after a question, or with --yes), looks every unknown step up, and closes what the
    evidence closes. -var and -var-file of the apply can be given where the engine itself has to be asked. Exit code
    11 when something stays open.
    """
    with SignalGate() as gate:
        context = stack_context(invocation, gate, will_list=True)
        found = recover(context, RecoverOptions(yes, arguments, confirm_absent, not_ours, reason))
    where = context.records.location
    if form == "json":
        bodies = [operation_document(item, where, next_actions(item, invocation.command)) for item in found]
        print_document({"schema": "tfguard.recovery/v1", "operations": bodies})
    else:
        for item in found:
            actions = next_actions(item, invocation.command)
            click.echo(status_text(item, operation_status(item, alive=False), actions, stdout_paint()), nl=False)
        if not found:
            click.echo(f"nothing is open at {where}")
    return ExitCode.OPEN if any(item.open for item in found) else 0
