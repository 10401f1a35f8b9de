"""`tfguard state`: the subcommands that change something are recorded, the others are the engine's own."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tfguard.cli.command import EngineCommand
from tfguard.cli.invocation import Invocation
from tfguard.cli.passthrough import become_engine
from tfguard.cli.repairs import run_repair
from tfguard.model.request import REPAIRS


class _StateCommand(EngineCommand):
    """A subcommand that is not recorded is handed through before anything else is looked at."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take only what is recorded, and a call without a subcommand, which shows the help."""
        if args and not args[0].startswith("-") and self.full_name(args) not in REPAIRS:
            become_engine(ctx.obj, ("state", *args))
        return super().parse_args(ctx, args)

    def full_name(self, words: Sequence[str]) -> str:
        """The engine names the subcommand too: TF_CLI_ARGS_state_rm."""
        return f"state {words[0]}" if words else "state"


@click.command("state", cls=_StateCommand)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(invocation: Invocation, /, arguments: tuple[str, ...]) -> int:
    """Run the engine's state commands; `rm`, `mv`, `push` and `replace-provider` are recorded.

    An object that `state rm` takes out and that still exists becomes a finding with its decision: who took it out, and
    when.
    """
    if not arguments or f"state {arguments[0]}" not in REPAIRS:
        become_engine(invocation, ("state", *arguments))
    return run_repair(invocation, f"state {arguments[0]}", arguments[1:])
