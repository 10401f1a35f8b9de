"""`tfguard version`."""

from __future__ import annotations

import json
import os

import click

from tfguard import __version__
from tfguard.cli.command import EngineCommand
from tfguard.cli.engine_choice import configured_engine, installed_engine
from tfguard.cli.invocation import Invocation
from tfguard.cli.passthrough import become_engine, call_engine, engine_binary
from tfguard.engine.arguments import expand_environment, tokens
from tfguard.errors import NoEngineError


@click.command("version", cls=EngineCommand)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(invocation: Invocation, /, form: str, arguments: tuple[str, ...]) -> int:
    """Show the engine's version and its providers', in the engine's own words; a line about tfguard follows.

    With -json the document is the engine's alone. With --format json it is tfguard's.
    """
    if form == "json":
        _print_document(invocation)
        return 0
    if any(token.name == "json" for token in tokens(expand_environment("version", arguments, os.environ))):
        become_engine(invocation, ("version", *arguments))
    try:
        binary = engine_binary(invocation)
    except NoEngineError:
        click.echo(f"tfguard {__version__}")
        raise
    code = call_engine(invocation, ("version", *arguments))
    if code == 0:
        click.echo(f"tfguard {__version__} (engine {binary})")
    return code


def _print_document(invocation: Invocation) -> None:
    engine = installed_engine(invocation, configured_engine(invocation))
    body = {
        "schema": "tfguard.version/v1",
        "tfguard": __version__,
        "engine": {"name": engine.info.name, "version": engine.info.version, "path": str(engine.binary)},
        "providers": dict(engine.providers),
    }
    click.echo(json.dumps(body))
