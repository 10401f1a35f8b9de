"""`tfguard.yaml` -> `Config`. Every mistake is a `ConfigError` that begins with file, line and key."""

from __future__ import annotations

from pathlib import Path

from tfguard.model.config import Config
from tfguard.schemas.authored import parse_authored, read_text
from tfguard.schemas.config_file import CONFIG_NAME, unreadable

_ADVICE = "correct this line; docs/schemas/config.v1.schema.json lists every key"


def load_config(path: Path) -> Config:
    """The configuration in the file `path`; raises `ConfigError`."""
    try:
        text = read_text(path, _ADVICE)
    except OSError as error:
        raise unreadable(path, error) from error
    return parse_config(text, str(path))


def parse_config(text: str, file: str = CONFIG_NAME) -> Config:
    """The configuration in `text`; empty is all defaults. Raises `ConfigError`, which names `file`."""
    return parse_authored(Config, text, file, _ADVICE).value
