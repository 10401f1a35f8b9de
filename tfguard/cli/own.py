"""The commands that tfguard has itself, as a click group that loads a command's file when it is called."""

from __future__ import annotations

import importlib
import sys

import click

from tfguard.cli.command import EngineCommand
from tfguard.cli.console import marked
from tfguard.cli.help import show_top_help
from tfguard.cli.invocation import CommandLine, Invocation
from tfguard.cli.main import COMMANDS
from tfguard.errors import UsageError


class LazyGroup(click.Group):
    """Loads a command's file when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """The own commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, from its own file."""
        if cmd_name not in COMMANDS:
            return None
        name, _ = COMMANDS[cmd_name]
        module = importlib.import_module(f"tfguard.cli.{name}")
        command: click.Command = module.repair_command(cmd_name) if name == "repairs" else module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in the help, without loading every command."""
        with formatter.section("Commands of tfguard"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])
        formatter.write_paragraph()
        formatter.write_text("Any other command (init, fmt, output, ...) is handed to the engine untouched.")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "-help", "--help"], "max_content_width": 110})
@click.option("--engine", metavar="terraform|tofu|PATH", help="Which engine to run.")
@click.option("--config", metavar="FILE", help="tfguard.yaml to use instead of the first one found upwards.")
@click.pass_context
def cli(ctx: click.Context, /, **_: str | None) -> None:
    """Stand in for terraform or tofu: record what is about to change, and find what a run left behind.

    Options of tfguard stand before the command or use two dashes; all others, -chdir=DIR among them, go to the engine
    as they are.
    """
    invocation: Invocation = ctx.obj
    command = cli.get_command(ctx, ctx.invoked_subcommand or "")
    if not isinstance(command, EngineCommand):
        invocation.refuse_unknown()


def run_own(line: CommandLine) -> int:
    """Run one of tfguard's commands; the exit code to end with. Raises `UsageError` for what click refuses."""
    try:
        if line.command is None:
            with click.Context(cli, info_name="tfguard", obj=line.invocation, max_content_width=110) as ctx:
                return show_top_help(ctx)
        # Without a name for its variable: click's own completion would end a call with 0 where that happens to be set.
        result = cli.main(list(line.words), "tfguard", complete_var="", standalone_mode=False, obj=line.invocation)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except click.UsageError as error:
        see = _see_help(line, error.ctx)
        if error.ctx is None or error.message != error.ctx.get_help():
            raise UsageError(error.format_message(), see) from error
        # A group without a command: click's error is the whole help.
        sys.stderr.write(f"{error.message}\n\n{marked('a command is missing', 'name one of these')}")
        return UsageError.exit_code
    except click.ClickException as error:
        # Click's own code is 2, which here means that something was found.
        raise UsageError(error.format_message(), _see_help(line, None)) from error


def _see_help(line: CommandLine, ctx: click.Context | None) -> str:
    """Which help to see: that of the command, be it one of a group, that refused the words."""
    path = ctx.command_path if ctx else f"tfguard {line.command}"
    # `orphans import` is `import` under another name, which no group has: its help is the one with the options.
    return f"see `{path} -help`" if path.startswith("tfguard") else f"see `tfguard {path} -help`"
