"""`tfguard doctor`."""

from __future__ import annotations

import click

from tfguard import __version__
from tfguard.cli.engine_choice import installed_engine, read_config
from tfguard.cli.interruptible import own_command
from tfguard.cli.invocation import Invocation
from tfguard.cli.options import format_option, print_document, stdout_paint
from tfguard.cli.wiring import stack_context
from tfguard.errors import TfguardError
from tfguard.flows.checkup import Check, check_stack
from tfguard.model.config import Config
from tfguard.model.printable import printable


@click.command("doctor")
@format_option()
@click.pass_obj
def command(invocation: Invocation, form: str) -> int:
    """Check the engine, the providers, the state, the record, and the permissions to list what the state holds.

    Changes nothing. Exit code 1 when a check fails.
    """
    checks = [Check("tfguard", True, __version__), *_engine(invocation), *_stack(invocation)]
    if form == "json":
        body = [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks]
        print_document({"schema": "tfguard.doctor/v1", "checks": body})
    else:
        paint = stdout_paint()
        for check in checks:
            mark = paint("ok  ", "green") if check.ok else paint("FAIL", "red", "bold")
            click.echo(f"{mark}  {check.name:<14} {printable(check.detail)}")
    return 0 if all(check.ok for check in checks) else 1


def _engine(invocation: Invocation) -> list[Check]:
    checks: list[Check] = []
    config = Config()
    try:
        config, path = read_config(invocation)
        checks.append(Check("configuration", True, str(path) if path else "no tfguard.yaml; every key has a default"))
    except TfguardError as error:
        checks.append(Check("configuration", False, f"{error.what}; {error.advice}"))
    try:
        engine = installed_engine(invocation, config.engine)
    except TfguardError as error:
        return [*checks, Check("engine", False, f"{error.what}; {error.advice}")]
    checks.append(Check("engine", True, f"{engine.info.name} {engine.info.version} at {engine.binary}"))
    return [*checks, *(Check("provider", True, f"{source} {version}") for source, version in engine.providers.items())]


def _stack(invocation: Invocation) -> list[Check]:
    with own_command() as gate:
        try:
            return check_stack(stack_context(invocation, gate))
        except TfguardError as error:
            return [Check("stack", False, f"{error.what}; {error.advice}")]
