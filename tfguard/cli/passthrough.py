"""Engine commands that tfguard does not guard: the process becomes the engine, so nothing can differ."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from tfguard.cli.engine_choice import configured_engine
from tfguard.cli.invocation import Invocation
from tfguard.engine.locate import find_binary

ENGINE_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": ["--help"]}


def engine_command(name: str) -> click.Command:
    """A command that hands everything to the engine."""

    @click.command(name, context_settings={**ENGINE_ARGUMENTS, "help_option_names": []}, add_help_option=False)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @click.pass_obj
    def command(invocation: Invocation, arguments: tuple[str, ...]) -> None:
        become_engine(invocation, (name, *arguments))

    return command


def become_engine(invocation: Invocation, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the engine. Raises `NoEngineError`."""
    binary = str(find_binary(invocation.engine, configured_engine(invocation), os.environ))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(binary, [binary, *invocation.engine_arguments, *arguments])
