"""Builds the adapters behind the ports; nobody else does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tfguard.catalog.loader import load_catalog
from tfguard.cli.console import StderrConsole, SystemClock, UserStreams
from tfguard.cli.engine_choice import installed_engine, read_config
from tfguard.cli.invocation import Invocation
from tfguard.cli.record_place import record_store, stack_name
from tfguard.engine.arguments import variables_in
from tfguard.engine.backend import data_directory, locate_state
from tfguard.engine.host import LocalHost
from tfguard.engine.interrupts import SignalGate
from tfguard.engine.locate import InstalledEngine
from tfguard.engine.terraform import TerraformEngine
from tfguard.errors import UsageError
from tfguard.flows.context import StackContext
from tfguard.flows.looking import Surroundings
from tfguard.flows.records import Records
from tfguard.inventory.clouds import CombinedActions, inventory_of_clouds
from tfguard.inventory.credentials import RunCredentials
from tfguard.model.cloud import cloud_of_source
from tfguard.model.config import Config
from tfguard.model.operation import Stack
from tfguard.model.since import KeptScan
from tfguard.ports import Inventory, StateSource


def stack_context(
    invocation: Invocation,
    gate: SignalGate,
    state_flag: str | None = None,
    *,
    variables: Sequence[str] = (),
    will_list: bool = False,
    kept: KeptScan | None = None,
) -> StackContext:
    """Everything around the stack that the user stands in.

    `state_flag` is the value of `-state`; `variables` is a command line with the user's `-var` and `-var-file` in it;
    `will_list` loads a cloud's SDK in the background, where the stack uses that
    cloud; `kept` is the scan whose findings are to be decided about. Raises `UsageError` when `-chdir` names no folder.
    """
    if not invocation.directory.is_dir():
        raise UsageError(f"{invocation.directory} is not a folder", "correct -chdir")
    config, config_path = read_config(invocation)
    installed = installed_engine(invocation, config.engine)
    location = locate_state(invocation.directory, os.environ, state_flag, installed.info)
    store = record_store(location, config, config_path)
    clock, host, catalog = SystemClock(gate), LocalHost(), load_catalog()
    engine = TerraformEngine(
        installed,
        location,
        catalog,
        dict(os.environ),
        invocation.engine_arguments,
        UserStreams(),
        gate,
        variables=variables_in(variables),
    )
    console = StderrConsole(gate)
    around = Surroundings(_inventory(installed, will_list), catalog, config, clock, console)
    credentials = RunCredentials(os.environ, location.stack.backend, location.settings)
    return StackContext(
        location.stack,
        engine,
        Records(store, clock, host, console.warn),
        around,
        host,
        partial(known_files, invocation, config, config_path),
        credentials,
        partial(_known_places, invocation, config, config_path),
        CombinedActions(catalog),
        run_folder(invocation, location.stack),
        partial(_scanned_places, invocation, config, config_path, kept.scope.states if kept else ()),
    )


def _known_places(invocation: Invocation, config: Config, config_path: Path | None) -> Sequence[StateSource]:
    """Every state that `scan.stacks` names, wherever it lies; of stacks here those that `init` has set up."""
    from tfguard.cli.states import state_sources  # only an adoption looks into them

    base = config_path.parent if config_path else None
    return state_sources(config.scan.stacks, invocation, config, config_path, base=base, set_up_alone=True)


def _scanned_places(
    invocation: Invocation, config: Config, config_path: Path | None, meant: Sequence[str]
) -> Sequence[StateSource]:
    """The states that a scan looked into, but for those that `scan.stacks` names here as well."""
    from tfguard.cli.kept_files import patterns_meant, states_meant
    from tfguard.cli.states import state_sources

    base = config_path.absolute().parent if config_path else invocation.directory
    left = patterns_meant(one for one in meant if one not in states_meant(config.scan.stacks, base, ()))
    sources = (state_sources([pattern], invocation, config, config_path, only) for pattern, only in left)
    return [source for found in sources for source in found]


def known_files(invocation: Invocation, config: Config, config_path: Path | None) -> Sequence[StateSource]:
    """Of these states those that are files on this machine: what every apply compares with."""
    if not config.scan.stacks:
        return ()
    from tfguard.cli.states import state_sources

    base = config_path.parent if config_path else None
    here = [pattern for pattern in config.scan.stacks if "://" not in pattern or pattern.startswith("file://")]
    return state_sources(here, invocation, config, config_path, base=base, set_up_alone=True, files_alone=True)


def _inventory(installed: InstalledEngine, will_list: bool) -> Inventory:
    used = {cloud.name for source in installed.providers if (cloud := cloud_of_source(source)) is not None}
    return inventory_of_clouds(load_catalog(), used if will_list else ())


def run_folder(invocation: Invocation, stack: Stack) -> Path:
    """Where the private folders of a stack's runs lie: in the engine's data folder, which nobody commits.

    Each workspace has its own, since only its own record tells which of them are still needed.
    """
    return data_directory(invocation.directory, os.environ) / "tfguard" / stack_name(stack)
