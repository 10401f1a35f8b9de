"""What may stand at the cursor of a command line that is being typed.

The engine's commands and flags come from its own help, so that new ones are there too. A record is looked at where it
lies on a disk: no cloud is asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from tfguard.cli.command import EngineCommand
from tfguard.cli.engine_choice import read_config
from tfguard.cli.invocation import Invocation, read_command_line
from tfguard.cli.main import COMMANDS
from tfguard.cli.own import cli
from tfguard.cli.passthrough import engine_binary
from tfguard.engine.arguments import state_flag
from tfguard.engine.help_text import HelpFlag, commands_in, flags_in, help_text, plan_options
from tfguard.errors import NoEngineError

if TYPE_CHECKING:
    from tfguard.flows.records import Records

_FILES = frozenset(
    ["var-file", "out", "state", "state-out", "backup", "backup-out", "generate-config-out", "backend-config", "filter"]
)
_FOLDERS = frozenset(["chdir", "config", "plugin-dir", "test-directory"])
_OF_DECIDED_ONES = (("orphans", "show"), ("orphans", "retain"), ("orphans", "release"))
_FINDING_OPTIONS = ("--orphan", "--not-ours")

# What takes no file after its flags. Whatever else the engine has, it is served as a shell serves any program.
_NO_FILES = frozenset(
    [
        "plan",
        "destroy",
        "refresh",
        "import",
        "taint",
        "untaint",
        "force-unlock",
        "output",
        "version",
        "init",
        "get",
        "login",
        "logout",
        "console",
        "graph",
        "modules",
        "state",
        "workspace",
        "providers",
        "metadata",
    ]
)
_MOST_PATHS = 1000


@dataclass(frozen=True, slots=True)
class _Line:
    """A command line up to the cursor: the command's words, what follows them, and what both have for options."""

    invocation: Invocation
    command: tuple[str, ...]
    own: click.Command | None
    flags: Mapping[str, HelpFlag]
    words: tuple[str, ...]
    incomplete: str

    @property
    def options(self) -> Sequence[click.Option]:
        """tfguard's own options of the command."""
        return [item for item in self.own.params if isinstance(item, click.Option)] if self.own else []


def suggestions(words: Sequence[str], incomplete: str) -> Iterator[CompletionItem]:
    """What may follow `words`. `incomplete` is how the word at the cursor begins; not all that is told begins so."""
    if words and words[-1] in ("--engine", "--config") and read_command_line(words[:-1]).command is None:
        yield from _global_value(words[-1], incomplete, "")
        return
    found = read_command_line(words)
    if found.command is not None:
        yield from _in_command(found.invocation, found.command, found.rest, incomplete)
    elif incomplete.startswith("-") and "=" in incomplete:
        name, _, value = incomplete.partition("=")
        yield from _global_value(name, value, f"{name}=")
    elif incomplete.startswith("-"):
        yield from _flags(flags_in(_help(found.invocation)), "-")
        yield from _options([item for item in cli.params if isinstance(item, click.Option)])
    else:
        own = {name: about for name, (_, about) in COMMANDS.items()}
        for name, about in {**commands_in(_help(found.invocation)), **own}.items():
            yield CompletionItem(name, help=about)


def _global_value(option: str, value: str, prefix: str) -> Iterator[CompletionItem]:
    if option == "--engine":
        yield from (CompletionItem(f"{prefix}{name}") for name in ("terraform", "tofu"))
    if option in ("--engine", "--config", "-chdir"):
        yield from _paths(value, Path.cwd(), prefix, only_folders=option == "-chdir")


def _in_command(
    invocation: Invocation, command: str, words: tuple[str, ...], incomplete: str
) -> Iterator[CompletionItem]:
    own = cli.get_command(click.Context(cli), command)
    text = _help(invocation, command) if own is None or isinstance(own, EngineCommand) else ""
    groups = own.commands if isinstance(own, click.Group) else {}
    subcommands = {**commands_in(text), **{name: sub.get_short_help_str() for name, sub in groups.items()}}
    if subcommands and not words and not incomplete.startswith("-"):
        yield from (CompletionItem(name, help=about) for name, about in subcommands.items())
        return
    path: tuple[str, ...] = (command,)
    if words and words[0] in subcommands:
        path, own, words = (command, words[0]), groups.get(words[0], own), words[1:]
        text = _help(invocation, *path) if text else ""
    yield from _at_cursor(_Line(invocation, path, own, _flags_of(invocation, command, text), words, incomplete))


def _flags_of(invocation: Invocation, command: str, text: str) -> Mapping[str, HelpFlag]:
    """The flags of an engine's command; `apply` and `destroy` also take those that shape a plan."""
    if command not in ("apply", "destroy"):
        return flags_in(text)
    return {**flags_in(plan_options(_help(invocation, "plan"))), **flags_in(_help(invocation, "apply"))}


def _at_cursor(line: _Line) -> Iterator[CompletionItem]:
    name, equals, value = line.incomplete.partition("=")
    last = line.words[-1] if line.words else ""
    if line.incomplete.startswith("-") and equals:
        yield from _value(line, name, value, f"{name}=")
    elif _waits_for_a_value(line, last):
        yield from _value(line, last, line.incomplete, "")
    elif line.incomplete.startswith("-"):
        yield from _flags(line.flags, "--" if line.incomplete.startswith("--") else "-")
        yield from _options(line.options)
    else:
        operands = list(_operands(line))
        yield from operands
        if not operands and not line.incomplete:
            yield from _flags(line.flags, "-")
            yield from _options(line.options)


def _waits_for_a_value(line: _Line, word: str) -> bool:
    if not word.startswith("-") or "=" in word:
        return False
    flag = line.flags.get(word.lstrip("-"))
    own = any(word in item.opts and not item.is_flag for item in line.options)
    return own or (flag is not None and not flag.boolean)


def _value(line: _Line, option: str, value: str, prefix: str) -> Iterator[CompletionItem]:
    """The values of a flag of the engine's or of an own option."""
    own = next((item for item in line.options if option in item.opts), None)
    if own is not None and isinstance(own.type, click.Choice):
        yield from (CompletionItem(f"{prefix}{choice}") for choice in own.type.choices)
    elif own is not None and option in _FINDING_OPTIONS:
        yield from _finding_ids(line, prefix)
    elif own is not None and line.command == ("history",) and option == "--before":
        yield from _operation_ids(line, prefix)
    elif option.lstrip("-") in _FILES | _FOLDERS:
        only_folders = option.lstrip("-") in _FOLDERS
        yield from _paths(value, line.invocation.directory, prefix, only_folders=only_folders)


def _operands(line: _Line) -> Iterator[CompletionItem]:
    if line.command == ("status",):
        yield from _operation_ids(line)
    elif line.command[:1] == ("orphans",) and line.command[1:] != ("list",):
        yield from _finding_ids(line, "")
    elif line.command == ("state", "push") or (
        line.command[0] not in _NO_FILES and (line.own is None or isinstance(line.own, EngineCommand))
    ):
        yield from _paths(line.incomplete, line.invocation.directory, "")


def _flags(flags: Mapping[str, HelpFlag], dashes: str) -> Iterator[CompletionItem]:
    for flag in flags.values():
        value = f"={flag.value if flag.boolean else ''}" if flag.value else ""
        yield CompletionItem(f"{dashes}{flag.name}{value}", help=flag.text)


def _options(options: Sequence[click.Option]) -> Iterator[CompletionItem]:
    for option in options:
        yield from (CompletionItem(name, help=option.help) for name in option.opts if name.startswith("--"))


def _paths(value: str, folder: Path, prefix: str, *, only_folders: bool = False) -> Iterator[CompletionItem]:
    """Files and folders as a shell tells them: hidden ones only when asked for, a folder with a slash behind it."""
    before, slash, beginning = value.rpartition("/")
    top = folder / Path(before + slash).expanduser()
    with os.scandir(top) as entries:
        fitting = (entry for entry in entries if entry.name.startswith(beginning) and entry.name.isprintable())
        shown = [entry for entry in islice(fitting, _MOST_PATHS) if not entry.name.startswith(".") or beginning]
        for entry in sorted(shown, key=lambda item: item.name):
            if entry.is_dir():
                yield CompletionItem(f"{prefix}{before}{slash}{entry.name}/", type="file")
            elif not only_folders:
                yield CompletionItem(f"{prefix}{before}{slash}{entry.name}", type="file")


def _help(invocation: Invocation, *command: str) -> str:
    try:
        return help_text(engine_binary(invocation), *command)
    except NoEngineError:
        return ""


def _operation_ids(line: _Line, prefix: str = "") -> Iterator[CompletionItem]:
    """The operations, newest first, without those in the archive: a shell waits."""
    records = _records(line)
    for operation_id in reversed(records.operation_ids()) if records else ():
        yield CompletionItem(f"{prefix}{operation_id}")


def _finding_ids(line: _Line, prefix: str) -> Iterator[CompletionItem]:
    """The findings; behind an option that decides about one, those that nobody has decided about."""
    from tfguard.flows.history import findings

    records = _records(line)
    for finding in findings(records)[0] if records else ():
        if finding.disposition is None or line.command in _OF_DECIDED_ONES:
            yield CompletionItem(f"{prefix}{finding.id}", help=finding.address)


def _records(line: _Line) -> Records | None:
    """The stack's record where it lies on a disk; None where a cloud would have to be asked for it."""
    from tfguard.cli.console import SystemClock
    from tfguard.cli.record_place import record_store
    from tfguard.engine.backend import locate_state
    from tfguard.engine.host import LocalHost
    from tfguard.engine.interrupts import SignalGate
    from tfguard.flows.records import Records
    from tfguard.stores.local import LocalStore

    location = locate_state(line.invocation.directory, os.environ, state_flag(line.words))
    store = record_store(location, *read_config(line.invocation))
    return Records(store, SystemClock(SignalGate()), LocalHost()) if isinstance(store, LocalStore) else None
