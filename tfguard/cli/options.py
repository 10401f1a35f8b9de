"""Options that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import click

from tfguard.cli.invocation import colour_wanted
from tfguard.errors import UsageError
from tfguard.model.config import parse_duration
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


def duration(text: str, option: str) -> timedelta:
    """The time that the value of an option names. Raises `UsageError`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option} {text} {error}", "write a number and a unit, such as 36h or 14d") from None


def findings_option() -> Decorator:
    """`--findings`, the findings of a scan, for a command that else knows those of the stack's own operations."""
    return click.option(
        "--findings",
        "findings_file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Also the findings that `scan --state-file FILE` kept.",
    )


def state_option() -> Decorator:
    """`-state`, spelled as the engine spells it: whose record to look at."""
    return click.option(
        "-state", "--state", "state_path", metavar="FILE", help="The state that the run named with its own -state."
    )


def variable_options() -> Decorator:
    """`-var` and `-var-file`, spelled as the engine spells them; `variable_words` makes its words of them again."""
    one = click.option(
        "-var", "--var", "variables", multiple=True, metavar="NAME=VALUE", help="A variable of the provider's block."
    )
    file = click.option(
        "-var-file", "--var-file", "variable_files", multiple=True, metavar="FILE", help="Variables in a file."
    )
    return lambda function: one(file(function))


def variable_words(variables: Sequence[str], files: Sequence[str]) -> tuple[str, ...]:
    """The engine's words for the values of `variable_options`."""
    return (*(f"-var={text}" for text in variables), *(f"-var-file={name}" for name in files))


def print_document(document: Mapping[str, object]) -> None:
    """A JSON document on stdout."""
    click.echo(document_text(document), nl=False)


def document_text(document: Mapping[str, object]) -> str:
    """A JSON document as it is printed."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def stdout_paint() -> Paint:
    """Colour for stdout, where it is a terminal."""
    return Paint(colour_wanted(sys.stdout))
