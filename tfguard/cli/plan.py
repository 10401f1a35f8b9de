"""`tfguard plan`."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence

import click

from tfguard.cli.command import EngineCommand
from tfguard.cli.engine_choice import read_config
from tfguard.cli.invocation import Invocation
from tfguard.cli.passthrough import become_engine
from tfguard.cli.record_place import record_store
from tfguard.engine.arguments import expand_environment, state_flag
from tfguard.engine.backend import locate_state
from tfguard.errors import ConfigError, NotInitialisedError, TfguardError
from tfguard.model.printable import printable

# A record that lies in a cloud which does not answer must not hold a plan up.
_PATIENCE_SECONDS = 10.0


@click.command("plan", cls=EngineCommand)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(invocation: Invocation, /, arguments: tuple[str, ...]) -> None:
    """Run the engine's plan. Warns on stderr when an earlier operation on this stack is not settled."""
    for line in _look(invocation, expand_environment("plan", arguments, os.environ)):
        print(f"tfguard: {printable(line)}", file=sys.stderr)
    become_engine(invocation, ("plan", *arguments))


def _look(invocation: Invocation, arguments: Sequence[str]) -> Sequence[str]:
    """What there is to say of the stack's record. A plan changes nothing, so nothing here fails it or keeps it."""
    found: list[str] = ["warning: the record does not answer, so an operation that is not settled may not be seen"]

    def look() -> None:
        try:
            found[:] = _warnings(invocation, arguments)
        except NotInitialisedError:
            found[:] = []  # the engine says it
        except TfguardError as error:
            found[:] = [error.what]
        except Exception as error:  # noqa: BLE001 (not even a defect may take the plan away)
            found[:] = [f"warning: the record could not be looked at ({type(error).__name__}: {error})"]

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(_PATIENCE_SECONDS)
    return tuple(found)


def _warnings(invocation: Invocation, arguments: Sequence[str]) -> list[str]:
    from tfguard.engine.importing import discard_leftover
    from tfguard.flows.heads import HEAD
    from tfguard.schemas.records import decode_head

    flag = state_flag(arguments)
    discard_leftover(invocation.directory)
    try:
        config, config_path = read_config(invocation)
    except ConfigError:
        return []  # it is said where the engine is chosen
    store = record_store(locate_state(invocation.directory, os.environ, flag), config, config_path)
    blob = store.read(HEAD)
    opened = decode_head(blob.data, f"{store.location}/{HEAD}").open_operations if blob else ()
    more = f" -state={flag}" if flag else ""
    return [f"warning: operation {name} is not settled: `{invocation.command} status{more}`" for name in opened]
