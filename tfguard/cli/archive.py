"""`tfguard archive`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import duration, format_option, print_document, state_option
from tfguard.cli.wiring import stack_context
from tfguard.errors import ExitCode, UsageError
from tfguard.flows.archive_check import Checked, Flaw, check_archive
from tfguard.flows.archiving import Archived, archive_closed
from tfguard.flows.context import StackContext
from tfguard.model.ids import month_of
from tfguard.model.printable import printable
from tfguard.schemas.document import with_schema
from tfguard.schemas.history import ARCHIVE_CHECK, ARCHIVED

_HASH_LENGTH = 64


@click.command("archive")
@click.option(
    "--older-than",
    metavar="DURATION",
    default="30d",
    show_default=True,
    help="Pack what began longer ago than this, such as 12h or 90d.",
)
@click.option("--verify", is_flag=True, help="Change nothing; check every entry of the archive.")
@click.option(
    "--expect",
    multiple=True,
    metavar="HASH",
    help="With --verify: this hash, which was kept elsewhere, has to be in the chain. Can be given several times.",
)
@state_option()
@format_option()
@click.pass_obj
def command(
    invocation: Invocation, older_than: str, verify: bool, expect: tuple[str, ...], state_path: str | None, form: str
) -> int:
    """Pack closed operations into one compressed object a month, each entry chained to the one before by its hash.

    What is open or current stays. The originals are removed when the object was read back. `history`, `status ID` and
    `orphans` find what is in the archive. With --verify exit code 1 when anything in it was changed.
    """
    patience = duration(older_than, "--older-than")
    wanted = [_hash(text) for text in expect]
    if wanted and not verify:
        raise UsageError("--expect goes with --verify", "add --verify")
    with own_command() as gate:
        context = stack_context(invocation, gate, state_path)
        if verify:
            checked = check_archive(context.records.store, wanted)
            _print_checked(context, checked, form)
            return ExitCode.ERROR if checked.flaws else ExitCode.DONE
        done = archive_closed(context.records, context.clock, patience)
        _print_archived(context, done, form)
        return ExitCode.ERROR if done.flaws else ExitCode.DONE


def _hash(text: str) -> str:
    wanted = text.strip().lower()
    if len(wanted) != _HASH_LENGTH or wanted.strip("0123456789abcdef"):
        raise UsageError(f"--expect {text} is no hash", "give all 64 digits, as `tfguard archive --verify` prints them")
    return wanted


def _print_archived(context: StackContext, done: Archived, form: str) -> None:
    for left in done.left:
        context.console.warn(f"operation {left.operation_id} stays where it is: {left.why}")
    for flaw in done.flaws:
        context.console.warn(f"{flaw.where} is not added to: {flaw.what}")
    where = context.records.location
    if form == "json":
        body = {
            "archived": done.packed,
            "left": [{"operation_id": left.operation_id, "reason": left.why} for left in done.left],
            "flaws": _flaws(done.flaws),
            "head": done.head or None,
            "record": where,
        }
        print_document(with_schema(ARCHIVED, body))
        return
    months = Counter(month_of(operation_id) for operation_id in done.packed)
    for month, count in sorted(months.items()):
        click.echo(f"{month}  {count} {'operation' if count == 1 else 'operations'} archived")
    if not done.packed:
        click.echo(f"nothing was archived at {where}")
    if done.head:
        click.echo(f"head  {done.head}")


def _print_checked(context: StackContext, checked: Checked, form: str) -> None:
    where = context.records.location
    if form == "json":
        body = {
            "whole": not checked.flaws,
            "entries": sum(month.entries for month in checked.months),
            "months": [
                {"month": month.month, "entries": month.entries, "anchored": month.anchored, "last": month.last}
                for month in checked.months
            ],
            "flaws": _flaws(checked.flaws),
            "head": checked.head or None,
            "record": where,
        }
        print_document(with_schema(ARCHIVE_CHECK, body))
        return
    for month in checked.months:
        more = month.entries - month.anchored
        beyond = f", {more} of them written by a run that died; the next `tfguard archive` goes on" if more > 0 else ""
        click.echo(f"{month.month}  {month.entries} entries, the last {month.last or 'unreadable'}{beyond}")
    for flaw in checked.flaws:
        click.echo(printable(f"changed: {flaw.where}: {flaw.what}"))
    if not checked.months and not checked.flaws:
        click.echo(f"nothing is archived at {where}")
    elif not checked.flaws:
        click.echo(f"whole; head {checked.head}")


def _flaws(flaws: Sequence[Flaw]) -> list[dict[str, str]]:
    return [{"where": flaw.where, "what": flaw.what} for flaw in flaws]
