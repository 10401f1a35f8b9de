"""What an interrupt means to a command, seen from outside: exit code 130 wherever no engine was running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tfguard.engine.interrupts import SignalGate
from tfguard.errors import InterruptedRunError, TfguardError


@contextmanager
def engine_command() -> Iterator[SignalGate]:
    """The gate of a command that runs an engine, whose exit code it ends with.

    An error after a signal, from a query that a Ctrl-C has reached too or from whatever else, becomes
    `InterruptedRunError`: flows raise errors only before the engine runs.
    """
    with SignalGate() as gate:
        try:
            yield gate
        except TfguardError as error:
            if gate.interrupted and not isinstance(error, InterruptedRunError):
                raise InterruptedRunError("interrupted before anything was changed", "run the command again") from error
            raise


@contextmanager
def own_command() -> Iterator[SignalGate]:
    """The gate of a command of tfguard's own: a signal ends it with `InterruptedRunError`, whatever else came of it."""
    with engine_command() as gate:
        yield gate
        if gate.interrupted:
            raise InterruptedRunError(
                "interrupted; what is on record by now stays there", "run the command again for the rest"
            )
