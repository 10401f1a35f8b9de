"""`tfguard metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import click

from tfguard.cli.console import StderrConsole, SystemClock
from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, state_option
from tfguard.cli.wiring import stack_context
from tfguard.engine.configuration import configuration_files
from tfguard.engine.interrupts import SignalGate
from tfguard.errors import ExitCode, TfguardError, UsageError
from tfguard.flows.history import findings as findings_on_record
from tfguard.model.blueprint_view import BlueprintCounts
from tfguard.ports import Console
from tfguard.report.metrics import blueprint_samples, prometheus_text, scan_samples, stack_samples
from tfguard.schemas.metrics import metrics_document
from tfguard.schemas.scan import load_kept


@click.command("metrics")
@click.option("--state-file", metavar="FILE", help="Tell of the scan whose findings `scan --state-file` kept there.")
@click.option(
    "--blueprint",
    "blueprints",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Tell of the request of this blueprint; can be given several times.",
)
@state_option()
@format_option()
@click.pass_obj
def command(
    invocation: Invocation, state_file: str | None, blueprints: tuple[Path, ...], state_path: str | None, form: str
) -> int:
    """Print counters in Prometheus's text form: of the last scan with --state-file, of requests with --blueprint, else
    of this stack's record.

    For node_exporter's textfile collector: write to a file beside the one that it reads, then rename it. Exit code 11
    when a blueprint, or its record, cannot be read: the others are counted, and it is told by its file.
    """
    unreadable: Sequence[Path] = ()
    if blueprints and (state_file or state_path):
        raise UsageError("--blueprint is given with another thing to count", "run the command once for each")
    with own_command() as gate:
        now = SystemClock(gate).now()
        if blueprints:
            counts, unreadable = _counted(invocation, gate, tuple(dict.fromkeys(blueprints)), now)
            samples = blueprint_samples(counts, [str(file) for file in unreadable])
        elif state_file is not None:
            samples = scan_samples(load_kept(Path(state_file)), now)
        else:
            context = stack_context(invocation, gate, state_path)
            records = context.records
            if records.head().current is None and not records.operation_ids():
                _nothing_recorded(records.location, invocation, context.console)
            findings, coverage = findings_on_record(records)
            began = [operation.intent.started_at for operation in records.open_operations()]
            samples = stack_samples(findings, len(coverage.gaps), began, now)
    if form == "json":
        print_document(metrics_document(samples))
    else:
        click.echo(prometheus_text(samples), nl=False)
    return ExitCode.OPEN if unreadable else ExitCode.DONE


def _counted(
    invocation: Invocation, gate: SignalGate, files: Sequence[Path], now: datetime
) -> tuple[Sequence[BlueprintCounts], Sequence[Path]]:
    """What is counted of each blueprint, and those that cannot be read, which is said. Raises `TfguardError` where none
    can."""
    counts, unreadable = list[BlueprintCounts](), list[Path]()
    for file in files:
        try:
            counts.append(_counts(invocation, gate, file, now))
        except TfguardError as error:
            if len(files) == 1:
                raise
            unreadable.append(file)
            StderrConsole(gate).warn(f"{error.what}; {error.advice}")
    return counts, unreadable


def _counts(invocation: Invocation, gate: SignalGate, file: Path, now: datetime) -> BlueprintCounts:
    """What the record of a blueprint's request says; nothing is looked up, and nobody is asked."""
    # What else is counted needs none of these, nor a YAML parser.
    from tfguard.cli.blueprint_wiring import standing_context
    from tfguard.reconcile.blueprint_counts import blueprint_counts
    from tfguard.reconcile.blueprint_view import blueprint_view

    context = standing_context(invocation, gate, file)
    blueprint, requests = context.blueprint, context.requests
    request = requests.current()
    if request is None:
        StderrConsole(gate).warn(f"no request is recorded at {requests.location}: the numbers are of nothing")
    live = request is not None and requests.live()
    return blueprint_counts(blueprint_view(blueprint, request, {}, now, file=str(file), live=live))


def _nothing_recorded(location: str, invocation: Invocation, console: Console) -> None:
    """Say that there is nothing to count; raise `UsageError` where there is no stack either."""
    if not any(configuration_files(invocation.directory)):
        raise UsageError(
            f"there is no configuration in {invocation.directory}, and no operation is recorded at {location}",
            "name the stack's folder with -chdir, or the findings of a scan with --state-file",
        )
    console.warn(f"no operation is recorded at {location}: the numbers are of nothing")
