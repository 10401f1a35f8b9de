"""The engine's other changing commands, recorded: `refresh taint untaint force-unlock` and `state rm|mv|push|...`."""

from __future__ import annotations

import os
import shlex

import click

from tfguard.cli.command import EngineCommand
from tfguard.cli.guarded import report
from tfguard.cli.interruptible import engine_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.passthrough import become_engine, engine_binary
from tfguard.cli.wiring import run_folder, stack_context
from tfguard.engine.arguments import expand_environment, repair_request, without_values
from tfguard.engine.queries import captured
from tfguard.errors import NotInitialisedError
from tfguard.flows.repair import repair
from tfguard.flows.unlock import unlock
from tfguard.model.request import REPAIRS, Effect, RepairRequest
from tfguard.model.secrets import is_withheld
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


# With fewer words the engine only says how it is called.
_OPERANDS = {Effect.READS: 0, Effect.PUTS_IN: 2, Effect.MOVES: 2, Effect.REBINDS: 2}


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
    if request.changes_nothing or len(request.operands) < _OPERANDS.get(request.effect, 1):
        become_engine(invocation, (*name.split(), *arguments))  # the engine's own words; it changes nothing
    try:
        return _recorded(invocation, request, without_values((*name.split(), *expanded)))
    except NotInitialisedError:
        said = captured(engine_binary(invocation), invocation.directory, "state", "list", "-no-color")
        if "initialization required" in said.stderr:
            become_engine(invocation, (*name.split(), *arguments))  # it refuses, in its own words
        raise


def _recorded(invocation: Invocation, request: RepairRequest, argv: tuple[str, ...]) -> int:
    with engine_command() as gate:
        context = stack_context(invocation, gate, request.state_path, variables=request.variables)
        if not request.locking:
            context.console.warn("-lock=false: another run can change the state at the same time")
        run_it = unlock if request.effect is Effect.UNLOCKS else repair
        run = run_it(context, request, argv, run_folder(invocation, context.stack))
        for step in removed_alive(run.operation.steps if run.operation else ()):
            seen = step.observed[0]
            context.console.say(f"{step.address} left the state and still exists: {seen.import_id} ({seen.finding_id})")
            if is_withheld(step.address):
                continue
            back = f"{invocation.command} import {shlex.quote(step.address)} {shlex.quote(seen.import_id)}"
            context.console.say(f"  to take it back: {back}")
        report(context, run, invocation)
    return run.exit_code
