"""`tfguard import`: the engine's form, or a finding with `--orphan`."""

from __future__ import annotations

import click

from tfguard.cli.command import EngineCommand
from tfguard.cli.guarded import report
from tfguard.cli.interruptible import engine_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import yes_option
from tfguard.cli.repairs import run_repair
from tfguard.cli.wiring import run_folder, stack_context
from tfguard.engine.arguments import state_flag, state_words, without_values
from tfguard.errors import UsageError
from tfguard.flows.adopt import AdoptOptions, adopt


@click.command("import", cls=EngineCommand)
@click.option(
    "--orphan", "orphans", multiple=True, metavar="FINDING", help="Adopt a finding; can be given several times."
)
@click.option("--address", metavar="ADDRESS", help="Where a finding that fits several addresses is to go.")
@click.option("--reason", default="", metavar="TEXT", help="Why it is adopted; kept in the ledger.")
@yes_option()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(
    invocation: Invocation,
    orphans: tuple[str, ...],
    address: str | None,
    reason: str,
    yes: bool,
    arguments: tuple[str, ...],
) -> int:
    """Adopt a finding into the state, or run the engine's import, recorded.

    With --orphan tfguard writes the import block, plans, refuses a plan that would delete, replace or touch anything
    else, applies it as a recorded operation, and takes the block away. -var, -var-file and -state of
    the apply can be given.
    """
    if not orphans:
        return run_repair(invocation, "import", arguments)
    if address and len(orphans) > 1:
        raise UsageError("--address goes with one --orphan", "adopt them one after the other")
    with engine_command() as gate:
        context = stack_context(invocation, gate, state_flag(arguments), variables=arguments, will_list=True)
        recorded = without_values(("import", *(f"--orphan={orphan}" for orphan in orphans), *arguments))
        options = AdoptOptions(address, arguments, state_words(arguments), yes, reason)
        run = adopt(context, orphans, options, recorded, run_folder(invocation, context.stack))
        report(context, run, invocation)
    return run.exit_code
