"""Which configuration and which engine: all that a command needs which looks at no stack, and quick to load."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfguard.cli.invocation import Invocation
from tfguard.engine.locate import InstalledEngine, find_binary, read_version
from tfguard.errors import ConfigError
from tfguard.model.printable import printable
from tfguard.schemas.config_file import find_config

if TYPE_CHECKING:
    from tfguard.model.config import Config

_ENGINE_LINE = re.compile(r"""^engine[ \t]*:[ \t]*(["']?)([^"'#\s]+)\1[ \t]*(?:#.*)?$""", re.MULTILINE)


def _config_path(invocation: Invocation) -> Path | None:
    return Path(invocation.config) if invocation.config else find_config(invocation.directory)


def read_config(invocation: Invocation) -> tuple[Config, Path | None]:
    """tfguard.yaml: the one that was named, or the first one upwards from the stack; and where it lies."""
    path = _config_path(invocation)
    if path is None:
        from tfguard.model.config import Config

        return Config(), None
    from tfguard.schemas.config import load_config  # a YAML parser, which a stack without the file need not load

    config = load_config(path)
    return replace(config, engine=_from_there(config.engine, path)), path.absolute()


def _from_there(engine: str | None, path: Path) -> str | None:
    """The engine that a file names; one that is a path counts from the file's folder, as its patterns do."""
    return str(path.absolute().parent / engine) if engine and os.sep in engine else engine


def configured_engine(invocation: Invocation) -> str | None:
    """`engine:` of tfguard.yaml. A folder without the file costs nothing."""
    return read_config(invocation)[0].engine if _config_path(invocation) else None


def engine_name(invocation: Invocation) -> str | None:
    """`engine:` of tfguard.yaml, for a command that needs nothing else of it and that no mistake there may stop.

    A file that is found and cannot be understood is named on stderr. Raises `ConfigError` for one that `--config`
    names.
    """
    try:
        return configured_engine(invocation)
    except ConfigError as error:
        if invocation.config:
            raise
        print(f"tfguard: {printable(error.what)}", file=sys.stderr)
        return _engine_line(invocation)


def _engine_line(invocation: Invocation) -> str | None:
    """The engine that a damaged tfguard.yaml names, where that line at least can be read."""
    try:
        path = find_config(invocation.directory)
        match = _ENGINE_LINE.search(path.read_text(errors="replace")) if path else None
    except (ConfigError, OSError):
        return None
    return _from_there(match[2], path) if match and path else None


def installed_engine(invocation: Invocation, configured: str | None) -> InstalledEngine:
    """The engine and its version; `configured` is `engine:` of tfguard.yaml. Raises `NoEngineError`."""
    binary = find_binary(invocation.engine, configured, os.environ)
    directory = invocation.directory if invocation.directory.is_dir() else Path.cwd()
    return read_version(binary, directory)
