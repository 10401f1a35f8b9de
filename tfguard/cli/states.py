"""The states that a command looks into: what `tfguard.states` needs to know of the command line and of tfguard.yaml."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from tfguard.catalog.loader import load_catalog
from tfguard.cli.engine_choice import installed_engine
from tfguard.cli.invocation import Invocation
from tfguard.cli.record_place import record_store, stack_name
from tfguard.model.config import BESIDE_STATE, Config
from tfguard.ports import StateSource
from tfguard.states.folders import Stacks
from tfguard.states.reader import StateReader
from tfguard.states.sources import source_of


def state_sources(
    patterns: Sequence[str],
    invocation: Invocation,
    config: Config,
    config_path: Path | None,
    workspaces: Sequence[str] = (),
    *,
    base: Path | None = None,
    set_up_alone: bool = False,
    files_alone: bool = False,
) -> list[StateSource]:
    """A source for each pattern; nothing is read or asked yet.

    A relative path counts from `base`, the folder of tfguard.yaml for what it says; default: the working directory.
    Of each stack only `workspaces` are read, or those that the pattern's own `?workspace=NAME` names; without any, all.
    With `set_up_alone`, a folder with a backend that `init` has not set up is passed over; else it is a state that
    cannot be read. With `files_alone`, no backend of a folder is asked. Raises `ConfigError` for a URL that names no
    place.
    """
    reader = _reader(invocation, config, config_path)
    start, stacks = base.absolute() if base else invocation.directory, Stacks(set_up_alone, files_alone)
    return [source_of(pattern, start, reader, workspaces, stacks) for pattern in patterns]


def _reader(invocation: Invocation, config: Config, config_path: Path | None) -> StateReader:
    """Nothing is opened yet. Raises `ConfigError` for a `records:` that names no place."""
    shared = None
    if config.records != BESIDE_STATE:
        from tfguard.stores.urls import open_stores

        opened = open_stores(config.records, config_path.parent if config_path else None)
        shared = lambda stack: opened(stack_name(stack))  # noqa: E731
    engine = functools.cache(lambda: installed_engine(invocation, config.engine))
    beside = functools.partial(record_store, config=config, config_path=config_path)
    return StateReader(load_catalog(), engine, beside, shared, config.records)
