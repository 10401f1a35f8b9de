"""The engine's other changing commands, recorded: `refresh taint untaint force-unlock` and `state rm|mv|push|...`."""

from __future__ import annotations

import os

import click

from tfguard.cli.command import EngineCommand
from tfguard.cli.guarded import report
from tfguard.cli.interruptible import engine_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.passthrough import become_engine
from tfguard.cli.wiring import run_folder, stack_context
from tfguard.engine.arguments import expand_environment, repair_request, without_values
from tfguard.flows.repair import repair
from tfguard.flows.unlock import unlock
from tfguard.model.request import REPAIRS, Effect
from tfguard.reconcile.repairs import removed_alive

_HELP = "\n\n".join(
    [
        "Run the engine's {name}, recorded: what the state held before, and what left it.",
        "All the engine's options work as they do without tfguard; its exit code and its output are handed on. An "
        "operation that is not settled is named, and stops nothing.{more}",
    ]
)
_MORE = {
    Effect.TAKES_OUT: " An object that still exists becomes a finding with its decision: who took it out, and when.",
    Effect.UNLOCKS: " Shows who holds the lock, since when, and whether they live; refuses while they do (exit code "
    "12); asks for the lock's ID to be typed, unless -force is given.",
}


def repair_command(name: str) -> click.Command:
    """The command for one of `REPAIRS`."""

    text = _HELP.format(name=name, more=_MORE.get(REPAIRS[name], ""))

    @click.command(name, help=text, cls=EngineCommand)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @click.pass_obj
    def command(invocation: Invocation, /, arguments: tuple[str, ...]) -> int:
        return run_repair(invocation, name, arguments)

    return command


def run_repair(invocation: Invocation, name: str, arguments: tuple[str, ...]) -> int:
    """Run one of `REPAIRS` as the user typed it; the exit code to end with."""
    expanded = expand_environment(name, arguments, os.environ)
    request = repair_request(name, expanded)
    needs_operands = request.effect is not Effect.READS
    if request.changes_nothing or (needs_operands and not request.operands):
        become_engine(invocation, (*name.split(), *arguments))  # the engine's own words; it changes nothing
    with engine_command() as gate:
        context = stack_context(invocation, gate, request.state_path, variables=request.variables)
        if not request.locking:
            context.console.warn("-lock=false: another run can change the state at the same time")
        run = (unlock if request.effect is Effect.UNLOCKS else repair)(
            context,
            request,
            without_values((*name.split(), *expanded)),
            run_folder(invocation, context.stack),
        )
        for step in removed_alive(run.operation.steps if run.operation else ()):
            seen = step.observed[0]
            context.console.say(f"{step.address} left the state and still exists: {seen.import_id} ({seen.finding_id})")
        report(context, run, invocation)
    return run.exit_code
