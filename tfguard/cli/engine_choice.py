"""Which configuration and which engine: all that a command needs which looks at no stack, and quick to load."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tfguard.cli.invocation import Invocation
from tfguard.engine.locate import InstalledEngine, find_binary, read_version
from tfguard.schemas.config_file import find_config

if TYPE_CHECKING:
    from tfguard.model.config import Config


def _config_path(invocation: Invocation) -> Path | None:
    return Path(invocation.config) if invocation.config else find_config(invocation.directory)


def read_config(invocation: Invocation) -> tuple[Config, Path | None]:
    """tfguard.yaml: the one that was named, or the first one upwards from the stack; and where it lies."""
    path = _config_path(invocation)
    if path is None:
        from tfguard.model.config import Config

        return Config(), None
    from tfguard.schemas.config import load_config  # a YAML parser, which a stack without the file need not load

    return load_config(path), path.absolute()


def configured_engine(invocation: Invocation) -> str | None:
    """`engine:` of tfguard.yaml. A folder without the file costs nothing."""
    return read_config(invocation)[0].engine if _config_path(invocation) else None


def installed_engine(invocation: Invocation, configured: str | None) -> InstalledEngine:
    """The engine and its version; `configured` is `engine:` of tfguard.yaml. Raises `NoEngineError`."""
    binary = find_binary(invocation.engine, configured, os.environ)
    directory = invocation.directory if invocation.directory.is_dir() else Path.cwd()
    return read_version(binary, directory)
