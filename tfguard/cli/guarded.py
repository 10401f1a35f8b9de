"""What `apply` and `destroy` share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

import click

from tfguard.cli.console import UserStreams, stderr_paint
from tfguard.cli.github import tell_github
from tfguard.cli.interruptible import engine_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.passthrough import become_engine, call_engine, engine_binary, knows_global_options
from tfguard.cli.wiring import run_folder, stack_context
from tfguard.engine.arguments import (
    Flags,
    change_request,
    expand_environment,
    refused_line,
    unknown_flags,
    without_values,
)
from tfguard.engine.help_text import learn_flags
from tfguard.engine.plan import can_be_plan
from tfguard.errors import NotInitialisedError, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.guard import GuardedRun, GuardOptions, guard
from tfguard.model.config import OnGap
from tfguard.model.request import ChangeRequest
from tfguard.reconcile.advice import next_actions
from tfguard.report.github import operation_annotations, operation_summary
from tfguard.report.operation import summary_lines
from tfguard.schemas.operation import operation_status

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
    request = _request(invocation, command, arguments, expanded)
    with engine_command() as gate:
        try:
            context = stack_context(invocation, gate, request.state_path, variables=request.variables, will_list=True)
        except NotInitialisedError:
            if request.plan_file is None and (code := _why_not_initialised(invocation, request)):
                return code
            raise
        if not request.locking:
            context.console.warn("-lock=false: another run can change the state at the same time")
        options = _options(own, context)
        recorded = without_values((command, *expanded))
        run = guard(context, request, recorded, options, run_folder(invocation, context.stack))
        report(context, run, invocation)
    return run.exit_code


def _request(invocation: Invocation, command: str, arguments: Sequence[str], expanded: Sequence[str]) -> ChangeRequest:
    """The command line taken apart. Where the engine would not run it, the engine says so: then this does not return.

    `expanded` are the arguments with those of TF_CLI_ARGS. Raises `NoEngineError`.
    """
    learned = learn_flags(engine_binary(invocation)) if unknown_flags(expanded) else Flags()
    try:
        request = change_request(command, expanded, learned)
    except UsageError:
        request = None
    if request is None or not knows_global_options(invocation):
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # should the engine ask after all, nobody answers
        become_engine(invocation, (command, *refused_line(command, expanded, learned)), expanded=True)
    cannot_start = request.json and not request.plan_file and not request.auto_approve
    no_plan = request.plan_file is not None and not can_be_plan(invocation.directory / request.plan_file)
    if request.help or cannot_start or no_plan:
        become_engine(invocation, (command, *arguments))  # it changes nothing
    return request


def _why_not_initialised(invocation: Invocation, request: ChangeRequest) -> int:
    """Let the engine say in its own words that `init` was not run; 0 where it finds that it was."""
    form = ("-json",) if request.json else ()
    return call_engine(invocation, ("plan", *form, *request.planning), expanded=True)


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
    """Say on stderr, and to GitHub Actions, what a run left behind; nothing when all is well."""
    if run.operation is None:
        return
    streams, actions = UserStreams(), next_actions(run.operation, invocation.command)
    for line in summary_lines(run.operation, actions, stderr_paint()):
        streams.err(f"tfguard: {line}\n")  # printable already, and painted, which the console would take away
    if run.operation.open or run.exit_code != 0:
        status = operation_status(run.operation, alive=False)
        summary = operation_summary(run.operation, status, actions)
        tell_github(summary, operation_annotations(run.operation), context.console)
