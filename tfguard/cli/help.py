"""The engine's help with tfguard's additions after it. What is added is the click commands' own text."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tfguard.cli.console import marked
from tfguard.cli.invocation import Invocation
from tfguard.cli.passthrough import call_engine
from tfguard.engine.arguments import asks_for_help
from tfguard.errors import NoEngineError

# How the engine ends when it has shown its help: asked for it, and called without a command.
_SHOWN = (0, 127)


def show_command_help(ctx: click.Context, words: Sequence[str]) -> int:
    """The help of an engine's command, then what tfguard adds to it; the engine's exit code."""
    formatter = ctx.make_formatter()
    with formatter.section("tfguard adds"):
        ctx.command.format_help_text(ctx, formatter)
    _write_options(ctx, formatter, "Options of tfguard")
    return _show(ctx, words, formatter)


def show_top_help(ctx: click.Context) -> int:
    """The engine's list of its commands, then tfguard's; the engine's exit code, which is 127 for a bare call."""
    group, invocation = ctx.command, ctx.obj
    formatter = ctx.make_formatter()
    if isinstance(group, click.Group):
        group.format_commands(ctx, formatter)
    _write_options(ctx, formatter, "Options of tfguard, before the command")
    code = _show(ctx, (), formatter)
    return code if code or asks_for_help(invocation.engine_arguments) else NoEngineError.exit_code


def _write_options(ctx: click.Context, formatter: click.HelpFormatter, title: str) -> None:
    options = [item for item in ctx.command.params if isinstance(item, click.Option)]
    records = [item.get_help_record(ctx) for item in options]
    if written := [record for record in records if record is not None]:
        with formatter.section(title):
            formatter.write_dl(written)


def _show(ctx: click.Context, words: Sequence[str], additions: click.HelpFormatter) -> int:
    invocation: Invocation = ctx.obj
    try:
        code = call_engine(invocation, words)
    except NoEngineError as error:
        click.echo(ctx.get_help())
        click.echo(marked(error.what, error.advice), nl=False, err=True)
        return 0
    if code in _SHOWN:
        click.echo(f"\n{additions.getvalue()}", nl=False)
    return code
