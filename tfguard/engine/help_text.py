"""What the engine at hand says of itself in its help: so that commands and flags which came after this work too."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfguard.engine.arguments import Flags
from tfguard.engine.locate import call_environment
from tfguard.engine.queries import CLI_ARGUMENT_VARIABLES

_FLAG = re.compile(r"^ {2,4}-([a-z][a-z0-9-]*)(?:=(\S+)| '([^']*)')?(?:[\t ]+(\S.*))?$", re.MULTILINE)
_COMMAND = re.compile(r"^ {2,4}([a-z][a-z0-9-]*) {2,}(\S.*)$")
_OTHERS = "Other Options:"
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class HelpFlag:
    """A flag as the help explains it. `value` is what stands for its value, and empty for one that takes none.

    One that is `true` or `false`, and that the help shows as `-lock=false`, takes no other word as its value.
    """

    name: str
    value: str
    text: str

    @property
    def boolean(self) -> bool:
        """Whether the word after it is not its value."""
        return self.value in ("", "true", "false")


def learn_flags(binary: Path) -> Flags:
    """The flags of an `apply` or `destroy`, from the help of the engine's `plan` and `apply`.

    Of those that `plan` alone explains, `apply` takes the ones that shape the plan: they stand in a section of their
    own.
    """
    text = help_text(binary, "plan")
    plan, all_of_plan, apply = flags_in(plan_options(text)), flags_in(text), flags_in(help_text(binary, "apply"))
    return Flags(
        planning={*plan, *(all_of_plan.keys() & apply.keys())},
        applying=apply.keys() - plan.keys(),
        taking={name for name, flag in {**all_of_plan, **apply}.items() if not flag.boolean},
    )


def plan_options(text: str) -> str:
    """That part of the help of `plan` which explains what shapes a plan, and what `apply` and `destroy` take too."""
    return text.partition(_OTHERS)[0]


def flags_in(text: str) -> Mapping[str, HelpFlag]:
    """The flags that a help text explains, by name."""
    return {name: HelpFlag(name, value or quoted, about) for name, value, quoted, about in _FLAG.findall(text)}


def commands_in(text: str) -> Mapping[str, str]:
    """The commands or subcommands that a help text lists, with a line on each."""
    found: dict[str, str] = {}
    listing = False
    for line in text.splitlines():
        if line and not line[0].isspace():
            listing = line.lower().endswith("commands:")
        elif listing and (match := _COMMAND.match(line)):
            found[match[1]] = match[2]
    return found


def help_text(binary: Path, *command: str) -> str:
    """What the engine prints for `-help`; empty when it does not answer soon. It asks nobody, and changes nothing."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(CLI_ARGUMENT_VARIABLES)}
    try:
        done = subprocess.run(
            [str(binary), *command, "-help"],
            env=call_environment(binary, {**environ, "CHECKPOINT_DISABLE": "1"}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")
