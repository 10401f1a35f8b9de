"""The `tfguard` command: finds the command's file, and turns errors into two lines and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tfguard.cli.invocation import CommandLine, read_command_line
from tfguard.cli.passthrough import become_engine
from tfguard.engine.arguments import asks_for_help, asks_for_version
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.signals import HANDLED
from tfguard.errors import ExitCode, TfguardError

# Own commands: name -> (module, one line for the help). Everything else is the engine's.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "plan": ("plan", "the engine's plan; warns about an operation that is not settled"),
    "apply": ("apply", "the engine's apply, recorded, followed and verified"),
    "destroy": ("destroy", "the engine's destroy, recorded, followed and verified"),
    "refresh": ("repairs", "the engine's refresh, recorded"),
    "import": ("import_", "the engine's import, recorded, or adopt a finding with --orphan"),
    "taint": ("repairs", "the engine's taint, recorded"),
    "untaint": ("repairs", "the engine's untaint, recorded"),
    "state": ("state", "the engine's state commands; rm, mv, push and replace-provider are recorded"),
    "force-unlock": ("repairs", "the engine's force-unlock: shows the holder, refuses while it lives, recorded"),
    "status": ("status", "the stack's current operation: steps, outcomes, what to do next"),
    "recover": ("recover", "settle an open operation; deletes nothing"),
    "history": ("history", "the stack's operations, newest first, page by page"),
    "archive": ("archive", "pack closed operations away, or verify what was packed; history and status read it"),
    "scan": ("scan", "what exists that no state knows, over many states, regions and accounts"),
    "orphans": ("orphans", "what exists and no state knows; alone, on a terminal, a table to choose from"),
    "blueprint": ("blueprint", "a graph of stacks, commands and probes as one request: plan, apply, status, destroy"),
    "metrics": ("metrics", "counters of the last scan or of this stack, for Prometheus"),
    "catalog": ("catalog", "the resource types that are known, and the permissions that a scan of them needs"),
    "doctor": ("doctor", "what is installed, where state and records are, what is missing"),
    "version": ("version", "own, engine and provider versions"),
}

# What a command may need that is installed apart: module -> package.
_INSTALLED_APART: Mapping[str, str] = {"boto3": "boto3", "botocore": "boto3"}


def run() -> None:
    """Entry point: never returns, never shows a traceback for bad input."""
    _open_closed_streams()
    _print_any_name()
    _let_signals(signal.default_int_handler)  # until an engine runs, any of them ends with 130
    SignalGate.leaves = signal.SIG_IGN  # afterwards the exit code stands
    code = exit_code_of(sys.argv[1:])
    _let_signals(signal.SIG_IGN)
    if code == ExitCode.INTERRUPTED:
        _leave_at_once(code)
    sys.exit(code)


def _leave_at_once(code: int) -> NoReturn:
    """End without waiting for lists that nobody wants any more: a cloud may take its time to answer them."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _let_signals(do: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    for signum in HANDLED:
        if signal.getsignal(signum) != signal.SIG_IGN:
            signal.signal(signum, do)


def _open_closed_streams() -> None:
    """Give a closed standard stream /dev/null: else the next file that is opened would become it."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            setattr(sys, name, os.fdopen(descriptor, mode))


def _print_any_name() -> None:
    """A file's name need not be text. Escaped, it can be printed, and a JSON document with it stays one."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def exit_code_of(arguments: list[str]) -> int:
    """Run tfguard and tell the exit code (docs/interface.md, "Exit codes")."""
    try:
        if os.environ.get("_TFGUARD_COMPLETE") and not arguments:
            return _complete()
        return _run(read_command_line(arguments))
    except TfguardError as error:
        return _complain(error.what, error.advice, error.exit_code)
    except KeyboardInterrupt:
        _let_signals(signal.SIG_IGN)
        return _complain("interrupted", "nothing was running", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _complain(f"{error.strerror or error}", "check the disk, and where the output goes", ExitCode.ERROR)
    except ModuleNotFoundError as error:
        package = _INSTALLED_APART.get((error.name or "").partition(".")[0])
        if package is None:
            return _complain_of_defect(error)
        command = next((word for word in arguments if word in COMMANDS), "tfguard")
        return _complain(
            f"`{command}` needs {package}, which is not installed",
            f"install it: `pip install {package}`",
            ExitCode.ERROR,
        )
    except Exception as error:  # noqa: BLE001 (the one boundary: a defect still ends in two lines, and is never taken for clean)
        return _complain_of_defect(error)


def _complain_of_defect(error: Exception) -> int:
    if os.environ.get("TFGUARD_DEBUG"):
        import traceback

        traceback.print_exception(error)
    return _complain(
        f"this is a defect in tfguard: {type(error).__name__}: {error}", "run with TFGUARD_DEBUG=1 and report it", 1
    )


def _run(line: CommandLine) -> int:
    """Run a command of tfguard's own, or become the engine for every other one."""
    before = line.invocation.engine_arguments
    if asks_for_version(before):
        become_engine(line.invocation, line.words)
    if line.command is None and not line.rest and all(_harmless(word) for word in before):
        return _own(line)
    if line.command not in COMMANDS:
        become_engine(line.invocation, line.words)
    if asks_for_help(before):
        # The engine reads `-help apply` as `apply -help`; so does what comes after here.
        kept = tuple(word for word in before if not asks_for_help([word]))
        line = CommandLine(replace(line.invocation, engine_arguments=kept), line.command, ("-help", *line.rest))
    return _own(line)


def _harmless(word: str) -> bool:
    """Whether the engine, called with such options alone, shows its list of commands."""
    return asks_for_help([word]) or word.startswith("-chdir=")


def _complete() -> int:
    """A shell asks what may be typed. With arguments it is a call like any other, whatever the environment holds."""
    from tfguard.cli.completion import answer

    name = Path(sys.argv[0]).name
    return answer("tfguard" if name == "__main__.py" else name)


def _own(line: CommandLine) -> int:
    from tfguard.cli.own import run_own  # click, which a command that is handed through need not load

    return run_own(line)


def _complain(what: str, advice: str, exit_code: int) -> int:
    from tfguard.cli.console import marked

    sys.stderr.write(marked(what, advice))
    return exit_code
