"""Which configuration and which engine: all that a command needs which looks at no stack, and quick to load."""

from __future__ import annotations

import os
from pathlib import Path

from tfguard.cli.invocation import Invocation
from tfguard.engine.locate import InstalledEngine, find_binary, read_version
from tfguard.model.config import Config
from tfguard.schemas.config_file import find_config


def read_config(invocation: Invocation) -> tuple[Config, Path | None]:
    """tfguard.yaml: the one that was named, or the first one upwards from the stack; and where it lies."""
    path = Path(invocation.config) if invocation.config else find_config(invocation.directory)
    if path is None:
        return Config(), None
    from tfguard.schemas.config import load_config  # a YAML parser, which a stack without the file need not load

    return load_config(path), path.absolute()


def installed_engine(invocation: Invocation, config: Config) -> InstalledEngine:
    """The engine and its version. Raises `NoEngineError`."""
    binary = find_binary(invocation.engine, config.engine, os.environ)
    directory = invocation.directory if invocation.directory.is_dir() else Path.cwd()
    return read_version(binary, directory)
