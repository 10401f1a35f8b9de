"""`tfguard import`: the engine's form, or findings with `--orphan`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from tfguard.cli.command import EngineCommand
from tfguard.cli.guarded import report
from tfguard.cli.interruptible import engine_command, own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import findings_option, yes_option
from tfguard.cli.repairs import run_repair
from tfguard.cli.wiring import run_folder, stack_context
from tfguard.engine.arguments import state_flag, state_words, tokens, var_files_in, without_values
from tfguard.errors import UsageError
from tfguard.flows.adopt import AdoptOptions, adopt, blocks_for
from tfguard.flows.drafted_file import DEFAULT
from tfguard.flows.stray_findings import decidable, warn_of_less_searched
from tfguard.model.since import KeptScan
from tfguard.schemas.scan import load_kept

FINDING = re.compile(r"o-[0-9a-f]{8}")
"""The id of a finding."""

_BLOCKS = "--blocks-only"
_STDOUT = "-"


class ImportCommand(EngineCommand):
    """`import`, whose `--blocks-only` may have a value, and whose `--orphan` may have several."""

    def split(self, ctx: click.Context, words: Sequence[str]) -> tuple[list[str], list[str]]:
        """tfguard's own options, and all other words."""
        joined: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word == _BLOCKS:
                named = bool(rest) and not rest[0].startswith("-") and not FINDING.fullmatch(rest[0])
                word = f"{_BLOCKS}={rest.pop(0) if named else _STDOUT}"
            joined.append(word)
        own, others = super().split(ctx, joined)
        if any(word.startswith("--orphan") for word in own):
            more = [
                token.words[0] for token in tokens(others) if token.name is None and FINDING.fullmatch(token.words[0])
            ]
            own += [f"--orphan={finding}" for finding in more]
            others = [word for word in others if word not in more]
        return own, others


@click.command("import", cls=ImportCommand)
@click.option(
    "--orphan", "orphans", multiple=True, metavar="FINDING", help="Adopt a finding; several can be named after it."
)
@findings_option()
@click.option(
    "--address",
    "--to",
    "address",
    metavar="ADDRESS",
    help="Where a finding is to go that fits several addresses, or none.",
)
@click.option(
    "--allow-update", is_flag=True, help="With --yes: also bring an object in line with the configuration, in place."
)
@click.option(
    "--out",
    default=DEFAULT,
    show_default=True,
    metavar="FILE",
    help="Where configuration goes that is drafted for a finding whose address has none; it is added to.",
)
@click.option("--keep", is_flag=True, help="Leave a draft that cannot be planned beside --out, as FILE.draft.")
@click.option(
    _BLOCKS,
    "blocks_only",
    metavar="[FILE]",
    help="Change nothing: write import blocks, and drafted configuration, to stdout or a new file.",
)
@click.option("--reason", default="", metavar="TEXT", help="Why it is adopted; kept in the ledger.")
@yes_option()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(
    invocation: Invocation,
    orphans: tuple[str, ...],
    findings_file: Path | None,
    address: str | None,
    allow_update: bool,
    out: str,
    keep: bool,
    blocks_only: str | None,
    reason: str,
    yes: bool,
    arguments: tuple[str, ...],
) -> int:
    """Adopt findings into the state, or run the engine's import, recorded.

    With --orphan tfguard writes import blocks, plans, leaves out what the plan would delete or replace, refuses a plan
    that would touch anything else, applies it as a recorded operation, and takes the blocks away. An object that no
    configuration knows gets one. -var, -var-file and -state of the apply can be given.
    """
    if strange := next((one for one in orphans if one.startswith("-")), None):
        raise UsageError(f"--orphan {strange} names no finding", "give it the id of one: see `tfguard orphans list`")
    if not orphans:
        return run_repair(invocation, "import", arguments)
    from tfguard.cli.scan_places import scanned_provider  # it knows the clouds, which only an adoption needs

    if address and len(set(orphans)) > 1:
        raise UsageError("--address goes with one --orphan", "adopt them one after the other")
    options = AdoptOptions(
        address=address,
        arguments=arguments,
        applying=state_words(arguments),
        yes=yes,
        reason=reason,
        allow_update=allow_update,
        out=out,
        keep=keep,
        var_files=var_files_in(arguments),
    )
    kept = load_kept(findings_file) if findings_file else None
    if blocks_only is not None:
        return _write_blocks(invocation, orphans, options, kept, blocks_only)
    with engine_command() as gate:
        context = stack_context(invocation, gate, state_flag(arguments), variables=arguments, will_list=True, kept=kept)
        recorded = without_values(("import", *(f"--orphan={orphan}" for orphan in orphans), *arguments))
        known = decidable(context, kept)[0]
        if kept is None:
            warn_of_less_searched(context, orphans, known)
        elsewhere = scanned_provider(context.around.config)
        run = adopt(context, orphans, options, recorded, run_folder(invocation, context.stack), known, elsewhere)
        report(context, run, invocation)
    return run.exit_code


def _write_blocks(
    invocation: Invocation, orphans: Sequence[str], options: AdoptOptions, kept: KeptScan | None, name: str
) -> int:
    from tfguard.cli.scan_places import scanned_provider

    path = None if name == _STDOUT else Path(name)
    if path is not None and path.exists():
        raise UsageError(f"{path} is there already", f"name a new file with {_BLOCKS} FILE")
    with own_command() as gate:
        words = options.arguments
        context = stack_context(invocation, gate, state_flag(words), variables=words, kept=kept)
        known = decidable(context, kept)[0]
        text, code = blocks_for(context, orphans, options, known, scanned_provider(context.around.config))
    if path is None:
        click.echo(text, nl=False)
    elif text:
        try:
            with path.open("x") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}", "name another file") from error
    return code
