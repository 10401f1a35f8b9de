"""`tfguard plan`."""

from __future__ import annotations

import click

from tfguard.cli.invocation import Invocation
from tfguard.cli.passthrough import ENGINE_ARGUMENTS, become_engine
from tfguard.cli.wiring import stack_context
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import NoEngineError, TfguardError
from tfguard.flows.context import StackContext


@click.command("plan", context_settings=ENGINE_ARGUMENTS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(invocation: Invocation, arguments: tuple[str, ...]) -> None:
    """Run the engine's plan. Warns on stderr when an earlier operation on this stack is not settled."""
    _warn_about_open_operations(invocation)
    become_engine(invocation, ("plan", *arguments))


def _warn_about_open_operations(invocation: Invocation) -> None:
    """A plan changes nothing, so nothing here stops it: what cannot be read is said."""
    with SignalGate() as gate:
        try:
            context = stack_context(invocation, gate)
            context.engine.discard_import_blocks()
            _warn(context, invocation)
        except NoEngineError:
            raise
        except TfguardError as error:
            click.echo(f"tfguard: {error.what}", err=True)


def _warn(context: StackContext, invocation: Invocation) -> None:
    for operation_id in context.records.head().open_operations:
        context.console.warn(f"operation {operation_id} is not settled: `{invocation.command} status`")
