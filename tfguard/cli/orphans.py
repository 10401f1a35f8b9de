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
    variable_options,
    variable_words,
    yes_option,
)
from tfguard.cli.wiring import run_folder, stack_context
from tfguard.errors import ExitCode, UsageError
from tfguard.flows.dispose import DestroyOptions, Disposed, destroy_orphans
from tfguard.flows.retain import Keeping, made_again, release, retain, retained
from tfguard.flows.stray_findings import decidable, findings_with, warn_of_less_searched
from tfguard.flows.tagging import Tagged, tag_kept, untag_released
from tfguard.flows.untaint import Untainted, UntaintOptions, untaint
from tfguard.model.disposition import Disposition
from tfguard.model.finding import Finding, Verdict
from tfguard.model.inventory import Coverage
from tfguard.model.printable import printable
from tfguard.ports import Console
from tfguard.reconcile.findings import summary_of
from tfguard.report.findings import PLAIN_FORMATS, findings_text, json_lines
from tfguard.report.github import finding_annotations, findings_summary
from tfguard.report.retained import retained_count, retained_text
from tfguard.schemas.findings import finding_body, findings_document
from tfguard.schemas.retained import retained_document
from tfguard.schemas.scan import load_kept


@click.group("orphans", invoke_without_command=True)
@findings_option()
@state_option()
@variable_options()
@click.pass_context
def command(
    ctx: click.Context,
    findings_file: Path | None,
    state_path: str | None,
    variables: tuple[str, ...],
    variable_files: tuple[str, ...],
) -> int:
    """The objects that exist and that no state knows, and what is done about them.

    They come from this stack's operations and, with --findings FILE, from a scan. `tfguard import --orphan` adopts one,
    `retain` keeps it for a time, `destroy` deletes it.

    Without a COMMAND, on a terminal, a table opens to choose from, by arrow keys or numbers. What a choice would run
    is shown, and asked about, before anything happens. The options below are for that table and what it runs.
    """
    if ctx.invoked_subcommand is not None:
        if findings_file or state_path or variables or variable_files:
            raise UsageError("options stand behind the command, not before it", f"see `{ctx.command_path} -help`")
        return ExitCode.DONE
    from tfguard.cli.chooser_screen import on_a_terminal  # no other command needs the terminal's keys

    if not on_a_terminal():
        raise click.UsageError(ctx.get_help(), ctx)  # as click itself ends a call without a command
    from tfguard.cli.chooser import ChooserOptions, choose

    def run(words: Sequence[str]) -> None:
        with command.make_context(ctx.info_name, list(words), ctx.parent) as inner:
            command.invoke(inner)

    options = ChooserOptions(findings_file, state_path, variable_words(variables, variable_files))
    return choose(ctx.obj, options, run)


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
        context.records.warn_of_ledger(context.console)
        if only_retained:
            return _list_retained(retained(context.records.dispositions()), context.clock.now(), form)
        findings, coverage = decidable(context, kept)
    if any(finding.disposition is None for finding in findings) or not coverage.complete:
        summary = findings_summary(findings, coverage, invocation.command)
        tell_github(summary, finding_annotations(findings), context.console)
    shown = findings if everything else [finding for finding in findings if finding.disposition is None]
    _print(shown, coverage, form)
    if form == "text" and not everything:
        click.echo(retained_count(context.records.dispositions(), context.clock.now()), nl=False)
    # A tainted object alone is no reason to stop a pipeline: its apply has failed already, and the next one is what
    # deals with it. A job that looks for what no state knows would cry wolf.
    if any(finding.needs_action for finding in findings):
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
        context = stack_context(invocation, gate, state_path)
        findings, coverage = decidable(context, kept)
    _print(findings_with([finding_id], findings), coverage, form)


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
@click.option("--tag", is_flag=True, help="Tag the object itself, too: tfguard:retain-until, tfguard:retain-owner.")
@variable_options()
@yes_option()
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
    tag: bool,
    variables: tuple[str, ...],
    variable_files: tuple[str, ...],
    yes: bool,
    findings_file: Path | None,
    state_path: str | None,
) -> int:
    """Keep stray objects on purpose, until a date; or keep a tainted one for good.

    Until then they are no findings; afterwards they are again, named overdue. Retaining one again moves its date.
    A tainted object is untainted, after a question (--yes without a terminal) and a look whether it is still there and
    the one that the state means; it takes no date and no owner. Exit code 1 when one is not kept: it is gone, or a plan
    would replace it all the same; and when a tag is refused, which leaves the retention as it is.
    """
    from tfguard.cli.scan_places import scanned_provider  # it knows the clouds, which only a tag needs

    long = duration(time, "--for") if time else None
    arguments = variable_words(variables, variable_files)
    keeping = Keeping(
        reason=_reason(reason),
        time=long,
        owner=owner.strip(),
        cost_owner=cost_owner.strip(),
        tag=tag,
        arguments=arguments,
    )
    with own_command() as gate:
        kept = load_kept(findings_file) if findings_file else None
        context = stack_context(invocation, gate, state_path, variables=arguments, will_list=True)
        known = decidable(context, kept)[0]
        if any(finding.id in finding_ids and finding.verdict is Verdict.TAINTED for finding in known):
            if time or owner or cost_owner or tag:
                raise UsageError(
                    "a tainted object is kept for good: it stays in the state, and takes no --for and no owner",
                    "leave --for, --owner and --cost-owner out; keep stray objects with a command of their own",
                )
            _ask_to_untaint(findings_with(finding_ids, known), context.console, yes=yes)
            options = UntaintOptions(keeping.reason, arguments, state_path)
            done = untaint(
                context,
                finding_ids,
                known,
                options,
                run_folder(invocation, context.stack),
                lambda one: _tell_untainted(one, context.console),
            )
            return ExitCode.DONE if all(one.kept for one in done) else ExitCode.ERROR
        entries = retain(context, finding_ids, known, keeping)
        _list_retained(entries, context.clock.now(), "text")
        for line in made_again(context, findings_with(finding_ids, known)):
            context.console.warn(line)
        elsewhere = scanned_provider(context.around.config)
        return _tell_tagged(tag_kept(context, entries, known, arguments, elsewhere), context.console)


def _tell_tagged(done: Sequence[Tagged], console: Console) -> int:
    """Say which tags are not as they should be: the decisions themselves stand."""
    for one in done:
        if one.failed:
            console.warn(f"{one.finding_id}: {one.failed}; {one.advice}")
        else:
            console.say(f"{one.finding_id}: its tags are up to date")
    return ExitCode.ERROR if any(one.failed for one in done) else ExitCode.DONE


def _ask_to_untaint(findings: Sequence[Finding], console: Console, *, yes: bool) -> None:
    """Raise `UsageError` unless the user agrees: an untaint changes the state."""
    for finding in findings:
        console.say(f"{finding.id}: {finding.address} is looked at, and untainted: no apply replaces it then")
    if not yes and not console.confirm("Untaint now?"):
        raise UsageError("nothing was untainted: it was not approved", "without a terminal, approve it with --yes")


def _tell_untainted(one: Untainted, console: Console) -> None:
    if one.kept:
        click.echo(printable(f"{one.finding_id}: {one.what}"))
    else:
        console.warn(f"{one.finding_id} is not kept: {one.what}")
    if one.advice:
        console.say(f"{one.finding_id}: {one.advice}")


@command.command("release")
@click.argument("finding_ids", nargs=-1, required=True, metavar="FINDING...")
@click.option("--reason", required=True, metavar="TEXT", help="Why it is not kept any longer; written into the ledger.")
@variable_options()
@findings_option()
@state_option()
@click.pass_obj
def release_command(
    invocation: Invocation,
    finding_ids: tuple[str, ...],
    reason: str,
    variables: tuple[str, ...],
    variable_files: tuple[str, ...],
    findings_file: Path | None,
    state_path: str | None,
) -> int:
    """End a retention before its date: the object is a finding again.

    The tags of `retain --tag` are taken away. Exit code 1 when they cannot be: it is released all the same.
    """
    from tfguard.cli.scan_places import scanned_provider  # it knows the clouds, which only a tag needs

    arguments = variable_words(variables, variable_files)
    with own_command() as gate:
        if findings_file:
            load_kept(findings_file)  # a damaged one is refused, as elsewhere; what is retained the ledger tells
        context = stack_context(invocation, gate, state_path, variables=arguments)
        entries = release(context, finding_ids, _reason(reason))
        for entry in entries:
            click.echo(printable(f"{entry.finding_id} is released, and a finding again"))
        elsewhere = scanned_provider(context.around.config)
        return _tell_tagged(untag_released(context, entries, arguments, elsewhere), context.console)


@command.command("destroy")
@click.argument("finding_ids", nargs=-1, required=True, metavar="FINDING...")
@click.option("--reason", default="stray", metavar="TEXT", help="Why it is deleted; written into the ledger.")
@click.option("--stateful", is_flag=True, help="Delete what holds data, too.")
@click.option("--max", "most", default=10, show_default=True, type=click.IntRange(1), help="How many at once, at most.")
@click.option(
    "--wait",
    default="2m",
    show_default=True,
    metavar="DURATION",
    help="How long a deletion is tried that something blocks.",
)
@click.option("--final-snapshot", default="", metavar="NAME", help="Take this snapshot of a database before it goes.")
@click.option(
    "--confirm",
    "confirmed",
    multiple=True,
    metavar="NAME",
    help="With --yes: the name, import id or ARN of what may go.",
)
@variable_options()
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
    wait: str,
    final_snapshot: str,
    confirmed: tuple[str, ...],
    variables: tuple[str, ...],
    variable_files: tuple[str, ...],
    yes: bool,
    findings_file: Path | None,
    state_path: str | None,
) -> int:
    """Delete stray objects, one after the other, and verify that they are gone.

    Each is looked at again and shown with its age, its evidence and what hangs on it; its name has to be typed.
    Without a terminal that is --yes and --confirm NAME, once for each. The engine deletes it, or its service's own call
    where it is shown so, outside the stack's own configuration and state, with the settings of the stack's provider.
    Nothing is forced. Exit code 1 when one is left.
    """
    from tfguard.cli.scan_places import scanned_provider  # it knows the clouds, which only a deletion needs

    arguments = variable_words(variables, variable_files)
    bound = duration(wait, "--wait")
    options = DestroyOptions(
        reason=_reason(reason),
        stateful=stateful,
        most=most,
        yes=yes,
        confirmed=confirmed,
        arguments=arguments,
        wait=bound,
        final_snapshot=final_snapshot,
    )
    with engine_command() as gate:
        kept = load_kept(findings_file) if findings_file else None
        context = stack_context(invocation, gate, state_path, variables=arguments, will_list=True, kept=kept)
        folder = run_folder(invocation, context.stack)
        known = decidable(context, kept)[0]
        if kept is None:
            warn_of_less_searched(context, finding_ids, known)
        elsewhere = scanned_provider(context.around.config)
        done = destroy_orphans(
            context, finding_ids, known, options, folder, elsewhere, lambda one: _tell_disposed(one, context.console)
        )
    return ExitCode.DONE if all(one.absent for one in done) else ExitCode.ERROR


def _tell_disposed(one: Disposed, console: Console) -> None:
    name = f"{one.object.type} {one.object.import_id}"
    said = one.what if one.what.startswith(f"{name} ") else f"{name}: {one.what}"
    click.echo(printable(f"{one.finding_id}: {said}"))
    if one.advice:
        console.say(f"{one.finding_id}: {one.advice}")


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
