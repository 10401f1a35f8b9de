"""`tfguard orphans list|show`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tfguard.cli.github import tell_github
from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, state_option, stdout_paint
from tfguard.cli.wiring import stack_context
from tfguard.errors import ExitCode, UsageError
from tfguard.flows.history import findings as findings_on_record
from tfguard.model.finding import Finding
from tfguard.model.inventory import Coverage
from tfguard.reconcile.findings import summary_of
from tfguard.report.findings import PLAIN_FORMATS, findings_text, json_lines
from tfguard.report.github import finding_annotations, findings_summary
from tfguard.schemas.findings import finding_body, findings_document


@click.group("orphans")
def command() -> None:
    """The objects that exist and that the state does not know, from this stack's operations."""


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Show settled ones too.")
@state_option()
@format_option("jsonl", *PLAIN_FORMATS)
@click.pass_obj
def list_command(invocation: Invocation, everything: bool, state_path: str | None, form: str) -> int:
    """List the findings. Exit code 2 when one needs an action, 3 when there is none but the look was incomplete."""
    with own_command() as gate:
        context = stack_context(invocation, gate, state_path)
        findings, coverage = findings_on_record(context.records)
    if any(finding.disposition is None for finding in findings) or not coverage.complete:
        summary = findings_summary(findings, coverage, invocation.command)
        tell_github(summary, finding_annotations(findings), context.console)
    shown = findings if everything else [finding for finding in findings if finding.disposition is None]
    _print(shown, coverage, form)
    if any(finding.disposition is None for finding in findings):
        return ExitCode.FOUND
    return 0 if coverage.complete else ExitCode.INCOMPLETE


@command.command("show")
@click.argument("finding_id")
@state_option()
@format_option()
@click.pass_obj
def show_command(invocation: Invocation, finding_id: str, state_path: str | None, form: str) -> None:
    """Show one finding with its evidence."""
    with own_command() as gate:
        findings, coverage = findings_on_record(stack_context(invocation, gate, state_path).records)
    chosen = [finding for finding in findings if finding.id == finding_id]
    if not chosen:
        raise UsageError(
            f"there is no finding {finding_id} on this stack", f"see `{invocation.command} orphans list --all`"
        )
    _print(chosen, coverage, form)


def _print(findings: Sequence[Finding], coverage: Coverage, form: str) -> None:
    if form == "json":
        print_document(findings_document(findings, coverage, summary_of(findings)))
    elif form == "jsonl":
        click.echo(json_lines([finding_body(finding) for finding in findings]), nl=False)
    elif form in PLAIN_FORMATS:
        click.echo(PLAIN_FORMATS[form](findings), nl=False)
    else:
        click.echo(findings_text(findings, coverage, stdout_paint()), nl=False)
