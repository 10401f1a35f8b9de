"""What `apply` and `destroy` share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

import click

from tfguard.cli.invocation import Invocation
from tfguard.cli.passthrough import become_engine
from tfguard.cli.wiring import run_folder, stack_context
from tfguard.engine.arguments import change_request, expand_environment, without_values
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import InterruptedRunError, TfguardError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.guard import GuardedRun, GuardOptions, guard
from tfguard.model.config import OnGap
from tfguard.reconcile.advice import next_actions
from tfguard.report.operation import summary_lines
from tfguard.report.paint import Paint

P = ParamSpec("P")
R = TypeVar("R")


def guard_options(function: Callable[P, R]) -> Callable[P, R]:
    """tfguard's own options of a guarded command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = (
    click.option(
        "--on-gap",
        type=click.Choice([choice.value for choice in OnGap]),
        help="What to do about an operation that is not settled: look it up and stop if it stays open (reconcile, the "
        "default), stop at once (block), or go on beside it (ignore, needs --reason).",
    ),
    click.option("--reason", metavar="TEXT", help="Why an open operation is ignored; kept in the record."),
    click.option(
        "--baseline", type=click.Choice(["auto", "off"]), default="auto", help="List the planned types first."
    ),
    click.option("--fail-on-gap", is_flag=True, help="Exit 14 when the engine says 0 and something is left open."),
    click.option(
        "--no-verify", is_flag=True, help="Do not look anything up after the run; what is not in state stays unknown."
    ),
    click.argument("arguments", nargs=-1, type=click.UNPROCESSED),
)


def run_guarded(invocation: Invocation, command: str, arguments: tuple[str, ...], **own: object) -> int:
    """Run `apply` or `destroy` under guard; the exit code to end with."""
    expanded = expand_environment(command, arguments, os.environ)
    request = change_request(command, expanded)
    cannot_start = request.json and not request.plan_file and not request.auto_approve
    if request.help or cannot_start:
        become_engine(invocation, (command, *arguments))  # the engine's own words; it changes nothing
    with SignalGate() as gate:
        try:
            context = stack_context(invocation, gate, request.state_path, will_list=True)
            if not request.locking:
                context.console.warn("-lock=false: another run can change the state at the same time")
            options = _options(own, context)
            recorded = without_values((command, *expanded))
            run = guard(context, request, recorded, options, run_folder(invocation, context.stack))
        except TfguardError as error:
            if gate.interrupted and not isinstance(error, InterruptedRunError):
                raise InterruptedRunError("interrupted before anything was changed", "run the command again") from error
            raise
    report(context, run, invocation)
    return run.exit_code


def _options(own: Mapping[str, object], context: StackContext) -> GuardOptions:
    chosen, reason = own["on_gap"], own["reason"]
    on_gap = OnGap(chosen) if isinstance(chosen, str) else context.around.config.on_gap
    reason = reason if isinstance(reason, str) else None
    if isinstance(chosen, str) and on_gap is OnGap.IGNORE and not reason:
        raise UsageError("--on-gap=ignore needs a reason", "add --reason TEXT; it is kept in the record")
    return GuardOptions(
        on_gap=on_gap,
        reason=reason,
        baseline=own["baseline"] != "off",
        fail_on_gap=bool(own["fail_on_gap"]),
        verify=not own["no_verify"],
    )


def report(context: StackContext, run: GuardedRun, invocation: Invocation) -> None:
    """Say on stderr what a run left behind; nothing when all is well."""
    if run.operation is None:
        return
    paint = getattr(context.console, "paint", Paint())
    for line in summary_lines(run.operation, next_actions(run.operation, invocation.command), paint):
        context.console.say(line)
