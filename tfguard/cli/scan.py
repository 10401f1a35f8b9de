"""`tfguard scan`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tfguard.catalog.loader import load_catalog
from tfguard.cli.console import StderrConsole, SystemClock
from tfguard.cli.engine_choice import read_config
from tfguard.cli.github import tell_github
from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, stdout_paint
from tfguard.cli.progress import ProgressLine
from tfguard.cli.scan_places import aws_shards, exported_lister
from tfguard.cli.state_places import state_sources
from tfguard.engine.host import LocalHost
from tfguard.errors import InputError, UsageError
from tfguard.flows.scan import ScanPorts, ScanRequest, exit_code_of, scan
from tfguard.inventory.aws import AwsInventory
from tfguard.inventory.aws_trail import CloudTrail
from tfguard.inventory.combined import CombinedInventory
from tfguard.inventory.shards import lister_for
from tfguard.model.finding import Finding
from tfguard.model.scan import ScanResult
from tfguard.model.since import Changes, KeptScan
from tfguard.reconcile.since import changes_since
from tfguard.report.findings import json_lines
from tfguard.report.github import finding_annotations, findings_summary
from tfguard.report.scan import PLAIN_SCAN_FORMATS, gap_lines, in_order, scan_coverage
from tfguard.schemas.findings import finding_body
from tfguard.schemas.scan import kept_document, load_kept, scan_document
from tfguard.stores.atomic import write

_LAST = "last"


@click.command("scan")
@click.argument("stacks", nargs=-1, metavar="[STACK]...")
@click.option("--workspace", "workspaces", multiple=True, metavar="NAME", help="Of stacks' workspaces only this one.")
@click.option("--region", "regions", multiple=True, help="A region to look into; default: scan.aws.regions, or yours.")
@click.option("--account", "accounts", multiple=True, metavar="ID", help="Of scan.aws.accounts only this one.")
@click.option("--type", "types", multiple=True, metavar="PATTERN", help="List these types only, such as 'aws_iam_*'.")
@click.option("--all", "everything", is_flag=True, help="Show what rules leave out, too, with the rule.")
@click.option("--state-file", metavar="FILE", help="Keep the findings in this file, for --since and `metrics`.")
@click.option(
    "--since", metavar="last|FILE", help="Show what is new, gone and still there; `last`: since --state-file."
)
@click.option(
    "--inventory",
    "exports",
    multiple=True,
    metavar="FILE",
    help="What exists, from an exported listing (JSON lines, CSV, AWS Config snapshot) instead of list calls.",
)
@click.option("--no-audit-log", is_flag=True, help="Ask CloudTrail nothing about what was found.")
@click.option(
    "--executor",
    default="threads",
    metavar="threads|processes|dask://HOST:PORT",
    show_default=True,
    help="What makes the list calls.",
)
@click.option("--workers", type=click.IntRange(1, 256), help="How many list calls at once, of threads or processes.")
@format_option("jsonl", *(name for name in PLAIN_SCAN_FORMATS if name != "text"))
@click.pass_obj
def command(
    invocation: Invocation,
    stacks: tuple[str, ...],
    workspaces: tuple[str, ...],
    regions: tuple[str, ...],
    accounts: tuple[str, ...],
    types: tuple[str, ...],
    everything: bool,
    state_file: str | None,
    since: str | None,
    exports: tuple[str, ...],
    no_audit_log: bool,
    executor: str,
    workers: int | None,
    form: str,
) -> int:
    """List what exists at the provider, subtract what every named state records, and explain the rest.

    STACK is a state file, a folder, a pattern with ** or the URL of a place with states (s3://BUCKET/PREFIX/, gs://,
    azblob://, postgresql://); default: `scan.stacks` of tfguard.yaml, or the stack here. Nothing is changed.

    Exit code 2 when something exists that no state knows, 3 when nothing was found but the scan was incomplete.
    """
    earlier = _earlier(state_file, since)
    config, config_path = read_config(invocation)
    catalog = load_catalog()
    exported = exported_lister(config, catalog, types, exports) if exports else None
    shards = exported.shards() if exported else aws_shards(config, catalog, regions, types, accounts)
    patterns = stacks or config.scan.stacks or (".",)
    with own_command() as gate, ProgressLine() as draw:
        clock = SystemClock(gate)
        inventory = CombinedInventory([AwsInventory(catalog)])
        ports = ScanPorts(
            states=tuple(state_sources(patterns, invocation, config, config_path, workspaces)),
            lister=exported or lister_for(executor, lambda: gate.interrupted, workers, inventory),
            inventory=CombinedInventory([]) if exported else inventory,
            catalog=catalog,
            clock=clock,
            host=LocalHost(),
            audit=None if no_audit_log or exported else CloudTrail(catalog, clock.sleep, clock.now),
        )
        request = ScanRequest(shards, config.scan.ignore, config.consistency_grace, everything)
        result = scan(request, ports, lambda now: draw(now.phase, now.done, now.total))
    changes = changes_since(earlier, result) if since or state_file else None
    console = StderrConsole(gate)
    costly = frozenset(entry.type for entry in catalog if entry.hourly)
    shown = in_order(result.findings, costly)
    tell_github(findings_summary(shown, result.coverage, invocation.command), finding_annotations(shown), console)
    _print(result, shown, changes if since else None, form, console)
    if state_file and changes:
        _keep(Path(state_file), kept_document(result, changes))
    return exit_code_of(result)


def _print(
    result: ScanResult, shown: Sequence[Finding], changes: Changes | None, form: str, console: StderrConsole
) -> None:
    if form == "json":
        print_document(scan_document(result, shown, changes))
        return
    if form == "jsonl":
        click.echo(json_lines([finding_body(finding) for finding in shown]), nl=False)
    else:
        click.echo(PLAIN_SCAN_FORMATS[form](result, shown, changes, stdout_paint()), nl=False)
    if form in ("csv", "jsonl"):
        console.say("\n".join([*gap_lines(result.coverage), scan_coverage(result)]))


def _earlier(state_file: str | None, since: str | None) -> KeptScan | None:
    """The scan to compare with, read before anything is listed. Raises `UsageError` and `InputError`."""
    if since is None and state_file is None:
        return None
    if since in (None, _LAST):
        if state_file is None:
            raise UsageError(
                "--since last needs a file with the last findings", "add --state-file FILE, or name a file"
            )
        path = Path(state_file)
        if not path.exists():
            return None
        return load_kept(path)
    return load_kept(Path(since or ""))


def _keep(path: Path, data: bytes) -> None:
    try:
        write(path, data)
    except OSError as error:
        raise InputError(
            f"the findings could not be kept in {path}: {error.strerror}", "check the folder and its permissions"
        ) from error
