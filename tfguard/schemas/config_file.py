"""Where tfguard.yaml is found. Apart from reading it, which costs a YAML parser, since most folders have none."""

from __future__ import annotations

from pathlib import Path

from tfguard.errors import ConfigError

CONFIG_NAME = "tfguard.yaml"


def find_config(start: Path) -> Path | None:
    """The nearest `tfguard.yaml` in `start` or a folder above it. Raises `ConfigError` when a folder cannot be read."""
    folder = start.resolve()
    for candidate in (level / CONFIG_NAME for level in (folder, *folder.parents)):
        try:
            if candidate.is_file():
                return candidate
        except OSError as error:
            raise unreadable(candidate, error) from error
    return None


def unreadable(path: Path, error: OSError) -> ConfigError:
    """The error for a file or folder that cannot be opened."""
    advice = "give the user that runs tfguard the right to read it"
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        advice = "correct --config, or leave it out: tfguard.yaml is looked for from the stack's folder upwards"
    return ConfigError(f"{path}: cannot be read: {error.strerror}", advice)
