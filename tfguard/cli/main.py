"""The `tfguard` command: finds the command's file, and turns errors into two lines and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping

import click

from tfguard.cli.invocation import Invocation
from tfguard.errors import ExitCode, TfguardError

# Own commands: name -> (module, one line for the help). Everything else is the engine's.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "plan": ("plan", "the engine's plan; warns about an operation that is not settled"),
    "apply": ("apply", "the engine's apply, recorded, followed and verified"),
    "destroy": ("destroy", "the engine's destroy, recorded, followed and verified"),
    "import": ("import_", "the engine's import, or adopt a finding with --orphan"),
    "status": ("status", "the stack's current operation: steps, outcomes, what to do next"),
    "recover": ("recover", "settle an open operation; deletes nothing"),
    "history": ("history", "the stack's operations, newest first"),
    "orphans": ("orphans", "the objects that exist and that the state does not know"),
    "doctor": ("doctor", "what is installed, where state and records are, what is missing"),
    "version": ("version", "own, engine and provider versions"),
}


class LazyGroup(click.Group):
    """Loads a command's file when it is called; a name that tfguard does not have goes to the engine."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """The own commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command's own file, or the engine's command of that name."""
        name = COMMANDS[cmd_name][0] if cmd_name in COMMANDS else "passthrough"
        module = importlib.import_module(f"tfguard.cli.{name}")
        command: click.Command = module.engine_command(cmd_name) if name == "passthrough" else module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in the help, without loading every command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])
        formatter.write_paragraph()
        formatter.write_text("Any other command (init, fmt, output, ...) is handed to the engine untouched.")


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "max_content_width": 110},
)
@click.option("-chdir", "chdir", metavar="DIR", help="Work in DIR, as the engine's option of that name does.")
@click.option("--engine", metavar="terraform|tofu|PATH", help="Which engine to run.")
@click.option("--config", metavar="FILE", help="tfguard.yaml to use instead of the first one found upwards.")
@click.pass_context
def cli(ctx: click.Context, chdir: str | None, engine: str | None, config: str | None) -> None:
    """Stand in for terraform or tofu: record what is about to change, and find what a run left behind.

    Options of tfguard stand before the command or use two dashes; all others go to the engine as they are.
    """
    ctx.obj = Invocation(chdir, engine, config)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run() -> None:
    """Entry point: never returns, never shows a traceback for bad input."""
    _open_closed_streams()
    sys.exit(exit_code_of(sys.argv[1:]))


def _open_closed_streams() -> None:
    """Give a closed standard stream /dev/null: else the next file that is opened would become it."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            setattr(sys, name, os.fdopen(descriptor, mode))


def exit_code_of(arguments: list[str]) -> int:
    """Run tfguard and tell the exit code (docs/interface.md, "Exit codes")."""
    try:
        result = cli.main(args=arguments, prog_name="tfguard", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except TfguardError as error:
        return _complain(error.what, error.advice, error.exit_code)
    except click.exceptions.Exit as done:
        return done.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _complain("interrupted", "nothing was running", ExitCode.INTERRUPTED)
    except click.ClickException as error:
        # Click's own code is 2, which here means that something was found.
        return _complain(error.format_message(), "see `tfguard --help`", 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _complain(f"{error.strerror or error}", "check the disk, and where the output goes", ExitCode.ERROR)
    except Exception as error:  # noqa: BLE001 (the one boundary: a defect still ends in two lines, and is never taken for clean)
        if os.environ.get("TFGUARD_DEBUG"):
            import traceback

            traceback.print_exc()
        return _complain(
            f"this is a defect in tfguard: {type(error).__name__}: {error}", "run with TFGUARD_DEBUG=1 and report it", 1
        )


def _complain(what: str, advice: str, exit_code: int) -> int:
    click.echo(f"tfguard: {what}\ntfguard: {advice}", err=True)
    return exit_code
