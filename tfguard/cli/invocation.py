"""What stands before the command on tfguard's command line."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tfguard.errors import UsageError

_CHDIR = "-chdir="
_OWN = ("--engine", "--config")


@dataclass(frozen=True, slots=True)
class Invocation:
    """The options before the command: `--engine` and `--config` are tfguard's own, `engine_arguments` the engine's.

    Those are handed on as they were typed, also ones that no engine has yet.
    """

    engine: str | None = None
    config: str | None = None
    engine_arguments: tuple[str, ...] = ()

    @property
    def chdir(self) -> str | None:
        """The value of `-chdir`, which the engine knows with one dash and an equals sign alone."""
        found = None
        for word in self.engine_arguments:
            if not word.startswith("-"):
                break
            found = word.removeprefix(_CHDIR) if word.startswith(_CHDIR) else found
        return found

    @property
    def directory(self) -> Path:
        """The engine's working directory, absolute."""
        return (Path.cwd() / (self.chdir or "")).absolute()

    @property
    def has_directory(self) -> bool:
        """Whether the engine would find its working directory; for a malformed `-chdir` it looks for none."""
        return self.chdir != "" and "-chdir" not in self.engine_arguments and self.directory.is_dir()

    def refuse_unknown(self) -> None:
        """Raise `UsageError` for an option before a command of tfguard's own, where no engine would judge it."""
        for word in self.engine_arguments:
            if word in ("-chdir", _CHDIR):
                raise UsageError(
                    "Invalid -chdir option: must include an equals sign followed by a directory path",
                    "write -chdir=DIR",
                )
            if not word.startswith(_CHDIR) or len(self.engine_arguments) > 1:
                raise UsageError(f"the option '{word}' does not stand before this command", "see `tfguard -help`")

    @property
    def command(self) -> str:
        """How to call tfguard again for the same stack, for advice."""
        words = ["tfguard"]
        if self.chdir is not None:
            words.append(f"{_CHDIR}{self.chdir}")
        for name, value in zip(_OWN, (self.engine, self.config), strict=True):
            words += [name, value] if value else []
        return " ".join(shlex.quote(word) for word in words)


@dataclass(frozen=True, slots=True)
class CommandLine:
    """tfguard's command line in three parts. `command` is None where the engine, too, would find none."""

    invocation: Invocation
    command: str | None
    rest: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The command and what follows it, as it was typed."""
        return (*((self.command,) if self.command is not None else ()), *self.rest)


def read_command_line(arguments: Sequence[str]) -> CommandLine:
    """Find the command as the engine finds it: the first word that is no option and not empty.

    tfguard's own two options are taken out before it. Raises `UsageError` for one of them without a value.
    """
    own: dict[str, str] = {}
    engine: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in _OWN:
            own[name] = value if equals else next(words, "")
            if not own[name]:
                raise UsageError(f"option {name} needs a value", "see `tfguard --help`")
        elif word == "--":
            return CommandLine(_invocation(own, engine), None, (word, *words))
        elif word.startswith("-") or not word:
            engine.append(word)
        else:
            return CommandLine(_invocation(own, engine), word, tuple(words))
    return CommandLine(_invocation(own, engine), None, ())


def _invocation(own: dict[str, str], engine: Sequence[str]) -> Invocation:
    return Invocation(own.get("--engine"), own.get("--config"), tuple(engine))


def colour_wanted(stream: object) -> bool:
    """Whether tfguard's own words may be coloured on this stream."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty()) and "NO_COLOR" not in os.environ and "-no-color" not in sys.argv
