"""Where a stack's record lies. Apart from `wiring.py`, since `plan` needs nothing else, and has to be quick."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tfguard.engine.backend import StateLocation, azurerm_state_blob, gcs_state_object, s3_state_key
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
        from tfguard.stores.urls import below, open_store

        return open_store(below(config.records, stack_name(stack)), config_path.parent if config_path else None)
    if location.path is not None:
        return LocalStore(location.path.with_name(location.path.name + ".tfguard"))
    if beside := _BESIDE_STATE.get(stack.backend):
        return beside(location.settings, stack.workspace)
    from tfguard.stores.urls import known_forms

    raise RecordError(
        f"tfguard cannot keep records beside a state in the backend '{stack.backend}'",
        f"add {known_forms()} to tfguard.yaml",
    )


def _beside_s3(settings: Mapping[str, str], workspace: str) -> RecordStore:
    from tfguard.stores.s3_client import backend_store

    return backend_store(settings, s3_state_key(settings, workspace) + ".tfguard")


def _beside_gcs(settings: Mapping[str, str], workspace: str) -> RecordStore:
    from tfguard.stores.gcs_client import backend_store

    return backend_store(settings, gcs_state_object(settings, workspace) + ".tfguard")


def _beside_azurerm(settings: Mapping[str, str], workspace: str) -> RecordStore:
    from tfguard.stores.azblob_client import backend_store

    return backend_store(settings, azurerm_state_blob(settings, workspace) + ".tfguard")


def _beside_pg(settings: Mapping[str, str], workspace: str) -> RecordStore:
    from tfguard.stores.postgres import backend_store

    return backend_store(settings, workspace)


# By backend; takes the backend's settings and the workspace. What a store imports is imported only for its backend.
_BESIDE_STATE: Mapping[str, Callable[[Mapping[str, str], str], RecordStore]] = {
    "s3": _beside_s3,
    "gcs": _beside_gcs,
    "azurerm": _beside_azurerm,
    "pg": _beside_pg,
}


def stack_name(stack: Stack) -> str:
    """A folder name for one state below a shared `records:` place: readable, and never the same for two states."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", stack.location).strip("-.")[-60:].strip("-.")
    named = f"{stack.backend}\0{stack.location}\0{stack.workspace}"
    digest = hashlib.sha256(os.fsencode(named)).hexdigest()[:10]
    return f"{readable}-{digest}"
