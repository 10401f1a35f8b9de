"""Options that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

import click

from tfguard.cli.invocation import colour_wanted
from tfguard.report.paint import Paint

Decorator = Callable[[Callable[..., object]], Callable[..., object]]


def format_option(*more: str) -> Decorator:
    """`--format text|json` and what else a command can print."""
    return click.option(
        "--format", "form", type=click.Choice(["text", "json", *more]), default="text", help="How to print the result."
    )


def yes_option() -> Decorator:
    """`--yes`, the approval where nobody can be asked."""
    return click.option("--yes", is_flag=True, help="Approve without a question; needed without a terminal.")


def state_option() -> Decorator:
    """`-state`, spelled as the engine spells it: whose record to look at."""
    return click.option(
        "-state", "--state", "state_path", metavar="FILE", help="The state that the run named with its own -state."
    )


def print_document(document: Mapping[str, object]) -> None:
    """A JSON document on stdout."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def stdout_paint() -> Paint:
    """Colour for stdout, where it is a terminal."""
    return Paint(colour_wanted(sys.stdout))
