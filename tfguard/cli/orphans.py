"""`tfguard orphans list|show|import|retain|release|destroy`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click

from tfguard.cli.github import tell_github
from tfguard.cli.interruptible import engine_command, own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import (
    duration,
    findings_option,
    format_option,
    print_document,
    state_option,
    stdout_paint,
    yes_option,
)
from tfguard.cli.wiring import run_folder, stack_context
from tfguard.errors import ExitCode, UsageError
from tfguard.flows.dispose import DestroyOptions, destroy_orphans
from tfguard.flows.retain import Keeping, check_keeping, release, retain, retained
from tfguard.flows.stray_findings import decidable
from tfguard.model.disposition import Disposition
from tfguard.model.finding import Finding
from tfguard.model.inventory import Coverage
from tfguard.reconcile.findings import summary_of
from tfguard.report.findings import PLAIN_FORMATS, findings_text, json_lines
from tfguard.report.github import finding_annotations, findings_summary
from tfguard.report.retained import retained_text
from tfguard.schemas.findings import finding_body, findings_document
from tfguard.schemas.retained import retained_document
from tfguard.schemas.scan import load_kept


@click.group("orphans")
def command() -> None:
    """The objects that exist and that no state knows, and what is done about them.

    They come from this stack's operations and, with --findings FILE, from a scan. `tfguard import --orphan` adopts one,
    `retain` keeps it for a time, `destroy` deletes it.
    """


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Show settled ones too.")
@click.option("--retained", "only_retained", is_flag=True, help="Show what is kept, the soonest date first.")
@findings_option()
@state_option()
@format_option("jsonl", *PLAIN_FORMATS)
@click.pass_obj
def list_command(
    invocation: Invocation,
    everything: bool,
    only_retained: bool,
    findings_file: Path | None,
    state_path: str | None,
    form: str,
) -> int:
    """List the findings. Exit code 2 when one needs an action, 3 when there is none but the look was incomplete."""
    with own_command() as gate:
        kept = load_kept(findings_file) if findings_file else None
        context = stack_context(invocation, gate, state_path)
        if only_retained:
            return _list_retained(retained(context.records.dispositions()), context.clock.now(), form)
        findings, coverage = decidable(context.records, kept)
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
@findings_option()
@state_option()
@format_option()
@click.pass_obj
def show_command(
    invocation: Invocation, finding_id: str, findings_file: Path | None, state_path: str | None, form: str
) -> None:
    """Show one finding with its evidence."""
    with own_command() as gate:
        kept = load_kept(findings_file) if findings_file else None
        findings, coverage = decidable(stack_context(invocation, gate, state_path).records, kept)
    chosen = [finding for finding in findings if finding.id == finding_id]
    if not chosen:
        raise UsageError(
            f"there is no finding {finding_id} on this stack", f"see `{invocation.command} orphans list --all`"
        )
    _print(chosen, coverage, form)


@command.command("import", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True, metavar="FINDING... [OPTIONS]", type=click.UNPROCESSED)
@click.pass_context
def import_command(ctx: click.Context, words: tuple[str, ...]) -> int:
    """Adopt findings into the state: `tfguard import --orphan` under another name, with its options.

    `tfguard import -help` tells them all.
    """
    from tfguard.cli.import_ import FINDING  # the engine's side of it is not needed else
    from tfguard.cli.import_ import command as adopt_command

    if not any(FINDING.fullmatch(word) for word in words):
        raise UsageError("no finding is named", "see `tfguard orphans list`, and name ids such as o-3fa9c1d2")
    named = [f"--orphan={word}" if FINDING.fullmatch(word) else word for word in words]
    with adopt_command.make_context("import", named, obj=ctx.obj) as inner:
        code: int = adopt_command.invoke(inner)
    return code


@command.command("retain")
@click.argument("finding_ids", nargs=-1, required=True, metavar="FINDING...")
@click.option("--for", "time", metavar="DURATION", help="For how long, such as 14d; `retention.default` without it.")
@click.option("--owner", default="", metavar="TEAM", help="Who keeps it; `owner` of tfguard.yaml without it.")
@click.option("--cost-owner", default="", metavar="TEXT", help="Who pays; `cost_owner` of tfguard.yaml without it.")
@click.option("--reason", required=True, metavar="TEXT", help="Why it is kept; written into the ledger.")
@findings_option()
@state_option()
@click.pass_obj
def retain_command(
    invocation: Invocation,
    finding_ids: tuple[str, ...],
    time: str | None,
    owner: str,
    cost_owner: str,
    reason: str,
    findings_file: Path | None,
    state_path: str | None,
) -> None:
    """Keep stray objects on purpose, until a date.

    Until then they are no findings; afterwards they are again, named overdue. Retaining one again moves its date.
    """
    keeping = Keeping(_reason(reason), duration(time, "--for") if time else None, owner.strip(), cost_owner.strip())
    with own_command() as gate:
        kept = load_kept(findings_file) if findings_file else None
        context = stack_context(invocation, gate, state_path, will_list=True)
        check_keeping(keeping, context.around.config)
        entries = retain(context, finding_ids, decidable(context.records, kept)[0], keeping)
        _list_retained(entries, context.clock.now(), "text")


@command.command("release")
@click.argument("finding_ids", nargs=-1, required=True, metavar="FINDING...")
@click.option("--reason", required=True, metavar="TEXT", help="Why it is not kept any longer; written into the ledger.")
@state_option()
@click.pass_obj
def release_command(invocation: Invocation, finding_ids: tuple[str, ...], reason: str, state_path: str | None) -> None:
    """End a retention before its date: the object is a finding again."""
    with own_command() as gate:
        context = stack_context(invocation, gate, state_path)
        for entry in release(context, finding_ids, _reason(reason)):
            click.echo(f"{entry.finding_id} is released, and a finding again")


@command.command("destroy")
@click.argument("finding_ids", nargs=-1, required=True, metavar="FINDING...")
@click.option("--reason", default="stray", metavar="TEXT", help="Why it is deleted; written into the ledger.")
@click.option("--stateful", is_flag=True, help="Delete what holds data, too.")
@click.option("--max", "most", default=10, show_default=True, type=click.IntRange(1), help="How many at once, at most.")
@click.option("--confirm", "confirmed", multiple=True, metavar="NAME", help="With --yes: the name of what may go.")
@click.option(
    "-var",
    "--var",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable of the provider's block.",
)
@click.option("-var-file", "--var-file", "variable_files", multiple=True, metavar="FILE", help="Variables in a file.")
@yes_option()
@findings_option()
@state_option()
@click.pass_obj
def destroy_command(
    invocation: Invocation,
    finding_ids: tuple[str, ...],
    reason: str,
    stateful: bool,
    most: int,
    confirmed: tuple[str, ...],
    variables: tuple[str, ...],
    variable_files: tuple[str, ...],
    yes: bool,
    findings_file: Path | None,
    state_path: str | None,
) -> int:
    """Delete stray objects, one after the other, and verify that they are gone.

    Each is looked at again and shown with its age, its evidence and what hangs on it; its name has to be typed.
    Without a terminal that is --yes and --confirm NAME, once for each. The engine deletes it, outside the stack's own
    configuration and state, with the settings of the stack's provider. Nothing is forced. Exit code 1 when one is left.
    """
    from tfguard.cli.scan_places import scanned_provider  # it knows the clouds, which only a deletion needs

    arguments = (*(f"-var={text}" for text in variables), *(f"-var-file={name}" for name in variable_files))
    options = DestroyOptions(_reason(reason), stateful, most, yes, confirmed, arguments)
    with engine_command() as gate:
        kept = load_kept(findings_file) if findings_file else None
        context = stack_context(invocation, gate, state_path, variables=arguments, will_list=True)
        folder = run_folder(invocation, context.stack)
        known = decidable(context.records, kept)[0]
        done = destroy_orphans(context, finding_ids, known, options, folder, scanned_provider(context.around.config))
        for one in done:
            click.echo(f"{one.finding_id}: {one.object.type} {one.object.import_id}: {one.what}")
            if one.advice:
                context.console.say(f"{one.finding_id}: {one.advice}")
    return ExitCode.DONE if all(one.absent for one in done) else ExitCode.ERROR


def _reason(text: str) -> str:
    if not text.strip():
        raise UsageError("--reason is empty", "say in a few words why, for whoever reads the ledger later")
    return text.strip()


def _list_retained(entries: Sequence[Disposition], now: datetime, form: str) -> int:
    if form == "json":
        print_document(retained_document(entries, now))
    elif form == "text":
        click.echo(retained_text(entries, now, stdout_paint()), nl=False)
    else:
        raise UsageError(f"--retained cannot be printed as {form}", "use --format text or json")
    return 0


def _print(findings: Sequence[Finding], coverage: Coverage, form: str) -> None:
    if form == "json":
        print_document(findings_document(findings, coverage, summary_of(findings)))
    elif form == "jsonl":
        click.echo(json_lines([finding_body(finding) for finding in findings]), nl=False)
    elif form in PLAIN_FORMATS:
        click.echo(PLAIN_FORMATS[form](findings), nl=False)
    else:
        click.echo(findings_text(findings, coverage, stdout_paint()), nl=False)
