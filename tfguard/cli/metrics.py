"""`tfguard metrics`."""

from __future__ import annotations

from pathlib import Path

import click

from tfguard.cli.console import SystemClock
from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, state_option
from tfguard.cli.wiring import stack_context
from tfguard.flows.history import findings as findings_on_record
from tfguard.report.metrics import prometheus_text, scan_samples, stack_samples
from tfguard.schemas.metrics import metrics_document
from tfguard.schemas.scan import load_kept


@click.command("metrics")
@click.option("--state-file", metavar="FILE", help="Tell of the scan whose findings `scan --state-file` kept there.")
@state_option()
@format_option()
@click.pass_obj
def command(invocation: Invocation, state_file: str | None, state_path: str | None, form: str) -> None:
    """Print counters in Prometheus's text form: of the last scan with --state-file, else of this stack's record.

    For node_exporter's textfile collector: write to a file beside the one that it reads, then rename it.
    """
    with own_command() as gate:
        now = SystemClock(gate).now()
        if state_file is not None:
            samples = scan_samples(load_kept(Path(state_file)), now)
        else:
            records = stack_context(invocation, gate, state_path).records
            findings, coverage = findings_on_record(records)
            began = [operation.intent.started_at for operation in records.open_operations()]
            samples = stack_samples(findings, len(coverage.gaps), began, now)
    if form == "json":
        print_document(metrics_document(samples))
    else:
        click.echo(prometheus_text(samples), nl=False)
