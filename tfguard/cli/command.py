"""Commands whose line holds the engine's words beside tfguard's own options: neither is ever taken for the other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import click

from tfguard.cli.help import show_command_help
from tfguard.cli.invocation import Invocation
from tfguard.cli.passthrough import become_engine
from tfguard.engine.arguments import asks_for_help, asks_for_version, expand_environment, takes_a_value
from tfguard.errors import UsageError


class WithEngineWords(click.Command):
    """A command that takes the engine's words as its argument, as they were typed and in their order.

    Click alone would take an own option from where a flag of the engine has its value, and take single dashes apart.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give click its own options, and the rest behind `--`."""
        own, words = self.split(ctx, args)
        return super().parse_args(ctx, [*own, "--", *words])

    def split(self, ctx: click.Context, words: Sequence[str]) -> tuple[list[str], list[str]]:
        """tfguard's own options, and all other words."""
        return own_options(words, _takes_value(self, ctx))


class EngineCommand(WithEngineWords):
    """A command of the engine's name: what the engine does for help, for its version and for bad calls stays."""

    def __init__(self, *args: object, **settings: object) -> None:
        super().__init__(*args, **{**settings, "add_help_option": False})  # type: ignore[arg-type]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let the engine itself answer where it would not run the command."""
        invocation: Invocation = ctx.obj
        name, words = self.name or "", self.split(ctx, args)[1]
        if not invocation.has_directory:
            become_engine(invocation, (name, "-help"))  # it says what is wrong with -chdir before it shows any help
        try:
            expanded = expand_environment(self.full_name(words), words, os.environ)
        except UsageError:
            become_engine(invocation, (name, *words[:1], "-help"))  # here too
        if asks_for_version(expanded):
            become_engine(invocation, ("version", name, *words))
        if asks_for_help(expanded):
            ctx.exit(show_command_help(ctx, (name, *words)))
        return super().parse_args(ctx, args)

    def full_name(self, words: Sequence[str]) -> str:  # noqa: ARG002 (for those that need them)
        """The engine's name of the command that these words call."""
        return self.name or ""


def own_options(words: Sequence[str], options: Mapping[str, bool]) -> tuple[list[str], list[str]]:
    """Take tfguard's own options out of a command line; `options` tells of each whether it takes a value.

    Only an option's whole name counts, not where a flag of the engine has its value, and not after `--`. Raises
    `click.BadOptionUsage` for one without its value.
    """
    own: list[str] = []
    others: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if word == "--":
            others += [word, *rest]
        elif name in options:
            own.append(f"{word}={_value(name, rest)}" if options[name] and not equals else word)
        else:
            others.append(word)
            if takes_a_value(word):
                others += [value] if (value := next(rest, None)) is not None else []
    return own, others


def _value(option: str, rest: Iterator[str]) -> str:
    value = next(rest, None)
    if value is None:
        raise click.BadOptionUsage(option, f"Option '{option}' requires an argument.")
    return value


def _takes_value(command: click.Command, ctx: click.Context) -> Mapping[str, bool]:
    options = [item for item in command.get_params(ctx) if isinstance(item, click.Option)]
    return {name: not item.is_flag and not item.count for item in options for name in item.opts}
