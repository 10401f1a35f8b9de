"""`tfguard version`."""

from __future__ import annotations

import json

import click

from tfguard import __version__
from tfguard.cli.engine_choice import configured_engine, installed_engine
from tfguard.cli.invocation import Invocation


@click.command("version")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="How to print.")
@click.pass_obj
def command(invocation: Invocation, form: str) -> None:
    """Show the versions of tfguard, of the engine, and of the providers that the working directory has chosen."""
    engine = installed_engine(invocation, configured_engine(invocation))
    if form == "json":
        body = {
            "schema": "tfguard.version/v1",
            "tfguard": __version__,
            "engine": {"name": engine.info.name, "version": engine.info.version, "path": str(engine.binary)},
            "providers": dict(engine.providers),
        }
        click.echo(json.dumps(body))
        return
    click.echo(f"tfguard {__version__}\n{engine.info.name} {engine.info.version} ({engine.binary})")
    for source, version in engine.providers.items():
        click.echo(f"provider {source} {version}")
