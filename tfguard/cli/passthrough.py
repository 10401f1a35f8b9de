"""The engine in tfguard's place: the process becomes it, so that nothing can differ. Loads quickly: no click."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from tfguard.cli.engine_choice import engine_name
from tfguard.cli.invocation import Invocation
from tfguard.engine.locate import call_environment, find_binary
from tfguard.engine.queries import CLI_ARGUMENT_VARIABLES
from tfguard.engine.signals import signals_let_through
from tfguard.errors import NoEngineError, TfguardError, UsageError

# Python ignores these, and a program that it becomes would go on ignoring them.
_IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ")


def engine_binary(invocation: Invocation) -> Path:
    """The engine that this call means, not asked for its version. Raises `NoEngineError`."""
    return find_binary(invocation.engine, engine_name(invocation), os.environ)


def become_engine(invocation: Invocation, arguments: Sequence[str], *, expanded: bool = False) -> NoReturn:
    """Replace this process by the engine; with `expanded`, TF_CLI_ARGS is in `arguments` already.

    Raises `NoEngineError`.
    """
    binary = engine_binary(invocation)
    sys.stdout.flush()
    sys.stderr.flush()
    for name in _IGNORED_BY_PYTHON:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    environ = call_environment(binary, _environment(expanded))
    try:
        os.execve(binary, [str(binary), *invocation.engine_arguments, *arguments], environ)
    except OSError as error:
        raise cannot_run(binary, error) from error


def cannot_run(binary: Path, error: OSError) -> TfguardError:
    """What to say of an engine that the system does not run, such as one for another kind of machine."""
    if error.errno == errno.E2BIG:
        return UsageError("the command line is too long for this system", "shorten it")
    return NoEngineError(f"{binary} cannot be started: {error.strerror}", "name another engine with --engine")


def call_engine(invocation: Invocation, arguments: Sequence[str], *, expanded: bool = False) -> int:
    """Run the engine for something that changes nothing, on the user's own streams; its exit code.

    `expanded` is as for `become_engine`. Raises `NoEngineError`.
    """
    binary = engine_binary(invocation)
    argv = [str(binary), *invocation.engine_arguments, *arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        with signals_let_through():
            code = subprocess.run(argv, env=call_environment(binary, _environment(expanded)), check=False).returncode
    except OSError as error:
        raise cannot_run(binary, error) from error
    return code if code >= 0 else 128 - code


def knows_global_options(invocation: Invocation) -> bool:
    """Whether the engine knows what stands before the command. It is asked only for more than one -chdir=DIR."""
    if len(invocation.engine_arguments) == (invocation.chdir is not None):
        return True
    binary = engine_binary(invocation)
    argv = [str(binary), *invocation.engine_arguments, "version"]
    with signals_let_through():
        done = subprocess.run(argv, env=call_environment(binary, os.environ), capture_output=True, check=False)
    return done.returncode == 0


def _environment(expanded: bool) -> Mapping[str, str]:
    if not expanded:
        return os.environ
    return {name: value for name, value in os.environ.items() if not name.startswith(CLI_ARGUMENT_VARIABLES)}
