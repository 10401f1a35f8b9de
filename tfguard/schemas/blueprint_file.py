"""A blueprint file -> `Blueprint`. Every mistake is a `ConfigError` that begins with file, line and key."""

from __future__ import annotations

from pathlib import Path

from tfguard.errors import ConfigError
from tfguard.model.blueprint import Blueprint
from tfguard.schemas.authored import Authored, parse_authored, read_text

ADVICE = "correct this line; docs/schemas/blueprint-file.v1.schema.json lists every key"


def read_blueprint(path: Path) -> str:
    """The text of a blueprint's file. Raises `ConfigError`."""
    try:
        return read_text(path, ADVICE)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", "name the file of a blueprint") from error


def parse_blueprint(text: str, file: str = "blueprint.yaml") -> Authored[Blueprint]:
    """The blueprint in `text`. Raises `ConfigError`, which names `file`."""
    found = parse_authored(Blueprint, text, file, ADVICE, typed=True)
    for where, reason in found.value.mistakes():
        found.refuse(where, reason)
    return found
