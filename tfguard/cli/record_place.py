"""Where a stack's record lies. Apart from `wiring.py`, since `plan` needs nothing else, and has to be quick."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tfguard.engine.backend import StateLocation, s3_state_key
from tfguard.errors import RecordError
from tfguard.model.config import BESIDE_STATE, Config
from tfguard.model.operation import Stack
from tfguard.ports import RecordStore
from tfguard.stores.local import LocalStore


def record_store(location: StateLocation, config: Config, config_path: Path | None) -> RecordStore:
    """Where the stack's record lives: beside the state, or below `records:`.

    Raises `RecordError` with the line to add where a backend has no place beside the state that tfguard can write.
    """
    stack = location.stack
    if config.records != BESIDE_STATE:
        from tfguard.stores.urls import open_store

        return open_store(_below(config.records, stack_name(stack)), config_path.parent if config_path else None)
    if location.path is not None:
        return LocalStore(location.path.with_name(location.path.name + ".tfguard"))
    if stack.backend == "s3":
        from tfguard.stores.s3_client import backend_store

        return backend_store(location.settings, s3_state_key(location.settings, stack.workspace) + ".tfguard")
    raise RecordError(
        f"tfguard cannot keep records beside a state in the backend '{stack.backend}'",
        "add `records: file:///DIR` or `records: s3://BUCKET/PREFIX` to tfguard.yaml",
    )


def stack_name(stack: Stack) -> str:
    """A folder name for one state below a shared `records:` place: readable, and never the same for two states."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", stack.location).strip("-.")[-60:].strip("-.")
    named = f"{stack.backend}\0{stack.location}\0{stack.workspace}"
    digest = hashlib.sha256(os.fsencode(named)).hexdigest()[:10]
    return f"{readable}-{digest}"


def _below(url: str, name: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}"))
