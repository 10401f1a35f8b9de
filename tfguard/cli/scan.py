"""`tfguard scan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from tfguard.catalog.catalog import Catalog
from tfguard.catalog.loader import load_catalog
from tfguard.cli.console import StderrConsole, SystemClock
from tfguard.cli.engine_choice import installed_engine, read_config
from tfguard.cli.github import tell_github
from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.kept_files import earlier_scan, keep, states_meant
from tfguard.cli.options import format_option, stdout_paint
from tfguard.cli.progress import ProgressLine
from tfguard.cli.scan_formats import SCAN_FORMATS
from tfguard.cli.scan_google import google_notes
from tfguard.cli.scan_places import exported_lister, lists_left_out, scan_shards
from tfguard.cli.states import state_sources
from tfguard.engine.host import LocalHost
from tfguard.errors import UsageError
from tfguard.flows.scan import ScanPorts, ScanRequest, exit_code_of, scan
from tfguard.inventory.clouds import CombinedAuditLog, inventory_of_clouds
from tfguard.inventory.combined import CombinedInventory
from tfguard.inventory.exported import ExportedLister
from tfguard.inventory.shards import THREADS, lister_for
from tfguard.model.config import Config
from tfguard.model.finding import Finding
from tfguard.model.scan import ScanResult
from tfguard.model.since import Changes
from tfguard.ports import StateSource
from tfguard.reconcile.since import changes_since, earlier_gap
from tfguard.report.github import finding_annotations, findings_summary
from tfguard.report.scan import gap_lines, in_order, scan_coverage


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to be scanned: tfguard.yaml, and what the command line names of it or instead of it."""

    invocation: Invocation
    config: Config
    config_path: Path | None
    catalog: Catalog
    stacks: tuple[str, ...]
    workspaces: tuple[str, ...]
    regions: tuple[str, ...]
    accounts: tuple[str, ...]
    types: tuple[str, ...]

    def exported(self, exports: Sequence[str]) -> ExportedLister:
        """What lists instead of list calls. Raises as `exported_lister` does."""
        engine = partial(installed_engine, self.invocation, self.config.engine)
        return exported_lister(self.config, self.catalog, self.types, exports, engine, self.regions, self.accounts)

    def states(self) -> tuple[StateSource, ...]:
        """Where the states lie."""
        base = self._configured.parent if self._configured else None
        found = state_sources(
            self._patterns, self.invocation, self.config, self.config_path, self.workspaces, base=base
        )
        return tuple(found)

    def request(self, exported: ExportedLister | None, *, everything: bool) -> ScanRequest:
        """What to list, and what to leave out of the findings unless `everything` is wanted."""
        shards = (
            exported.shards()
            if exported
            else scan_shards(self.config, self.catalog, self.regions, self.types, self.accounts)
        )
        options = (self.regions, self.types, self.accounts)
        base = self._configured.absolute().parent if self._configured else self.invocation.directory
        return ScanRequest(
            shards,
            self.config.scan.ignore,
            self.config.consistency_grace,
            everything,
            states_meant(self._patterns, base, self.workspaces),
            lists_left_out(self.config, self.catalog, shards, options, exported=exported is not None),
            google_notes(shards),
        )

    @property
    def _patterns(self) -> tuple[str, ...]:
        return self.stacks or self.config.scan.stacks or (".",)

    @property
    def _configured(self) -> Path | None:
        """The tfguard.yaml that names the stacks, and to whose folder their names are relative."""
        return self.config_path if self.config.scan.stacks and not self.stacks else None


@click.command("scan")
@click.argument("stacks", nargs=-1, metavar="[STACK]...")
@click.option("--workspace", "workspaces", multiple=True, metavar="NAME", help="Of stacks' workspaces only this one.")
@click.option(
    "--region", "regions", multiple=True, help="A region of AWS to look into; default: scan.aws.regions, or yours."
)
@click.option(
    "--account", "accounts", multiple=True, metavar="ID", help="Of the configured accounts or projects only this one."
)
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
    metavar="FILE|query:DIR",
    help="What exists, instead of list calls: an exported listing (JSON lines, CSV, AWS Config snapshot), the output "
    "of `terraform query -json`, or what that lists in DIR.",
)
@click.option("--no-audit-log", is_flag=True, help="Ask no audit log (CloudTrail, Cloud Logging) about what was found.")
@click.option(
    "--executor",
    default=THREADS,
    metavar="threads|processes|dask://HOST:PORT",
    show_default=True,
    help="What makes the list calls.",
)
@click.option("--workers", type=click.IntRange(1, 256), help="How many list calls at once, of threads or processes.")
@format_option(*(name for name in SCAN_FORMATS if name not in ("text", "json")))
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
    if exports and (workers is not None or executor != THREADS):
        raise UsageError("--executor and --workers are about list calls, which --inventory replaces", "take them out")
    earlier = earlier_scan(state_file, since)
    config, config_path = read_config(invocation)
    catalog = load_catalog()
    asked = _Asked(invocation, config, config_path, catalog, stacks, workspaces, regions, accounts, types)
    with own_command() as gate, ProgressLine() as draw:
        exported = asked.exported(exports) if exports else None
        request = asked.request(exported, everything=everything)
        inventory = inventory_of_clouds(catalog)
        clock = SystemClock(gate)
        ports = ScanPorts(
            states=asked.states(),
            lister=exported or lister_for(executor, lambda: gate.interrupted, workers, inventory),
            inventory=CombinedInventory([]) if exported else inventory,
            catalog=catalog,
            clock=clock,
            host=LocalHost(),
            audit=None if no_audit_log or exported else CombinedAuditLog(catalog, clock.sleep, clock.now),
        )
        result = scan(request, ports, lambda now: draw(now.phase, now.done, now.total))
    if exported:
        result = exported.weighed(result)
    console = StderrConsole(gate)
    shown = in_order(result.findings, frozenset(entry.type for entry in catalog if entry.hourly))
    tell_github(findings_summary(shown, result.coverage, invocation.command), finding_annotations(shown), console)
    _print(result, shown, changes_since(earlier, result, catalog.canonical) if since else None, form, console)
    if state_file:
        kept = keep(Path(state_file), result, catalog.canonical)
        if left_out := earlier_gap(kept.coverage):
            console.say(f"{state_file} is not complete: {left_out}")
    return exit_code_of(result)


def _print(
    result: ScanResult, shown: Sequence[Finding], changes: Changes | None, form: str, console: StderrConsole
) -> None:
    chosen = SCAN_FORMATS[form]
    click.echo(chosen.write(result, shown, changes, stdout_paint()), nl=False)
    if not chosen.tells_coverage:
        for line in (*gap_lines(result.coverage), scan_coverage(result)):
            console.say(line)
