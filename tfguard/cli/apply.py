"""`tfguard apply`."""

from __future__ import annotations

import click

from tfguard.cli.command import EngineCommand
from tfguard.cli.guarded import guard_options, run_guarded
from tfguard.cli.invocation import Invocation


@click.command("apply", cls=EngineCommand)
@guard_options
@click.pass_obj
def command(invocation: Invocation, /, arguments: tuple[str, ...], **own: object) -> int:
    """Run the engine's apply under guard: recorded before, followed while it runs, looked up afterwards.

    All the engine's options work as they do without tfguard; its exit code and its output are handed on.
    """
    return run_guarded(invocation, "apply", arguments, **own)
