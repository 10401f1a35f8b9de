"""`tfguard recover`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tfguard.cli.command import WithEngineWords
from tfguard.cli.github import tell_github
from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, stdout_paint, yes_option
from tfguard.cli.wiring import run_folder, stack_context
from tfguard.engine.arguments import OF_THE_STACK, state_flag, tokens
from tfguard.errors import ExitCode, UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.deletions import LookedAfter, look_after_deletions
from tfguard.flows.recover import RecoverOptions, recover
from tfguard.flows.stray_findings import decidable
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import CloudObject
from tfguard.model.operation import Operation
from tfguard.model.plan import ProviderConfig
from tfguard.ports import Console
from tfguard.reconcile.advice import next_actions
from tfguard.report.findings import finding_lines
from tfguard.report.github import operation_annotations, operation_summary
from tfguard.report.operation import deletion_line, status_text
from tfguard.schemas.operation import operation_document, operation_status
from tfguard.schemas.recovery import recovery_document


@click.command("recover", cls=WithEngineWords)
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
    evidence closes; so it does with a deletion of `orphans destroy` that was killed. -var, -var-file and -state of the
    apply can be given where the engine itself has to be asked. Exit code 11 when something stays open.
    """
    _refuse_others(arguments)
    with own_command() as gate:
        context = stack_context(invocation, gate, state_flag(arguments), variables=arguments, will_list=True)
        found = recover(context, RecoverOptions(yes, arguments, confirm_absent, not_ours, reason))
        context.records.warn_of_ledger(context.console)
        folder = run_folder(invocation, context.stack)
        deletions = look_after_deletions(context, arguments, lambda found: _as_a_scan(context, found), folder)
        marked = _tainted_besides(context, found)
    for item in found:
        actions = next_actions(item, invocation.command)
        summary = operation_summary(item, operation_status(item, alive=False), actions)
        tell_github(summary, operation_annotations(item), context.console)
    for deletion in deletions:
        _tell(context.console, deletion, invocation.command)
    where = context.records.location
    if form == "json":
        bodies = [operation_document(item, where, next_actions(item, invocation.command)) for item in found]
        print_document(recovery_document(bodies, [(one.entry, one.gone, one.what) for one in deletions]))
    else:
        for item in found:
            actions = next_actions(item, invocation.command)
            click.echo(status_text(item, operation_status(item, alive=False), actions, stdout_paint()), nl=False)
        if not found:
            click.echo(f"no operation is open at {where}" if deletions else f"nothing is open at {where}")
        for finding in marked:
            click.echo("\n".join(finding_lines(finding, stdout_paint())))
    still_open = any(item.open for item in found) or any(one.in_the_way for one in deletions)
    return ExitCode.OPEN if still_open else 0


def _tainted_besides(context: StackContext, told: Sequence[Operation]) -> Sequence[Finding]:
    """What is tainted and stands in none of the operations that are `told`: nothing is open for it."""
    findings, _ = decidable(context, None)
    marked = [one for one in findings if one.verdict is Verdict.TAINTED and one.disposition is None]
    return [one for one in marked if one.operation_id not in {operation.id for operation in told}]


def _as_a_scan(context: StackContext, found: CloudObject) -> ProviderConfig | None:
    from tfguard.cli.scan_places import scanned_provider  # it knows the clouds, which this alone needs

    return scanned_provider(context.around.config)(found)


def _tell(console: Console, deletion: LookedAfter, command: str) -> None:
    """Say what became of a deletion that had no end, and how it goes on."""
    line = f"{deletion_line(deletion.entry)}: {deletion.what}"
    if deletion.gone:
        console.say(line)
    else:
        console.warn(f"{line}; `{command} orphans destroy {deletion.entry.finding_id}` goes on")


def _refuse_others(arguments: Sequence[str]) -> None:
    """Of the engine's options only those that tell which stack is meant have a use here; a slip must not go unseen."""
    for token in tokens(arguments):
        if token.name not in OF_THE_STACK:
            raise UsageError(f"recover does not take {token.words[0]}", "see `tfguard recover -help`")
